//! Many small files published at the same time, beside one after the other: all of them are there, and they share syncs.

use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::create::{builder, check, leftovers, publish};
use crate::pattern;

const LENGTH: u64 = 3000;

/// So many writers, each publishing so many files one after the other; how long it took, and how many syncs were shared.
async fn publish_all(writers: u64, files: u64) -> (Duration, u64) {
    let folder = pattern::folder();
    let pool = builder().build().expect("a pool");
    let began = Instant::now();
    let tasks = (0..writers).map(|writer| {
        let (pool, folder) = (pool.clone(), folder.path().to_path_buf());
        tokio::spawn(async move {
            for file in 0..files {
                let number = writer * files + file;
                publish(&pool, &folder.join(number.to_string()), number, LENGTH)
                    .await
                    .expect("published");
            }
        })
    });
    join_all(tasks)
        .await
        .into_iter()
        .for_each(|task| task.expect("no panic"));
    let took = began.elapsed();
    for number in 0..writers * files {
        check(&folder.path().join(number.to_string()), number, LENGTH);
    }
    assert_eq!(leftovers(folder.path()), [""; 0]);
    assert_eq!(pool.stats().published, writers * files);
    (took, pool.stats().syncs_shared)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_writers_share_syncs() {
    let (alone, shared_alone) = publish_all(1, 100).await;
    let (together, shared) = publish_all(20, 100).await;
    assert_eq!(shared_alone, 0);
    assert!(shared > 0);
    let rates = (100.0 / alone.as_secs_f64(), 2000.0 / together.as_secs_f64());
    println!(
        "{:.0} files/s one at a time, {:.0} by 20 writers; {shared} of 2000 syncs shared",
        rates.0, rates.1
    );
}
