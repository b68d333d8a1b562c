//! What happens is told to who listens, in its order.

use forebay_cache::Event;

use super::*;

#[tokio::test]
async fn each_thing_that_happens_is_told_once() {
    let ticks = Ticks::new();
    let database = Database::open();
    let cache = Cache::builder(database.source())
        .fresh_for(ms(10))
        .stale_for(ms(10))
        .clock(ticks.clock())
        .build();
    database.set(1, 10);
    cache.get(&1).await.unwrap();
    let mut events = cache.events();
    let mut second = cache.events();
    let mut told = Vec::new();
    let mut expected = Vec::new();
    let key = 1;
    let hit = |state| Event::Hit { key, state };
    let missed = |expired| Event::Missed {
        key,
        expired,
        joined: false,
    };
    let fetched = |missing| Event::Fetched {
        key,
        missing,
        by_tier: false,
        kept: true,
    };
    cache.get(&1).await.unwrap();
    cache.lookup(&1).await.unwrap();
    cache.get_within(&1, HOUR).await.unwrap();
    cache.get_many([1]).await;
    cache.get_if_fresh(&1);
    expected.extend(vec![hit(State::Fresh); 5]);
    ticks.turn(10);
    cache.get(&1).await.unwrap();
    settle().await;
    expected.extend([hit(State::Stale), fetched(false)]);
    ticks.turn(20);
    cache.get(&1).await.unwrap();
    expected.extend([missed(true), fetched(false)]);
    cache.insert(1, 5).await;
    cache.mark_stale(&1).await;
    cache.invalidate(&1).await;
    cache.invalidate_tag("a").await;
    cache.clear().await;
    let elsewhere = false;
    expected.extend([
        Event::Changed { key, elsewhere },
        Event::MarkedStale { key, elsewhere },
        Event::Changed { key, elsewhere },
        Event::TagInvalidated {
            tag: Arc::from("a"),
            elsewhere,
        },
        Event::Cleared { elsewhere },
    ]);
    database.fail(true);
    cache.get(&1).await.unwrap_err();
    expected.extend([missed(false), Event::Failed { key }]);
    while told.len() < expected.len() {
        told.push(events.next().await.unwrap());
        assert_eq!(second.next().await.as_ref(), told.last());
    }
    assert_eq!(told, expected);
    drop(cache);
    assert_eq!(events.next().await, None, "nothing more, and it ends");
}

#[tokio::test]
async fn a_listener_who_is_slow_is_told_how_many_it_lost() {
    let cache = Cache::builder(|key: u64| async move { Ok::<_, String>(Some(key)) }).build();
    let mut events = cache.events();
    cache.get(&1).await.unwrap();
    for _ in 0..10_000 {
        cache.get(&1).await.unwrap();
    }
    let Some(Event::Lost { events: lost }) = events.next().await else {
        panic!("it is to be told");
    };
    drop(cache);
    let mut heard = 0;
    while let Some(event) = events.next().await {
        assert!(matches!(event, Event::Hit { .. }), "{event:?}");
        heard += 1;
    }
    assert_eq!(lost + heard, 10_002);
}

#[tokio::test]
async fn who_joins_is_told_apart_and_what_comes_too_late_too() {
    let database = Database::shut();
    database.set(1, 10);
    let cache = Cache::builder(database.source()).build();
    let mut events = cache.events();
    let gets = [cache.clone(), cache.clone()].map(|cache| tokio::spawn(async move { cache.get(&1).await }));
    settle().await;
    cache.invalidate(&1).await;
    database.let_through(1);
    for get in gets {
        get.await.unwrap().unwrap();
    }
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(events.next().await.unwrap());
    }
    let key = 1;
    let missed = |joined| Event::Missed {
        key,
        expired: false,
        joined,
    };
    let fetched = Event::Fetched {
        key,
        missing: false,
        by_tier: false,
        kept: false,
    };
    let changed = Event::Changed { key, elsewhere: false };
    assert_eq!(told, [missed(false), missed(true), changed, fetched]);
}

#[tokio::test]
async fn who_had_to_go_is_told() {
    let cache = Cache::builder(|key: u64| async move { Ok::<_, String>(Some(key)) })
        .capacity(3)
        .build();
    let mut events = cache.events();
    for key in 0..10 {
        cache.insert(key, key).await;
    }
    let mut gone = Vec::new();
    for _ in 0..17 {
        match events.next().await.unwrap() {
            Event::Evicted { key } => gone.push(key),
            Event::Changed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    gone.sort_unstable();
    gone.dedup();
    let left: Vec<u64> = (0..10).filter(|key| cache.get_if_fresh(key).is_some()).collect();
    let expected: Vec<u64> = (0..10).filter(|key| !left.contains(key)).collect();
    assert_eq!((gone, left.len()), (expected, 3));
    assert_eq!(cache.stats().evictions, 7);
}

/// Where the entry comes while the reader has none to wait for.
#[tokio::test(start_paused = true)]
async fn a_hit_is_told_that_comes_after_a_look_that_found_nothing() {
    let database = Database::shut();
    let cache = lasting(&database).max_flights(1).build();
    let mut events = cache.events();
    let many = {
        let cache = cache.clone();
        tokio::spawn(async move { cache.get_many([1, 2]).await })
    };
    settle().await;
    cache.insert(2, 20).await;
    database.let_through(1);
    many.await.unwrap();
    drop(cache);
    let (mut hits, mut misses) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().await {
        match event {
            Event::Hit { key, .. } => hits.push(key),
            Event::Missed { key, .. } => misses.push(key),
            _ => {}
        }
    }
    assert_eq!((hits, misses), (vec![2], vec![1]));
}
