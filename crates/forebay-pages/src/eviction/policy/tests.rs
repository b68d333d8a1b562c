//! What the policy promises as a whole: rules that follow the load.

use std::sync::Arc;

use super::rule::By;
use super::simulation::Simulation;
use super::*;

#[test]
fn what_is_read_again_and_again_stays_while_others_are_read_once_in_small_pieces() {
    for batch in [1, 16] {
        let mut pool = Simulation::new(256, batch);
        let mut missed = 0;
        for round in 0..10_000_u32 {
            missed += u32::from(!pool.read(round % 128));
            for _piece in 0..16 {
                pool.read(1_000 + round);
            }
        }
        // The first of each, and some more while the rule is learnt.
        assert!(missed <= 3 * 128, "{missed} by batches of {batch}");
        assert!(pool.resident() <= 256);
    }
}

#[test]
fn of_a_loop_larger_than_the_pool_most_of_what_there_is_room_for_stays() {
    for (frames, pages) in [(256, 264), (256, 300), (256, 1_000), (2_000, 3_000)] {
        let mut pool = Simulation::new(frames, 4);
        let reads = 100 * pages;
        let hits = (0..reads).filter(|read| pool.read(read % pages)).count();
        let (part, of_room) = (hits as f64 / f64::from(reads), frames as f64 / f64::from(pages));
        assert!(part > 0.7 * of_room, "{part} of {pages} pages in {frames}");
    }
}

#[test]
fn what_was_just_read_stays_where_that_is_what_is_read_next() {
    let mut pool = Simulation::new(1_000, 16);
    let mut hits = 0;
    // Each page a second time when 400 others have come.
    for at in 0..100_000_u32 {
        pool.read(at);
        hits += u32::from(at >= 20_400 && pool.read(at - 400));
    }
    assert!(hits > 70_000, "{hits} of 79,600");
}

/// Two pools that are asked for nothing but pages of the sample.
#[test]
fn uses_that_readers_note_are_hits_on_trial() {
    let notes = Arc::new(Notes::new(100));
    let mut policy = Policy::new(Arc::clone(&notes));
    assert_eq!(policy.loaded(1), 1);
    notes.note(7, 1);
    notes.note(7, 2);
    policy.loaded(1);
    assert_eq!(policy.trials.known(), 2);
}

#[test]
fn the_first_rule_is_by_reuse() {
    let policy = Policy::new(Arc::new(Notes::new(100)));
    assert_eq!(policy.trials.rule().by, By::Reuse);
}
