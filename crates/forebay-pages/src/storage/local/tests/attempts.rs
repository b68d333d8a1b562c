//! What becomes of attempts that are cut short, interrupted, refused, or fail.

use super::*;

#[test]
fn short_transfers_are_continued() {
    for place in Place::all() {
        let file = place.file(1 << 20);
        for kind in kinds() {
            for bytes in [1, 4096, 5000, 123_456] {
                let engine = start_with(kind, script(move |_, _, _| Some(Fault::Short(bytes))));
                let told = read(&engine, &file, 8192..200_704);
                assert_eq!(told.outcome.bytes(), 192_512);
                assert_pattern(told.memory.bytes(), 8192);
            }
        }
    }
}

#[test]
fn interrupted_and_refused_attempts_are_made_again() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        for number in [libc::EINTR, libc::EAGAIN] {
            let engine = start_with(
                kind,
                script(move |attempt, _, _| (attempt < 3).then_some(Fault::Error(number))),
            );
            let told = read(&engine, &file, 0..65_536);
            assert_eq!(told.outcome.bytes(), 65_536);
            assert_pattern(told.memory.bytes(), 0);
        }
        assert_eq!(
            file.is_direct(),
            place.open().is_direct(),
            "neither says anything of O_DIRECT"
        );
    }
}

#[test]
fn an_attempt_that_is_interrupted_for_ever_ends_at_last() {
    for kind in kinds() {
        let file = Place::disk().file(8192);
        let engine = start_with(kind, script(|_, _, _| Some(Fault::Error(libc::EINTR))));
        assert_eq!(
            read(&engine, &file, 0..4096).outcome.error().raw_os_error(),
            Some(libc::EINTR)
        );
    }
}

#[test]
fn a_file_system_that_takes_o_direct_and_refuses_to_read_is_read_through_its_cache() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        if !file.is_direct() {
            return println!("no O_DIRECT here");
        }
        // Refused in the middle of a transfer, too.
        let engine = start_with(
            kind,
            script(|attempt, _, _| match attempt {
                0 => Some(Fault::Short(8192)),
                1 => Some(Fault::Error(libc::EINVAL)),
                _ => None,
            }),
        );
        // The file is found although its path leads elsewhere now.
        fs::rename(place.path(), place.directory.path().join("moved")).unwrap();
        fs::write(place.path(), vec![0; 100_000]).unwrap();
        let told = read(&engine, &file, 0..65_536);
        assert_eq!(told.outcome.bytes(), 65_536);
        assert_pattern(told.memory.bytes(), 0);
        assert!(!file.is_direct(), "remembered");
        assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
    }
}

#[test]
fn an_error_is_the_transfers_own() {
    for kind in kinds() {
        let place = Place::disk();
        let file = place.file(100_000);
        let engine = start_with(
            kind,
            script(|_, offset, _| (offset == 4096).then_some(Fault::Error(libc::EIO))),
        );
        assert_eq!(
            read(&engine, &file, 4096..8192).outcome.error().raw_os_error(),
            Some(libc::EIO)
        );
        assert_pattern(read(&engine, &file, 8192..12_288).memory.bytes(), 8192);
        // The kernel's own: the file was not opened for writing.
        let written = run(&engine, &file, Operation::Write, 0, Memory::new(4096), 4096);
        assert_eq!(written.outcome.error().raw_os_error(), Some(libc::EBADF));
    }
}

#[test]
fn a_handler_that_panics_harms_nobody() {
    #[derive(Clone, Copy, PartialEq)]
    enum When {
        Asked,
        Completed,
        Cancelled,
        Dropped,
    }
    #[expect(dead_code, reason = "the memory lives as long as the handler")]
    struct Panics(When, Memory);
    impl CompletionHandler for Panics {
        fn is_wanted(&self) -> bool {
            assert!(self.0 != When::Asked, "on purpose");
            self.0 != When::Cancelled
        }
        fn completed(self: Box<Self>, _outcome: io::Result<usize>) {
            assert!(self.0 != When::Completed, "on purpose");
        }
        fn cancelled(self: Box<Self>) {
            panic!("on purpose");
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(self.0 != When::Dropped, "on purpose");
        }
    }
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = Engine::start(Settings {
            kind,
            depth: 2,
            depth_per_read: 1,
            max_threads: 1,
            ..Settings::default()
        });
        let engine = engine.unwrap();
        for when in [When::Asked, When::Completed, When::Cancelled, When::Dropped] {
            let transfers = (0..5).map(|_| {
                let memory = Memory::new(4096);
                let pieces = memory.pieces(4096);
                let handler = Box::new(Panics(when, memory));
                Transfer {
                    file: Arc::clone(&file),
                    operation: Operation::Read,
                    offset: 0,
                    pieces,
                    handler,
                }
            });
            engine.submit(transfers.collect());
        }
        assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
        assert_becomes_idle(&engine);
    }
}

#[test]
fn without_io_uring_threads_do_it() {
    let forbidden = Settings {
        uring_is_forbidden: true,
        ..Settings::default()
    };
    let engine = Engine::start(forbidden.clone()).unwrap();
    let readings = engine.readings();
    assert_eq!(readings.backend, Backend::Threads);
    assert!(readings.why_not_uring.unwrap().contains("not permitted"));
    let file = Place::disk().file(100_000);
    assert_pattern(read(&engine, &file, 4096..8192).memory.bytes(), 4096);
    let refused = Engine::start(Settings {
        kind: Kind::Uring,
        ..forbidden
    })
    .err()
    .unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    let threads = start(Kind::Threads).readings();
    assert_eq!((threads.backend, threads.why_not_uring), (Backend::Threads, None));
}
