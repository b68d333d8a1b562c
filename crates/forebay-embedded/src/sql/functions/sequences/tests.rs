//! Numbers over transactions that are committed, rolled back and cut short, as the file and the memory know them.

use std::collections::HashSet;
use std::path::Path;

use super::*;
use crate::sql::compile::SEQUENCES;
use crate::sql::register;

fn open(path: &Path) -> Connection {
    let mut connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.pragma_update(None, "synchronous", "off").unwrap();
    register(&mut connection, &Arc::default()).unwrap();
    connection
}

fn with_sequence(path: &Path) -> Connection {
    let connection = open(path);
    connection.execute_batch(SEQUENCES).unwrap();
    connection
        .execute_batch("INSERT INTO forebay_sequence VALUES ('s', 'bigint', 1, 1, 1, 100000, 0, 1, 0, NULL, NULL)")
        .unwrap();
    connection
}

fn next(connection: &Connection) -> i64 {
    let context = SessionContext::text(0, 1, 0, "[]", "UTC");
    connection
        .query_row("SELECT forebay_nextval(?1, 's')", [context], |row| row.get(0))
        .unwrap()
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// What was given since the sequence began, or began anew.
#[derive(Clone, Default)]
struct Life {
    given: HashSet<i64>,
    /// Of those, what is committed, or will be if the transaction is.
    kept: HashSet<i64>,
}

impl Life {
    fn undo(&mut self, (kept, began_anew): &(HashSet<i64>, bool)) {
        self.kept.clone_from(kept);
        if *began_anew {
            self.given.clone_from(kept);
        }
    }
}

#[test]
fn a_number_is_given_once_whatever_becomes_of_the_transaction() {
    for seed in 0..60_u64 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let mut connection = with_sequence(&path);
        let mut state = seed;
        let mut life = Life::default();
        // Of the transaction and its savepoints: what was kept before, and whether the sequence began anew since.
        let mut marks: Vec<(HashSet<i64>, bool)> = Vec::new();
        for _ in 0..400 {
            match random(&mut state, 20) {
                0 | 1 if marks.is_empty() => {
                    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                    marks.push((life.kept.clone(), false));
                }
                2 | 3 if !marks.is_empty() => {
                    connection
                        .execute_batch(&format!("SAVEPOINT p{}", marks.len()))
                        .unwrap();
                    marks.push((life.kept.clone(), false));
                }
                4 if marks.len() > 1 => {
                    let place = 1 + usize::try_from(random(&mut state, marks.len() as u64 - 1)).unwrap();
                    connection.execute_batch(&format!("ROLLBACK TO p{place}")).unwrap();
                    marks.truncate(place + 1);
                    life.undo(&marks[place]);
                    marks[place].1 = false;
                }
                5 if !marks.is_empty() => {
                    connection.execute_batch("COMMIT").unwrap();
                    marks.clear();
                }
                6 if !marks.is_empty() => {
                    connection.execute_batch("ROLLBACK").unwrap();
                    life.undo(&marks[0]);
                    marks.clear();
                }
                7 if random(&mut state, 4) == 0 => {
                    connection
                        .execute_batch(
                            "UPDATE forebay_sequence SET last = start, called = 0; SELECT forebay_forget_sequence('s')",
                        )
                        .unwrap();
                    for mark in &mut marks {
                        mark.1 = true;
                    }
                    life = Life::default();
                }
                9 if random(&mut state, 2) == 0 => {
                    connection
                        .execute_batch("SELECT forebay_alter_sequence('s', '{\"cycle\":false}')")
                        .unwrap();
                    // What is given from here on is taken back with it, as in PostgreSQL.
                    for mark in &mut marks {
                        mark.1 = true;
                    }
                }
                10 if random(&mut state, 8) == 0 => {
                    connection
                        .execute_batch("SELECT forebay_alter_sequence('s', '{\"restart\":[]}')")
                        .unwrap();
                    for mark in &mut marks {
                        mark.1 = true;
                    }
                    life = Life::default();
                }
                8 if random(&mut state, 4) == 0 => {
                    // The process ends, and what was not committed with it.
                    if let Some((kept, _)) = marks.first() {
                        life.kept = kept.clone();
                    }
                    marks.clear();
                    life.given = life.kept.clone();
                    drop(connection);
                    connection = open(&path);
                }
                _ => {
                    let number = next(&connection);
                    assert!(life.given.insert(number), "seed {seed}: {number} was given twice");
                    life.kept.insert(number);
                }
            }
        }
    }
}

fn in_turn(connection: &Connection, count: usize) -> Vec<i64> {
    (0..count).map(|_| next(connection)).collect()
}

#[test]
fn a_change_that_was_taken_back_leaves_no_gap() {
    for change in ["{\"restart\":[7]}", "{\"increment\":3}"] {
        let folder = tempfile::tempdir().unwrap();
        let connection = with_sequence(&folder.path().join("s.db"));
        assert_eq!(in_turn(&connection, 2), [1, 2]);
        let alter = format!("BEGIN; SELECT forebay_alter_sequence('s', '{change}')");
        connection.execute_batch(&alter).unwrap();
        in_turn(&connection, 2);
        connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(in_turn(&connection, 2), [3, 4], "{change}");
    }
}

#[test]
fn what_setval_sets_is_not_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let connection = with_sequence(&path);
    let set = |number: i64| {
        let context = SessionContext::text(0, 1, 0, "[]", "UTC");
        let set: i64 = connection
            .query_row("SELECT forebay_setval(?1, 's', ?2)", (context, number), |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(set, number);
    };
    let run = |sql: &str| connection.execute_batch(sql).unwrap();
    for committed in [false, true] {
        if committed {
            next(&connection);
        }
        // Behind numbers of the same transaction, before some, and several times.
        run("BEGIN");
        next(&connection);
        set(500);
        run("ROLLBACK");
        assert_eq!(next(&connection), 501);
        run("BEGIN");
        set(600);
        next(&connection);
        set(700);
        set(800);
        assert_eq!(in_turn(&connection, 2), [801, 802]);
        run("ROLLBACK");
        assert_eq!(next(&connection), 803);
        run("BEGIN; SAVEPOINT a");
        next(&connection);
        set(900);
        run("ROLLBACK TO a; COMMIT");
        assert_eq!(in_turn(&connection, 100), (901..=1000).collect::<Vec<_>>());
        run("BEGIN");
        set(40);
        run("COMMIT; BEGIN");
        set(10);
        run("ROLLBACK");
        assert_eq!(next(&connection), 11);
    }
    // The number itself is the next one.
    let set_next = |number: i64| {
        let context = SessionContext::text(0, 1, 0, "[]", "UTC");
        connection
            .query_row("SELECT forebay_setval(?1, 's', ?2, 0)", (context, number), |_| Ok(()))
            .unwrap();
    };
    for begin in ["BEGIN", "BEGIN; SAVEPOINT a"] {
        run(begin);
        next(&connection);
        set_next(300);
        assert_eq!(next(&connection), 300);
        run(if begin == "BEGIN" {
            "ROLLBACK"
        } else {
            "ROLLBACK TO a; COMMIT"
        });
        assert_eq!(next(&connection), 301);
        run(begin);
        set_next(400);
        run(if begin == "BEGIN" {
            "ROLLBACK"
        } else {
            "ROLLBACK TO a; COMMIT"
        });
        assert_eq!(in_turn(&connection, 2), [400, 401]);
    }
    run("BEGIN");
    set(50);
    run("ROLLBACK");
    run(GIVE_BACK);
    drop(connection);
    assert_eq!(next(&open(&path)), 51);
}

#[test]
fn an_end_that_was_taken_back_is_none() {
    for cycle in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let connection = with_sequence(&folder.path().join("s.db"));
        let change = format!("SELECT forebay_alter_sequence('s', '{{\"maximum\":[2],\"cycle\":{cycle}}}')");
        connection.execute_batch(&format!("BEGIN; {change}")).unwrap();
        assert_eq!(in_turn(&connection, 2), [1, 2]);
        connection.execute_batch("ROLLBACK").unwrap();
        assert_eq!(in_turn(&connection, 3), [1, 2, 3], "{cycle}");
    }
}

#[test]
fn a_new_beginning_that_was_taken_back_ends_also_at_the_bound_of_the_old_life() {
    // So many numbers that the next one would be beyond what the file says.
    for count in 1..=usize::try_from(2 * AHEAD + 4).unwrap() {
        let folder = tempfile::tempdir().unwrap();
        let connection = with_sequence(&folder.path().join("s.db"));
        let mut given: HashSet<i64> = in_turn(&connection, 100).into_iter().collect();
        connection
            .execute_batch("BEGIN; SELECT forebay_alter_sequence('s', '{\"restart\":[]}')")
            .unwrap();
        in_turn(&connection, count);
        connection.execute_batch("ROLLBACK").unwrap();
        for number in in_turn(&connection, 3) {
            assert!(given.insert(number), "{number} was given twice, after {count}");
        }
    }
}

#[test]
fn an_orderly_end_says_nothing_of_a_life_that_was_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let connection = with_sequence(&path);
    in_turn(&connection, 20);
    connection
        .execute_batch("BEGIN; SELECT forebay_alter_sequence('s', '{\"restart\":[]}')")
        .unwrap();
    in_turn(&connection, 1);
    connection.execute_batch("ROLLBACK").unwrap();
    connection.execute_batch(GIVE_BACK).unwrap();
    drop(connection);
    assert!(next(&open(&path)) > 20);
}

#[test]
fn the_file_is_written_once_for_many_transactions_and_none_is_left_out_at_an_orderly_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let connection = with_sequence(&path);
    let last = |connection: &Connection| -> i64 {
        connection
            .query_row("SELECT last FROM forebay_sequence", (), |row| row.get(0))
            .unwrap()
    };
    let mut written = 0;
    for transaction in 0..320 {
        let before = last(&connection);
        connection.execute_batch("BEGIN").unwrap();
        for number in 1..=10 {
            assert_eq!(next(&connection), transaction * 10 + number);
        }
        connection.execute_batch("COMMIT").unwrap();
        written += i32::from(last(&connection) != before);
    }
    assert!(written < 20, "{written} of 320 transactions wrote the sequence");
    connection.execute_batch(GIVE_BACK).unwrap();
    assert_eq!(last(&connection), 3_200);
    assert_eq!(next(&connection), 3_201);
    drop(connection);
    let connection = open(&path);
    assert!(next(&connection) > 3_201);
    connection.execute_batch(GIVE_BACK).unwrap();
    let given = last(&connection);
    drop(connection);
    assert_eq!(next(&open(&path)), given + 1);
}
