//! Limits, fair turns, and the end of an engine.

use super::*;

#[test]
fn the_limits_hold_and_are_used() {
    for kind in kinds() {
        let file = Place::disk().file(1 << 20);
        let engine = Engine::start(Settings {
            kind,
            depth: 8,
            depth_per_read: 3,
            faults: Some(Arc::new(script(|_, _, _| Some(Fault::Delay(Duration::from_millis(1)))))),
            ..Settings::default()
        });
        let engine = engine.unwrap();
        let (told, outcomes) = channel();
        let all = Arc::new(Running::default());
        let most_of_one = Arc::new(AtomicUsize::new(0));
        struct Counting {
            inner: TestHandler,
            all: Arc<Running>,
        }
        impl CompletionHandler for Counting {
            fn is_wanted(&self) -> bool {
                let now = self.all.now.fetch_add(1, Ordering::SeqCst) + 1;
                self.all.most.fetch_max(now, Ordering::SeqCst);
                self.inner.is_wanted()
            }
            fn completed(self: Box<Self>, outcome: io::Result<usize>) {
                self.all.now.fetch_sub(1, Ordering::SeqCst);
                Box::new(self.inner).completed(outcome);
            }
            fn cancelled(self: Box<Self>) {}
        }
        let readers: Vec<_> = (0..5).map(|_| Arc::new(Running::default())).collect();
        // In the end only one has anything left.
        for (reader, running) in readers.iter().enumerate() {
            let transfers = (0..20 * (reader + 1)).map(|number| {
                let memory = Memory::new(4096);
                let pieces = memory.pieces(4096);
                let running = Some(Arc::clone(running));
                let inner = TestHandler {
                    number,
                    memory,
                    told: told.clone(),
                    is_wanted: true,
                    running,
                };
                let handler = Box::new(Counting {
                    inner,
                    all: Arc::clone(&all),
                });
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
        assert!(engine.readings().in_flight + engine.readings().queued > 0);
        for _ in 0..20 * 15 {
            assert!(engine.readings().in_flight <= 8);
            outcomes.recv_timeout(PATIENCE).unwrap().outcome.bytes();
        }
        assert_eq!(all.most.load(Ordering::SeqCst), 8, "{kind:?}");
        for running in &readers {
            most_of_one.fetch_max(running.most.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        assert_eq!(most_of_one.load(Ordering::SeqCst), 3, "{kind:?}");
    }
}

#[test]
fn a_reader_with_a_thousand_does_not_starve_one_with_one() {
    for kind in kinds() {
        let file = Place::disk().file(1 << 20);
        let engine = Engine::start(Settings {
            kind,
            depth: 4,
            depth_per_read: 4,
            faults: Some(Arc::new(script(|_, _, _| {
                Some(Fault::Delay(Duration::from_micros(300)))
            }))),
            ..Settings::default()
        });
        let engine = engine.unwrap();
        let (told, outcomes) = channel();
        let one = |number| {
            let memory = Memory::new(4096);
            let pieces = memory.pieces(4096);
            let handler = TestHandler {
                number,
                memory,
                told: told.clone(),
                is_wanted: true,
                running: None,
            };
            Transfer {
                file: Arc::clone(&file),
                operation: Operation::Read,
                offset: 0,
                pieces,
                handler: Box::new(handler),
            }
        };
        engine.submit((0..1000).map(|_| one(0)).collect());
        engine.submit(vec![one(1)]);
        let order: Vec<usize> = (0..1001)
            .map(|_| outcomes.recv_timeout(PATIENCE).unwrap().number)
            .collect();
        // How many landed while this thread was still handing over, nobody knows; most had not.
        let at = order.iter().position(|number| *number == 1).unwrap();
        assert!(at < 500, "it landed as number {at}");
    }
}

#[test]
fn what_nobody_wants_never_begins() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start_with(kind, script(|_, _, _| panic!("an attempt was made")));
        let (told, outcome) = channel();
        let memory = Memory::new(4096);
        let pieces = memory.pieces(4096);
        let handler = Box::new(TestHandler {
            number: 0,
            memory,
            told,
            is_wanted: false,
            running: None,
        });
        engine.submit(vec![Transfer {
            file,
            operation: Operation::Read,
            offset: 0,
            pieces,
            handler,
        }]);
        let told = outcome.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(told.outcome, Outcome::Cancelled));
        assert!(told.memory.bytes().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn an_engine_that_is_dropped_ends_what_runs_and_refuses_what_waits() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let faults = Arc::new(script(|_, _, _| Some(Fault::Delay(Duration::from_millis(200)))));
        let threads = Arc::downgrade(&faults);
        let engine = Engine::start(Settings {
            kind,
            depth: 2,
            faults: Some(faults),
            ..Settings::default()
        })
        .unwrap();
        let (told, outcomes) = channel();
        engine.submit(
            (0..10)
                .map(|_| transfer(&file, Operation::Read, 4096, Memory::new(4096), 4096, &told))
                .collect(),
        );
        while engine.readings().in_flight < 2 {
            thread::yield_now();
        }
        let began = Instant::now();
        drop(engine);
        assert!(
            began.elapsed() < Duration::from_millis(100),
            "dropping waits for nothing"
        );
        let (mut ended, mut refused) = (0, 0);
        for _ in 0..10 {
            match outcomes.recv_timeout(PATIENCE).unwrap() {
                Told {
                    outcome: Outcome::Ended(Ok(4096)),
                    memory,
                    ..
                } => {
                    assert_pattern(memory.bytes(), 4096);
                    ended += 1;
                }
                Told {
                    outcome: Outcome::Ended(Err(error)),
                    ..
                } if ShutDown::is_in(&error) => refused += 1,
                Told { outcome, .. } => panic!("{outcome:?}"),
            }
        }
        assert_eq!((ended, refused), (2, 8), "{kind:?}");
        assert_ends(&threads);
    }
}

#[test]
fn an_idle_engine_that_is_dropped_ends_its_threads() {
    for kind in kinds() {
        let faults = Arc::new(script(|_, _, _| None));
        let threads = Arc::downgrade(&faults);
        let engine = Engine::start(Settings {
            kind,
            faults: Some(faults),
            ..Settings::default()
        })
        .unwrap();
        assert_becomes_idle(&engine);
        drop(engine);
        assert_ends(&threads);
    }
}
