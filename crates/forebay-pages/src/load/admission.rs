//! Which large reads may load now, and which wait for their turn.
//!
//! Promises: a read that needs little never waits here. Of those that need much, as many load at once as keep the disk busy, and at
//! least four. The others stand in line: a read that needs twice as much waits twice as long, and none is overtaken for ever. Giving
//! up (dropping the future, or a turn) leaves nothing behind. Nobody stands in line while the turns that were given are not used:
//! their readers wait for something other than the disk, or nobody polls them.
//!
//! Why: a load has all its frames before it begins. If fifty large reads begin together, they wait for the same disk while holding
//! memory in which there is nothing yet, and in which others could have found something. A read that waits here holds none.
//!
//! The order is that of self-clocked fair queueing (Golestani, INFOCOM 1994).
//!
//! Knows neither pages nor memory.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::wakers;

/// A read that needs no more runs than this needs little.
const LITTLE_RUNS: usize = 4;
/// So many times what the disk is given at once may be admitted, so that it has more to do when something ends.
const AHEAD: usize = 2;
/// So many turns are there at least: none takes a larger part of the room, so that one long read does not keep all others waiting.
const TURNS_MIN: usize = 4;
/// When no turn is used for so long, those in line go on without one.
const STANDSTILL: Duration = Duration::from_millis(250);

/// Admits reads that need much.
pub(crate) struct Admission {
    line: Mutex<Line>,
    /// The most pages that are little.
    little: usize,
    /// The most pages of a turn.
    turn_max: usize,
}

struct Line {
    /// How many pages may still be admitted.
    room: usize,
    /// How many pages a read would have loaded that stood in line from the beginning, had all got the same.
    clock: u64,
    /// How many have come.
    came: u64,
    /// How many turns are used now.
    in_use: usize,
    /// How many have been used so far.
    used: u64,
    waiting: BTreeMap<Place, Waiting>,
}

/// What the clock shows when this one may go, and when it came.
type Place = (u64, u64);

struct Waiting {
    share: usize,
    turn: oneshot::Sender<Turn>,
}

/// The right to load. Dropping it lets the next one in.
#[must_use]
pub(crate) struct Turn(Option<Held>);

struct Held {
    admission: Arc<Admission>,
    share: usize,
    is_used: bool,
}

impl Turn {
    /// For a load that does not wait.
    pub(crate) fn of_its_own() -> Self {
        Self(None)
    }

    fn of(admission: &Arc<Admission>, share: usize) -> Self {
        Self(Some(Held {
            admission: Arc::clone(admission),
            share,
            is_used: false,
        }))
    }

    /// The load begins. From now on the turn is to be held by whatever ends with the load, whether anybody waits for it or not.
    pub(crate) fn used(mut self) -> Arc<Self> {
        if let Some(held) = &mut self.0 {
            held.is_used = true;
            let mut line = held.admission.line.lock();
            line.in_use += 1;
            line.used += 1;
        }
        Arc::new(self)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            let mut line = held.admission.line.lock();
            line.room += held.share;
            line.in_use -= usize::from(held.is_used);
            drop(line);
            held.admission.let_in();
        }
    }
}

impl Admission {
    /// For so many I/Os at once, of so many pages each.
    pub(crate) fn new(depth: usize, run_pages: usize) -> Arc<Self> {
        let ahead = AHEAD.saturating_mul(depth).saturating_mul(run_pages);
        let turn_max = (ahead / TURNS_MIN).max(1);
        let line = Line {
            room: TURNS_MIN * turn_max,
            clock: 0,
            came: 0,
            in_use: 0,
            used: 0,
            waiting: BTreeMap::new(),
        };
        Arc::new(Self {
            line: Mutex::new(line),
            little: LITTLE_RUNS.saturating_mul(run_pages),
            turn_max,
        })
    }

    /// A turn to load so many pages, if nobody waits for one and there is room.
    pub(crate) fn try_admit(self: &Arc<Self>, pages: usize) -> Option<Turn> {
        if pages <= self.little {
            return Some(Turn::of_its_own());
        }
        let share = pages.min(self.turn_max);
        let mut line = self.line.lock();
        if !line.waiting.is_empty() {
            return None;
        }
        line.room = line.room.checked_sub(share)?;
        Some(Turn::of(self, share))
    }

    /// Waits for a turn to load so many pages. Gives one without room if those that were given are not used.
    ///
    /// # Cancel safety
    /// Dropping it gives up the place in line.
    pub(crate) async fn admit(self: &Arc<Self>, pages: usize) -> Turn {
        let mut in_line = pin!(self.stand_in_line(pages));
        let mut before = self.at_rest();
        loop {
            if let Ok(turn) = tokio::time::timeout(STANDSTILL, in_line.as_mut()).await {
                return turn;
            }
            let now = self.at_rest();
            if now.is_some() && now == before {
                return Turn::of_its_own();
            }
            before = now;
        }
    }

    /// How many turns have been used so far, if none is now.
    fn at_rest(&self) -> Option<u64> {
        let line = self.line.lock();
        (line.in_use == 0).then_some(line.used)
    }

    async fn stand_in_line(self: &Arc<Self>, pages: usize) -> Turn {
        let (turn, its_turn) = oneshot::channel();
        let share = pages.min(self.turn_max);
        let place = {
            let mut line = self.line.lock();
            line.came += 1;
            let place = (line.clock.saturating_add(pages as u64), line.came);
            line.waiting.insert(place, Waiting { share, turn });
            place
        };
        let _left_at_last = Leave { admission: self, place };
        self.let_in();
        wakers::guarded(its_turn)
            .await
            .expect("who is in line is told, and leaves it only with this")
    }

    /// Gives their turn to those whose turn it is.
    fn let_in(self: &Arc<Self>) {
        loop {
            let mut line = self.line.lock();
            let Some(first) = line.waiting.first_entry() else {
                return;
            };
            let (share, (clock, _)) = (first.get().share, *first.key());
            if share > line.room {
                return;
            }
            let (_, first) = line.waiting.pop_first().expect("it is there");
            line.room -= share;
            line.clock = clock;
            drop(line);
            // Who has gone just now gives it back by this.
            let _ = first.turn.send(Turn::of(self, share));
        }
    }
}

/// Takes somebody out of the line, if it is there still.
struct Leave<'a> {
    admission: &'a Arc<Admission>,
    place: Place,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let left = self.admission.line.lock().waiting.remove(&self.place);
        if left.is_some() {
            // The next one may need less.
            self.admission.let_in();
        }
    }
}

#[cfg(all(test, not(forebay_loom)))]
mod tests {
    use std::pin::Pin;
    use std::task::Context;

    use futures_util::future::poll_immediate;

    use super::*;
    use crate::testing::PanickingWaker;

    /// 64 pages at once on the disk: 128 ahead, 32 a turn, and little is 32.
    fn admission() -> Arc<Admission> {
        Admission::new(8, 8)
    }

    fn all_turns(admission: &Arc<Admission>) -> Vec<Turn> {
        std::iter::from_fn(|| admission.try_admit(1_000_000)).collect()
    }

    type Waiter<'a> = Pin<Box<dyn Future<Output = Turn> + 'a>>;

    /// Somebody in line.
    async fn waiter(admission: &Arc<Admission>, pages: usize) -> Waiter<'_> {
        let mut waiter = Box::pin(admission.admit(pages));
        assert!(poll_immediate(&mut waiter).await.is_none());
        waiter
    }

    fn check_nobody_is_in(admission: &Arc<Admission>) {
        let line = admission.line.lock();
        let found = (line.room, line.waiting.len(), line.in_use);
        assert_eq!(found, (TURNS_MIN * admission.turn_max, 0, 0));
    }

    #[tokio::test]
    async fn four_who_need_much_load_at_once_and_the_next_waits_for_one_of_them() {
        let admission = admission();
        let mut turns = all_turns(&admission);
        assert_eq!(turns.len(), 4);
        assert!(admission.try_admit(33).is_none());
        let mut first = waiter(&admission, 100).await;
        let mut second = waiter(&admission, 100).await;
        turns.pop();
        assert!(poll_immediate(&mut second).await.is_none(), "not before its turn");
        assert!(admission.try_admit(33).is_none(), "nor does another go first");
        let turn = poll_immediate(&mut first).await.expect("room for one");
        assert!(poll_immediate(&mut second).await.is_none());
        drop(turn);
        assert!(poll_immediate(&mut second).await.is_some());
        drop(turns);
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn who_needs_less_leaves_room_for_more_and_who_needs_little_never_waits() {
        let admission = Admission::new(64, 1);
        let turns: Vec<Turn> = (0..100).map_while(|_| admission.try_admit(8)).collect();
        assert_eq!(turns.len(), 128 / 8);
        let _waits = waiter(&admission, 8).await;
        let little: Vec<Turn> = (0..1000).map_while(|_| admission.try_admit(4)).collect();
        assert_eq!(little.len(), 1000);
        assert!(admission.try_admit(5).is_none());
    }

    #[tokio::test]
    async fn who_needs_twice_as_much_waits_twice_as_long_and_nobody_for_ever() {
        let admission = admission();
        let mut turns = all_turns(&admission);
        let mut large = waiter(&admission, 1000).await;
        let mut overtaken = 0;
        let large_turn = loop {
            let mut small = waiter(&admission, 40).await;
            drop(turns.pop());
            if let Some(turn) = poll_immediate(&mut large).await {
                break turn;
            }
            turns.push(poll_immediate(&mut small).await.expect("it needs less"));
            overtaken += 1;
        };
        assert_eq!(
            overtaken,
            1000 / 40 - 1,
            "the last would have been its equal, and came later"
        );
        drop((large_turn, turns));
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn giving_up_leaves_nothing_behind() {
        let admission = Admission::new(64, 1);
        let turns = all_turns(&admission);
        let first = waiter(&admission, 40).await;
        let large = waiter(&admission, 64).await;
        let mut second = waiter(&admission, 65).await;
        drop(first);
        assert_eq!(admission.line.lock().waiting.len(), 2);
        drop(turns);
        // It has been given its turn, and does not come to take it.
        drop(large);
        let turn = poll_immediate(&mut second).await.expect("room");
        drop(turn);
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn when_the_first_in_line_gives_up_the_next_need_not_wait_for_room_for_it() {
        let admission = Admission::new(64, 1);
        let mut turns = all_turns(&admission);
        let first = waiter(&admission, 30).await;
        let mut before = waiter(&admission, 25).await;
        turns.pop();
        turns.push(poll_immediate(&mut before).await.expect("room"));
        // Seven are left: too little for the first, enough for the second, whose turn comes later.
        let mut second = waiter(&admission, 6).await;
        assert!(admission.try_admit(5).is_none(), "nor does one who comes last take it");
        drop(first);
        turns.push(poll_immediate(&mut second).await.expect("room"));
        drop(turns);
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn who_is_in_line_goes_on_when_turns_are_not_used_and_waits_as_long_as_they_are() {
        let admission = admission();
        let mut turns = all_turns(&admission);
        let one_used = turns.pop().expect("four").used();
        let waits = tokio::time::timeout(2 * STANDSTILL, admission.admit(100)).await;
        assert!(waits.is_err(), "a load is under way");
        drop(one_used);
        turns.push(admission.try_admit(100).expect("it ended"));
        let turn = tokio::time::timeout(20 * STANDSTILL, admission.admit(100)).await;
        drop((turn.expect("they are not used"), turns));
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn who_is_in_line_stays_there_while_turns_are_used_now_and_then() {
        let admission = Admission::new(64, 1);
        let small: Vec<Turn> = (0..6).map_while(|_| admission.try_admit(5)).collect();
        let large = all_turns(&admission);
        assert_eq!((small.len(), large.len()), (6, 3));
        // Too little room for a large one, whenever it looks.
        let now_and_then = async {
            for turn in small {
                tokio::time::sleep(STANDSTILL / 2).await;
                drop(turn.used());
            }
        };
        tokio::select! {
            biased;
            () = now_and_then => {}
            _ = admission.admit(100) => panic!("not its turn"),
        }
        drop(large);
        check_nobody_is_in(&admission);
    }

    #[tokio::test]
    async fn a_hundred_thousand_come_and_go_at_once() {
        let admission = admission();
        let turns = all_turns(&admission);
        let began = std::time::Instant::now();
        let mut waiters = Vec::new();
        for pages in 33..100_033 {
            waiters.push(waiter(&admission, pages).await);
        }
        // Every other one gives up; the turns of those who are given theirs, and go without it, pass on to the next.
        let mut place = 0;
        waiters.retain(|_| {
            place += 1;
            place % 2 == 0
        });
        assert_eq!(admission.line.lock().waiting.len(), 50_000);
        drop(turns);
        drop(waiters);
        check_nobody_is_in(&admission);
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn whoever_gives_a_turn_back_is_not_harmed_by_a_waker_that_panics() {
        let admission = admission();
        let mut turns = all_turns(&admission);
        let mut first = Box::pin(admission.admit(100));
        let panicking = PanickingWaker::waker();
        assert!(first.as_mut().poll(&mut Context::from_waker(&panicking)).is_pending());
        let mut second = waiter(&admission, 100).await;
        turns.truncate(2);
        let given = [poll_immediate(&mut first).await, poll_immediate(&mut second).await];
        assert!(given.iter().all(Option::is_some), "both have theirs");
        drop((turns, given));
        check_nobody_is_in(&admission);
    }

    #[test]
    fn the_smallest_and_the_largest_settings_let_somebody_in() {
        for (depth, run_pages) in [
            (1, 1),
            (1, 1 << 20),
            (4096, 1),
            (4096, u32::MAX as usize),
            (usize::MAX, 1),
        ] {
            let admission = Admission::new(depth, run_pages);
            let turns: Vec<Turn> = (0..9).map_while(|_| admission.try_admit(usize::MAX)).collect();
            assert_eq!(turns.len(), 4, "{depth} of {run_pages}");
        }
    }
}
