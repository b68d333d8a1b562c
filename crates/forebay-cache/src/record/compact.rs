//! How a record lies in memory: the value and one word, for there are millions of them; and what few records have, on the heap.
//!
//! Promises:
//! - A [`Compact`] of a `u64` is 16 bytes. Whether there is a value stands in a bit of the word, not in a word of its own.
//! - What is rare ([`Rare`]) takes memory from when it is first asked for, once: of several who ask at the same time all get the same.
//! - The value, and what is rare, are dropped once, with the record.
//!
//! All of a record's unsafe code is here. Knows nothing of ages and windows: what the bits of a time mean is its user's.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use super::more::More;

/// The word is a time, [`MARKED`] or not; or, with this bit, the address of what is rare, where the time is then.
pub(super) const RARE: u64 = 1;
/// There is no value. The same for as long as the record lives.
const MISSING: u64 = 2;
/// A bit of the time that is set later, if at all.
pub(super) const MARKED: u64 = 4;
/// Those that an address leaves free, since what it points to is aligned to more.
const FLAGS: u64 = RARE | MISSING | MARKED;
/// By so much a time is shifted up.
pub(super) const TIME_SHIFT: u32 = FLAGS.count_ones();

pub(super) struct Compact<V> {
    word: AtomicU64,
    /// Initialized unless the word says that it is missing.
    value: MaybeUninit<V>,
    owns: PhantomData<(V, Box<Rare>)>,
}

/// What few records have.
#[repr(align(8))]
pub(super) struct Rare {
    /// The word as it was before, and from then on.
    time: AtomicU64,
    /// Of the record's user; zero at first.
    pub(super) retry: AtomicU64,
    pub(super) more: More,
}

impl<V> Compact<V> {
    /// `time`: 61 bits, [`MARKED`] not among them.
    pub(super) fn new(value: Option<V>, time: u64) -> Self {
        let missing = if value.is_none() { MISSING } else { 0 };
        Self {
            word: AtomicU64::new(time << TIME_SHIFT | missing),
            value: value.map_or_else(MaybeUninit::uninit, MaybeUninit::new),
            owns: PhantomData,
        }
    }

    /// The word, to be looked at as it is: a time if it has no [`RARE`].
    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn value(&self) -> Option<&V> {
        if self.word() & MISSING != 0 {
            return None;
        }
        // SAFETY: initialized where there was a value in `new`, as that bit tells, which nobody changes; moved out by nobody.
        Some(unsafe { self.value.assume_init_ref() })
    }

    /// What is rare, if there is any of it.
    #[inline]
    pub(super) fn rare(&self) -> Option<&Rare> {
        // SAFETY: acquired, for it was initialized by another thread, maybe.
        unsafe { self.rare_at(self.word.load(Ordering::Acquire)) }
    }

    /// # Safety
    ///
    /// This record's word was that, loaded by at least an acquire.
    #[inline]
    unsafe fn rare_at(&self, word: u64) -> Option<&Rare> {
        // SAFETY: such a word is an address that `rare_or_new` has put there, of a box that lives as long as the record; never
        // borrowed mutably, but by `more_mut`, which borrows the record so.
        (word & RARE != 0).then(|| unsafe { &*std::ptr::with_exposed_provenance::<Rare>((word & !FLAGS) as usize) })
    }

    /// What is rare; from now on there is some.
    pub(super) fn rare_or_new(&self) -> &Rare {
        let mut new: Option<Box<Rare>> = None;
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // SAFETY: acquired, here and below.
            if let Some(rare) = unsafe { self.rare_at(word) } {
                return rare;
            }
            let rare = new.take().unwrap_or_else(|| {
                Box::new(Rare {
                    time: AtomicU64::new(0),
                    retry: AtomicU64::new(0),
                    more: More::default(),
                })
            });
            rare.time.store(word, Ordering::Relaxed);
            let address = Box::into_raw(rare);
            let with_it = address.expose_provenance() as u64 | RARE | word & MISSING;
            match self
                .word
                .compare_exchange(word, with_it, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => word = with_it,
                Err(now) => {
                    // SAFETY: from the box above, and seen by nobody.
                    new = Some(unsafe { Box::from_raw(address) });
                    word = now;
                }
            }
        }
    }

    /// The same, to be changed before others see the record.
    pub(super) fn more_mut(&mut self) -> &mut More {
        self.rare_or_new();
        let address = *self.word.get_mut() & !FLAGS;
        // SAFETY: an address, since there is some of it, of a box that is the record's; the record is borrowed mutably.
        unsafe { &mut (*std::ptr::with_exposed_provenance_mut::<Rare>(address as usize)).more }
    }

    /// The time with its [`MARKED`], and other bits below [`TIME_SHIFT`].
    #[inline]
    pub(super) fn time(&self) -> u64 {
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: acquired.
        unsafe { self.rare_at(word) }.map_or(word, |rare| rare.time.load(Ordering::Relaxed))
    }

    /// Sets [`MARKED`].
    pub(super) fn mark(&self) {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            // SAFETY: acquired, here and below.
            if let Some(rare) = unsafe { self.rare_at(word) } {
                rare.time.fetch_or(MARKED, Ordering::Relaxed);
                return;
            }
            match self
                .word
                .compare_exchange(word, word | MARKED, Ordering::Relaxed, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }
}

impl<V> Drop for Compact<V> {
    fn drop(&mut self) {
        let word = *self.word.get_mut();
        let rare = (word & RARE != 0).then(|| {
            // SAFETY: an address that `rare_or_new` has put there, from a box; the record is gone with this.
            unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Rare>((word & !FLAGS) as usize)) }
        });
        if word & MISSING == 0 {
            // SAFETY: initialized, as in `value`; the record is gone with this. The other part goes also if this panics.
            unsafe { self.value.assume_init_drop() };
        }
        drop(rare);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;
    use std::sync::Arc;

    use super::*;

    const TIME: u64 = (1 << 61) - 1;

    #[test]
    fn is_as_small_as_it_promises() {
        assert_eq!(size_of::<Compact<u64>>(), 16);
        assert!(align_of::<Rare>() as u64 > FLAGS);
    }

    #[test]
    fn what_is_put_in_is_there_and_goes_once() {
        let value = Arc::new(7);
        for rare in [false, true] {
            let mut record = Compact::new(Some(Arc::clone(&value)), TIME);
            let none = Compact::<Arc<u64>>::new(None, TIME);
            if rare {
                record.more_mut().learnt_ms = NonZeroU64::new(3);
                none.rare_or_new();
            }
            assert_eq!(
                (record.value(), none.value(), Arc::strong_count(&value)),
                (Some(&value), None, 2)
            );
            assert_eq!((record.time() >> TIME_SHIFT, record.time() & MARKED), (TIME, 0));
            assert_eq!(none.time() >> TIME_SHIFT, TIME);
            record.mark();
            assert_eq!((record.time() >> TIME_SHIFT, record.time() & MARKED), (TIME, MARKED));
            assert_eq!(
                record.rare().map(|rare| rare.more.learnt_ms),
                rare.then_some(NonZeroU64::new(3))
            );
            drop((record, none));
            assert_eq!(Arc::strong_count(&value), 1);
        }
    }

    /// All get the same, and a mark that is set meanwhile is not lost.
    #[test]
    fn of_several_who_ask_at_once_all_get_the_same() {
        for round in 0..if cfg!(miri) { 10 } else { 2_000 } {
            let record = Compact::new(Some(round), round);
            let start = std::sync::Barrier::new(3);
            let ask = || {
                start.wait();
                let rare = record.rare_or_new();
                rare.retry.fetch_add(1, Ordering::Relaxed);
                std::ptr::from_ref(rare).addr()
            };
            std::thread::scope(|scope| {
                let others = [scope.spawn(ask), scope.spawn(ask)];
                start.wait();
                record.mark();
                let [one, other] = others.map(|other| other.join().unwrap());
                assert_eq!(one, other);
            });
            assert_eq!(
                (record.time(), record.value()),
                (round << TIME_SHIFT | MARKED, Some(&round))
            );
            assert_eq!(record.rare().unwrap().retry.load(Ordering::Relaxed), 2);
        }
    }
}
