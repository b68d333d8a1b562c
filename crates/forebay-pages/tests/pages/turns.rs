//! Large reads wait for their turn before they take memory, and their turns come back whatever becomes of them.

use std::time::{Duration, Instant};

use forebay_pages::faults::Fault;
use forebay_pages::{Io, PageError, PagePool, PagedFile};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::memory::{PAGE, all_end, pages};
use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, nothing_leaked, polled, until};

/// A pool of so many pages in which reads of five pages and more take turns, four at a time, and in whose file of 1,024 pages each
/// I/O reads one.
fn pool_of_turns(pages: u64, wait_limit: Duration) -> (std::sync::Arc<Trouble>, PagePool) {
    let (trouble, builder) = Trouble::pool(Io::Auto, pages);
    let pool = builder.max_run_bytes(PAGE).depth(1).memory_timeout(wait_limit).build();
    (trouble, pool.expect("a pool"))
}

/// So many readers of six pages each, from this page on.
fn readers_of_six(file: &PagedFile, from: u64, count: u64) -> Vec<tokio::task::JoinHandle<()>> {
    let of_six = |from: u64| {
        let file = file.clone();
        tokio::spawn(async move { pattern::check(&pages(&file, from, from + 6).await, 1) })
    };
    (0..count).map(|reader| of_six(from + 6 * reader)).collect()
}

#[tokio::test]
async fn large_reads_that_wait_for_the_disk_leave_memory_to_what_can_be_read() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let (trouble, pool) = pool_of_turns(64, PATIENCE);
    let file = pool.open(&path).await.expect("opened");
    pages(&file, 0, 30).await;
    let gate = trouble.gate();
    let readers = readers_of_six(&file, 100, 20);
    until("all to have asked", || pool.stats().asked_bytes == (30 + 120) * PAGE).await;
    trouble.arrived(1).await;
    until("those who wait", || pool.stats().waits == 16).await;
    assert_eq!(pool.stats().resident_bytes, (30 + 4 * 6) * PAGE);
    assert!(file.read_resident(0..30 * PAGE).expect("in range").is_some());
    // Who finds a part, and waits for his turn to load the rest, does not hold it.
    let partly = {
        let file = file.clone();
        tokio::spawn(async move { pattern::check(&pages(&file, 26, 36).await, 1) })
    };
    until("him to wait, too", || pool.stats().waits == 17).await;
    assert_eq!(pool.stats().pinned_bytes, 0);
    // What joins a load, and what needs little, does not stand in line.
    let joins = readers_of_six(&file, 100, 1);
    let little = {
        let file = file.clone();
        tokio::spawn(async move { pattern::check(&pages(&file, 40, 44).await, 1) })
    };
    until("the little one to load", || pool.stats().misses == 30 + 4 * 6 + 4).await;
    assert_eq!((pool.stats().waits, pool.stats().joined), (17, 6));
    // Who gives up in line, or during his turn, leaves it to others.
    for given_up in [&readers[1], &readers[5], &readers[19]] {
        given_up.abort();
    }
    drop(gate);
    for (number, reader) in readers.into_iter().enumerate() {
        let ended = tokio::time::timeout(PATIENCE, reader).await.expect("its turn comes");
        assert_eq!(ended.is_ok(), ![1, 5, 19].contains(&number));
    }
    all_end(joins).await;
    all_end(vec![partly, little]).await;
    nothing_leaked(&pool).await;
    // All turns are there again.
    let gate = trouble.gate();
    let readers = readers_of_six(&file, 500, 5);
    until("four to load", || pool.stats().resident_bytes == 4 * 6 * PAGE).await;
    drop(gate);
    all_end(readers).await;
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn a_turn_is_waited_for_as_long_as_the_disk_needs_and_memory_has_its_own_limit() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let limit = Duration::from_secs(2);
    let (trouble, pool) = pool_of_turns(26, limit);
    let file = pool.open(&path).await.expect("opened");
    let gate = trouble.gate();
    let first: Vec<_> = (0..4)
        .map(|reader| {
            let file = file.clone();
            tokio::spawn(async move { pages(&file, 6 * reader, 6 * reader + 6).await })
        })
        .collect();
    until("the first ones to load", || pool.stats().misses == 24).await;
    let next = readers_of_six(&file, 100, 8);
    until("the next ones to wait", || pool.stats().waits == 8).await;
    tokio::time::sleep(limit + limit / 4).await;
    assert!(next.iter().all(|reader| !reader.is_finished()));
    drop(gate);
    let mut held = Vec::new();
    for reader in first {
        held.push(reader.await.expect("no panic"));
    }
    // It is their turn, and there is no room.
    until("them to wait for memory", || pool.stats().waits == 12).await;
    tokio::time::sleep(limit / 20).await;
    drop(held);
    all_end(next).await;
    assert_eq!(pool.stats().failures, 0);
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn who_waits_for_a_turn_behind_those_who_get_no_memory_is_refused_with_them() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let limit = Duration::from_secs(1);
    let (_trouble, pool) = pool_of_turns(16, limit);
    let file = pool.open(&path).await.expect("opened");
    let held = pages(&file, 0, 12).await;
    let began = Instant::now();
    let readers: Vec<_> = (10..70)
        .map(|reader| {
            let file = file.clone();
            tokio::spawn(async move { file.read(6 * reader * PAGE..(6 * reader + 6) * PAGE).await.map(drop) })
        })
        .collect();
    for reader in readers {
        let refused = reader.await.expect("no panic").expect_err("full");
        assert!(
            matches!(refused, PageError::Full { waited, .. } if waited == limit),
            "{refused}"
        );
    }
    // One after the other, four at a time, it would be fifteen limits.
    assert!(
        began.elapsed() >= limit && began.elapsed() < 8 * limit,
        "{:?}",
        began.elapsed()
    );
    drop(held);
    all_end(readers_of_six(&file, 60, 8)).await;
    nothing_leaked(&pool).await;
}

/// Polls reads once each, so that they have begun or stand in line, and are heard of no more unless they are polled again.
/// None can end meanwhile: the disk answers only then.
async fn begun<F: Future>(trouble: &std::sync::Arc<Trouble>, reads: &mut [std::pin::Pin<Box<F>>]) {
    let _gate = trouble.gate();
    for read in reads {
        assert!(futures_util::future::poll_immediate(read).await.is_none());
    }
}

#[tokio::test]
async fn reads_that_nobody_polls_any_more_do_not_keep_others_in_line() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    for wait_limit in [PATIENCE, Duration::ZERO, Duration::MAX] {
        let (trouble, pool) = pool_of_turns(100, wait_limit);
        let file = pool.open(&path).await.expect("opened");
        let mut buffered: Vec<_> = (0..4)
            .map(|reader| Box::pin(pages(&file, 6 * reader, 6 * reader + 6)))
            .collect();
        begun(&trouble, &mut buffered).await;
        until("them to load", || pool.stats().runs >= 24).await;
        // They have got what they need, whether they look or not.
        pattern::check(&pages(&file, 100, 106).await, 1);
        assert_eq!(pool.stats().waits, 0);
        pool.clear();
        // As a stream's buffer does: four load, four stand in line, and their owner has gone to do something else.
        let mut others: Vec<_> = (20..28)
            .map(|reader| Box::pin(pages(&file, 6 * reader, 6 * reader + 6)))
            .collect();
        begun(&trouble, &mut others).await;
        until("them to load", || pool.stats().runs >= 30 + 24).await;
        for from in [200, 300] {
            let view = tokio::time::timeout(PATIENCE / 3, pages(&file, from, from + 6)).await;
            pattern::check(&view.expect("memory is free, the disk is idle"), 1);
        }
        let all = buffered.into_iter().chain(others);
        for view in futures_util::future::join_all(all).await {
            pattern::check(&view, 1);
        }
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn who_is_in_line_is_not_refused_because_another_one_was() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let limit = Duration::from_millis(200);
    let (trouble, pool) = pool_of_turns(100, limit);
    let file = pool.open(&path).await.expect("opened");
    let held = pages(&file, 0, 40).await;
    let gate = trouble.gate();
    let readers = readers_of_six(&file, 100, 8);
    until("four to wait for their turn", || pool.stats().waits == 4).await;
    let refused = file
        .prefetch(500 * PAGE..570 * PAGE)
        .await
        .expect_err("too many are held");
    assert!(matches!(refused, PageError::Full { .. }), "{refused}");
    tokio::time::sleep(3 * limit).await;
    drop(gate);
    // There are frames for all of them, and always were.
    all_end(readers).await;
    drop(held);
    nothing_leaked(&pool).await;
}

/// Four turns are there, not more and not less: of five readers of six pages each, from this page on, four load.
async fn four_turns_are_there(trouble: &std::sync::Arc<Trouble>, pool: &PagePool, file: &PagedFile, from: u64) {
    let gate = trouble.gate();
    let misses = pool.stats().misses;
    let readers = readers_of_six(file, from, 5);
    until("four to load", || pool.stats().misses == misses + 4 * 6).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(pool.stats().misses, misses + 4 * 6);
    drop(gate);
    all_end(readers).await;
    nothing_leaked(pool).await;
}

/// Reads, many ranges, prefetches and invalidations that overlap, some of them dropped after a few polls.
async fn mixture(file: PagedFile, mut random: StdRng) {
    for _ in 0..40 {
        let from = random.random_range(0..450);
        let range = from * PAGE..(from + random.random_range(1..30)) * PAGE;
        let polls = if random.random_range(0..3) == 0 {
            random.random_range(1..5)
        } else {
            usize::MAX
        };
        let ended = match random.random_range(0..8) {
            0 => polled(file.prefetch(range), polls).await,
            1 => polled(file.invalidate(range), polls).await,
            2 => {
                let sparse = (0..random.random_range(1..20)).map(|number| (from + 3 * number) % 512);
                let sparse: Vec<_> = sparse.map(|page| page * PAGE..(page + 1) * PAGE).collect();
                let read = polled(file.read_many(sparse), polls).await;
                read.map(|read| read.map(|views| views.iter().for_each(|view| pattern::check(view, 1))))
            }
            _ => {
                let read = polled(file.read(range), polls).await;
                read.map(|read| read.map(|view| pattern::check(&view, 1)))
            }
        };
        match ended {
            None | Some(Ok(()) | Err(PageError::Io { .. } | PageError::Full { .. })) => {}
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_becomes_of_reads_their_turns_come_back() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    for (seed, wait_limit) in [PATIENCE, Duration::ZERO, Duration::MAX].into_iter().enumerate() {
        let (trouble, pool) = pool_of_turns(64, wait_limit);
        let file = pool.open(&path).await.expect("opened");
        trouble.rule(|offset, _| (offset / PAGE).is_multiple_of(97).then_some(Fault::Error(libc::EIO)));
        let readers = (0..16).map(|reader| {
            let random = StdRng::seed_from_u64(seed as u64 * 100 + reader);
            tokio::spawn(mixture(file.clone(), random))
        });
        all_end(readers.collect()).await;
        trouble.over();
        nothing_leaked(&pool).await;
        four_turns_are_there(&trouble, &pool, &file, 600).await;
    }
}

#[test]
fn a_runtime_that_ends_while_its_tasks_are_in_line_takes_no_turn_along() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let (trouble, pool) = pool_of_turns(64, PATIENCE);
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let file = runtime().block_on(pool.open(&path)).expect("opened");
    let first = runtime();
    let gate = trouble.gate();
    let _readers = first.block_on(async {
        let readers = readers_of_six(&file, 100, 20);
        until("them to wait", || pool.stats().waits == 16).await;
        readers
    });
    drop(first);
    drop(gate);
    runtime().block_on(async {
        nothing_leaked(&pool).await;
        four_turns_are_there(&trouble, &pool, &file, 500).await;
    });
}

#[tokio::test]
async fn a_clock_that_stands_still_and_jumps_harms_nobody_in_line() {
    let (_folder, path) = pattern::file(1, 1024 * PAGE);
    let (_trouble, pool) = pool_of_turns(1024, PATIENCE);
    let file = pool.open(&path).await.expect("opened");
    tokio::time::pause();
    for reader in readers_of_six(&file, 0, 150) {
        reader.await.expect("right bytes");
    }
    assert_eq!(pool.stats().failures, 0);
}
