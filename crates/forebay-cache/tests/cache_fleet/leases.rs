//! One fetches for all.

use super::*;
use std::time::Instant;

use forebay_cache::tier::{Abilities, Grant, Kept, Lease, Put, Tier, TierError};
use futures_util::future::BoxFuture;
use tokio::task::JoinHandle;

fn fleet(redis: &Redis, database: &Database, count: usize, lease_for: Duration) -> Vec<Member> {
    let member = |_| {
        let builder = database.cache().tier(tier(redis.address()));
        builder.tier_settings(leasing(lease_for)).build()
    };
    (0..count).map(member).collect()
}

/// All ask for the key at once; how long the slowest took.
async fn all_get(members: &[Member], key: u64, expected: Option<u64>) -> Duration {
    let began = Instant::now();
    let gets = members.iter().cycle().take(members.len() * 5).map(|member| {
        let member = member.clone();
        tokio::spawn(async move { member.get(&key).await.unwrap() })
    });
    for get in gets.collect::<Vec<_>>() {
        assert_eq!(get.await.unwrap(), expected);
    }
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cold_key_is_fetched_once_among_ten() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.take(ms(50));
    let members = fleet(&redis, &database, 10, 5 * SECOND);
    for key in 0..10 {
        database.write(key, key + 1);
        let took = all_get(&members, key, Some(key + 1)).await;
        assert_eq!(database.fetches(), key + 1);
        assert!(took < SECOND, "{took:?}");
    }
    // That there is none is brought too.
    all_get(&members, 99, None).await;
    assert_eq!(database.fetches(), 11);
}

/// What waits in line is not kept from another process, which may begin it first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_fetch_one_after_another_share_the_work() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.take(ms(20));
    let member = |_| {
        let builder = database.cache().tier(tier(redis.address())).max_fetches(1);
        builder.tier_settings(leasing(ms(300))).build()
    };
    let members: Vec<Member> = (0..2).map(member).collect();
    const KEYS: u64 = 50;
    (0..KEYS).for_each(|key| database.write(key, key + 1));
    let gets = members.iter().flat_map(|member| {
        let get = |key| {
            let member = member.clone();
            tokio::spawn(async move { assert_eq!(member.get(&key).await.unwrap(), Some(key + 1)) })
        };
        (0..KEYS).map(get).collect::<Vec<_>>()
    });
    for get in gets.collect::<Vec<_>>() {
        get.await.unwrap();
    }
    assert_eq!(database.fetches(), KEYS);
    let own = members.iter().map(|member| member.stats().fetches);
    assert!(
        own.clone().all(|fetches| fetches >= KEYS / 5),
        "{:?}",
        own.collect::<Vec<_>>()
    );
}

/// To who had a turn, gave it back to wait for a lease's end, and is in line since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_has_brought_meanwhile_is_not_fetched_when_the_turn_is_there() {
    // What is begun while it lasts is to be on its way before it is over, on a busy machine, too.
    let lease = ms(1_000);
    let redis = Redis::start().unwrap();
    let database = Database::default();
    (1..9).for_each(|key| database.write(key, key));
    let member = || {
        let builder = database.cache().tier(tier(redis.address())).max_fetches(1);
        builder.tier_settings(leasing(lease)).build()
    };
    let (first, second) = (member(), member());
    // Somebody has it for now, and brings nothing.
    let granted = tier(redis.address())
        .lease_many(&[1], lease, Grant::IfNobodyHasIt)
        .await;
    assert!(matches!(granted.unwrap()[..], [Lease::Granted(_)]));
    let one = spawn_get(&first, 1);
    until("it is on its way", async || first.stats().flights == 1).await;
    database.take(2 * lease);
    // It gives its turn back to wait for who has the lease.
    let two = spawn_get(&first, 2);
    until("another has the turn", async || first.stats().fetches == 1).await;
    database.take(ms(1));
    // It was its to fetch when that lease was over.
    tokio::time::sleep(lease + lease / 2).await;
    let other = spawn_get(&second, 1);
    for get in [one, two, other] {
        get.await.unwrap();
    }
    assert_eq!(first.stats().fetches, 1, "of the key 2");
    assert_eq!(database.fetches(), 2);
}

/// What is asked of caches that have just been built is fetched when they hear of one another, and kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_first_is_kept_and_fetched_once() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.take(ms(50));
    const KEYS: u64 = 50;
    (0..5 * KEYS).for_each(|key| database.write(key, key));
    let member = || {
        let builder = database.cache().tier(tier(redis.address()));
        let builder = builder.backplane(backplane(redis.address()), 5 * SECOND);
        builder.tier_settings(leasing(5 * SECOND)).build()
    };
    for keys in (0..5 * KEYS).collect::<Vec<_>>().chunks(KEYS as usize) {
        let members = [member(), member()];
        let before = database.fetches();
        for get in members.each_ref().map(|member| spawn_get(member, keys[0])) {
            get.await.unwrap();
        }
        assert_eq!(database.fetches(), before + 1);
        // Neither of these has heard.
        let [one, another] = [member(), member()];
        for got in one.get_many(keys.iter().copied()).await {
            got.unwrap();
        }
        assert_eq!(database.fetches(), before + KEYS);
        assert_eq!((one.stats().late_dropped, one.stats().entries), (0, KEYS));
        one.settled().await;
        for got in another.get_many(keys.iter().copied()).await {
            got.unwrap();
        }
        assert_eq!(database.fetches(), before + KEYS);
        assert_eq!(another.stats().entries, KEYS);
    }
}

/// What was granted off its turn is given back by who gets in line, and begun by who can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_in_line_holds_no_lease() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    (1..9).for_each(|key| database.write(key, key));
    let member = |limit: Option<usize>| {
        let builder = database.cache().tier(tier(redis.address()));
        let builder = builder.tier_settings(leasing(20 * SECOND));
        match limit {
            Some(limit) => builder.max_fetches(limit).build(),
            None => builder.build(),
        }
    };
    let (busy, idle) = (member(Some(1)), member(None));
    let aside = tier(redis.address());
    let [Lease::Granted(held)] = aside.lease_many(&[1], HOUR, Grant::IfNobodyHasIt).await.unwrap()[..] else {
        panic!("nobody else has it");
    };
    let one = spawn_get(&busy, 1);
    until("it is on its way", async || busy.stats().flights == 1).await;
    database.take(10 * SECOND);
    let two = spawn_get(&busy, 2);
    until("another has the turn", async || busy.stats().fetches == 1).await;
    database.take(ms(1));
    let idles = spawn_get(&idle, 1);
    aside.end_lease(&1, held).await.unwrap();
    let began = Instant::now();
    idles.await.unwrap();
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    assert_eq!(idle.stats().fetches, 1);
    [one, two].iter().for_each(JoinHandle::abort);
}

fn spawn_get(member: &Member, key: u64) -> JoinHandle<()> {
    let member = member.clone();
    tokio::spawn(async move { assert_eq!(member.get(&key).await.unwrap(), Some(key)) })
}

/// An expired copy there is looked at where the turn is, and what it was asked for keeps its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_copy_costs_no_second_wait_in_line() {
    let redis = Redis::start().unwrap();
    let fetched = Arc::new(Mutex::new(Vec::new()));
    let member = |fresh_for| {
        let fetched = Arc::clone(&fetched);
        let source = move |key: u64| {
            let fetched = Arc::clone(&fetched);
            async move {
                fetched.lock().push(key);
                tokio::time::sleep(ms(if key == 2 { 300 } else { 1 })).await;
                Ok::<_, Infallible>(Some(key))
            }
        };
        let builder = Cache::builder(source).fresh_for(fresh_for).stale_if_error_for(HOUR);
        let builder = builder.max_fetches(1).tier(tier(redis.address()));
        builder.tier_settings(leasing(5 * SECOND)).build()
    };
    let before = member(ms(1));
    before.get(&1).await.unwrap();
    before.settled().await;
    tokio::time::sleep(ms(50)).await;
    let later = member(ms(1));
    let mut gets = Vec::new();
    for key in [2, 1, 3] {
        gets.push(spawn_get(&later, key));
        until("it is on its way", async || later.stats().flights == gets.len() as u64).await;
        tokio::time::sleep(ms(30)).await;
    }
    for get in gets {
        get.await.unwrap();
    }
    assert_eq!(*fetched.lock(), [1, 2, 1, 3]);
}

/// However often somebody else gets the lease, who has waited for its time does not wait for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_one_lease_after_another() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    (0..100).for_each(|key| database.write(key, key));
    let lease_for = ms(100);
    let builder = database
        .cache()
        .tier(tier(redis.address()))
        .max_fetches(1)
        .fresh_for(ms(1));
    let member = builder.tier_settings(leasing(lease_for)).build();
    // The line is never empty, and longer than a lease.
    database.take(ms(20));
    let others: Vec<_> = (10..20)
        .map(|key| {
            let member = member.clone();
            tokio::spawn(async move {
                loop {
                    member.refresh(&key).await.unwrap();
                }
            })
        })
        .collect();
    let aside = tier(redis.address());
    let holder = tokio::spawn(async move {
        loop {
            aside.lease_many(&[1], HOUR, Grant::Anyway).await.unwrap();
            tokio::time::sleep(ms(5)).await;
        }
    });
    let began = Instant::now();
    spawn_get(&member, 1).await.unwrap();
    assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    others.iter().chain([&holder]).for_each(JoinHandle::abort);
}

/// A turn is not held for a tier that does not hear.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_is_not_waited_for_by_each_turn() {
    let mut redis = Redis::start().unwrap();
    let database = Database::default();
    const KEYS: u64 = 200;
    (0..KEYS).for_each(|key| database.write(key, key));
    let builder = database.cache().tier(tier(redis.address())).max_fetches(2);
    let member = builder.tier_settings(leasing(5 * SECOND)).build();
    member.get_many(0..KEYS).await;
    redis.kill9().unwrap();
    (0..KEYS).for_each(|key| drop(member.invalidate(&key)));
    let began = Instant::now();
    let gets: Vec<_> = (0..KEYS).map(|key| spawn_get(&member, key)).collect();
    for get in gets {
        get.await.unwrap();
    }
    assert!(began.elapsed() < 4 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_it_and_dies_delays_nobody_beyond_its_time() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.take(HOUR);
    let members = fleet(&redis, &database, 4, ms(300));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let holder = members[0].clone();
    runtime.spawn(async move { holder.get(&1).await });
    until("it fetches", async || database.fetches() == 1).await;
    runtime.shutdown_background();
    database.take(Duration::ZERO);
    let took = all_get(&members[1..], 1, Some(10)).await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert!(database.fetches() <= 4, "{} fetches", database.fetches());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_fetched_before_an_invalidation_is_not_put_behind_it() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.take(ms(200));
    let members = fleet(&redis, &database, 3, 5 * SECOND);
    let late = members[0].clone();
    let late = tokio::spawn(async move { late.get(&1).await.unwrap() });
    until("it fetches", async || database.fetches() == 1).await;
    database.write(1, 20);
    // There is no backplane: the one that fetches does not hear of it.
    members[1].invalidate(&1).await;
    assert_eq!(late.await.unwrap(), Some(10), "it asked before");
    members[0].settled().await;
    assert_eq!(
        members[2].get(&1).await.unwrap(),
        Some(20),
        "the old value is not in the tier"
    );
    members[2].settled().await;
    let before = database.fetches();
    assert_eq!(members[1].get(&1).await.unwrap(), Some(20));
    assert_eq!(database.fetches(), before, "the new one is");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_fetches_now_and_what_it_brings_is_the_tiers() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let members = fleet(&redis, &database, 2, 5 * SECOND);
    all_get(&members, 1, Some(10)).await;
    members[0].settled().await;
    database.write(1, 20);
    assert_eq!(members[0].refresh(&1).await.unwrap(), Some(20));
    members[0].settled().await;
    let fresh = fleet(&redis, &database, 1, 5 * SECOND);
    let before = database.fetches();
    assert_eq!(fresh[0].get(&1).await.unwrap(), Some(20));
    assert_eq!(database.fetches(), before);
}

/// A source that fails for who holds the lease: the others do not wait for its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fails_gives_the_lease_back() {
    let redis = Redis::start().unwrap();
    let fails = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let member = || {
        let fails = Arc::clone(&fails);
        let source = move |key: u64| {
            let fails = Arc::clone(&fails);
            async move {
                tokio::time::sleep(ms(20)).await;
                if fails.load(SeqCst) { Err("down") } else { Ok(Some(key)) }
            }
        };
        Cache::builder(source)
            .tier(tier(redis.address()))
            .tier_settings(leasing(HOUR))
            .build()
    };
    let members = [member(), member(), member()];
    let began = Instant::now();
    let gets = members.each_ref().map(|member| {
        let member = member.clone();
        tokio::spawn(async move { member.get(&1).await })
    });
    for get in gets {
        assert_eq!(get.await.unwrap().unwrap_err().source_error(), Some(&"down"));
    }
    fails.store(false, SeqCst);
    for member in &members {
        assert_eq!(member.get(&1).await.unwrap(), Some(1));
    }
    assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_server_each_fetches_for_himself() {
    let mut redis = Redis::start().unwrap();
    let database = Database::default();
    let members = fleet(&redis, &database, 3, 5 * SECOND);
    redis.kill9().unwrap();
    database.write(1, 10);
    let took = all_get(&members, 1, Some(10)).await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert_eq!(database.fetches(), 3);
}

/// A tier that gives leases and takes no values.
#[derive(Clone, Default)]
struct Refusing(Arc<Mutex<Given>>);

#[derive(Default)]
struct Given {
    reads_take: Duration,
    granted: u64,
    ended: Vec<u64>,
}

impl Tier<u64, u64> for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        let time = self.0.lock().reads_take;
        Box::pin(async move {
            tokio::time::sleep(time).await;
            Ok(vec![None; keys.len()])
        })
    }

    fn put_many<'a>(&'a self, _: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(async {
            tokio::time::sleep(ms(50)).await;
            Err(TierError::failed("put", "it is full"))
        })
    }

    fn delete_many<'a>(&'a self, _: &'a [u64]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn clear<'a>(&'a self) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn abilities(&self) -> Abilities {
        let mut abilities = Abilities::default();
        abilities.leases = true;
        abilities
    }

    fn lease_many<'a>(
        &'a self,
        keys: &'a [u64],
        _: Duration,
        _: Grant,
    ) -> BoxFuture<'a, Result<Vec<Lease>, TierError>> {
        let mut given = self.0.lock();
        let mut grant = |_: &u64| {
            given.granted += 1;
            Lease::Granted(given.granted)
        };
        let granted = keys.iter().map(&mut grant).collect();
        Box::pin(std::future::ready(Ok(granted)))
    }

    fn end_lease<'a>(&'a self, _: &'a u64, lease: u64) -> BoxFuture<'a, Result<(), TierError>> {
        self.0.lock().ended.push(lease);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// More than one batch of them: some are sent and refused, the others wait and are given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_values_that_the_tier_does_not_take_are_given_back() {
    let database = Database::default();
    let refusing = Refusing::default();
    let builder = database.cache().tier(refusing.clone());
    let member = builder.tier_settings(leasing(HOUR)).build();
    for got in member.get_many(0..600).await {
        got.unwrap();
    }
    until("all are given back", async || {
        let mut given = refusing.0.lock();
        given.ended.sort_unstable();
        given.ended == (1..=600).collect::<Vec<_>>()
    })
    .await;
}

/// Who leaves while tiers are asked leaves nothing in line.
#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_gets_in_no_line() {
    let database = Database::default();
    database.take(SECOND);
    let slow = Refusing::default();
    slow.0.lock().reads_take = ms(20);
    let builder = database.cache().tier(slow).max_fetches(1);
    let member = builder.tier_settings(leasing(HOUR)).build();
    let turn = tokio::spawn({
        let member = member.clone();
        async move { member.get(&9).await }
    });
    tokio::time::sleep(ms(100)).await;
    assert_eq!(database.fetches(), 1);
    let gets: Vec<_> = (0..5)
        .map(|key| {
            let member = member.clone();
            tokio::spawn(async move { member.get(&key).await })
        })
        .collect();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((member.stats().in_flight, member.stats().in_line), (6, 0));
    gets.iter().for_each(JoinHandle::abort);
    tokio::time::sleep(ms(100)).await;
    assert_eq!((member.stats().in_flight, member.stats().in_line), (1, 0));
    assert_eq!(member.stats().called_off, 5);
    turn.await.unwrap().unwrap();
    assert_eq!(database.fetches(), 1);
}
