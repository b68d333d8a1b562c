//! Memory within its limit: who waits for it, who is refused, and what makes room.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_pages::{Io, PageError, PagePool, PagedFile, View};

use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, in_a_process_of_its_own, nothing_leaked, polled, threads, until};

pub(crate) const PAGE: u64 = 4096;

fn pool(pages: u64) -> PagePool {
    Trouble::pool(Io::Auto, pages).1.build().expect("a pool")
}

pub(crate) async fn pages(file: &PagedFile, from: u64, to: u64) -> View {
    file.read(from * PAGE..to * PAGE).await.expect("read")
}

/// None of them waits for ever, and none has seen a wrong byte.
pub(crate) async fn all_end(readers: Vec<tokio::task::JoinHandle<()>>) {
    for reader in readers {
        tokio::time::timeout(PATIENCE, reader)
            .await
            .expect("no deadlock")
            .expect("right bytes");
    }
}

#[tokio::test]
async fn what_can_never_fit_is_refused_at_once() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = pool(8);
    let file = pool.open(&path).await.expect("opened");
    let too_large = |error: PageError| match error {
        PageError::TooLarge {
            wanted_bytes,
            capacity_bytes,
        } => assert_eq!((wanted_bytes, capacity_bytes), (9 * PAGE, 8 * PAGE)),
        other => panic!("{other}"),
    };
    too_large(file.read(0..9 * PAGE).await.expect_err("refused"));
    // In bytes it would fit.
    too_large(file.read(PAGE - 1..8 * PAGE + 1).await.expect_err("refused"));
    too_large(file.read_resident(0..9 * PAGE).expect_err("refused"));
    too_large(file.prefetch(0..9 * PAGE).await.expect_err("refused"));
    too_large(
        file.read_many([0..5 * PAGE, 6 * PAGE..10 * PAGE])
            .await
            .expect_err("refused"),
    );
    // What is asked for twice is there once.
    let views = file
        .read_many([0..8 * PAGE, PAGE..2 * PAGE, 0..8 * PAGE])
        .await
        .expect("fits");
    views.iter().for_each(|view| pattern::check(view, 1));
    assert_eq!(pool.stats().failures, 5);
    drop(views);
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn more_pins_than_fit_wait_and_are_refused_in_time_with_figures() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let wait_limit = Duration::from_millis(200);
    let pool = Trouble::pool(Io::Auto, 8)
        .1
        .memory_timeout(wait_limit)
        .build()
        .expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let held = pages(&file, 0, 6).await;
    let began = Instant::now();
    match file.read(10 * PAGE..13 * PAGE).await.expect_err("full") {
        PageError::Full {
            wanted_bytes,
            pinned_bytes,
            capacity_bytes,
            waited,
        } => {
            assert_eq!(
                (wanted_bytes, pinned_bytes, capacity_bytes, waited),
                (3 * PAGE, 6 * PAGE, 8 * PAGE, wait_limit)
            );
        }
        other => panic!("{other}"),
    }
    assert!(began.elapsed() >= wait_limit);
    assert!(matches!(
        file.prefetch(10 * PAGE..13 * PAGE).await,
        Err(PageError::Full { .. })
    ));
    // What fits beside the view does not wait.
    pattern::check(&pages(&file, 20, 22).await, 1);
    pattern::check(&held, 1);
    // He who holds what he asks for once more needs no room for it.
    pattern::check(&pages(&file, 0, 8).await, 1);
    assert_eq!(pool.stats().failures, 2);
    drop(held);
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn who_waits_goes_on_when_a_view_is_dropped_and_in_turn() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = pool(8);
    let file = pool.open(&path).await.expect("opened");
    for round in 0..20 {
        let held = pages(&file, 0, 8).await;
        let large = tokio::spawn({
            let file = file.clone();
            async move { pages(&file, 10, 18).await }
        });
        until("the large one to wait", || pool.stats().waits > 2 * round).await;
        // A small one that comes later does not take from the large one what it needs, and goes after it.
        let small = tokio::spawn({
            let file = file.clone();
            async move { pages(&file, 30, 31).await }
        });
        until("the small one to wait", || pool.stats().waits > 2 * round + 1).await;
        assert!(!large.is_finished() && !small.is_finished());
        let part = held.slice(..1);
        drop(held);
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(!large.is_finished(), "a page is held still");
        drop(part);
        let view = tokio::time::timeout(PATIENCE, large)
            .await
            .expect("not forgotten")
            .expect("no panic");
        pattern::check(&view, 1);
        assert!(!small.is_finished(), "all memory is held");
        drop(view);
        pattern::check(
            &tokio::time::timeout(PATIENCE, small)
                .await
                .expect("not forgotten")
                .expect("no panic"),
            1,
        );
    }
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn who_waits_asks_for_no_room_for_what_others_hold() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = Trouble::pool(Io::Auto, 8)
        .1
        .memory_timeout(PATIENCE)
        .build()
        .expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let held = pages(&file, 0, 4).await;
    pages(&file, 4, 6).await;
    let other = pages(&file, 30, 31).await;
    // Used so often that it is not the first to go.
    for _ in 0..4 {
        pages(&file, 20, 21).await;
    }
    // One page is lacking. What makes room for it is one of those that the reader wants: then he lacks two, and there is room:
    // he need not wait until his time is up.
    let view = tokio::time::timeout(PATIENCE / 3, file.read(0..7 * PAGE))
        .await
        .expect("in time");
    pattern::check(&view.expect("eight pages are enough"), 1);
    assert!(pool.stats().waits > 0);
    drop((held, other));
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn what_others_brought_while_one_waited_is_no_reason_to_fail() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = Trouble::pool(Io::Auto, 8)
        .1
        .memory_timeout(Duration::from_secs(1))
        .build()
        .expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let held = pages(&file, 40, 46).await;
    let reader = |from, to| {
        let file = file.clone();
        tokio::spawn(async move { pages(&file, from, to).await })
    };
    let first = reader(0, 5);
    until("the first one to wait", || pool.stats().waits == 1).await;
    let second = reader(2, 7);
    until("the second one to wait", || pool.stats().waits == 2).await;
    drop(held);
    // It waits for five pages, of which the first one holds three from now on.
    let first = first.await.expect("no panic");
    let second = tokio::time::timeout(PATIENCE, second)
        .await
        .expect("in time")
        .expect("there is room for two more");
    pattern::check(&first, 1);
    pattern::check(&second, 1);
    drop((first, second));
    nothing_leaked(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_who_each_want_most_of_it_do_not_block_each_other() {
    let (_folder, path) = pattern::file(1, 256 * PAGE);
    let pool = pool(10);
    let file = pool.open(&path).await.expect("opened");
    let readers: Vec<_> = (0..24_u64)
        .map(|reader| {
            let file = file.clone();
            tokio::spawn(async move {
                for round in 0..15 {
                    let from = (reader * 37 + round * 11) % 250;
                    let view = pages(&file, from, from + 6).await;
                    tokio::task::yield_now().await;
                    pattern::check(&view, 1);
                }
            })
        })
        .collect();
    all_end(readers).await;
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn a_small_slice_of_a_large_view_lets_the_rest_go() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = pool(8);
    let file = pool.open(&path).await.expect("opened");
    let view = pages(&file, 0, 8).await;
    let clone = view.clone();
    let slice = view.slice(3 * PAGE as usize + 5..4 * PAGE as usize);
    assert_eq!((slice.offset(), slice.len() as u64), (3 * PAGE + 5, PAGE - 5));
    assert_eq!(pool.stats().pinned_bytes, 8 * PAGE);
    drop(view);
    assert_eq!(pool.stats().pinned_bytes, 8 * PAGE, "the clone holds them");
    drop(clone);
    assert_eq!(pool.stats().pinned_bytes, PAGE);
    let none = slice.slice(7..7);
    assert!(none.is_empty() && none.offset() == slice.offset() + 7);
    // All the rest is room for others.
    let others = pages(&file, 20, 27).await;
    pattern::check(&others, 1);
    pattern::check(&slice, 1);
    let nested = slice.slice(10..).slice(..=20);
    pattern::check(&nested, 1);
    assert_eq!(nested.len(), 21);
    drop((slice, others));
    assert_eq!(pool.stats().pinned_bytes, PAGE, "the slice of the slice");
    drop((nested, none));
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn bytes_hold_their_pages_until_the_last_slice_of_them_goes() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = pool(4);
    let file = pool.open(&path).await.expect("opened");
    let view = pages(&file, 0, 2).await;
    let address = view.as_ptr();
    let bytes = Bytes::from(view);
    assert_eq!(bytes.as_ptr(), address, "no copy");
    let part = bytes.slice(100..200);
    drop(bytes);
    assert_eq!(pool.stats().pinned_bytes, 2 * PAGE);
    for page in 2..64 {
        pages(&file, page, page + 1).await;
    }
    assert_eq!(*part, pattern::bytes(1, 100, 200));
    // Not bound to the pool's life either.
    drop((file, pool));
    assert_eq!(*part, pattern::bytes(1, 100, 200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_of_one_page_serves_everybody() {
    let (_folder, path) = pattern::file(1, 16 * PAGE + 99);
    let pool = pool(1);
    let file = pool.open(&path).await.expect("opened");
    let readers: Vec<_> = (0..8_u64)
        .map(|reader| {
            let file = file.clone();
            tokio::spawn(async move {
                for round in 0..34 {
                    let from = (reader + round) % 17 * PAGE;
                    let view = file.read(from..(from + PAGE).min(file.len())).await.expect("read");
                    pattern::check(&view, 1);
                }
            })
        })
        .collect();
    all_end(readers).await;
    assert!(pool.stats().resident_bytes <= PAGE);
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn a_scan_does_not_push_out_what_is_read_again_and_again() {
    let (_folder, path) = pattern::file(1, 2048 * PAGE);
    let pool = pool(100);
    let file = pool.open(&path).await.expect("opened");
    let mut hits = 0;
    let mut asked = 0;
    for page in 60..2048 {
        pattern::check(&pages(&file, page, page + 1).await, 1);
        let hot = page * 7 % 40;
        let before = pool.stats().hits;
        pattern::check(&pages(&file, hot, hot + 1).await, 1);
        if page > 500 {
            hits += pool.stats().hits - before;
            asked += 1;
        }
    }
    assert!(
        hits * 100 >= asked * 95,
        "{hits} of {asked} reads of hot pages found them"
    );
}

#[tokio::test]
async fn what_is_prefetched_is_there_though_nobody_waited() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let (trouble, builder) = Trouble::pool(Io::Threads, 8);
    let pool = builder.build().expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let gate = trouble.gate();
    file.prefetch(3 * PAGE..7 * PAGE).await.expect("begun");
    assert!(
        file.read_resident(3 * PAGE..4 * PAGE).expect("in the file").is_none(),
        "it does not wait for the I/O"
    );
    assert_eq!(pool.stats().pinned_bytes, 0);
    drop(gate);
    until("what was prefetched", || {
        file.read_resident(3 * PAGE..7 * PAGE).expect("in the file").is_some()
    })
    .await;
    let runs = pool.stats().runs;
    pattern::check(&pages(&file, 3, 7).await, 1);
    assert_eq!(pool.stats().runs, runs, "it was there");
    file.prefetch(3 * PAGE..7 * PAGE).await.expect("nothing to do");
    // Memory that others only cached is given to it; what they hold is not.
    let held = pages(&file, 10, 14).await;
    assert!(
        polled(file.prefetch(20 * PAGE..25 * PAGE), 1).await.is_none(),
        "it waits for its turn"
    );
    drop(held);
    file.prefetch(20 * PAGE..25 * PAGE).await.expect("room for it");
    until("what was prefetched", || {
        file.read_resident(20 * PAGE..25 * PAGE).expect("in the file").is_some()
    })
    .await;
    nothing_leaked(&pool).await;
}

#[test]
fn while_all_is_held_the_sweeper_sleeps() {
    in_a_process_of_its_own("memory::while_all_is_held_the_sweeper_sleeps", || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (_folder, path) = pattern::file(1, 64 * PAGE);
            let wait_limit = Duration::from_millis(700);
            let pool = Trouble::pool(Io::Auto, 8)
                .1
                .memory_timeout(wait_limit)
                .build()
                .expect("a pool");
            let file = pool.open(&path).await.expect("opened");
            let held = pages(&file, 0, 8).await;
            // A thread gives itself its name, when it begins.
            until("the sweeper to begin", || !threads("forebay-sweeper").is_empty()).await;
            let [sweeper] = &threads("forebay-sweeper")[..] else {
                panic!("one pool, one sweeper")
            };
            // Each look ends with the thread going to sleep, or it never sleeps and its time grows.
            let spent = || {
                let stat = std::fs::read_to_string(sweeper.join("stat")).expect("it lives");
                let fields: Vec<&str> = stat
                    .rsplit(')')
                    .next()
                    .expect("after the name")
                    .split_whitespace()
                    .collect();
                let ticks: u64 = fields[11].parse::<u64>().expect("user") + fields[12].parse::<u64>().expect("system");
                let status = std::fs::read_to_string(sweeper.join("status")).expect("it lives");
                let sleeps = status
                    .lines()
                    .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
                (ticks, sleeps.expect("Linux").trim().parse::<u64>().expect("a number"))
            };
            let (ticks, sleeps) = spent();
            let waiting: Vec<_> = (0..4)
                .map(|reader| {
                    let file = file.clone();
                    tokio::spawn(async move { file.read((20 + reader) * PAGE..(21 + reader) * PAGE).await })
                })
                .collect();
            for reader in waiting {
                assert!(matches!(reader.await.expect("no panic"), Err(PageError::Full { .. })));
            }
            let (ticks, sleeps) = (spent().0 - ticks, spent().1 - sleeps);
            assert!(ticks <= 10 && sleeps <= 40, "{ticks} ticks of time, {sleeps} looks");
            drop(held);
            nothing_leaked(&pool).await;
        });
    });
}

#[tokio::test]
async fn gaps_are_read_past_where_there_is_no_room_to_keep_them() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let pool = Trouble::pool(Io::Auto, 16)
        .1
        .max_run_bytes(8 * PAGE)
        .max_gap_bytes(PAGE)
        .build()
        .expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let _held = pages(&file, 40, 52).await;
    let before = pool.stats().runs;
    // Four pages are free; the three between the four that are wanted have no room.
    let wanted = [0, 2, 4, 6].map(|page| page * PAGE..(page + 1) * PAGE);
    let views = file.read_many(wanted).await.expect("fits");
    views.iter().for_each(|view| pattern::check(view, 1));
    let stats = pool.stats();
    assert_eq!((stats.runs - before, stats.gap_bytes), (1, 3 * PAGE));
    assert_eq!(stats.resident_bytes, 16 * PAGE);
}
