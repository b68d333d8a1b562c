//! What the process and its runtime do to a pool: files that cannot be opened, limits of the system, and the end of it all.

use std::fs;
use std::sync::{Arc, Barrier};

use forebay_pages::{Io, PageError};

use crate::faults::{PAGE, pages, view_of};
use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, WAYS, in_a_process_of_its_own, limit, nothing_leaked, polled, threads, until};

/// A range that no literal may be.
pub(crate) struct Range;

impl Range {
    pub(crate) fn backwards() -> std::ops::Range<u64> {
        let (start, end) = (2, 1);
        start..end
    }
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
    in_a_process_of_its_own("environment::a_file_that_others_may_not_read_is_refused", || {
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
        "environment::files_that_nobody_reads_are_closed_for_those_that_are_opened",
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

/// Each looks at the idle files for its own sake, and none takes that for a use.
#[test]
fn files_that_nobody_reads_are_closed_for_many_that_are_opened_at_once() {
    in_a_process_of_its_own(
        "environment::files_that_nobody_reads_are_closed_for_many_that_are_opened_at_once",
        || {
            block_on(async {
                let folder = pattern::folder();
                for file in 0..100 {
                    pattern::write(&folder.path().join(file.to_string()), file, 4 * PAGE);
                }
                for io in WAYS {
                    let pool = Trouble::pool(io, 1024).1.build().expect("a pool");
                    let barrier = Arc::new(Barrier::new(9));
                    let tasks: Vec<_> = (0..8_u64)
                        .map(|task| {
                            let (pool, folder) = (pool.clone(), folder.path().to_owned());
                            let barrier = Arc::clone(&barrier);
                            std::thread::spawn(move || {
                                block_on(async {
                                    barrier.wait();
                                    barrier.wait();
                                    for round in 0..300 {
                                        let seed = (round * (2 * task + 1) + 13 * task) % 100;
                                        let file = pool.open(folder.join(seed.to_string())).await;
                                        let file = file.unwrap_or_else(|error| panic!("{task}, {round}: {error}"));
                                        pattern::check(&file.read(..).await.expect("read"), seed);
                                    }
                                });
                            })
                        })
                        .collect();
                    // What each needs to run is there.
                    barrier.wait();
                    let open = fs::read_dir("/proc/self/fd").expect("Linux").count() as u64;
                    limit(libc::RLIMIT_NOFILE, open + 20);
                    barrier.wait();
                    for task in tasks {
                        task.join().expect("all are opened");
                    }
                    drop(pool);
                    limit(libc::RLIMIT_NOFILE, 1024);
                }
            });
        },
    );
}

#[test]
fn a_file_larger_than_the_address_space_is_refused() {
    in_a_process_of_its_own("environment::a_file_larger_than_the_address_space_is_refused", || {
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
        "environment::without_memory_that_may_be_locked_it_reads_all_the_same",
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
        "environment::a_pool_that_is_dropped_while_reads_run_serves_them_and_ends",
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
fn a_view_outlives_its_pool_without_keeping_the_threads() {
    in_a_process_of_its_own(
        "environment::a_view_outlives_its_pool_without_keeping_the_threads",
        || {
            block_on(async {
                let (_folder, path) = pattern::file(1, 64 * PAGE);
                for io in WAYS {
                    let pool = Trouble::pool(io, 16).1.build().expect("a pool");
                    let file = pool.open(&path).await.expect("opened");
                    let view = pages(&file, 3, 9).await.expect("read");
                    drop((pool, file));
                    until("all threads of the pool to end", || {
                        ["forebay-pages", "forebay-sweeper"]
                            .iter()
                            .all(|name| threads(name).is_empty())
                    })
                    .await;
                    pattern::check(&view, 1);
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
