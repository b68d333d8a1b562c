//! From a text to a statement with its shape: one that is known already, or compiled now.
//!
//! Promises: whoever gets a statement from here gets what compiling its text now, in this session, would give. A simple query that
//! differs from one before it in nothing but literals is the same statement with other parameters; where a literal does not fit its
//! place, the text is compiled as it was written, and says so. A prepared statement outlives changes of the schema and of the search
//! path: it is compiled again, and refused if its result is not what its client was told.

use std::sync::Arc;

use forebay_sqlite::connection::Session as Connection;
use forebay_write::Value;
use postgres_types::Type;

use super::Session;
use super::block::Block;
use super::plans::{Circumstances, Found, Incompilable};
use super::prepared::{Field, Portal, Prepared, Shape};
use super::stop::Stop;
use crate::catalog::relation_oid;
use crate::errors;
use crate::sql::{self, Kind, Plan, Script, Statement};
use crate::values::decode_parameter;
use forebay_pg_wire::error::WireError;

/// Statements of one script that are understood before other sessions on the same thread have a turn: about a millisecond.
const CHECKED_AT_ONCE: usize = 64;

impl Session {
    /// What goes in and comes out of a statement, by a look at the schema. `alone`: it is the whole script.
    pub(super) async fn shape(
        &mut self,
        statement: &Statement,
        script: &Arc<str>,
        declared: &[u32],
        alone: bool,
    ) -> Result<Arc<Shape>, Stop> {
        match &statement.kind {
            Kind::Sql => self.compiled(statement, script, declared, alone).await,
            Kind::Catalog => Ok(Arc::new(self.describe_catalog(statement, declared).await?)),
            Kind::Declare { .. } => {
                let query = statement.carried().expect("a DECLARE carries its query");
                let shape = self.shape_of_query(query, script, declared).await?;
                Ok(Arc::new(Shape {
                    parameters: shape.parameters.clone(),
                    read_only: true,
                    ..Shape::default()
                }))
            }
            // What they name may be there only when they are executed.
            Kind::Execute(name) => {
                let executed = self.statements.get(name);
                Ok(answering(executed.map(|prepared| &prepared.shape.columns)))
            }
            Kind::Fetch { name, moves: false, .. } => {
                let cursor = self.portals.get(name);
                Ok(answering(cursor.map(|portal| &portal.prepared.shape.columns)))
            }
            kind => {
                let columns = super::control::columns(kind, &self.settings);
                Ok(Arc::new(Shape {
                    parameters: kinds(declared),
                    columns,
                    read_only: true,
                    ..Shape::default()
                }))
            }
        }
    }

    /// [`Self::shape`] of a query that another statement carries.
    pub(super) async fn shape_of_query(
        &mut self,
        query: &Statement,
        script: &Arc<str>,
        declared: &[u32],
    ) -> Result<Arc<Shape>, Stop> {
        match &query.kind {
            Kind::Catalog => Ok(Arc::new(self.describe_catalog(query, declared).await?)),
            _ => self.compiled(query, script, declared, false).await,
        }
    }

    /// The statement that is this whole script, if it was compiled before.
    pub(super) fn known(&self, script: &str, declared: &[u32]) -> Result<Option<Found>, Incompilable> {
        if self.has_schema_of_its_own() {
            return Ok(None);
        }
        self.shared.plans.find(script, self.circumstances(declared, true))
    }

    /// The statement that is this whole simple query, and its parameters, if it or one with other literals was compiled before, or
    /// can be from now on.
    pub(super) async fn known_or_lifted(&mut self, script: &str) -> Result<Option<(Found, Vec<Value>)>, Stop> {
        if self.has_schema_of_its_own() {
            return Ok(None);
        }
        if let Ok(Some(found)) = self.known(script, &[])
            && found.shape.parameters.is_empty()
            && found.statement.parameter_count() == 0
        {
            return Ok(Some((found, Vec::new())));
        }
        let Some(lifted) = sql::lift(script) else {
            return Ok(None);
        };
        let found = match self.known(&lifted.text, &lifted.types) {
            Ok(Some(found)) => found,
            Ok(None) => match self.compile_lifted(lifted.text.into(), &lifted.types).await? {
                Some(found) => found,
                None => return Ok(None),
            },
            Err(Incompilable) => return Ok(None),
        };
        let environment = self.value_environment();
        let values = found.shape.parameters.iter().zip(&lifted.values);
        let values: Result<Vec<_>, WireError> = values
            .map(|(kind, value)| decode_parameter(kind, 0, Some(value.as_bytes()), &environment))
            .collect();
        Ok(values.ok().map(|values| (found, values)))
    }

    /// A text whose literals have become parameters; nothing if it cannot do without them.
    async fn compile_lifted(&mut self, text: Arc<str>, types: &[u32]) -> Result<Option<Found>, Stop> {
        let epoch = self.shared.plans.epoch();
        match self.compile_text(&text, types).await {
            Ok(Some(found)) if found.is_for_all() => return Ok(Some(found)),
            Ok(_) => {}
            // Those that will be the same next time: not those of a deadline or of a full disk.
            Err(Stop::Error(error)) if ["42", "0A", "22"].iter().any(|class| error.sqlstate.starts_with(class)) => {}
            // Who does not want to wait any longer does not begin to wait once more.
            Err(Stop::Error(error)) if !["57014", "55P03"].contains(&error.sqlstate) => return Ok(None),
            Err(ended) => return Err(ended),
        }
        let circumstances = self.circumstances(types, true);
        self.shared.plans.keep_incompilable(&text, circumstances, epoch);
        Ok(None)
    }

    async fn compile_text(&mut self, text: &Arc<str>, types: &[u32]) -> Result<Option<Found>, Stop> {
        let mut understood = self.understand(Arc::clone(text)).await?;
        match self.next_statement(&mut understood)? {
            Some(statement) if understood.statement_count() == 1 && statement.kind == Kind::Sql => {
                let shape = self.shape(&statement, text, types, true).await?;
                Ok(Some(Found { statement, shape }))
            }
            _ => Ok(None),
        }
    }

    /// A prepared statement as the schema, the search path and what else it reads of the settings are now.
    pub(super) async fn brought_up_to_date(&mut self, prepared: Arc<Prepared>) -> Result<Arc<Prepared>, Stop> {
        let before = &prepared.shape;
        let Some(statement) = prepared
            .statement
            .as_ref()
            .filter(|_| before.plan.is_some() || before.unresolved)
        else {
            return Ok(prepared);
        };
        let reads_settings = before.plan.as_ref().is_some_and(|plan| plan.reads_settings);
        let is_of_now = !before.unresolved
            && before.epoch == self.shared.plans.epoch()
            && *before.search_path == *self.settings.search_path();
        if is_of_now && !reads_settings {
            return Ok(prepared);
        }
        let declared: Vec<u32> = before.parameters.iter().map(Type::oid).collect();
        // What PREPARE carries is not the whole of its script.
        let alone = *statement.sql == *prepared.script;
        let now = self.shape(statement, &prepared.script, &declared, alone).await?;
        let columns = (&now.columns, &before.columns);
        let seen_alike = || {
            columns
                .0
                .iter()
                .zip(columns.1)
                .all(|(now, before)| now.is_seen_as(before))
        };
        if columns.0.len() != columns.1.len() || !seen_alike() {
            return Err(WireError::unsupported("cached plan must not change result type").into());
        }
        Ok(Arc::new(Prepared {
            statement: prepared.statement.clone(),
            script: Arc::clone(&prepared.script),
            shape: now,
            from_sql: prepared.from_sql,
        }))
    }

    /// Compiles a portal's statement again, whose plan met another schema than its own. `described`: its client has been told the
    /// columns.
    pub(super) async fn recompile(&mut self, portal: &mut Portal, described: bool) -> Result<(), Stop> {
        let before = Arc::clone(&portal.prepared);
        let Some(statement) = &before.statement else {
            return Ok(());
        };
        self.forget_plans();
        let declared: Vec<u32> = before.shape.parameters.iter().map(Type::oid).collect();
        let alone = *statement.sql == *before.script;
        let now = self.compiled_anew(statement, &before.script, &declared, alone).await?;
        if described && now.columns != before.shape.columns {
            return Err(WireError::unsupported("cached plan must not change result type").into());
        }
        portal.prepared = Arc::new(Prepared {
            statement: before.statement.clone(),
            script: Arc::clone(&before.script),
            shape: now,
            from_sql: before.from_sql,
        });
        Ok(())
    }

    /// A plan has met another schema than its own: so would the others. It is nothing to them if this session reads an old one.
    pub(super) fn forget_plans(&self) {
        if self.block.as_ref().is_none_or(|block| block.snapshot().is_none()) {
            self.shared.plans.schema_changed();
        }
    }

    /// Compiles a statement by the schema it meets, unless somebody has done so already.
    async fn compiled(
        &mut self,
        statement: &Statement,
        script: &Arc<str>,
        declared: &[u32],
        alone: bool,
    ) -> Result<Arc<Shape>, Stop> {
        let text = if alone { script } else { &statement.sql };
        if !self.has_schema_of_its_own()
            && let Ok(Some(found)) = self.shared.plans.find(text, self.circumstances(declared, alone))
        {
            return Ok(found.shape);
        }
        self.compiled_anew(statement, script, declared, alone).await
    }

    /// Compiles a statement by the schema it meets. Others find it then, unless this session sees a schema of its own.
    pub(super) async fn compiled_anew(
        &mut self,
        statement: &Statement,
        script: &Arc<str>,
        declared: &[u32],
        alone: bool,
    ) -> Result<Arc<Shape>, Stop> {
        let text = if alone { script } else { &statement.sql };
        let own_schema =
            self.has_schema_of_its_own() || self.block.as_ref().is_some_and(|block| block.snapshot().is_some());
        let epoch = self.shared.plans.epoch();
        let types = declared.to_vec();
        let (plan, schema) = self
            .compile(
                statement,
                script,
                move |connection, statement, script, environment, values| {
                    sql::compile(connection, statement, script, environment, values, &types)
                },
            )
            .await?;
        let shape = Arc::new(Shape {
            epoch,
            search_path: self.settings.search_path().into(),
            ..shape_of(plan, declared, schema)
        });
        if !own_schema {
            let found = Found {
                statement: statement.clone(),
                shape: Arc::clone(&shape),
            };
            let plans = &self.shared.plans;
            plans.keep(text, self.circumstances(declared, alone), epoch, &found);
        }
        Ok(shape)
    }

    /// Has `compile` do its work by the schema that this statement meets.
    pub(super) async fn compile(
        &mut self,
        statement: &Statement,
        script: &Arc<str>,
        compile: impl FnOnce(
            &rusqlite::Connection,
            &Statement,
            &str,
            &sql::Environment<'_>,
            &forebay_pg_values::Environment,
        ) -> Result<Plan, sql::SqlError>
        + Send
        + 'static,
    ) -> Result<(Plan, i64), Stop> {
        let (token, _running) = self.statement_token();
        let source = self.source(&token).await?;
        let (statement, script) = (statement.clone(), Arc::clone(script));
        let (settings, identity, pid) = (self.settings.clone(), self.identity.clone(), self.registration.process);
        let values = self.value_environment();
        let plan = self
            .on_source(&source, &token, move |connection: &mut Connection| {
                connection.refresh_schema().map_err(errors::unplaced)?;
                // Before it is compiled: should the schema change meanwhile, the plan is one for the schema before, and is not run.
                let schema = connection.schema_version().map_err(errors::unplaced)?;
                let settings = |name: &str| settings.value(name);
                let environment = sql::Environment {
                    user: &identity.user,
                    database: &identity.database,
                    pid,
                    version: super::VERSION,
                    settings: &settings,
                };
                compile(connection.connection(), &statement, &script, &environment, &values)
                    .map(|plan| (plan, schema))
                    .map_err(|error| errors::described(&error, connection.take_refusal(), &statement, &script))
            })
            .await??;
        Ok(plan)
    }

    fn has_schema_of_its_own(&self) -> bool {
        self.block.as_ref().is_some_and(Block::has_changed_schema)
    }

    fn circumstances<'a>(&'a self, declared: &'a [u32], alone: bool) -> Circumstances<'a> {
        let search_path = self.settings.search_path();
        Circumstances {
            declared,
            zone: self.settings.zone_name(),
            search_path,
            user: if search_path.contains("$user") {
                self.settings.user()
            } else {
                ""
            },
            alone,
        }
    }

    /// Understands all of a script. Other sessions on the same thread have their turn meanwhile.
    pub(super) async fn understand(&self, script: Arc<str>) -> Result<Script, WireError> {
        let words = |error| errors::understood(&error);
        let mut script = Script::new(script).map_err(words)?;
        while !script.check_some(CHECKED_AT_ONCE).map_err(words)? {
            tokio::task::yield_now().await;
        }
        Ok(script)
    }

    pub(super) fn next_statement(&self, script: &mut Script) -> Result<Option<Statement>, WireError> {
        script
            .next_statement()
            .transpose()
            .map_err(|error| errors::understood(&error))
    }
}

/// The shape of what gives the columns of something else.
fn answering(columns: Option<&Vec<Field>>) -> Arc<Shape> {
    Arc::new(Shape {
        columns: columns.cloned().unwrap_or_default(),
        read_only: true,
        ..Shape::default()
    })
}

fn kind(oid: u32) -> Type {
    Type::from_oid(oid).unwrap_or(Type::TEXT)
}

/// The types of these OIDs.
pub(super) fn kinds(oids: &[u32]) -> Vec<Type> {
    oids.iter().copied().map(kind).collect()
}

/// Of a plan that is carried out at once.
pub(super) fn shape_of(plan: Plan, declared: &[u32], schema: i64) -> Shape {
    let mut parameters = kinds(&plan.parameters);
    // A client may declare more than the statement has.
    parameters.extend(declared.iter().skip(parameters.len()).copied().map(kind));
    Shape {
        parameters,
        columns: plan
            .columns
            .iter()
            .map(|column| Field {
                name: column.name().to_owned(),
                kind: kind(column.type_oid()),
                typmod: column.typmod(),
                origin: column
                    .origin
                    .as_ref()
                    .and_then(|origin| Some((relation_oid(&origin.table), i16::try_from(origin.number).ok()?))),
            })
            .collect(),
        read_only: !plan.writes,
        plan: Some(Arc::new(plan)),
        schema: Some(schema),
        ..Shape::default()
    }
}
