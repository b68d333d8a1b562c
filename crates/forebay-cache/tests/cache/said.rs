//! What a source says of a value beside the value: windows, weight, tags, a validator; and that nothing has changed.

use std::convert::Infallible;

use forebay_cache::{Fetched, Known, conditional};
use proptest::prelude::*;

use super::*;

type Said = Cache<u64, u64, Infallible>;

/// A cache of a source that says so of each key.
fn said(say: impl Fn(u64) -> Fetched<u64> + Send + Sync + 'static) -> CacheBuilder<u64, u64, Infallible> {
    Cache::builder(move |key: u64| {
        let fetched = say(key);
        async move { Ok::<_, Infallible>(fetched) }
    })
}

fn is_fresh(cache: &Said, key: u64) -> bool {
    cache.get_if_fresh(&key).is_some()
}

#[tokio::test]
async fn an_entrys_own_windows_are_what_counts() {
    let ticks = Ticks::new();
    let say = |key| match key {
        0 => Fetched::of(0).fresh_for(ms(10)).stale_for(ms(5)),
        1 => Fetched::of(1).fresh_for(ms(10)),
        2 => Fetched::missing().fresh_for(ms(1_000)),
        _ => Fetched::of(3),
    };
    let cache = said(say)
        .fresh_for(ms(100))
        .stale_for(ms(20))
        .clock(ticks.clock())
        .build();
    for key in 0..4 {
        assert_eq!(cache.lookup(&key).await.unwrap().state, State::Fetched);
    }
    let fresh = || [0, 1, 2, 3].map(|key| is_fresh(&cache, key));
    ticks.turn(9);
    assert_eq!(fresh(), [true, true, true, true]);
    ticks.turn(1);
    assert_eq!(fresh(), [false, false, true, true]);
    ticks.turn(5);
    // Its own stale window is over; the other's is the cache's.
    assert_eq!(cache.lookup(&0).await.unwrap().state, State::Fetched);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    ticks.turn(85);
    assert_eq!(fresh()[2..], [true, false]);
    ticks.turn(899);
    assert!(is_fresh(&cache, 2));
    ticks.turn(1);
    assert!(!is_fresh(&cache, 2));
}

#[tokio::test]
async fn an_entrys_own_weight_is_what_counts() {
    let say = |key| match key {
        0 => Fetched::of(0).weight(60),
        1 => Fetched::of(1),
        _ => Fetched::of(2).weight(101),
    };
    let cache = said(say).capacity(100).weigher(|_, _| 7).build();
    for key in 0..3 {
        cache.get(&key).await.unwrap();
    }
    assert_eq!((cache.stats().weight, cache.stats().too_heavy), (67, 1));
    cache.insert_fetched(5, Fetched::of(5).weight(3)).await;
    assert_eq!(cache.stats().weight, 70);
}

#[tokio::test]
async fn what_is_inserted_may_be_older_than_now() {
    let ticks = Ticks::new();
    let cache = said(|_| Fetched::missing())
        .fresh_for(ms(10))
        .clock(ticks.clock())
        .build();
    cache.insert_fetched(1, Fetched::of(1).age(ms(4)).tag("a")).await;
    ticks.turn(5);
    assert!(is_fresh(&cache, 1));
    ticks.turn(1);
    assert!(!is_fresh(&cache, 1));
}

#[tokio::test]
async fn an_invalidated_tag_takes_all_that_carry_it_and_nothing_else() {
    let tags = |key: u64| {
        (0..5)
            .filter(|tag| key >> tag & 1 == 1)
            .map(|tag| format!("tag{tag}"))
            .collect::<Vec<_>>()
    };
    let cache = said(move |key| tags(key).into_iter().fold(Fetched::of(key), Fetched::tag)).build();
    for tag in 0..5 {
        for key in 0..32 {
            cache.get(&key).await.unwrap();
        }
        cache.invalidate_tag(&format!("tag{tag}")).await;
        for key in 0..32 {
            assert_eq!(is_fresh(&cache, key), key >> tag & 1 == 0, "key {key}, tag {tag}");
        }
    }
    cache.invalidate_tag("nobody's").await;
    assert!(is_fresh(&cache, 1));
}

#[tokio::test]
async fn what_was_invalidated_by_tag_does_not_rescue() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let source = move |key: u64| {
        let fails = failing.load(SeqCst);
        async move {
            if fails {
                Err("down")
            } else {
                Ok(Fetched::of(key).tag("a"))
            }
        }
    };
    let cache = Cache::builder(source).fresh_for(ms(0)).stale_if_error_for(HOUR).build();
    assert_eq!(cache.get(&1).await.unwrap(), Some(1));
    fails.store(true, SeqCst);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Rescued);
    cache.invalidate_tag("a").await;
    assert_eq!(cache.get(&1).await.unwrap_err().source_error(), Some(&"down"));
}

/// Fetches that wait at a gate, and read their row when they begin.
struct Gated {
    row: Arc<AtomicU64>,
    gate: Arc<Semaphore>,
    cache: Said,
}

fn gated() -> Gated {
    let (row, gate) = (Arc::new(AtomicU64::new(1)), Arc::new(Semaphore::new(0)));
    let (read, wait) = (Arc::clone(&row), Arc::clone(&gate));
    let source = move |_: u64| {
        let (value, wait) = (read.load(SeqCst), Arc::clone(&wait));
        async move {
            wait.acquire().await.unwrap().forget();
            Ok::<_, Infallible>(Fetched::of(value).tag("a"))
        }
    };
    let cache = Cache::new(source);
    Gated { row, gate, cache }
}

impl Gated {
    /// A get, that has boarded.
    async fn get(&self) -> JoinHandle<Option<u64>> {
        let cache = self.cache.clone();
        let getting = tokio::spawn(async move { cache.get(&1).await.unwrap() });
        for _ in 0..10 {
            yield_now().await;
        }
        getting
    }
}

#[tokio::test]
async fn a_flight_in_the_air_is_for_those_who_asked_before_its_tag_was_invalidated() {
    let gated = gated();
    let before = gated.get().await;
    gated.row.store(2, SeqCst);
    gated.cache.invalidate_tag("a").await;
    // It joins the flight that read the row before: its tags are not known yet.
    let after = gated.get().await;
    assert_eq!(gated.cache.stats().joined, 1);
    gated.gate.add_permits(1);
    assert_eq!(before.await.unwrap(), Some(1));
    assert!(
        gated.cache.get_if_fresh(&1).is_none(),
        "nobody else gets what it brought"
    );
    gated.gate.add_permits(1);
    assert_eq!(after.await.unwrap(), Some(2));
    assert!(gated.cache.get_if_fresh(&1).is_some());
    assert_eq!(gated.cache.stats().fetches, 2);
}

#[tokio::test]
async fn a_flight_of_other_tags_is_for_all_who_joined() {
    let gated = gated();
    let before = gated.get().await;
    gated.cache.invalidate_tag("b").await;
    let after = gated.get().await;
    gated.gate.add_permits(1);
    assert_eq!((before.await.unwrap(), after.await.unwrap()), (Some(1), Some(1)));
    assert_eq!(gated.cache.stats().fetches, 1);
}

/// The claim of a refresh that brought nothing to keep held the next one back for twice the fetch's timeout.
#[tokio::test]
async fn a_refresh_that_was_not_kept_for_its_new_tag_is_made_again() {
    let (ticks, gate) = (Ticks::new(), Arc::new(Semaphore::new(1)));
    let (fetches, wait) = (Arc::new(AtomicU64::new(0)), Arc::clone(&gate));
    let number = Arc::clone(&fetches);
    let source = move |_: u64| {
        let (number, wait) = (number.fetch_add(1, SeqCst), Arc::clone(&wait));
        async move {
            wait.acquire().await.unwrap().forget();
            let tag = if number == 0 { "old" } else { "new" };
            Ok::<_, Infallible>(Fetched::of(number).tag(tag))
        }
    };
    let cache = Cache::builder(source)
        .clock(ticks.clock())
        .fresh_for(ms(10))
        .stale_for(HOUR)
        .build();
    cache.get(&1).await.unwrap();
    ticks.turn(10);
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(0, State::Stale, 10));
    settle().await;
    cache.invalidate_tag("new").await;
    gate.add_permits(2);
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(0, State::Stale, 10));
    settle().await;
    assert_eq!(cache.lookup(&1).await.unwrap(), answer(2, State::Fresh, 0));
}

#[tokio::test]
async fn a_source_that_says_unchanged_keeps_what_was_known_and_makes_it_young() {
    let ticks = Ticks::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let version = Arc::new(AtomicU64::new(1));
    let now = Arc::clone(&version);
    let source = conditional(move |key: u64, known: Option<Known<u64>>| {
        let version = now.load(SeqCst).to_string();
        let validator = known
            .as_ref()
            .map(|known| (known.validator().map(str::to_owned), known.age));
        sees.lock().push(validator);
        async move {
            match known {
                Some(known) if known.validator() == Some(&version) => Ok(known.unchanged()),
                _ => Ok::<_, Infallible>(
                    Fetched::of(key + version.parse::<u64>().unwrap())
                        .validator(version)
                        .tag("a"),
                ),
            }
        }
    });
    let cache = Cache::builder(source).fresh_for(ms(10)).clock(ticks.clock()).build();
    assert_eq!(cache.get(&100).await.unwrap(), Some(101));
    ticks.turn(10);
    assert_eq!(cache.get(&100).await.unwrap(), Some(101));
    assert!(is_fresh(&cache, 100), "it is as young as the fetch");
    ticks.turn(10);
    version.store(2, SeqCst);
    assert_eq!(cache.get(&100).await.unwrap(), Some(102));
    cache.invalidate(&100).await;
    assert_eq!(cache.get(&100).await.unwrap(), Some(102));
    cache.invalidate_tag("a").await;
    assert_eq!(cache.get(&100).await.unwrap(), Some(102));
    let one = |version: &str| Some((Some(version.to_owned()), ms(10)));
    assert_eq!(
        *seen.lock(),
        [None, one("1"), one("1"), None, None],
        "what was invalidated is not handed over"
    );
    assert_eq!((cache.stats().fetches, cache.stats().unchanged), (5, 1));
    // Its tags are those of the one before.
    ticks.turn(10);
    cache.get(&100).await.unwrap();
    assert_eq!(cache.stats().unchanged, 2);
    cache.invalidate_tag("a").await;
    assert!(!is_fresh(&cache, 100));
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Invalidate(u64),
    Tag(u64),
    Insert(u64, Vec<u64>),
    Turn(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..8).prop_map(Step::Get),
        1 => (0_u64..8).prop_map(Step::Invalidate),
        2 => (0_u64..4).prop_map(Step::Tag),
        1 => ((0_u64..8), prop::collection::vec(0_u64..4, 0..3)).prop_map(|(key, tags)| Step::Insert(key, tags)),
        2 => (1_u64..12).prop_map(Step::Turn),
    ]
}

proptest! {
    /// Against a model that has each entry's birth, window and tags in a map.
    #[test]
    fn tags_and_windows_behave_as_a_map_of_them(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let ticks = Ticks::new();
            let window = |key: u64| key % 3 * 5;
            let tags = |key: u64| (0..4).filter(|tag| key >> tag & 1 == 1).collect::<Vec<u64>>();
            let fetches = Arc::new(AtomicU64::new(0));
            let number = Arc::clone(&fetches);
            let say = move |key: u64| {
                let value = Fetched::of(number.fetch_add(1, SeqCst)).fresh_for(ms(window(key)));
                tags(key).into_iter().fold(value, |value, tag| value.tag(tag.to_string()))
            };
            let cache = said(say).clock(ticks.clock()).build();
            let mut model: HashMap<u64, (u64, u64, u64, Vec<u64>)> = HashMap::new();
            let (mut now, mut fetched) = (0, 0);
            for step in steps {
                match step {
                    Step::Turn(by) => { ticks.turn(by); now += by; }
                    Step::Invalidate(key) => { cache.invalidate(&key).await; model.remove(&key); }
                    Step::Tag(tag) => {
                        cache.invalidate_tag(&tag.to_string()).await;
                        model.retain(|_, (_, _, _, tags)| !tags.contains(&tag));
                    }
                    Step::Insert(key, tags) => {
                        let value = Fetched::of(1_000 + key).fresh_for(ms(7));
                        cache.insert_fetched(key, tags.iter().fold(value, |value, tag| value.tag(tag.to_string()))).await;
                        model.insert(key, (1_000 + key, now, 7, tags));
                    }
                    Step::Get(key) => {
                        let known = model.get(&key).filter(|(_, born, fresh, _)| now - born < *fresh);
                        let expected = known.map_or(fetched, |(value, ..)| *value);
                        if known.is_none() {
                            model.insert(key, (fetched, now, window(key), tags(key)));
                            fetched += 1;
                        }
                        prop_assert_eq!(cache.get(&key).await.unwrap(), Some(expected));
                    }
                }
            }
            Ok(())
        })?;
    }
}
