//! Normal: a text of PostgreSQL's without its literals and comments, by which texts are told apart that differ in nothing else.
//!
//! Promises: two texts of one normal form have the same tokens, but for what stands in numbers and strings, and blanks between the same of
//! them. Two that are the same without their comments have the same tokens, on the same lines.

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer};

/// Appends the normal form to `out`. False where there is none: for a backslash, a vertical tab, a hint, and quotes without an end.
#[must_use]
pub fn normal(sql: &str, out: &mut String) -> bool {
    // Of a vertical tab servers of different versions make a blank, or an error.
    if sql.bytes().any(|byte| matches!(byte, b'\\' | 0x0b)) {
        return false;
    }
    let mut end = 0;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let Ok(token) = token else { return false };
        let begin = token.text.as_ptr().addr() - sql.as_ptr().addr();
        // What stands before all of it is nothing.
        if begin > end && end > 0 {
            out.push(' ');
        }
        end = begin + token.text.len();
        match token.kind {
            Kind::Digits => out.push('0'),
            Kind::Text => out.push_str("''"),
            Kind::Hint | Kind::Executable => return false,
            Kind::Word | Kind::QuotedName | Kind::Parameter | Kind::Symbol => out.push_str(token.text),
        }
    }
    true
}

/// The text without its comments, by which texts are told apart that ask the same. None where there is none, as for [`normal`].
#[must_use]
pub fn without_comments(sql: &str) -> Option<String> {
    if sql.bytes().any(|byte| matches!(byte, b'\\' | 0x0b)) {
        return None;
    }
    let mut out = String::with_capacity(sql.len());
    let mut end = 0;
    let mut is_behind_a_string = false;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let token = token.ok()?;
        let begin = token.text.as_ptr().addr() - sql.as_ptr().addr();
        let is_string = token.kind == Kind::Text;
        if is_string && is_behind_a_string && sql[end..begin].contains("/*") {
            // Strings with such a comment between them are two, and an error, on however many lines.
            return None;
        }
        is_behind_a_string = is_string;
        if begin > end && end > 0 {
            // Strings on two lines are one.
            out.push(if sql[end..begin].contains(['\n', '\r']) {
                '\n'
            } else {
                ' '
            });
        }
        end = begin + token.text.len();
        match token.kind {
            Kind::Hint | Kind::Executable => return None,
            _ => out.push_str(token.text),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_and_blanks_are_left_out() {
        let told = |sql| without_comments(sql);
        let wanted = Some("SELECT a FROM t WHERE b = 5 AND c = 'x  y'".to_owned());
        assert_eq!(told("SELECT a FROM t WHERE b = 5 AND c = 'x  y'"), wanted);
        assert_eq!(
            told("/* ttl:5 */ SELECT a  FROM/* of it */t WHERE b = 5 AND c = 'x  y' -- end"),
            wanted
        );
        assert_ne!(told("SELECT a FROM t WHERE b = 6 AND c = 'x  y'"), wanted);
        assert_ne!(told("SELECT a FROM t WHERE b = 5 AND c = 'x y'"), wanted);
        assert_ne!(told("SELECT 'a' 'b'"), told("SELECT 'a'\n'b'"));
        assert_eq!(told("SELECT 'a'\n'b'"), told("SELECT 'a' -- x\n  'b'"));
        for none in [
            "SELECT '\\'",
            "/*+ hint */ SELECT 1",
            "SELECT 'a",
            "SELECT 'a' /*\n*/ 'b'",
            "SELECT '1' /* x */ -- \n '2'",
        ] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    fn form(sql: &str) -> Option<String> {
        let mut out = String::new();
        normal(sql, &mut out).then_some(out)
    }

    #[test]
    fn only_literals_blanks_and_comments_are_left_out() {
        let wanted = form("SELECT a FROM t WHERE b = 5 AND c = 'x'");
        assert_eq!(wanted.as_deref(), Some("SELECT a FROM t WHERE b = 0 AND c = ''"));
        assert_eq!(
            form("/* by */ SELECT a  FROM/* of it */t\n WHERE b = 77 AND c = 'it''s' -- end").as_deref(),
            Some("SELECT a FROM t WHERE b = 0 AND c = ''")
        );
        for other in [
            "SELECT a FROM t WHERE b =5 AND c = 'x'",
            "SELECT a FROM t WHERE b = $1 AND c = 'x'",
            "SELECT \"a\" FROM t WHERE b = 5 AND c = 'x'",
            "SELECT a FROM t WHERE b = 5.5 AND c = 'x'",
            "SELECT a FROM t WHERE b = -5 AND c = 'x'",
        ] {
            assert_ne!(form(other), wanted, "{other}");
        }
        for none in ["SELECT\u{b}1", "SELECT 'a\\'", "SELECT 'open", "SELECT /*+ hint */ 1"] {
            assert_eq!(form(none), None, "{none}");
        }
    }
}
