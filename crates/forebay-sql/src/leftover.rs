//! Leftover: whether a text of PostgreSQL's may leave something behind in its session when its transaction is over: a setting, a
//! temporary table, a lock, a prepared statement, a channel that is listened on.
//!
//! Promises: no for what is known to leave nothing, statement by statement; yes for everything else, and where quotes or comments
//! may be read in two ways. Does not see what a function, a trigger or a rule of the user's does.

use super::dialect::Dialect;
use super::lexer::{Kind, Lexer, Token};
use super::settings::of_reading_or_folding;

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
const WATCHED: [&str; 47] = [
    "connectby",
    "crosstab",
    "crosstab2",
    "crosstab3",
    "crosstab4",
    "cursor_to_xml",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "dblink_connect",
    "dblink_connect_u",
    "dblink_open",
    "execute",
    "hold",
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    // What it takes back is not left any more.
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "pg_backup_start",
    "pg_copy_logical_replication_slot",
    "pg_copy_physical_replication_slot",
    "pg_create_logical_replication_slot",
    "pg_create_physical_replication_slot",
    "pg_replication_origin_session_setup",
    "pg_settings",
    "pg_start_backup",
    "pg_temp",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "set_config",
    "set_limit",
    "setseed",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "temp",
    "temporary",
    "ts_rewrite",
    "ts_stat",
    "xpath_table",
];

/// Of these, the functions that run a text of their argument's, or read whatever a schema has, which may set anything.
pub(super) const RUNS_A_TEXT: [&str; 21] = [
    "connectby",
    "crosstab",
    "crosstab2",
    "crosstab3",
    "crosstab4",
    "cursor_to_xml",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
    "xpath_table",
];

/// Functions that leave what nobody can be asked for: a backup that is under way, a temporary slot, the origin of what is written.
const UNSEEN: [&str; 7] = [
    "pg_backup_start",
    "pg_copy_logical_replication_slot",
    "pg_copy_physical_replication_slot",
    "pg_create_logical_replication_slot",
    "pg_create_physical_replication_slot",
    "pg_replication_origin_session_setup",
    "pg_start_backup",
];

/// Whether what the text does may outlive its transaction, in its session.
pub fn may_leave_something(sql: &str) -> bool {
    // Read in two ways: by the setting of standard_conforming_strings, and as an escaped name.
    if sql.contains('\\') || may_escape_a_name(sql) {
        return true;
    }
    let Some(tokens) = tokens(sql) else { return true };
    let mut begins = true;
    let mut is_set = false;
    for (at, token) in tokens.iter().enumerate() {
        if token.is_symbol(";") {
            if is_set {
                return true;
            }
            begins = true;
            continue;
        }
        if std::mem::take(&mut is_set) && !is_one_of(token, &OF_THE_TRANSACTION) {
            return true;
        }
        if begins && !token.is_symbol("(") {
            begins = false;
            if token.is_word("SET") {
                is_set = true;
            } else if !is_one_of(token, &HARMLESS) && !is_one_of(token, &READING) {
                return true;
            }
        } else if is_watched(&tokens[at..]) {
            return true;
        }
    }
    is_set
}

/// Whether a name may be written otherwise than it is called: `U&"…"`.
fn may_escape_a_name(sql: &str) -> bool {
    sql.as_bytes()
        .windows(3)
        .any(|bytes| matches!(bytes, [b'u' | b'U', b'&', b'"']))
}

/// Whether quotes or a comment have no end, which the server refuses before it does anything.
pub fn is_unclosed(sql: &str) -> bool {
    tokens(sql).is_none()
}

fn tokens(sql: &str) -> Option<Vec<Token<'_>>> {
    Lexer::new(Dialect::Postgres, sql).collect::<Result<_, _>>().ok()
}

/// The settings of the user's own (`app.tenant`: two parts) that the text may set, which no view of PostgreSQL's shows, and those by which texts are read or
/// planned. None where it may set one whose name does not stand in it.
pub fn settings_named(sql: &str) -> Option<Vec<String>> {
    if may_escape_a_name(sql) {
        return None;
    }
    let tokens = tokens(sql)?;
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
            match of_reading_or_folding(&whole) {
                Some(name) => named.push(name.to_owned()),
                None if whole.contains('.') => named.push(whole),
                None => {}
            }
        } else if names_one_of(token, &RUNS_A_TEXT) || names_one_of(token, &UNSEEN) {
            return None;
        } else if name(token).is_some_and(|name| name == "set_config") {
            match rest {
                // Anything but one string in full is put together where nobody sees it.
                [open, text, comma, ..] if open.is_symbol("(") && comma.is_symbol(",") => named.push(string(text)?),
                // So PostgreSQL writes it out.
                [open, text, rest @ ..] if open.is_symbol("(") && is_cast_to_text(rest) => named.push(string(text)?),
                _ => return None,
            }
        } else if token.kind == Kind::Text && begins_with_do(&tokens[..at]) {
            named.extend(settings_named_in_code(&code(&tokens, at)?)?);
        }
    }
    Some(named)
}

/// The code of a DO, in PL/pgSQL, whose quotes begin at this token. None where it is of another language, or may be read in two ways.
fn code(tokens: &[Token<'_>], at: usize) -> Option<String> {
    let is_continued = tokens.get(at + 1).is_some_and(|next| next.kind == Kind::Text);
    let mut languages = tokens.windows(2).filter(|pair| pair[0].is_word("LANGUAGE"));
    let is_plpgsql = languages.all(|pair| name(&pair[1]).is_some_and(|language| language == "plpgsql"));
    quoted(&tokens[at]).filter(|code| is_plpgsql && !is_continued && !is_ambiguous(code))
}

/// Whether what stands in it can be written otherwise than it is called.
fn is_ambiguous(code: &str) -> bool {
    code.contains('\\') || code.to_ascii_lowercase().contains("u&")
}

/// What a text that is executed begins with where it sets nothing, however it goes on.
const SETS_NOTHING: [&str; 16] = [
    "ALTER",
    "ANALYZE",
    "CLUSTER",
    "COMMENT",
    "CREATE",
    "DEALLOCATE",
    "DELETE",
    "DROP",
    "GRANT",
    "INSERT",
    "LOCK",
    "REFRESH",
    "REINDEX",
    "REVOKE",
    "TRUNCATE",
    "UPDATE",
];

/// Those that such code may set. None where it runs what may set anything, or has code in it.
fn settings_named_in_code(code: &str) -> Option<Vec<String>> {
    let tokens = tokens(code)?;
    let may_set = |at: usize| {
        let operand = match &tokens[at + 1..] {
            [format, open, text, ..] if format.is_word("format") && open.is_symbol("(") => text,
            [text, ..] => text,
            [] => return true,
        };
        let text = quoted(operand).unwrap_or_default();
        let first = text.split_whitespace().next().unwrap_or_default();
        // A word that may go on elsewhere is another.
        let is_whole = text.trim_start().len() > first.len();
        !is_whole || !SETS_NOTHING.iter().any(|known| first.eq_ignore_ascii_case(known))
    };
    let is_unclear = (0..tokens.len()).any(|at| tokens[at].is_word("EXECUTE") && may_set(at));
    match is_unclear || has_code_within(&tokens) {
        true => None,
        false => settings_named_in_body(code),
    }
}

/// Whether a DO, or a function that is made, stands within: other than where rows conflict.
fn has_code_within(tokens: &[Token<'_>]) -> bool {
    tokens.iter().enumerate().any(|(at, token)| {
        let next = tokens.get(at + 1);
        let is_of_a_conflict =
            next.is_some_and(|next| is_one_of(next, &["NOTHING", "UPDATE", "DELETE", "INSERT", "INSTEAD", "ALSO"]));
        is_one_of(token, &["FUNCTION", "PROCEDURE", "ROUTINE"]) || (token.is_word("DO") && !is_of_a_conflict)
    })
}

/// What stands in quotes, dollars or plain ones.
fn quoted(token: &Token<'_>) -> Option<String> {
    let Some(rest) = token.text.strip_prefix('$') else {
        return string(token);
    };
    let (tag, rest) = rest.split_once('$')?;
    let inner = rest.strip_suffix('$')?.strip_suffix(tag)?.strip_suffix('$')?;
    Some(inner.to_owned())
}

/// The settings of the user's own that functions may set which this text makes, before anything else is known of them; none where it makes none.
pub fn settings_named_in_what_it_makes(sql: &str) -> Option<Vec<String>> {
    let tokens = tokens(sql)?;
    let makes = |at: usize| {
        let rest = &tokens[at + 1..tokens.len().min(at + 4)];
        tokens[at].is_word("CREATE") && rest.iter().any(|next| is_one_of(next, &["FUNCTION", "PROCEDURE"]))
    };
    if !(0..tokens.len()).any(makes) {
        return None;
    }
    let bodies = tokens.iter().filter(|token| token.kind == Kind::Text).map(contents);
    let of_bodies = bodies.filter_map(|body| settings_named_in_body(&body)).flatten();
    Some(
        settings_named(sql)
            .unwrap_or_default()
            .into_iter()
            .chain(of_bodies)
            .collect(),
    )
}

/// Whether the last of these statements resets all that is set.
pub fn ends_by_resetting_all(sql: &str) -> bool {
    let Some(mut tokens) = tokens(sql) else { return false };
    while tokens.pop_if(|last| last.is_symbol(";")).is_some() {}
    let begin = tokens
        .iter()
        .rposition(|token| token.is_symbol(";"))
        .map_or(0, |at| at + 1);
    matches!(&tokens[begin..], [reset, all] if reset.is_word("RESET") && all.is_word("ALL"))
}

/// Whether an argument ends here with a cast to `text`.
fn is_cast_to_text(tokens: &[Token<'_>]) -> bool {
    let rest = match tokens {
        [cast, rest @ ..] if cast.is_symbol("::") => rest,
        [colon, other, rest @ ..] if colon.is_symbol(":") && other.is_symbol(":") => rest,
        _ => return false,
    };
    matches!(rest, [of, comma, ..] if of.is_word("text") && comma.is_symbol(","))
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
pub(super) fn name(token: &Token<'_>) -> Option<String> {
    match token.kind {
        Kind::Word => Some(token.text.to_ascii_lowercase()),
        Kind::QuotedName => Some(token.text.trim_matches('"').replace("\"\"", "\"")),
        _ => None,
    }
}

/// What stands in plain quotes.
pub(super) fn string(token: &Token<'_>) -> Option<String> {
    let inner = token.text.strip_prefix('\'')?.strip_suffix('\'')?;
    (token.kind == Kind::Text && !inner.contains('\\')).then(|| inner.replace("''", "'"))
}

/// The same, in quotes or not.
fn names_one_of(token: &Token<'_>, names: &[&str]) -> bool {
    name(token).is_some_and(|name| names.contains(&name.as_str()))
}

pub(super) fn is_one_of(token: &Token<'_>, words: &[&str]) -> bool {
    token.kind == Kind::Word && words.iter().any(|word| token.text.eq_ignore_ascii_case(word))
}

/// Whether what these tokens begin with may leave something.
fn is_watched(tokens: &[Token<'_>]) -> bool {
    let Some((token, rest)) = tokens.split_first() else {
        return false;
    };
    let word = match token.kind {
        Kind::Word => token.text,
        Kind::QuotedName => token.text.trim_matches('"'),
        _ => return false,
    };
    WATCHED.iter().any(|watched| word.eq_ignore_ascii_case(watched))
        && !(word.eq_ignore_ascii_case("set_config") && is_of_the_transaction(rest))
}

/// Whether the arguments that these tokens begin with are those of a `set_config` that holds for no longer than the transaction.
fn is_of_the_transaction(tokens: &[Token<'_>]) -> bool {
    let mut depth = 0_usize;
    let mut last = None;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Symbol if matches!(token.text, "(" | "[") => depth += 1,
            Kind::Symbol if matches!(token.text, ")" | "]") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let argument = last.map(|comma: usize| &tokens[comma + 1..at]);
                    return matches!(argument, Some([only]) if only.is_word("true"));
                }
            }
            Kind::Symbol if token.text == "," && depth == 1 => last = Some(at),
            _ if depth == 0 => return false,
            _ => {}
        }
    }
    false
}

/// What a function's body begins a statement behind, as PL/pgSQL has it.
const BEFORE_A_STATEMENT: [&str; 5] = ["ATOMIC", "BEGIN", "ELSE", "LOOP", "THEN"];
/// Statements that leave something, or may.
const LEAVING: [&str; 8] = [
    "DEALLOCATE",
    "DISCARD",
    "DO",
    "LISTEN",
    "LOAD",
    "PREPARE",
    "RESET",
    "UNLISTEN",
];

/// Whether what the body of a function in SQL or PL/pgSQL says may outlive the transaction that calls it: not what functions, triggers and
/// rules do that it sets off. A text that it puts together and executes may do anything.
pub fn body_may_leave_something(body: &str) -> bool {
    let Some(tokens) = tokens(body) else { return true };
    (0..tokens.len()).any(|at| {
        let (token, before) = (&tokens[at], at.checked_sub(1).map(|before| &tokens[before]));
        let begins = before.is_none_or(|before| {
            before.is_symbol(";") || before.text.ends_with('>') || is_one_of(before, &BEFORE_A_STATEMENT)
        });
        is_watched(&tokens[at..])
            || (begins && is_one_of(token, &LEAVING))
            || (begins
                && token.is_word("SET")
                && !tokens
                    .get(at + 1)
                    .is_some_and(|next| is_one_of(next, &OF_THE_TRANSACTION)))
    })
}

/// Whether the definition of a view, a policy, a default or the like calls by itself what may leave something. (Of a trigger, `EXECUTE` says which
/// function it calls.)
pub fn definition_may_leave_something(definition: &str) -> bool {
    let Some(tokens) = tokens(definition) else { return true };
    (0..tokens.len()).any(|at| !tokens[at].is_word("EXECUTE") && is_watched(&tokens[at..]))
}

/// The names of what may leave something wherever it is called.
pub fn leaving_by_name() -> &'static [&'static str] {
    &WATCHED
}

/// The settings of the user's own that the body of a function may set. None where it may set one whose name does not stand in it.
pub fn settings_named_in_body(body: &str) -> Option<Vec<String>> {
    let tokens = tokens(body)?;
    let is_dynamic = tokens.iter().any(|token| token.is_word("EXECUTE"));
    let mut texts = tokens.iter().filter(|token| token.kind == Kind::Text);
    // Of what it puts together, the strings say whether it sets.
    if is_dynamic && texts.clone().any(|token| may_be_a_part_that_sets(&contents(token))) {
        return None;
    }
    // A function's name may stand between two of them.
    let ends = |part: String| {
        let part = part.trim_end().to_ascii_lowercase();
        ["select", "call"].iter().any(|word| part.ends_with(word))
    };
    let goes_on_with_arguments = |part: String| part.trim_start().starts_with('(');
    let is_called_by_a_part = texts.clone().any(|token| ends(contents(token)))
        && texts.clone().any(|token| goes_on_with_arguments(contents(token)));
    if is_dynamic && (is_called_by_a_part || texts.clone().any(|token| contents(token).trim_end().ends_with(';'))) {
        return None;
    }
    // A text that none of them begins comes from elsewhere.
    let has_texts = texts.any(|token| begins_a_statement(&contents(token)));
    let runs_what_comes = |at: usize| {
        let (next, behind) = (tokens.get(at + 1), tokens.get(at + 2));
        let is_of_a_trigger = next.is_some_and(|next| is_one_of(next, &["FUNCTION", "PROCEDURE"]));
        let is_of_a_row = behind.is_some_and(|behind| behind.is_symbol("."));
        tokens[at].is_word("EXECUTE") && !is_of_a_trigger && (is_of_a_row || !has_texts)
    };
    if (0..tokens.len()).any(runs_what_comes) {
        return None;
    }
    let does = |(at, token): (usize, &Token<'_>)| token.kind == Kind::Text && at > 0 && tokens[at - 1].is_word("DO");
    if tokens.iter().enumerate().any(does) {
        return None;
    }
    settings_named(body)
}

/// What stands in the quotes of a string, of whatever form, with blanks where it has escapes.
fn contents(token: &Token<'_>) -> String {
    quoted(token).unwrap_or_else(|| {
        let inner = token.text.split_once('\'').map_or(token.text, |(_, inner)| inner);
        let inner = inner.strip_suffix('\'').unwrap_or(inner);
        let mut told = String::with_capacity(inner.len());
        let mut letters = inner.chars();
        while let Some(letter) = letters.next() {
            if letter == '\\' {
                letters.next();
            }
            told.push(if letter == '\\' { ' ' } else { letter });
        }
        told
    })
}

/// Whether a text that a function puts together may set something where this is a part of it: it begins a SET, calls `set_config`, or a function whose name is put in.
fn may_be_a_part_that_sets(part: &str) -> bool {
    let text = part.to_ascii_lowercase();
    // What is put in in front of a parenthesis is a table's name behind these, and else may be a function's.
    let of_a_table = [
        "as",
        "copy",
        "exists",
        "into",
        "on",
        "only",
        "references",
        "table",
        "update",
    ];
    let calls_what_comes = ["%i(", "%s("].iter().any(|call| {
        text.match_indices(call).any(|(at, _)| {
            let before = text[..at].trim_end_matches(['%', 'i', 's', '.']);
            let word = before
                .trim_end()
                .rsplit(|letter: char| !letter.is_alphanumeric())
                .next();
            before.len() == before.trim_end().len() || !word.is_some_and(|word| of_a_table.contains(&word))
        })
    });
    if calls_what_comes || text.contains("set_config") || text.contains("u&") {
        return true;
    }
    // What has no end of its own is read as far as it goes.
    let mut begins = true;
    for token in Lexer::new(Dialect::Postgres, part) {
        let Ok(token) = token else {
            return has_word_set(&text);
        };
        if begins && token.is_word("SET") {
            return true;
        }
        begins = token.is_symbol(";");
    }
    false
}

fn has_word_set(text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| word == "set")
}

/// Whether a statement begins with this that reads, or of which it is known what it sets.
fn begins_a_statement(part: &str) -> bool {
    let Some(Ok(first)) = Lexer::new(Dialect::Postgres, part).next() else {
        return false;
    };
    // A word that may go on elsewhere is another.
    let is_whole = part.trim_start().len() > first.text.len();
    is_whole
        && (is_one_of(&first, &SETS_NOTHING)
            || is_one_of(&first, &["CALL", "COPY", "MERGE", "SELECT", "VACUUM", "WITH"]))
}

/// The names that a text mentions, the code of a DO among it, and what a function puts together, of whatever, in lower case; and whether it may write, or set off what writing sets off. None where it
/// cannot be read for certain.
pub fn mentioned(sql: &str) -> Option<(Vec<String>, bool)> {
    let tokens = tokens(sql)?;
    let mut writes = tokens.iter().any(|token| is_one_of(token, &WRITING));
    let mut names: Vec<String> = tokens.iter().filter_map(name).map(|name| name.to_lowercase()).collect();
    if tokens.iter().any(|token| token.is_word("EXECUTE")) {
        for text in tokens.iter().filter(|token| token.kind == Kind::Text).map(contents) {
            // A part may end within quotes: what stands in them are words, too.
            let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '$');
            let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
            writes |= words
                .iter()
                .any(|word| WRITING.iter().any(|writing| writing.eq_ignore_ascii_case(word)));
            names.extend(words);
        }
    }
    for (at, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Text && begins_with_do(&tokens[..at]) {
            let (more, also_writes) = mentioned(&code(&tokens, at)?)?;
            names.extend(more);
            writes |= also_writes;
        }
    }
    Some((names, writes))
}

/// Words that every statement has that writes.
const WRITING: [&str; 6] = ["COPY", "DELETE", "INSERT", "MERGE", "TRUNCATE", "UPDATE"];

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
                "set local time zone 'UTC'; set bytea_output = 'hex'",
                Some(vec!["TimeZone", "bytea_output"]),
            ),
            (
                "set \"app.who\" = 'x'; set a.b.c = 1; set \"a.b\".\"C\" = 1",
                Some(vec!["app.who", "a.b.c", "a.b.C"]),
            ),
            ("do $$begin set\tapp.x = 'y'; end$$", Some(vec!["app.x"])),
            (
                "do $a$begin set local app.x = 'y'; update t set v = 1; end$a$ language plpgsql",
                Some(vec!["app.x"]),
            ),
            ("do 'begin set app.x = ''y''; end'", Some(vec!["app.x"])),
            ("do e'begin set app.x = 1; end'", None),
            ("do $a$begin do $b$begin set app.x = 1; end$b$; end$a$", None),
            ("do $a$begin if a then do 'begin end'; end if; end$a$", None),
            (
                "do $a$begin create function f() returns int as 'select 1'; end$a$",
                None,
            ),
            ("do 'begin set app'\n'.x = 1; end'", None),
            ("set U&\"app.x\" = 1", None),
            ("do $$begin set U&\"app.x\" = 1; end$$", None),
            (
                "do $$begin perform U&\"set\\005fconfig\"('app.x', '1', false); end$$",
                None,
            ),
            (
                "do $$begin insert into t values (1) on conflict do nothing; end$$",
                Some(vec![]),
            ),
            ("do $$begin execute 'set ' || x; end$$", None),
            ("do $$begin execute 'SE' || 'T app.x = 1'; end$$", None),
            ("do $$begin execute 'DROP' || x; end$$", None),
            ("do $$begin execute x; end$$", None),
            ("do $$begin execute format('select set_%s(1)', 'config'); end$$", None),
            (
                "do $$begin execute format('insert into %I select set_config(1)', x); end$$",
                None,
            ),
            (
                "do $$begin execute 'deallocate ' || 'all'; execute format('drop table %I', x); end$$",
                Some(vec![]),
            ),
            ("do language plpython3u $$plpy.execute(\"set app.x = 1\")$$", None),
            ("do $$plpy.execute(\"set app.x = 1\")$$ language \"plpython3u\"", None),
            ("do $$begin perform set_config(x, y, false); end$$", None),
            ("do $$begin perform 1 offset_of; end$$", Some(vec![])),
            (
                "select query_to_xml('select set_config(''a.b'',''c'',false)', true, false, '')",
                None,
            ),
            ("select set_config($1, $2, false)", None),
            ("select \"table_to_xml\"('v', true, false, '')", None),
            ("select pg_create_physical_replication_slot('s', true, true)", None),
            ("update pg_settings set setting = 'x'", Some(vec![])),
            ("select set_config('a' || 'b', 'x', false)", None),
            ("select set_config('a.b'::text, 'x'::text, false)", Some(vec!["a.b"])),
            ("select set_config('a.b'::name, 'x', false)", None),
            (
                "do $$begin perform set_config('a.b', 'c', false); end$$",
                Some(vec!["a.b"]),
            ),
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
    fn settings_are_named_in_functions_that_a_text_makes() {
        let named = |sql| settings_named_in_what_it_makes(sql);
        let one = || Some(vec!["a.b".to_owned()]);
        for sql in [
            "create function f() returns text language sql as $$select set_config('a.b', '1', false)$$",
            "begin; create or replace procedure f() language plpgsql as 'begin set a.b = 1; end'",
            "create function f() returns text begin atomic select set_config('a.b', '1', false); end",
            "create function f(x text default set_config('a.b', '1', false)) returns text return x",
        ] {
            assert_eq!(named(sql), one(), "{sql}");
        }
        let harmless = "create function f() returns int language sql as 'select 1'";
        assert_eq!(named(harmless), Some(vec![]));
        for sql in [
            "create table f (a int default set_config('a.b', '1', false)::int)",
            "select 'open",
        ] {
            assert_eq!(named(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_ends_by_resetting_all_is_told() {
        for sql in [
            "reset all",
            "RESET /* */ ALL;;",
            "SELECT pg_advisory_unlock_all(); UNLISTEN *; RESET ALL;",
        ] {
            assert!(ends_by_resetting_all(sql), "{sql}");
        }
        for sql in [
            "",
            "reset all; set a.b = 1",
            "reset \"all\"",
            "reset alls",
            "select 'reset all'",
            "x reset all",
        ] {
            assert!(!ends_by_resetting_all(sql), "{sql}");
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
            "select set_config('a.b', f($1, array[2, 3]), TRUE), set_config('role', $2, true)",
            "((select 1))",
            "create table t (a int)",
            "select '<a href=\"?a=1&\">'",
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
            "select set_config('a.b', $1, $2)",
            "select set_config('a.b', $1, true and false)",
            "select set_config('a.b', f('x', true)), true",
            "select set_config",
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
            "UPDATE pg_settings SET setting = 'x' WHERE name = 'search_path'",
            "select set_limit(0.9)",
            "select * from crosstab2($$select 1$$)",
            "select schema_to_xml('public', true, false, '')",
            "select pg_replication_origin_session_setup('o')",
            "select '\\'; set x.y = 1; --'",
            "select 'open",
            "select u&\"set!005fconfig\" uescape '!' ('a.b', '1', false)",
        ] {
            assert!(may_leave_something(sql), "{sql}");
        }
    }

    #[test]
    fn a_body_that_may_leave_something_is_told() {
        for body in [
            "begin set work_mem = 1; end",
            "begin if x then set a.b = 1; end if; end",
            "declare a int; begin <<here>> set session x to y; end",
            "SET x = 1",
            "select 1; reset x",
            "begin perform set_config('a.b', new.c, false); end",
            "begin create temp table x (a int); end",
            "begin execute format('insert into %I values (1)', x); end",
            "begin perform pg_advisory_lock(1); end",
            "begin listen x; end",
            "begin do $$begin set a.b = 1; end$$; end",
            "begin 'open",
        ] {
            assert!(body_may_leave_something(body), "{body}");
        }
        for body in [
            "begin update t set a = 1 where b; insert into u values (1) on conflict (a) do update set b = 2; end",
            "begin new.set := old.reset; return new; end",
            "select a as set from t",
            "begin set local work_mem = 1; perform set_config('a.b', x, true); end",
            "begin raise notice 'set x'; perform pg_advisory_xact_lock(1); end",
            "begin merge into t using u on true when matched then update set a = 1; end",
        ] {
            assert!(!body_may_leave_something(body), "{body}");
        }
    }

    #[test]
    fn settings_of_a_body_are_named() {
        for (body, named) in [
            (
                "begin perform set_config('a.b', x, false); set c.d = 1; end",
                Some(vec!["a.b", "c.d"]),
            ),
            (
                "begin execute format('insert into %I values (1)', x); end",
                Some(vec![]),
            ),
            ("begin execute 'set ' || x; end", None),
            ("begin execute 'select set_config(' || x; end", None),
            ("begin perform set_config(x, y, false); end", None),
            ("begin do $$begin set a.b = 1; end$$; end", None),
            (
                "begin for r in select c from cmds loop execute r.c; end loop; end",
                None,
            ),
            ("begin raise notice 'x'; execute r.c; end", None),
            ("begin execute sent; end", None),
            ("begin q := 'delete from ' || x; execute q; end", Some(vec![])),
            ("begin raise debug 'running %', q; execute q; end", None),
            ("begin execute format($q$SET app.x = %L$q$, v); end", None),
            ("begin execute E'SET app.x = 1'; end", None),
            ("begin execute E'\\nSET app.x = 1'; end", None),
            ("begin execute 'SET\n app.x = ' || v; end", None),
            ("begin execute '/* c */ set app.x = 1'; end", None),
            ("begin execute 'select 1; set app.x = 1'; end", None),
            ("begin execute 'select 1; set app.x = ''1'; end", None),
            ("begin execute format('select %I($1,$2,false)', f); end", None),
            (
                "begin execute format('insert into %I(a) values (1)', f); end",
                Some(vec![]),
            ),
            ("begin execute format('update %I set a = 1', f); end", Some(vec![])),
            ("begin execute 'sel' || q; end", None),
            ("begin execute format('select * from %I($1, $2, false)', f); end", None),
            ("begin execute format('select 1, %I.%I($1)', s, f); end", None),
            (
                "begin execute 'select ' || f || '($1, $2, false)' using k, v; end",
                None,
            ),
            ("begin execute 'select 1; ' || f; end", None),
            ("begin execute 'select ' || columns || ' from t'; end", Some(vec![])),
            (
                "begin execute format('create table if not exists %I.%I(a int)', s, t); end",
                Some(vec![]),
            ),
            (
                "begin execute format('insert into %I.%I(a) select a from t where a in (%s)', s, t, l); end",
                Some(vec![]),
            ),
            (
                "begin execute format('create index on %I(%s)', t, c); end",
                Some(vec![]),
            ),
            (
                "create trigger t before insert on x execute function s.f()",
                Some(vec![]),
            ),
        ] {
            let told = settings_named_in_body(body);
            let told: Option<Vec<&str>> = told.as_ref().map(|names| names.iter().map(String::as_str).collect());
            assert_eq!(told, named, "{body}");
        }
    }

    #[test]
    fn names_are_mentioned_in_lower_case() {
        let (names, writes) = mentioned("SELECT Count(*) FROM \"Shop\".t -- insert\n WHERE a = 'update'").unwrap();
        assert!(
            ["count", "shop", "t", "a"]
                .iter()
                .all(|name| names.iter().any(|known| known == name))
        );
        assert!(!writes && mentioned("with x as (delete from t) select 1").unwrap().1);
        let (names, writes) = mentioned("do $$begin perform Sets(1); delete from t; end$$").unwrap();
        assert!(writes && names.iter().any(|name| name == "sets"));
        assert!(mentioned("do language plperl $$sets()$$").is_none());
        let (names, writes) =
            mentioned("begin execute format('insert into Audited select Sets(''' || x); end").unwrap();
        assert!(
            writes
                && ["audited", "sets"]
                    .iter()
                    .all(|name| names.iter().any(|known| known == name))
        );
    }
}
