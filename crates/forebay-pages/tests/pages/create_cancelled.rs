//! Calls of a new file that are dropped at every point at which they wait: the old file or the new, whole, and nothing left.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use forebay_pages::faults::{Fault, Faults};
use forebay_pages::{PageError, PagePool};

use crate::create::{RUN, builder, check, settled};
use crate::pattern;

const LENGTH: u64 = 12 * RUN + RUN / 2;

/// Every run and every sync takes so much time.
pub(crate) struct Slow(pub(crate) Duration);

impl Faults for Slow {
    fn fault(&self, _: &Path, write: bool, offset: u64, _: u64) -> Option<Fault> {
        (write && offset.is_multiple_of(RUN)).then_some(Fault::Delay(self.0))
    }
}

/// The outcome, or nothing if so many polls did not bring it: then it is dropped, at once or when it would go on.
pub(crate) async fn polled<F: Future>(future: F, polls: usize, at_once: bool) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if left == 0 && at_once => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn pool() -> PagePool {
    builder()
        .faults(Arc::new(Slow(Duration::from_millis(1))))
        .build()
        .expect("a pool")
}

#[tokio::test]
async fn a_create_that_is_dropped_leaves_nothing() {
    let (folder, path) = pattern::file(1, 100);
    let pool = pool();
    for at_once in [true, false] {
        for polls in 0.. {
            let created = polled(pool.create(&path), polls, at_once).await;
            let is_there = created.is_some();
            drop(created);
            tokio::time::sleep(Duration::from_millis(20)).await;
            settled(folder.path()).await;
            if is_there {
                break;
            }
        }
    }
    check(&path, 1, 100);
}

#[tokio::test]
async fn a_write_that_is_dropped_gives_the_file_up() {
    let (folder, path) = pattern::file(1, 100);
    let pool = pool();
    for at_once in [true, false] {
        let mut given_up = 0;
        for polls in 0.. {
            let mut file = pool.create(&path).await.expect("created");
            file.write(b"before").await.expect("written");
            let bytes = pattern::bytes(2, 0, LENGTH);
            let written = polled(file.write(&bytes), polls, at_once).await;
            if polls == 0 {
                // It never began.
                assert_eq!(file.len(), 6);
                file.write(b"after").await.expect("nothing is in the way");
                continue;
            }
            if let Some(written) = written {
                written.expect("written");
                break;
            }
            given_up += 1;
            settled(folder.path()).await;
            assert!(matches!(file.write(b"more").await, Err(PageError::Abandoned { .. })));
            assert!(matches!(file.publish().await, Err(PageError::Abandoned { .. })));
            check(&path, 1, 100);
        }
        assert!(given_up > 2, "it waited {given_up} times");
    }
}

#[tokio::test]
async fn a_publish_that_is_dropped_publishes_the_whole_file_or_none() {
    for with_side_file in [false, true] {
        for at_once in [true, false] {
            let (mut old, mut new) = (0, 0);
            for polls in 0.. {
                let (folder, path) = pattern::file(1, 100);
                let side = path.with_extension("crc");
                let pool = pool();
                let mut file = pool.create(&path).await.expect("created");
                if with_side_file {
                    file = file.checksums(&side);
                }
                file.write(pattern::bytes(2, 0, LENGTH)).await.expect("written");
                let published = polled(file.publish(), polls, at_once).await;
                let is_over = published.is_some();
                if let Some(published) = published {
                    published.expect("published");
                    check(&path, 2, LENGTH);
                }
                settled(folder.path()).await;
                if std::fs::metadata(&path).expect("always there").len() == 100 {
                    check(&path, 1, 100);
                    assert!(!side.exists(), "a side file without its file");
                    old += 1;
                } else {
                    check(&path, 2, LENGTH);
                    assert_eq!(side.exists(), with_side_file);
                    new += 1;
                }
                if is_over {
                    break;
                }
            }
            assert!(old > 1 && new > 0, "{old} {new}");
        }
    }
}
