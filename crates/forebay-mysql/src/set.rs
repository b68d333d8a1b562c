//! Set: one row's INSERT, written for many rows.
//!
//! Promises: only what the parser has shown to be `INSERT INTO table (columns) VALUES (one row) [RETURNING list]` becomes a set;
//! the rows stand in it in their callers' order. Tells each caller's own outcome only if what came back can be nothing else:
//! as many rows as were sent, and ids that rise as the server's numbering does.
//!
//! MariaDB inserts the rows of one INSERT one after the other, numbers them on the way and returns each as it was inserted, so
//! the rows that come back stand in the order of VALUES. Knows no connection.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::facts::Facts;
use super::server::Server;
use forebay_sql::{Cell, Insert};
use forebay_write::{Outcome, Value};

/// Rows of one INSERT: more gain nothing.
const ROWS_MAX: usize = 1024;
/// Placeholders of one INSERT: the server describes each when it is prepared.
const PLACEHOLDERS_MAX: usize = 16_384;
/// For so many rows it is worth it to look what the table is like.
const LOOK_ROWS: usize = 8;
/// For so many runs after a conflict the next is looked for.
const WARY_RUNS: usize = 64;
/// Rows that are tried at a time, at least, however often they fail.
pub(super) const CHUNK_MIN: usize = 16;

/// An INSERT of one row, of which many can be made.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) schema: Option<String>,
    pub(super) table: String,
    insert: Insert,
    /// `(?, 1, DEFAULT)`
    row: String,
    /// Names of the columns that are given, without quotes.
    given: Vec<String>,
    /// What is known of the table, as it was when it was last looked at.
    facts: Mutex<Option<Arc<Facts>>>,
    /// Rows that came while nothing was known of the table.
    came: AtomicUsize,
    /// The table was not fit for it when it was last looked at.
    is_one_by_one: AtomicBool,
    /// How many rows were last inserted at a time without a failure.
    chunk: AtomicUsize,
    /// Runs to come before which rows in conflict are looked for.
    wary: AtomicUsize,
    /// Where they can be looked for, once that was asked.
    keys: Mutex<Option<Arc<[Key]>>>,
    /// What came back was not what must come back: never again.
    is_distrusted: AtomicBool,
}

/// A unique index of which each row gives all columns by parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    columns: Vec<String>,
    /// Which parameters of a row are its columns.
    pub(super) parameters: Vec<usize>,
}

/// How sets of one table are written: what is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Returned {
    /// Nothing: the count tells.
    Count,
    /// The column that the server numbers.
    Id(String),
    /// What the callers ask for.
    Callers,
}

impl Set {
    /// None if there is something in it that keeps it from standing beside another row.
    pub(super) fn new(insert: Insert) -> Option<Self> {
        let (schema, table) = match &*names(&insert.table)? {
            [table] => (None, table.clone()),
            [schema, table] => (Some(schema.clone()), table.clone()),
            _ => return None,
        };
        let mut given = Vec::with_capacity(insert.columns.len());
        for column in &insert.columns {
            let [name] = &*names(column)? else { return None };
            given.push(name.clone());
        }
        let in_order = insert
            .cells
            .iter()
            .filter_map(|cell| match cell {
                Cell::Parameter(number) => Some(*number),
                _ => None,
            })
            .eq(0..insert.parameters);
        if !in_order || given.is_empty() || insert.parameters > PLACEHOLDERS_MAX / 4 {
            return None;
        }
        let cells: Vec<&str> = insert
            .cells
            .iter()
            .map(|cell| match cell {
                Cell::Parameter(_) => "?",
                Cell::Constant(text) => text,
                Cell::Default => "DEFAULT",
            })
            .collect();
        Some(Self {
            schema,
            table,
            row: format!("({})", cells.join(", ")),
            given,
            insert,
            facts: Mutex::new(None),
            came: AtomicUsize::new(0),
            is_one_by_one: AtomicBool::new(false),
            chunk: AtomicUsize::new(ROWS_MAX),
            wary: AtomicUsize::new(0),
            keys: Mutex::new(None),
            is_distrusted: AtomicBool::new(false),
        })
    }

    /// Parameters of one row.
    pub(super) fn parameters(&self) -> usize {
        self.insert.parameters
    }

    /// Bytes of a row in the text of the statement.
    pub(super) fn row_bytes(&self) -> usize {
        self.row.len() + 2
    }

    pub(super) fn facts(&self) -> Option<Arc<Facts>> {
        self.facts.lock().clone()
    }

    /// Whether a look at the table, of which nothing is known, is worth it, now that so many more rows have come.
    pub(super) fn is_worth_a_look(&self, rows: usize) -> bool {
        self.came.fetch_add(rows, Ordering::Relaxed) + rows >= LOOK_ROWS
    }

    pub(super) fn learn(&self, facts: Option<Facts>) {
        self.came.store(0, Ordering::Relaxed);
        *self.facts.lock() = facts.map(Arc::new);
    }

    /// Whether its rows are written one by one, as far as is known.
    pub(super) fn is_one_by_one(&self) -> bool {
        self.is_one_by_one.load(Ordering::Relaxed) || self.is_distrusted()
    }

    /// Whether the table is fit for it, as it was found to be.
    pub(super) fn note_fitness(&self, is_fit: bool) {
        self.is_one_by_one.store(!is_fit, Ordering::Relaxed);
    }

    /// It is not written as a set again.
    pub(super) fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_distrusted(&self) -> bool {
        self.is_distrusted.load(Ordering::Relaxed)
    }

    /// What has to be returned so that each caller's outcome can be told; none if it cannot be.
    pub(super) fn returned(&self, facts: &Facts, server: &Server) -> Option<Returned> {
        let Facts::Fit { numbered } = facts else { return None };
        if !server.rows_are_strict || (self.insert.returning.is_some() && !server.has_returning()) {
            return None;
        }
        if let Some(numbered) = numbered
            && self.given.iter().any(|name| name.eq_ignore_ascii_case(numbered))
        {
            return None;
        }
        match numbered {
            _ if self.insert.returning.is_some() => Some(Returned::Callers),
            None => Some(Returned::Count),
            Some(numbered) if server.has_returning() => {
                Some(Returned::Id(format!("`{}`", numbered.replace('`', "``"))))
            }
            Some(_) => None,
        }
    }

    /// A row was in conflict with another.
    pub(super) fn expect_conflicts(&self) {
        self.wary.store(WARY_RUNS, Ordering::Relaxed);
    }

    /// Whether rows were in conflict of late.
    pub(super) fn expects_conflicts(&self) -> bool {
        self.wary.load(Ordering::Relaxed) > 0
    }

    /// Whether rows in conflict are to be looked for; counts a run.
    pub(super) fn is_wary(&self) -> bool {
        let left = self.wary.load(Ordering::Relaxed);
        self.wary.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// The keys that rows can be in conflict by, if that was asked already.
    pub(super) fn keys(&self) -> Option<Arc<[Key]>> {
        self.keys.lock().clone()
    }

    /// Keeps the key among these unique indexes, each the names of its columns, with an empty one for a part of a column. With
    /// more than one that rows can break there is none: which they are said to break depends on what is written before.
    pub(super) fn learn_indexes(&self, indexes: &[Vec<String>]) -> Arc<[Key]> {
        let parameter = |column: &String| {
            let given = self.given.iter().position(|name| name.eq_ignore_ascii_case(column))?;
            match self.insert.cells[given] {
                Cell::Parameter(number) => Some(number),
                _ => None,
            }
        };
        let key = |columns: &Vec<String>| {
            Some(Key {
                columns: columns.clone(),
                parameters: columns.iter().map(parameter).collect::<Option<_>>()?,
            })
        };
        let is_given =
            |column: &String| column.is_empty() || self.given.iter().any(|name| name.eq_ignore_ascii_case(column));
        let mut breakable = indexes
            .iter()
            .filter(|columns| columns.len() > 1 || columns.iter().any(is_given));
        let keys: Arc<[Key]> = match (breakable.next(), breakable.next()) {
            (Some(only), None) => key(only).into_iter().collect(),
            _ => Arc::from([]),
        };
        *self.keys.lock() = Some(Arc::clone(&keys));
        keys
    }

    /// What asks which of so many rows are there already, by a key.
    pub(super) fn question(&self, key: &Key, rows: usize) -> String {
        let quoted = |column: &String| format!("`{}`", column.replace('`', "``"));
        let columns = key.columns.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let row = format!("({})", vec!["?"; key.columns.len()].join(", "));
        let rows = vec![row; rows].join(", ");
        format!(
            "SELECT {columns} FROM {} WHERE ({columns}) IN ({rows})",
            self.insert.table
        )
    }

    /// How many rows are next tried at a time: a power of two.
    pub(super) fn chunk(&self) -> usize {
        let by_placeholders = PLACEHOLDERS_MAX / self.insert.parameters.max(1);
        let limit = self.chunk.load(Ordering::Relaxed).min(by_placeholders).max(1);
        1 << limit.ilog2()
    }

    pub(super) fn went_well(&self, rows: usize) {
        if rows >= self.chunk() {
            self.chunk.store((rows * 2).min(ROWS_MAX), Ordering::Relaxed);
        }
    }

    /// A row was bad, this far in: fewer at a time, so that less is done twice.
    pub(super) fn went_badly(&self, rows: usize) {
        self.chunk.store((rows / 2).max(CHUNK_MIN), Ordering::Relaxed);
    }

    /// The text for so many rows.
    pub(super) fn text(&self, rows: usize, returned: &Returned) -> String {
        let columns = self.insert.columns.join(", ");
        let mut text = String::with_capacity(64 + columns.len() + rows * self.row_bytes());
        // Writing into a String never fails.
        let _ = write!(text, "INSERT INTO {} ({columns}) VALUES ", self.insert.table);
        for row in 0..rows {
            if row > 0 {
                text.push_str(", ");
            }
            text.push_str(&self.row);
        }
        match (returned, &self.insert.returning) {
            (Returned::Id(column), _) => {
                let _ = write!(text, " RETURNING {column}");
            }
            (Returned::Callers, Some(list)) => {
                let _ = write!(text, " RETURNING {}", list.join(", "));
            }
            _ => {}
        }
        text
    }

    /// Each row's own outcome, in order; none if what came back cannot be it.
    pub(super) fn outcomes(
        &self,
        rows: usize,
        returned: &Returned,
        increment: u64,
        answer: Outcome,
    ) -> Option<Vec<Outcome>> {
        if answer.rows_affected != rows as u64 {
            return None;
        }
        let alone = |last_insert_id| Outcome::counted(1, last_insert_id);
        match returned {
            // An id where there should be none: the table is not as it was.
            Returned::Count if answer.last_insert_id.is_some() => None,
            Returned::Count => Some((0..rows).map(|_| alone(None)).collect()),
            Returned::Id(_) => {
                let ids: Vec<i128> = answer.rows.iter().map(|row| id(row)).collect::<Option<_>>()?;
                let step = i128::from(increment.max(1));
                let rises = ids
                    .windows(2)
                    .all(|pair| pair[1] > pair[0] && (pair[1] - pair[0]) % step == 0);
                let is_numbered = ids.iter().all(|id| *id > 0);
                (rises && is_numbered).then(|| ids.iter().map(|id| alone(i64::try_from(*id).ok())).collect())
            }
            Returned::Callers => {
                let columns = &answer.columns;
                let rows = answer.rows.into_iter();
                let outcomes = rows.map(|row| alone(None).returning(columns.clone(), vec![row]));
                Some(outcomes.collect())
            }
        }
    }
}

fn id(row: &[Value]) -> Option<i128> {
    match row {
        [Value::Integer(id)] => Some(i128::from(*id)),
        [Value::Unsigned(id)] => Some(i128::from(*id)),
        _ => None,
    }
}

/// The parts of a name as it stands in SQL, without quotes.
fn names(sql: &str) -> Option<Vec<String>> {
    let mut names = vec![String::new()];
    let mut characters = sql.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        let name = names.last_mut().expect("it begins with one");
        match character {
            '`' if is_quoted && characters.next_if_eq(&'`').is_some() => name.push('`'),
            '`' => is_quoted = !is_quoted,
            '.' if !is_quoted => names.push(String::new()),
            _ if is_quoted || character.is_alphanumeric() || matches!(character, '_' | '$') => name.push(character),
            _ => return None,
        }
    }
    (!is_quoted && names.iter().all(|name| !name.is_empty())).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_sql::{Dialect, insert};

    fn set(sql: &str) -> Set {
        Set::new(insert(Dialect::MySql, sql).expect("it is one row's INSERT")).expect("it can be many")
    }

    fn ids(ids: &[i64]) -> Outcome {
        let rows = ids.iter().map(|id| vec![Value::Integer(*id)]).collect();
        Outcome::counted(ids.len() as u64, None).returning(Vec::new(), rows)
    }

    #[test]
    fn many_rows_are_written_as_the_one_was() {
        let set = set("INSERT INTO `a b`.t (x, `y``z`, w) VALUES (?, 'c', DEFAULT)");
        assert_eq!((set.schema.as_deref(), &*set.table), (Some("a b"), "t"));
        let text = set.text(2, &Returned::Id("`id`".to_owned()));
        assert_eq!(
            text,
            "INSERT INTO `a b`.t (x, `y``z`, w) VALUES (?, 'c', DEFAULT), (?, 'c', DEFAULT) RETURNING `id`"
        );
    }

    #[test]
    fn ids_that_do_not_rise_as_numbering_does_are_not_believed() {
        let set = set("INSERT INTO t (x) VALUES (?)");
        let told = |given: &[i64], increment| {
            let outcomes = set.outcomes(3, &Returned::Id("id".to_owned()), increment, ids(given))?;
            Some(
                outcomes
                    .iter()
                    .map(|outcome| outcome.last_insert_id.unwrap())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(told(&[4, 5, 9], 1), Some(vec![4, 5, 9]));
        assert_eq!(told(&[4, 7, 13], 3), Some(vec![4, 7, 13]));
        assert_eq!(told(&[4, 6, 13], 3), None);
        assert_eq!(told(&[4, 4, 5], 1), None);
        assert_eq!(told(&[5, 4, 6], 1), None);
        assert_eq!(told(&[0, 1, 2], 1), None);
        assert_eq!(told(&[4, 5], 1), None, "fewer than were sent");
    }

    #[test]
    fn an_id_where_none_was_known_is_not_believed() {
        let set = set("INSERT INTO t (x) VALUES (?)");
        let mut answer = Outcome::counted(2, None);
        assert!(set.outcomes(2, &Returned::Count, 1, answer.clone()).is_some());
        answer.last_insert_id = Some(1);
        assert!(set.outcomes(2, &Returned::Count, 1, answer).is_none());
    }

    #[test]
    fn the_chunk_shrinks_with_failures_and_grows_back() {
        let set = set("INSERT INTO t (x) VALUES (?)");
        assert_eq!(set.chunk(), ROWS_MAX);
        set.went_badly(100);
        assert_eq!(set.chunk(), 32);
        set.went_well(32);
        assert_eq!(set.chunk(), 64);
        set.went_badly(1);
        assert_eq!(set.chunk(), CHUNK_MIN);
    }
}
