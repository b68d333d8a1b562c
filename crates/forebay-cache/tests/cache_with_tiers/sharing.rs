//! Two caches, as two processes have them, over one Redis: they share what was fetched, and hear of what was written.

use forebay_cache::State;
use testbed::Redis;

use super::*;

/// Two processes' caches over one database.
fn two(database: &Database, redis: &Redis) -> [Tested; 2] {
    [(), ()].map(|()| database.cache(redis_tier(&redis.url())).build())
}

#[tokio::test]
async fn what_one_fetched_the_other_does_not_fetch() {
    let redis = Redis::start().unwrap();
    let database = Database::open().with(1, 10);
    let [one, other] = two(&database, &redis);
    assert_eq!((value(&one, 1).await, value(&one, 2).await), (Some(10), None));
    settled(&one).await;
    assert_eq!((value(&other, 1).await, value(&other, 2).await), (Some(10), None));
    assert_eq!(database.fetched(), [1, 2]);
    assert_eq!((other.stats().flights_by_tier, tier_stats(&other).hits), (2, 2));
}

#[tokio::test]
async fn a_copy_is_not_fresh_again_by_being_read() {
    let (redis, ticks) = (Redis::start().unwrap(), Ticks::new());
    // The one's fetch takes 60 s; as old as that is what it brings.
    let during = ticks.clone();
    let slow = move |_: u64| {
        during.turn(secs(60));
        async { Ok::<_, String>(Some(10)) }
    };
    let windows = |builder: CacheBuilder<u64, u64, String>| {
        let builder = builder.clock(ticks.clock()).tier(redis_tier(&redis.url()));
        builder.fresh_for(secs(100)).stale_for(secs(100)).build()
    };
    let one = windows(Cache::builder(slow));
    let database = Database::open().with(1, 11);
    let other = windows(Cache::builder(database.source()));
    assert_eq!(value(&one, 1).await, Some(10));
    settled(&one).await;
    let answer = other.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(10), State::Fetched));
    assert!(answer.age >= secs(60) && answer.age < secs(80), "{:?}", answer.age);
    ticks.turn(secs(41));
    assert_eq!(other.lookup(&1).await.unwrap().state, State::Stale);
}

#[tokio::test]
async fn what_one_writes_is_in_the_tier_before_the_other_reads_it() {
    let redis = Redis::start().unwrap();
    let database = Database::open();
    let write: [fn(&Tested); 5] = [
        |cache| drop(cache.invalidate(&1)),
        |cache| drop(cache.mark_stale(&1)),
        |cache| drop(cache.clear()),
        |cache| drop(cache.insert(1, 11)),
        |cache| drop(cache.insert_missing(1)),
    ];
    for (at, write) in write.into_iter().enumerate() {
        let [one, other] = two(&database.clone().with(1, 10), &redis);
        one.clear().await;
        assert_eq!(value(&one, 1).await, Some(10));
        settled(&one).await;
        database.set(1, 11);
        let before = database.fetched().len();
        write(&one);
        settled(&one).await;
        let expected = (at < 4).then_some(11);
        assert_eq!(value(&other, 1).await, expected, "write {at}");
        let fetches = usize::from(at < 3);
        assert_eq!(database.fetched().len() - before, fetches, "write {at}");
    }
}

#[tokio::test]
async fn what_is_marked_stale_is_served_once_more_and_not_taken_from_the_tier() {
    let redis = Redis::start().unwrap();
    let database = Database::open().with(1, 10);
    let [one, _] = two(&database, &redis);
    assert_eq!(value(&one, 1).await, Some(10));
    settled(&one).await;
    database.set(1, 11);
    drop(one.mark_stale(&1));
    let answer = one.lookup(&1).await.unwrap();
    assert_eq!((answer.value, answer.state), (Some(10), State::Stale));
    until("the refresh", async || value(&one, 1).await == Some(11)).await;
    assert_eq!(database.fetched(), [1, 1]);
}

/// What a file has from before a start, of a key that another process has fetched since.
#[tokio::test(start_paused = true)]
async fn an_old_copy_of_a_tier_hides_no_newer_one_of_a_tier_below_it() {
    let database = Database::open().with(4, 44);
    let (file, shared) = (Fake::new("file"), Fake::shared("shared"));
    let rows = database.source();
    let source = move |key: u64| {
        let row = rows(key);
        async move { if key == 3 { Err("down".to_owned()) } else { row.await } }
    };
    let builder = Cache::builder(source)
        .fresh_for(HOUR)
        .stale_for(HOUR)
        .stale_if_error_for(HOUR * 9);
    let builder = builder.tier(file.clone()).tier(shared.clone());
    let cache = builder.tier_settings(impatient()).build();
    // Expired and fresh; stale and fresh; expired and older still; expired alone.
    for (key, age, value) in [(1, 3, 10), (2, 1, 20), (3, 3, 30), (4, 3, 40)] {
        file.keep(key, aged(Some(value), HOUR * age - ms(1)));
    }
    shared.keep(1, aged(Some(11), secs(1)));
    shared.keep(2, aged(Some(21), secs(1)));
    shared.keep(3, aged(Some(29), HOUR * 9));
    assert_eq!(value(&cache, 1).await, Some(11));
    assert_eq!(value(&cache, 2).await, Some(20), "that will do");
    assert_eq!(shared.calls("get").concat(), [1]);
    settle().await;
    settled(&cache).await;
    assert_eq!(file.kept(1).and_then(|kept| kept.value), Some(11), "it is carried up");
    // What is the newest of those that will not do is there to rescue.
    assert_eq!(value(&cache, 3).await, Some(30));
    assert_eq!(
        (value(&cache, 4).await, database.fetched().last().copied()),
        (Some(44), Some(4))
    );
}
