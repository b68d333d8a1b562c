//! The cache against a naive model: random steps, random windows (zero ones too), and at each step the answer, its state and
//! age, the fetches that it cost, and for every key what memory has and has not.

use std::collections::BTreeMap;

use forebay_cache::Staleness;
use proptest::prelude::*;

use super::*;

const KEYS: u64 = 4;

/// In milliseconds.
#[derive(Clone, Debug)]
struct Windows {
    fresh: u64,
    stale: u64,
    missing_fresh: u64,
    missing_stale: u64,
    rescue: u64,
    retry: (u64, u64),
    /// Refresh ahead from the middle of the fresh window on.
    ahead: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Lookup(u64),
    GetMany(Vec<u64>),
    Insert(u64, u64),
    InsertMissing(u64),
    Invalidate(u64),
    MarkStale(u64),
    Clear,
    Refresh(u64),
    Pass(u64),
    Change(u64, u64),
    Remove(u64),
    Fail,
    Recover,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Option<u64>,
    at: u64,
    marked: bool,
    failures: u32,
    retry_at: u64,
}

/// What the contract says, as plainly as it can be written.
struct Model {
    windows: Windows,
    now: u64,
    entries: BTreeMap<u64, Entry>,
    rows: BTreeMap<u64, u64>,
    fails: bool,
    fetched: Vec<u64>,
}

/// What is expected of a lookup; `None` is the source's error.
type Expected = Option<Answer<u64>>;

impl Model {
    fn staleness(&self, entry: &Entry) -> Staleness {
        let (fresh, stale) = self.windows_of(entry);
        match self.now - entry.at {
            age if age < fresh && !entry.marked => Staleness::Fresh,
            age if age < fresh + stale => Staleness::Stale,
            _ => Staleness::Expired,
        }
    }

    fn windows_of(&self, entry: &Entry) -> (u64, u64) {
        match entry.value {
            Some(_) => (self.windows.fresh, self.windows.stale),
            None => (self.windows.missing_fresh, self.windows.missing_stale),
        }
    }

    fn rescues(&self, entry: &Entry) -> bool {
        let (fresh, stale) = self.windows_of(entry);
        self.now - entry.at < fresh + stale + self.windows.rescue
    }

    fn answer(&self, entry: &Entry, state: State) -> Answer<u64> {
        Answer {
            value: entry.value,
            state,
            age: ms(self.now - entry.at),
        }
    }

    /// Whether it lands.
    fn fetch(&mut self, key: u64) -> bool {
        self.fetched.push(key);
        if self.fails {
            if let Some(entry) = self.entries.get_mut(&key) {
                let (first, most) = self.windows.retry;
                entry.retry_at = self.now + (first << entry.failures).min(most);
                entry.failures += 1;
            }
            return false;
        }
        self.write(key, self.rows.get(&key).copied());
        true
    }

    fn write(&mut self, key: u64, value: Option<u64>) {
        let entry = Entry {
            value,
            at: self.now,
            marked: false,
            failures: 0,
            retry_at: 0,
        };
        self.entries.insert(key, entry);
    }

    /// The answer of memory as it is, and whether it costs a refresh.
    fn glance(&self, key: u64) -> (Expected, bool) {
        let Some(entry) = self.entries.get(&key) else {
            return (None, false);
        };
        let may_ask = self.now >= entry.retry_at;
        match self.staleness(entry) {
            Staleness::Fresh => {
                let half = self.windows_of(entry).0 / 2;
                let ahead = self.windows.ahead && self.now - entry.at >= half;
                (Some(self.answer(entry, State::Fresh)), ahead && may_ask)
            }
            Staleness::Stale => (Some(self.answer(entry, State::Stale)), may_ask),
            Staleness::Expired if self.rescues(entry) && entry.failures > 0 && !may_ask => {
                (Some(self.answer(entry, State::Rescued)), false)
            }
            Staleness::Expired => (None, false),
        }
    }

    fn look_up(&mut self, keys: &[u64]) -> Vec<Expected> {
        let glances: Vec<_> = keys.iter().map(|key| (*key, self.glance(*key))).collect();
        let mut to_fetch = Vec::new();
        for (key, (answer, refresh)) in &glances {
            if (answer.is_none() || *refresh) && !to_fetch.contains(key) {
                to_fetch.push(*key);
            }
        }
        let before = self.entries.clone();
        let landed: BTreeMap<u64, bool> = to_fetch.into_iter().map(|key| (key, self.fetch(key))).collect();
        let answers = glances.into_iter().map(|(key, (answer, _))| {
            answer.or_else(|| {
                if landed[&key] {
                    return Some(self.answer(&self.entries[&key], State::Fetched));
                }
                let entry = before.get(&key)?;
                self.rescues(entry).then(|| self.answer(entry, State::Rescued))
            })
        });
        answers.collect()
    }
}

fn windows() -> impl Strategy<Value = Windows> {
    let window = || prop_oneof![2 => Just(0_u64), 5 => 1_u64..60];
    // Even, so that half of it is exact.
    let fresh = || window().prop_map(|window| window * 2);
    let retry = (0_u64..30, 0_u64..90).prop_map(|(first, more)| (first, first + more));
    (fresh(), window(), fresh(), window(), window(), retry, any::<bool>()).prop_map(
        |(fresh, stale, missing_fresh, missing_stale, rescue, retry, ahead)| Windows {
            fresh,
            stale,
            missing_fresh,
            missing_stale,
            rescue,
            retry,
            ahead,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        6 => key().prop_map(Step::Get),
        6 => key().prop_map(Step::Lookup),
        2 => prop::collection::vec(key(), 0..7).prop_map(Step::GetMany),
        1 => (key(), 1_u64..100).prop_map(|(key, value)| Step::Insert(key, value)),
        1 => key().prop_map(Step::InsertMissing),
        1 => key().prop_map(Step::Invalidate),
        1 => key().prop_map(Step::MarkStale),
        1 => Just(Step::Clear),
        1 => key().prop_map(Step::Refresh),
        6 => (0_u64..70).prop_map(Step::Pass),
        3 => (key(), 100_u64..200).prop_map(|(key, value)| Step::Change(key, value)),
        2 => key().prop_map(Step::Remove),
        1 => Just(Step::Fail),
        2 => Just(Step::Recover),
    ]
}

fn compare(outcome: Result<Answer<u64>, CacheError<String>>, expected: Expected) {
    match expected {
        Some(expected) => assert_eq!(outcome.unwrap(), expected),
        None => assert!(is_source_error(&outcome), "{outcome:?} is not the source's error"),
    }
}

async fn run(windows: Windows, steps: Vec<Step>) {
    let (database, ticks) = (Database::open(), Ticks::new());
    let mut model = Model {
        now: ticks.0.load(SeqCst),
        entries: BTreeMap::new(),
        rows: BTreeMap::new(),
        fails: false,
        fetched: Vec::new(),
        windows: windows.clone(),
    };
    let cache = Cache::builder(database.source())
        .clock(ticks.clock())
        .fresh_for(ms(windows.fresh))
        .stale_for(ms(windows.stale))
        .missing_fresh_for(ms(windows.missing_fresh))
        .missing_stale_for(ms(windows.missing_stale))
        .stale_if_error_for(ms(windows.rescue))
        .retry_after(ms(windows.retry.0), ms(windows.retry.1))
        .refresh_ahead(if windows.ahead { 0.5 } else { 1.0 })
        .build();
    let value_of = |expected: Expected| expected.map(|answer| answer.value);
    for step in steps {
        match step {
            Step::Get(key) => {
                let expected = value_of(model.look_up(&[key])[0]);
                assert_eq!(cache.get(&key).await.ok(), expected, "get {key}");
            }
            Step::Lookup(key) => compare(cache.lookup(&key).await, model.look_up(&[key])[0]),
            Step::GetMany(keys) => {
                let expected = model.look_up(&keys).into_iter().map(value_of);
                let outcomes = cache.get_many(keys).await.into_iter().map(Result::ok);
                assert!(outcomes.eq(expected), "get_many");
            }
            Step::Insert(key, value) => {
                model.write(key, Some(value));
                cache.insert(key, value).await;
            }
            Step::InsertMissing(key) => {
                model.write(key, None);
                cache.insert_missing(key).await;
            }
            Step::Invalidate(key) => {
                model.entries.remove(&key);
                cache.invalidate(&key).await;
            }
            Step::MarkStale(key) => {
                if let Some(entry) = model.entries.get_mut(&key) {
                    (entry.marked, entry.failures, entry.retry_at) = (true, 0, 0);
                }
                cache.mark_stale(&key).await;
            }
            Step::Clear => {
                model.entries.clear();
                cache.clear().await;
            }
            Step::Refresh(key) => {
                let landed = model.fetch(key);
                let expected = landed.then(|| model.rows.get(&key).copied());
                assert_eq!(cache.refresh(&key).await.ok(), expected, "refresh {key}");
            }
            Step::Pass(time) => {
                model.now += time;
                ticks.turn(time);
            }
            Step::Change(key, value) => {
                model.rows.insert(key, value);
                database.set(key, value);
            }
            Step::Remove(key) => {
                model.rows.remove(&key);
                database.remove(key);
            }
            Step::Fail | Step::Recover => {
                model.fails = matches!(step, Step::Fail);
                database.fail(model.fails);
            }
        }
        // What was begun in the background ends.
        settle().await;
        let mut fetched = std::mem::take(&mut *database.0.fetched.lock());
        fetched.sort_unstable();
        model.fetched.sort_unstable();
        assert_eq!(fetched, std::mem::take(&mut model.fetched), "fetches");
        for key in 0..KEYS {
            let entry = model.entries.get(&key);
            let fresh = entry.filter(|entry| model.staleness(entry) == Staleness::Fresh);
            assert_eq!(
                cache.get_if_fresh(&key),
                fresh.map(|entry| entry.value.into()),
                "key {key}"
            );
        }
        let stats = cache.stats();
        assert_eq!((stats.entries, stats.in_flight), (model.entries.len() as u64, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_does_what_the_naive_model_does(windows in windows(), steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(windows, steps));
    }
}
