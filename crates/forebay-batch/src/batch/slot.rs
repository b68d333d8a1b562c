//! A slot: the place where one call and the batch that serves it meet.
//!
//! Promises:
//! - Exactly one outcome is consumed for an item that was dispatched, none for one that was cancelled before.
//! - No wake-up is lost: an outcome is published before the waker is handed out, and a caller that leaves a waker learns
//!   whether the outcome came meanwhile; however often and with whichever wakers it polls.
//! - While the state gives a cell to one half, nothing of the user's (item, outcome, waker) is run or dropped.
//! - It never blocks: one atomic word per slot says whose turn it is, and both sides always have something to do.
//!
//! The batcher's unsafe code is in this file, and in `inbox` where it hands out slots and frees chunks. It rests on two rules:
//! 1. *Two halves.* A filled slot has one [`Ticket`] (the call's half) and one [`Place`] (the line's, later the batch's).
//!    Each half ends itself once, and whichever ends last frees the slot. Only the owner of the chunk fills free slots.
//! 2. *The chunk outlives the halves.* Chunks are freed when all of their slots are free, or with the batcher that made them;
//!    every half is in a call, line or batch of that batcher, which keeps it alive.
//!
//! Knows nothing of the queue's order or limits.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{Poll, Waker};

use super::error::CallError;
use super::sync::{AtomicU8, Ordering, UnsafeCell};
use super::window::Due;
use crate::panics::quietly;

/// What a call ends with.
pub(crate) type Outcome<O, E> = Result<O, CallError<E>>;

/// Most slots in a chunk. One call that stays for long keeps its whole chunk in memory, hence not more.
#[cfg(not(forebay_loom))]
const CHUNK_SLOTS: usize = 64;
/// Small in the model, so that chunk borders are crossed and few objects are tracked.
#[cfg(forebay_loom)]
const CHUNK_SLOTS: usize = 2;

/// Most bytes in a chunk, so that callers with huge outcomes do not pay for 64 of them at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Neither half exists; both cells are empty.
const FREE: u8 = 0;
/// The item waits. Content: the item, the place's to take. Waker: the ticket's.
const QUEUED: u8 = 1;
/// The item was taken by the place. Content: the place's, to put the outcome in. Waker: the ticket's, until `DELIVERING`.
const RUNNING: u8 = 2;
/// The outcome is there, the ticket's to take; the place is taking the waker.
const DELIVERING: u8 = 3;
/// The outcome is there and the place has ended: all is the ticket's.
const DONE: u8 = 4;
/// The outcome was taken, and the ticket has ended, while the place was taking the waker: all is the place's.
const TAKEN: u8 = 5;
/// The ticket ended while the item was with the processor: all is the place's.
const ABANDONED: u8 = 6;
/// The ticket is taking item and waker back.
const LEAVING: u8 = 7;
/// The ticket has taken the item back and ended: all is the place's.
const CANCELLED: u8 = 8;
/// The place ended while the ticket was taking the item back: all is the ticket's.
const FORGOTTEN: u8 = 9;
/// Added to `QUEUED` and `RUNNING` (and, if it comes to that meanwhile, `DONE`): the ticket is exchanging the waker.
const AT_WAKER: u8 = 0x80;

enum Content<I, O, E> {
    Empty,
    Item(I),
    Outcome(Outcome<O, E>),
}

struct Slot<I, O, E> {
    state: AtomicU8,
    waker: UnsafeCell<Option<Waker>>,
    content: UnsafeCell<Content<I, O, E>>,
}

/// What is known of an item while it waits. Written when its slot is filled, read by the holder of the place.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    /// Grows with every arrival at the batcher, on whichever thread.
    pub(crate) arrival: u64,
    pub(crate) weight: usize,
    pub(crate) due: Due,
}

impl<I, O, E> Slot<I, O, E> {
    fn free() -> Self {
        Self {
            state: AtomicU8::new(FREE),
            waker: UnsafeCell::new(None),
            content: UnsafeCell::new(Content::Empty),
        }
    }

    /// # Safety
    /// The content must be the caller's, by the state.
    unsafe fn exchange_content(&self, content: Content<I, O, E>) -> Content<I, O, E> {
        // SAFETY: exclusive, as promised by the caller.
        self.content
            .with_mut(|own| unsafe { std::mem::replace(&mut *own, content) })
    }

    /// # Safety
    /// The content must be the caller's, by the state.
    unsafe fn take_outcome(&self) -> Outcome<O, E> {
        // SAFETY: as promised by the caller.
        match unsafe { self.exchange_content(Content::Empty) } {
            Content::Outcome(outcome) => outcome,
            Content::Item(_) | Content::Empty => unreachable!("a delivered slot holds an outcome"),
        }
    }

    /// # Safety
    /// The waker must be the caller's, by the state.
    unsafe fn exchange_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: exclusive, as promised by the caller.
        self.waker
            .with_mut(|own| unsafe { std::mem::replace(&mut *own, waker) })
    }

    fn advance(&self, from: u8, to: u8) -> Result<(), u8> {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }

    /// Both halves have ended. What the one that ends last has emptied, others may fill.
    fn set_free(&self) {
        self.state.store(FREE, Ordering::Release);
    }
}

/// The call's half of a slot. It ends by a ready [`poll`](Self::poll) or by [`leave`](Self::leave), and is not used after.
pub(crate) struct Ticket<I, O, E>(NonNull<Slot<I, O, E>>);

// SAFETY: the halves pass items, outcomes and wakers between threads, and errors are shared; the state says who may touch what.
unsafe impl<I: Send, O: Send, E: Send + Sync> Send for Ticket<I, O, E> {}
// SAFETY: through a shared reference a ticket gives nothing out.
unsafe impl<I: Send, O: Send, E: Send + Sync> Sync for Ticket<I, O, E> {}

/// What a leaving call took along: user values, to be dropped where no lock is held.
#[must_use = "to be dropped outside any lock"]
pub(crate) struct Displaced<I, O, E> {
    /// The item was still waiting, hence never reaches the processor.
    pub(crate) was_queued: bool,
    _item: Option<I>,
    _outcome: Option<Outcome<O, E>>,
    _waker: Option<Waker>,
}

impl<I, O, E> Ticket<I, O, E> {
    fn slot(&self) -> &Slot<I, O, E> {
        // SAFETY: a ticket is half of a filled slot, whose chunk is there (rule 2).
        unsafe { self.0.as_ref() }
    }

    /// The caller looks for its outcome and leaves its waker where there is none yet.
    #[inline]
    pub(crate) fn poll(&mut self, waker: &Waker) -> Poll<Outcome<O, E>> {
        let slot = self.slot();
        if slot.state.load(Ordering::Acquire) == DONE {
            // SAFETY: done, hence the content is the ticket's.
            let outcome = unsafe { slot.take_outcome() };
            slot.set_free();
            return Poll::Ready(outcome);
        }
        self.poll_slowly(waker)
    }

    fn poll_slowly(&mut self, waker: &Waker) -> Poll<Outcome<O, E>> {
        let slot = self.slot();
        // A waker's clone and drop are the executor's code: neither is run while the place may have to make way.
        let mut spare = None;
        loop {
            let state = slot.state.load(Ordering::Acquire);
            match state {
                QUEUED | RUNNING => {
                    if slot.advance(state, state | AT_WAKER).is_err() {
                        continue;
                    }
                    // SAFETY: at the waker, hence it is the ticket's.
                    let is_kept = slot
                        .waker
                        .with(|kept| unsafe { &*kept }.as_ref().is_some_and(|kept| kept.will_wake(waker)));
                    let replaced = spare
                        .take()
                        .filter(|_| !is_kept)
                        // SAFETY: as above.
                        .map(|spare| unsafe { slot.exchange_waker(Some(spare)) });
                    let before = slot.state.fetch_and(!AT_WAKER, Ordering::AcqRel);
                    if before == DONE | AT_WAKER {
                        // SAFETY: done, hence both are the ticket's; the place left the waker.
                        let (outcome, own) = unsafe { (slot.take_outcome(), slot.exchange_waker(None)) };
                        slot.set_free();
                        // This half has ended: a panic must not keep that from the caller.
                        quietly(|| drop((own, replaced)));
                        return Poll::Ready(outcome);
                    }
                    if is_kept || replaced.is_some() {
                        return Poll::Pending;
                    }
                    spare = Some(waker.clone());
                }
                DELIVERING => {
                    // SAFETY: delivering, hence the content is the ticket's.
                    let outcome = unsafe { slot.take_outcome() };
                    if slot.advance(DELIVERING, TAKEN).is_err() {
                        slot.set_free();
                    }
                    quietly(|| drop(spare));
                    return Poll::Ready(outcome);
                }
                DONE => {
                    // SAFETY: done, hence the content is the ticket's.
                    let outcome = unsafe { slot.take_outcome() };
                    slot.set_free();
                    quietly(|| drop(spare));
                    return Poll::Ready(outcome);
                }
                _ => unreachable!("a ticket that has not ended sees its item or its outcome, not state {state}"),
            }
        }
    }

    /// The call leaves, and with it this half.
    pub(crate) fn leave(&mut self) -> Displaced<I, O, E> {
        let slot = self.slot();
        let mut displaced = Displaced {
            was_queued: false,
            _item: None,
            _outcome: None,
            _waker: None,
        };
        loop {
            let state = slot.state.load(Ordering::Acquire);
            match state {
                QUEUED => {
                    if slot.advance(QUEUED, LEAVING).is_err() {
                        continue;
                    }
                    // SAFETY: leaving, hence both are the ticket's.
                    let (content, waker) =
                        unsafe { (slot.exchange_content(Content::Empty), slot.exchange_waker(None)) };
                    if slot.advance(LEAVING, CANCELLED).is_err() {
                        slot.set_free();
                    }
                    displaced.was_queued = true;
                    displaced._waker = waker;
                    if let Content::Item(item) = content {
                        displaced._item = Some(item);
                    }
                    return displaced;
                }
                RUNNING => {
                    if slot.advance(RUNNING, RUNNING | AT_WAKER).is_err() {
                        continue;
                    }
                    // SAFETY: at the waker, hence it is the ticket's.
                    displaced._waker = unsafe { slot.exchange_waker(None) };
                    if slot.advance(RUNNING | AT_WAKER, ABANDONED).is_err() {
                        // SAFETY: the place can only have delivered meanwhile, hence the content is the ticket's.
                        displaced._outcome = Some(unsafe { slot.take_outcome() });
                        slot.set_free();
                    }
                    return displaced;
                }
                DELIVERING => {
                    // SAFETY: delivering, hence the content is the ticket's.
                    displaced._outcome = Some(unsafe { slot.take_outcome() });
                    if slot.advance(DELIVERING, TAKEN).is_err() {
                        slot.set_free();
                    }
                    return displaced;
                }
                DONE => {
                    // SAFETY: done, hence the content is the ticket's.
                    displaced._outcome = Some(unsafe { slot.take_outcome() });
                    slot.set_free();
                    return displaced;
                }
                _ => unreachable!("a ticket that has not ended sees its item or its outcome, not state {state}"),
            }
        }
    }
}

/// The other half of a slot, of the line and later of the batch that has the item. It ends by a [`dispatch`](Self::dispatch)
/// without an item, or by [`deliver`](Self::deliver). Dropped before, as when user code panics where nobody expects it, it
/// ends with [`CallError::Stopped`], so that its caller does not wait for ever.
pub(crate) struct Place<I, O, E>(NonNull<Slot<I, O, E>>);

// SAFETY: as for `Ticket`.
unsafe impl<I: Send, O: Send, E: Send + Sync> Send for Place<I, O, E> {}

/// What became of an outcome that was delivered.
pub(crate) enum Delivered<O, E> {
    /// It waits for its caller, who is to be woken if it has left a waker.
    Stored(Option<Waker>),
    /// The call is gone: to be dropped outside any lock.
    Unwanted(Outcome<O, E>),
}

impl<I, O, E> Place<I, O, E> {
    fn slot(&self) -> &Slot<I, O, E> {
        // SAFETY: a place is half of a filled slot, whose chunk is there (rule 2).
        unsafe { self.0.as_ref() }
    }

    /// The slot, for a way to the end of this half.
    #[inline]
    fn into_slot<'s>(self) -> &'s Slot<I, O, E> {
        let slot = ManuallyDrop::new(self).0;
        // SAFETY: the half is there until the one who asks has ended it, and with it the slot (rule 2).
        unsafe { slot.as_ref() }
    }

    /// Whether its call has not left.
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(
            self.slot().state.load(Ordering::Acquire),
            CANCELLED | LEAVING | ABANDONED
        )
    }

    /// Takes the item; `None`, and the end of this half, when its call was cancelled before.
    #[inline]
    pub(crate) fn dispatch(self) -> Option<(Self, I)> {
        let slot = self.into_slot();
        let mut state = QUEUED;
        loop {
            let advanced = match state {
                QUEUED => slot.advance(QUEUED, RUNNING),
                LEAVING => slot.advance(LEAVING, FORGOTTEN),
                CANCELLED => {
                    slot.set_free();
                    return None;
                }
                state if state == QUEUED | AT_WAKER => slot.advance(state, RUNNING | AT_WAKER),
                _ => unreachable!("an item is dispatched once, not in state {state}"),
            };
            match advanced {
                Ok(()) if state == LEAVING => return None,
                Ok(()) => break,
                Err(other) => state = other,
            }
        }
        // SAFETY: running, hence the content is the place's.
        match unsafe { slot.exchange_content(Content::Empty) } {
            Content::Item(item) => Some((Self(NonNull::from(slot)), item)),
            Content::Outcome(_) | Content::Empty => unreachable!("a queued slot holds an item"),
        }
    }

    /// Ends this half, if its call has left; otherwise gives it back.
    pub(crate) fn sweep(self) -> Option<Self> {
        let slot = self.into_slot();
        match slot.state.load(Ordering::Acquire) {
            CANCELLED | ABANDONED => {
                slot.set_free();
                None
            }
            LEAVING if slot.advance(LEAVING, FORGOTTEN).is_ok() => None,
            LEAVING => {
                slot.set_free();
                None
            }
            _ => Some(Self(NonNull::from(slot))),
        }
    }

    /// Ends this half by the outcome of its dispatched item.
    #[inline]
    pub(crate) fn deliver(self, outcome: Outcome<O, E>) -> Delivered<O, E> {
        let slot = self.into_slot();
        // SAFETY: the item was dispatched, hence the content is the place's, also when the call is gone.
        drop(unsafe { slot.exchange_content(Content::Outcome(outcome)) });
        let mut state = RUNNING;
        loop {
            let advanced = match state {
                RUNNING => slot.advance(RUNNING, DELIVERING),
                // The caller is at the waker and will find the outcome when it lets go.
                state if state == RUNNING | AT_WAKER => slot.advance(state, DONE | AT_WAKER),
                ABANDONED => {
                    // SAFETY: abandoned, hence all is the place's.
                    let outcome = unsafe { slot.take_outcome() };
                    slot.set_free();
                    return Delivered::Unwanted(outcome);
                }
                _ => unreachable!("an outcome is delivered once, not in state {state}"),
            };
            match advanced {
                Ok(()) if state == RUNNING => break,
                Ok(()) => return Delivered::Stored(None),
                Err(other) => state = other,
            }
        }
        // SAFETY: delivering, hence the waker is the place's.
        let waker = unsafe { slot.exchange_waker(None) };
        if slot.advance(DELIVERING, DONE).is_err() {
            slot.set_free();
        }
        Delivered::Stored(waker)
    }
}

impl<I, O, E> Drop for Place<I, O, E> {
    #[cold]
    fn drop(&mut self) {
        let place = Self(self.0);
        let place = match self.slot().state.load(Ordering::Acquire) & !AT_WAKER {
            QUEUED | LEAVING | CANCELLED => place.dispatch().map(|(place, _item)| place),
            _ => Some(place),
        };
        if let Some(Delivered::Stored(Some(waker))) = place.map(|place| place.deliver(Err(CallError::Stopped))) {
            waker.wake();
        }
    }
}

/// Slots that share an allocation. Filled in order, and again from the start once all of them are free.
pub(crate) struct Chunk<I, O, E>(NonNull<Slots<I, O, E>>);

struct Slots<I, O, E> {
    slots: Box<[Slot<I, O, E>]>,
    notes: Box<[UnsafeCell<Note>]>,
}

// SAFETY: as for `Ticket`.
unsafe impl<I: Send, O: Send, E: Send + Sync> Send for Chunk<I, O, E> {}

impl<I, O, E> Chunk<I, O, E> {
    /// All slots free.
    pub(crate) fn new() -> Self {
        let fitting = CHUNK_BYTES / (size_of::<Slot<I, O, E>>() + size_of::<Note>());
        let slots = fitting.clamp(1, CHUNK_SLOTS);
        let empty = Note {
            arrival: 0,
            weight: 0,
            due: Due::AtOnce,
        };
        let slots = Slots {
            slots: (0..slots).map(|_| Slot::free()).collect(),
            notes: (0..slots).map(|_| UnsafeCell::new(empty)).collect(),
        };
        Self(NonNull::from(Box::leak(Box::new(slots))))
    }

    fn inner(&self) -> &Slots<I, O, E> {
        // SAFETY: freed only by `free`, which takes the chunk.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn slots(&self) -> usize {
        self.inner().slots.len()
    }

    /// Whether no slot has a half left.
    pub(crate) fn is_free(&self) -> bool {
        let is_free = |slot: &Slot<I, O, E>| slot.state.load(Ordering::Acquire) == FREE;
        self.inner().slots.iter().all(is_free)
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// The chunk must be free, or the batcher gone with every call, line and batch of it.
    pub(crate) unsafe fn free(self) {
        // SAFETY: leaked by `new`; by rule 2 nobody points to it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }

    /// Fills a free slot. Its other half is in the stretch that the chunk's owner makes of it.
    ///
    /// # Safety
    /// The slot must be free, and nobody else may fill slots of this chunk at the same time.
    #[inline]
    pub(crate) unsafe fn fill(&self, index: usize, item: I, waker: Option<Waker>, note: Note) -> Ticket<I, O, E> {
        let slots = self.inner();
        let slot = &slots.slots[index];
        debug_assert_eq!(
            slot.state.load(Ordering::Acquire),
            FREE,
            "a slot is used by one call at a time"
        );
        // SAFETY: free, hence all is the filler's.
        unsafe {
            drop(slot.exchange_content(Content::Item(item)));
            drop(slot.exchange_waker(waker));
            slots.notes[index].with_mut(|own| *own = note);
        }
        slot.state.store(QUEUED, Ordering::Release);
        Ticket(NonNull::from(slot))
    }

    /// The places of a range of slots.
    ///
    /// # Safety
    /// These slots must have been filled since, and no other stretch may have their places.
    pub(crate) unsafe fn stretch(&self, from: usize, to: usize) -> Stretch<I, O, E> {
        debug_assert!(from <= to && to <= self.slots());
        Stretch {
            chunk: self.0,
            from,
            to,
        }
    }
}

/// Places of neighbouring slots, in order of arrival.
pub(crate) struct Stretch<I, O, E> {
    chunk: NonNull<Slots<I, O, E>>,
    from: usize,
    to: usize,
}

// SAFETY: as for `Ticket`.
unsafe impl<I: Send, O: Send, E: Send + Sync> Send for Stretch<I, O, E> {}

impl<I, O, E> Stretch<I, O, E> {
    fn inner(&self) -> &Slots<I, O, E> {
        // SAFETY: it holds places of this chunk, or is empty and asks for nothing (rule 2).
        unsafe { self.chunk.as_ref() }
    }

    pub(crate) fn len(&self) -> usize {
        self.to - self.from
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The note of the first place.
    #[inline]
    pub(crate) fn first(&self) -> Option<Note> {
        (!self.is_empty()).then(|| self.note(self.from))
    }

    /// The note of the last place.
    pub(crate) fn last(&self) -> Option<Note> {
        (!self.is_empty()).then(|| self.note(self.to - 1))
    }

    #[inline]
    fn note(&self, index: usize) -> Note {
        // SAFETY: written before the stretch was made, and not again before its place has ended.
        self.inner().notes[index].with(|note| unsafe { *note })
    }

    /// Whether the first place's call has not left.
    #[inline]
    pub(crate) fn first_is_waiting(&self) -> bool {
        self.is_waiting(self.from)
    }

    fn is_waiting(&self, index: usize) -> bool {
        self.inner().slots[index].state.load(Ordering::Acquire) & !AT_WAKER == QUEUED
    }

    /// The notes of those that still wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Note> {
        (self.from..self.to)
            .filter(|index| self.is_waiting(*index))
            .map(|index| self.note(index))
    }

    /// Ends the places of cancelled calls. The others are added to `kept`, as few stretches.
    pub(crate) fn sweep(self, kept: &mut VecDeque<Self>) {
        for index in self.from..self.to {
            let place = Place(NonNull::from(&self.inner().slots[index]));
            let Some(place) = place.sweep() else {
                continue;
            };
            // The stretch has it.
            std::mem::forget(place);
            match kept.back_mut() {
                Some(last) if last.chunk == self.chunk && last.to == index => last.to += 1,
                _ => kept.push_back(Self {
                    chunk: self.chunk,
                    from: index,
                    to: index + 1,
                }),
            }
        }
    }

    /// Takes the first place out.
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<Place<I, O, E>> {
        if self.is_empty() {
            return None;
        }
        let place = Place(NonNull::from(&self.inner().slots[self.from]));
        self.from += 1;
        Some(place)
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests;
