//! Every transfer moves the right bytes: whatever its alignment and size, and wherever the file ends.

use super::*;

#[test]
fn every_range_has_its_own_bytes() {
    for place in Place::all() {
        let length = 3 << 20;
        let file = place.file(length);
        for kind in kinds() {
            let engine = start(kind);
            let (told, outcomes) = channel();
            let mut random = SmallRng::seed_from_u64(6);
            let mut asked = Vec::new();
            for _ in 0..20 {
                let transfers = (0..20).map(|_| {
                    let offset = random.random_range(0..length / 4096) * 4096;
                    let size = random.random_range(1..=64_u64).min((length - offset) / 4096) * 4096;
                    let piece = 4096 * random.random_range(1..10);
                    let mut transfer =
                        transfer(&file, Operation::Read, offset, Memory::new(size as usize), piece, &told);
                    let memory = Memory::new(size as usize);
                    transfer.pieces = memory.pieces(piece);
                    transfer.handler = Box::new(TestHandler {
                        number: asked.len(),
                        memory,
                        told: told.clone(),
                        is_wanted: true,
                        running: None,
                    });
                    asked.push(offset);
                    transfer
                });
                let transfers: Vec<_> = transfers.collect();
                engine.submit(transfers);
            }
            for _ in 0..asked.len() {
                let Told {
                    number,
                    memory,
                    outcome,
                } = outcomes.recv_timeout(PATIENCE).unwrap();
                assert_eq!(outcome.bytes(), memory.length);
                assert_pattern(memory.bytes(), asked[number]);
            }
            assert_eq!(engine.readings().latency.count(), asked.len() as u64);
        }
    }
}

#[test]
fn what_is_not_aligned_is_read_all_the_same() {
    for place in Place::all() {
        let file = place.file(100_000);
        for kind in kinds() {
            let engine = start(kind);
            for range in [1..2, 511..70_000, 4096..4097, 0..99_999, 8191..8193] {
                let told = read(&engine, &file, range.clone());
                assert_eq!(told.outcome.bytes() as u64, range.end - range.start);
                assert_pattern(told.memory.bytes(), range.start);
            }
            let aligned = read(&engine, &file, 4096..8192);
            assert_pattern(aligned.memory.bytes(), 4096);
        }
    }
}

#[test]
fn a_read_ends_with_the_file() {
    for place in Place::all() {
        for length in [0, 1, 4095, 4096, 10_000, 12_288] {
            let _ = fs::remove_file(place.path());
            let file = place.file(length);
            for kind in kinds() {
                let engine = start(kind);
                for offset in (0..=length + 8192).step_by(4096) {
                    let told = read(&engine, &file, offset..offset + 65_536);
                    let bytes = told.outcome.bytes();
                    assert_eq!(bytes as u64, length.saturating_sub(offset), "{offset} of {length}");
                    assert_pattern(&told.memory.bytes()[..bytes], offset);
                }
            }
        }
    }
}

#[test]
fn a_file_that_grew_or_shrank_is_read_to_where_it_ends_now() {
    for place in Place::all() {
        for kind in kinds() {
            let _ = fs::remove_file(place.path());
            let file = place.file(10_000);
            let engine = start(kind);
            fill(&place.path(), 10_000..30_000);
            let told = read(&engine, &file, 4096..69_632);
            assert_eq!(told.outcome.bytes(), 30_000 - 4096);
            assert_pattern(&told.memory.bytes()[..30_000 - 4096], 4096);
            File::options()
                .write(true)
                .open(place.path())
                .unwrap()
                .set_len(5000)
                .unwrap();
            let told = read(&engine, &file, 4096..69_632);
            assert_eq!(told.outcome.bytes(), 5000 - 4096);
        }
    }
}

#[test]
fn nothing_to_transfer_ends_at_once() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start_with(kind, script(|_, _, _| Some(Fault::Error(libc::EIO))));
        for memory in [Memory::new(0), Memory::new(0)] {
            assert_eq!(run(&engine, &file, Operation::Read, 5, memory, 4096).outcome.bytes(), 0);
        }
        let (told, outcome) = channel();
        let mut empty = transfer(&file, Operation::Write, 0, Memory::new(0), 1, &told);
        empty.pieces = vec![
            Piece {
                start: std::ptr::dangling_mut(),
                length: 0
            };
            3
        ];
        engine.submit(vec![empty]);
        assert_eq!(outcome.recv_timeout(PATIENCE).unwrap().outcome.bytes(), 0);
        engine.submit(Vec::new());
        assert_becomes_idle(&engine);
    }
}

#[test]
fn an_offset_where_no_file_can_be_is_an_error() {
    for kind in kinds() {
        let file = Place::disk().file(100_000);
        let engine = start(kind);
        for offset in [u64::MAX, i64::MAX as u64, i64::MAX as u64 - 4095] {
            let told = run(&engine, &file, Operation::Read, offset, Memory::new(4096), 4096);
            assert_eq!(told.outcome.error().kind(), io::ErrorKind::InvalidInput, "{offset}");
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    for place in Place::all() {
        for kind in kinds() {
            let _ = fs::remove_file(place.path());
            let file = Arc::new(OpenFile::create_new(place.path(), place.direct).unwrap());
            let engine = start_with(
                kind,
                script(|attempt, _, length| match attempt % 3 {
                    0 => Some(Fault::Short(length as usize / 2)),
                    1 => Some(Fault::Error(libc::EINTR)),
                    _ => None,
                }),
            );
            // The tail is not aligned.
            for range in [0..1_u64 << 20, (1 << 20)..(1 << 20) + 5000] {
                let length = (range.end - range.start) as usize;
                let memory = Memory::of((0..length).map(|place| pattern(range.start + place as u64)));
                let told = run(&engine, &file, Operation::Write, range.start, memory, 8192);
                assert_eq!(told.outcome.bytes(), length);
            }
            assert_eq!(
                run(&engine, &file, Operation::Sync, 0, Memory::new(0), 1)
                    .outcome
                    .bytes(),
                0
            );
            let written = fs::read(place.path()).unwrap();
            assert_eq!(written.len(), (1 << 20) + 5000);
            assert_pattern(&written, 0);
            assert_pattern(read(&engine, &file, 4096..65_536).memory.bytes(), 4096);
        }
    }
}

#[test]
fn more_pieces_than_the_kernel_takes_at_once() {
    for place in Place::all() {
        let file = place.file(1 << 20);
        for kind in kinds() {
            let engine = start(kind);
            for piece in [128, 512] {
                let told = run(&engine, &file, Operation::Read, 0, Memory::new(1 << 20), piece);
                assert_eq!(told.outcome.bytes(), 1 << 20);
                assert_pattern(told.memory.bytes(), 0);
            }
        }
    }
}

#[test]
fn more_bytes_than_the_kernel_transfers_at_once() {
    for kind in kinds() {
        let place = Place::disk();
        let length = (1_u64 << 31) + (1 << 30);
        // A hole, but for its last bytes.
        let hole = File::create(place.path()).unwrap();
        hole.set_len(length).unwrap();
        drop(hole);
        fill(&place.path(), length..length + 4096);
        let file = place.open();
        let engine = start(kind);
        let (told, outcome) = channel();
        // Always the same memory: what was there before is of no use here.
        let memory = Memory::new(4 << 20);
        let whole = Piece {
            start: memory.start,
            length: 4 << 20,
        };
        let count = usize::try_from(length >> 22).unwrap();
        let mut large = transfer(&file, Operation::Read, 0, memory, 4 << 20, &told);
        large.pieces = vec![whole; count];
        large.pieces.push(Piece {
            start: whole.start,
            length: 4096,
        });
        engine.submit(vec![large]);
        let told = outcome.recv_timeout(PATIENCE).unwrap();
        assert_eq!(told.outcome.bytes() as u64, length + 4096);
        assert_pattern(&told.memory.bytes()[..4096], length);
    }
}
