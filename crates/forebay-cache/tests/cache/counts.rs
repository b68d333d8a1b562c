//! What a cache counts, and what it publishes of that.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use super::*;
use forebay_cache::Entry;

#[tokio::test(start_paused = true)]
async fn lookups_are_counted_by_what_answered_them() {
    let (database, ticks) = (Database::open().with(1, 10), Ticks::new());
    let cache = timed(&database, &ticks).build();
    assert_eq!(cache.stats().hit_rate(), 0.0);
    cache.get(&1).await.unwrap();
    cache.get(&2).await.unwrap();
    assert_eq!(cache.get_if_fresh(&77), None);
    for _ in 0..4 {
        cache.get(&1).await.unwrap();
        cache.lookup(&2).await.unwrap();
        cache.get_if_fresh(&2).unwrap();
    }
    ticks.turn(15);
    cache.get(&2).await.unwrap();
    let stats = cache.stats();
    assert_eq!((stats.hits_fresh, stats.hits_stale, stats.hits_missing), (12, 1, 9));
    assert_eq!(
        (stats.misses, stats.joined, stats.flights, stats.refreshes),
        (2, 0, 3, 1)
    );
    assert_eq!(stats.hit_rate(), 13.0 / 15.0);
    settle().await;
    let stats = cache.stats();
    assert_eq!(
        (stats.fetches, stats.keys_fetched, stats.entries, stats.weight),
        (3, 3, 2, 2)
    );
    assert_eq!(stats.capacity, 10_000);
}

#[tokio::test(start_paused = true)]
async fn clones_are_handles_to_the_same_cache_and_writes_settle_at_once_where_there_are_no_tiers() {
    let cache = lasting(&Database::open()).build();
    let other = cache.clone();
    cache.insert(1, 10).await;
    assert_eq!(other.get_if_fresh(&1), Some(Entry::Present(10)));
    assert!(poll_once(&mut other.settled()).is_ready());
    assert!(poll_once(&mut other.clear()).is_ready());
    assert_eq!(cache.stats().entries, 0);
}

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

    fn read(&self, name: &str) -> u64 {
        self.0.lock()[name].load(SeqCst)
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
async fn a_named_cache_publishes_its_counts_once_a_second_until_it_is_gone() {
    let board = Board::default();
    let _publishing = metrics::set_default_local_recorder(&board);
    let database = Database::open().with(1, 10);
    let cache = lasting(&database).name("products").build();
    for _ in 0..3 {
        cache.get(&1).await.unwrap();
    }
    tokio::time::advance(ms(1_001)).await;
    settle().await;
    assert_eq!(board.read("forebay_cache_hits_total{cache=products,state=fresh}"), 2);
    assert_eq!(board.read("forebay_cache_misses_total{cache=products}"), 1);
    assert_eq!(f64::from_bits(board.read("forebay_cache_entries{cache=products}")), 1.0);
    cache.get(&1).await.unwrap();
    assert_eq!(
        board.read("forebay_cache_hits_total{cache=products,state=fresh}"),
        2,
        "not at every hit"
    );
    drop(cache);
    tokio::time::advance(ms(2_000)).await;
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cache_without_a_name_publishes_nothing() {
    let board = Board::default();
    let _publishing = metrics::set_default_local_recorder(&board);
    let cache = lasting(&Database::open()).build();
    cache.get(&1).await.unwrap();
    tokio::time::advance(ms(5_000)).await;
    settle().await;
    assert!(board.0.lock().is_empty());
}
