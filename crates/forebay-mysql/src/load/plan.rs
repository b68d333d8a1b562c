//! Plan: how the query of a loader is run for many keys, and its running.
//!
//! Promises: a query for many keys is used only for keys that are whole numbers and a column that the server says is of such, so
//! that a row's key is told by being equal; if it fails, or brings what cannot be, the query is run once a key, so that the
//! guilty key is known. What was begun in a snapshot that is no longer whole is begun again. Does not know what a row is read
//! into.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::connector::Connections;
use crate::database::MySql;
use crate::reading::{self, Reading, refusal};
use forebay_remote::load::{self, Each, Unread, error_of_the_text, parameter_count};
use forebay_sql::Listed;
use forebay_write::rows::{Column, Rows};
use forebay_write::{Parameters, ReadError, Sql, StatementErrorKind as Kind, Value, WriteError};

/// Keys of one query: fewer than servers take for a table of their own.
const KEYS_MAX: usize = 512;

/// A query for one key.
pub(super) struct Query {
    connections: Arc<Connections>,
    sql: Sql,
    /// Why it is not run at all, if so.
    refusal: Option<WriteError>,
    /// The query for many keys, if there is one.
    listed: Option<Listed>,
    /// The server has shown that the query for many keys cannot be used. Only ever set.
    is_unlisted: AtomicBool,
}

impl Query {
    pub(super) fn new(database: &MySql, sql: Sql) -> Self {
        let plan = database.inner.plans.of(&sql);
        Self {
            connections: Arc::clone(&database.inner.connections),
            refusal: refusal(&plan, &sql).map(|reason| WriteError::Refused { reason }),
            listed: forebay_sql::listed(&sql),
            is_unlisted: AtomicBool::new(false),
            sql,
        }
    }

    async fn read_with(&self, reading: &mut Reading, keys: &[Parameters]) -> Result<Each, Unread> {
        let alone = reading.describe(&self.sql).await?;
        if let Some(other) = keys.iter().find(|key| key.len() != alone.parameters) {
            return Err(parameter_count(alone.parameters, other.len()));
        }
        let many = self.many(reading, keys).await?;
        let together = match many {
            Some(many) => self.together(reading, many, keys.len()).await?,
            None => None,
        };
        let each = match together {
            Some(each) => each,
            None => one_by_one(reading, &self.sql, keys).await?,
        };
        Ok(each)
    }

    /// The query for many keys and what they are, if these can be read by it.
    async fn many(&self, reading: &mut Reading, keys: &[Parameters]) -> Result<Option<Many<'_>>, Unread> {
        let Some(listed) = &self.listed else {
            return Ok(None);
        };
        if keys.len() < 2 || self.is_unlisted.load(Ordering::Relaxed) || !reading.selects_are_whole() {
            return Ok(None);
        }
        let Some(many) = Many::of(listed, keys) else {
            return Ok(None);
        };
        let first = many.numbers.chunks(KEYS_MAX).next().unwrap_or_default();
        let fits = match reading.describe(&listed.sql(placeholders(first.len()))).await {
            Ok(described) => is_told_by_number(&described.columns),
            Err(Unread::Failed(error)) if is_of_kind(&error, Kind::Text) => false,
            // It may pass.
            Err(Unread::Failed(_)) => return Ok(None),
            Err(other) => return Err(other),
        };
        if !fits {
            self.is_unlisted.store(true, Ordering::Relaxed);
        }
        Ok(fits.then_some(many))
    }

    /// Runs the query for many keys. None if it failed, so that it is not known whose fault that is.
    async fn together(&self, reading: &mut Reading, many: Many<'_>, keys: usize) -> Result<Option<Each>, Unread> {
        let mut each: Vec<Vec<Vec<Value>>> = vec![Vec::new(); keys];
        let mut columns = Columns::default();
        let mut own: Arc<[Column]> = Arc::new([]);
        let count = placeholders(many.numbers.len().min(KEYS_MAX));
        let list = |numbers: &[i64]| {
            // The last one as often as there are placeholders left: it is one of the list all the same.
            let last = numbers.last().copied().unwrap_or_default();
            let values = numbers.iter().copied().chain(std::iter::repeat(last));
            Parameters::from(values.take(count).map(Value::Integer).collect::<Vec<_>>())
        };
        let lists: Vec<Parameters> = many.numbers.chunks(KEYS_MAX).map(list).collect();
        let answers = match reading.snapshot(&many.listed.sql(count), &lists).await {
            Ok(answers) => answers,
            Err(Unread::Failed(error)) if !is_of_the_moment(&error) => return Ok(None),
            Err(other) => return Err(other),
        };
        for read in answers {
            let read = match read {
                Ok(read) => read,
                Err(Unread::Failed(error)) if !is_of_the_moment(&error) => return Ok(None),
                Err(other) => return Err(other),
            };
            // The table may have changed since the query was described.
            if !is_told_by_number(&read.columns) {
                return Ok(None);
            }
            own = columns.named(&read.columns, read.columns.len() - 1);
            for mut row in read.rows {
                let number = row.pop().and_then(|value| value.as_integer());
                let Some(indices) = number.and_then(|number| many.indices.get(&number)) else {
                    // Not a number that was asked for: the comparison is not what it was taken for.
                    self.is_unlisted.store(true, Ordering::Relaxed);
                    return Ok(None);
                };
                if let Some((last, others)) = indices.split_last() {
                    for index in others {
                        each[*index].push(row.clone());
                    }
                    each[*last].push(row);
                }
            }
        }
        let rows_of = |rows| Rows {
            columns: Arc::clone(&own),
            rows,
        };
        Ok(Some(each.into_iter().map(|rows| Ok(rows_of(rows))).collect()))
    }
}

impl load::Query for Query {
    fn refusal(&self) -> Option<WriteError> {
        self.refusal.clone()
    }

    async fn read(&self, keys: &[Parameters]) -> Result<Each, Unread> {
        let mut reading = Reading::open(&self.connections).await.map_err(Unread::Failed)?;
        self.read_with(&mut reading, keys).await
    }

    /// It is described anew for every fetch.
    fn forget(&self) {}
}

/// Keys that are whole numbers, and the query for them.
struct Many<'q> {
    listed: &'q Listed,
    /// Each once.
    numbers: Vec<i64>,
    /// The keys that are that number.
    indices: HashMap<i64, Vec<usize>>,
}

impl<'q> Many<'q> {
    fn of(listed: &'q Listed, keys: &[Parameters]) -> Option<Self> {
        let mut numbers = Vec::with_capacity(keys.len());
        let mut indices: HashMap<i64, Vec<usize>> = HashMap::with_capacity(keys.len());
        for (index, key) in keys.iter().enumerate() {
            let [Value::Integer(number)] = key.values() else {
                return None;
            };
            let of_number = indices.entry(*number).or_default();
            if of_number.is_empty() {
                numbers.push(*number);
            }
            of_number.push(index);
        }
        Some(Self {
            listed,
            numbers,
            indices,
        })
    }
}

/// How many placeholders there are for so many keys: of few sizes, so that few statements are prepared.
fn placeholders(keys: usize) -> usize {
    keys.next_power_of_two()
}

fn is_told_by_number(columns: &[reading::Column]) -> bool {
    columns.last().is_some_and(|key| key.is_whole_number)
}

/// Columns as they came, and as a row is read by them.
type Known = (Arc<[reading::Column]>, Arc<[Column]>);

/// The columns of answers, made once for as long as they are the same.
#[derive(Default)]
struct Columns {
    last: Option<Known>,
}

impl Columns {
    /// The first so many of them.
    fn named(&mut self, columns: &Arc<[reading::Column]>, count: usize) -> Arc<[Column]> {
        if let Some((known, named)) = &self.last
            && Arc::ptr_eq(known, columns)
        {
            return Arc::clone(named);
        }
        let named: Arc<[Column]> = columns
            .iter()
            .take(count)
            .map(|column| Column {
                name: column.name.clone(),
                is_json: column.is_json,
            })
            .collect();
        self.last = Some((Arc::clone(columns), Arc::clone(&named)));
        named
    }
}

/// Runs the query once a key.
async fn one_by_one(reading: &mut Reading, sql: &str, keys: &[Parameters]) -> Result<Each, Unread> {
    let mut outcomes = Vec::with_capacity(keys.len());
    let mut columns = Columns::default();
    for read in reading.snapshot(sql, keys).await? {
        outcomes.push(match read {
            Ok(read) => Ok(Rows {
                columns: columns.named(&read.columns, read.columns.len()),
                rows: read.rows,
            }),
            Err(Unread::Failed(error)) if !is_of_the_moment(&error) => Err(error),
            Err(other) => return Err(other),
        });
    }
    if let Some(error) = error_of_the_text(&outcomes) {
        return Err(Unread::Failed(error));
    }
    Ok(outcomes
        .into_iter()
        .map(|outcome| outcome.map_err(ReadError::from))
        .collect())
}

/// Whether every key that comes after would wait as long for the same error: a table is locked.
fn is_of_the_moment(error: &WriteError) -> bool {
    is_of_kind(error, Kind::LockTimeout)
}

fn is_of_kind(error: &WriteError, kind: Kind) -> bool {
    matches!(error, WriteError::Statement(error) if error.kind == kind)
}
