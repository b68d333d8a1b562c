//! Files that others change, while they are open here: cut short, grown, replaced, deleted, overwritten in place.

use std::fs;

use forebay_pages::faults::Fault;
use forebay_pages::{Io, PageError};

use crate::environment::Range;
use crate::faults::{PAGE, overwrite, pages};
use crate::pattern;
use crate::trouble::{Trouble, WAYS, nothing_leaked, settled, until};

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
        settled(&path).await;
        let (file, other) = (
            pool.open(&path).await.expect("opened"),
            pool.open(&path).await.expect("opened"),
        );
        for (seed, is_held) in [(2, false), (3, true), (4, true), (5, false)] {
            let held = file.read(..).await.expect("read");
            let before = held.to_vec();
            let held = is_held.then_some(held);
            overwrite(&path, seed, 4 * PAGE, 8 * PAGE);
            settled(&path).await;
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

#[tokio::test]
async fn what_is_changed_in_place_and_given_its_old_time_is_noticed_when_it_is_opened_again() {
    let (_folder, path) = pattern::file(1, 4 * PAGE);
    let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
    let modified = fs::metadata(&path).expect("there").modified().expect("known");
    settled(&path).await;
    for seed in 1..4 {
        let file = pool.open(&path).await.expect("opened");
        pattern::check(&file.read(..).await.expect("read"), seed);
        overwrite(&path, seed + 1, 0, 4 * PAGE);
        let writable = fs::OpenOptions::new().write(true).open(&path).expect("opened");
        writable.set_modified(modified).expect("set");
        settled(&path).await;
    }
}

/// However coarse the file system's times are.
#[tokio::test]
async fn what_is_changed_at_once_after_it_was_read_is_noticed_when_it_is_opened_again() {
    let (_folder, path) = pattern::file(1, PAGE);
    let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
    for seed in 1..500 {
        let file = pool.open(&path).await.expect("opened");
        pattern::check(&file.read(..).await.expect("read"), seed);
        overwrite(&path, seed + 1, 0, PAGE);
    }
    nothing_leaked(&pool).await;
}

#[tokio::test]
async fn a_file_that_has_not_changed_is_found_when_it_is_opened_again() {
    let (_folder, path) = pattern::file(1, 4 * PAGE);
    let pool = Trouble::pool(Io::Auto, 64).1.build().expect("a pool");
    settled(&path).await;
    for _ in 0..3 {
        let file = pool.open(&path).await.expect("opened");
        pattern::check(&file.read(..).await.expect("read"), 1);
    }
    assert_eq!(pool.stats().misses, 4);
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
