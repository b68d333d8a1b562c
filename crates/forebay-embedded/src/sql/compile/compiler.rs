//! One statement being compiled: what is known of it so far, and what has been found out on the way.
//!
//! Each construct is compiled by a method of [`Compiler`], in the construct's own file. Expressions hold queries and queries hold expressions,
//! so the methods call one another; no file has to know another.

use super::fault::Result;
use super::plan::{Locks, Plan, ResultColumn, SessionColumn, Step};
use super::recorded::{Literal, Recorded};
use super::schema::Schema;
use super::sqlite_text::{numbered, with_rows_apart};
use crate::sql::environment::Environment;
use crate::sql::facts::{Oid, oid};

/// Queries inside one another.
pub(super) const NESTING_MAX: usize = 60;

/// One statement being compiled.
pub(crate) struct Compiler<'a> {
    pub(super) schema: Schema<'a>,
    pub(super) session: &'a Environment<'a>,
    pub(super) values: &'a forebay_pg_values::Environment,
    pub(super) parameters: Vec<Option<Oid>>,
    /// No parameters beyond those: the text is a definition, which has none.
    pub(super) fixed_parameters: bool,
    /// Names without a schema mean `public`: the text is a definition.
    pub(super) public_only: bool,
    /// How many relations have been given names.
    pub(super) names: usize,
    pub(super) depth: usize,
    pub(super) ctes: Vec<KnownCte>,
    /// What has been read from so far, by name in SQLite's text.
    pub(super) read: Vec<String>,
    /// The tables among them, by their names in the file.
    pub(super) tables_read: Vec<String>,
    /// The tables that the statement must have for itself, by their names in the file.
    pub(super) reshapes: Vec<String>,
    pub(super) writes: bool,
    pub(super) locks: Option<Locks>,
    pub(super) zone_bound: bool,
    pub(super) session_bound: bool,
    pub(super) reads_settings: bool,
    /// Inside a condition that a NULL fails like a false.
    pub(super) null_is_false: bool,
    /// Inside something that may never be evaluated: what fails for constants fails when it is met, not before.
    pub(super) lenient: bool,
    /// OVERRIDING SYSTEM VALUE: a column that always numbers itself takes what it is given.
    pub(super) overriding: bool,
    pub(super) notices: Vec<String>,
    pub(super) session_columns: Vec<SessionColumn>,
    pub(super) empties: Vec<String>,
    pub(super) changes: Vec<String>,
    /// Rows are looked at, not stored: what must not be stored is let through.
    pub(super) explains: bool,
    /// What the query of a view depends on, while one is compiled for that.
    pub(super) recorded: Option<Recorded>,
    /// What is compiled is kept in SQLite's words: nothing of the session or the moment may be computed before.
    pub(super) kept: bool,
    /// What literals mean in this session, while those of a definition are looked at.
    pub(super) literals: Option<Vec<Literal>>,
}

/// A name of WITH.
#[derive(Debug, Clone)]
pub(super) struct KnownCte {
    pub(super) name: String,
    /// Its name in SQLite's text.
    pub(super) sql: String,
    pub(super) columns: Vec<ResultColumn>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(
        connection: &'a rusqlite::Connection,
        session: &'a Environment<'a>,
        values: &'a forebay_pg_values::Environment,
    ) -> Self {
        Self {
            schema: Schema::new(connection),
            session,
            values,
            parameters: Vec::new(),
            fixed_parameters: false,
            public_only: false,
            names: 0,
            depth: 0,
            ctes: Vec::new(),
            read: Vec::new(),
            tables_read: Vec::new(),
            reshapes: Vec::new(),
            writes: false,
            locks: None,
            zone_bound: false,
            session_bound: false,
            reads_settings: false,
            null_is_false: false,
            lenient: false,
            overriding: false,
            notices: Vec::new(),
            session_columns: Vec::new(),
            empties: Vec::new(),
            changes: Vec::new(),
            explains: false,
            recorded: None,
            kept: false,
            literals: None,
        }
    }

    /// What was compiled, with what was found out on the way.
    pub(super) fn plan(self, steps: Vec<Step>, columns: Vec<ResultColumn>) -> Plan {
        let parameters: Vec<Oid> = self.parameters.iter().map(|known| known.unwrap_or(oid::TEXT)).collect();
        let asks_for_environment = steps
            .iter()
            .any(|step| matches!(step, Step::Run { environment: true, .. }));
        let mut used = 0;
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| match step {
                Step::Run { sql, environment } => {
                    let (sql, highest) = numbered(&with_rows_apart(&sql), asks_for_environment);
                    used = used.max(highest);
                    let sql = sql.into();
                    Step::Run { sql, environment }
                }
                other => other,
            })
            .collect();
        Plan {
            used,
            steps,
            environment: asks_for_environment,
            parameters,
            columns,
            writes: self.writes,
            // A change that skips some rows goes on with others.
            locks: match self.locks {
                Some(Locks::Skip) if self.writes => Some(Locks::Wait),
                locks => locks,
            },
            zone_bound: self.zone_bound,
            session_bound: self.session_bound,
            reads_settings: self.reads_settings,
            notices: self.notices,
            session_columns: self.session_columns,
            empties: self.empties,
            changes: self.changes,
            tables_read: self.tables_read,
            reshapes: self.reshapes,
        }
    }

    /// The type of a parameter is found to be this one; gives the one it has.
    pub(super) fn parameter_is(&mut self, number: usize, found: Oid) -> Result<Oid> {
        let known = &mut self.parameters[number - 1];
        Ok(*known.get_or_insert(if found == oid::UNKNOWN { oid::TEXT } else { found }))
    }

    /// Compiles what may never be evaluated, if it is so: see [`Compiler::lenient`].
    pub(super) fn leniently<T>(&mut self, is_so: bool, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.lenient;
        self.lenient |= is_so;
        let compiled = compile(self);
        self.lenient = before;
        compiled
    }
}
