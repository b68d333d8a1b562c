//! The compiler: PostgreSQL's SQL in, SQLite's out.
//!
//! Contract: a statement means what it means to PostgreSQL, or it is refused by name (0A000), or it gets PostgreSQL's own error; never
//! does it mean something else. To that end each name is bound to the schema, each expression has PostgreSQL's type, chosen by
//! PostgreSQL's rules from all that PostgreSQL has ([`resolve`]), and each operator, function, cast and comparison is carried out by
//! SQLite where that is equal ([`native`]), and by a function of PostgreSQL's meaning elsewhere.
//!
//! One walk binds and lowers ([`expression`], [`call`], [`aggregate`], [`subquery`], [`query`], [`from`], [`change`], [`define`]): an expression on its way
//! is a [`scalar::Scalar`], SQLite's text with what PostgreSQL knows of it.
//!
//! Knows the schema by reading it on one connection, and the session by [`Environment`]; nothing of protocol or transactions.

mod aggregate;
mod alter;
mod asked;
pub(crate) mod attempt;
mod call;
mod carry_out;
mod change;
mod constraint;
mod define;
pub(crate) mod definition;
mod drop;
mod execute;
mod expression;
mod fault;
mod from;
mod frozen;
mod index;
mod lateral;
mod locks;
pub(crate) mod namespace;
mod naming;
mod native;
mod quantified;
mod query;
mod rename;
mod resolve;
pub(crate) mod scalar;
pub(crate) mod schema;
mod scope;
mod sequence;
mod subquery;
mod table;
pub(crate) mod types;
mod view;

use std::sync::Arc;

use forebay_sqlite::SchemaEdit;
use sqlparser::ast::{Ident, Statement as Tree};

pub use asked::Asked;
pub(crate) use call::sequence_name_or as sequence_name;
pub(crate) use define::identifier_if_needed;
pub(crate) use fault::{Fault, Result};
pub use locks::Locks;
pub use query::ResultColumn;
pub(crate) use rename::{is_operation, mentions};
use schema::Schema;
#[cfg(test)]
pub(crate) use sequence::SEQUENCES;
pub(crate) use sequence::{alter_sequence, sequence_bounds};
use types::TypeName;

use crate::sql::facts::{Oid, oid};
use crate::sql::{Environment, grammar};

/// The highest number of a parameter, which PostgreSQL's protocol has too.
pub(crate) const PARAMETERS_MAX: usize = 65_535;
/// Queries inside one another.
const NESTING_MAX: usize = 60;

/// A statement, compiled.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is to be done: one step, or several in one transaction.
    pub steps: Vec<Step>,
    /// The types of the parameters.
    pub parameters: Vec<Oid>,
    /// The highest number of a parameter in what SQLite runs, the environment's among them: less than there are where a parameter's
    /// value does not matter.
    pub used: usize,
    /// The number of the parameter that is told the session's environment, if the statement asks for it.
    pub environment: Option<usize>,
    /// The columns of its result.
    pub columns: Vec<ResultColumn>,
    /// Whether it writes, so that a connection that reads cannot run it.
    pub writes: bool,
    /// FOR UPDATE and its like: what is read must not change before the transaction ends.
    pub locks: Option<Locks>,
    /// Holds for sessions in this time zone only.
    pub zone_bound: bool,
    /// Holds for this session only, and now.
    pub session_bound: bool,
    /// Holds for the settings as they are now.
    pub reads_settings: bool,
    /// What to tell the client beside the result.
    pub notice: Option<String>,
    /// The columns of the result, if the session has a part in them.
    pub asked: Vec<Asked>,
    /// Tables that it makes or truncates, by their names in the file.
    pub empties: Vec<String>,
}

impl Plan {
    /// Steps without parameters and columns.
    pub(crate) fn of_steps(steps: Vec<Step>) -> Self {
        Self {
            steps,
            parameters: Vec::new(),
            used: 0,
            environment: None,
            columns: Vec::new(),
            writes: false,
            locks: None,
            zone_bound: false,
            session_bound: false,
            reads_settings: false,
            notice: None,
            asked: Vec::new(),
            empties: Vec::new(),
        }
    }

    /// The text of the first step; empty if it is none of SQLite's.
    pub fn first_sql(&self) -> Arc<str> {
        self.steps.first().and_then(Step::sql).cloned().unwrap_or_default()
    }
}

/// What is to be done at once.
#[derive(Debug, Clone)]
pub enum Step {
    /// A statement for SQLite.
    Run {
        /// Its text.
        sql: Arc<str>,
        /// Whether it asks for the session's environment.
        environment: bool,
    },
    /// The schema's own texts are changed: nothing that a client can say by itself.
    Edit(SchemaEdit),
    /// Until the transaction ends, foreign keys are looked at only then.
    DeferForeignKeys,
}

impl From<String> for Step {
    fn from(sql: String) -> Self {
        let environment = code(&sql).any(|(_, byte)| byte == scalar::ENVIRONMENT as u8);
        Self::Run {
            sql: sql.into(),
            environment,
        }
    }
}

impl Step {
    /// The statement, if it is one.
    pub fn sql(&self) -> Option<&Arc<str>> {
        match self {
            Self::Run { sql, .. } => Some(sql),
            Self::Edit(_) | Self::DeferForeignKeys => None,
        }
    }
}

/// A name of WITH.
#[derive(Debug, Clone)]
struct KnownCte {
    name: String,
    /// Its name in SQLite's text.
    sql: String,
    columns: Vec<ResultColumn>,
}

/// One statement being compiled.
pub(crate) struct Compiler<'a> {
    schema: Schema<'a>,
    session: &'a Environment<'a>,
    values: &'a forebay_pg_values::Environment,
    parameters: Vec<Option<Oid>>,
    /// No parameters beyond those: the text is a definition, which has none.
    fixed_parameters: bool,
    /// Names without a schema mean `public`: the text is a definition.
    public_only: bool,
    /// How many relations have been given names.
    names: usize,
    depth: usize,
    ctes: Vec<KnownCte>,
    /// What has been read from so far, by name in SQLite's text.
    read: Vec<String>,
    writes: bool,
    locks: Option<Locks>,
    zone_bound: bool,
    session_bound: bool,
    reads_settings: bool,
    /// Inside a condition that a NULL fails like a false.
    null_is_false: bool,
    /// Inside something that may never be evaluated: what fails for constants fails when it is met, not before.
    lenient: bool,
    /// OVERRIDING SYSTEM VALUE: a column that always numbers itself takes what it is given.
    overriding: bool,
    notice: Option<String>,
    asked: Vec<Asked>,
    empties: Vec<String>,
    /// Rows are looked at, not stored: what must not be stored is let through.
    explains: bool,
    /// What the query of a view says without saying it, while one is looked at.
    recorded: Option<view::Recorded>,
    /// What literals mean in this session, while those of a definition are looked at.
    literals: Option<Vec<frozen::Literal>>,
}

/// A name as PostgreSQL reads it: in lower case unless it is quoted, and at most 63 bytes long.
pub(super) fn folded(name: &Ident) -> String {
    const NAME_BYTES_MAX: usize = 63;
    let mut folded = if name.quote_style.is_some() {
        name.value.clone()
    } else {
        name.value.to_ascii_lowercase()
    };
    if folded.len() > NAME_BYTES_MAX {
        let mut end = NAME_BYTES_MAX;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// Compiles one statement. `declared` are the types the client gave its parameters, 0 for those it left open.
pub(crate) fn compile(
    tree: &Tree,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    declared: &[Oid],
) -> Result<Plan> {
    let mut compiler = Compiler::new(connection, session, values);
    compiler.parameters = declared
        .iter()
        .map(|oid| (*oid != 0 && *oid != oid::UNKNOWN).then_some(*oid))
        .collect();
    let (steps, columns) = compiler.statement(tree)?;
    Ok(compiler.plan(steps, columns))
}

/// Compiles the arguments of an EXECUTE of a statement whose parameters are of the `wanted` types: a query of one row, or nothing.
pub(crate) fn compile_arguments(
    tree: &Tree,
    connection: &rusqlite::Connection,
    session: &Environment<'_>,
    values: &forebay_pg_values::Environment,
    wanted: &[Oid],
) -> Result<Plan> {
    let mut compiler = Compiler::new(connection, session, values);
    let (steps, columns) = compiler.arguments(tree, wanted)?;
    Ok(compiler.plan(steps, columns))
}

/// The bytes of SQLite's text outside of literals, names and comments, each with its place.
fn code(sql: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = sql.as_bytes();
    // What ends what is open: a quote, or the slash behind a star not before that place.
    let (mut closing, mut from) = (None, 0);
    bytes
        .iter()
        .copied()
        .enumerate()
        .filter(move |&(at, byte)| match closing {
            Some(b'/') => {
                if byte == b'/' && at >= from && bytes[at - 1] == b'*' {
                    closing = None;
                }
                false
            }
            Some(quote) => {
                if byte == quote {
                    closing = None;
                }
                false
            }
            None => {
                closing = match byte {
                    b'\'' | b'"' => Some(byte),
                    b'/' if bytes.get(at + 1) == Some(&b'*') => {
                        from = at + 3;
                        Some(b'/')
                    }
                    _ => None,
                };
                closing.is_none()
            }
        })
}

/// Whether there is a query in SQLite's text.
pub(super) fn has_query(sql: &str) -> bool {
    code(sql).any(|(at, byte)| byte == b'S' && sql[at..].starts_with("SELECT "))
}

/// The text with the number of the parameter that is told the environment.
fn with_environment(sql: &str, number: usize) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut done = 0;
    for (at, _) in code(sql).filter(|(_, byte)| *byte == scalar::ENVIRONMENT as u8) {
        out.push_str(&sql[done..at]);
        out.push('?');
        out.push_str(&number.to_string());
        done = at + 1;
    }
    out.push_str(&sql[done..]);
    out
}

/// The text as SQLite is to have it, and the highest number of a parameter in it. A parameter whose number is the next one goes without
/// it: SQLite looks for numbers one by one in a list of all it has seen.
fn numbered(sql: &str, environment: usize) -> (String, usize) {
    let sql = with_environment(sql, environment);
    let mut out = String::with_capacity(sql.len());
    let (mut done, mut highest) = (0, 0);
    for (at, _) in code(&sql).filter(|(_, byte)| *byte == b'?') {
        let digits = sql[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let number: usize = sql[at + 1..at + 1 + digits].parse().unwrap_or(0);
        if number == highest + 1 {
            out.push_str(&sql[done..=at]);
            done = at + 1 + digits;
        }
        highest = highest.max(number);
    }
    out.push_str(&sql[done..]);
    (out, highest)
}

/// The types of a view's columns, from PostgreSQL's text of it.
pub(crate) fn view_types(connection: &rusqlite::Connection, text: &str) -> Option<Vec<TypeName>> {
    let session = Environment {
        user: "",
        database: "",
        pid: 0,
        version: "",
        settings: &|_| None,
    };
    let values = forebay_pg_values::Environment::new(jiff::tz::TimeZone::UTC, 0);
    let compiled = Compiler::new(connection, &session, &values).view(text).ok()?;
    Some(compiled.columns.iter().map(|column| column.kind).collect())
}

impl<'a> Compiler<'a> {
    fn new(
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
            writes: false,
            locks: None,
            zone_bound: false,
            session_bound: false,
            reads_settings: false,
            null_is_false: false,
            lenient: false,
            overriding: false,
            notice: None,
            asked: Vec::new(),
            empties: Vec::new(),
            explains: false,
            recorded: None,
            literals: None,
        }
    }

    /// What was compiled, with what was found out on the way.
    fn plan(self, steps: Vec<Step>, columns: Vec<ResultColumn>) -> Plan {
        let parameters: Vec<Oid> = self.parameters.iter().map(|known| known.unwrap_or(oid::TEXT)).collect();
        let number = parameters.len() + 1;
        let uses_environment = steps
            .iter()
            .any(|step| matches!(step, Step::Run { environment: true, .. }));
        let mut used = 0;
        let steps: Vec<Step> = steps
            .into_iter()
            .map(|step| match step {
                Step::Run { sql, environment } => {
                    let (sql, highest) = numbered(&sql, number);
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
            environment: uses_environment.then_some(number),
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
            notice: self.notice,
            asked: self.asked,
            empties: self.empties,
        }
    }

    fn statement(&mut self, tree: &Tree) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        match tree {
            Tree::Query(query) => {
                // WITH before a statement that writes is read as a query around it.
                match &*query.body {
                    sqlparser::ast::SetExpr::Insert(inner)
                    | sqlparser::ast::SetExpr::Update(inner)
                    | sqlparser::ast::SetExpr::Delete(inner) => self.change_with(query, inner),
                    _ => {
                        if let Some((steps, columns)) = self.asked(query)? {
                            return Ok((steps, columns));
                        }
                        let compiled = self.query(query, None, None)?;
                        Ok((vec![compiled.sql.into()], compiled.columns))
                    }
                }
            }
            Tree::Insert(insert) => self.one(|compiler| compiler.insert(insert, "")),
            Tree::Update(update) => self.one(|compiler| compiler.update(update, "")),
            Tree::Delete(delete) => self.one(|compiler| compiler.delete(delete, "")),
            Tree::Explain {
                statement,
                analyze: false,
                ..
            } => {
                let (steps, _) = self.statement(statement)?;
                if self.writes {
                    return Err(Fault::unsupported("EXPLAIN of a statement that writes"));
                }
                if !std::mem::take(&mut self.asked).is_empty() {
                    return Err(Fault::unsupported("EXPLAIN of this statement"));
                }
                let [Step::Run { sql: step, .. }] = steps.as_slice() else {
                    return Err(Fault::unsupported("EXPLAIN of this statement"));
                };
                let column = |name: &str, kind: Oid| ResultColumn {
                    name: name.to_owned(),
                    kind: TypeName::plain(kind),
                    not_null: true,
                    origin: None,
                };
                let columns = vec![
                    column("id", oid::INT4),
                    column("parent", oid::INT4),
                    column("notused", oid::INT4),
                    column("detail", oid::TEXT),
                ];
                Ok((vec![format!("EXPLAIN QUERY PLAN {step}").into()], columns))
            }
            Tree::Explain { .. } => Err(Fault::unsupported("EXPLAIN ANALYZE")),
            other => {
                self.writes = true;
                self.define(other).map(|steps| (steps, Vec::new()))
            }
        }
    }

    fn one(
        &mut self,
        compile: impl FnOnce(&mut Self) -> Result<(String, Vec<ResultColumn>)>,
    ) -> Result<(Vec<Step>, Vec<ResultColumn>)> {
        self.writes = true;
        let (sql, columns) = compile(self)?;
        Ok((vec![sql.into()], columns))
    }

    /// The type of a parameter is found to be this one; gives the one it has.
    fn parameter_is(&mut self, number: usize, found: Oid) -> Result<Oid> {
        let known = &mut self.parameters[number - 1];
        Ok(*known.get_or_insert(if found == oid::UNKNOWN { oid::TEXT } else { found }))
    }

    /// The query of a view, from PostgreSQL's text of it.
    fn view(&mut self, text: &str) -> Result<query::Compiled> {
        let Ok(Some(Tree::Query(query))) = grammar::parse(text) else {
            return Err(Fault::new("XX001", "the text of a view in the file cannot be read"));
        };
        let ctes = std::mem::take(&mut self.ctes);
        let fixed = std::mem::replace(&mut self.fixed_parameters, true);
        let public_only = std::mem::replace(&mut self.public_only, true);
        let parameters = std::mem::take(&mut self.parameters);
        let recorded = self.recorded.take();
        let literals = self.literals.take();
        let compiled = self.query(&query, None, None);
        self.public_only = public_only;
        self.recorded = recorded;
        self.literals = literals;
        self.parameters = parameters;
        self.fixed_parameters = fixed;
        self.ctes = ctes;
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_outside_of_literals_names_and_comments() {
        let environment = scalar::ENVIRONMENT;
        for (sql, expected, highest) in [
            ("SELECT ?1, ?2, ?1", "SELECT ?, ?, ?1".to_owned(), 2),
            ("SELECT ?2, ?1, ?3", "SELECT ?2, ?1, ?".to_owned(), 3),
            (
                "SELECT '?1' || \"?2\" /* ?3 it's */ || ?1",
                "SELECT '?1' || \"?2\" /* ?3 it's */ || ?".to_owned(),
                1,
            ),
            ("SELECT /*/ ?1 */ ?1", "SELECT /*/ ?1 */ ?".to_owned(), 1),
            ("SELECT 'it''s ?1', ?1", "SELECT 'it''s ?1', ?".to_owned(), 1),
            (
                &format!("SELECT '{environment}', \"{environment}\", f({environment}), ?1"),
                format!("SELECT '{environment}', \"{environment}\", f(?7), ?1"),
                7,
            ),
        ] {
            assert_eq!(numbered(sql, 7), (expected, highest));
        }
        assert!(matches!(
            Step::from(format!("SELECT '{environment}'")),
            Step::Run { environment: false, .. }
        ));
    }
}
