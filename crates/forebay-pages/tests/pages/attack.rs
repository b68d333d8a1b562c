//! What a hostile user, a hostile file or a hostile moment could do to a pool, and must not.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_pages::{Checksums, Io, PagePool};

use crate::pattern;
use crate::stress::resident;
use crate::trouble::{PATIENCE, Trouble, WAYS, in_a_process_of_its_own, nothing_leaked, threads, until};

const PAGE: u64 = 4096;

/// How many descriptors of this process lead to such a file.
fn descriptors_of(path: &str) -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("Linux")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy() == path)
        .count()
}

/// A file of this length without a byte in it.
fn sparse(path: &Path, length: u64) {
    fs::File::create(path)
        .expect("created")
        .set_len(length)
        .expect("holes cost nothing");
}

fn block_on<F: Future<Output = ()>>(future: F) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(2 * PATIENCE, future).await.expect("it hangs") });
}

#[test]
fn a_view_of_what_was_replaced_that_outlives_its_pool_leaves_nothing() {
    in_a_process_of_its_own(
        "attack::a_view_of_what_was_replaced_that_outlives_its_pool_leaves_nothing",
        || {
            block_on(async {
                let (_folder, path) = pattern::file(1, 8 * PAGE);
                let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                let view = file.read(..).await.expect("read");
                // The view holds its pages, so that the mapping is replaced.
                file.invalidate(..).await.expect("it is there");
                drop((file, pool));
                until("the pool's threads to end", || threads("forebay-sweeper").is_empty()).await;
                pattern::check(&view, 1);
                drop(view);
                assert_eq!(
                    descriptors_of(&path.to_string_lossy()),
                    0,
                    "the file is open for nobody"
                );
            });
        },
    );
}

#[test]
fn a_file_of_more_pages_than_there_is_memory_for_words_is_opened_or_refused() {
    in_a_process_of_its_own(
        "attack::a_file_of_more_pages_than_there_is_memory_for_words_is_opened_or_refused",
        || {
            block_on(async {
                let folder = pattern::folder();
                let path = folder.path().join("huge");
                // Words for 32 GiB, if ext4 takes it.
                let length = (16 << 40) - 2 * PAGE;
                sparse(&path, length);
                let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                for at in [0, length / 2, length - 1] {
                    let view = file.read(at..length.min(at + 10)).await.expect("read");
                    assert!(view.iter().all(|byte| *byte == 0));
                }
                nothing_leaked(&pool).await;
            });
        },
    );
}

#[test]
fn what_a_function_of_checksums_owns_may_be_a_file_of_the_same_pool() {
    in_a_process_of_its_own(
        "attack::what_a_function_of_checksums_owns_may_be_a_file_of_the_same_pool",
        || {
            block_on(async {
                let (folder, path) = pattern::file(1, 8 * PAGE);
                let sums_path = folder.path().join("sums");
                pattern::write(&sums_path, 2, PAGE);
                let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
                let sums = pool.open(&sums_path).await.expect("opened");
                let checksums = Checksums::function(move |_, _| sums.len() == PAGE);
                let file = pool.file(&path).checksums(checksums).open().await.expect("opened");
                pattern::check(&file.read(..).await.expect("read"), 1);
                drop(file);
                // A landing tells its readers first and gives its pins back after that: what is pinned, clearing leaves.
                until("I/O to end", || {
                    let stats = pool.stats();
                    stats.io_in_flight + stats.io_queued == 0 && stats.pinned_bytes == 0
                })
                .await;
                let clearing = tokio::task::spawn_blocking({
                    let pool = pool.clone();
                    move || pool.clear()
                });
                tokio::time::timeout(Duration::from_secs(20), clearing)
                    .await
                    .unwrap_or_else(|_| {
                        // A thread that hangs would keep the runtime from ending.
                        eprintln!("clear waits for itself");
                        std::process::abort()
                    })
                    .expect("no panic");
                until("both files to be closed", || {
                    descriptors_of(&path.to_string_lossy()) + descriptors_of(&sums_path.to_string_lossy()) == 0
                })
                .await;
            });
        },
    );
}

#[tokio::test]
async fn a_side_file_that_changed_with_its_file_counts_after_an_invalidation() {
    let (folder, path) = pattern::file(1, 8 * PAGE);
    let side = folder.path().join("side");
    let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
    pool.write_checksums(&path, &side).await.expect("written");
    let open = || pool.file(&path).checksums(Checksums::side_file(&side)).open();
    let file = open().await.expect("opened");
    pattern::check(&file.read(..).await.expect("read"), 1);
    let writable = fs::OpenOptions::new().write(true).open(&path).expect("opened");
    writable
        .write_all_at(&pattern::bytes(2, 0, 8 * PAGE), 0)
        .expect("written");
    pool.write_checksums(&path, &side).await.expect("written");
    file.invalidate(..).await.expect("it is there");
    pattern::check(&file.read(..).await.expect("right by the new side file"), 2);
    pattern::check(&open().await.expect("opened").read(..).await.expect("read"), 2);
}

/// Who invalidates reads the file as it is now, though another opened the file that has the name now before it changed once more.
#[tokio::test]
async fn an_invalidation_that_leads_to_another_file_drops_what_others_have_of_that() {
    let (folder, path) = pattern::file(1, 8 * PAGE);
    let next = folder.path().join("next");
    pattern::write(&next, 2, 8 * PAGE);
    let modified = fs::metadata(&next).expect("there").modified().expect("known");
    let pool = Trouble::pool(Io::Auto, 32).1.build().expect("a pool");
    let file = pool.open(&path).await.expect("opened");
    pattern::check(&file.read(..).await.expect("read"), 1);
    let other = pool.open(&next).await.expect("opened");
    for holds in [false, true] {
        let seed = if holds { 4 } else { 3 };
        let view = other.read(..).await.expect("read");
        let held = holds.then_some(view);
        // Nobody can see this but who is told.
        let writable = fs::OpenOptions::new().write(true).open(&next).expect("opened");
        writable
            .write_all_at(&pattern::bytes(seed, 0, 8 * PAGE), 0)
            .expect("written");
        writable.set_modified(modified).expect("set");
        if !holds {
            fs::rename(&next, &path).expect("renamed");
            fs::hard_link(&path, &next).expect("linked");
        }
        file.invalidate(..).await.expect("it is there");
        pattern::check(&file.read(..).await.expect("read"), seed);
        held.iter().for_each(|view| pattern::check(view, 3));
    }
}

/// Two invalidations of one handle do not undo each other, whichever looks at the file first.
#[test]
fn an_invalidation_does_not_lead_back_to_what_another_has_left() {
    block_on(async {
        let folder = pattern::folder();
        let path = folder.path().join("data");
        pattern::write(&path, 0, PAGE);
        let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        let is_over = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..3)
            .map(|_| {
                let (file, is_over) = (file.clone(), Arc::clone(&is_over));
                tokio::spawn(async move {
                    while !is_over.load(Ordering::Relaxed) {
                        file.invalidate(..).await.expect("it is there");
                    }
                })
            })
            .collect();
        let began = Instant::now();
        let mut seed = 0;
        while began.elapsed() < Duration::from_secs(3) {
            seed += 1;
            let next = folder.path().join("next");
            pattern::write(&next, seed, PAGE);
            fs::rename(&next, &path).expect("renamed");
            file.invalidate(..).await.expect("it is there");
            for _ in 0..3 {
                pattern::check(&file.read(..).await.expect("read"), seed);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        for other in others {
            other.await.expect("no panic");
        }
        nothing_leaked(&pool).await;
    });
}

/// What is read past is not kept, however long the gaps may be.
#[test]
fn reading_past_what_is_there_takes_no_memory_beside_the_pools() {
    in_a_process_of_its_own(
        "attack::reading_past_what_is_there_takes_no_memory_beside_the_pools",
        || {
            block_on(async {
                const PAGES: u64 = 16 << 10;
                let (_folder, path) = pattern::file(1, PAGES * PAGE);
                for io in WAYS {
                    let pool = Trouble::pool(io, 2 * PAGES)
                        .1
                        .max_run_bytes(u64::MAX)
                        .max_gap_bytes(u64::MAX)
                        .build()
                        .expect("a pool");
                    let file = pool.open(&path).await.expect("opened");
                    file.read(PAGE..(PAGES - 1) * PAGE).await.expect("read");
                    let before = resident();
                    let views = file
                        .read_many([0..PAGE, (PAGES - 1) * PAGE..PAGES * PAGE])
                        .await
                        .expect("read");
                    assert!(pool.stats().gap_bytes > 0, "it was tried");
                    views.iter().for_each(|view| pattern::check(view, 1));
                    let more = resident().saturating_sub(before);
                    assert!(more < 8 << 20, "{} MiB for what nobody wants", more >> 20);
                    // What lies between was not touched.
                    pattern::check(&file.read(PAGE..9 * PAGE).await.expect("read"), 1);
                    drop(views);
                    nothing_leaked(&pool).await;
                }
            });
        },
    );
}

#[test]
fn views_of_what_was_replaced_may_come_and_go_by_the_million() {
    in_a_process_of_its_own(
        "attack::views_of_what_was_replaced_may_come_and_go_by_the_million",
        || {
            block_on(async {
                let (_folder, path) = pattern::file(1, 8 * PAGE);
                let pool = Trouble::pool(Io::Auto, 16).1.build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                let view = file.read(..).await.expect("read");
                file.invalidate(..).await.expect("it is there");
                let before = resident();
                let slicers: Vec<_> = (0..3_usize)
                    .map(|number| {
                        let view = view.clone();
                        tokio::task::spawn_blocking(move || {
                            for _ in 0..1_000_000 {
                                drop(view.slice(number * 4096..number * 4096 + 1));
                            }
                        })
                    })
                    .collect();
                let mut most = 0;
                while slicers.iter().any(|slicer| !slicer.is_finished()) {
                    most = most.max(resident());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                assert!(most < before + (4 << 20), "{} KiB more", (most - before) >> 10);
                pattern::check(&view, 1);
                drop(view);
                nothing_leaked(&pool).await;
            });
        },
    );
}

#[test]
fn a_file_that_has_lost_its_name_is_closed_when_nobody_reads_it_any_more() {
    in_a_process_of_its_own(
        "attack::a_file_that_has_lost_its_name_is_closed_when_nobody_reads_it_any_more",
        || {
            block_on(async {
                let (folder, path) = pattern::file(1, 8 * PAGE);
                let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                let deleted = format!("{} (deleted)", path.display());
                let mut replace = 1;
                let mut renew = || {
                    replace += 1;
                    let next = folder.path().join("next");
                    pattern::write(&next, replace, 8 * PAGE);
                    fs::rename(&next, &path).expect("renamed");
                    replace
                };
                // As one who keeps his handle and says that the file has changed.
                pattern::check(&file.read(..).await.expect("read"), 1);
                let seed = renew();
                file.invalidate(..).await.expect("it is there");
                pattern::check(&file.read(..).await.expect("read"), seed);
                until("the first to be closed", || descriptors_of(&deleted) == 0).await;
                // As those who open it each time.
                drop(file);
                let seed = renew();
                let file = pool.open(&path).await.expect("opened");
                pattern::check(&file.read(..).await.expect("read"), seed);
                until("the second to be closed", || descriptors_of(&deleted) == 0).await;
                // A view holds it open.
                let view = file.read(..).await.expect("read");
                drop(file);
                let newest = renew();
                let file = pool.open(&path).await.expect("opened");
                pattern::check(&file.read(..).await.expect("read"), newest);
                pattern::check(&view, seed);
                drop(view);
                nothing_leaked(&pool).await;
                until("the third to be closed", || descriptors_of(&deleted) == 0).await;
            });
        },
    );
}

/// What this process's page tables take, in bytes.
fn tables() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmPTE:")).expect("there");
    let kibibytes: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kibibytes << 10
}

/// Pages that are gone leave no page tables, wherever in the file they were.
#[test]
fn page_tables_go_with_the_pages() {
    in_a_process_of_its_own("attack::page_tables_go_with_the_pages", || {
        block_on(async {
            let folder = pattern::folder();
            let path = folder.path().join("data");
            sparse(&path, 1 << 30);
            let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
            let file = pool.open(&path).await.expect("opened");
            let before = tables();
            for at in (0..1 << 30).step_by(2 << 20) {
                assert!(
                    file.read(at..at + PAGE)
                        .await
                        .expect("read")
                        .iter()
                        .all(|byte| *byte == 0)
                );
            }
            let more = tables().saturating_sub(before);
            assert!(more < (64 + 64) * 4096, "{} KiB for 64 pages", more >> 10);
            nothing_leaked(&pool).await;
            let more = tables().saturating_sub(before);
            assert!(more < 64 * 4096, "{} KiB for no pages", more >> 10);
        });
    });
}

/// Each page far from all others has a page table for itself. What these take beyond a 32nd of the pool's memory, pages lack.
#[test]
fn scattered_pages_take_a_thirty_second_more() {
    const MEMORY: u64 = 256 << 20;
    in_a_process_of_its_own("attack::scattered_pages_take_a_thirty_second_more", || {
        block_on(async {
            let folder = pattern::folder();
            let path = folder.path().join("data");
            // Of 10,000 windows of the address space, of which some 4,000 have a page in memory at a time.
            sparse(&path, 10_000 << 21);
            let pool = PagePool::builder().memory(MEMORY).build().expect("a pool");
            let file = pool.open(&path).await.expect("opened");
            let before = resident() + tables();
            let mut most = 0;
            for batch in 0..100 {
                let places = (batch * 100..(batch + 1) * 100).map(|window| window << 21);
                file.read_many(places.map(|at| at..at + 1)).await.expect("read");
                most = most.max(resident() + tables() - before);
            }
            // And some for the process.
            let limit = MEMORY + MEMORY / 32 + (8 << 20);
            assert!(most < limit, "{} MiB of {}", most >> 20, limit >> 20);
            // A table is a 16th of a page, and a 32nd of all frames is kept free.
            let pages = pool.stats().resident_bytes;
            assert!(pages > MEMORY - MEMORY / 12, "{} MiB of pages", pages >> 20);
            nothing_leaked(&pool).await;
        });
    });
}

/// Where a page is as large as its page table, half of the memory is for tables.
#[test]
fn scattered_pages_are_fewer_for_their_page_tables() {
    const MEMORY: u64 = 32 << 20;
    in_a_process_of_its_own("attack::scattered_pages_are_fewer_for_their_page_tables", || {
        block_on(async {
            let folder = pattern::folder();
            let path = folder.path().join("data");
            sparse(&path, 10_000 << 21);
            let builder = PagePool::builder().memory(MEMORY).page_size(4096);
            let pool = builder.build().expect("a pool");
            let file = pool.open(&path).await.expect("opened");
            let before = tables();
            let used = || pool.stats().resident_bytes + tables().saturating_sub(before);
            let mut most = 0;
            for batch in 0..100 {
                let places = (batch * 100..(batch + 1) * 100).map(|window| window << 21);
                file.read_many(places.map(|at| at..at + 1)).await.expect("read");
                most = most.max(used());
            }
            // And the tables of the words.
            let limit = MEMORY + MEMORY / 32 + MEMORY / 16;
            assert!(most < limit, "{} KiB of {}", most >> 10, limit >> 10);
            // Where all memory is wanted for pages, tables wait for nothing: this is one range, of few tables.
            let all = file.read(..MEMORY).await.expect("read");
            assert!(all.len() as u64 == MEMORY && all.iter().all(|byte| *byte == 0));
            drop(all);
            // And this has as many tables as pages, held together.
            let places = (0..MEMORY >> 12).map(|window| (window << 21) + 8192);
            let held = file.read_many(places.map(|at| at..at + 1)).await.expect("read");
            assert_eq!(held.len() as u64, MEMORY >> 12);
            drop(held);
            nothing_leaked(&pool).await;
        });
    });
}

/// A view of each of many versions of a file holds its page, and little more.
#[test]
fn what_was_replaced_takes_little_more_than_what_is_held_of_it() {
    in_a_process_of_its_own(
        "attack::what_was_replaced_takes_little_more_than_what_is_held_of_it",
        || {
            block_on(async {
                let folder = pattern::folder();
                let path = folder.path().join("data");
                sparse(&path, 1 << 30);
                let pool = PagePool::builder().memory(16 << 20).build().expect("a pool");
                let file = pool.open(&path).await.expect("opened");
                let used = || resident() + tables();
                let before = used();
                let mut held = Vec::new();
                for _ in 0..30 {
                    held.push(file.read(5 << 20..(5 << 20) + 1).await.expect("read"));
                    for at in (0..1 << 30).step_by(2 << 20) {
                        file.read(at..=at).await.expect("read");
                    }
                    file.invalidate(..).await.expect("it is there");
                }
                until("old pages to go", || pool.stats().resident_bytes <= 30 * (64 << 10)).await;
                let more = used().saturating_sub(before);
                // The pages, the words of a file of 16,384 pages a version, and some for the process.
                let most = 30 * ((64 << 10) + 16_384 * 8 + (16 << 10)) + (8 << 20);
                assert!(more < most, "{} KiB of {}", more >> 10, most >> 10);
                held.iter().for_each(|view| assert_eq!(view[..], [0]));
                drop(held);
                nothing_leaked(&pool).await;
            });
        },
    );
}
