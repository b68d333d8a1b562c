//! Reading: by which settings PostgreSQL reads a text and plans it, and which texts may set them.
//!
//! Promises: a text that is not [read by settings](is_read_by_settings) is read alike whatever they are; one that sets none of those [by which texts are
//! read](may_set_reading) or [folded](may_set_folding) leaves them as they are, but for what a user's own function does, and for the end of a transaction that has
//! set them. Where it cannot be read for certain it may do either.

use super::dialect::Dialect;
use super::leftover::{RUNS_A_TEXT, is_one_of, name, string};
use super::lexer::{Lexer, Token};
use super::settings::{FOLDING, READING, is_among, spelt_out};

/// Whether the text has something that is read by them: a string, a letter beyond ASCII, NULL.
#[must_use]
pub fn is_read_by_settings(text: &[u8]) -> bool {
    let is_null = |part: &[u8]| part.eq_ignore_ascii_case(b"null");
    let quotes = |part: &[u8]| matches!(part, [b'$', next] if !next.is_ascii_digit());
    !text.is_ascii() || text.contains(&b'\'') || text.windows(2).any(quotes) || text.windows(4).any(is_null)
}

/// Whether texts may be read otherwise behind this one.
#[must_use]
pub fn may_set_reading(sql: &str) -> bool {
    may_set(sql, &READING)
}

/// Whether texts may be folded otherwise behind this one.
#[must_use]
pub fn may_set_folding(sql: &str) -> bool {
    may_set(sql, &FOLDING)
}

fn may_set(sql: &str, settings: &[&str]) -> bool {
    // Read in two ways, by one of them.
    if sql.contains('\\') {
        let mut words = sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        return words.any(|word| {
            let word = word.to_ascii_lowercase();
            let word = word.as_str();
            let sets = ["call", "discard", "do", "reset", "set", "set_config"].contains(&word);
            sets || SETTING.contains(&word) || RUNS_A_TEXT.contains(&word)
        });
    }
    let Ok(tokens) = Lexer::new(Dialect::Postgres, sql).collect::<Result<Vec<_>, _>>() else {
        return true;
    };
    let mut begins = true;
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        let is_first = std::mem::take(&mut begins);
        if token.is_symbol(";") {
            begins = true;
        } else if is_first && is_one_of(token, &["RESET", "SET"]) {
            if sets_one_of(rest, settings) {
                return true;
            }
        } else if is_first && is_one_of(token, &["CALL", "DISCARD", "DO"]) {
            return true;
        } else if name(token).is_some_and(|name| name == "set_config") {
            let named = match rest {
                [open, text, comma, ..] if open.is_symbol("(") && comma.is_symbol(",") => string(text),
                _ => None,
            };
            if named.is_none_or(|named| is_among(&named, settings)) {
                return true;
            }
        } else if name(token).is_some_and(|name| SETTING.contains(&&*name) || RUNS_A_TEXT.contains(&&*name)) {
            return true;
        }
    }
    false
}

/// Whether nothing of ours is to be asked in front of the text, as the server plans nothing for it and takes no snapshot: its first statement sets, shows, begins,
/// locks, fetches or ends something (`PlannedStmtRequiresSnapshot` in its `pquery.c`), or has to be alone (`PreventInTransactionBlock`).
#[must_use]
pub fn plans_nothing(sql: &str) -> bool {
    let tokens = Lexer::new(Dialect::Postgres, sql).map_while(Result::ok);
    let mut tokens = tokens.skip_while(|token| token.is_symbol(";"));
    let Some(first) = tokens.next() else { return true };
    is_one_of(&first, &PLANNING_NOTHING)
        || is_one_of(&first, &ALONE)
        || (is_one_of(&first, &["ALTER", "CREATE", "DROP"]) && tokens.any(|token| is_one_of(&token, &ALONE_WITH)))
}

const ALONE: [&str; 3] = ["CLUSTER", "REINDEX", "VACUUM"];
const ALONE_WITH: [&str; 5] = ["CONCURRENTLY", "DATABASE", "SUBSCRIPTION", "SYSTEM", "TABLESPACE"];
const PLANNING_NOTHING: [&str; 21] = [
    "ABORT",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "FETCH",
    "LISTEN",
    "LOCK",
    "MOVE",
    "NOTIFY",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHOW",
    "START",
    "UNLISTEN",
];

/// Words of what may set anything, wherever they stand.
const SETTING: [&str; 2] = ["execute", "pg_settings"];

/// Whether what is behind `SET` or `RESET` is one of these, by whatever name.
fn sets_one_of(tokens: &[Token<'_>], settings: &[&str]) -> bool {
    let skipped = usize::from(
        tokens
            .first()
            .is_some_and(|next| is_one_of(next, &["LOCAL", "SESSION"])),
    );
    let Some(what) = tokens.get(skipped) else { return true };
    what.is_word("ALL") || name(what).is_none_or(|name| is_among(spelt_out(&name), settings))
}

/// Whether the body of a function may ask for what is set in its session, or who runs it: by itself, not by what it calls.
#[must_use]
pub fn may_ask_for_settings(body: &str) -> bool {
    let Ok(tokens) = Lexer::new(Dialect::Postgres, body).collect::<Result<Vec<_>, _>>() else {
        return true;
    };
    let is_asking = |name: &str| ASKING.contains(&name) || name.ends_with("_privilege");
    let asks =
        |token: &Token<'_>| is_one_of(token, &["SHOW", "USER"]) || name(token).is_some_and(|name| is_asking(&name));
    tokens.iter().any(asks)
}

const ASKING: [&str; 10] = [
    "current_role",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "execute",
    "pg_has_role",
    "pg_settings",
    "session_user",
    "system_user",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_constant_but_numbers_is_read_alike() {
        for text in [
            "SELECT * FROM t WHERE id = $1 AND n > 12.5",
            "SELECT \"a\" FROM t",
            "UPDATE t SET n = n + $12",
            "",
        ] {
            assert!(!is_read_by_settings(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT ''",
            "SELECT $$a$$",
            "SELECT $a$b$a$",
            "SELECT a = Null",
            "SELECT é",
        ] {
            assert!(is_read_by_settings(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_sets_by_what_plans_are_folded_is_known() {
        for text in [
            "SET LOCAL bytea_output = 'escape'",
            "set \"Extra_Float_Digits\" to 3",
            "SELECT set_config('quote_all_identifiers', 'on', true)",
            "RESET ALL",
        ] {
            assert!(may_set_folding(text), "{text}");
        }
        for text in [
            "SET TIME ZONE 'UTC'",
            "SET NAMES 'x'",
            "SET LOCAL app.a = 1",
            "SELECT 1",
        ] {
            assert!(!may_set_folding(text), "{text}");
        }
    }

    #[test]
    fn what_begins_with_something_that_is_not_planned_is_known() {
        for text in [
            "",
            "SET a = 1",
            "begin;",
            " /* x */ rollback ; ; -- y",
            "LOCK TABLE t",
            "; VACUUM t",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT 1",
            "create unique index concurrently i on t (f(a))",
            "DROP DATABASE a",
            "FETCH c",
        ] {
            assert!(plans_nothing(text), "{text}");
        }
        for text in ["SELECT 1", "SELECT 1; BEGIN", "(SELECT 1)", "EXECUTE a", "CALL p()"] {
            assert!(!plans_nothing(text), "{text}");
        }
    }

    #[test]
    fn who_asks_for_what_is_set_is_known() {
        for body in [
            "select current_setting('app.tenant')",
            "begin return Current_User; end",
            "begin execute a into b; return b; end",
            "select user",
            "select has_table_privilege('t', 'SELECT')",
            "select 'open",
        ] {
            assert!(may_ask_for_settings(body), "{body}");
        }
        for body in ["select $1 + 1", "select 'current_setting'", "begin return a.b; end"] {
            assert!(!may_ask_for_settings(body), "{body}");
        }
    }

    #[test]
    fn what_sets_by_what_texts_are_read_is_known() {
        for text in [
            "SET LOCAL datestyle = 'SQL, DMY'",
            "set session \"TimeZone\" to 'UTC'",
            "SET TIME ZONE 'UTC'",
            "SET NAMES 'latin1'",
            "SET XML OPTION DOCUMENT",
            "BEGIN; /* x */ SET standard_conforming_strings = off",
            "RESET ALL",
            "RESET timezone",
            "DISCARD ALL",
            "SELECT set_config('intervalstyle', $1, true)",
            "SELECT pg_catalog.SET_CONFIG($1, $2, true)",
            "UPDATE pg_settings SET setting = 'a' WHERE name = 'TimeZone'",
            "DO $$ BEGIN END $$",
            "EXPLAIN ANALYZE EXECUTE a",
            "SELECT query_to_xml('x', true, true, '')",
            "SELECT E'\\'; SET timezone = ''UTC''",
            "SELECT 'open",
        ] {
            assert!(may_set_reading(text), "{text}");
        }
        for text in [
            "SET LOCAL app.tenant = 'a'",
            "SET search_path = a, b",
            "SET LOCAL statement_timeout = 5",
            "SET TRANSACTION READ ONLY",
            "SET ROLE a",
            "SELECT set_config('app.tenant', $1, true)",
            "UPDATE t SET timezone = 'UTC'",
            "SELECT 'SET timezone'",
            "SELECT E'a\\nb'",
            "INSERT INTO t VALUES ($1) ON CONFLICT (id) DO UPDATE SET timezone = 'UTC'",
            "INSERT INTO t (reset) VALUES ($1) ON CONFLICT DO NOTHING",
            "ROLLBACK",
            "SELECT id FROM t",
        ] {
            assert!(!may_set_reading(text), "{text}");
        }
    }
}
