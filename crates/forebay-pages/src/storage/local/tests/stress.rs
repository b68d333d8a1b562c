//! Many readers at once, with faults, small limits, rings that fail and engines that are dropped early: each transfer is told
//! once what became of it, and has the right bytes.

use super::*;

/// Errors, short counts and delays, by a generator of its own.
fn disturbing(seed: u64) -> impl Faults {
    script(move |attempt, _, length| {
        let mut random = SmallRng::seed_from_u64(seed ^ (attempt as u64) << 20);
        match random.random_range(0..20) {
            0 => Some(Fault::Error(libc::EINTR)),
            1 => Some(Fault::Error(libc::EAGAIN)),
            2 => Some(Fault::Error(libc::EIO)),
            3..6 => Some(Fault::Short(random.random_range(0..=length as usize))),
            6 => Some(Fault::Delay(Duration::from_micros(random.random_range(0..500)))),
            _ => None,
        }
    })
}

fn round(kind: Kind, place: &Place, seed: u64) {
    const LENGTH: u64 = 300_000;
    let mut random = SmallRng::seed_from_u64(seed);
    let faults = Arc::new(disturbing(seed));
    let threads = Arc::downgrade(&faults);
    let engine = Engine::start(Settings {
        kind,
        depth: random.random_range(1..20),
        depth_per_read: random.random_range(1..8),
        max_threads: random.random_range(1..8),
        faults: Some(faults),
        uring_is_forbidden: false,
        ring_entries: random.random_bool(0.5).then_some(2),
        ring_fails_after_calls: random.random_bool(0.3).then(|| random.random_range(0..50)),
    });
    let engine = engine.unwrap();
    let file = place.open();
    let is_dropped_early = random.random_bool(0.3);
    let (told, outcomes) = channel();
    let offsets: Vec<Vec<u64>> = (0..3)
        .map(|_| {
            (0..100)
                .map(|_| {
                    random.random_range(0..LENGTH) / if random.random_bool(0.1) { 1 } else { 4096 } * 4096 % LENGTH
                })
                .collect()
        })
        .collect();
    thread::scope(|scope| {
        for (submitter, offsets) in offsets.iter().enumerate() {
            let (engine, file, told) = (&engine, &file, told.clone());
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed + submitter as u64);
                let mut numbered = offsets.iter().enumerate().peekable();
                while numbered.peek().is_some() {
                    let batch = numbered.by_ref().take(random.random_range(1..20));
                    let transfers = batch.map(|(number, &offset)| {
                        let memory = Memory::new(random.random_range(1..16) * 4096);
                        let pieces = memory.pieces(4096 * random.random_range(1..5));
                        let number = submitter * 1000 + number;
                        let is_wanted = number % 10 != 9;
                        let handler = Box::new(TestHandler {
                            number,
                            memory,
                            told: told.clone(),
                            is_wanted,
                            running: None,
                        });
                        Transfer {
                            file: Arc::clone(file),
                            operation: Operation::Read,
                            offset,
                            pieces,
                            handler,
                        }
                    });
                    engine.submit(transfers.collect());
                }
            });
        }
    });
    drop(told);
    let mut engine = Some(engine);
    if is_dropped_early {
        engine = None;
    }
    let mut times_told = vec![[0; 100]; 3];
    for Told {
        number,
        memory,
        outcome,
    } in std::iter::from_fn(|| outcomes.recv_timeout(PATIENCE).ok())
    {
        let (submitter, number) = (number / 1000, number % 1000);
        times_told[submitter][number] += 1;
        let offset = offsets[submitter][number];
        match outcome {
            Outcome::Ended(Ok(bytes)) => {
                assert_eq!(bytes as u64, (memory.length as u64).min(LENGTH - offset), "at {offset}");
                assert_pattern(&memory.bytes()[..bytes], offset);
            }
            Outcome::Ended(Err(cause)) if ShutDown::is_in(&cause) => assert!(is_dropped_early),
            Outcome::Ended(Err(cause)) => assert_eq!(cause.raw_os_error(), Some(libc::EIO), "{cause}"),
            Outcome::Cancelled => assert_eq!(number % 10, 9),
        }
    }
    assert_eq!(times_told, vec![[1; 100]; 3], "each is told once");
    if let Some(engine) = &engine {
        assert_becomes_idle(engine);
    }
    drop(engine);
    assert_ends(&threads);
}

#[test]
fn each_transfer_is_told_once_and_has_its_bytes() {
    let seed: u64 = std::env::var("FOREBAY_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("FOREBAY_SEED={seed}");
    for place in Place::all() {
        place.file(300_000);
        for kind in kinds() {
            for round_number in 0..20 {
                round(kind, &place, seed.wrapping_add(round_number * 1000));
            }
        }
    }
}
