//! Model checks: every interleaving of a page's loader, readers and evictor, and of a pin that is released while the sweeper falls
//! asleep, and of the notes of uses (loom explores them all).
//!
//! ```console
//! $ RUSTFLAGS="--cfg forebay_loom" cargo test -p forebay-pages --lib --release --target-dir target/loom model::
//! ```
//!
//! The words and the frames are the product's. A page's bytes are a cell that loom watches: a reader that is not ordered after the
//! load, or an evictor that is not ordered after the reader, is an error, whatever the values. Loads of one page exclude each
//! other by their lock, which is left out here so that it does not hide what the word itself promises.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use crate::memory::frames::FrameBudget;
use crate::memory::notes::Notes;
use crate::memory::uses::{Look, Tick, Uses};
use crate::memory::word::{Judgement, Pinned, State, Word, Words};

/// When readers come: later than a moment after a page has entered.
const NOW: Tick = 10;
/// What the memory of a page has that was discarded.
const NOTHING: u64 = 0;

/// One page of a file.
struct Page {
    words: Words,
    bytes: UnsafeCell<u64>,
}

// SAFETY: the cell is what is checked: loom panics where two use it at once.
unsafe impl Sync for Page {}
// SAFETY: as above.
unsafe impl Send for Page {}

impl Page {
    fn absent() -> Arc<Self> {
        Arc::new(Self {
            words: Words::absent(1).expect("it is one"),
            bytes: UnsafeCell::new(NOTHING),
        })
    }

    fn resident(bytes: u64) -> Arc<Self> {
        let page = Self::absent();
        page.word().begin_load();
        page.land(bytes);
        page
    }

    fn word(&self) -> &Word {
        &self.words[0]
    }

    fn read(&self) -> u64 {
        // SAFETY: the pointer is the cell's own; loom checks that nobody writes meanwhile.
        self.bytes.with(|bytes| unsafe { *bytes })
    }

    fn write(&self, value: u64) {
        // SAFETY: as above, and nobody reads meanwhile.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    /// What a run does with a page that it loads.
    fn land(&self, bytes: u64) {
        self.write(bytes);
        self.word().finish_load();
    }

    /// What the evictor does with a page that it took.
    fn leave(&self) {
        self.write(NOTHING);
        self.word().finish_leaving();
    }

    /// A read that takes what is there, and nothing else.
    fn read_resident(&self) -> Option<u64> {
        let pinned = self.word().pin(NOW);
        let bytes = (pinned != Pinned::Missing).then(|| self.read());
        self.word().unpin();
        bytes
    }
}

/// With three threads, all interleavings in which threads are stopped against their will three times: all of them would take hours.
fn bounded() -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder
}

/// Runs these at once on one page, in every order, and looks at it in the end.
fn model(page: fn() -> Arc<Page>, bodies: &'static [fn(&Page)], check: fn(&Page)) {
    bounded().check(move || {
        let page = page();
        let threads: Vec<_> = bodies
            .iter()
            .map(|body| {
                let page = Arc::clone(&page);
                thread::spawn(move || body(&page))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!page.word().is_pinned(), "every pin was given back");
        check(&page);
    });
}

#[test]
fn who_sees_a_page_resident_sees_its_bytes() {
    fn reader(page: &Page) {
        assert!(matches!(page.read_resident(), None | Some(7)));
    }
    model(
        || {
            let page = Page::absent();
            page.word().begin_load();
            page
        },
        &[|page| page.land(7), reader, reader],
        |page| assert_eq!(page.word().state(), State::Resident),
    );
}

#[test]
fn who_waits_with_a_pin_finds_the_page_there_and_keeps_it() {
    model(
        || {
            let page = Page::absent();
            page.word().begin_load();
            page
        },
        &[
            |page| page.land(7),
            |page| {
                page.word().pin(NOW);
                while page.word().state() != State::Resident {
                    thread::yield_now();
                }
                // Nobody can have taken it since it landed under the pin.
                assert_eq!(page.read(), 7);
                page.word().unpin();
            },
        ],
        |_| {},
    );
}

#[test]
fn a_held_page_does_not_go() {
    fn evictor(page: &Page) {
        if page.word().take() == Judgement::Taken {
            page.leave();
        }
    }
    fn reader(page: &Page) {
        assert!(matches!(page.read_resident(), None | Some(7)));
    }
    fn slicer(page: &Page) {
        if page.word().pin(NOW) != Pinned::Missing {
            page.word().pin_again();
            page.word().unpin();
            assert_eq!(page.read(), 7);
        }
        page.word().unpin();
    }
    fn check(page: &Page) {
        let kept = page.word().state() == State::Resident;
        assert_eq!(page.read(), if kept { 7 } else { NOTHING });
    }
    model(|| Page::resident(7), &[evictor, reader, reader], check);
    model(|| Page::resident(7), &[evictor, slicer], check);
}

#[test]
fn a_page_is_taken_by_one() {
    fn evictor(page: &Page) {
        if page.word().take() == Judgement::Taken {
            page.leave();
        }
    }
    model(
        || Page::resident(7),
        &[evictor, evictor],
        |page| {
            assert_eq!(page.word().state(), State::Absent);
        },
    );
}

#[test]
fn what_left_is_loaded_anew_and_its_uses_outlive_pins() {
    fn reader(page: &Page) {
        assert!(matches!(page.read_resident(), None | Some(7 | 8)));
    }
    model(
        || {
            let page = Page::resident(7);
            page.word().enter(NOW);
            assert_eq!(page.word().take(), Judgement::Taken);
            page
        },
        &[
            |page| page.leave(),
            |page| {
                while page.word().state() != State::Absent {
                    thread::yield_now();
                }
                page.word().begin_load();
                page.land(8);
            },
            reader,
        ],
        |page| {
            assert_eq!(page.word().state(), State::Resident);
            assert_eq!(page.read(), 8);
            let loaded = Uses { last: NOW, count: 1 };
            assert_eq!(page.word().enter(NOW + 1).1, loaded, "known from before");
        },
    );
}

#[test]
fn a_load_that_failed_is_begun_anew() {
    fn reader(page: &Page) {
        assert!(matches!(page.read_resident(), None | Some(8)));
    }
    model(
        || {
            let page = Page::absent();
            page.word().begin_load();
            page
        },
        &[
            |page| {
                // What the failed I/O brought, and its discard.
                page.write(5);
                page.write(NOTHING);
                page.word().fail_load();
            },
            |page| {
                while page.word().state() != State::Absent {
                    thread::yield_now();
                }
                page.word().begin_load();
                page.land(8);
            },
            reader,
        ],
        |page| assert_eq!(page.read(), 8),
    );
}

#[test]
fn uses_and_queue_marks_disturb_nothing() {
    fn reader(page: &Page) {
        assert!(matches!(page.read_resident(), None | Some(7)));
    }
    model(
        || {
            let page = Page::resident(7);
            assert_eq!(page.word().enter(1), (true, Uses::default()));
            page
        },
        &[
            |page| {
                page.word().spend();
                match page.word().take() {
                    Judgement::Taken => page.leave(),
                    Judgement::Pinned => {}
                    other => panic!("nobody else takes it: {other:?}"),
                }
            },
            reader,
            |page| {
                let (is_new, before) = page.word().enter(NOW + 9);
                assert!(!is_new && before.count >= 1 && [1, NOW].contains(&before.last));
            },
        ],
        |page| {
            assert!(matches!(page.word().state(), State::Resident | State::Absent));
            assert!(!page.word().enter(NOW + 9).0, "the mark stays");
            page.word().dequeue();
            let (is_new, before) = page.word().enter(NOW + 9);
            assert!(is_new, "the mark was taken away");
            // Its two entries and that of the check, and perhaps the reader's use before them.
            assert!([3, 4].contains(&before.count), "{before:?}");
        },
    );
}

#[test]
fn a_use_by_two_at_once_is_noted_by_one() {
    bounded().check(|| {
        let page = Page::resident(7);
        page.word().enter(1);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let page = Arc::clone(&page);
                thread::spawn(move || {
                    let pinned = page.word().pin(NOW);
                    page.word().unpin();
                    usize::from(pinned == Pinned::UsedAgain)
                })
            })
            .collect();
        let noted: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert!(noted <= 1, "one moment is one use");
        let (uses, again) = match page.word().look() {
            Look::Free { uses, again } => (uses, again),
            other => panic!("nobody holds it or takes it: {other:?}"),
        };
        assert_eq!((usize::from(uses.count), again), (1 + noted, noted == 1));
    });
}

#[test]
fn a_note_is_told_once_or_lost() {
    bounded().check(|| {
        let notes = Arc::new(Notes::new(2));
        let tags = [1, 2].map(|page| notes.sampled(0, page).expect("all are of the sample"));
        let readers = [1, 2].map(|page| {
            let notes = Arc::clone(&notes);
            thread::spawn(move || notes.note(0, page))
        });
        let mut told = Vec::new();
        notes.read(|tag| told.push(tag));
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        notes.read(|tag| told.push(tag));
        for tag in tags {
            let times = told.iter().filter(|other| **other == tag).count();
            assert!(times <= 1, "told {times} times");
        }
        assert!(told.iter().all(|tag| tags.contains(tag)), "nothing else is told");
    });
}

#[test]
fn what_was_read_before_an_invalidation_is_not_there_after_it() {
    // A load that began before the file changed lands while the page is invalidated. Either the evictor takes it, or he is told that
    // there is something that he cannot take, and retires the mapping.
    loom::model(|| {
        let page = Page::absent();
        page.word().begin_load();
        let loader = {
            let page = Arc::clone(&page);
            thread::spawn(move || page.land(7))
        };
        let is_retired = match page.word().take() {
            Judgement::Taken => {
                page.leave();
                false
            }
            Judgement::Gone => false,
            Judgement::Loading | Judgement::Pinned => true,
        };
        loader.join().unwrap();
        assert!(
            is_retired || page.read_resident().is_none(),
            "an old page is still served"
        );
    });
}

/// A page that is held, and a sweeper that somebody waits for.
struct Starving {
    page: Arc<Page>,
    frames: FrameBudget,
}

#[test]
fn a_pin_that_goes_while_the_sweeper_falls_asleep_wakes_it() {
    // Loom finds it a deadlock if the sweeper sleeps on.
    fn starving(holders: usize) {
        bounded().check(move || {
            let starving = Arc::new(Starving {
                page: Page::resident(7),
                frames: FrameBudget::new(1),
            });
            for _ in 0..holders {
                starving.page.word().pin(NOW);
            }
            let sweeper = thread::current();
            starving.frames.set_sweeper(move || sweeper.unpark());
            let threads: Vec<_> = (0..holders)
                .map(|_| {
                    let starving = Arc::clone(&starving);
                    thread::spawn(move || {
                        starving.page.word().unpin();
                        starving.frames.pins_released();
                    })
                })
                .collect();
            // As the evictor's `make_room`, while somebody waits.
            loop {
                if starving.page.word().take() == Judgement::Taken {
                    break;
                }
                starving.frames.await_pins();
                if starving.page.word().take() == Judgement::Taken {
                    break;
                }
                thread::park();
            }
            starving.frames.ignore_pins();
            starving.page.leave();
            for thread in threads {
                thread.join().unwrap();
            }
        });
    }
    starving(1);
    starving(2);
}
