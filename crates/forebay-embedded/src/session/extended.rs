//! The extended protocol: Parse, Bind, Describe, Execute, Close.
//!
//! Promises: what is described is what Execute sends, or the statement is refused. Statements and portals have a bound.

use std::sync::Arc;

use bytes::Bytes;

use super::Session;
use super::compiled::kinds;
use super::control::ends_failure;
use super::plans::Found;
use super::prepared::{Field, Portal, PortalState, Prepared, Shape};
use super::stop::Stop;
use crate::sql::{Kind, Statement, Tag};
use crate::values::decode_parameter;
use forebay_pg_wire::backend::{self, Column};
use forebay_pg_wire::error::WireError;
use forebay_pg_wire::frontend::{Frontend, Target, format_at};

impl Session {
    pub(super) async fn extended(&mut self, message: Frontend) -> Result<(), Stop> {
        match message {
            Frontend::Parse {
                name,
                sql,
                parameter_types,
            } => {
                let unnamed = name.is_empty();
                let parsed = self.parse(name, sql, &parameter_types).await;
                // It has no successor, but it is gone.
                if unnamed && parsed.is_err() {
                    self.statements.remove("");
                }
                parsed
            }
            Frontend::Bind {
                portal,
                statement,
                parameter_formats,
                parameters,
                result_formats,
            } => {
                self.bind(portal, &statement, &parameter_formats, &parameters, result_formats)
                    .await
            }
            Frontend::Describe {
                target: Target::Statement,
                name,
            } => self.describe_statement(&name).await,
            Frontend::Describe {
                target: Target::Portal,
                name,
            } => self.describe_portal(&name),
            Frontend::Execute { portal, max_rows } => self.execute_message(portal, max_rows).await,
            Frontend::Close { target, name } => {
                match target {
                    Target::Statement => drop(self.statements.remove(&name)),
                    Target::Portal => drop(self.portals.remove(&name)),
                }
                backend::close_complete(&mut self.output.pending);
                Ok(())
            }
            other => Err(WireError::protocol(format!("unexpected message {other:?}")).into()),
        }
    }

    async fn parse(&mut self, name: String, sql: String, declared: &[u32]) -> Result<(), Stop> {
        self.refuse_prepared(&name, sql.len())?;
        let script: Arc<str> = sql.into();
        if let Ok(Some(Found { statement, shape })) = self.known(&script, declared) {
            self.refuse_if_failed(&statement.kind)?;
            let prepared = Prepared {
                statement: Some(statement),
                script,
                shape,
                from_sql: false,
            };
            self.statements.insert(name, Arc::new(prepared));
            backend::parse_complete(&mut self.output.pending);
            return Ok(());
        }
        let mut understood = self.understand(Arc::clone(&script)).await?;
        if understood.statement_count() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(WireError::new("42601", message).into());
        }
        let statement = self.next_statement(&mut understood)?;
        if let Some(statement) = &statement {
            self.refuse_if_failed(&statement.kind)?;
        }
        self.prepare(name, statement, &script, declared, false).await?;
        backend::parse_complete(&mut self.output.pending);
        Ok(())
    }

    /// Whether there can be no prepared statement of that name and length.
    pub(super) fn refuse_prepared(&self, name: &str, bytes: usize) -> Result<(), WireError> {
        if !name.is_empty() {
            if self.statements.contains_key(name) {
                let message = format!("prepared statement \"{name}\" already exists");
                return Err(WireError::new("42P05", message));
            }
            if self.statements.len() >= self.shared.limits.max_statements {
                let message = format!(
                    "a session has at most {} prepared statements",
                    self.shared.limits.max_statements
                );
                return Err(WireError::new("53400", message)
                    .with_hint("Close those that are no longer needed, or DEALLOCATE ALL."));
            }
            let bytes = bytes
                + self
                    .statements
                    .values()
                    .map(|prepared| prepared.script.len())
                    .sum::<usize>();
            self.refuse_if_too_large(bytes, "prepared statements")?;
        }
        Ok(())
    }

    /// Keeps a statement, described, under that name. `from_sql`: PREPARE carries it; otherwise it is the whole script.
    pub(super) async fn prepare(
        &mut self,
        name: String,
        statement: Option<Statement>,
        script: &Arc<str>,
        declared: &[u32],
        from_sql: bool,
    ) -> Result<(), Stop> {
        let shape = match &statement {
            None => Arc::default(),
            Some(statement) => match self.shape(statement, script, declared, !from_sql).await {
                Err(Stop::Error(error)) if may_come_to_be(statement, &error) => Arc::new(Shape {
                    unresolved: true,
                    parameters: kinds(declared),
                    ..Shape::default()
                }),
                shape => shape?,
            },
        };
        let prepared = Prepared {
            statement,
            script: Arc::clone(script),
            shape,
            from_sql,
        };
        self.statements.insert(name, Arc::new(prepared));
        Ok(())
    }

    async fn bind(
        &mut self,
        name: String,
        statement: &str,
        parameter_formats: &[i16],
        parameters: &[Option<Bytes>],
        result_formats: Vec<i16>,
    ) -> Result<(), Stop> {
        let prepared = self.prepared(statement)?;
        if let Some(statement) = &prepared.statement {
            self.refuse_if_failed(&statement.kind)?;
        }
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(WireError::new("42P03", format!("portal \"{name}\" already exists")).into());
        }
        let parameter_bytes = parameters.iter().flatten().map(Bytes::len).sum::<usize>();
        self.refuse_portal(parameter_bytes)?;
        let known = Arc::clone(&prepared);
        let prepared = self.brought_up_to_date(prepared).await?;
        if !Arc::ptr_eq(&prepared, &known) {
            self.statements.insert(statement.to_owned(), Arc::clone(&prepared));
        }
        let shape = &prepared.shape;
        let (given, wanted) = (parameters.len(), shape.parameters.len());
        if given != wanted {
            let message = format!(
                "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {wanted}"
            );
            return Err(WireError::protocol(message).into());
        }
        if parameter_formats.len() > 1 && parameter_formats.len() != given {
            let message = format!(
                "bind message has {} parameter formats but {given} parameters",
                parameter_formats.len()
            );
            return Err(WireError::protocol(message).into());
        }
        // What gives no rows takes any, as PostgreSQL has it.
        if result_formats.len() > 1 && !shape.columns.is_empty() && result_formats.len() != shape.columns.len() {
            let message = format!(
                "bind message has {} result formats but query has {} columns",
                result_formats.len(),
                shape.columns.len()
            );
            return Err(WireError::protocol(message).into());
        }
        // Declared types may be more than the statement has parameters; SQLite is given those it has, and what it is told.
        let (used, room) = match &shape.plan {
            Some(plan) => (
                plan.parameters.len(),
                plan.parameters.len() + usize::from(plan.environment),
            ),
            None => {
                let count = prepared.statement.as_ref().map_or(0, Statement::parameter_count);
                (count, count)
            }
        };
        let mut values = Vec::with_capacity(room);
        let environment = self.value_environment();
        for (index, (kind, bytes)) in shape.parameters.iter().zip(parameters).enumerate() {
            let format = format_at(parameter_formats, index);
            let value = decode_parameter(kind, format, bytes.as_deref(), &environment).map_err(|error| match &error
                .detail
            {
                // PostgreSQL's own says more.
                Some(_) => error,
                None => error.with_detail(format!("In parameter ${}.", index + 1)),
            })?;
            if index < used {
                values.push(value);
            }
        }
        let portal = Portal {
            parameter_bytes,
            savepoints: self.savepoint_count(),
            ..Portal::new(prepared, values, result_formats)
        };
        self.portals.insert(name, portal);
        backend::bind_complete(&mut self.output.pending);
        Ok(())
    }

    /// Whether there can be no more portals, or none with so long parameters.
    pub(super) fn refuse_portal(&self, parameter_bytes: usize) -> Result<(), WireError> {
        if self.portals.len() >= self.shared.limits.max_portals {
            let message = format!("a session has at most {} portals open", self.shared.limits.max_portals);
            return Err(WireError::new("53400", message).with_hint("Close those that are no longer needed."));
        }
        let others = self.portals.values().map(|portal| portal.parameter_bytes);
        let bytes = parameter_bytes + others.sum::<usize>();
        self.refuse_if_too_large(bytes, "the parameters of open portals")
    }

    async fn describe_statement(&mut self, name: &str) -> Result<(), Stop> {
        let mut prepared = self.prepared(name)?;
        // What gives no rows says so, whatever became of what it names.
        if !prepared.shape.columns.is_empty() {
            self.refuse_if_in_failed_block()?;
            prepared = self.brought_up_to_date(prepared).await?;
        }
        backend::parameter_description(&mut self.output.pending, &prepared.shape.parameters)?;
        Ok(self.describe_columns_or_none(&prepared.shape.columns, &[])?)
    }

    fn describe_portal(&mut self, name: &str) -> Result<(), Stop> {
        let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
        let (prepared, formats) = (Arc::clone(&portal.prepared), portal.formats.clone());
        if !prepared.shape.columns.is_empty() {
            self.refuse_if_in_failed_block()?;
        }
        Ok(self.describe_columns_or_none(&prepared.shape.columns, &formats)?)
    }

    pub(super) fn describe_columns(&mut self, columns: &[Field], formats: &[i16]) -> Result<(), WireError> {
        let described: Vec<Column> = columns
            .iter()
            .enumerate()
            .map(|(index, field)| {
                Column::new(&field.name, field.kind.clone(), format_at(formats, index))
                    .with_typmod(field.typmod)
                    .with_origin(field.origin)
            })
            .collect();
        backend::row_description(&mut self.output.pending, &described)
    }

    fn describe_columns_or_none(&mut self, columns: &[Field], formats: &[i16]) -> Result<(), WireError> {
        if columns.is_empty() {
            backend::no_data(&mut self.output.pending);
            return Ok(());
        }
        self.describe_columns(columns, formats)
    }

    async fn execute_message(&mut self, name: String, max_rows: u32) -> Result<(), Stop> {
        let portal = self.portals.get(&name).ok_or_else(|| no_portal(&name))?;
        if let Some(statement) = &portal.prepared.statement {
            self.refuse_if_failed(&statement.kind)?;
        }
        // Out of the map while it runs.
        let mut portal = self.portals.remove(&name).ok_or_else(|| no_portal(&name))?;
        self.executing = Some(name.clone());
        let executed = self.execute_portal(&mut portal, max_rows).await;
        self.executing = None;
        if executed.is_err() {
            portal.fail();
        }
        // What ended its transaction ended itself.
        if executed.is_err() || !portal.prepared.statement.as_ref().is_some_and(closes_portals) {
            self.portals.insert(name, portal);
        }
        executed
    }

    async fn execute_portal(&mut self, portal: &mut Portal, max_rows: u32) -> Result<(), Stop> {
        self.stand_in(portal).await?;
        if let Some(statement) = &portal.prepared.statement {
            let writes = matches!(statement.kind, Kind::Sql)
                && (!portal.prepared.shape.read_only || statement.runs_alone)
                && matches!(portal.state, PortalState::Ready);
            // What a setting was comes back with the transaction, and what is said of the transaction holds for all of the group.
            let sets = matches!(
                statement.kind,
                Kind::Set { .. } | Kind::Reset(_) | Kind::SetTransaction { .. } | Kind::SetConstraints { .. }
            );
            // Alone before Sync it shares its commit; with others it is one transaction with them.
            if (writes || sets) && self.block.is_none() && self.next_kind().await? != b'S' {
                self.open_implicit_block();
            }
        }
        let rows_max = if max_rows == 0 { u64::MAX } else { u64::from(max_rows) };
        self.execute(portal, rows_max, false).await
    }

    pub(super) fn refuse_if_failed(&self, kind: &Kind) -> Result<(), WireError> {
        if ends_failure(kind) {
            return Ok(());
        }
        self.refuse_if_in_failed_block()
    }

    fn refuse_if_in_failed_block(&self) -> Result<(), WireError> {
        match &self.block {
            Some(block) if block.failed => Err(WireError::new(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            _ => Ok(()),
        }
    }

    /// A session keeps as much as one message may bring, however many messages bring it.
    fn refuse_if_too_large(&self, bytes: usize, what: &str) -> Result<(), WireError> {
        let bytes_max = self.shared.limits.max_message_bytes;
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(
            WireError::new("53400", format!("{what} of a session take at most {bytes_max} bytes"))
                .with_hint("Close those that are no longer needed."),
        )
    }

    pub(super) fn prepared(&self, name: &str) -> Result<Arc<Prepared>, WireError> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = if name.is_empty() {
                "unnamed prepared statement does not exist".to_owned()
            } else {
                format!("prepared statement \"{name}\" does not exist")
            };
            WireError::new("26000", message)
        })
    }
}

fn closes_portals(statement: &Statement) -> bool {
    matches!(
        statement.kind,
        Kind::Commit { .. } | Kind::Rollback { .. } | Kind::Discard { all: true, .. }
    )
}

/// Whether a statement that defines something names what is only missing or in the way now: PostgreSQL looks when it is executed.
fn may_come_to_be(statement: &Statement, error: &WireError) -> bool {
    let about_names = ["42", "3F", "2B"].iter().any(|class| error.sqlstate.starts_with(class));
    statement.kind == Kind::Sql && matches!(statement.tag, Tag::Words(_)) && about_names && error.sqlstate != "42601"
}

fn no_portal(name: &str) -> WireError {
    WireError::new("34000", format!("portal \"{name}\" does not exist"))
}
