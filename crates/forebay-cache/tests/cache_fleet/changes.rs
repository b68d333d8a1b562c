//! What one changes reaches the others' memory, with a shared tier and without.

use super::*;
use forebay_cache::State;

/// What one does, and whether the others' entry is then gone or stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Insert,
    InsertMissing,
    Invalidate,
    MarkStale,
    Tag,
    Clear,
}

const DEEDS: [Deed; 6] = [
    Deed::Insert,
    Deed::InsertMissing,
    Deed::Invalidate,
    Deed::MarkStale,
    Deed::Tag,
    Deed::Clear,
];

async fn does(member: &Member, database: &Database, deed: Deed, key: u64, value: u64) {
    if deed == Deed::InsertMissing {
        database.0.rows.lock().remove(&key);
        return member.insert_missing(key).await;
    }
    database.write(key, value);
    match deed {
        Deed::Insert => member.insert(key, value).await,
        Deed::Invalidate => member.invalidate(&key).await,
        Deed::MarkStale => member.mark_stale(&key).await,
        Deed::Tag => member.invalidate_tag(&format!("digit{}", key % 10)).await,
        Deed::Clear => member.clear().await,
        Deed::InsertMissing => unreachable!("it was done above"),
    }
}

async fn each_deed_is_heard(with_tier: bool, with_lease: bool) {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let with = |builder: CacheBuilder<u64, u64, Infallible>| {
        let builder = if with_lease {
            builder.tier_settings(leasing(5 * SECOND))
        } else {
            builder
        };
        if with_tier {
            builder.tier(tier(redis.address()))
        } else {
            builder
        }
    };
    let members = members(&redis, &database, 3, with).await;
    for (round, deed) in DEEDS.into_iter().cycle().take(30).enumerate() {
        let key = round as u64 % 7;
        let value = 1_000 + round as u64;
        database.write(key, value);
        members[0].invalidate(&key).await;
        let hears = async || {
            let mut all = true;
            for member in &members {
                all &= member.get(&key).await.unwrap() == Some(value);
            }
            all
        };
        until("they have heard", hears).await;
        // What was fetched before is not on its way to the tier any more: without leases it could come behind the change.
        for member in &members {
            member.settled().await;
        }
        let teller = &members[round % 3];
        does(teller, &database, deed, key, 2 * value).await;
        let expected = (deed != Deed::InsertMissing).then_some(2 * value);
        // The one who did it does not serve the old value from then on; the others not once they have heard.
        let own = teller.lookup(&key).await.unwrap();
        if deed == Deed::MarkStale {
            assert_eq!((own.value, own.state), (Some(value), State::Stale), "{deed:?}");
        } else {
            assert_eq!(own.value, expected, "{deed:?}");
        }
        let heard = async || {
            let mut all = true;
            for member in &members {
                all &= member.get(&key).await.unwrap() == expected;
            }
            all
        };
        until(&format!("round {round}: {deed:?} is heard"), heard).await;
        // Never the old one after the new one.
        for member in members.iter().cycle().take(30) {
            assert_eq!(member.get(&key).await.unwrap(), expected, "round {round}, {deed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_is_heard_without_a_tier() {
    each_deed_is_heard(false, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_is_heard_with_a_shared_tier() {
    each_deed_is_heard(true, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_is_heard_with_leases() {
    each_deed_is_heard(true, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_holds_for_copies_in_the_tier_and_for_whoever_reads_them_first() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    for key in 0..20 {
        database.write(key, key);
    }
    let first = database.cache().tier(tier(redis.address())).build();
    for key in 0..20 {
        first.get(&key).await.unwrap();
    }
    first.settled().await;
    assert_eq!(database.fetches(), 20);
    // A process that never saw them, and one that starts after the tag was invalidated.
    let second = database.cache().tier(tier(redis.address())).build();
    assert_eq!(second.get(&3).await.unwrap(), Some(3));
    assert_eq!(database.fetches(), 20, "it is read from the tier");
    database.write(13, 1_300);
    first.invalidate_tag("digit3").await;
    let third = database.cache().tier(tier(redis.address())).build();
    for key in 0..20 {
        let expected = if key == 13 { 1_300 } else { key };
        assert_eq!(third.get(&key).await.unwrap(), Some(expected));
    }
    assert_eq!(database.fetches(), 22, "two carry it");
    third.settled().await;
    let fourth = database.cache().tier(tier(redis.address())).build();
    assert_eq!(fourth.get(&13).await.unwrap(), Some(1_300));
    assert_eq!(database.fetches(), 22, "what was fetched after it is good for others");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tagged_value_whose_tags_moment_was_lost_is_not_read() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(3, 3);
    let cache = || database.cache().tier(tier(redis.address())).build();
    let first = cache();
    first.get(&3).await.unwrap();
    first.settled().await;
    let evict = |key: &str| assert_eq!(redis.command(&["DEL", key]).unwrap(), ":1\r\n", "{key}");
    evict("fleet;tag:digit3");
    cache().get(&3).await.unwrap();
    assert_eq!(database.fetches(), 2);
    // Invalidated, then all that tells is lost, and another value makes the tag known again.
    let second = cache();
    second.get(&3).await.unwrap();
    second.settled().await;
    let before = database.fetches();
    second.invalidate_tag("digit3").await;
    evict("fleet;tag:digit3");
    evict("fleet;moment");
    let third = cache();
    database.write(13, 13);
    third.get(&13).await.unwrap();
    third.settled().await;
    cache().get(&3).await.unwrap();
    assert_eq!(database.fetches(), before + 2, "the old copy was read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lower_tier_of_its_own_has_goes_too() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let folder = tempfile::tempdir().unwrap();
    let number = AtomicU64::new(0);
    let with = |builder: CacheBuilder<u64, u64, Infallible>| {
        let file = folder.path().join(number.fetch_add(1, SeqCst).to_string());
        let form: Form<u64, u64> = Form::new("own", KeyForm::display(), Postcard);
        builder.capacity(1).tier(
            forebay_cache::tier::sqlite::SqliteTier::builder(file, form)
                .open()
                .unwrap(),
        )
    };
    let members = members(&redis, &database, 2, with).await;
    for (round, deed) in [Deed::Invalidate, Deed::Tag, Deed::Clear, Deed::Insert]
        .into_iter()
        .enumerate()
    {
        let value = round as u64;
        database.write(3, value);
        members[0].invalidate(&3).await;
        until("both have it", async || {
            members[0].get(&3).await.unwrap() == Some(value) && members[1].get(&3).await.unwrap() == Some(value)
        })
        .await;
        members[1].settled().await;
        // Out of its memory, which holds one, and still in its file.
        members[1].get(&4).await.unwrap();
        does(&members[0], &database, deed, 3, value + 100).await;
        until(&format!("{deed:?} is heard"), async || {
            members[1].get(&3).await.unwrap() == Some(value + 100)
        })
        .await;
        for _ in 0..3 {
            members[1].get(&4).await.unwrap();
            assert_eq!(members[1].get(&3).await.unwrap(), Some(value + 100), "{deed:?}");
        }
    }
}

/// The teller's way to the tier is slow, and its messages are not: who hears of a change and asks the tier must not find what was before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_hear_of_a_change_when_the_tier_has() {
    let redis = Redis::start().unwrap();
    let slow = testbed::Proxy::start(redis.address()).unwrap();
    let database = Database::default();
    let member = |address| {
        let builder = database.cache().tier(tier(address));
        builder.backplane(backplane(redis.address()), 5 * SECOND).build()
    };
    let (teller, other) = (member(slow.address()), member(redis.address()));
    database.write(1, 10);
    hears(&teller, &other).await;
    slow.set(testbed::Behaviour::Delay(ms(40)));
    for round in 0..5 {
        assert_eq!(other.get(&1).await.unwrap(), Some(10 + round));
        other.settled().await;
        database.write(1, 11 + round);
        let settled = teller.invalidate(&1);
        // Whoever asks as soon as it has forgotten asks the tier.
        until("it forgets", async || other.get_if_fresh(&1).is_none()).await;
        assert_eq!(other.get(&1).await.unwrap(), Some(11 + round));
        settled.await;
    }
}

/// A tier that does not answer does not keep a change from being told; nobody then reads the old value that is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_which_its_teller_cannot_tell_the_tier_is_told_the_tier_by_who_hears_it() {
    let redis = Redis::start().unwrap();
    let way = testbed::Proxy::start(redis.address()).unwrap();
    let database = Database::default();
    let member = |address| {
        let builder = database.cache().tier(tier(address));
        builder.backplane(backplane(redis.address()), 5 * SECOND).build()
    };
    let (teller, other) = (member(way.address()), member(redis.address()));
    database.write(1, 10);
    hears(&teller, &other).await;
    assert_eq!(other.get(&1).await.unwrap(), Some(10));
    other.settled().await;
    way.set(testbed::Behaviour::Stall);
    database.write(1, 11);
    let settled = teller.invalidate(&1);
    until("it is told all the same", async || other.get_if_fresh(&1).is_none()).await;
    assert_eq!(other.get(&1).await.unwrap(), Some(11));
    other.settled().await;
    // Nor does who has heard nothing, since it was not there yet.
    let third = member(redis.address());
    assert_eq!(third.get(&1).await.unwrap(), Some(11));
    way.set(testbed::Behaviour::Pass);
    settled.await;
    assert_eq!(other.get(&1).await.unwrap(), Some(11));
}

/// The same of a tag, of all, and of what a process could not tell before it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_changed_by_who_does_not_reach_the_tier_is_not_read_there_by_others() {
    for deed in [Deed::MarkStale, Deed::Tag, Deed::Clear, Deed::Insert] {
        let redis = Redis::start().unwrap();
        let way = testbed::Proxy::start(redis.address()).unwrap();
        let database = Database::default();
        let member = |address| {
            let builder = database.cache().tier(tier(address));
            builder.backplane(backplane(redis.address()), 5 * SECOND).build()
        };
        let (teller, other) = (member(way.address()), member(redis.address()));
        database.write(1, 10);
        hears(&teller, &other).await;
        assert_eq!(other.get(&1).await.unwrap(), Some(10));
        other.settled().await;
        way.set(testbed::Behaviour::Refuse);
        way.cut();
        // It ends at once, and is not waited for.
        database.write(1, 11);
        match deed {
            Deed::MarkStale => drop(teller.mark_stale(&1)),
            Deed::Tag => drop(teller.invalidate_tag("digit1")),
            Deed::Clear => drop(teller.clear()),
            _ => drop(teller.insert(1, 11)),
        }
        drop(teller);
        until(&format!("{deed:?} is heard"), async || {
            other.get(&1).await.unwrap() == Some(11)
        })
        .await;
        other.settled().await;
        assert_eq!(member(redis.address()).get(&1).await.unwrap(), Some(11), "{deed:?}");
    }
}

/// Over a cache of its own, what is heard is not told once more: nobody else's tier is touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_below_hears_too_and_tells_nobody() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let inner = || database.cache().tier(tier(redis.address())).build();
    let over = |inner: &Member| {
        let backplane = RedisBackplane::<u64>::open(&url(redis.address()), "over").unwrap();
        Cache::builder(inner.clone())
            .fresh_for(HOUR)
            .backplane(backplane, 5 * SECOND)
            .build()
    };
    let inners = [inner(), inner()];
    for key in 0..20 {
        database.write(key, key);
        inners[0].get(&key).await.unwrap();
    }
    inners[0].settled().await;
    let stored = redis.command(&["DBSIZE"]).unwrap();
    let outers = [over(&inners[0]), over(&inners[1])];
    hears(&outers[0], &outers[1]).await;
    outers[1].get(&99).await.unwrap();
    inners[1].settled().await;
    let now = redis.command(&["DBSIZE"]).unwrap();
    assert!(now >= stored, "{stored} of the others' are now {now}");
    // And what is below does not keep what was changed.
    outers[1].get(&1).await.unwrap();
    assert!(inners[1].get_if_fresh(&1).is_some());
    outers[0].invalidate(&1).await;
    until("what is below has heard", async || inners[1].get_if_fresh(&1).is_none()).await;
}

/// Publish and subscribe is one for all databases of a server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fleets_in_two_databases_of_a_server_do_not_hear_one_another() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let member = |number: u64| {
        let address = format!("{}{number}", url(redis.address()));
        let backplane = RedisBackplane::open(&address, "fleet").unwrap();
        database.cache().backplane(backplane, 60 * SECOND).build()
    };
    let (one, fellow, stranger) = (member(0), member(0), member(1));
    hears(&member(1), &stranger).await;
    hears(&one, &fellow).await;
    stranger.get(&1).await.unwrap();
    for _ in 0..10 {
        fellow.get(&1).await.unwrap();
        one.invalidate(&1).await;
        until("it is heard", async || fellow.get_if_fresh(&1).is_none()).await;
        assert!(stranger.get_if_fresh(&1).is_some());
    }
}

/// What waits to be told again, as the tier has not heard of it, does not hold up what changes next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_tier_is_away_each_change_is_told_at_once() {
    let redis = Redis::start().unwrap();
    let way = testbed::Proxy::start(redis.address()).unwrap();
    let database = Database::default();
    let teller = {
        let builder = database.cache().tier(tier(way.address()));
        builder.backplane(backplane(redis.address()), 60 * SECOND).build()
    };
    let other = database
        .cache()
        .backplane(backplane(redis.address()), 60 * SECOND)
        .build();
    hears(&teller, &other).await;
    way.set(testbed::Behaviour::Refuse);
    way.cut();
    for key in 0..20 {
        other.get(&key).await.unwrap();
        drop(teller.invalidate(&key));
        let changed = std::time::Instant::now();
        until("it is heard", async || other.get_if_fresh(&key).is_none()).await;
        assert!(changed.elapsed() < SECOND, "{key} after {:?}", changed.elapsed());
    }
}

/// What is below has a tier that all share, and its way there is slow: who hears of a change must not find there what was before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_hear_of_a_change_when_the_tier_of_a_cache_below_has() {
    let redis = Redis::start().unwrap();
    let slow = testbed::Proxy::start(redis.address()).unwrap();
    let database = Database::default();
    let member = |address| {
        let inner = database.cache().tier(tier(address)).build();
        let backplane = RedisBackplane::<u64>::open(&url(redis.address()), "over").unwrap();
        Cache::builder(inner)
            .fresh_for(HOUR)
            .backplane(backplane, 60 * SECOND)
            .build()
    };
    let (teller, other) = (member(slow.address()), member(redis.address()));
    hears(&teller, &other).await;
    database.write(1, 10);
    teller.invalidate(&1).await;
    other.get(&1).await.unwrap();
    slow.set(testbed::Behaviour::Delay(ms(40)));
    for round in 0..5 {
        until("what was before is known", async || {
            other.get(&1).await.unwrap() == Some(10 + round)
        })
        .await;
        tokio::time::sleep(ms(20)).await;
        database.write(1, 11 + round);
        teller.invalidate(&1).await;
        assert_eq!(
            redis.command(&["EXISTS", "fleet:1"]).unwrap(),
            ":0\r\n",
            "it is still in the tier"
        );
        until("it forgets", async || other.get_if_fresh(&1).is_none()).await;
        assert_eq!(other.get(&1).await.unwrap(), Some(11 + round));
    }
}
