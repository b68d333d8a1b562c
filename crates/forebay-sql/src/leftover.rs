//! Leftover: whether a text of PostgreSQL's may leave something behind in its session when its transaction is over: a setting, a
//! temporary table, a lock, a prepared statement, a channel that is listened on.
//!
//! Promises: no for what is known to leave nothing, statement by statement; yes for everything else, and where quotes or comments
//! may be read in two ways. Does not see what a function, a trigger or a rule of the user's does.

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};

/// Statements that leave nothing, but for what [`WATCHED`] shows.
const HARMLESS: [&str; 36] = [
    "ABORT",
    "ALTER",
    "ANALYSE",
    "ANALYZE",
    "BEGIN",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DECLARE",
    "DELETE",
    "DROP",
    "END",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "INSERT",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SHOW",
    "START",
    "TRUNCATE",
    "UPDATE",
    "VACUUM",
];

/// The same, of those that begin a query in another way.
const READING: [&str; 3] = ["TABLE", "VALUES", "WITH"];

/// What `SET` begins with where it holds for no longer than the transaction.
const OF_THE_TRANSACTION: [&str; 3] = ["CONSTRAINTS", "LOCAL", "TRANSACTION"];

/// Words, quoted or not, that show what is left behind, or a function that runs a text of its argument's.
const WATCHED: [&str; 23] = [
    "connectby",
    "crosstab",
    "cursor_to_xml",
    "dblink_connect",
    "dblink_connect_u",
    "dblink_open",
    "execute",
    "hold",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_temp",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "set_config",
    "setseed",
    "temp",
    "temporary",
    "ts_rewrite",
    "ts_stat",
    "xpath_table",
];

/// Of these, the functions that run a text of their argument's, which may set anything.
const RUNS_A_TEXT: [&str; 9] = [
    "connectby",
    "crosstab",
    "cursor_to_xml",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
    "xpath_table",
];

/// Whether what the text does may outlive its transaction, in its session.
pub fn may_leave_something(sql: &str) -> bool {
    // Read in two ways: by the setting of standard_conforming_strings, and as an escaped name.
    if sql.contains('\\') || sql.contains("&\"") {
        return true;
    }
    let mut begins = true;
    let mut is_set = false;
    for token in Lexer::new(Dialect::Postgres, sql) {
        let Ok(token) = token else { return true };
        if token.is_symbol(";") {
            if is_set {
                return true;
            }
            begins = true;
            continue;
        }
        if std::mem::take(&mut is_set) && !is_one_of(&token, &OF_THE_TRANSACTION) {
            return true;
        }
        if begins && !token.is_symbol("(") {
            begins = false;
            if token.is_word("SET") {
                is_set = true;
            } else if !is_one_of(&token, &HARMLESS) && !is_one_of(&token, &READING) {
                return true;
            }
        } else if is_watched(&token) {
            return true;
        }
    }
    is_set
}

/// The settings of the user's own (`app.tenant`: two parts) that the text may set, which no view of PostgreSQL's shows. None where it may
/// set one whose name does not stand in it.
pub fn settings_named(sql: &str) -> Option<Vec<String>> {
    let tokens: Vec<_> = Lexer::new(Dialect::Postgres, sql).collect::<Result<_, _>>().ok()?;
    let mut named = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at + 1..];
        if token.is_word("SET") {
            let skipped = usize::from(rest.first().is_some_and(|next| is_one_of(next, &["SESSION", "LOCAL"])));
            let mut whole = String::new();
            // Of as many parts as there are dots; one in quotes may have dots of its own.
            for pair in rest[skipped..].chunks(2) {
                let Some(part) = name(&pair[0]) else { break };
                whole.push_str(&part);
                if !pair.get(1).is_some_and(|dot| dot.is_symbol(".")) {
                    break;
                }
                whole.push('.');
            }
            if whole.contains('.') {
                named.push(whole);
            }
        } else if is_one_of(token, &RUNS_A_TEXT) {
            return None;
        } else if name(token).is_some_and(|name| name == "set_config") {
            match rest {
                // Anything but one string in full is put together where nobody sees it.
                [open, text, comma, ..] if open.is_symbol("(") && comma.is_symbol(",") => named.push(string(text)?),
                _ => return None,
            }
        } else if token.kind == Kind::Text && begins_with_do(&tokens[..at]) {
            let body = token.text.to_ascii_lowercase();
            let sets = |at: usize| !body[at..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
            if body.contains("set_config") || body.match_indices("set").any(|(at, set)| sets(at + set.len())) {
                return None;
            }
        }
    }
    Some(named)
}

/// Whether the statement that these tokens end in begins with DO.
fn begins_with_do(tokens: &[Token<'_>]) -> bool {
    let begin = tokens
        .iter()
        .rposition(|token| token.is_symbol(";"))
        .map_or(0, |at| at + 1);
    tokens.get(begin).is_some_and(|first| first.is_word("DO"))
}

/// A name as the server keeps it.
fn name(token: &Token<'_>) -> Option<String> {
    match token.kind {
        Kind::Word => Some(token.text.to_ascii_lowercase()),
        Kind::QuotedName => Some(token.text.trim_matches('"').replace("\"\"", "\"")),
        _ => None,
    }
}

/// What stands in plain quotes.
fn string(token: &Token<'_>) -> Option<String> {
    let inner = token.text.strip_prefix('\'')?.strip_suffix('\'')?;
    (token.kind == Kind::Text && !inner.contains('\\')).then(|| inner.replace("''", "'"))
}

fn is_one_of(token: &Token<'_>, words: &[&str]) -> bool {
    token.kind == Kind::Word && words.iter().any(|word| token.text.eq_ignore_ascii_case(word))
}

fn is_watched(token: &Token<'_>) -> bool {
    let word = match token.kind {
        Kind::Word => token.text,
        Kind::QuotedName => token.text.trim_matches('"'),
        _ => return false,
    };
    WATCHED.iter().any(|watched| word.eq_ignore_ascii_case(watched))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_users_own_are_named() {
        for (sql, named) in [
            ("set app.who = 'x'", Some(vec!["app.who"])),
            (
                "SELECT 1; SET SESSION App.\"Who\" TO x; set local a.b = 1",
                Some(vec!["app.Who", "a.b"]),
            ),
            (
                "select set_config('a.b', $1, false), set_config('it''s', 'x', true)",
                Some(vec!["a.b", "it's"]),
            ),
            ("set work_mem = '1MB'; update t set a.b = 1", Some(vec!["a.b"])),
            (
                "set \"app.who\" = 'x'; set a.b.c = 1; set \"a.b\".\"C\" = 1",
                Some(vec!["app.who", "a.b.c", "a.b.C"]),
            ),
            ("do $$begin set\tapp.x = 'y'; end$$", None),
            ("do $$begin perform 1 offset_of; end$$", Some(vec![])),
            (
                "select query_to_xml('select set_config(''a.b'',''c'',false)', true, false, '')",
                None,
            ),
            ("select set_config($1, $2, false)", None),
            ("select set_config('a' || 'b', 'x', false)", None),
            ("do $$begin perform set_config('a.b', 'c', false); end$$", None),
            ("do $$begin raise notice 'x'; end$$", Some(vec![])),
            (
                "insert into t values (1) on conflict (a) do update set b = 'set '",
                Some(vec![]),
            ),
            ("select 'open", None),
        ] {
            let told = settings_named(sql);
            let told: Option<Vec<&str>> = told.as_ref().map(|names| names.iter().map(String::as_str).collect());
            assert_eq!(told, named, "{sql}");
        }
    }

    #[test]
    fn what_ends_with_its_transaction_leaves_nothing() {
        for sql in [
            "",
            ";",
            "select 1; select 'set_config'",
            "-- set x\nINSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "begin; set local work_mem = 1; commit",
            "SET TRANSACTION READ ONLY",
            "((select 1))",
            "create table t (a int)",
        ] {
            assert!(!may_leave_something(sql), "{sql}");
        }
    }

    #[test]
    fn what_may_outlive_its_transaction_is_told() {
        for sql in [
            "set work_mem = 1",
            "select 1; SET x.y = 1",
            "set",
            "select set_config('a.b', $1, false)",
            "select \"set_config\"('a.b', '1', false)",
            "create temp table t (a int)",
            "create table pg_temp.t (a int)",
            "select 1 into temporary t",
            "declare c cursor with hold for select 1",
            "listen x",
            "prepare s as select 1",
            "deallocate all",
            "discard all",
            "do $$begin end$$",
            "call p()",
            "load 'x'",
            "reset all",
            "select pg_advisory_lock(1)",
            "select '\\'; set x.y = 1; --'",
            "select 'open",
        ] {
            assert!(may_leave_something(sql), "{sql}");
        }
    }
}
