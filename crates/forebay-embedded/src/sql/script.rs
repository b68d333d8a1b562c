//! A client's text as the statements it holds, each of them understood.
//!
//! Promises: a statement is understood whole, or is an error with its place in the text. No more than a few statements of a long script are in
//! memory at a time. Knows nothing of schemas: what a statement means to a database is found out when it is compiled.

use std::collections::VecDeque;
use std::sync::Arc;

use super::alter_sequence::AlterSequence;
use super::compile::PARAMETERS_MAX;
use super::error::{SqlError, character_position};
use super::lexer::{self, TOKENS_MAX, Token};
use super::maintenance::Maintenance;
use super::split::{self, Segment};
use super::statement::{Kind, Statement};
use super::tag::{Tag, tag_of};
use super::token_cursor::TokenCursor;
use super::{carrier, catalog_query, command, grammar, misread, pragma};

/// So many statements at the beginning of a script are understood once: most scripts have no more.
const UNDERSTOOD_ONCE_MAX: usize = 16;

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

/// Splits a script into statements and understands each. Empty for a script of white space and comments.
#[cfg(test)]
pub fn parse_script(text: &str) -> Result<Vec<Statement>, SqlError> {
    let mut script = Script::new(text.into())?;
    while !script.check_some(usize::MAX)? {}
    std::iter::from_fn(|| script.next_statement()).collect()
}

fn understand(script: &str, segment: &Segment) -> Result<Statement, SqlError> {
    let cursor = TokenCursor::new(script, &segment.tokens);
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
        if let Some(carried) = carrier.carried {
            let inner = understand(script, &carried.segment)?;
            carried.check(script, &inner.tag)?;
            statement.carried = Some(Arc::new(inner));
        }
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
    if let Some(maintenance) = Maintenance::understand(&cursor)? {
        statement.runs_alone = maintenance.is_vacuum;
        statement.tag = Tag::Words(if maintenance.is_vacuum { "VACUUM" } else { "ANALYZE" }.into());
        statement.maintenance = Some(Arc::new(maintenance));
        return Ok(statement);
    }
    if let Some(alter) = AlterSequence::understand(&cursor)? {
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

/// The highest parameter number. Names have no place in the protocol.
fn count_parameters(script: &str, tokens: &[Token]) -> Result<usize, SqlError> {
    let mut highest = 0;
    for token in tokens.iter().filter(|token| token.kind == lexer::Kind::Parameter) {
        let name = token.text(script);
        match name.strip_prefix('$').and_then(|digits| digits.parse().ok()) {
            Some(number @ 1..=PARAMETERS_MAX) => highest = highest.max(number),
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
fn is_concurrent(cursor: &TokenCursor<'_>) -> bool {
    let mut cursor = cursor.clone();
    if cursor.take_words(&["CREATE"]) {
        cursor.take_words(&["UNIQUE"]);
    } else if !cursor.take_words(&["DROP"]) {
        return false;
    }
    cursor.take_words(&["INDEX", "CONCURRENTLY"])
}

/// The first word of what an EXPLAIN explains.
fn explained(cursor: &TokenCursor<'_>) -> String {
    let mut cursor = cursor.clone();
    cursor.next();
    cursor.take_words(&["QUERY", "PLAN"]);
    cursor.peek_word()
}
