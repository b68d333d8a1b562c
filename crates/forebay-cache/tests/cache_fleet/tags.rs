//! Tags on the server: who reads what was put with them, whatever was invalidated, forgotten or cleared meanwhile.

use super::*;
use testbed::{Behaviour, Proxy};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_inserts_that_never_reads_is_there_for_others() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let cache = || database.cache().tier(tier(redis.address())).build();
    let (inserter, other) = (cache(), cache());
    for key in 0..10 {
        inserter.insert_fetched(key, Fetched::of(key).tag("all")).await;
    }
    // By the first it has learnt the moment.
    for key in 1..10 {
        assert_eq!(other.get(&key).await.unwrap(), Some(key));
    }
    assert_eq!(database.fetches(), 0);
    other.invalidate_tag("all").await;
    assert_eq!(other.get(&1).await.unwrap(), None, "the database has none");
}

/// More tags than a tier may owe become a clear. A fetch of another process, which hears of nothing, began before them and ends after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clear_that_stands_for_tags_holds_for_what_is_put_behind_it() {
    let redis = Redis::start().unwrap();
    let way = Proxy::start(redis.address()).unwrap();
    let database = Database::default();
    let cache = |address| {
        let mut settings = TierSettings::default();
        settings.max_owed = 4;
        settings.retry_after = (ms(20), ms(50));
        database.cache().tier(tier(address)).tier_settings(settings).build()
    };
    let (teller, late, other) = (cache(way.address()), cache(redis.address()), cache(redis.address()));
    database.write(1, 10);
    for key in [11, 21] {
        late.get(&key).await.unwrap();
        teller.get(&key).await.unwrap();
    }
    late.settled().await;
    database.take(ms(1_500));
    let fetches = database.fetches();
    let fetching = tokio::spawn(async move {
        let got = late.get(&1).await.unwrap();
        late.settled().await;
        got
    });
    until("it fetches", async || database.fetches() > fetches).await;
    way.set(Behaviour::Refuse);
    way.cut();
    database.write(1, 20);
    database.take(Duration::ZERO);
    let told: Vec<_> = (0..10)
        .map(|digit| teller.invalidate_tag(&format!("digit{digit}")))
        .collect();
    way.set(Behaviour::Pass);
    for told in told {
        tokio::time::timeout(SECOND, told)
            .await
            .expect("the server has heard of it");
    }
    assert!(!fetching.is_finished(), "the machine is too slow for this test");
    assert_eq!(fetching.await.unwrap(), Some(10), "it asked before");
    assert_eq!(other.get(&1).await.unwrap(), Some(20));
}

/// Each value has a tag that no other has, and others are invalidated all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_tag_is_not_taken_for_one_of_those_that_were_invalidated_meanwhile() {
    let redis = Redis::start().unwrap();
    let fetches = Arc::new(AtomicU64::new(0));
    let cache = || {
        let fetches = Arc::clone(&fetches);
        let source = move |key: u64| {
            fetches.fetch_add(1, SeqCst);
            async move {
                tokio::time::sleep(ms(20)).await;
                Ok::<_, Infallible>(Fetched::of(key).tag(format!("only {key}")))
            }
        };
        Cache::builder(source)
            .fresh_for(HOUR)
            .tier(tier(redis.address()))
            .build()
    };
    let (one, other, third) = (cache(), cache(), cache());
    one.get(&1_000).await.unwrap();
    one.settled().await;
    for key in 0..20 {
        let (got, ()) = tokio::join!(one.get(&key), async {
            tokio::time::sleep(ms(5)).await;
            third.invalidate_tag(&format!("another's {key}")).await;
        });
        got.unwrap();
        one.settled().await;
    }
    let before = fetches.load(SeqCst);
    for key in 0..20 {
        assert_eq!(other.get(&key).await.unwrap(), Some(key));
    }
    // Where three digits of two hashes are the same, it is.
    let lost = fetches.load(SeqCst) - before;
    assert!(lost <= 2, "{lost} of 20 were not there");
    other.settled().await;
    // And those that were invalidated are told from them: what was fetched before that is not read.
    let (got, ()) = tokio::join!(one.get(&500), async {
        tokio::time::sleep(ms(5)).await;
        third.invalidate_tag("only 500").await;
    });
    got.unwrap();
    one.settled().await;
    let before = fetches.load(SeqCst);
    assert_eq!(other.get(&500).await.unwrap(), Some(500));
    assert_eq!(
        fetches.load(SeqCst),
        before + 1,
        "it was fetched before its tag was invalidated"
    );
}
