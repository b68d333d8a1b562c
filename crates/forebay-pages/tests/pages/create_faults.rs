//! A new file and a disk that fails: what is told, what is left (nothing), and in which order a file becomes durable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_pages::faults::{Fault, Faults};
use forebay_pages::{Io, PageError};
use parking_lot::Mutex;

use crate::create::{PAGE, RUN, builder, check, leftovers, publish};
use crate::pattern;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What may go wrong: asked with the path, where, and how many bytes; 0 for a sync.
struct On<F>(F);

impl<F: Fn(&Path, u64, u64) -> Option<Fault> + Send + Sync> Faults for On<F> {
    fn fault(&self, path: &Path, write: bool, offset: u64, length: u64) -> Option<Fault> {
        if write { (self.0)(path, offset, length) } else { None }
    }
}

fn on(what: impl Fn(&Path, u64, u64) -> Option<Fault> + Send + Sync + 'static) -> Arc<dyn Faults> {
    Arc::new(On(what))
}

fn is_temporary(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "forebay-new")
}

#[tokio::test]
async fn a_write_that_fails_gives_the_file_up() {
    let (folder, path) = pattern::file(1, 1000);
    for io in [Io::Auto, Io::Threads] {
        for (bad, number) in [(0, EIO), (2, ENOSPC), (6, ENOSPC)] {
            // The last one is in the tail.
            let faults = on(move |_, offset, length| {
                (length > 0 && (offset..offset + length).contains(&(bad * RUN))).then_some(Fault::Error(number))
            });
            let pool = builder().io(io).faults(faults).build().expect("a pool");
            let failed = publish(&pool, &path, 2, 6 * RUN + 5).await.expect_err("a bad place");
            let PageError::Io {
                path: at,
                offset,
                cause,
                ..
            } = &failed
            else {
                panic!("{failed}")
            };
            assert_eq!(
                (&**at, *offset, cause.raw_os_error()),
                (&*path, bad * RUN, Some(number))
            );
            // Space that is short is free again when it is told.
            assert_eq!(leftovers(folder.path()), [""; 0]);
            check(&path, 1, 1000);
            assert_eq!(pool.stats().published, 0);

            // Whoever does not look at the first error gets it again.
            let mut file = pool.create(&path).await.expect("created");
            let first = loop {
                if let Err(error) = file.write(pattern::bytes(2, 0, RUN)).await {
                    break error;
                }
            };
            assert_eq!(leftovers(folder.path()), [""; 0]);
            assert_eq!(
                file.write(b"more").await.expect_err("given up").to_string(),
                first.to_string()
            );
            assert_eq!(
                file.publish().await.expect_err("given up").to_string(),
                first.to_string()
            );
            check(&path, 1, 1000);
        }
    }
}

#[tokio::test]
async fn a_sync_that_fails_gives_the_file_up() {
    let (folder, path) = pattern::file(1, 1000);
    for io in [Io::Auto, Io::Threads] {
        for number in [EIO, ENOSPC] {
            let faults = on(move |at, _, length| (length == 0 && is_temporary(at)).then_some(Fault::Error(number)));
            let pool = builder().io(io).faults(faults).build().expect("a pool");
            for length in [0, 10, 3 * RUN] {
                let failed = publish(&pool, &path, 2, length).await.expect_err("not durable");
                assert!(
                    matches!(&failed, PageError::Io { cause, .. } if cause.raw_os_error() == Some(number)),
                    "{failed}"
                );
                assert_eq!(leftovers(folder.path()), [""; 0]);
                check(&path, 1, 1000);
            }
        }
    }
}

#[tokio::test]
async fn short_writes_are_continued() {
    let folder = pattern::folder();
    let path = folder.path().join("data");
    for io in [Io::Auto, Io::Threads] {
        for direct in [true, false] {
            let faults = on(|_, offset, length| (length > 0).then_some(Fault::Short(1 + (offset % 9000) as usize)));
            let pool = builder().io(io).direct(direct).faults(faults).build().expect("a pool");
            for length in [1, 5000, RUN, 3 * RUN + 5001] {
                publish(&pool, &path, length, length).await.expect("published");
                check(&path, length, length);
            }
        }
    }
}

#[tokio::test]
async fn a_disk_that_is_full_is_told_and_left_as_it_was() {
    let folder = pattern::folder();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).expect("made");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"])
        .arg(&disk)
        .output();
    if !mounted.as_ref().is_ok_and(|output| output.status.success()) {
        println!("not tested: nothing can be mounted here ({mounted:?})");
        return;
    }
    let _unmounted = Unmounted(disk.clone());
    let pool = builder().build().expect("a pool");
    let path = disk.join("data");
    publish(&pool, &path, 1, 10 * PAGE).await.expect("there is room");
    for length in [3 << 20, 2 << 20] {
        let failed = publish(&pool, &path, 2, length).await.expect_err("there is no room");
        assert!(
            matches!(&failed, PageError::Io { cause, .. } if cause.raw_os_error() == Some(ENOSPC)),
            "{failed}"
        );
        assert_eq!(leftovers(&disk), [""; 0]);
        check(&path, 1, 10 * PAGE);
    }
    // What was given up has given its room back.
    publish(&pool, &path, 3, 1 << 20).await.expect("there is room");
    check(&path, 3, 1 << 20);
}

struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        // Lazily: files may be open for a moment.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn bytes_then_name_then_directory() {
    let (folder, path) = pattern::file(1, 1000);
    let length = 3 * RUN + 777;
    let events = Arc::new(Mutex::new(Vec::new()));
    let faults = {
        let (path, events) = (path.clone(), Arc::clone(&events));
        on(move |at, _, length_of_attempt| {
            if length_of_attempt > 0 {
                return None;
            }
            let side = path.with_extension("crc").exists();
            let file = fs::metadata(&path).expect("always there").len();
            // What a sync of bytes makes durable is all of them.
            let bytes = if is_temporary(at) {
                fs::metadata(at).expect("there").len()
            } else {
                0
            };
            let kind = if is_temporary(at) { "bytes" } else { "directory" };
            events.lock().push((kind, bytes, side, file));
            None
        })
    };
    let pool = builder().faults(faults).build().expect("a pool");
    let mut file = pool
        .create(&path)
        .await
        .expect("created")
        .checksums(path.with_extension("crc"));
    file.write(pattern::bytes(2, 0, length)).await.expect("written");
    assert_eq!(*events.lock(), []);
    file.publish().await.expect("published");
    let side = fs::metadata(path.with_extension("crc")).expect("there").len();
    let expected = [
        ("bytes", length, false, 1000),
        ("bytes", side, false, 1000),
        ("directory", 0, true, 1000),
        ("directory", 0, true, length),
    ];
    assert_eq!(*events.lock(), expected);
    assert_eq!(leftovers(folder.path()), [""; 0]);
}

#[tokio::test]
async fn the_syncs_of_many_run_side_by_side() {
    let folder = pattern::folder();
    // Each sync waits until all are there.
    let barrier = std::sync::Barrier::new(6);
    let faults = on(move |at, _, length| {
        if length == 0 && is_temporary(at) {
            barrier.wait();
        }
        None
    });
    let pool = builder().io(Io::Threads).faults(faults).build().expect("a pool");
    let files = (0..6).map(|number| {
        let (pool, path) = (pool.clone(), folder.path().join(number.to_string()));
        async move { publish(&pool, &path, number, 5000).await }
    });
    for ended in futures_util::future::join_all(files).await {
        ended.expect("published");
    }
}

/// The first file's sync of the directory waits until five others have their names; then one more sync is for all five.
async fn one_sync_for_five(second: Option<Fault>) -> (tempfile::TempDir, usize, Vec<Result<(), PageError>>, u64) {
    let folder = pattern::folder();
    let syncs = Arc::new(AtomicUsize::new(0));
    let faults = {
        let (folder, syncs) = (folder.path().to_path_buf(), Arc::clone(&syncs));
        on(move |at, _, _| {
            if at != folder {
                return None;
            }
            match syncs.fetch_add(1, Ordering::SeqCst) {
                0 => {
                    #[allow(clippy::disallowed_methods)] // On a thread for blocking.
                    while !(1..6).all(|number| folder.join(number.to_string()).exists()) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    // Their names are there a moment before they are counted.
                    Some(Fault::Delay(std::time::Duration::from_millis(300)))
                }
                _ => second,
            }
        })
    };
    let pool = builder().faults(faults).build().expect("a pool");
    let first = {
        let (pool, path) = (pool.clone(), folder.path().join("0"));
        tokio::spawn(async move { publish(&pool, &path, 0, 100).await })
    };
    while syncs.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let others: Vec<_> = (1..6)
        .map(|number| {
            let (pool, path) = (pool.clone(), folder.path().join(number.to_string()));
            tokio::spawn(async move { publish(&pool, &path, number, 100).await })
        })
        .collect();
    let mut outcomes = vec![first.await.expect("no panic")];
    for other in others {
        outcomes.push(other.await.expect("no panic"));
    }
    let (syncs, shared) = (syncs.load(Ordering::SeqCst), pool.stats().syncs_shared);
    (folder, syncs, outcomes, shared)
}

#[tokio::test]
async fn one_sync_of_the_directory_is_for_all_who_waited() {
    let (_folder, syncs, outcomes, shared) = one_sync_for_five(None).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!((syncs, shared), (2, 4));
}

#[tokio::test]
async fn a_sync_of_the_directory_that_fails_is_told_all_whom_it_was_for() {
    let (folder, syncs, outcomes, shared) = one_sync_for_five(Some(Fault::Error(EIO))).await;
    assert_eq!((syncs, shared), (2, 0));
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    for (number, outcome) in outcomes.iter().enumerate().skip(1) {
        assert!(matches!(outcome, Err(PageError::Undurable { .. })), "{outcome:?}");
        // As the error says: published.
        check(&folder.path().join(number.to_string()), number as u64, 100);
    }
    assert_eq!(leftovers(folder.path()), [""; 0]);
}
