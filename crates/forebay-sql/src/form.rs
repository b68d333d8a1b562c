//! Form: what a person means who writes a statement down: the statement, whatever its literals are, and however it is written; and a text as it may be
//! shown to others, without what stands in its literals.
//!
//! Promises: two texts of one form have the same tokens, but for numbers with their signs, strings and parameters, which are all alike, the case of words
//! without quotes, and a `;` behind all. Of what stands in a number or a string nothing is in a form, nor in what is shown. Is not by what
//! statements are told apart that must not be taken for one another: that is [`normal`](super::normal()).

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer};

/// What stands for a literal.
const LITERAL: &str = "?";
/// A sign behind one of these is a number's.
const BEFORE_A_SIGN: [&str; 6] = ["=", "(", ",", "<", ">", "["];

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    /// A number or a string, whole.
    Literal,
    Parameter(&'t str),
    Word(&'t str),
    /// Anything else.
    Other(&'t str),
}

/// The pieces, and whether there is something between each and the one before; none where servers may read the text differently, and for a hint.
fn pieces(sql: &str) -> Option<Vec<(Piece<'_>, bool)>> {
    // Of a vertical tab servers of different versions make a blank, or an error.
    if sql.bytes().any(|byte| matches!(byte, b'\\' | 0x0b)) {
        return None;
    }
    let mut pieces: Vec<(Piece<'_>, bool)> = Vec::new();
    let mut end = 0;
    // How the number ends that goes on with what follows at once, if anything that belongs to it does.
    let mut number: Option<&str> = None;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let token = token.ok()?;
        let begin = token.text.as_ptr().addr() - sql.as_ptr().addr();
        let is_apart = begin > end;
        end = begin + token.text.len();
        if let Some(last) = number.filter(|_| !is_apart) {
            let is_exponent = last.ends_with(['e', 'E']) && matches!(token.text, "+" | "-");
            if is_exponent || token.text == "." || matches!(token.kind, Kind::Digits | Kind::Word) {
                number = Some(token.text);
                continue;
            }
        }
        number = (token.kind == Kind::Digits).then_some(token.text);
        let piece = match token.kind {
            Kind::Digits => {
                // One that begins with its point.
                let is_begun = !is_apart && matches!(pieces.last(), Some((Piece::Other("."), _)));
                let is_behind_a_name = matches!(
                    pieces.iter().rev().nth(1),
                    Some((Piece::Word(_) | Piece::Other("]" | ")"), _))
                );
                if is_begun && !is_behind_a_name {
                    let (_, is_apart) = pieces.pop().expect("it is begun");
                    pieces.push((Piece::Literal, is_apart));
                    continue;
                }
                Piece::Literal
            }
            Kind::Text => Piece::Literal,
            Kind::Parameter => Piece::Parameter(token.text),
            Kind::Word => Piece::Word(token.text),
            Kind::QuotedName | Kind::Symbol => Piece::Other(token.text),
            Kind::Hint | Kind::Executable => return None,
        };
        pieces.push((piece, is_apart));
    }
    Some(pieces)
}

/// The form of a text of PostgreSQL's. None where there is none: for a backslash, a vertical tab, a hint, and quotes without an end.
#[must_use]
pub fn form(sql: &str) -> Option<String> {
    let mut pieces = pieces(sql)?;
    while matches!(pieces.last(), Some((Piece::Other(";"), _))) {
        pieces.pop();
    }
    let mut form = String::with_capacity(sql.len());
    let mut before = Piece::Other("(");
    let mut pieces = pieces.into_iter().map(|(piece, _)| piece).peekable();
    while let Some(piece) = pieces.next() {
        let may_be_signed = matches!(before, Piece::Other(symbol) if BEFORE_A_SIGN.contains(&symbol));
        before = piece;
        if may_be_signed && matches!(piece, Piece::Other("-" | "+")) && pieces.peek() == Some(&Piece::Literal) {
            continue;
        }
        if !form.is_empty() {
            form.push(' ');
        }
        match piece {
            Piece::Literal | Piece::Parameter(_) => form.push_str(LITERAL),
            Piece::Word(word) => form.extend(word.chars().map(|letter| letter.to_ascii_lowercase())),
            Piece::Other(text) => form.push_str(text),
        }
    }
    Some(form)
}

/// The text without its literals, comments and needless blanks, to be shown. Of one that cannot be read nothing is.
#[must_use]
pub fn without_literals(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    for (piece, is_apart) in pieces(sql).unwrap_or_default() {
        if is_apart && !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(match piece {
            Piece::Literal => LITERAL,
            Piece::Parameter(text) | Piece::Word(text) | Piece::Other(text) => text,
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_has_one_form_however_it_is_written() {
        let wanted = form("SELECT day, sum(price) FROM orders WHERE id = 7 AND note = 'x'");
        for alike in [
            "SELECT day, sum(price) FROM orders WHERE id = 7 AND note = 'x';",
            "select DAY,SUM (price)\nfrom Orders where id=-1.5e-3 and note='it''s' ; ;",
            "/* by */ SELECT day, sum(price) FROM orders -- all\nWHERE id = $1 AND note = $2",
            "SELECT day, sum(price) FROM orders WHERE id = .5 AND note = $$x$$",
            "SELECT day, sum(price) FROM orders WHERE id = 0x1F AND note = 1_000",
        ] {
            assert_eq!(form(alike), wanted, "{alike}");
        }
        for other in [
            "SELECT \"day\", sum(price) FROM orders WHERE id = 7 AND note = 'x'",
            "SELECT day, sum(price) FROM orders WHERE id = 7 OR note = 'x'",
            "SELECT day, sum(price) FROM orders WHERE id = 7 AND note = 'x' LIMIT 1",
            "SELECT day, sum(price) FROM orders WHERE id = 7 - 1 AND note = 'x'",
            "SELECT day, sum(price) FROM orders WHERE id = 7 AND note = NULL",
            "SELECT day, sum(price) FROM orders WHERE id = 7; AND note = 'x'",
        ] {
            assert_ne!(form(other), wanted, "{other}");
        }
        assert_ne!(form("SELECT \"A\""), form("SELECT \"a\""));
        assert_ne!(form("SELECT t.a1"), form("SELECT t.a2"));
        for none in ["SELECT\u{b}1", "SELECT 'a\\'", "SELECT 'open", "SELECT /*+ hint */ 1"] {
            assert_eq!(form(none), None, "{none}");
        }
    }

    #[test]
    fn what_stands_in_literals_is_not_shown() {
        for (text, shown) in [
            ("/* b */ SELECT A  FROM\tt LIMIT 0;", "SELECT A FROM t LIMIT ?;"),
            (
                "SELECT a FROM t WHERE b=1.25 AND c IN ('x', $1, -7e+3)",
                "SELECT a FROM t WHERE b=? AND c IN (?, $1, -?)",
            ),
            ("SELECT $$x$$, .5, t.a1, t5 FROM t5", "SELECT ?, ?, t.a1, t5 FROM t5"),
            ("SELECT 'open", ""),
        ] {
            assert_eq!(without_literals(text), shown, "{text}");
        }
    }
}
