//! Prepared statements and portals: what Parse and Bind make, and how far Execute has come with it.
//!
//! Knows nothing of how they are carried out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forebay_pg_values::Environment;
use forebay_sqlite::connection::Reader;
use forebay_write::{Sql, Value};
use postgres_types::Type;

use crate::sql::{Plan, Statement, Step};
use forebay_pg_wire::frontend::format_at;

/// A statement that has been understood and described.
#[derive(Debug)]
pub(super) struct Prepared {
    /// None for the empty statement.
    pub(super) statement: Option<Statement>,
    /// The text it came in, which error positions count in.
    pub(super) script: Arc<str>,
    pub(super) shape: Arc<Shape>,
    /// PREPARE made it, and not the protocol.
    pub(super) from_sql: bool,
}

/// What goes in and comes out of a statement.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) parameters: Vec<Type>,
    pub(super) columns: Vec<Field>,
    pub(super) read_only: bool,
    /// What SQLite runs, for a statement that is for it.
    pub(super) plan: Option<Arc<Plan>>,
    /// What it names was not there when it was prepared, or in the way: it is compiled when it is bound.
    pub(super) unresolved: bool,
    /// The state of the schema that the plan is for.
    pub(super) epoch: u64,
    /// SQLite's version of that schema. It is looked at again where the plan runs: a change may be committed and not counted yet, or
    /// be another process's.
    pub(super) schema: Option<i64>,
    /// The search path along which the plan's names were looked up.
    pub(super) search_path: Box<str>,
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Type,
    /// PostgreSQL's modifier of the type, -1 for none.
    pub(super) typmod: i32,
    /// The OID of the table it is a column of, and its number there.
    pub(super) origin: Option<(u32, i16)>,
}

impl Field {
    /// Whether clients see the same column, though it may be another table's.
    pub(super) fn is_seen_as(&self, other: &Self) -> bool {
        (&self.name, &self.kind, self.typmod) == (&other.name, &other.kind, other.typmod)
    }

    pub(super) fn new(name: impl Into<String>, kind: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            typmod: -1,
            origin: None,
        }
    }
}

/// How each column of a result is sent.
#[derive(Debug, Clone)]
pub(super) struct Encoding {
    /// Types and formats.
    pub(super) columns: Arc<[(Type, i16)]>,
    /// What a value's text may depend on.
    pub(super) environment: Arc<Environment>,
}

impl Shape {
    /// What SQLite runs for this query.
    pub(super) fn query(&self, statement: &Statement) -> Sql {
        let step = self.plan.as_ref().and_then(|plan| plan.steps.first());
        Sql::Shared(Arc::clone(step.and_then(Step::sql).unwrap_or(&statement.sql)))
    }

    pub(super) fn encoding(&self, formats: &[i16], environment: Environment) -> Encoding {
        let columns = self.columns.iter().enumerate();
        Encoding {
            columns: columns
                .map(|(index, field)| (field.kind.clone(), format_at(formats, index)))
                .collect(),
            environment: Arc::new(environment),
        }
    }
}

/// A statement with its parameters, ready to be executed in one or several steps.
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) parameters: Vec<Value>,
    /// What the parameters took in their message.
    pub(super) parameter_bytes: usize,
    pub(super) formats: Vec<i16>,
    pub(super) state: PortalState,
    /// How many savepoints its transaction had: a rollback to one of them leaves it.
    pub(super) savepoints: usize,
    /// SCROLL: its rows stay, so that it can be read in any direction.
    pub(super) scroll: bool,
    pub(super) life: Life,
    /// What its rows took when they were gathered.
    pub(super) gathered_bytes: usize,
}

/// How long a portal lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// As long as its transaction.
    Transaction,
    /// Longer, if its transaction commits (WITH HOLD).
    Holdable,
    /// Until it is closed: its transaction has committed.
    Held,
}

impl Portal {
    pub(super) fn new(prepared: Arc<Prepared>, parameters: Vec<Value>, formats: Vec<i16>) -> Self {
        Self {
            prepared,
            parameters,
            parameter_bytes: 0,
            formats,
            state: PortalState::Ready,
            savepoints: 0,
            scroll: false,
            life: Life::Transaction,
            gathered_bytes: 0,
        }
    }

    /// The memory that its rows take.
    pub(super) fn kept_bytes(&self) -> usize {
        match self.state {
            PortalState::Gathered { .. } | PortalState::Scrollable { .. } => self.gathered_bytes,
            _ => 0,
        }
    }

    /// Whether what it reads must stay as it is: it is a query of its transaction that may still be asked for rows.
    pub(super) fn holds_its_tables(&self) -> bool {
        self.life != Life::Held
            && self.prepared.shape.read_only
            && !matches!(self.state, PortalState::Failed | PortalState::Expired)
    }

    /// Gives up what it holds, and stays to be described.
    pub(super) fn fail(&mut self) {
        if !matches!(self.state, PortalState::Expired) {
            self.state = PortalState::Failed;
        }
        self.parameters = Vec::new();
        self.parameter_bytes = 0;
    }

    /// Whether it keeps a reading connection that others may wait for.
    pub(super) fn holds_reader(&self) -> bool {
        matches!(
            &self.state,
            PortalState::Open(OpenCursor {
                source: Source::Own(_),
                ..
            })
        )
    }
}

pub(super) enum PortalState {
    /// Not executed yet.
    Ready,
    /// Rows are read as they are asked for.
    Open(OpenCursor),
    /// Rows that are there already: of RETURNING, SHOW, the catalog.
    Gathered { rows: VecDeque<Vec<Value>> },
    /// All rows of a cursor that is read in any direction.
    Scrollable {
        rows: Vec<Vec<Value>>,
        /// The row it stands on, counted from 1; 0 before the first, one more than there are behind the last.
        position: usize,
    },
    /// Executed to its end.
    Done,
    /// It failed while it was read.
    Failed,
    /// Its client kept it waiting for too long: what it read from was given up.
    Expired,
}

/// A cursor on some connection.
pub(super) struct OpenCursor {
    pub(super) number: u64,
    pub(super) source: Source,
    /// How long it has waited for the client, all in all.
    pub(super) waited: Duration,
}

/// The connection a cursor is on.
pub(super) enum Source {
    /// One taken from the pool for it alone.
    Own(Reader),
    /// The block's transaction, or its snapshot.
    Block,
}
