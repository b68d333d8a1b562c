//! Files that the pool makes: every length on every way, in the place of others, with checksums, and nothing left behind.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_pages::{Checksums, Io, PageError, PagePool, PagePoolBuilder};
use futures_util::future::join_all;

use crate::create_cancelled::{Slow, polled};
use crate::pattern;

pub(crate) const PAGE: u64 = 16 << 10;
pub(crate) const RUN: u64 = 4 * PAGE;

pub(crate) fn builder() -> PagePoolBuilder {
    PagePool::builder()
        .memory(64 * PAGE)
        .page_size(PAGE as usize)
        .max_run_bytes(RUN)
}

/// The temporary files in a folder.
pub(crate) fn leftovers(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder)
        .expect("listed")
        .map(|entry| entry.expect("listed").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".forebay-new"))
        .collect()
}

/// Waits until there are no temporary files: they go on threads for blocking.
pub(crate) async fn settled(folder: &Path) {
    for _ in 0..1000 {
        if leftovers(folder).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left behind: {:?}", leftovers(folder));
}

/// Makes a file of this seed and length.
pub(crate) async fn publish(pool: &PagePool, path: &Path, seed: u64, length: u64) -> Result<(), PageError> {
    let mut file = pool.create(path).await?;
    file.write(pattern::bytes(seed, 0, length)).await?;
    file.publish().await
}

/// Panics unless the file on disk is the one of this seed and length.
#[track_caller]
pub(crate) fn check(path: &Path, seed: u64, length: u64) {
    let content = fs::read(path).expect("read");
    assert_eq!(content.len() as u64, length, "{}", path.display());
    assert!(
        content == pattern::bytes(seed, 0, length),
        "{}: other bytes",
        path.display()
    );
}

#[tokio::test]
async fn every_length_is_written_on_every_way() {
    for folder in [
        pattern::folder(),
        tempfile::TempDir::new_in("/dev/shm").expect("a folder in memory"),
    ] {
        let path = folder.path().join("data");
        for (io, direct) in [
            (Io::Auto, true),
            (Io::Threads, true),
            (Io::Auto, false),
            (Io::Threads, false),
        ] {
            let pool = builder().io(io).direct(direct).build().expect("a pool");
            let mut expected = 0;
            for length in [
                0,
                1,
                4095,
                4096,
                4097,
                RUN - 1,
                RUN,
                RUN + 1,
                5 * RUN,
                7 * RUN + 4096 + 77,
            ] {
                // In one piece, and in small ones.
                for step in [length.max(1), 1009] {
                    let bytes = pattern::bytes(length, 0, length);
                    let mut file = pool.create(&path).await.expect("created");
                    for piece in bytes.chunks(step as usize) {
                        file.write(piece).await.expect("written");
                    }
                    assert_eq!(file.len(), length);
                    assert_eq!(leftovers(folder.path()).len(), 1);
                    file.publish().await.expect("published");
                    check(&path, length, length);
                    let read = pool.open(&path).await.expect("opened");
                    assert_eq!(read.len(), length);
                    pattern::check(&read.read(..).await.expect("read"), length);
                    expected += length;
                }
            }
            let stats = pool.stats();
            assert_eq!(
                (stats.published, stats.written_bytes, stats.failures),
                (20, expected, 0)
            );
            assert_eq!(leftovers(folder.path()), [""; 0]);
        }
    }
}

#[tokio::test]
async fn a_file_is_replaced_under_its_readers() {
    let (folder, path) = pattern::file(1, 9 * PAGE + 5);
    let pool = builder().build().expect("a pool");
    let old = pool.open(&path).await.expect("opened");
    let view = old.read(PAGE..3 * PAGE).await.expect("read");
    let mut file = pool.create(&path).await.expect("created");
    file.write(pattern::bytes(2, 0, 7 * PAGE)).await.expect("written");
    // Nothing to be seen yet.
    let before = pool.open(&path).await.expect("opened");
    assert_eq!(before.len(), 9 * PAGE + 5);
    file.publish().await.expect("published");
    pattern::check(&view, 1);
    pattern::check(&old.read(..).await.expect("the old one is open still"), 1);
    let new = pool.open(&path).await.expect("opened");
    assert_eq!(new.len(), 7 * PAGE);
    pattern::check(&new.read(..).await.expect("read"), 2);
    old.invalidate(..).await.expect("invalidated");
    pattern::check(&old.read(..).await.expect("read"), 2);
    pattern::check(&view, 1);
    assert_eq!(leftovers(folder.path()), [""; 0]);
}

#[tokio::test]
async fn two_writers_of_one_name_do_not_meet() {
    let folder = pattern::folder();
    let path = folder.path().join("data");
    let pool = builder().build().expect("a pool");
    let mut first = pool.create(&path).await.expect("created");
    first.write(pattern::bytes(1, 0, RUN + 9)).await.expect("written");
    let mut second = pool.create(&path).await.expect("created");
    assert_eq!(leftovers(folder.path()).len(), 2, "the one that lives is not removed");
    second.write(pattern::bytes(2, 0, 3 * RUN)).await.expect("written");
    second.publish().await.expect("published");
    check(&path, 2, 3 * RUN);
    first.publish().await.expect("published");
    check(&path, 1, RUN + 9);
    let writers = (0..20).map(|seed| {
        let (pool, path) = (pool.clone(), path.clone());
        tokio::spawn(async move { publish(&pool, &path, seed, 2 * RUN + seed).await })
    });
    for ended in join_all(writers).await {
        ended.expect("no panic").expect("published");
    }
    let length = fs::metadata(&path).expect("there").len();
    check(&path, length - 2 * RUN, length);
    assert_eq!(leftovers(folder.path()), [""; 0]);
}

#[tokio::test]
async fn what_is_dropped_leaves_nothing() {
    let (folder, path) = pattern::file(1, 100);
    let pool = builder().build().expect("a pool");
    for runs in [0, 1, 5] {
        let mut file = pool.create(&path).await.expect("created");
        file.write(pattern::bytes(2, 0, runs * RUN)).await.expect("written");
        drop(file);
        settled(folder.path()).await;
    }
    // Where there is no runtime it goes at once.
    let file = pool.create(&path).await.expect("created");
    std::thread::spawn(move || drop(file)).join().expect("no panic");
    assert_eq!(leftovers(folder.path()), [""; 0]);
    check(&path, 1, 100);
    assert_eq!(pool.stats().published, 0);
}

#[tokio::test]
async fn what_the_dead_left_is_removed_and_nothing_else() {
    let folder = pattern::folder();
    let at = |name: &str| folder.path().join(name);
    let dead = [
        ".data.0123456789abcdef.forebay-new",
        ".data.fedcba9876543210.forebay-new",
        ".other.data.0123456789abcdef.forebay-new",
    ];
    let others = [
        ".data.0123456789abcdef.forebay-old",
        ".data.0123456789abcde.forebay-new",
        "..0123456789abcdef.forebay-new",
        ".data.0123456789abcdeg.forebay-new",
        "data.0123456789abcdef.forebay-new",
    ];
    for name in dead.iter().chain(&others) {
        fs::write(at(name), b"something").expect("written");
    }
    let pool = builder().build().expect("a pool");
    let live = pool.create(at("data")).await.expect("created");
    for name in dead {
        assert!(!at(name).exists(), "{name}");
    }
    for name in others {
        assert!(at(name).exists(), "{name}");
    }
    publish(&pool, &at("data"), 1, 5).await.expect("published");
    // Not at every turn, since directories can be large.
    fs::write(at(dead[0]), b"something").expect("written");
    publish(&pool, &at("data"), 1, 5).await.expect("published");
    assert!(at(dead[0]).exists());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    publish(&pool, &at("data"), 1, 5).await.expect("published");
    assert!(!at(dead[0]).exists());
    live.publish().await.expect("published: it was left alone");
    // As long as names can be.
    let long = at(&"n".repeat(255));
    publish(&pool, &long, 1, 5).await.expect("published");
    check(&long, 1, 5);
}

#[tokio::test]
async fn a_side_file_comes_with_the_file() {
    let folder = pattern::folder();
    let (path, side) = (folder.path().join("data"), folder.path().join("data.crc"));
    let pool = builder().build().expect("a pool");
    for length in [0, 1, PAGE, PAGE + 1, 5 * RUN + 3] {
        let mut file = pool.create(&path).await.expect("created").checksums(&side);
        for piece in pattern::bytes(length, 0, length).chunks(5000) {
            file.write(piece).await.expect("written");
        }
        file.publish().await.expect("published");
        check(&path, length, length);
        let checked = pool
            .file(&path)
            .checksums(Checksums::side_file(&side))
            .open()
            .await
            .expect("opened");
        pattern::check(&checked.read(..).await.expect("read"), length);
    }
    assert_eq!(pool.stats().published, 5);
    // Another file of the same length is not what the side file says.
    pattern::write(&path, 9, 5 * RUN + 3);
    let wrong = pool
        .file(&path)
        .checksums(Checksums::side_file(&side))
        .open()
        .await
        .expect("opened");
    assert!(matches!(wrong.read(..).await, Err(PageError::Checksum { .. })));
    assert_eq!(leftovers(folder.path()), [""; 0]);

    let mut late = pool.create(&path).await.expect("created");
    late.write(b"x").await.expect("written");
    assert!(matches!(
        late.checksums(&side).publish().await,
        Err(PageError::Settings(_))
    ));
    settled(folder.path()).await;
    check(&path, 9, 5 * RUN + 3);
}

#[tokio::test]
async fn a_side_file_that_cannot_be_publishes_nothing() {
    let (folder, path) = pattern::file(1, 100);
    let pool = builder().build().expect("a pool");
    fs::create_dir(folder.path().join("folder")).expect("made");
    for side in ["folder", "nowhere/data.crc"] {
        let mut file = pool
            .create(&path)
            .await
            .expect("created")
            .checksums(folder.path().join(side));
        file.write(b"new").await.expect("written");
        let failed = file.publish().await.expect_err("no such side file");
        assert!(
            matches!(&failed, PageError::File { .. }) && failed.to_string().contains(side),
            "{failed}"
        );
        assert_eq!(leftovers(folder.path()), [""; 0]);
        check(&path, 1, 100);
    }
}

#[tokio::test]
async fn places_where_no_file_can_be_are_told() {
    let folder = pattern::folder();
    let pool = builder().build().expect("a pool");
    fs::create_dir(folder.path().join("folder")).expect("made");
    for place in ["nowhere/data", "folder/..", "/"] {
        let failed = pool.create(folder.path().join(place)).await.expect_err(place);
        assert!(matches!(failed, PageError::File { .. }), "{failed}");
    }
    let taken = folder.path().join("folder");
    let failed = publish(&pool, &taken, 1, 10).await.expect_err("a folder has the name");
    assert!(
        matches!(&failed, PageError::File { path, .. } if **path == *taken),
        "{failed}"
    );
    assert_eq!(leftovers(folder.path()), [""; 0]);
    assert_eq!(pool.stats().failures, 4);
}

#[tokio::test]
async fn two_runs_gather_while_they_are_written_and_no_third() {
    let folder = pattern::folder();
    // Less memory than these writers have on their way: they do not take from it, nor wait for it.
    let pool = builder()
        .memory(2 * RUN)
        .faults(Arc::new(Slow(Duration::from_millis(500))));
    let pool = pool.build().expect("a pool");
    let mut files = Vec::new();
    for number in 0..8 {
        files.push(
            pool.create(folder.path().join(number.to_string()))
                .await
                .expect("created"),
        );
    }
    for file in &mut files {
        let two_runs = polled(file.write(pattern::bytes(1, 0, 2 * RUN)), 1, true).await;
        two_runs.expect("it does not wait").expect("taken");
    }
    for file in &mut files {
        assert!(polled(file.write(b"x"), 1, true).await.is_none(), "it waits");
    }
    assert_eq!(pool.stats().resident_bytes, 0);
    drop(files);
    settled(folder.path()).await;
}
