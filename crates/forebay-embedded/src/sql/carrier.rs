//! Statements about other statements: PREPARE and DECLARE, which carry one, and EXECUTE, FETCH and MOVE, which go on with one.
//!
//! Promises: understood whole or an error. The statement that one carries is only located here, and refused where it does not fit. Knows
//! nothing of what a session does with them.

use super::compile::types;
use super::error::{SqlError, character_position};
use super::grammar;
use super::lexer::{Kind as TokenKind, Token};
use super::split::{Hints, Segment};
use super::statement::{Direction, Kind};
use super::tag::Tag;
use super::token_cursor::TokenCursor;

/// One of these statements.
pub(super) struct Carrier {
    pub(super) kind: Kind,
    pub(super) tag: Tag,
    /// The statement it carries.
    pub(super) carried: Option<Carried>,
}

/// The statement that one carries, not understood yet.
pub(super) struct Carried {
    pub(super) segment: Segment,
    /// The tags of statements that may stand in its place.
    fit: fn(&Tag) -> bool,
}

impl Carried {
    /// Refuses a statement that cannot stand here, by its tag.
    pub(super) fn check(&self, script: &str, tag: &Tag) -> Result<(), SqlError> {
        match (self.segment.tokens.first(), (self.fit)(tag)) {
            (Some(first), false) => Err(misplaced(script, first)),
            _ => Ok(()),
        }
    }
}

fn misplaced(script: &str, first: &Token) -> SqlError {
    SqlError::Syntax {
        message: format!("syntax error at or near \"{}\"", first.text(script)),
        position: Some(character_position(script, first.range.start)),
    }
}

/// The statement these tokens are; `None` if it is none of these.
pub(super) fn understand(script: &str, segment: &Segment) -> Result<Option<Carrier>, SqlError> {
    let mut cursor = TokenCursor::new(script, &segment.tokens);
    let first = cursor.peek_word();
    cursor.next();
    match first.as_str() {
        "PREPARE" => prepare(cursor, segment.hints),
        "EXECUTE" => Ok(Some(Carrier {
            kind: Kind::Execute(cursor.name("a prepared statement")?),
            tag: Tag::Words("EXECUTE".into()),
            carried: None,
        })),
        "DECLARE" => declare(cursor, segment.hints),
        "FETCH" | "MOVE" => fetch(cursor, first == "MOVE").map(Some),
        _ => Ok(None),
    }
}

/// `name [(type, …)] AS statement`.
fn prepare(mut cursor: TokenCursor<'_>, hints: Hints) -> Result<Option<Carrier>, SqlError> {
    if cursor.take_words(&["TRANSACTION"]) && matches!(cursor.string(), Ok(Some(_))) {
        return Err(SqlError::unsupported("PREPARE TRANSACTION"));
    }
    let name = cursor.name("a name for the statement")?;
    let mut types = Vec::new();
    if cursor.peek().is_some_and(|token| token.kind == TokenKind::Open) {
        cursor.next();
        loop {
            let written = up_to_comma(&mut cursor);
            match grammar::data_type(written) {
                Some(_) if written.trim().eq_ignore_ascii_case("unknown") => types.push(0),
                Some(data_type) => types.push(types::resolve(&data_type)?.oid),
                None => return cursor.expected("a type"),
            }
            match cursor.next() {
                Some(token) if token.kind == TokenKind::Close => break,
                Some(token) if token.text(cursor.source) == "," => {}
                _ => return cursor.expected("a comma or a parenthesis"),
            }
        }
    }
    if !cursor.take_words(&["AS"]) {
        return cursor.expected("AS");
    }
    let carried = carried(&cursor, hints, |tag| {
        matches!(tag, Tag::Select | Tag::Insert | Tag::Update | Tag::Delete)
    })?;
    Ok(Some(Carrier {
        kind: Kind::Prepare { name, types },
        tag: Tag::Words("PREPARE".into()),
        carried: Some(carried),
    }))
}

/// The text up to the next comma or closing parenthesis outside of parentheses, which stays.
fn up_to_comma<'a>(cursor: &mut TokenCursor<'a>) -> &'a str {
    let (mut depth, mut range) = (0_usize, 0..0);
    while let Some(token) = cursor.peek() {
        match token.kind {
            TokenKind::Open => depth += 1,
            TokenKind::Close if depth == 0 => break,
            TokenKind::Close => depth -= 1,
            _ if depth == 0 && token.text(cursor.source) == "," => break,
            _ => {}
        }
        if range.is_empty() {
            range.start = token.range.start;
        }
        range.end = token.range.end;
        cursor.next();
    }
    &cursor.source[range]
}

/// `name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [{WITH | WITHOUT} HOLD] FOR query`.
fn declare(mut cursor: TokenCursor<'_>, hints: Hints) -> Result<Option<Carrier>, SqlError> {
    let name = cursor.name("a name for the cursor")?;
    let mut scroll = false;
    loop {
        if cursor.take_words(&["BINARY"]) {
            return Err(SqlError::unsupported_but(
                "a BINARY cursor",
                "Ask for binary columns by the protocol's own portals.",
            ));
        } else if cursor.take_words(&["SCROLL"]) {
            scroll = true;
        } else if !cursor.take_words(&["NO", "SCROLL"])
            && !cursor.take_words(&["INSENSITIVE"])
            && !cursor.take_words(&["ASENSITIVE"])
        {
            break;
        }
    }
    if !cursor.take_words(&["CURSOR"]) {
        return cursor.expected("CURSOR");
    }
    let hold = cursor.take_words(&["WITH", "HOLD"]);
    if !hold {
        cursor.take_words(&["WITHOUT", "HOLD"]);
    }
    if !cursor.take_words(&["FOR"]) {
        return cursor.expected("FOR");
    }
    let carried = carried(&cursor, hints, |tag| *tag == Tag::Select)?;
    Ok(Some(Carrier {
        kind: Kind::Declare { name, scroll, hold },
        tag: Tag::Words("DECLARE CURSOR".into()),
        carried: Some(carried),
    }))
}

/// What stands behind here, which must begin like a statement, and be `fit` for its place.
fn carried(cursor: &TokenCursor<'_>, hints: Hints, fit: fn(&Tag) -> bool) -> Result<Carried, SqlError> {
    let (Some(first), Some(last)) = (cursor.rest().first(), cursor.rest().last()) else {
        return Err(SqlError::Syntax {
            message: "syntax error at end of input".to_owned(),
            position: Some(cursor.source.chars().count() + 1),
        });
    };
    // Only these begin one; the tag of what else there is may look like theirs.
    if first.kind != TokenKind::Open
        && !["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE"]
            .iter()
            .any(|word| first.is_word(cursor.source, word))
    {
        return Err(misplaced(cursor.source, first));
    }
    let segment = Segment {
        range: first.range.start..last.range.end,
        tokens: cursor.rest().to_vec(),
        hints,
    };
    Ok(Carried { segment, fit })
}

/// `[direction] [FROM | IN] cursor`.
fn fetch(mut cursor: TokenCursor<'_>, moves: bool) -> Result<Carrier, SqlError> {
    let mut named = cursor.clone();
    // A cursor may be called like a direction.
    let alone = named.name("a cursor").is_ok() && named.is_at_end();
    let direction = if alone {
        Direction::Forward(Some(1))
    } else {
        direction(&mut cursor)?
    };
    let _ = cursor.take_words(&["FROM"]) || cursor.take_words(&["IN"]);
    let name = cursor.name("a cursor")?;
    cursor.end()?;
    Ok(Carrier {
        kind: Kind::Fetch { name, direction, moves },
        tag: if moves { Tag::Move } else { Tag::Fetch },
        carried: None,
    })
}

fn direction(cursor: &mut TokenCursor<'_>) -> Result<Direction, SqlError> {
    let counted = |count: i64, forward: bool| {
        if (count < 0) == forward && count != 0 {
            Direction::Backward(Some(count.unsigned_abs()))
        } else {
            Direction::Forward(Some(count.unsigned_abs()))
        }
    };
    let mut ahead = cursor.clone();
    let word = cursor.peek_word();
    ahead.next();
    let direction = match word.as_str() {
        "NEXT" => Direction::Forward(Some(1)),
        "PRIOR" => Direction::Backward(Some(1)),
        "FIRST" => Direction::Absolute(1),
        "LAST" => Direction::Absolute(-1),
        "ALL" => Direction::Forward(None),
        "ABSOLUTE" | "RELATIVE" => match number(&mut ahead)? {
            Some(count) if word == "ABSOLUTE" => Direction::Absolute(count),
            Some(count) => Direction::Relative(count),
            None => return ahead.expected("a number"),
        },
        "FORWARD" | "BACKWARD" => {
            let forward = word == "FORWARD";
            if ahead.take_words(&["ALL"]) {
                if forward {
                    Direction::Forward(None)
                } else {
                    Direction::Backward(None)
                }
            } else {
                counted(number(&mut ahead)?.unwrap_or(1), forward)
            }
        }
        _ => {
            ahead = cursor.clone();
            counted(number(&mut ahead)?.unwrap_or(1), true)
        }
    };
    *cursor = ahead;
    Ok(direction)
}

/// A whole number with its sign, if one comes next.
fn number(cursor: &mut TokenCursor<'_>) -> Result<Option<i64>, SqlError> {
    let negative = cursor.take_sign("-");
    let signed = negative || cursor.take_sign("+");
    let Some(token) = cursor.peek().filter(|token| token.kind == TokenKind::Number) else {
        return if signed { cursor.expected("a number") } else { Ok(None) };
    };
    let Ok(number) = token.text(cursor.source).parse::<i32>() else {
        return cursor.expected("a number of rows");
    };
    cursor.next();
    Ok(Some(i64::from(if negative { -number } else { number })))
}
