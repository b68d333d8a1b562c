//! Prepared statements and cursors by SQL: EXECUTE, DECLARE, FETCH, MOVE.
//!
//! Promises: they are the protocol's own, under the same names: a cursor is a portal that is open from its DECLARE on, and sees what was
//! there then. FETCH gathers its rows, which have a bound. A cursor reads forward and keeps no rows; the rows of a SCROLL cursor are gathered
//! by its first FETCH, those of a WITH HOLD cursor when its transaction commits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forebay_sqlite::connection::Session as Connection;
use forebay_write::{CancelToken, Value, WriteError};

use super::block::Block;
use super::compiled::shape_of;
use super::control::Controlled;
use super::execute::{COMPILED_AGAIN_MAX, give_back_parameters};
use super::prepared::{Field, Life, OpenCursor, Portal, PortalState, Prepared, Shape, Source};
use super::stop::Stop;
use super::timeouts::too_old;
use super::{Session, rows};
use crate::errors;
use crate::sql::{self, Direction, Kind, Statement, Tag, shown};
use forebay_pg_wire::error::WireError;

/// Rows of a cursor: themselves if somebody wants to see them, and how many they are.
struct Found {
    rows: Vec<Vec<Value>>,
    count: u64,
}

impl Found {
    const NONE: Self = Self {
        rows: Vec::new(),
        count: 0,
    };
}

impl Session {
    /// The portal of an EXECUTE becomes that of the statement it executes. Nothing for any other, and for one that has begun.
    pub(super) async fn stand_in(&mut self, portal: &mut Portal) -> Result<(), Stop> {
        let prepared = Arc::clone(&portal.prepared);
        let Some(statement) = &prepared.statement else {
            return Ok(());
        };
        let Kind::Execute(name) = &statement.kind else {
            return Ok(());
        };
        let executed = self.brought_up_to_date(self.prepared(name)?).await?;
        if !matches!(
            &executed.statement,
            Some(statement) if matches!(statement.kind, Kind::Sql | Kind::Catalog)
        ) {
            let message = format!("EXECUTE of what \"{name}\" is is not supported");
            return Err(WireError::unsupported(message).into());
        }
        refuse_other_columns(&prepared.shape.columns, &executed.shape.columns)?;
        let wanted = oids(&executed.shape);
        let (plan, schema) = self
            .compile(
                statement,
                &prepared.script,
                move |connection, statement, script, environment, values| {
                    sql::compile_arguments(connection, statement, script, environment, values, &wanted)
                },
            )
            .await?;
        let mut values = Vec::new();
        if !plan.steps.is_empty() {
            let arguments = Prepared {
                statement: None,
                script: Arc::clone(&prepared.script),
                // They read no table.
                shape: Arc::new(Shape {
                    schema: None,
                    ..shape_of(plan, &[], schema)
                }),
                from_sql: false,
            };
            let mut arguments = Portal::new(Arc::new(arguments), Vec::new(), Vec::new());
            let (token, _running) = self.statement_token();
            let given = self.arguments(&mut arguments, statement, &token).await?;
            values = given.expect("no schema can be another than theirs");
        }
        portal.prepared = executed;
        portal.parameters = values;
        Ok(())
    }

    /// DECLARE: `asking` is its portal, whose parameters are the query's.
    pub(super) async fn declare(
        &mut self,
        asking: &mut Portal,
        statement: &Statement,
        name: &str,
        (scroll, hold): (bool, bool),
        token: &CancelToken,
    ) -> Result<(), Stop> {
        if self.block.is_none() {
            if !hold {
                let message = "DECLARE CURSOR can only be used in transaction blocks";
                return Err(WireError::new("25P01", message).into());
            }
            self.open_implicit_block();
        }
        if self.portals.contains_key(name) {
            return Err(WireError::new("42P03", format!("cursor \"{name}\" already exists")).into());
        }
        self.refuse_portal(asking.parameter_bytes)?;
        let query = statement.carried().expect("a DECLARE carries its query");
        let declared = oids(&asking.prepared.shape);
        let script = Arc::clone(&asking.prepared.script);
        let shape = self.shape_of_query(query, &script, &declared).await?;
        if !shape.read_only {
            let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
            return Err(WireError::unsupported(message).into());
        }
        if (scroll || hold) && shape.plan.as_ref().is_some_and(|plan| plan.locks.is_some()) {
            let (what, detail) = if hold {
                ("DECLARE CURSOR WITH HOLD", "Holdable cursors must be READ ONLY.")
            } else {
                ("DECLARE SCROLL CURSOR", "Scrollable cursors must be READ ONLY.")
            };
            let message = format!("{what} ... FOR UPDATE is not supported");
            return Err(WireError::unsupported(message).with_detail(detail).into());
        }
        let prepared = Prepared {
            statement: Some((**query).clone()),
            script,
            shape,
            from_sql: true,
        };
        let mut cursor = Portal {
            parameter_bytes: asking.parameter_bytes,
            savepoints: self.savepoint_count(),
            scroll,
            life: if hold { Life::Holdable } else { Life::Transaction },
            ..Portal::new(Arc::new(prepared), std::mem::take(&mut asking.parameters), Vec::new())
        };
        self.open(&mut cursor, false, token).await?;
        self.portals.insert(name.to_owned(), cursor);
        Ok(())
    }

    /// Opens a query that reads: from now on it is of no matter to it what is written. `described`: its client has been told the columns.
    async fn open(&mut self, cursor: &mut Portal, described: bool, token: &CancelToken) -> Result<(), Stop> {
        for _ in 0..COMPILED_AGAIN_MAX {
            if self.open_as_planned(cursor, token).await? {
                return Ok(());
            }
            self.recompile(cursor, described).await?;
        }
        Err(WriteError::SchemaChanged.into())
    }

    /// [`open`](Self::open) by the plan there is; false if that is for another schema than it meets.
    async fn open_as_planned(&mut self, cursor: &mut Portal, token: &CancelToken) -> Result<bool, Stop> {
        let prepared = Arc::clone(&cursor.prepared);
        let statement = prepared.statement.as_ref().expect("a cursor has a query");
        if let Some(block) = &mut self.block {
            block.started = true;
        }
        let asks = |shape: &Shape| shape.plan.as_ref().is_some_and(|plan| !plan.session_columns.is_empty());
        if !prepared.shape.read_only || asks(&prepared.shape) {
            return Err(WireError::unsupported("a cursor of this statement is not supported").into());
        }
        if statement.kind == Kind::Catalog {
            let texts = vec![0; prepared.shape.columns.len()];
            let rows = self
                .query_catalog(&prepared, statement, &cursor.parameters, texts)
                .await?;
            cursor.state = PortalState::Gathered { rows: rows.into() };
            return Ok(true);
        }
        if let Some(locks) = prepared.shape.plan.as_ref().and_then(|plan| plan.locks.as_ref())
            && !self.lock(locks, &statement.tag, true, token).await?
        {
            cursor.state = PortalState::Gathered { rows: VecDeque::new() };
            return Ok(true);
        }
        let source = self.source(token).await?;
        if let Source::Own(reader) = &source {
            reader.hold_snapshot().await?;
        }
        self.next_cursor += 1;
        let number = self.next_cursor;
        let sql = prepared.shape.query(statement);
        let parameters = self.take_parameters(cursor);
        let (given, schema) = (parameters.clone(), prepared.shape.schema);
        let opened = self
            .on_source(&source, token, move |connection: &mut Connection| {
                let opened = connection.open_cursor(number, &sql, &given);
                rows::under_schema(connection, number, schema)?;
                opened
            })
            .await?;
        if matches!(opened, Err(WriteError::SchemaChanged)) {
            give_back_parameters(cursor, &parameters);
            return Ok(false);
        }
        opened.map_err(|error| errors::write(error, statement, &prepared.script))?;
        cursor.state = PortalState::Open(OpenCursor {
            number,
            source,
            waited: Duration::ZERO,
        });
        Ok(true)
    }

    /// FETCH and MOVE: `asking` is their portal.
    pub(super) async fn fetch_from(
        &mut self,
        asking: &Portal,
        name: &str,
        direction: Direction,
        moves: bool,
        token: &CancelToken,
    ) -> Result<Controlled, Stop> {
        let missing = || WireError::new("34000", format!("cursor \"{name}\" does not exist"));
        let found = self.portals.get(name).ok_or_else(missing)?;
        if !moves {
            refuse_other_columns(&asking.prepared.shape.columns, &found.prepared.shape.columns)?;
        }
        if let PortalState::Failed = found.state {
            return Err(WireError::new("55000", format!("portal \"{name}\" cannot be run")).into());
        }
        // Out of the map while it is read.
        let mut cursor = self.portals.remove(name).ok_or_else(missing)?;
        let found = self.go_over(&mut cursor, direction, !moves, token).await;
        if found.is_err() && !matches!(cursor.state, PortalState::Expired) {
            cursor.state = PortalState::Failed;
        }
        self.portals.insert(name.to_owned(), cursor);
        let found = found?;
        Ok(if moves {
            Controlled::Counted(found.count)
        } else {
            Controlled::Rows(found.rows)
        })
    }

    /// The rows in this direction; `keeps` them, or only goes over them.
    async fn go_over(
        &mut self,
        cursor: &mut Portal,
        direction: Direction,
        keeps: bool,
        token: &CancelToken,
    ) -> Result<Found, Stop> {
        let is_forward = match direction {
            Direction::Forward(count) => count != Some(0),
            Direction::Relative(count) => count > 0,
            Direction::Backward(_) | Direction::Absolute(_) => false,
        };
        if !cursor.scroll && !is_forward {
            return Err(WireError::new("55000", "cursor can only scan forward")
                .with_hint("Declare it with SCROLL option to enable backward scan.")
                .into());
        }
        if let PortalState::Ready = cursor.state {
            self.open(cursor, true, token).await?;
        }
        match direction {
            _ if cursor.scroll => self.scroll(cursor, direction, token).await,
            Direction::Relative(count) => {
                self.read_on(cursor, count.unsigned_abs() - 1, false, token).await?;
                self.read_on(cursor, 1, keeps, token).await
            }
            Direction::Forward(count) | Direction::Backward(count) => {
                self.read_on(cursor, count.unwrap_or(u64::MAX), keeps, token).await
            }
            Direction::Absolute(_) => unreachable!("only a SCROLL cursor takes it"),
        }
    }

    /// The next rows of a cursor that reads forward; `keeps` them, or only goes over them.
    async fn read_on(
        &mut self,
        cursor: &mut Portal,
        count_max: u64,
        keeps: bool,
        token: &CancelToken,
    ) -> Result<Found, Stop> {
        if count_max == 0 {
            return Ok(Found::NONE);
        }
        let bytes_max = self.bytes_left(self.portals.values());
        let open = match &mut cursor.state {
            PortalState::Open(open) => open,
            PortalState::Gathered { rows } => {
                let end = rows.len().min(usize::try_from(count_max).unwrap_or(usize::MAX));
                let rows: Vec<Vec<Value>> = rows.drain(..end).collect();
                return Ok(Found {
                    count: rows.len() as u64,
                    rows,
                });
            }
            PortalState::Expired => return Err(too_old().into()),
            PortalState::Done => return Ok(Found::NONE),
            PortalState::Ready | PortalState::Failed | PortalState::Scrollable { .. } => {
                unreachable!("it was opened to read forward")
            }
        };
        let (number, watched) = (open.number, token.clone());
        let read = self
            .on_source(&open.source, token, move |connection: &mut Connection| {
                rows::gather(connection, number, &watched, count_max, keeps.then_some(bytes_max))
            })
            .await?;
        let prepared = &cursor.prepared;
        let read = read.map_err(|error| match &prepared.statement {
            Some(statement) => errors::write(error, statement, &prepared.script),
            None => errors::unplaced(error),
        })?;
        let Some(read) = read else {
            let message = format!("the rows of a FETCH take more than {bytes_max} bytes");
            return Err(WireError::new("54000", message)
                .with_hint("Fetch fewer rows at a time.")
                .into());
        };
        if read.is_end {
            cursor.state = PortalState::Done;
        }
        Ok(Found {
            count: read.count,
            rows: read.rows,
        })
    }

    /// Rows of a SCROLL cursor, in any direction.
    async fn scroll(&mut self, cursor: &mut Portal, direction: Direction, token: &CancelToken) -> Result<Found, Stop> {
        let bytes_left = self.bytes_left(self.portals.values());
        self.gather_rest(cursor, bytes_left, token).await?;
        if let PortalState::Gathered { rows } = &mut cursor.state {
            let rows = Vec::from(std::mem::take(rows));
            cursor.state = PortalState::Scrollable { rows, position: 0 };
        }
        let PortalState::Scrollable { rows, position } = &mut cursor.state else {
            return Err(too_old().into());
        };
        let places = places(direction, rows.len(), position);
        Ok(Found {
            count: places.len() as u64,
            rows: places.into_iter().map(|place| rows[place - 1].clone()).collect(),
        })
    }

    /// The transaction is about to commit: cursors WITH HOLD get what they need to outlive it.
    pub(super) async fn keep_holdable(&mut self) -> Result<(), Stop> {
        if !self.portals.values().any(|portal| portal.life == Life::Holdable) {
            return Ok(());
        }
        let (token, _running) = self.statement_token();
        let mut portals = std::mem::take(&mut self.portals);
        let mut kept = Ok(());
        for name in portals.keys().cloned().collect::<Vec<String>>() {
            let bytes_left = self.bytes_left(portals.values());
            let portal = portals.get_mut(&name).expect("it was there");
            if portal.life == Life::Holdable {
                kept = self.gather_rest(portal, bytes_left, &token).await;
                if kept.is_err() {
                    break;
                }
                portal.life = Life::Held;
            }
        }
        self.portals = portals;
        kept
    }

    /// Closes what does not outlive its transaction.
    pub(super) fn close_portals(&mut self) {
        self.portals.retain(|_, portal| portal.life == Life::Held);
    }

    /// Their transaction has failed: what they are can still be asked, until it ends.
    pub(super) fn fail_portals(&mut self) {
        let lost = self.portals.values_mut().filter(|portal| portal.life != Life::Held);
        lost.for_each(Portal::fail);
    }

    /// Refuses to change tables that an open query of this session reads.
    pub(super) fn refuse_if_read(&self, tables: &[String], tag: &Tag) -> Result<(), WireError> {
        for portal in self.portals.values().filter(|portal| portal.holds_its_tables()) {
            let read = portal.prepared.shape.plan.iter().flat_map(|plan| &plan.tables_read);
            if let Some(table) = read.into_iter().find(|table| tables.contains(table)) {
                let command = match tag.words() {
                    "TRUNCATE TABLE" => "TRUNCATE",
                    words => words,
                };
                let message = format!(
                    "cannot {command} \"{}\" because it is being used by active queries in this session",
                    shown(table)
                );
                return Err(WireError::new("55006", message));
            }
        }
        Ok(())
    }

    pub(super) fn savepoint_count(&self) -> usize {
        self.block.as_ref().map_or(0, Block::savepoint_count)
    }
}

/// Which rows, counted from 1, a FETCH gives of a cursor that has `count` and stands at `position`; moves the position.
fn places(direction: Direction, count: usize, position: &mut usize) -> Vec<usize> {
    let (at, behind) = (*position, count + 1);
    let steps = |steps: Option<u64>| steps.map_or(behind, |steps| usize::try_from(steps).unwrap_or(behind).min(behind));
    let single = |place: usize, position: &mut usize| {
        *position = place.min(behind);
        (1..=count).contains(&place).then_some(place).into_iter().collect()
    };
    match direction {
        Direction::Forward(Some(0)) | Direction::Backward(Some(0)) | Direction::Relative(0) => single(at, position),
        Direction::Forward(wanted) => {
            *position = (at + steps(wanted)).min(behind);
            (at + 1..=(*position).min(count)).collect()
        }
        Direction::Backward(wanted) => {
            *position = at.saturating_sub(steps(wanted));
            ((*position).max(1)..at).rev().collect()
        }
        Direction::Absolute(place @ 0..) => single(steps(Some(place.unsigned_abs())), position),
        Direction::Absolute(place) => single(behind.saturating_sub(steps(Some(place.unsigned_abs()))), position),
        Direction::Relative(by @ 1..) => single(at + steps(Some(by.unsigned_abs())), position),
        Direction::Relative(by) => single(at.saturating_sub(steps(Some(by.unsigned_abs()))), position),
    }
}

/// The types of a statement's parameters, for whoever describes it anew.
fn oids(shape: &Shape) -> Vec<u32> {
    shape.parameters.iter().map(postgres_types::Type::oid).collect()
}

/// What was described must be what is sent.
fn refuse_other_columns(described: &[Field], found: &[Field]) -> Result<(), WireError> {
    let same = described.len() == found.len()
        && described
            .iter()
            .zip(found)
            .all(|(described, found)| described.kind == found.kind);
    if same {
        return Ok(());
    }
    Err(rows::changed())
}

#[cfg(test)]
mod tests {
    use super::{Direction, places};

    #[test]
    fn a_cursor_of_three_rows_goes_everywhere() {
        use Direction::{Absolute, Backward, Forward, Relative};
        // As PostgreSQL gives them, one after the other, on a cursor of three rows.
        let mut position = 0;
        for (direction, expected, stands) in [
            (Backward(Some(1)), vec![], 0),
            (Forward(Some(0)), vec![], 0),
            (Forward(Some(3)), vec![1, 2, 3], 3),
            (Backward(Some(1)), vec![2], 2),
            (Relative(0), vec![2], 2),
            (Forward(None), vec![3], 4),
            (Relative(0), vec![], 4),
            (Backward(Some(2)), vec![3, 2], 2),
            (Backward(None), vec![1], 0),
            (Absolute(2), vec![2], 2),
            (Absolute(-1), vec![3], 3),
            (Absolute(9), vec![], 4),
            (Absolute(-3), vec![1], 1),
            (Absolute(-9), vec![], 0),
            (Relative(2), vec![2], 2),
            (Relative(-1), vec![1], 1),
            (Relative(-1), vec![], 0),
            (Absolute(1), vec![1], 1),
            (Absolute(0), vec![], 0),
            (Relative(i64::MAX), vec![], 4),
            (Forward(Some(1)), vec![], 4),
            (Backward(Some(u64::MAX)), vec![3, 2, 1], 0),
        ] {
            assert_eq!(
                (places(direction, 3, &mut position), position),
                (expected, stands),
                "{direction:?}"
            );
        }
    }
}
