//! What goes wrong is told to those it concerns, and to nobody else: errors of the device, short and slow I/O, readers who leave,
//! files that change under their handles, and what the system refuses.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use forebay_pages::faults::Fault;
use forebay_pages::{Checksums, Io, PageError, PagedFile, View};

use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, WAYS, in_a_process_of_its_own, limit, nothing_leaked, polled, threads, until};

const PAGE: u64 = 4096;

async fn pages(file: &PagedFile, from: u64, to: u64) -> Result<View, PageError> {
    file.read(from * PAGE..to * PAGE).await
}

/// Writes what a file of this seed has there into one that exists.
fn overwrite(path: &Path, seed: u64, from: u64, to: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("opened");
    file.write_all_at(&pattern::bytes(seed, from, to), from)
        .expect("written");
}

#[tokio::test]
async fn an_error_on_one_page_of_a_run_is_that_pages_readers_only() {
    let (_folder, path) = pattern::file(1, 64 * PAGE + 5);
    for io in WAYS {
        let (trouble, builder) = Trouble::pool(io, 64);
        let pool = builder.build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        trouble.bad(vec![5 * PAGE + 77]);
        let gate = trouble.gate();
        let reader = |from, to| {
            let file = file.clone();
            tokio::spawn(async move { pages(&file, from, to).await })
        };
        let all = reader(0, 16);
        trouble.arrived(1).await;
        let others = [reader(5, 6), reader(4, 6), reader(4, 5), reader(6, 9), reader(0, 5)];
        until("all to join", || pool.stats().joined >= 1 + 2 + 1 + 3 + 5).await;
        drop(gate);
        match all.await.expect("no panic").expect_err("it wanted the bad page") {
            PageError::Io {
                path: of,
                offset,
                length,
                cause,
            } => {
                assert_eq!((&*of, offset, length), (path.as_path(), 5 * PAGE, PAGE));
                assert_eq!(cause.raw_os_error(), Some(libc::EIO));
            }
            other => panic!("{other}"),
        }
        let mut outcomes = Vec::new();
        for other in others {
            outcomes.push(other.await.expect("no panic"));
        }
        for (outcome, is_good) in outcomes.iter().zip([false, false, true, true, true]) {
            assert_eq!(outcome.is_ok(), is_good, "{outcome:?}");
            outcome.iter().for_each(|view| pattern::check(view, 1));
        }
        drop(outcomes);
        // One I/O for all, then one a page; the bad one's memory was given back.
        assert_eq!(
            (pool.stats().runs, pool.stats().resident_bytes),
            (17, 15 * PAGE),
            "{io:?}"
        );
        // Nothing is remembered: the next read tries again.
        assert!(pages(&file, 5, 6).await.is_err());
        trouble.over();
        pattern::check(&pages(&file, 0, 16).await.expect("well again"), 1);
        // The tail alone, which is a page and less.
        trouble.bad(vec![64 * PAGE]);
        assert!(file.read(64 * PAGE..).await.is_err());
        trouble.over();
        pattern::check(&file.read(64 * PAGE..).await.expect("well again"), 1);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn a_bad_page_in_a_gap_is_nobodys_error() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    for io in WAYS {
        let (trouble, builder) = Trouble::pool(io, 64);
        let pool = builder.max_gap_bytes(4 * PAGE).build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        trouble.bad(vec![11 * PAGE]);
        let views = file
            .read_many([10 * PAGE..11 * PAGE, 13 * PAGE..14 * PAGE])
            .await
            .expect("both are good");
        views.iter().for_each(|view| pattern::check(view, 1));
        assert!(file.read_resident(11 * PAGE..12 * PAGE).expect("in the file").is_none());
        assert_eq!(pool.stats().resident_bytes, 3 * PAGE);
        drop(views);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn short_reads_are_continued() {
    let (_folder, path) = pattern::file(1, 40 * PAGE + 1234);
    for io in WAYS {
        for direct in [true, false] {
            for bytes in [1, 4095, 4096, 5000, 12288] {
                let (trouble, builder) = Trouble::pool(io, 64);
                let pool = builder.direct(direct).build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                trouble.rule(move |_, _| Some(Fault::Short(bytes)));
                pattern::check(&pages(&file, 3, 4).await.expect("read"), 1);
                pattern::check(&file.read(38 * PAGE..).await.expect("read"), 1);
                if bytes > 1 {
                    pattern::check(&file.read(..).await.expect("read"), 1);
                }
                nothing_leaked(&pool).await;
            }
        }
    }
}

#[tokio::test]
async fn a_reader_who_leaves_at_any_point_harms_nobody() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    for io in WAYS {
        let (trouble, builder) = Trouble::pool(io, 8);
        let pool = builder.max_run_bytes(2 * PAGE).build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        trouble.rule(|offset, _| Some(Fault::Delay(Duration::from_millis(offset / PAGE % 3))));
        // The reader waits for memory, which is held, and then for three runs; another wants some of the same.
        let mut went_through = 0;
        for polls in 0.. {
            let held = pages(&file, 40, 46).await.expect("read");
            let leaver = tokio::spawn({
                let file = file.clone();
                async move {
                    let outcome = polled(file.read_many([PAGE..3 * PAGE, 5 * PAGE..8 * PAGE]), polls).await;
                    let views = outcome.map(|views| views.expect("nothing is wrong with it"));
                    views.iter().flatten().for_each(|view| pattern::check(view, 1));
                    views.is_some()
                }
            });
            let stayer = tokio::spawn({
                let file = file.clone();
                async move { pages(&file, 2, 7).await }
            });
            let prefetcher = tokio::spawn({
                let file = file.clone();
                async move { polled(file.prefetch(6 * PAGE..9 * PAGE), polls).await }
            });
            tokio::task::yield_now().await;
            drop(held);
            let went = tokio::time::timeout(PATIENCE, leaver)
                .await
                .expect("in time")
                .expect("no panic");
            let view = tokio::time::timeout(PATIENCE, stayer)
                .await
                .expect("in time")
                .expect("no panic");
            pattern::check(&view.expect("nothing is wrong with it"), 1);
            prefetcher.await.expect("no panic");
            went_through += u32::from(went);
            nothing_leaked(&pool).await;
            // Some more, since not every run of it needs as many.
            if went_through == 4 {
                assert!(polls > 4, "it was dropped while it waited");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_run_that_nobody_wants_any_more_is_not_begun() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    let (trouble, builder) = Trouble::pool(Io::Threads, 32);
    let pool = builder.depth(1).build().expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    let gate = trouble.gate();
    let first = tokio::spawn({
        let file = file.clone();
        async move { pages(&file, 0, 2).await }
    });
    trouble.arrived(1).await;
    assert!(polled(pages(&file, 10, 14), 1).await.is_none());
    // One of these leaves, and one stays.
    assert!(polled(pages(&file, 20, 24), 1).await.is_none());
    let stayer = tokio::spawn({
        let file = file.clone();
        async move { pages(&file, 22, 23).await }
    });
    until("the stayer to begin or join", || {
        pool.stats().io_queued >= 2 && pool.stats().pinned_bytes == 0
    })
    .await;
    file.prefetch(30 * PAGE..32 * PAGE).await.expect("begun");
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(gate);
    pattern::check(&first.await.expect("no panic").expect("read"), 1);
    pattern::check(&stayer.await.expect("no panic").expect("read"), 1);
    until("what was prefetched", || {
        file.read_resident(30 * PAGE..32 * PAGE).expect("in the file").is_some()
    })
    .await;
    until("the line to end", || {
        pool.stats().io_queued + pool.stats().io_in_flight == 0
    })
    .await;
    let stats = pool.stats();
    assert_eq!(
        (stats.runs, stats.resident_bytes, stats.read_bytes),
        (3, 8 * PAGE, 8 * PAGE)
    );
    // What was called off is loaded when somebody wants it.
    pattern::check(&pages(&file, 10, 14).await.expect("read"), 1);
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn a_file_that_is_cut_short_is_told_to_those_who_want_what_is_gone() {
    for io in WAYS {
        let (_folder, path) = pattern::file(1, 16 * PAGE);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        let held = pages(&file, 12, 14).await.expect("read");
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("opened")
            .set_len(2 * PAGE + 100)
            .expect("cut");
        pattern::check(&pages(&file, 0, 2).await.expect("it is there"), 1);
        for (from, to, gone) in [(5, 6, 5 * PAGE), (0, 8, 2 * PAGE + 100), (2, 3, 2 * PAGE + 100)] {
            match pages(&file, from, to).await.expect_err("it is gone") {
                PageError::Truncated { path: of, offset } => {
                    assert!(*of == *path && offset >= gone && offset < to * PAGE, "{offset}, {gone}");
                }
                other => panic!("{other}"),
            }
        }
        pattern::check(&held, 1);
        let other = pool.open(&path).await.expect("opened");
        assert_eq!(other.len(), 2 * PAGE + 100);
        file.invalidate(..).await.expect("it has its name still");
        assert_eq!(file.len(), 2 * PAGE + 100);
        pattern::check(&file.read(..).await.expect("read"), 1);
        match pages(&file, 2, 3).await.expect_err("behind its end") {
            PageError::PastEnd { end, file_length, .. } => assert_eq!((end, file_length), (3 * PAGE, 2 * PAGE + 100)),
            other => panic!("{other}"),
        }
        pattern::check(&held, 1);
        drop(held);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn a_file_that_has_grown_is_as_long_as_it_was_until_it_is_invalidated() {
    for io in WAYS {
        let (_folder, path) = pattern::file(1, 3 * PAGE + 100);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let (file, other) = (
            pool.open(&path).await.expect("opened"),
            pool.open(&path).await.expect("opened"),
        );
        let before = file.read(..).await.expect("read");
        overwrite(&path, 1, 3 * PAGE + 100, 5 * PAGE + 7);
        pool.clear();
        assert!(matches!(pages(&other, 0, 4).await, Err(PageError::PastEnd { .. })));
        pattern::check(&file.read(..).await.expect("read"), 1);
        file.invalidate(0..0).await.expect("there");
        // Opening it anew would notice the change, and is last.
        assert_eq!((file.len(), other.len()), (5 * PAGE + 7, 5 * PAGE + 7));
        for handle in [&file, &other, &pool.open(&path).await.expect("opened")] {
            assert_eq!(handle.len(), 5 * PAGE + 7);
            pattern::check(&handle.read(..).await.expect("read"), 1);
        }
        pattern::check(&before, 1);
        drop(before);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_is_read_on_until_it_is_invalidated() {
    for io in WAYS {
        let (folder, path) = pattern::file(1, 16 * PAGE);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let (file, other) = (
            pool.open(&path).await.expect("opened"),
            pool.open(&path).await.expect("opened"),
        );
        let held = pages(&file, 0, 1).await.expect("read");
        let next = folder.path().join("next");
        pattern::write(&next, 2, 17 * PAGE);
        fs::rename(&next, &path).expect("replaced");
        // What was in memory, and what was not.
        pattern::check(&pages(&file, 0, 4).await.expect("the old one"), 1);
        let opened = pool.open(&path).await.expect("opened");
        pattern::check(&opened.read(..).await.expect("the new one"), 2);
        file.invalidate(..).await.expect("there");
        assert_eq!((file.len(), other.len()), (17 * PAGE, 16 * PAGE));
        pattern::check(&file.read(..).await.expect("the new one"), 2);
        pattern::check(&other.read(..).await.expect("the old one"), 1);
        pattern::check(&held, 1);
        drop(held);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn a_file_that_is_deleted_is_read_on() {
    for io in WAYS {
        let (_folder, path) = pattern::file(1, 16 * PAGE);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        let held = pages(&file, 0, 1).await.expect("read");
        fs::remove_file(&path).expect("deleted");
        let not_found = |error: PageError| match error {
            PageError::File { path: of, cause } => {
                assert_eq!((&*of, cause.kind()), (path.as_path(), std::io::ErrorKind::NotFound));
            }
            other => panic!("{other}"),
        };
        not_found(pool.open(&path).await.expect_err("it has no name"));
        for _ in 0..2 {
            not_found(file.invalidate(..).await.expect_err("it has no name"));
            assert!(
                file.read_resident(0..PAGE).expect("in the file").is_none(),
                "dropped in any case"
            );
            pattern::check(&file.read(..).await.expect("open still"), 1);
        }
        pattern::check(&held, 1);
        drop(held);
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn what_is_changed_in_place_is_read_after_it_was_invalidated_by_all_and_views_keep_the_old() {
    for io in WAYS {
        let (_folder, path) = pattern::file(1, 16 * PAGE);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let (file, other) = (
            pool.open(&path).await.expect("opened"),
            pool.open(&path).await.expect("opened"),
        );
        for (seed, is_held) in [(2, false), (3, true), (4, true), (5, false)] {
            let held = file.read(..).await.expect("read");
            let before = held.to_vec();
            let held = is_held.then_some(held);
            overwrite(&path, seed, 4 * PAGE, 8 * PAGE);
            file.invalidate(4 * PAGE..8 * PAGE).await.expect("there");
            for handle in [&other, &file] {
                pattern::check(&pages(handle, 4, 8).await.expect("read"), seed);
                pattern::check(&pages(handle, 0, 4).await.expect("read"), 1);
            }
            if let Some(held) = &held {
                assert_eq!(**held, *before);
            }
            // What is known now is what it is: it is found again.
            let misses = pool.stats().misses;
            pattern::check(
                &pages(&pool.open(&path).await.expect("opened"), 4, 8)
                    .await
                    .expect("read"),
                seed,
            );
            assert_eq!(pool.stats().misses, misses);
        }
        // Opening it notices a change, too.
        overwrite(&path, 6, 0, 4 * PAGE);
        let opened = pool.open(&path).await.expect("opened");
        pattern::check(&pages(&opened, 0, 4).await.expect("read"), 6);
        pattern::check(&pages(&file, 0, 4).await.expect("read"), 6);
        match file.invalidate(Range::backwards()).await.expect_err("refused") {
            PageError::Backwards { start, end } => assert_eq!((start, end), (2, 1)),
            other => panic!("{other}"),
        }
        nothing_leaked(&pool).await;
    }
}

/// A range that no literal may be.
struct Range;

impl Range {
    fn backwards() -> std::ops::Range<u64> {
        let (start, end) = (2, 1);
        start..end
    }
}

#[tokio::test]
async fn a_load_that_began_before_the_change_does_not_outlive_the_invalidation() {
    let (_folder, path) = pattern::file(1, 16 * PAGE);
    let (trouble, builder) = Trouble::pool(Io::Threads, 64);
    let pool = builder.build().expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    // The first attempt brings the first half of the page, and stands at the gate before it goes on.
    trouble.rule(|_, length| (length == 8 * PAGE).then_some(Fault::Short(4 * PAGE as usize)));
    let gate = trouble.gate();
    let early = tokio::spawn({
        let file = file.clone();
        async move { pages(&file, 0, 8).await }
    });
    trouble.arrived(1).await;
    overwrite(&path, 2, 0, 8 * PAGE);
    file.invalidate(..).await.expect("there");
    // This one does not join it.
    let late = tokio::spawn({
        let file = file.clone();
        async move { pages(&file, 0, 8).await }
    });
    trouble.arrived(2).await;
    drop(gate);
    pattern::check(&late.await.expect("no panic").expect("read"), 2);
    early.await.expect("no panic").expect("read");
    until("the old pages to go", || pool.stats().resident_bytes == 8 * PAGE).await;
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn what_is_no_file_is_refused_by_name() {
    let (folder, path) = pattern::file(1, 0);
    let pool = Trouble::pool(Io::Auto, 8).1.build().expect("a pool");
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("mkfifo");
    assert!(made.success());
    for (what, kind) in [
        (folder.path().to_path_buf(), std::io::ErrorKind::IsADirectory),
        (folder.path().join("none"), std::io::ErrorKind::NotFound),
        (path.join("below"), std::io::ErrorKind::NotADirectory),
        (pipe, std::io::ErrorKind::InvalidInput),
    ] {
        match pool.open(&what).await.expect_err("refused") {
            PageError::File { path, cause } => assert_eq!((&*path, cause.kind()), (what.as_path(), kind)),
            other => panic!("{other}"),
        }
    }
    // A file of nothing is one.
    let file = pool.open(&path).await.expect("opened");
    assert!(file.read(..).await.expect("nothing").is_empty());
    assert!(matches!(
        file.read(0..1).await,
        Err(PageError::PastEnd { file_length: 0, .. })
    ));
    assert!(matches!(
        file.read(Range::backwards()).await,
        Err(PageError::PastEnd { .. })
    ));
    nothing_leaked(&pool).await;
}

/// Root may do what this process, which ends with the test, is to be refused.
fn become_nobody() {
    // SAFETY: calls without pointers.
    let is_nobody = unsafe { libc::geteuid() != 0 || libc::setuid(65534) == 0 };
    assert!(is_nobody);
}

fn block_on<F: Future<Output = ()>>(future: F) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future);
}

#[test]
fn a_file_that_others_may_not_read_is_refused() {
    // Root may read everything, so another user asks.
    let folder = pattern::folder();
    in_a_process_of_its_own("faults::a_file_that_others_may_not_read_is_refused", || {
        block_on(async {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join("data");
            pattern::write(&path, 1, PAGE);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("set");
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("set");
            become_nobody();
            let pool = Trouble::pool(Io::Auto, 8).1.build().expect("a pool");
            match pool.open(&path).await.expect_err("refused") {
                PageError::File { cause, .. } => assert_eq!(cause.kind(), std::io::ErrorKind::PermissionDenied),
                other => panic!("{other}"),
            }
        });
    });
}

#[test]
fn files_that_nobody_reads_are_closed_for_those_that_are_opened() {
    in_a_process_of_its_own(
        "faults::files_that_nobody_reads_are_closed_for_those_that_are_opened",
        || {
            block_on(async {
                let folder = pattern::folder();
                for file in 0..100 {
                    pattern::write(&folder.path().join(file.to_string()), file, 4 * PAGE);
                }
                for io in WAYS {
                    let pool = Trouble::pool(io, 1024).1.build().expect("a pool");
                    let kept = pool.open(folder.path().join("0")).await.expect("opened");
                    let held = pages(&pool.open(folder.path().join("1")).await.expect("opened"), 0, 1)
                        .await
                        .expect("read");
                    let open = fs::read_dir("/proc/self/fd").expect("Linux").count() as u64;
                    limit(libc::RLIMIT_NOFILE, open + 12);
                    for round in 0..2 {
                        for seed in 2..100 {
                            let file = pool.open(folder.path().join(seed.to_string())).await;
                            let file = file.unwrap_or_else(|error| panic!("{io:?}, round {round}: {error}"));
                            pattern::check(&file.read(..).await.expect("read"), seed);
                        }
                    }
                    pattern::check(&kept.read(..).await.expect("open still"), 0);
                    pattern::check(&held, 1);
                    // All in use: then it is an error, and says which.
                    let mut opened = Vec::new();
                    let refused = loop {
                        match pool.open(folder.path().join(opened.len().to_string())).await {
                            Ok(file) => opened.push(file),
                            Err(error) => break error,
                        }
                    };
                    match refused {
                        PageError::File { cause, .. } => assert_eq!(cause.raw_os_error(), Some(libc::EMFILE)),
                        other => panic!("{other}"),
                    }
                    opened.clear();
                    pool.open(folder.path().join("99")).await.expect("there is room again");
                    drop((held, kept));
                    nothing_leaked(&pool).await;
                    drop(pool);
                    limit(libc::RLIMIT_NOFILE, 1024);
                }
            });
        },
    );
}

#[test]
fn a_file_larger_than_the_address_space_is_refused() {
    in_a_process_of_its_own("faults::a_file_larger_than_the_address_space_is_refused", || {
        block_on(async {
            let (_folder, path) = pattern::file(1, 8 * PAGE);
            let pool = Trouble::pool(Io::Auto, 16)
                .1
                .page_size(1 << 20)
                .memory(4 << 20)
                .build()
                .expect("a pool");
            let small = pool.open(&path).await.expect("opened");
            pattern::check(&small.read(..).await.expect("read"), 1);
            let (_large_folder, large) = pattern::file(1, 0);
            fs::OpenOptions::new()
                .write(true)
                .open(&large)
                .expect("opened")
                .set_len(1 << 40)
                .expect("holes cost nothing");
            let pages: u64 = fs::read_to_string("/proc/self/statm")
                .expect("Linux")
                .split(' ')
                .next()
                .and_then(|pages| pages.parse().ok())
                .expect("pages");
            limit(libc::RLIMIT_AS, pages * 4096 + (512 << 20));
            match pool.open(&large).await.expect_err("refused") {
                PageError::AddressSpace { path: of, length, .. } => {
                    assert_eq!((&*of, length), (large.as_path(), 1 << 40));
                }
                other => panic!("{other}"),
            }
            // Nothing else is harmed, and nothing of it is left.
            pool.clear();
            pattern::check(&small.read(..).await.expect("read"), 1);
            nothing_leaked(&pool).await;
        });
    });
}

#[test]
fn without_memory_that_may_be_locked_it_reads_all_the_same() {
    in_a_process_of_its_own(
        "faults::without_memory_that_may_be_locked_it_reads_all_the_same",
        || {
            limit(libc::RLIMIT_MEMLOCK, 0);
            become_nobody();
            let folder = tempfile::TempDir::new_in("/dev/shm").expect("a folder");
            let path = folder.path().join("data");
            pattern::write(&path, 1, 64 * PAGE);
            block_on(async {
                let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                for from in 0..56 {
                    pattern::check(&pages(&file, from, from + 8).await.expect("read"), 1);
                }
                nothing_leaked(&pool).await;
            });
        },
    );
}

#[test]
fn a_pool_that_is_dropped_while_reads_run_serves_them_and_ends() {
    in_a_process_of_its_own(
        "faults::a_pool_that_is_dropped_while_reads_run_serves_them_and_ends",
        || {
            block_on(async {
                let (_folder, path) = pattern::file(1, 64 * PAGE);
                for io in WAYS {
                    let (trouble, builder) = Trouble::pool(io, 16);
                    let pool = builder.depth(1).max_run_bytes(2 * PAGE).build().expect("a pool");
                    let file = pool.open(&path).await.expect("opened");
                    let gate = trouble.gate();
                    let reader = |from| {
                        let file = file.clone();
                        tokio::spawn(async move {
                            let view = pages(&file, from, from + 8).await.expect("nothing is wrong with it");
                            pattern::check(&view, 1);
                        })
                    };
                    // One runs, one waits in line, one waits for memory, one begins and leaves.
                    let (runs, queued, waits) = (reader(0), reader(8), reader(20));
                    trouble.arrived(1).await;
                    until("one to wait", || pool.stats().waits == 1).await;
                    assert!(polled(pages(&file, 40, 41), 1).await.is_none());
                    drop((pool, file));
                    drop(gate);
                    for reader in [runs, queued, waits] {
                        tokio::time::timeout(PATIENCE, reader)
                            .await
                            .expect("in time")
                            .expect("right bytes");
                    }
                    until("all threads of the pool to end", || {
                        ["forebay-pages", "forebay-sweeper"]
                            .iter()
                            .all(|name| threads(name).is_empty())
                    })
                    .await;
                }
            });
        },
    );
}

#[test]
fn a_runtime_that_is_shut_down_while_reads_run_leaves_nothing_behind() {
    let (_folder, path) = pattern::file(1, 64 * PAGE);
    for io in WAYS {
        let (trouble, builder) = Trouble::pool(io, 16);
        let pool = builder.max_run_bytes(2 * PAGE).build().expect("a pool");
        let gate = trouble.gate();
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let file = runtime.block_on(async {
            let file = pool.open(&path).await.expect("opened");
            for from in [0, 4, 8, 30, 40] {
                let file = file.clone();
                tokio::spawn(async move { pages(&file, from, from + 8).await });
            }
            trouble.arrived(1).await;
            until("some to wait", || pool.stats().waits >= 2).await;
            file
        });
        runtime.shutdown_timeout(PATIENCE);
        block_on(async {
            let reader = tokio::spawn({
                let file = file.clone();
                async move { pages(&file, 1, 17).await }
            });
            drop(gate);
            let view = tokio::time::timeout(PATIENCE, reader)
                .await
                .expect("in time")
                .expect("no panic");
            pattern::check(&view.expect("read"), 1);
            drop(view_of(&file, 50).await);
            nothing_leaked(&pool).await;
        });
    }
}

async fn view_of(file: &PagedFile, page: u64) -> View {
    let view = pages(file, page, page + 1).await.expect("read");
    pattern::check(&view, 1);
    view
}

#[tokio::test]
async fn a_page_that_is_not_what_its_checksum_says_is_an_error_for_it_alone() {
    for io in WAYS {
        let (folder, path) = pattern::file(1, 16 * PAGE + 50);
        let side = folder.path().join("data.crc");
        let maker = Trouble::pool(io, 64).1.build().expect("a pool");
        maker.write_checksums(&path, &side).await.expect("made");
        // A bit of page 5, and one of the tail, are not what they were.
        for at in [5 * PAGE + 9, 16 * PAGE + 49] {
            let bytes = pattern::bytes(1, at, at + 1);
            let file = fs::OpenOptions::new().write(true).open(&path).expect("opened");
            file.write_all_at(&[bytes[0] ^ 4], at).expect("written");
        }
        let is_right =
            |page: u64, bytes: &[u8]| bytes == pattern::bytes(1, page * PAGE, page * PAGE + bytes.len() as u64);
        for checksums in [Checksums::side_file(&side), Checksums::function(is_right)] {
            let pool = Trouble::pool(io, 64).1.build().expect("a pool");
            let file = pool.file(&path).checksums(checksums).open().await.expect("opened");
            for (range, bad, length) in [
                (0..16 * PAGE, 5, PAGE),
                (16 * PAGE..file.len(), 16, 50),
                (5 * PAGE..5 * PAGE + 1, 5, PAGE),
            ] {
                match file.read(range).await.expect_err("damaged") {
                    PageError::Checksum {
                        path: of,
                        offset,
                        length: checked,
                    } => {
                        assert_eq!((&*of, offset, checked), (path.as_path(), bad * PAGE, length));
                    }
                    other => panic!("{other}"),
                }
            }
            assert_eq!(pool.stats().resident_bytes, 15 * PAGE, "the good ones");
            pattern::check(&pages(&file, 0, 5).await.expect("good"), 1);
            pattern::check(&pages(&file, 6, 16).await.expect("good"), 1);
            nothing_leaked(&pool).await;
        }
        // Mended, it is read; checked by a side file for another file it is not opened.
        overwrite(&path, 1, 0, 16 * PAGE + 50);
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let file = pool
            .file(&path)
            .checksums(Checksums::side_file(&side))
            .open()
            .await
            .expect("opened");
        pattern::check(&file.read(..).await.expect("mended"), 1);
        let other = folder.path().join("other");
        pattern::write(&other, 1, 3 * PAGE);
        let refused = pool.file(&other).checksums(Checksums::side_file(&side)).open().await;
        assert!(matches!(refused, Err(PageError::Checksums { .. })));
        nothing_leaked(&pool).await;
    }
}

#[tokio::test]
async fn who_asked_for_checked_pages_gets_no_others_after_somebody_else_found_the_file_changed() {
    for io in WAYS {
        let (folder, path) = pattern::file(1, 4 * PAGE);
        let side = folder.path().join("data.crc");
        let maker = Trouble::pool(io, 64).1.build().expect("a pool");
        maker.write_checksums(&path, &side).await.expect("made");
        let pool = Trouble::pool(io, 64).1.build().expect("a pool");
        let checked = pool
            .file(&path)
            .checksums(Checksums::side_file(&side))
            .open()
            .await
            .expect("opened");
        pattern::check(&checked.read(..).await.expect("right"), 1);
        overwrite(&path, 9, PAGE, PAGE + 8);
        // Without a word about checksums.
        let other = pool.open(&path).await.expect("opened");
        assert!(matches!(checked.read(..).await, Err(PageError::Checksum { .. })));
        assert!(matches!(other.read(..).await, Err(PageError::Checksum { .. })));
        // Longer than what the side file is for: nobody can say what is right.
        pattern::write(&path, 1, 6 * PAGE);
        assert!(matches!(pool.open(&path).await, Err(PageError::Checksums { .. })));
        assert!(matches!(checked.invalidate(..).await, Err(PageError::Checksums { .. })));
        nothing_leaked(&pool).await;
    }
}
