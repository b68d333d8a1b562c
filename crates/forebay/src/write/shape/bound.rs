//! Bound: whether a query of MariaDB or MySQL has to do with more than a snapshot: it locks what it reads, or it uses what its
//! session keeps for the next query.
//!
//! Promises: told by what stands outside of quotes and comments, and by nothing that can be a name without quotes; a comment that
//! some servers execute is taken for what it may be. Does not see what a function of the user's does.

use super::Dialect;
use super::lexer::{Kind, Lexer, Token};

/// Functions of named locks, which a session keeps.
const OF_LOCKS: [&str; 3] = ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS"];

/// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`, wherever it stands.
pub(crate) fn locks_what_it_reads(sql: &str) -> bool {
    let tokens = tokens(sql);
    let has = |words: &[&str]| {
        let are = |tokens: &[Token<'_>]| tokens.iter().zip(words).all(|(token, word)| token.is_word(word));
        tokens.windows(words.len()).any(are)
    };
    has(&["FOR", "UPDATE"]) || has(&["FOR", "SHARE"]) || has(&["LOCK", "IN", "SHARE"]) || may_execute(&tokens, "SHARE")
}

/// A variable of the user's (`@a`, not `@@a`), or a named lock.
pub(crate) fn uses_its_session(sql: &str) -> bool {
    let tokens = tokens(sql);
    let is_sign = |at: Option<usize>| {
        at.and_then(|at| tokens.get(at))
            .is_some_and(|token| token.is_symbol("@"))
    };
    (0..tokens.len()).any(|at| {
        let is_variable = is_sign(Some(at)) && !is_sign(Some(at + 1)) && !is_sign(at.checked_sub(1));
        is_variable || OF_LOCKS.iter().any(|function| tokens[at].is_word(function))
    }) || may_execute(&tokens, "@")
        || may_execute(&tokens, "_LOCK")
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    Lexer::new(Dialect::MySql, sql).map_while(Result::ok).collect()
}

/// Whether it stands in a comment that some servers execute.
fn may_execute(tokens: &[Token<'_>], text: &str) -> bool {
    let mut executable = tokens.iter().filter(|token| token.kind == Kind::Executable);
    executable.any(|token| token.text.to_ascii_uppercase().contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_wherever_it_stands() {
        for sql in [
            "SELECT a FROM t WHERE b = ? FOR UPDATE",
            "select a from t for share",
            "SELECT a FROM (SELECT a FROM t LOCK\nIN SHARE MODE) x",
            "SELECT a FROM t FOR /* all */ UPDATE SKIP LOCKED",
            "SELECT a FROM t /*!LOCK IN SHARE MODE */",
        ] {
            assert!(locks_what_it_reads(sql), "{sql}");
        }
        for sql in [
            "SELECT 'FOR UPDATE' FROM t",
            "SELECT a FROM t -- FOR UPDATE",
            "SELECT substring(a FROM 1 FOR 2), `lock` FROM t",
        ] {
            assert!(!locks_what_it_reads(sql), "{sql}");
        }
    }

    #[test]
    fn what_a_session_keeps_is_seen_wherever_it_stands() {
        for sql in [
            "SELECT @a",
            "SELECT a FROM t WHERE b = (@n := @n + 1)",
            "SELECT @`a`",
            "SELECT a INTO @b FROM t",
            "SELECT get_lock('a', ?)",
            "SELECT 1 /*! , @a */",
        ] {
            assert!(uses_its_session(sql), "{sql}");
        }
        for sql in [
            "SELECT @@version, a FROM t WHERE b = 'a@b.c'",
            "SELECT `@a`, 'get_lock' -- @a",
        ] {
            assert!(!uses_its_session(sql), "{sql}");
        }
    }
}
