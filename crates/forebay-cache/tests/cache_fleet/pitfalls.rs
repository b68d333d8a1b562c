//! What goes wrong where many things meet: subscriptions that come and go, tiers of one's own, servers that are full or refuse scripts, keys
//! that cannot be written down, threads without a runtime.

use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use forebay_cache::backplane::{Backplane, Change, Ear};
use forebay_cache::tier::sqlite::SqliteTier;
use forebay_cache::tier::{Abilities, Grant, Kept, Lease, Put, Tier, TierError};
use futures_util::future::BoxFuture;

/// A backplane that carries nothing, and tells that it hears as a test says.
#[derive(Clone, Default)]
struct Wire(Arc<Told>);

#[derive(Default)]
struct Told {
    /// How often the subscription is to be made anew, and has been.
    wanted: AtomicU64,
    begun: AtomicU64,
    is_silent: AtomicBool,
    flaps: AtomicBool,
    /// Sendings begun, and whether they hang.
    sendings: AtomicU64,
    hangs: AtomicBool,
}

impl Wire {
    /// The subscription is made anew: what was told meanwhile is lost.
    async fn anew(&self) {
        let wanted = self.0.wanted.fetch_add(1, SeqCst) + 1;
        until("it is heard again", async || self.0.begun.load(SeqCst) > wanted).await;
    }
}

impl Backplane<u64> for Wire {
    fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        self.0.sendings.fetch_add(1, SeqCst);
        let hangs = self.0.hangs.load(SeqCst);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }

    fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, _: Duration) -> BoxFuture<'a, TierError> {
        Box::pin(async move {
            loop {
                let told = &self.0;
                if told.flaps.load(SeqCst) || told.begun.load(SeqCst) <= told.wanted.load(SeqCst) {
                    ear.began();
                    told.begun.fetch_add(1, SeqCst);
                }
                if !told.is_silent.load(SeqCst) {
                    ear.heard_up_to(ear.now());
                }
                tokio::time::sleep(ms(10)).await;
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_get_ends_where_the_subscription_lasts_less_long_than_a_fetch() {
    let database = Database::default();
    database.write(1, 10);
    database.take(ms(200));
    let wire = Wire::default();
    wire.0.flaps.store(true, SeqCst);
    let member = database.cache().backplane(wire, SECOND).build();
    let got = tokio::time::timeout(5 * SECOND, member.get(&1)).await;
    assert_eq!(got.expect("it goes on for ever").unwrap(), Some(10));
    assert!(database.fetches() <= 2, "{} fetches for one get", database.fetches());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tier_of_its_own_is_believed_no_longer_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let own = SqliteTier::builder(
        folder.path().join("own"),
        Form::new("fleet", KeyForm::display(), Postcard),
    );
    let database = Database::default();
    let wire = Wire::default();
    let lag = ms(300);
    let builder = database.cache().backplane(wire.clone(), lag);
    let member = builder.tier(own.open().unwrap()).build();
    until("it hears", async || wire.0.begun.load(SeqCst) > 0).await;
    database.write(1, 10);
    assert_eq!(member.get(&1).await.unwrap(), Some(10));
    member.settled().await;
    // Another process changes it, and the word is lost with the subscription.
    database.write(1, 20);
    wire.anew().await;
    assert_eq!(member.get(&1).await.unwrap(), Some(20), "after a subscription");
    member.settled().await;
    database.write(1, 30);
    wire.0.is_silent.store(true, SeqCst);
    tokio::time::sleep(3 * lag).await;
    assert_eq!(member.get(&1).await.unwrap(), Some(30), "in silence");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_fetched_before_its_tag_was_invalidated_is_not_left_in_a_tier_without_tags() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::default();
    let open = || {
        let own = SqliteTier::builder(
            folder.path().join("own"),
            Form::new("fleet", KeyForm::display(), Postcard),
        );
        database.cache().tier(own.open().unwrap()).build()
    };
    let member = open();
    database.write(1, 10);
    database.take(ms(200));
    let late = member.clone();
    let late = tokio::spawn(async move { late.get(&1).await.unwrap() });
    until("it fetches", async || database.fetches() == 1).await;
    database.write(1, 20);
    member.invalidate_tag("digit1").await;
    assert_eq!(late.await.unwrap(), Some(10), "it asked before");
    member.settled().await;
    drop(member);
    database.take(Duration::ZERO);
    assert_eq!(open().get(&1).await.unwrap(), Some(20), "after a restart");
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn what_is_written_outside_of_a_runtime_is_sent_when_it_is_awaited() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let runtime = runtime();
    let with_tier = database.cache().tier(tier(redis.address())).build();
    let with_backplane = database.cache().backplane(backplane(redis.address()), SECOND).build();
    for (name, member) in [("tier", with_tier), ("backplane", with_backplane)] {
        runtime.block_on(async {
            member.get(&1).await.unwrap();
            member.settled().await;
        });
        let settled = member.invalidate(&1);
        let settled = runtime.block_on(async { tokio::time::timeout(5 * SECOND, settled).await });
        assert!(settled.is_ok(), "{name}: nobody sends it");
    }
    assert_eq!(redis.command(&["EXISTS", "fleet:1"]).unwrap(), ":0\r\n");
}

#[test]
fn what_a_runtime_that_ended_had_not_sent_is_sent_by_the_one_in_which_it_is_awaited() {
    let (first, second) = (runtime(), runtime());
    let wire = Wire::default();
    wire.0.hangs.store(true, SeqCst);
    let database = Database::default();
    let (member, settled) = first.block_on(async {
        let member = database.cache().backplane(wire.clone(), SECOND).build();
        let settled = member.invalidate(&1);
        (member, settled)
    });
    let waiting = second.spawn(async { tokio::time::timeout(5 * SECOND, settled).await.is_ok() });
    second.block_on(until("it is being sent", async || wire.0.sendings.load(SeqCst) > 0));
    wire.0.hangs.store(false, SeqCst);
    first.shutdown_background();
    assert!(second.block_on(waiting).unwrap(), "nobody sends it");
    drop(member);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_with_a_value_that_no_tier_keeps() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let cache = || {
        let builder = database.cache().fresh_for(Duration::ZERO).tier(tier(redis.address()));
        builder.tier_settings(leasing(10 * SECOND)).build()
    };
    let (one, other) = (cache(), cache());
    let began = Instant::now();
    for _ in 0..5 {
        one.get(&1).await.unwrap();
        other.get(&1).await.unwrap();
    }
    assert!(began.elapsed() < 2 * SECOND, "{:?} for ten gets", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_without_end_is_one() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.take(ms(300));
    let cache = || {
        let builder = database.cache().tier(tier(redis.address()));
        builder.tier_settings(leasing(Duration::MAX)).build()
    };
    let (one, other) = (cache(), cache());
    let (first, second) = tokio::join!(one.get(&1), other.get(&1));
    assert_eq!((first.unwrap(), second.unwrap()), (Some(10), Some(10)));
    assert_eq!(database.fetches(), 1);
}

/// A server that refuses what invalidates tags, in some way.
async fn deletions_go_on(refuse: &[&str], allow: &[&str], tags_too: bool) {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    database.write(2, 10);
    let cache = || database.cache().tier(tier(redis.address())).build();
    let (one, other) = (cache(), cache());
    for key in [1, 2] {
        one.get(&key).await.unwrap();
    }
    one.settled().await;
    redis.command(refuse).unwrap();
    let tag = one.invalidate_tag("digit2");
    let key = one.invalidate(&1);
    until("the key is gone", async || {
        redis.command(&["EXISTS", "fleet:1"]).unwrap() == ":0\r\n"
    })
    .await;
    if tags_too {
        tokio::time::timeout(5 * SECOND, tag)
            .await
            .expect("the tag is not invalidated");
        tokio::time::timeout(5 * SECOND, key)
            .await
            .expect("the key is not deleted");
        database.write(2, 20);
        assert_eq!(other.get(&2).await.unwrap(), Some(20));
        return;
    }
    redis.command(allow).unwrap();
    tokio::time::timeout(60 * SECOND, tag)
        .await
        .expect("it is not tried again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_takes_invalidations_of_tags_and_deletions_behind_them() {
    deletions_go_on(
        &["CONFIG", "SET", "maxmemory", "1"],
        &["CONFIG", "SET", "maxmemory", "0"],
        true,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_scripts_are_refused_keys_are_deleted_all_the_same() {
    deletions_go_on(
        &["ACL", "SETUSER", "default", "-eval"],
        &["ACL", "SETUSER", "default", "+eval"],
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_is_given_no_tagged_values() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    for key in 0..100 {
        database.write(key, 10);
    }
    let member = database.cache().tier(tier(redis.address())).build();
    member.get(&0).await.unwrap();
    member.settled().await;
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    for key in 1..100 {
        member.get(&key).await.unwrap();
        member.settled().await;
    }
    let size = redis.command(&["DBSIZE"]).unwrap();
    assert_eq!(
        size, ":5\r\n",
        "one value, its two tags, the moment and the table of others"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_that_nothing_carries_leave_nothing_on_the_server() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let member = database.cache().tier(tier(redis.address())).build();
    for tag in 0..1_000 {
        drop(member.invalidate_tag(&format!("nobody's {tag}")));
    }
    member.settled().await;
    let size = redis.command(&["DBSIZE"]).unwrap();
    assert_eq!(size, ":2\r\n", "the moment, and one table of fixed size");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_inserted_after_its_tag_was_invalidated_is_there_for_others() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let cache = || database.cache().tier(tier(redis.address())).build();
    let (one, other) = (cache(), cache());
    database.write(1, 10);
    for member in [&one, &other] {
        member.get(&1).await.unwrap();
    }
    one.settled().await;
    let fetches = database.fetches();
    for round in 2..10 {
        one.invalidate_tag("all").await;
        one.insert_fetched(round, Fetched::of(round).tag("all")).await;
        assert_eq!(other.get(&round).await.unwrap(), Some(round), "round {round}");
    }
    assert_eq!(database.fetches(), fetches);
}

/// As that of another host may, where it takes over empty, and its clock is behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_count_that_went_back_keeps_no_tag_from_being_invalidated() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let cache = || database.cache().tier(tier(redis.address())).build();
    let (one, other) = (cache(), cache());
    redis.command(&["SET", "fleet;moment", "9000000000000000"]).unwrap();
    one.get(&2).await.unwrap();
    one.settled().await;
    redis.command(&["FLUSHALL"]).unwrap();
    one.get(&1).await.unwrap();
    one.settled().await;
    assert_eq!(other.get(&1).await.unwrap(), Some(10));
    assert_eq!(other.stats().flights_by_tier, 1);
    database.write(1, 20);
    other.invalidate_tag("all").await;
    assert_eq!(other.get(&1).await.unwrap(), Some(20));
}

/// A tier that has nothing, gives every lease, and notes for how many keys at a time.
#[derive(Clone, Default)]
struct Lessor(Arc<AtomicU64>);

impl Tier<u64, u64> for Lessor {
    fn name(&self) -> &str {
        "lessor"
    }

    fn get_many<'a>(&'a self, keys: &'a [u64]) -> BoxFuture<'a, Result<Vec<Option<Kept<u64>>>, TierError>> {
        Box::pin(std::future::ready(Ok(vec![None; keys.len()])))
    }

    fn put_many<'a>(&'a self, _: &'a [Put<u64, u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
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
        self.0.fetch_max(keys.len() as u64, SeqCst);
        Box::pin(std::future::ready(Ok(vec![Lease::Granted(1); keys.len()])))
    }
}

#[tokio::test]
async fn many_keys_are_not_leased_all_at_once() {
    let database = Database::default();
    let lessor = Lessor::default();
    let builder = database.cache().tier(lessor.clone());
    let member = builder.tier_settings(leasing(SECOND)).build();
    for got in member.get_many(0..5_000).await {
        got.unwrap();
    }
    assert_eq!((database.fetches(), lessor.0.load(SeqCst)), (5_000, 512));
}

/// While a tag is being invalidated, its values are read from the tier.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tier_says_while_a_tag_is_invalidated_is_not_believed_after_it() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let filler = database.cache().tier(tier(redis.address())).build();
    filler.get(&1).await.unwrap();
    filler.settled().await;
    let reader: Arc<Mutex<Option<Member>>> = Arc::default();
    let armed = Arc::clone(&reader);
    let runtime = tokio::runtime::Handle::current();
    let settings = TierSettings::default().wall_clock(move || {
        let reader = armed.lock().take();
        if let Some(reader) = reader {
            let runtime = runtime.clone();
            let reading = std::thread::spawn(move || runtime.block_on(async { reader.get(&1).await.unwrap() }));
            reading.join().unwrap();
        }
        std::time::SystemTime::now()
    });
    let builder = database.cache().tier(tier(redis.address()));
    let member = builder.tier_settings(settings).build();
    database.write(1, 20);
    *reader.lock() = Some(member.clone());
    let settled = tokio::task::block_in_place(|| member.invalidate_tag("all"));
    assert_eq!(member.get(&1).await.unwrap(), Some(20));
    settled.await;
    assert_eq!(member.get(&1).await.unwrap(), Some(20));
}

/// A key of which some cannot be written down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Odd(u64);

impl serde::Serialize for Odd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == 13 {
            return Err(serde::ser::Error::custom("not this one"));
        }
        serializer.serialize_u64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Odd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_cannot_be_written_down_is_a_change_of_everything() {
    let redis = Redis::start().unwrap();
    let cache = || {
        let carrier = RedisBackplane::<Odd>::open(&url(redis.address()), "odd").unwrap();
        let builder = Cache::builder(|key: Odd| async move { Ok::<_, Infallible>(Some(key.0)) });
        builder.fresh_for(HOUR).backplane(carrier, 60 * SECOND).build()
    };
    let (one, other) = (cache(), cache());
    until("they hear one another", async || {
        other.get(&Odd(1)).await.unwrap();
        one.invalidate(&Odd(1)).await;
        tokio::time::sleep(ms(5)).await;
        other.get_if_fresh(&Odd(1)).is_none()
    })
    .await;
    for key in [1, 13] {
        other.get(&Odd(key)).await.unwrap();
    }
    let told = tokio::time::timeout(5 * SECOND, one.invalidate(&Odd(13))).await;
    assert!(told.is_ok(), "it is not sent");
    until("it is heard", async || other.get_if_fresh(&Odd(13)).is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_awaited_is_sent_however_many_send() {
    let database = Database::default();
    let member = database.cache().backplane(Wire::default(), SECOND).build();
    let sending = (0..8_u64).map(|task| {
        let member = member.clone();
        tokio::spawn(async move {
            for round in 0..20_000 {
                let settled = member.invalidate(&(task * 100_000 + round));
                let sent = tokio::time::timeout(10 * SECOND, settled).await;
                assert!(sent.is_ok(), "round {round} of {task}");
            }
        })
    });
    for sent in sending.collect::<Vec<_>>() {
        sent.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_tags_are_tags() {
    let redis = Redis::start().unwrap();
    let odd = [
        String::new(),
        "\0".to_owned(),
        ";tag:x".to_owned(),
        "*".to_owned(),
        "x".repeat(1 << 20),
    ];
    let source = {
        let odd = odd.clone();
        move |key: u64| {
            let mut said = Fetched::of(key);
            match odd.get(key as usize) {
                // Twice: that is once.
                Some(tag) => said = said.tag(tag.clone()).tag(tag.clone()),
                None => {
                    for n in 0..10_000 {
                        said = said.tag(format!("tag{n}"));
                    }
                }
            }
            async move { Ok::<_, Infallible>(said) }
        }
    };
    let settings = || {
        let mut settings = leasing(60 * SECOND);
        settings.timeout = 5 * SECOND;
        settings.change_timeout = 5 * SECOND;
        settings
    };
    let cache = || {
        let builder = Cache::builder(source.clone()).fresh_for(HOUR);
        builder.tier(tier(redis.address())).tier_settings(settings()).build()
    };
    let (one, other) = (cache(), cache());
    let tags = odd.iter().cloned().chain(["tag9999".to_owned()]);
    for (key, tag) in (0_u64..).zip(tags) {
        one.get(&key).await.unwrap();
        one.settled().await;
        assert_eq!(other.get(&key).await.unwrap(), Some(key));
        assert_eq!(other.stats().fetches, key, "it comes from the tier");
        other.invalidate_tag(&tag).await;
        assert!(other.get_if_fresh(&key).is_none());
        other.get(&key).await.unwrap();
        assert_eq!(other.stats().fetches, key + 1, "it does not come from the tier");
    }
}

/// Whatever becomes of the server's memory: who has changed a key does not see what was before, and nor do the others after the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_forgets_what_it_likes_serves_nothing_old() {
    const LAG: Duration = ms(500);
    let redis = Redis::builder()
        .setting("maxmemory-policy", "allkeys-random")
        .start()
        .unwrap();
    let database = Database::default();
    database.take(ms(2));
    let builder = || {
        let builder = database
            .cache()
            .tier(tier(redis.address()))
            .tier_settings(leasing(ms(200)));
        builder.backplane(backplane(redis.address()), LAG).build()
    };
    let members: Vec<Member> = (0..3).map(|_| builder()).collect();
    redis.command(&["CONFIG", "SET", "maxmemory", "1500kb"]).unwrap();
    // By key: versions with when they were acknowledged, and by whom.
    type Done = Arc<Mutex<BTreeMap<u64, Vec<(u64, usize, Instant)>>>>;
    let done: Done = Arc::default();
    let ends = Instant::now() + 6 * SECOND;
    let mut tasks = Vec::new();
    for (writer, member) in members.iter().enumerate() {
        let (member, database, done) = (member.clone(), database.clone(), Arc::clone(&done));
        tasks.push(tokio::spawn(async move {
            let mut version = 1;
            while Instant::now() < ends {
                let key = (rand::random::<u64>() % 20) * 3 + writer as u64;
                version += 1;
                database.write(key, version);
                match rand::random::<u8>() % 10 {
                    0 => member.clear().await,
                    1..5 => member.invalidate(&key).await,
                    _ => member.invalidate_tag(&format!("digit{}", key % 10)).await,
                }
                done.lock()
                    .entry(key)
                    .or_default()
                    .push((version, writer, Instant::now()));
                tokio::time::sleep(ms(2)).await;
            }
        }));
    }
    for (reader, member) in members.iter().enumerate().cycle().take(6) {
        let (member, done) = (member.clone(), Arc::clone(&done));
        tasks.push(tokio::spawn(async move {
            while Instant::now() < ends {
                let key = rand::random::<u64>() % 60;
                let asked = Instant::now();
                let least = done.lock().get(&key).map_or(0, |done| {
                    let counts = |(_, writer, at): &&(u64, usize, Instant)| *writer == reader || asked - *at > LAG;
                    done.iter()
                        .filter(counts)
                        .map(|(version, ..)| *version)
                        .max()
                        .unwrap_or(0)
                });
                let got = member.get(&key).await.unwrap().unwrap_or(0);
                assert!(got >= least, "{reader} read {got} of {key}, {least} was there");
            }
        }));
    }
    while Instant::now() < ends {
        tokio::time::sleep(ms(300)).await;
        redis.command(&["FLUSHALL"]).unwrap();
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_stands_still_or_leaps_harms_nothing() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    database.write(1, 10);
    let now = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&now);
    let builder = database.cache().clock(move || shown.load(SeqCst));
    let member = builder.backplane(backplane(redis.address()), ms(10)).build();
    for leap in [0, 0, 5, 1_000_000, u64::MAX / 2, 7, u64::MAX] {
        now.store(leap, SeqCst);
        for _ in 0..20 {
            let got = tokio::time::timeout(5 * SECOND, member.get(&1)).await;
            assert_eq!(got.expect("it ends").unwrap(), Some(10), "at {leap}");
            tokio::time::sleep(ms(2)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_listens_and_never_reads_holds_nobody_up() {
    let database = Database::default();
    database.write(1, 10);
    let member = database.cache().build();
    let mut events = member.events();
    member.get(&1).await.unwrap();
    for _ in 0..100_000 {
        assert!(member.get_if_fresh(&1).is_some());
    }
    let forebay_cache::Event::Lost { events: lost } = events.next().await.unwrap() else {
        panic!("it kept all");
    };
    assert!(lost > 90_000, "{lost}");
}

/// Begins to listen after a time, if it does, and tells nothing then.
struct Late(Option<Duration>);

impl Backplane<u64> for Late {
    fn send<'a>(&'a self, _: &'a [Change<u64>]) -> BoxFuture<'a, Result<(), TierError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn listen<'a>(&'a self, ear: &'a dyn Ear<u64>, max_lag: Duration) -> BoxFuture<'a, TierError> {
        Box::pin(async move {
            match self.0 {
                None => return TierError::failed("listen", "nobody is there"),
                Some(time) => tokio::time::sleep(time).await,
            }
            ear.began();
            loop {
                ear.heard_up_to(ear.now());
                tokio::time::sleep(max_lag / 8).await;
            }
        })
    }
}

/// Until it hears others nothing is fetched, as it could be older than what they have changed meanwhile; and where it cannot hear them soon, that is fetched and
/// not kept once it does.
#[tokio::test(start_paused = true)]
async fn what_is_asked_first_waits_for_the_ears_and_no_longer_than_is_stated() {
    for (begins, waits, is_kept) in [
        (Some(ms(0)), ms(0), true),
        (Some(ms(40)), ms(40), true),
        (Some(ms(400)), ms(250), false),
        (None, ms(0), true),
    ] {
        let database = Database::default();
        database.write(1, 10);
        database.take(ms(300));
        let member = database.cache().backplane(Late(begins), SECOND).build();
        let began = tokio::time::Instant::now();
        let get = {
            let member = member.clone();
            tokio::spawn(async move { member.get(&1).await })
        };
        while database.fetches() == 0 {
            tokio::time::sleep(ms(1)).await;
        }
        let waited = began.elapsed();
        assert!(waits <= waited && waited <= waits + ms(5), "{begins:?}: {waited:?}");
        // The same flight, not one more that waits.
        assert_eq!(get.await.unwrap().unwrap(), Some(10));
        assert_eq!(member.stats().late_dropped, u64::from(!is_kept), "{begins:?}");
        // Whoever comes then waits for nothing but the fetch.
        let began = tokio::time::Instant::now();
        member.get(&2).await.unwrap();
        assert!(began.elapsed() <= ms(305), "{begins:?}");
    }
}
