//! Replaces literals by parameters, so that texts which differ in nothing but their literals are compiled once.
//!
//! Promises: a literal is lifted only where PostgreSQL reads a parameter of the type it gives as it reads the literal: an item of a
//! row that INSERT is given, or of an IN list, the right side of a comparison that ends there in WHERE, the value of an assignment in SET. A string
//! becomes a parameter of no declared type, a number one of the type that it has by its size. Everything else stays as it is written.
//! Whether the text with parameters compiles, and whether each value has the type that it turns out to need, is for the caller to see:
//! if not, the text as it was written says what is wrong.

use std::borrow::Cow;
use std::ops::Range;

use super::facts::oid;
use super::lexer::{Kind, Lexer, Token, string_value};

/// A text with more tokens is bulk that rarely comes again.
const TOKENS_MAX: usize = 20_000;
/// So is a longer one, without its literals.
const TEXT_BYTES_MAX: usize = 32 * 1024;

/// A statement with parameters in the place of its literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lifted<'a> {
    /// The text.
    pub(crate) text: String,
    /// The types of the parameters, 0 for those that are to be told by their place.
    pub(crate) types: Vec<u32>,
    /// What the literals stand for, as text.
    pub(crate) values: Vec<Cow<'a, str>>,
}

/// What the tokens between two parentheses are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// After VALUES, between the rows.
    Rows,
    /// A row of VALUES, or an IN list.
    List,
    Where,
    Set,
    Other,
}

/// The text of one statement with its literals lifted; nothing if none can be, or if it has parameters already.
pub(crate) fn lift(script: &str) -> Option<Lifted<'_>> {
    let mut tokens = Vec::with_capacity(32);
    for token in Lexer::starting_at(script, 0, TOKENS_MAX) {
        let token = token.ok()?;
        if token.kind == Kind::Parameter {
            return None;
        }
        if !token.is_comment() {
            tokens.push(token);
        }
    }
    if tokens.last().is_some_and(|token| token.kind == Kind::Semicolon) {
        tokens.pop();
    }
    let first = tokens.first()?;
    let inserts = first.is_word(script, "INSERT");
    if !["INSERT", "UPDATE", "DELETE", "SELECT"]
        .iter()
        .any(|word| first.is_word(script, word))
    {
        return None;
    }
    let mut lifting = Lifting {
        script,
        copied: 0,
        lifted: Lifted {
            text: String::with_capacity(script.len().min(TEXT_BYTES_MAX)),
            types: Vec::new(),
            values: Vec::new(),
        },
    };
    let mut places = vec![Place::Other];
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        match token.kind {
            Kind::Semicolon => return None,
            Kind::Word => {
                let outermost = places.len() == 1;
                let place = places.last_mut()?;
                *place = match lifting.place_after(token.text(script), *place) {
                    // Rows elsewhere tell one another their types.
                    Place::Rows if !(inserts && outermost) => Place::Other,
                    place => place,
                };
            }
            Kind::Open => {
                let around = *places.last()?;
                places.push(lifting.place_within(around, before?));
            }
            Kind::Close => {
                places.pop();
                places.last()?;
            }
            Kind::Number | Kind::Text | Kind::EscapedText => {
                let place = *places.last()?;
                let signed = token.kind == Kind::Number
                    && before.is_some_and(|before| before.text(script) == "-" && before.range.end == token.range.start);
                let before = if signed {
                    at.checked_sub(2).map(|at| &tokens[at])
                } else {
                    before
                };
                if before.is_some_and(|before| lifting.may_stand(place, before, tokens.get(at + 1))) {
                    lifting.take(token, signed)?;
                }
            }
            _ => {}
        }
    }
    lifting.end()
}

struct Lifting<'a> {
    script: &'a str,
    /// Up to where the script is in the text.
    copied: usize,
    lifted: Lifted<'a>,
}

impl<'a> Lifting<'a> {
    fn place_after(&self, word: &str, place: Place) -> Place {
        let is = |words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
        if is(&["VALUES"]) {
            Place::Rows
        } else if is(&["WHERE"]) {
            Place::Where
        } else if is(&["SET"]) {
            Place::Set
        } else if is(&[
            "SELECT",
            "FROM",
            "GROUP",
            "HAVING",
            "WINDOW",
            "ORDER",
            "LIMIT",
            "OFFSET",
            "FETCH",
            "FOR",
            "RETURNING",
            "ON",
            "USING",
            "JOIN",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "CASE",
        ]) {
            Place::Other
        } else {
            place
        }
    }

    fn place_within(&self, around: Place, before: &Token) -> Place {
        let word = |words: &[&str]| words.iter().any(|word| before.is_word(self.script, word));
        match around {
            Place::Rows if before.kind == Kind::Comma || word(&["VALUES"]) => Place::List,
            Place::Where if word(&["IN"]) => Place::List,
            Place::Where if before.kind == Kind::Open || word(&["WHERE", "AND", "OR", "NOT"]) => Place::Where,
            _ => Place::Other,
        }
    }

    /// Whether a literal between these tokens is one that may be lifted.
    fn may_stand(&self, place: Place, before: &Token, after: Option<&Token>) -> bool {
        let ends = |words: &[&str]| match after {
            None => true,
            Some(after) => after.kind == Kind::Close || words.iter().any(|word| after.is_word(self.script, word)),
        };
        let comma = after.is_some_and(|after| after.kind == Kind::Comma);
        match place {
            Place::List => {
                matches!(before.kind, Kind::Open | Kind::Comma)
                    && after.is_some_and(|after| matches!(after.kind, Kind::Comma | Kind::Close))
            }
            Place::Where => {
                before.kind == Kind::Operator
                    && ["=", "<>", "!=", "<", ">", "<=", ">="].contains(&before.text(self.script))
                    && ends(&["AND", "OR", "ORDER", "GROUP", "LIMIT", "OFFSET", "FOR", "RETURNING"])
            }
            Place::Set => {
                before.kind == Kind::Operator
                    && before.text(self.script) == "="
                    && (comma || ends(&["WHERE", "FROM", "RETURNING"]))
            }
            Place::Rows | Place::Other => false,
        }
    }

    /// Puts a parameter in the place of a literal. Nothing if it is no literal that PostgreSQL would take.
    fn take(&mut self, token: &Token, signed: bool) -> Option<()> {
        let Range { start, end } = token.range;
        let start = if signed { start - 1 } else { start };
        let written = &self.script[start..end];
        let (kind, value) = match token.kind {
            Kind::Number => (number_type(written)?, Cow::Borrowed(written)),
            Kind::Text if !written.contains("''") => (0, Cow::Borrowed(&written[1..written.len() - 1])),
            _ => (0, Cow::Owned(string_value(token.kind, written)?.ok()?)),
        };
        self.lifted.text.push_str(&self.script[self.copied..start]);
        self.copied = end;
        self.lifted.types.push(kind);
        self.lifted.values.push(value);
        self.lifted.text.push('$');
        self.lifted.text.push_str(&self.lifted.values.len().to_string());
        (self.lifted.text.len() <= TEXT_BYTES_MAX).then_some(())
    }

    fn end(mut self) -> Option<Lifted<'a>> {
        self.lifted.text.push_str(&self.script[self.copied..]);
        (!self.lifted.values.is_empty() && self.lifted.text.len() <= TEXT_BYTES_MAX).then_some(self.lifted)
    }
}

/// The type of a number by its size and form; nothing if it is no number of PostgreSQL 15's.
fn number_type(written: &str) -> Option<u32> {
    let digits = written.trim_start_matches('-');
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(if written.parse::<i32>().is_ok() {
            oid::INT4
        } else if written.parse::<i64>().is_ok() {
            oid::INT8
        } else {
            oid::NUMERIC
        });
    }
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && all_digits(exponent)
        });
    is_number.then_some(oid::NUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifted(text: &str) -> (String, Vec<u32>, Vec<String>) {
        let lifted = lift(text).unwrap_or_else(|| panic!("nothing is lifted from {text}"));
        let values = lifted.values.into_iter().map(Cow::into_owned).collect();
        (lifted.text, lifted.types, values)
    }

    #[test]
    fn rows_of_values_lists_comparisons_and_assignments_are_lifted() {
        for (text, expected, types, values) in [
            (
                "INSERT INTO t (a, b) VALUES (1, 'x'), (-2.50, 'it''s'), (NULL, E'a\\n'), (3000000000, now());",
                "INSERT INTO t (a, b) VALUES ($1, $2), ($3, $4), (NULL, $5), ($6, now());",
                vec![23, 0, 1700, 0, 0, 20],
                vec!["1", "x", "-2.50", "it's", "a\n", "3000000000"],
            ),
            (
                "SELECT 1, 'a' FROM t WHERE id = 7 AND (name <> 'b' OR x IN (1,2)) ORDER BY 1 LIMIT 5",
                "SELECT 1, 'a' FROM t WHERE id = $1 AND (name <> $2 OR x IN ($3,$4)) ORDER BY 1 LIMIT 5",
                vec![23, 0, 23, 23],
                vec!["7", "b", "1", "2"],
            ),
            (
                "UPDATE t SET a = 5, b = 'x' || 'y', c = -2147483648 WHERE id=-1 RETURNING 3",
                "UPDATE t SET a = $1, b = 'x' || 'y', c = $2 WHERE id=$3 RETURNING 3",
                vec![23, 23, 23],
                vec!["5", "-2147483648", "-1"],
            ),
            (
                "/* 'x' */ DELETE FROM t WHERE a >= 1e3 -- = 5",
                "/* 'x' */ DELETE FROM t WHERE a >= $1 -- = 5",
                vec![1700],
                vec!["1e3"],
            ),
            (
                "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2 WHERE t.b < 3",
                "INSERT INTO t VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = $2 WHERE t.b < $3",
                vec![23, 23, 23],
                vec!["1", "2", "3"],
            ),
        ] {
            let values = values.into_iter().map(str::to_owned).collect();
            assert_eq!(lifted(text), (expected.to_owned(), types, values), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_operand_stays() {
        for text in [
            "SELECT 1",
            "INSERT INTO t SELECT * FROM (VALUES (1), (2)) AS v",
            "SELECT * FROM t WHERE a = 1 + b",
            "SELECT * FROM t WHERE a = b + 1",
            "SELECT * FROM t WHERE a = '1'::int",
            "SELECT * FROM t WHERE a = 'x' COLLATE \"C\"",
            "SELECT * FROM t WHERE a = 'x'\n'y'",
            "SELECT * FROM t WHERE a = date '2024-01-01'",
            "SELECT * FROM t WHERE a BETWEEN 1 AND 2",
            "SELECT * FROM t WHERE a LIKE 'x%'",
            "SELECT * FROM t WHERE a = 0x1f",
            "SELECT * FROM t WHERE a = 1_000",
            "SELECT * FROM t WHERE a =- 1",
            "SELECT * FROM t WHERE (a, b) = (1, 2)",
            "SELECT * FROM t WHERE f(1, 2)",
            "SELECT * FROM t WHERE CASE WHEN a = 1 THEN true END",
            "SELECT * FROM t JOIN u ON t.a = 1",
            "SELECT * FROM t WHERE a = 1 ; SELECT 2",
            "SELECT * FROM t WHERE a = $1 AND b = 1",
            "SELECT * FROM t GROUP BY a HAVING a = 1",
            "INSERT INTO t VALUES (f(1), 1 + 1, (2), B'1', U&'x')",
            "SET a = 1",
            "",
            ";",
            ")",
        ] {
            assert_eq!(lift(text), None, "{text}");
        }
    }
}
