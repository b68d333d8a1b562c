//! Right bytes on every path: hit, miss, merged run, gap kept and gap read past, tail, each kind of I/O, each file system.

use forebay_pages::{Io, PagePool, PagePoolBuilder};

use crate::pattern;

const PAGE: u64 = 16 << 10;

/// The ways that bytes can take.
fn ways() -> Vec<(&'static str, PagePoolBuilder)> {
    let builder = || {
        PagePool::builder()
            .memory(64 * PAGE)
            .page_size(PAGE as usize)
            .max_run_bytes(8 * PAGE)
            .max_gap_bytes(2 * PAGE)
    };
    vec![
        ("io_uring", builder().io(Io::Auto)),
        ("threads", builder().io(Io::Threads)),
        ("io_uring, buffered", builder().io(Io::Auto).direct(false)),
        ("threads, buffered", builder().io(Io::Threads).direct(false)),
    ]
}

#[tokio::test]
async fn every_path_shows_the_files_bytes() {
    let length = 40 * PAGE + 777;
    for folder in [
        pattern::folder(),
        tempfile::TempDir::new_in("/dev/shm").expect("a folder in memory"),
    ] {
        let path = folder.path().join("data");
        pattern::write(&path, 1, length);
        for (way, builder) in ways() {
            let pool = builder.build().expect("a pool");
            let file = pool.open(&path).await.expect("opened");
            assert_eq!(file.len(), length);
            // A miss within a page, over pages, of the tail; then hits.
            for _ in 0..2 {
                for range in [
                    5..6,
                    PAGE - 1..PAGE + 1,
                    3 * PAGE..20 * PAGE + 1,
                    39 * PAGE..length,
                    length - 1..length,
                ] {
                    let view = file.read(range.clone()).await.expect(way);
                    assert_eq!(view.len() as u64, range.end - range.start, "{way}");
                    pattern::check(&view, 1);
                }
            }
            assert!(pool.stats().hits > 0 && pool.stats().misses > 0);
            // All of it, though a part is there: read past where it is short, left out where it is long.
            pattern::check(&file.read(..).await.expect(way), 1);
            assert_eq!(pool.stats().resident_bytes, 41 * PAGE, "{way}");
            assert_eq!(pool.stats().pinned_bytes, 0, "{way}");
            pool.clear();
            assert_eq!(pool.stats().resident_bytes, 0, "{way}");
        }
    }
}

#[tokio::test]
async fn gaps_are_kept_where_nothing_was_and_left_alone_where_a_view_is() {
    let (_folder, path) = pattern::file(2, 64 * PAGE);
    for (way, builder) in ways() {
        let pool = builder.build().expect("a pool");
        let file = pool.open(&path).await.expect("opened");
        let held = file.read(11 * PAGE..12 * PAGE).await.expect(way);
        let before = held.to_vec();
        let views = file
            .read_many([10 * PAGE..10 * PAGE + 1, 12 * PAGE + 5..13 * PAGE, 15 * PAGE..16 * PAGE])
            .await
            .expect(way);
        views.iter().for_each(|view| pattern::check(view, 2));
        let stats = pool.stats();
        assert_eq!(stats.runs, 2, "{way}: one for the first read, one for all three ranges");
        assert_eq!(stats.gap_bytes, 3 * PAGE, "{way}");
        assert_eq!(*held, before, "{way}");
        // What lay between is there now.
        let kept = file.read_resident(13 * PAGE..15 * PAGE).expect(way).expect("kept");
        pattern::check(&kept, 2);
    }
}
