//! Bound: whether a query of MariaDB or MySQL needs more than a snapshot: it locks what it reads, or it uses what its
//! session keeps for the next query.
//!
//! Promises: told by what stands outside of quotes and comments, and by nothing that can be a name without quotes; a comment that
//! some servers execute is taken for what it may be, and a backslash in quotes is read both ways that the server's settings
//! allow. Does not see what a function of the user's does.

use super::dialect::Dialect;
use super::lexer::{Kind, Token};
use super::opening::statement;
use super::verb::{Verb, verb};

/// Functions of named locks, which a session keeps.
const OF_LOCKS: [&str; 3] = ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS"];

/// Functions whose answer is of the statement before.
const OF_THE_STATEMENT_BEFORE: [&str; 3] = ["last_insert_id", "row_count", "found_rows"];

/// Variables of the same kind.
const TOLD_BY_THE_STATEMENT_BEFORE: [&str; 4] = ["last_insert_id", "identity", "warning_count", "error_count"];

/// Statements that read, beside those that a verb tells.
const READ: [&str; 6] = ["CHECKSUM", "DESC", "DESCRIBE", "EXPLAIN", "HELP", "SHOW"];

/// Whether it is a statement that reads. One that explains what it does by doing it is not.
pub fn reads(sql: &str) -> bool {
    any_reading(sql, |sql| match verb(Dialect::MySql, sql) {
        Verb::Reads => None,
        Verb::Changes => Some(()),
        Verb::Other => {
            let tokens = tokens(sql);
            let mut words = tokens.iter().skip_while(|token| token.is_symbol("("));
            let begins = words
                .next()
                .is_some_and(|first| READ.iter().any(|word| first.is_word(word)));
            let does = words.next().is_some_and(|then| then.is_word("ANALYZE"));
            (!begins || does).then_some(())
        }
    })
    .is_none()
}

/// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`, wherever it stands.
pub fn locks_what_it_reads(sql: &str) -> bool {
    let locks = |sql: &str| {
        let tokens = tokens(sql);
        let has = |words: &[&str]| {
            let are = |tokens: &[Token<'_>]| tokens.iter().zip(words).all(|(token, word)| token.is_word(word));
            tokens.windows(words.len()).any(are)
        };
        let is_there = has(&["FOR", "UPDATE"]) || has(&["FOR", "SHARE"]) || has(&["LOCK", "IN", "SHARE"]);
        (is_there || may_execute(&tokens, "SHARE")).then_some(())
    };
    any_reading(sql, locks).is_some()
}

/// A variable of the user's (`@a`, not `@@a`), or a named lock.
pub fn uses_its_session(sql: &str) -> bool {
    let uses = |sql: &str| {
        let tokens = tokens(sql);
        let is_sign = |at: Option<usize>| {
            at.and_then(|at| tokens.get(at))
                .is_some_and(|token| token.is_symbol("@"))
        };
        let is_there = (0..tokens.len()).any(|at| {
            let is_variable = is_sign(Some(at)) && !is_sign(Some(at + 1)) && !is_sign(at.checked_sub(1));
            is_variable
                || OF_LOCKS
                    .iter()
                    .any(|function| tokens[at].is_word(function) || is_called(&tokens[at..], function))
        });
        (is_there || may_execute(&tokens, "@") || may_execute(&tokens, "_LOCK")).then_some(())
    };
    any_reading(sql, uses).is_some()
}

/// Whether it has parameters: `?`.
pub fn has_parameters(sql: &str) -> bool {
    let has = |sql: &str| {
        let tokens = tokens(sql);
        let is_there = tokens.iter().any(|token| token.kind == Kind::Parameter);
        (is_there || may_execute(&tokens, "?")).then_some(())
    };
    any_reading(sql, has).is_some()
}

/// What it asks of the statement before it in its session, as it is written, if it does: `last_insert_id()`, `@@identity`.
pub fn asks_of_before(sql: &str) -> Option<String> {
    any_reading(sql, |sql| {
        let tokens = tokens(sql);
        let asked =
            (0..tokens.len()).find_map(|at| function_of_before(&tokens[at..]).or(variable_of_before(&tokens[at..])));
        asked.or_else(|| {
            let mut functions = OF_THE_STATEMENT_BEFORE.iter().chain(&TOLD_BY_THE_STATEMENT_BEFORE);
            let found = functions.find(|function| may_execute(&tokens, &function.to_ascii_uppercase()));
            found.map(|function| (*function).to_owned())
        })
    })
}

/// Whether the function is called here without an argument: with one it tells nothing of before.
fn function_of_before(tokens: &[Token<'_>]) -> Option<String> {
    let mut functions = OF_THE_STATEMENT_BEFORE.iter();
    let found = functions
        .find(|function| is_called(tokens, function) && tokens.get(2).is_some_and(|token| token.is_symbol(")")));
    found.map(|function| format!("{function}()"))
}

/// The variable that is read here, if it tells of before.
fn variable_of_before(tokens: &[Token<'_>]) -> Option<String> {
    let [sign, again, rest @ ..] = tokens else { return None };
    if !sign.is_symbol("@") || !again.is_symbol("@") {
        return None;
    }
    let name = match rest {
        [scope, dot, name, ..] if dot.is_symbol(".") => {
            if !["session", "local"].iter().any(|word| scope.is_word(word)) {
                return None;
            }
            name
        }
        [name, ..] => name,
        [] => return None,
    };
    let mut variables = TOLD_BY_THE_STATEMENT_BEFORE.iter();
    let found = variables.find(|variable| is_name(*name, variable));
    found.map(|variable| format!("@@{variable}"))
}

/// Whether that function is called here.
fn is_called(tokens: &[Token<'_>], function: &str) -> bool {
    matches!(tokens, [name, open, ..] if is_name(*name, function) && open.is_symbol("("))
}

/// Whether it is that name, in quotes or not.
fn is_name(token: Token<'_>, name: &str) -> bool {
    // What is a string by default is a name by a setting of the server.
    let is_quoted = token.kind == Kind::QuotedName || token.text.starts_with('"');
    token.is_word(name) || (is_quoted && token.text.trim_matches(['`', '"']).eq_ignore_ascii_case(name))
}

/// What is found in the text, a backslash in quotes being an escape or not, as the server is set.
fn any_reading<T>(sql: &str, find: impl Fn(&str) -> Option<T>) -> Option<T> {
    find(sql).or_else(|| {
        // A blank is nothing to whoever looks for quotes.
        let without = sql.contains('\\').then(|| sql.replace('\\', " "))?;
        find(&without)
    })
}

fn tokens(sql: &str) -> Vec<Token<'_>> {
    statement(Dialect::MySql, sql).map_while(Result::ok).collect()
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
            "SELECT a FROM t FOR /*+ all */ UPDATE",
            "SELECT a FROM t /*!LOCK IN SHARE MODE */",
            r"SELECT '\' FROM t FOR UPDATE -- '",
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
            "SELECT `get_lock`('a', 1)",
            r"SELECT '\', @a, '\'",
            r"SELECT '\'', @a",
        ] {
            assert!(uses_its_session(sql), "{sql}");
        }
        for sql in [
            "SELECT @@version, a FROM t WHERE b = 'a@b.c'",
            "SELECT `@a`, 'get_lock' -- @a",
            "INSERT INTO users (email) VALUES ('ann@example.org')",
            r"SELECT a FROM t WHERE b LIKE '%\_@%'",
        ] {
            assert!(!uses_its_session(sql), "{sql}");
        }
    }

    #[test]
    fn what_is_asked_of_the_statement_before_is_seen_and_named() {
        for (sql, asked) in [
            ("INSERT INTO c VALUES (LAST_INSERT_ID())", "last_insert_id()"),
            ("SELECT row_count ( )", "row_count()"),
            ("SELECT FOUND_ROWS(/* of it */)", "found_rows()"),
            ("SELECT `last_insert_id`()", "last_insert_id()"),
            ("INSERT INTO c VALUES (@@identity)", "@@identity"),
            ("SELECT @@Session . `Last_insert_id`", "@@last_insert_id"),
            ("SELECT 1 /*! , LAST_INSERT_ID() */", "last_insert_id"),
            (r"SELECT '\', ROW_COUNT(), '\'", "row_count()"),
        ] {
            assert_eq!(asks_of_before(sql).as_deref(), Some(asked), "{sql}");
        }
        for sql in [
            "INSERT INTO c VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
            "INSERT INTO notes VALUES ('LAST_INSERT_ID() and @@identity') -- ROW_COUNT()",
            "SELECT last_insert_id FROM c",
            "SELECT @@identity_insert, @identity, @@session.sql_mode, @@global.identity",
        ] {
            assert_eq!(asks_of_before(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_reads_is_told_by_what_it_does() {
        for sql in [
            "SELECT 1",
            "(SELECT 1) UNION (SELECT 2)",
            "-- all of it\nTABLE t",
            "/*+ hint */ SHOW TABLES",
            "# SELECT\nSHOW TABLES",
            "VALUES (1)",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "(WITH a AS (SELECT 1) SELECT * FROM a)",
            "WITH RECURSIVE a (b) AS (SELECT 'DELETE') SELECT * FROM a FOR UPDATE",
            "EXPLAIN DELETE FROM t",
            "DESC `analyze`",
            "SHOW TABLES",
        ] {
            assert!(reads(sql), "{sql}");
        }
        for sql in [
            "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM a)",
            "WITH a AS (SELECT 1) UPDATE t, a SET t.b = 1",
            r"WITH a AS (SELECT '\') DELETE FROM t -- ') SELECT 1",
            "EXPLAIN ANALYZE DELETE t FROM t JOIN u",
            "INSERT INTO t SELECT 1",
            "ANALYZE DELETE FROM t",
            "DO 1",
            "",
        ] {
            assert!(!reads(sql), "{sql}");
        }
    }

    #[test]
    fn a_parameter_is_seen_where_it_is_one() {
        for sql in [
            "SELECT ?",
            "SELECT 1 /*! , ? */",
            r"SELECT '\', ?, '\'",
            "SELECT '?', ?",
        ] {
            assert!(has_parameters(sql), "{sql}");
        }
        for sql in [
            "SELECT '?'",
            "SELECT :a -- ?",
            "SELECT `?`, \"?\" /* ? */",
            "# ?\nSELECT :a",
        ] {
            assert!(!has_parameters(sql), "{sql}");
        }
    }
}
