//! The proof of "equal to PostgreSQL, or refused with words that name what is missing; never different": generated statements,
//! and some that people write every day, are run on a real PostgreSQL and on `forebay`, and the answers compared: names, types
//! and type modifiers of columns, types of parameters, values byte by byte, command tags, errors.
//!
//! `cargo test -p forebay-server --test differential` runs the short form: a few fixed seeds and one of the moment. More, by
//! environment variables:
//!
//! - `FOREBAY_CASES=1000000` so many cases, of `FOREBAY_SEED=…` or a seed of the moment; `FOREBAY_CASE=…` with a seed: that one.
//! - `FOREBAY_CORPUS=file` compares the statements of a file, one a line.
//! - `FOREBAY_URL`, `POSTGRES_URL`: servers that run already. Tables named `d_…` and `c_…` are made in the first; the second
//!   is given a database of its own. Both URLs naming PostgreSQLs shows that the cases themselves have one answer, most
//!   strictly when the second plans otherwise (`ALTER DATABASE … SET enable_hashagg = off`, also `enable_hashjoin`, `enable_mergejoin`,
//!   `enable_seqscan`, and `jit`).
//! - `FOREBAY_SHRINK=…` so many differences are made small (400).
//!
//! Promises: every difference is told with what gives it again, made small, and beside others like it; all of it stands in
//! `target/differential/summary.txt`, with a table of results by operator and function.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod aggregates;
mod cascades;
mod changes;
mod connection;
mod corpus;
mod definitions;
mod expressions;
mod facts;
mod forms;
mod literals;
mod queries;
mod random;
mod servers;
mod shrink;
mod statements;
mod summary;
mod tables;
mod tree;
mod values;
mod verdict;

use std::{
    env,
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use facts::Facts;
use servers::{Pair, Servers};
use shrink::{Judged, judge, shrink};
use statements::{Case, Cases};
use summary::Summary;
use tables::Tables;
use verdict::Verdict;

const FIXED_SEEDS: &[u64] = &[1, 2, 4];
const SHORT_CASES: u64 = 1_500;
const BATCH: u64 = 150;
const SHOWN_MAX: usize = 40;
/// Of the statements that people write every day so many are refused, of 320, and not one more.
const COMMON_REFUSED_MAX: usize = 16;

/// Servers named by URL are for one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
    )
}

fn seed_of_the_moment() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (now.as_nanos() % 1_000_000_007).try_into().unwrap()
}

/// Counts these, making small what differs.
struct Judge<'a> {
    pair: &'a mut Pair,
    tables: &'a Tables,
    summary: Summary,
    shrinks_left: u64,
}

impl Judge<'_> {
    fn run(&mut self, cases: Vec<Case>) {
        for judged in judge(self.pair, cases) {
            if judged.verdict.is_different() {
                self.difference(&judged);
            } else {
                self.summary.count(&judged);
            }
        }
    }

    /// What cannot be run again, because the tables are there by now.
    fn count(&mut self, judged: &Judged) {
        if judged.verdict.is_different() {
            self.summary.difference(judged, judged, "");
        } else {
            self.summary.count(judged);
        }
    }

    /// One case with all that both servers say to it.
    fn show(&mut self, case: Case) {
        let judged = judge(self.pair, vec![case]).remove(0);
        println!("{}\n{:?}", summary::statement(&judged), judged.verdict);
        for (postgres, forebay) in judged.postgres.iter().zip(&judged.forebay) {
            println!("    PostgreSQL  {}", verdict::shown(postgres));
            println!("    Forebay     {}", verdict::shown(forebay));
        }
        if judged.verdict.is_different() {
            self.difference(&judged);
        } else {
            self.summary.count(&judged);
        }
    }

    fn difference(&mut self, judged: &Judged) {
        if self.summary.is_known(judged) {
            return;
        }
        if self.shrinks_left == 0 {
            self.summary.difference_unseen(judged);
            return;
        }
        self.shrinks_left -= 1;
        let mut small = shrink(self.pair, judged.clone());
        if shrink::is_order_of_evaluation(&small) {
            small.verdict = Verdict::Unordered;
            self.summary.count(&small);
            return;
        }
        let data = self.rows_of(&small);
        self.summary.difference(judged, &small, &data);
    }

    /// The rows of the columns that a statement names, as PostgreSQL has them.
    fn rows_of(&mut self, judged: &Judged) -> String {
        let sql = summary::statement(judged);
        let Some(position) = sql.find("FROM d_every") else {
            return String::new();
        };
        let named = |name: &str| {
            sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                .any(|word| word == name)
        };
        let columns: Vec<&str> = self
            .tables
            .columns
            .iter()
            .map(|column| column.sql.as_str())
            .filter(|name| named(name))
            .collect();
        let condition = sql[position..]
            .split_once(" WHERE id = ")
            .map_or_else(String::new, |(_, rest)| {
                let row: String = rest.chars().take_while(char::is_ascii_digit).collect();
                format!(" WHERE id = {row}")
            });
        let list: String = columns.iter().map(|name| format!(", {name}")).collect();
        let statement = format!("SELECT id{list} FROM d_every{condition} ORDER BY id");
        let case = Case::of_statement(String::new(), tree::Node::clause("", vec![statement.into()]), true);
        let rows = judge(self.pair, vec![case]).remove(0);
        verdict::shown(&rows.postgres[0])
    }
}

/// Runs cases of these seeds; what they came to.
fn run(servers: &Servers, seeds: &[(u64, u64)], only: Option<u64>) -> Summary {
    let facts = Facts::read();
    let mut total = Summary::default();
    let mut shrinks_left = number("FOREBAY_SHRINK").unwrap_or(400);
    let begun = Instant::now();
    for (seed, count) in seeds {
        let zone = if seed % 4 == 0 { "America/New_York" } else { "UTC" };
        let mut pair = servers.connect(zone);
        let tables = Tables::make(&mut pair);
        println!("FOREBAY_SEED={seed} FOREBAY_CASES={count} TimeZone={}", pair.zone);
        let mut judge = Judge {
            pair: &mut pair,
            tables: &tables,
            summary: std::mem::take(&mut total),
            shrinks_left,
        };
        let cases = Cases {
            facts: &facts,
            tables: &tables,
            seed: *seed,
        };
        if let Some(number) = only {
            judge.show(cases.case(number));
            total = judge.summary;
            continue;
        }
        for stored in &tables.storing {
            judge.count(stored);
        }
        judge.run(tables.checks());
        let numbers: Vec<u64> = (0..*count).collect();
        for batch in numbers.chunks(BATCH as usize) {
            judge.run(batch.iter().map(|number| cases.case(*number)).collect());
            if batch[0] % (BATCH * 100) == 0 && batch[0] > 0 {
                println!("{:?} {}", begun.elapsed(), judge.summary.line());
            }
        }
        shrinks_left = judge.shrinks_left;
        total = judge.summary;
    }
    println!("{:?} {}", begun.elapsed(), total.line());
    total
}

fn tell(servers: &Servers, summary: &Summary, name: &str) {
    let path = summary.write(name);
    println!("{}", summary.differences_shown(SHOWN_MAX));
    println!("{}\nall of it: {}", summary.line(), path.display());
    let output = servers.output();
    for line in output.lines().filter(|line| line.contains("panicked")).take(20) {
        println!("forebay: {line}");
    }
    assert_eq!(
        summary.differences(),
        0,
        "{} differ from PostgreSQL",
        summary.differences()
    );
}

#[test]
fn generated_statements_have_postgresql_s_answers() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start();
    let seed = number("FOREBAY_SEED");
    let only = number("FOREBAY_CASE");
    let seeds: Vec<(u64, u64)> = match (seed, number("FOREBAY_CASES")) {
        (None, None) => {
            let seeds = FIXED_SEEDS.iter().copied().chain([seed_of_the_moment()]);
            seeds.map(|seed| (seed, SHORT_CASES)).collect()
        }
        (seed, count) => vec![(seed.unwrap_or_else(seed_of_the_moment), count.unwrap_or(SHORT_CASES))],
    };
    let summary = run(&servers, &seeds, only);
    tell(&servers, &summary, "summary.txt");
}

#[test]
fn common_statements_have_postgresql_s_answers() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start();
    let mut pair = servers.connect("UTC");
    let mut summary = Summary::default();
    let mut refused = Vec::new();
    for judged in judge(&mut pair, corpus::cases()) {
        match &judged.verdict {
            Verdict::Different(_) => summary.difference(&judged, &judged, ""),
            verdict => {
                if let Verdict::Refused(message) = verdict {
                    refused.push(format!(
                        "{}: {}  --  {message}",
                        judged.case.origin,
                        summary::statement(&judged)
                    ));
                }
                summary.count(&judged);
            }
        }
    }
    println!("refused:\n{}", refused.join("\n"));
    tell(&servers, &summary, "corpus.txt");
    assert!(
        corpus::is_named() || refused.len() <= COMMON_REFUSED_MAX,
        "{} are refused",
        refused.len()
    );
}

#[test]
fn definitions_and_violations_have_postgresql_s_answers() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start();
    let differences = definitions::differences(&mut servers.connect("UTC"));
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// PostgreSQL looks at a row of the same transaction once more when one of its keys is set to NULL, and misses what it refers to by
/// another.
#[test]
fn a_row_that_a_deletion_loosens_on_its_way_out_is_an_error_in_the_transaction_that_made_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start();
    let mut pair = servers.connect("UTC");
    for by_one_row in [true, false] {
        let mut said = |in_one| cascades::loosened_on_its_way_out(&mut pair, in_one, by_one_row);
        assert_eq!(said(true), ["23503", "0A000"], "{by_one_row}");
        assert_eq!(said(false), ["DELETE 2", "DELETE 2"], "{by_one_row}");
    }
}

#[test]
fn what_a_deletion_takes_along_is_what_postgresql_s_does() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let servers = Servers::start();
    let seed = number("FOREBAY_SEED").unwrap_or_else(seed_of_the_moment);
    let scripts = number("FOREBAY_CASES").map_or(250, |cases| cases / 1000);
    println!("FOREBAY_SEED={seed}");
    let scripts = usize::try_from(scripts).expect("it is below a usize").max(250);
    let outcome = cascades::outcome(&mut servers.connect("UTC"), seed, scripts);
    println!("{} deletions, {} refused", outcome.done, outcome.refused);
    assert!(outcome.different.is_empty(), "{}", outcome.different.join("\n\n"));
    assert!(
        outcome.refused * 10 < outcome.done,
        "{} of {} refused",
        outcome.refused,
        outcome.done
    );
}
