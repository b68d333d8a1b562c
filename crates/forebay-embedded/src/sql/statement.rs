//! One statement, understood: who carries it out, and what it says.
//!
//! Knows nothing of how a text becomes one, nor of what is done with it.

use std::fmt;
use std::sync::Arc;

use super::alter_sequence::AlterSequence;
use super::copy::Copy;
use super::error::character_position;
use super::grammar;
use super::lexer::{self, TOKENS_MAX};
use super::maintenance::Maintenance;
use super::split::Hints;
use super::tag::Tag;

/// An isolation level a client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are SQL's own")]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// What RESET puts back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResetTarget {
    /// Every setting.
    All,
    /// One setting.
    Name(String),
}

/// Who runs a statement, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// For SQLite. Whether it reads or writes is asked of SQLite when it is prepared.
    Sql,
    /// Reads PostgreSQL's catalog (`pg_catalog`, `information_schema`), or calls functions that need it.
    Catalog,
    /// BEGIN, START TRANSACTION.
    Begin {
        /// If the client asked for one.
        isolation: Option<Isolation>,
        /// If the client said READ ONLY or READ WRITE.
        read_only: Option<bool>,
    },
    /// COMMIT, END.
    Commit {
        /// AND CHAIN: a new transaction begins at once.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN: a new transaction begins at once.
        chain: bool,
    },
    /// SAVEPOINT name.
    Savepoint(String),
    /// ROLLBACK TO name.
    RollbackTo(String),
    /// RELEASE name.
    Release(String),
    /// SET TRANSACTION, and SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetTransaction {
        /// If the client named one.
        isolation: Option<Isolation>,
        /// If the client said READ ONLY or READ WRITE.
        read_only: Option<bool>,
        /// For the transactions to come, not this one.
        session: bool,
    },
    /// SET name TO value.
    Set {
        /// The setting, unquoted names in lower case.
        name: String,
        /// The value, a list joined by ", "; `None` is DEFAULT.
        value: Option<String>,
        /// SET LOCAL: until the transaction ends.
        local: bool,
    },
    /// RESET name, RESET ALL.
    Reset(ResetTarget),
    /// SHOW name.
    Show(String),
    /// DISCARD.
    Discard {
        /// DISCARD ALL, which also forgets settings and prepared statements.
        all: bool,
        /// DISCARD ALL or SEQUENCES, which forget what `currval` and `lastval` tell.
        sequences: bool,
    },
    /// PREPARE name AS …; the statement is [`Statement::carried`].
    Prepare {
        /// The name.
        name: String,
        /// The types of its parameters, 0 for one that is left open.
        types: Vec<u32>,
    },
    /// EXECUTE name; the arguments are in the tree.
    Execute(String),
    /// DECLARE name CURSOR FOR …; the query is [`Statement::carried`].
    Declare {
        /// The name.
        name: String,
        /// SCROLL: it can be read in any direction.
        scroll: bool,
        /// WITH HOLD: it outlives its transaction.
        hold: bool,
    },
    /// FETCH and MOVE.
    Fetch {
        /// The cursor.
        name: String,
        /// Which rows.
        direction: Direction,
        /// MOVE: nobody wants to see them.
        moves: bool,
    },
    /// DEALLOCATE name; `None` is ALL.
    Deallocate(Option<String>),
    /// SET CONSTRAINTS.
    SetConstraints {
        /// Which ones; all if there are none.
        names: Vec<String>,
        /// DEFERRED, not IMMEDIATE.
        deferred: bool,
    },
    /// LISTEN channel.
    Listen(String),
    /// UNLISTEN channel; `None` is `*`.
    Unlisten(Option<String>),
    /// NOTIFY channel, payload.
    Notify {
        /// The channel.
        channel: String,
        /// The payload, which may be empty.
        payload: String,
    },
    /// COPY.
    Copy(Box<Copy>),
    /// CLOSE cursor; `None` is ALL.
    Close(Option<String>),
    /// Understood and not offered.
    Unsupported {
        /// The construct, for the message.
        what: String,
        /// What to do instead.
        hint: Option<String>,
    },
}

/// One statement of a script.
#[derive(Clone)]
pub struct Statement {
    /// Who runs it.
    pub kind: Kind,
    /// Its text, as the client wrote it.
    pub sql: Arc<str>,
    /// Where it starts in the script, in bytes.
    pub offset: usize,
    /// What comments asked for.
    pub hints: Hints,
    /// How its completion is announced.
    pub tag: Tag,
    /// Whether it must not share a transaction, or be in a block: VACUUM, some PRAGMAs, what is said to run CONCURRENTLY.
    pub runs_alone: bool,
    /// The highest parameter number in it.
    pub(super) parameter_count: usize,
    pub(super) tree: Option<Arc<grammar::Tree>>,
    pub(super) carried: Option<Arc<Statement>>,
    pub(super) maintenance: Option<Arc<Maintenance>>,
    pub(super) altered_sequence: Option<Arc<AlterSequence>>,
}

impl Statement {
    /// The statement that it carries: of PREPARE what is prepared, of DECLARE the query.
    pub fn carried(&self) -> Option<&Arc<Self>> {
        self.carried.as_ref()
    }

    /// Its syntax tree; `None` for what the parser is not asked for (PRAGMA, VACUUM, ANALYZE).
    pub fn tree(&self) -> Option<&sqlparser::ast::Statement> {
        self.tree.as_deref().map(grammar::Tree::statement)
    }

    /// How many parameters it has: the highest number in it.
    pub fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Where the first name like this stands, as a character of the script the statement came from.
    pub fn position_of_name(&self, script: &str, name: &str) -> Option<usize> {
        let tokens = lexer::tokens(script, TOKENS_MAX).ok()?;
        tokens
            .iter()
            .skip_while(|token| token.range.start < self.offset)
            .take_while(|token| token.kind != lexer::Kind::Semicolon)
            .find(|token| {
                lexer::name_value(token.kind, token.text(script)).is_some_and(|found| found.eq_ignore_ascii_case(name))
            })
            .map(|token| character_position(script, token.range.start))
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Statement")
            .field("kind", &self.kind)
            .field("sql", &self.sql)
            .field("offset", &self.offset)
            .field("hints", &self.hints)
            .field("tag", &self.tag)
            .field("runs_alone", &self.runs_alone)
            .finish_non_exhaustive()
    }
}

/// Which rows of a cursor a FETCH or MOVE goes over; `None` counts as many as there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are SQL's own")]
pub enum Direction {
    Forward(Option<u64>),
    Backward(Option<u64>),
    Absolute(i64),
    Relative(i64),
}
