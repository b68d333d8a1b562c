//! What goes wrong with I/O is told to those it concerns, and to nobody else: errors of the device, short and slow I/O, readers who
//! leave, wrong checksums.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use forebay_pages::faults::Fault;
use forebay_pages::{Checksums, Io, PageError, PagedFile, View};

use crate::pattern;
use crate::trouble::{PATIENCE, Trouble, WAYS, nothing_leaked, polled, until};

pub(crate) const PAGE: u64 = 4096;

pub(crate) async fn pages(file: &PagedFile, from: u64, to: u64) -> Result<View, PageError> {
    file.read(from * PAGE..to * PAGE).await
}

/// Writes what a file of this seed has there into one that exists.
pub(crate) fn overwrite(path: &Path, seed: u64, from: u64, to: u64) {
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

pub(crate) async fn view_of(file: &PagedFile, page: u64) -> View {
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
