//! What a named cache publishes of its tiers.

use forebay_cache::tier::BreakerState;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::*;

/// The last reading of each counter and gauge, by name and labels.
#[derive(Default)]
struct Board(Mutex<HashMap<String, Arc<AtomicU64>>>);

impl Board {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.0.lock().entry(name).or_default())
    }

    fn counter(&self, name: &str, tier: &str) -> u64 {
        let name = format!("forebay_cache_tier_{name}{{cache=products,tier={tier}}}");
        let board = self.0.lock();
        let cell = board.get(&name);
        cell.unwrap_or_else(|| panic!("{name} is not published")).load(SeqCst)
    }

    fn gauge(&self, name: &str, tier: &str) -> f64 {
        f64::from_bits(self.counter(name, tier))
    }
}

impl Recorder for Board {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_cache_publishes_each_tiers_counts() {
    let board = Board::default();
    let _publishing = metrics::set_default_local_recorder(&board);
    let (database, upper, lower) = (Database::open().with(1, 10), Fake::new("file"), Fake::new("remote"));
    let mut settings = TierSettings::default();
    // What has failed stays so for this test.
    (settings.pause, settings.retry_after) = ((HOUR, HOUR), (HOUR, HOUR));
    settings.failures_to_open = 2;
    let cache = database.cache(upper).tier(lower.clone()).tier_settings(settings);
    let cache = cache.name("products").capacity(0).build();
    let future = Kept::new(Some(99), SystemTime::now() + HOUR);
    lower.keep(3, future);
    for key in [1, 1, 2, 3] {
        value(&cache, key).await;
        cache.settled().await;
    }
    cache.invalidate(&2).await;
    lower.all(Mood::Hangs);
    assert_eq!(value(&cache, 4).await, None);
    lower.all(Mood::Fails);
    for key in [5, 6] {
        assert_eq!(value(&cache, key).await, None);
    }
    let _not_awaited = cache.invalidate(&1);
    tokio::time::advance(ms(3_001)).await;
    settle().await;
    value(&cache, 1).await;
    tokio::time::advance(ms(1_001)).await;
    settle().await;

    let stats = cache.stats();
    assert_eq!(board.counter("hits_total", "file"), 1);
    let remote = &stats.tiers[1];
    let published = |name: &str| board.counter(name, "remote");
    // Each reading is of something that has happened, so none agrees by being nought.
    let readings = [
        ("gets_total", remote.gets),
        ("misses_total", remote.misses),
        ("errors_total", remote.errors),
        ("timeouts_total", remote.timeouts),
        ("skipped_total", remote.skipped),
        ("barred_total", remote.barred),
        ("puts_total", remote.puts),
        ("deletes_total", remote.deletes),
        ("dropped_total", remote.dropped),
        ("undecodable_total", remote.undecodable),
        ("reads_total", remote.read_latency.count),
        ("changes_total", remote.change_latency.count),
        ("read_microseconds_total", remote.read_latency.sum.as_micros() as u64),
        (
            "change_microseconds_total",
            remote.change_latency.sum.as_micros() as u64,
        ),
    ];
    for (name, counted) in readings {
        assert_eq!(published(name), counted, "{name}");
        assert!(counted > 0, "{name} was not put to the test");
    }
    assert_eq!(
        (published("hits_total"), published("overflows_total")),
        (remote.hits, 0)
    );
    assert_eq!((board.gauge("owed", "remote"), board.gauge("owed", "file")), (1.0, 0.0));
    assert_eq!(remote.breaker, BreakerState::Open);
    assert_eq!(
        (board.gauge("breaker", "remote"), board.gauge("breaker", "file")),
        (2.0, 0.0)
    );
}

#[tokio::test(start_paused = true)]
async fn tiers_of_one_name_are_told_apart() {
    let board = Board::default();
    let _publishing = metrics::set_default_local_recorder(&board);
    let (near, far) = (Fake::new("redis"), Fake::new("redis"));
    far.keep(1, aged(Some(10), secs(1)));
    let cache = Database::open().cache(near).tier(far).name("products").build();
    assert_eq!(value(&cache, 1).await, Some(10));
    tokio::time::advance(ms(1_001)).await;
    settle().await;
    assert_eq!(
        (
            board.counter("hits_total", "redis"),
            board.counter("hits_total", "redis-2")
        ),
        (0, 1)
    );
    assert_eq!(
        (
            board.counter("misses_total", "redis"),
            board.counter("misses_total", "redis-2")
        ),
        (1, 0)
    );
}

#[test]
fn where_a_runtime_ends_before_it_has_published_anything_the_next_one_publishes() {
    let board = Board::default();
    let _publishing = metrics::set_default_local_recorder(&board);
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true).build().unwrap()
    };
    let cache = runtime().block_on(async { Database::open().cache(Fake::new("file")).name("products").build() });
    runtime().block_on(async {
        value(&cache, 1).await;
        tokio::time::advance(ms(1_001)).await;
        settle().await;
    });
    assert_eq!(board.counter("gets_total", "file"), 1);
}
