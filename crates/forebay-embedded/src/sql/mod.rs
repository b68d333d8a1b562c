//! The SQL front end: takes statement text and says what to do with it; after a look at the schema, what SQLite is to run instead.
//!
//! Contract:
//! - It is PostgreSQL's SQL, carried out by SQLite: equal, or refused with words that name it (0A000), never different. Where
//!   PostgreSQL reports an error, a spelling of SQLite's own may stand instead: PRAGMA does.
//! - What would change or read the state of a connection, which all clients share, is refused by name.
//!
//! `compile` is the compiler, `functions` what its output calls, `facts` what PostgreSQL knows of its types and functions. Queries of
//! PostgreSQL's catalog are told apart here (`catalog_query`) and answered elsewhere.
//!
//! Knows nothing of sockets, messages or transactions.

mod alter_sequence;
mod carrier;
mod catalog_query;
mod command;
pub(crate) mod compile;
mod copy;
mod cursor;
mod dialect;
mod error;
pub(crate) mod facts;
pub(crate) mod functions;
mod grammar;
mod lexer;
mod lift;
mod maintenance;
mod misread;
mod pragma;
mod sequence_options;
mod split;
mod tag;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub use carrier::Direction;
pub(crate) use compile::attempt::{Attempt, Question, Suspect};
pub(crate) use compile::definition::Definition;
pub(crate) use compile::namespace::{parted, search_path, shown};
pub use compile::{Asked, Locks, Plan, ResultColumn, Step};
pub use error::SqlError;
pub(crate) use functions::clock_micros;
pub use functions::{GIVE_BACK, Marked, Sequences, Told, marked_error, register, zone};
pub use split::Hints;
pub use tag::Tag;

pub use copy::{Copy, Forced, Format, Header, Subject};
use cursor::Cursor;
use error::character_position;
use lexer::Token;
pub(crate) use lift::lift;
use split::Segment;

/// More tokens than this in one statement are refused: a tree of them takes some hundred bytes each.
const TOKENS_MAX: usize = 1_000_000;
/// So many statements at the beginning of a script are understood once: most scripts have no more.
const UNDERSTOOD_ONCE_MAX: usize = 16;

/// What a statement may ask about the session it runs in. The answers are put into the statement as literals when it is parsed,
/// because SQLite's functions know no session.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// `current_user`, `session_user`, `user`.
    pub user: &'a str,
    /// `current_database()`, `current_catalog`.
    pub database: &'a str,
    /// `pg_backend_pid()`.
    pub pid: i32,
    /// `version()`.
    pub version: &'a str,
    /// `current_setting(name)`, by the name in lower case.
    pub settings: &'a dyn Fn(&str) -> Option<String>,
}

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
    parameter_count: usize,
    tree: Option<Arc<grammar::Tree>>,
    carried: Option<Arc<Statement>>,
    maintenance: Option<Arc<maintenance::Maintenance>>,
    altered_sequence: Option<Arc<alter_sequence::AlterSequence>>,
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

/// Splits a script into statements and understands each. Empty for a script of white space and comments.
#[cfg(test)]
pub fn parse_script(text: &str) -> Result<Vec<Statement>, SqlError> {
    let mut script = Script::new(text.into())?;
    while !script.check_some(usize::MAX)? {}
    std::iter::from_fn(|| script.next_statement()).collect()
}

/// The statements of a script, which are understood twice: once all of them, before the first is run, for an error anywhere is an
/// error of the whole; and each once more when its turn comes, so that no more than a few are in memory at a time.
pub struct Script {
    text: Arc<str>,
    /// The first ones, as they were understood the first time.
    first: VecDeque<Statement>,
    /// Where the first one that was understood and dropped begins.
    at: usize,
    /// Where the first one begins that was not understood yet.
    unchecked: usize,
    statement_count: usize,
}

impl Script {
    /// A script of which nothing was understood yet.
    ///
    /// # Errors
    /// If it is no text of tokens, or a statement is one of too many.
    pub fn new(text: Arc<str>) -> Result<Self, SqlError> {
        if let Some(byte) = text.find('\0') {
            return Err(SqlError::Syntax {
                message: "a zero byte in the statement".to_owned(),
                position: Some(character_position(&text, byte)),
            });
        }
        // A token takes a byte at least. Too many are refused before the work for the first statement.
        if text.len() > TOKENS_MAX {
            split::Segments::starting_at(&text, 0, TOKENS_MAX).try_for_each(|segment| segment.map(|_| ()))?;
        }
        Ok(Self {
            text,
            first: VecDeque::new(),
            at: 0,
            unchecked: 0,
            statement_count: 0,
        })
    }

    /// Understands up to so many more statements; true once it has understood all. Nothing is to be run before.
    ///
    /// # Errors
    /// That of the first statement that cannot be understood.
    pub fn check_some(&mut self, statements_max: usize) -> Result<bool, SqlError> {
        let mut segments = split::Segments::starting_at(&self.text, self.unchecked, TOKENS_MAX);
        for _ in 0..statements_max {
            let Some(segment) = segments.next() else {
                self.unchecked = segments.at();
                return Ok(true);
            };
            let statement = understand(&self.text, &segment?)?;
            self.statement_count += 1;
            self.unchecked = segments.at();
            if self.first.len() == self.statement_count - 1 && self.first.len() < UNDERSTOOD_ONCE_MAX {
                self.first.push_back(statement);
                self.at = segments.at();
            }
        }
        Ok(false)
    }

    /// The text, in which error positions are counted.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How many statements were understood.
    pub fn statement_count(&self) -> usize {
        self.statement_count
    }

    /// The next statement.
    pub fn next_statement(&mut self) -> Option<Result<Statement, SqlError>> {
        if let Some(statement) = self.first.pop_front() {
            return Some(Ok(statement));
        }
        let mut segments = split::Segments::starting_at(&self.text, self.at, TOKENS_MAX);
        let segment = segments.next();
        self.at = segments.at();
        Some(segment?.and_then(|segment| understand(&self.text, &segment)))
    }
}

fn understand(script: &str, segment: &Segment) -> Result<Statement, SqlError> {
    let cursor = Cursor::new(script, &segment.tokens);
    let written = &script[segment.range.clone()];
    let mut statement = Statement {
        kind: Kind::Sql,
        sql: written.into(),
        offset: segment.range.start,
        hints: segment.hints,
        tag: tag_of(&cursor),
        runs_alone: false,
        parameter_count: count_parameters(script, &segment.tokens)?,
        tree: None,
        carried: None,
        maintenance: None,
        altered_sequence: None,
    };
    if let Some(carrier) = carrier::understand(script, segment)? {
        (statement.kind, statement.tag) = (carrier.kind, carrier.tag);
        match statement.kind {
            // Its parameters are not the client's to bind.
            Kind::Prepare { .. } => statement.parameter_count = 0,
            Kind::Execute(_) => statement.tree = parsed(script, segment)?,
            _ => {}
        }
        statement.carried = carrier.carried.map(Arc::new);
        return Ok(statement);
    }
    if let Some((kind, tag)) = command::understand(&cursor)? {
        (statement.kind, statement.tag) = (kind, tag);
        return Ok(statement);
    }
    let first = cursor.peek_word();
    if first == "PRAGMA" {
        let mut behind = cursor.clone();
        behind.next();
        statement.runs_alone = pragma::judge(&behind)? == pragma::Run::WritesAlone;
        return Ok(statement);
    }
    if first == "EXPLAIN" && explained(&cursor) == "PRAGMA" {
        // Some take effect when they are prepared, explained or not.
        return Err(SqlError::unsupported("EXPLAIN of a PRAGMA"));
    }
    if let Some(maintenance) = maintenance::Maintenance::understand(&cursor)? {
        statement.runs_alone = maintenance.is_vacuum;
        statement.tag = Tag::Words(if maintenance.is_vacuum { "VACUUM" } else { "ANALYZE" }.into());
        statement.maintenance = Some(Arc::new(maintenance));
        return Ok(statement);
    }
    if let Some(alter) = alter_sequence::AlterSequence::understand(&cursor)? {
        statement.tag = Tag::Words("ALTER SEQUENCE".into());
        statement.altered_sequence = Some(Arc::new(alter));
        return Ok(statement);
    }
    statement.runs_alone = is_concurrent(&cursor);
    misread::refuse(script, &segment.tokens)?;
    let depth = grammar::check_depth(script, &segment.tokens)?;
    grammar::with_deep_stack(depth, || {
        if let Some(tree) = catalog_query::catalog_query(script, segment, written)? {
            statement.kind = Kind::Catalog;
            statement.tree = tree.map(|tree| Arc::new(grammar::Tree::new(tree, depth)));
        } else {
            let tree = grammar::parse(written).map_err(|error| {
                command::unread_alteration(&cursor).unwrap_or_else(|| error.moved(script, segment.range.start))
            })?;
            statement.tree = tree.map(|tree| Arc::new(grammar::Tree::new(tree, depth)));
        }
        Ok(())
    })
    .map(|()| statement)
}

/// The tree of a statement that is not for SQLite.
fn parsed(script: &str, segment: &Segment) -> Result<Option<Arc<grammar::Tree>>, SqlError> {
    let depth = grammar::check_depth(script, &segment.tokens)?;
    grammar::with_deep_stack(depth, || {
        let tree =
            grammar::parse(&script[segment.range.clone()]).map_err(|error| error.moved(script, segment.range.start))?;
        Ok(tree.map(|tree| Arc::new(grammar::Tree::new(tree, depth))))
    })
}

/// Compiles a statement that is for SQLite, by the schema of this connection. `declared` are the types the client gave its parameters.
pub(crate) fn compile(
    connection: &rusqlite::Connection,
    statement: &Statement,
    script: &str,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    declared: &[u32],
) -> Result<Plan, SqlError> {
    if let Some(maintenance) = &statement.maintenance {
        return maintenance.plan(connection, environment);
    }
    if let Some(alter) = &statement.altered_sequence {
        return compile::alter_sequence(alter, connection, environment, values)
            .map_err(|fault| placed(fault, statement, script));
    }
    let Some(tree) = &statement.tree else {
        return described_by_sqlite(connection, statement);
    };
    grammar::with_deep_stack(tree.depth(), || {
        compile::compile(tree.statement(), connection, environment, values, declared)
            .map_err(|fault| placed(fault, statement, script))
    })
}

/// Compiles the arguments of an EXECUTE: a query of one row, its columns of these types.
pub(crate) fn compile_arguments(
    connection: &rusqlite::Connection,
    statement: &Statement,
    script: &str,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    wanted: &[u32],
) -> Result<Plan, SqlError> {
    let tree = statement.tree.as_ref().expect("an EXECUTE is parsed");
    grammar::with_deep_stack(tree.depth(), || {
        compile::compile_arguments(tree.statement(), connection, environment, values, wanted)
            .map_err(|fault| placed(fault, statement, script))
    })
}

/// The compiler's error, with its place in the script.
fn placed(fault: compile::Fault, statement: &Statement, script: &str) -> SqlError {
    let place = fault.location.map(|location| {
        character_position(script, statement.offset) - 1
            + grammar::position_of(&statement.sql, location.line, location.column)
    });
    let mut error = SqlError::from(fault);
    if let SqlError::Fault { position, .. } = &mut error {
        *position = place;
    }
    error
}

/// What a statement that has failed was about to do. `parameters` are the types that its parameters have.
pub(crate) fn attempt(
    connection: &rusqlite::Connection,
    statement: &Statement,
    environment: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    parameters: &[u32],
    suspect: &Suspect,
) -> Option<Attempt> {
    let tree = statement.tree.as_ref()?;
    grammar::with_deep_stack(tree.depth(), || {
        compile::attempt::compile(tree.statement(), connection, environment, values, parameters, suspect)
    })
}

/// A PRAGMA that was judged: as SQLite describes it.
fn described_by_sqlite(connection: &rusqlite::Connection, statement: &Statement) -> Result<Plan, SqlError> {
    let prepared = connection.prepare(&statement.sql)?;
    let columns = prepared
        .columns()
        .map(|column| ResultColumn {
            name: column.name().to_owned(),
            kind: compile::types::TypeName::plain(facts::oid::TEXT),
            not_null: false,
            origin: None,
        })
        .collect();
    Ok(Plan {
        columns,
        writes: !prepared.readonly() || statement.runs_alone,
        session_bound: true,
        ..Plan::of_steps(vec![statement.sql.to_string().into()])
    })
}

/// A column of a table, for COPY.
#[derive(Debug, Clone)]
pub(crate) struct CopiedColumn {
    pub(crate) name: String,
    pub(crate) oid: u32,
    pub(crate) typmod: i32,
    /// Computed: neither copied from nor to.
    pub(crate) generated: bool,
}

/// The name in the file, and the columns, of a table that is copied, `from` the client or to it. `path` is the setting of `search_path`, and the user.
pub(crate) fn copied_columns(
    connection: &rusqlite::Connection,
    schema: Option<&str>,
    name: &str,
    path: (&str, &str),
    from: bool,
) -> Result<(String, Vec<CopiedColumn>), SqlError> {
    let fault = |sqlstate: &'static str, message: String, hint: Option<&str>| SqlError::Fault {
        sqlstate,
        message,
        detail: None,
        hint: hint.map(str::to_owned),
        position: None,
    };
    let others = compile::namespace::schemas(connection)?;
    let is_there = |name: &str| name == "public" || others.iter().any(|known| known == name);
    let schemas = match schema {
        Some(schema) => vec![schema.to_owned()],
        None => search_path(path.0, path.1, is_there),
    };
    let mut found = None;
    for schema in schemas.iter().filter(|schema| is_there(schema)) {
        if found.is_none() {
            found = compile::schema::Schema::new(connection).table(&compile::namespace::stored(schema, name))?;
        }
    }
    let own = name.starts_with("sqlite_") || name.starts_with("forebay_");
    let Some(table) = found.filter(|_| !own) else {
        return Err(fault("42P01", format!("relation \"{name}\" does not exist"), None));
    };
    if table.view.is_some() || table.foreign_view {
        return Err(if from {
            fault("42809", format!("cannot copy to view \"{name}\""), None)
        } else {
            let hint = "Try the COPY (SELECT ...) TO variant.";
            fault("42809", format!("cannot copy from view \"{name}\""), Some(hint))
        });
    }
    let columns = table
        .columns
        .iter()
        .map(|column| CopiedColumn {
            name: column.name.clone(),
            oid: column.kind.oid,
            typmod: column.kind.typmod,
            generated: column.generated,
        })
        .collect();
    Ok((table.name.clone(), columns))
}

/// Whether SQLite's text of a table has a foreign key that is DEFERRABLE and not INITIALLY DEFERRED.
pub(crate) fn is_deferrable_only(sql: &str) -> bool {
    Definition::read(sql).is_some_and(|table| table.foreign_keys.iter().any(|key| key.deferrable && !key.deferred))
}

/// The highest parameter number. Names have no place in the protocol.
fn count_parameters(script: &str, tokens: &[Token]) -> Result<usize, SqlError> {
    let mut highest = 0;
    for token in tokens.iter().filter(|token| token.kind == lexer::Kind::Parameter) {
        let name = token.text(script);
        match name.strip_prefix('$').and_then(|digits| digits.parse().ok()) {
            Some(number @ 1..=compile::PARAMETERS_MAX) => highest = highest.max(number),
            _ => {
                return Err(SqlError::NoSuchParameter {
                    name: name.to_owned(),
                    position: Some(character_position(script, token.range.start)),
                });
            }
        }
    }
    Ok(highest)
}

/// `CREATE INDEX CONCURRENTLY` and `DROP INDEX CONCURRENTLY`.
fn is_concurrent(cursor: &Cursor<'_>) -> bool {
    let mut cursor = cursor.clone();
    if cursor.take_words(&["CREATE"]) {
        cursor.take_words(&["UNIQUE"]);
    } else if !cursor.take_words(&["DROP"]) {
        return false;
    }
    cursor.take_words(&["INDEX", "CONCURRENTLY"])
}

/// The first word of what an EXPLAIN explains.
fn explained(cursor: &Cursor<'_>) -> String {
    let mut cursor = cursor.clone();
    cursor.next();
    cursor.take_words(&["QUERY", "PLAN"]);
    cursor.peek_word()
}

/// The tag of a statement that is no session command, from its first words.
fn tag_of(cursor: &Cursor<'_>) -> Tag {
    let mut cursor = cursor.clone();
    let mut first = cursor.peek_word();
    if first == "WITH" {
        first = main_verb(cursor.clone());
    }
    match first.as_str() {
        "INSERT" | "REPLACE" => Tag::Insert,
        "UPDATE" => Tag::Update,
        "DELETE" => Tag::Delete,
        "SELECT" | "VALUES" | "TABLE" | "" => Tag::Select,
        "CREATE" | "DROP" | "ALTER" => {
            cursor.next();
            cursor.take_words(&["OR", "REPLACE"]);
            let mut object = cursor.peek_word();
            while matches!(object.as_str(), "UNIQUE" | "VIRTUAL" | "TEMP" | "TEMPORARY") {
                cursor.next();
                object = cursor.peek_word();
            }
            if first == "CREATE" && object == "TABLE" && is_filled(cursor) {
                return Tag::CreateTableAs;
            }
            Tag::Words(format!("{first} {object}").into())
        }
        "TRUNCATE" | "LOCK" => Tag::Words(format!("{first} TABLE").into()),
        _ => Tag::Words(first.into()),
    }
}

/// Whether a query stands behind the AS of a CREATE TABLE, whose columns are no more than named.
fn is_filled(mut cursor: Cursor<'_>) -> bool {
    let mut depth = 0_usize;
    while let Some(token) = cursor.next() {
        match token.kind {
            lexer::Kind::Open => depth += 1,
            lexer::Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0 && token.is_word(cursor.source, "AS") => return true,
            _ => {}
        }
    }
    false
}

/// The verb behind a WITH clause: the first one outside parentheses.
fn main_verb(mut cursor: Cursor<'_>) -> String {
    let mut depth = 0_usize;
    loop {
        let word = cursor.peek_word();
        let Some(token) = cursor.next() else {
            return String::new();
        };
        match token.kind {
            lexer::Kind::Open => depth += 1,
            lexer::Kind::Close => depth = depth.saturating_sub(1),
            _ if depth == 0
                && matches!(
                    word.as_str(),
                    "SELECT" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "VALUES"
                ) =>
            {
                return word;
            }
            _ => {}
        }
    }
}
