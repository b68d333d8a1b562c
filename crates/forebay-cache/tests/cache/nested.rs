//! Sources that get from caches: their own, others, and one another.

use std::sync::OnceLock;

use forebay_cache::Entry;

use super::*;

/// A cache whose source gets from itself: key n is 1 more than key n - 1, and `first` is what 0 is.
fn counting(
    builder: impl FnOnce(CacheBuilder<u64, u64, String>) -> CacheBuilder<u64, u64, String>,
    first: Option<u64>,
) -> Tested {
    let own: Arc<OnceLock<Tested>> = Arc::default();
    let inner = Arc::clone(&own);
    let source = move |key: u64| {
        let inner = Arc::clone(&inner);
        async move {
            let before = match (key, first) {
                (0, Some(first)) => return Ok(Some(first)),
                (0, None) => 3,
                _ => key - 1,
            };
            yield_now().await;
            let cache = inner.get().expect("it is set");
            let value = cache.get(&before).await.map_err(|error| error.to_string())?;
            Ok(value.map(|value| value + 1))
        }
    };
    let cache = builder(Cache::builder(source).fresh_for(HOUR)).build();
    assert!(own.set(cache.clone()).is_ok());
    cache
}

#[tokio::test(start_paused = true)]
async fn a_source_may_get_from_its_own_cache_however_few_may_fetch_at_once() {
    let began = tokio::time::Instant::now();
    let cache = counting(|builder| builder.max_fetches(1), Some(100));
    let all: Vec<_> = (0..20).map(|key| spawn_get(&cache, key * 3 % 20)).collect();
    assert_eq!(cache.get(&20).await.unwrap(), Some(120));
    for (key, get) in (0..20).zip(all) {
        assert_eq!(get.await.unwrap().unwrap(), Some(100 + key * 3 % 20));
    }
    assert_eq!(cache.stats().in_flight, 0);
    assert_eq!(cache.stats().flights, 21, "a flight a key");
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waited for a time-out");
}

#[tokio::test(start_paused = true)]
async fn who_would_wait_for_itself_is_told_so_at_once() {
    let began = tokio::time::Instant::now();
    // 3 wants 2 wants 1 wants 0 wants 3.
    for limit in [1, 64] {
        let cache = counting(|builder| builder.max_fetches(limit), None);
        let all: Vec<_> = (0..4).map(|key| spawn_get(&cache, key)).collect();
        for get in all {
            let error = get.await.unwrap().unwrap_err().to_string();
            assert!(error.contains("wait for one another for ever"), "{error}");
        }
        assert_eq!(cache.stats().in_flight, 0);
    }
    let own: Arc<OnceLock<Tested>> = Arc::default();
    let inner = Arc::clone(&own);
    let asks_itself = move |key: u64| {
        let inner = Arc::clone(&inner);
        async move {
            let cache = inner.get().expect("it is set");
            assert!(matches!(cache.get(&key).await, Err(CacheError::Circle)));
            assert!(matches!(cache.get_many([key]).await[..], [Err(CacheError::Circle)]));
            assert_eq!(cache.refresh(&(key + 1)).await.ok(), (key < 5).then_some(Some(6 - key)));
            Ok::<_, String>(Some(7 - key)).and_then(|value| if key < 6 { Ok(value) } else { Err("deep".to_owned()) })
        }
    };
    let cache = Cache::builder(asks_itself).fresh_for(HOUR).build();
    assert!(own.set(cache.clone()).is_ok());
    assert_eq!(cache.get(&3).await.unwrap(), Some(4));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn two_caches_over_one_another_end() {
    let began = tokio::time::Instant::now();
    let lower: Arc<OnceLock<Cache<u64, u64, String>>> = Arc::default();
    let of_upper = Arc::clone(&lower);
    let upper = Cache::builder(move |key: u64| {
        let lower = Arc::clone(&of_upper);
        async move {
            let lower = lower.get().expect("it is set");
            lower.get(&key).await.map_err(|error| error.to_string())
        }
    })
    .fresh_for(HOUR)
    .max_fetches(1)
    .build();
    let of_lower = upper.clone();
    // An even key is one more than the upper cache's next, an odd one is what the upper cache has of itself.
    let source = move |key: u64| {
        let upper = of_lower.clone();
        async move {
            match key {
                10 => Ok(Some(0)),
                _ if key.is_multiple_of(2) => Ok(upper
                    .get(&(key + 2))
                    .await
                    .map_err(|error| error.to_string())?
                    .map(|value| value + 1)),
                _ => upper.get(&key).await.map_err(|error| error.to_string()),
            }
        }
    };
    assert!(
        lower
            .set(Cache::builder(source).fresh_for(HOUR).max_fetches(1).build())
            .is_ok()
    );
    let all: Vec<_> = [0, 4, 8].map(|key| spawn_get(&upper, key)).into();
    for (get, value) in all.into_iter().zip([5, 3, 1]) {
        assert_eq!(get.await.unwrap().unwrap(), Some(value));
    }
    let error = upper.get(&1).await.unwrap_err().to_string();
    assert!(error.contains("wait for one another for ever"), "{error}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_waits_for_another_lets_others_have_its_turn() {
    let database = Database::shut().with(1, 10).with(2, 20);
    let inner = lasting(&database).build();
    let of_outer = inner.clone();
    let running = Arc::new(AtomicUsize::new(0));
    let began = Arc::clone(&running);
    let outer = Cache::builder(move |key: u64| {
        let inner = of_outer.clone();
        began.fetch_add(1, SeqCst);
        async move { inner.get(&key).await.map_err(|error| error.to_string()) }
    })
    .fresh_for(HOUR)
    .max_fetches(1)
    .build();
    let (one, two) = (begin_get(&outer, 1).await, begin_get(&outer, 2).await);
    assert_eq!(running.load(SeqCst), 2);
    database.let_through(2);
    assert_eq!(
        (one.await.unwrap().unwrap(), two.await.unwrap().unwrap()),
        (Some(10), Some(20))
    );
    assert_eq!(outer.stats().in_flight, 0);
}

/// Each wait cost as much as the fetch that waited had keys, under a lock of all caches: 8,000 keys took 8 s.
#[tokio::test]
async fn many_keys_through_storeys_of_caches_cost_no_more_for_each_of_them() {
    let database = Database::open();
    let lowest = Cache::builder(database.loader()).capacity(10_000).build();
    let middle = Cache::builder(lowest).capacity(10_000).build();
    let highest = Cache::builder(middle).capacity(10_000).build();
    let began = std::time::Instant::now();
    assert!(highest.get_many(0..8_000).await.iter().all(Result::is_ok));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "it took {took:?}");
}

/// Of a cache over a cache: nothing has changed, so that what both know stays where the source fails.
#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_costs_nothing_that_is_known_below() {
    let is_down = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicU64::new(0));
    let source = {
        let (is_down, asked) = (Arc::clone(&is_down), Arc::clone(&asked));
        move |key: u64| {
            let number = asked.fetch_add(1, SeqCst);
            let outcome = if is_down.load(SeqCst) {
                Err("down")
            } else {
                Ok(Some(key + number))
            };
            async move { outcome }
        }
    };
    let inner = Cache::builder(source).fresh_for(HOUR).build();
    let outer = Cache::builder(inner.clone()).fresh_for(HOUR).build();
    assert_eq!(outer.get(&10).await.unwrap(), Some(10));
    is_down.store(true, SeqCst);
    assert!(outer.refresh(&10).await.is_err());
    assert_eq!(
        (asked.load(SeqCst), inner.get_if_fresh(&10)),
        (2, Some(Entry::Present(10)))
    );
    is_down.store(false, SeqCst);
    assert_eq!(
        outer.refresh(&10).await.unwrap(),
        Some(12),
        "the source itself was asked"
    );
    assert_eq!(
        (inner.get_if_fresh(&10), outer.get_if_fresh(&10)),
        (Some(Entry::Present(12)), Some(Entry::Present(12)))
    );
}
