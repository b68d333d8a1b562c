//! What only a ring can meet: calls that fail, too little room, no memory that may be locked.

use super::*;

#[test]
fn a_ring_that_fails_loses_nothing() {
    if !kinds().contains(&Kind::Uring) {
        return;
    }
    let file = Place::disk().file(1 << 20);
    for calls in 0..12 {
        let faults = Arc::new(script(|attempt, _, _| {
            (attempt % 3 == 0).then_some(if attempt % 2 == 0 {
                Fault::Short(4096)
            } else {
                Fault::Delay(Duration::from_millis(1))
            })
        }));
        let threads = Arc::downgrade(&faults);
        let settings = Settings {
            ring_fails_after_calls: Some(calls),
            ring_entries: Some(4),
            faults: Some(faults),
            ..Settings::default()
        };
        let engine = Engine::start(Settings {
            kind: Kind::Uring,
            ..settings
        })
        .unwrap();
        let (told, outcomes) = channel();
        for _ in 0..20 {
            engine.submit(
                (0..10)
                    .map(|_| transfer(&file, Operation::Read, 65_536, Memory::new(65_536), 4096, &told))
                    .collect(),
            );
        }
        for _ in 0..200 {
            let Told { memory, outcome, .. } = outcomes.recv_timeout(PATIENCE).expect("none is lost");
            assert_eq!(outcome.bytes(), 65_536);
            assert_pattern(memory.bytes(), 65_536);
        }
        let readings = engine.readings();
        assert_eq!(readings.backend, Backend::Threads);
        assert!(readings.why_not_uring.unwrap().starts_with("the ring failed"));
        assert_becomes_idle(&engine);
        drop(engine);
        assert_ends(&threads);
    }
}

#[test]
fn a_ring_smaller_than_the_depth_loses_nothing() {
    for kind in kinds() {
        let file = Place::disk().file(1 << 20);
        let engine = Engine::start(Settings {
            kind,
            depth: 50,
            depth_per_read: 50,
            ring_entries: Some(2),
            ..Settings::default()
        });
        let engine = engine.unwrap();
        let (told, outcomes) = channel();
        engine.submit(
            (0..500)
                .map(|_| transfer(&file, Operation::Read, 4096, Memory::new(4096), 4096, &told))
                .collect(),
        );
        for _ in 0..500 {
            assert_pattern(outcomes.recv_timeout(PATIENCE).unwrap().memory.bytes(), 4096);
        }
    }
}

/// In a process of its own, since limits and privileges are the process's.
#[test]
#[cfg(target_os = "linux")]
fn without_locked_memory_and_privileges() {
    const FILE: &str = "FOREBAY_TEST_FILE_TO_READ";
    if let Some(path) = std::env::var_os(FILE) {
        let file = Arc::new(OpenFile::open(PathBuf::from(path), true).unwrap());
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: plain calls; `none` is there for the whole of the first.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const none), 0);
            if libc::geteuid() == 0 {
                assert_eq!(libc::setresuid(65_534, 65_534, 65_534), 0);
            }
        }
        let engine = start(Kind::Auto);
        println!("{:?}", engine.readings());
        assert_pattern(read(&engine, &file, 4096..65_536).memory.bytes(), 4096);
        return;
    }
    let place = Place::disk();
    place.file(100_000);
    let (_, module) = module_path!().split_once("::").unwrap();
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--nocapture",
            &format!("{module}::without_locked_memory_and_privileges"),
        ])
        .env(FILE, place.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    println!("{output}{}", String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && output.contains("1 passed"));
}
