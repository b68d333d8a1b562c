//! Flights: one fetch for all who want the key, owned by nobody who waits; and the runtimes that they run in.

use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::*;
use forebay_cache::{Entry, Fetched, Source};

#[tokio::test(start_paused = true)]
async fn ten_thousand_readers_of_one_key_are_one_fetch_and_all_are_answered() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let readers: Vec<_> = (0..10_000).map(|_| spawn_get(&cache, 1)).collect();
    settle().await;
    database.let_through(1);
    for outcome in join_all(readers).await {
        assert_eq!(outcome.unwrap().unwrap(), Some(10));
    }
    let stats = cache.stats();
    assert_eq!((stats.fetches, stats.misses, stats.joined), (1, 10_000, 9_999));
    assert_eq!(database.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_readers_in_one_task_are_one_fetch_too() {
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).build();
    let outcomes = join_all((0..10_000).map(|_| cache.get(&1))).await;
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap() == Some(10)));
    assert_eq!(database.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn different_keys_do_not_wait_for_one_another() {
    let database = Database::open().with(2, 20);
    let hanging = Cache::builder({
        let source = database.source();
        move |key: u64| {
            let rest = source(key);
            async move {
                if key == 1 {
                    std::future::pending().await
                } else {
                    rest.await
                }
            }
        }
    })
    .build();
    let _hanging = begin_get(&hanging, 1).await;
    assert_eq!(hanging.get(&2).await.unwrap(), Some(20));
}

#[tokio::test(start_paused = true)]
async fn when_all_readers_leave_while_the_fetch_runs_it_lands() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).build();
    let readers = [begin_get(&cache, 1).await, begin_get(&cache, 1).await];
    for reader in readers {
        reader.abort();
    }
    settle().await;
    assert_eq!(cache.stats().in_flight, 1);
    database.let_through(1);
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(10)));
    assert_eq!((database.fetches(), cache.stats().in_flight), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_get_that_is_never_polled_asks_for_nothing() {
    let database = Database::open();
    let cache = lasting(&database).build();
    drop(cache.get(&1));
    settle().await;
    assert_eq!((database.fetches(), cache.stats().flights), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn when_all_readers_leave_while_the_fetch_is_in_line_it_is_called_off() {
    let database = Database::shut();
    let cache = lasting(&database).max_fetches(1).build();
    let first = begin_get(&cache, 1).await;
    let readers = [begin_get(&cache, 2).await, begin_get(&cache, 2).await];
    assert_eq!((cache.stats().in_flight, cache.stats().in_line), (2, 1));
    let [one, other] = readers;
    one.abort();
    settle().await;
    assert_eq!(cache.stats().in_line, 1, "one still waits");
    other.abort();
    settle().await;
    let stats = cache.stats();
    assert_eq!((stats.in_flight, stats.in_line, stats.called_off), (1, 0, 1));
    // It can be asked for again, and is fetched then.
    let again = begin_get(&cache, 2).await;
    database.let_through(2);
    first.await.unwrap().unwrap();
    again.await.unwrap().unwrap();
    assert_eq!(database.fetched(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_called_off_does_not_hold_back_the_refresh_of_a_stale_hit() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).max_fetches(1).build();
    cache.get(&1).await.unwrap();
    ticks.turn(100);
    database.0.permits.forget_permits(usize::MAX);
    let other = begin_get(&cache, 99).await;
    let refresh = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.refresh(&1).await })
    };
    settle().await;
    // This hit leaves the refresh to the one in line, which then is called off.
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    refresh.abort();
    settle().await;
    assert_eq!((cache.stats().called_off, cache.stats().in_line), (1, 0));
    database.set(1, 11);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    assert_eq!(cache.stats().in_line, 1, "the next hit asks again");
    database.let_through(2);
    other.await.unwrap().unwrap();
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
}

#[tokio::test(start_paused = true)]
async fn several_fetches_of_a_key_may_run_where_asked_for_and_the_last_begun_is_kept() {
    let database = Database::shut().with(1, 10);
    let cache = lasting(&database).max_fetches_per_key(2).build();
    let first = begin_get(&cache, 1).await;
    database.set(1, 11);
    let second = begin_get(&cache, 1).await;
    let third = begin_get(&cache, 1).await;
    assert_eq!(database.fetches(), 2, "and no more");
    database.let_through(2);
    assert_eq!(first.await.unwrap().unwrap(), Some(10));
    assert_eq!(second.await.unwrap().unwrap(), Some(11));
    assert_eq!(
        third.await.unwrap().unwrap(),
        Some(11),
        "who joins joins the last begun"
    );
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(11)));
}

#[tokio::test(start_paused = true)]
async fn of_several_fetches_of_a_key_an_older_one_that_lands_later_is_not_kept() {
    let gates = Arc::new([Semaphore::new(0), Semaphore::new(0)]);
    let (of_source, begun) = (Arc::clone(&gates), Arc::new(AtomicUsize::new(0)));
    let cache: Tested = Cache::builder(move |_: u64| {
        let (gates, number) = (Arc::clone(&of_source), begun.fetch_add(1, SeqCst));
        async move {
            gates[number].acquire().await.unwrap().forget();
            Ok(Some(number as u64))
        }
    })
    .max_fetches_per_key(2)
    .build();
    let readers = [begin_get(&cache, 1).await, begin_get(&cache, 1).await];
    gates[1].add_permits(1);
    settle().await;
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(1)));
    gates[0].add_permits(1);
    for (reader, value) in readers.into_iter().zip(0..) {
        assert_eq!(reader.await.unwrap().unwrap(), Some(value));
    }
    assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(1)));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap()
}

#[test]
fn a_runtime_that_shuts_down_in_mid_flight_is_an_error_and_no_hang() {
    let (flying, waiting) = (runtime(), runtime());
    let database = Database::shut().with(1, 10).with(2, 20);
    let cache = lasting(&database)
        .runtime(flying.handle().clone())
        .max_fetches(1)
        .build();
    let readers: Vec<_> = [1, 1, 2]
        .into_iter()
        .map(|key| {
            let cache = cache.clone();
            waiting.spawn(async move { cache.get(&key).await })
        })
        .collect();
    while cache.stats().misses < 3 || database.fetches() < 1 {
        std::thread::yield_now();
    }
    flying.shutdown_background();
    for reader in readers {
        let outcome = waiting.block_on(async { tokio::time::timeout(Duration::from_secs(30), reader).await });
        assert!(matches!(outcome.expect("a hang").unwrap(), Err(CacheError::Stopped)));
    }
    // From then on too, also for who is in line.
    for key in [1, 2] {
        assert!(matches!(waiting.block_on(cache.get(&key)), Err(CacheError::Stopped)));
    }
    let stats = cache.stats();
    assert_eq!((stats.in_flight, stats.in_line), (0, 0));
}

#[test]
fn a_get_outside_of_any_runtime_is_an_error_and_no_hang() {
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).build();
    assert!(matches!(block_on(cache.get(&1)), Err(CacheError::Stopped)));
    assert_eq!(cache.stats().in_flight, 0);
    drop(cache.insert(1, 7));
    assert_eq!(block_on(cache.get(&1)).unwrap(), Some(7), "a hit needs none");
    drop(cache.mark_stale(&1));
    assert_eq!(block_on(cache.get(&1)).unwrap(), Some(7), "nor a stale one");
    assert_eq!(cache.stats().in_flight, 0);
}

#[test]
fn a_runtime_named_to_the_builder_runs_the_flights_of_callers_outside_of_any() {
    let runtime = runtime();
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).runtime(runtime.handle().clone()).build();
    assert_eq!(block_on(cache.get(&1)).unwrap(), Some(10));
    assert_eq!(block_on(cache.refresh(&1)).unwrap(), Some(10));
    assert_eq!(block_on(cache.get_many([1, 2])).len(), 2);
    // Timeouts of readers use its timer too.
    drop(cache.invalidate(&1));
    assert_eq!(block_on(cache.get_within(&1, HOUR)).unwrap(), Some(10));
    let ticks = Ticks::new();
    let cache = timed(&database, &ticks)
        .stale_if_error_for(HOUR)
        .soft_timeout(HOUR)
        .runtime(runtime.handle().clone())
        .build();
    block_on(cache.get(&1)).unwrap();
    ticks.turn(1_000);
    assert_eq!(block_on(cache.lookup(&1)).unwrap(), answer(10, State::Fetched, 0));
}

/// Without a runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl std::task::Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Thread(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park_timeout(Duration::from_secs(30));
    }
}

#[tokio::test(start_paused = true)]
async fn of_refreshes_that_overlap_what_has_come_is_kept() {
    let database = Database::shut().with(1, 1);
    let cache = lasting(&database).build();
    drop(cache.insert(1, 1));
    let refresh = || {
        let cache = cache.clone();
        tokio::spawn(async move { cache.refresh(&1).await })
    };
    database.set(1, 2);
    let first = refresh();
    settle().await;
    database.fail(true);
    let second = refresh();
    settle().await;
    database.let_through(1);
    assert_eq!(first.await.unwrap().unwrap(), Some(2));
    assert_eq!(
        cache.get(&1).await.unwrap(),
        Some(2),
        "while the second one is in the air"
    );
    database.let_through(1);
    second.await.unwrap().unwrap_err();
    assert_eq!(cache.get(&1).await.unwrap(), Some(2), "nothing came of the second one");
    // What began earlier does not replace what began later.
    database.fail(false);
    let first = refresh();
    settle().await;
    drop(cache.insert(1, 3));
    database.let_through(1);
    assert_eq!(first.await.unwrap().unwrap(), Some(2));
    assert_eq!(cache.get(&1).await.unwrap(), Some(3));
}

/// What a call is answered by, until it is.
type Answering = Option<oneshot::Sender<Result<Option<u64>, String>>>;

/// A source whose calls are answered one by one, in whatever order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Answering>>>);

impl Calls {
    fn cache(&self) -> CacheBuilder<u64, u64, String> {
        let calls = self.clone();
        Cache::builder(move |_: u64| {
            let (answer, answered) = oneshot::channel();
            calls.0.lock().push(Some(answer));
            async move { answered.await.expect("each is answered") }
        })
    }

    fn count(&self) -> usize {
        self.0.lock().len()
    }

    async fn answer(&self, call: usize, outcome: Result<Option<u64>, String>) {
        let answer = self.0.lock()[call].take().unwrap();
        answer.send(outcome).unwrap();
        settle().await;
    }
}

/// What an older one brings is older than what is known.
#[tokio::test(start_paused = true)]
async fn a_flight_that_something_newer_has_overtaken_is_nobody_s_any_more() {
    for (stale_ms, per_key, old) in [
        (HOUR.as_millis() as u64, 1, Ok(Some(1))),
        (HOUR.as_millis() as u64, 2, Ok(Some(1))),
        (HOUR.as_millis() as u64, 2, Err("down".to_owned())),
        (0, 1, Ok(Some(1))),
        (0, 1, Err("down".to_owned())),
    ] {
        let (calls, ticks) = (Calls::default(), Ticks::new());
        let cache = calls
            .cache()
            .clock(ticks.clock())
            .fresh_for(ms(100))
            .stale_for(ms(stale_ms));
        let cache = cache.max_fetches_per_key(per_key).build();
        let _oldest = begin_get(&cache, 1).await;
        let refresh = tokio::spawn({
            let cache = cache.clone();
            async move { cache.refresh(&1).await }
        });
        settle().await;
        calls.answer(1, Ok(Some(2))).await;
        assert_eq!(refresh.await.unwrap().unwrap(), Some(2));
        ticks.turn(150);
        // Whether it is served meanwhile or not: the source is asked, though the oldest is in the air still.
        let reader = spawn_get(&cache, 1);
        settle().await;
        assert_eq!(calls.count(), 3, "{stale_ms} {per_key}");
        assert_eq!(reader.is_finished(), stale_ms > 0);
        let other = spawn_get(&cache, 1);
        settle().await;
        assert_eq!(
            calls.count(),
            if stale_ms == 0 && per_key == 2 { 4 } else { 3 },
            "one is enough"
        );
        calls.answer(0, old).await;
        assert_eq!(other.is_finished(), stale_ms > 0, "it is none that they wait for");
        calls.answer(2, Ok(Some(3))).await;
        let told = if stale_ms > 0 { 2 } else { 3 };
        for reader in [reader, other] {
            assert_eq!(reader.await.unwrap().unwrap(), Some(told));
        }
        assert_eq!(cache.get_if_fresh(&1), Some(Entry::Present(3)));
    }
}

/// Only once the source has failed again is what is expired told instead.
#[tokio::test(start_paused = true)]
async fn who_comes_while_a_source_that_had_failed_is_asked_again_waits_for_it() {
    let (calls, ticks) = (Calls::default(), Ticks::new());
    let cache = calls
        .cache()
        .clock(ticks.clock())
        .fresh_for(ms(100))
        .stale_for(ms(10_000));
    let cache = cache.stale_if_error_for(HOUR).build();
    let first = begin_get(&cache, 1).await;
    calls.answer(0, Ok(Some(1))).await;
    assert_eq!(first.await.unwrap().unwrap(), Some(1));
    ticks.turn(200);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    calls.answer(1, Err("down".to_owned())).await;
    ticks.turn(9_000);
    assert_eq!(cache.lookup(&1).await.unwrap().state, State::Stale);
    settle().await;
    assert_eq!(calls.count(), 3);
    // It expires while the source is asked, which takes long.
    ticks.turn(5_000);
    let reader = begin_get(&cache, 1).await;
    calls.answer(2, Ok(Some(2))).await;
    assert_eq!(reader.await.unwrap().unwrap(), Some(2));
}

#[tokio::test(start_paused = true)]
async fn fetches_that_hang_are_no_more_than_may_be_but_for_one_that_may_bring_what_is_newer() {
    for per_key in [1, 2, 3] {
        let (calls, ticks) = (Calls::default(), Ticks::new());
        let cache = calls.cache().clock(ticks.clock()).fresh_for(ms(100));
        let cache = cache.max_fetches_per_key(per_key).no_fetch_timeout().build();
        let mut readers = Vec::new();
        let mut answered = 0;
        for round in 0..20 {
            ticks.turn(150);
            readers.extend([spawn_get(&cache, 1), spawn_get(&cache, 1)]);
            settle().await;
            let running = cache.stats().in_flight;
            assert!(running <= per_key + 1, "{running} of {per_key}, round {round}");
            // Every other one hangs.
            if calls.count() % 2 == 0 && calls.count() > answered {
                answered = calls.count();
                calls.answer(answered - 1, Ok(Some(round))).await;
            }
        }
        readers.iter().for_each(JoinHandle::abort);
    }
}

/// Takes its time: a second for key 9. What it is asked for is written down.
#[derive(Clone, Default)]
struct Slow<const GATHERS: bool>(Arc<Mutex<Vec<u64>>>);

impl<const GATHERS: bool> Source<u64> for Slow<GATHERS> {
    type Value = u64;
    type Error = String;

    const GATHERS: bool = GATHERS;

    async fn fetch(&self, key: u64) -> Result<Fetched<u64>, String> {
        self.0.lock().push(key);
        tokio::time::sleep(ms(if key == 9 { 1_000 } else { 50 })).await;
        Ok(Fetched::of(key))
    }
}

/// Changed again and again, and looked at each time, while something else is fetched.
#[tokio::test(start_paused = true)]
async fn a_flight_in_line_that_would_reach_nobody_is_in_nobodys_way() {
    type Change = fn(&Tested, u64);
    let changes: [Change; 4] = [
        |cache, key| drop(cache.mark_stale(&key)),
        |cache, key| drop(cache.invalidate(&key)),
        |cache, _| drop(cache.clear()),
        |cache, key| drop(cache.insert(key, key)),
    ];
    for change in changes {
        for is_rescued in [false, true] {
            in_nobodys_way(change, is_rescued, Slow::<false>::default()).await;
            in_nobodys_way(change, is_rescued, Slow::<true>::default()).await;
        }
    }
}

async fn in_nobodys_way<const GATHERS: bool>(change: fn(&Tested, u64), is_rescued: bool, source: Slow<GATHERS>) {
    let ticks = Ticks::new();
    let cache = Cache::builder(source.clone()).clock(ticks.clock()).fresh_for(ms(20));
    let cache = match is_rescued {
        true => cache.stale_if_error_for(HOUR).soft_timeout(ms(10)),
        false => cache.stale_for(HOUR),
    };
    let cache = cache.max_fetches(1).max_flights(20).build();
    // Together where the source takes them together.
    let keys = [1, 4];
    cache.get_many(keys).await;
    ticks.turn(30);
    let holder = begin_get(&cache, 9).await;
    for _ in 0..40 {
        drop(tokio::time::timeout(ms(15), cache.lookup_many(keys)).await);
        keys.iter().for_each(|key| change(&cache, *key));
        ticks.turn(30);
    }
    let stats = cache.stats();
    assert_eq!((stats.in_line, stats.in_flight), (0, 1), "{GATHERS} {is_rescued}");
    assert_eq!(cache.get(&2).await.unwrap(), Some(2));
    holder.await.unwrap().unwrap();
    settle().await;
    let fetched = source.0.lock().clone();
    assert_eq!(fetched, [1, 4, 9, 2], "{GATHERS} {is_rescued}");
    assert_eq!((cache.stats().in_line, cache.stats().in_flight), (0, 0));
}
