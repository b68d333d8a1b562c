//! The statements that are for the session and not for SQLite: transactions, settings, and those that are refused by name.
//!
//! Promises: a statement is either understood whole or an error; one that starts like none of these is left to SQLite (`None`).
//! Knows nothing of what a session does with them.

use super::error::SqlError;
use super::lexer::Kind as TokenKind;
use super::statement::{Isolation, Kind, ResetTarget};
use super::tag::Tag;
use super::token_cursor::TokenCursor;

/// The command these tokens are, with its tag; `None` leaves the statement to SQLite.
pub(crate) fn understand(cursor: &TokenCursor<'_>) -> Result<Option<(Kind, Tag)>, SqlError> {
    let mut cursor = cursor.clone();
    let first = cursor.peek_word();
    let start = cursor.clone();
    cursor.next();
    let (kind, words) = match first.as_str() {
        "BEGIN" => (begin(&mut cursor)?, "BEGIN"),
        "START" => {
            if !cursor.take_words(&["TRANSACTION"]) {
                return cursor.expected("TRANSACTION");
            }
            (begin(&mut cursor)?, "START TRANSACTION")
        }
        "COMMIT" | "END" => {
            if cursor.take_words(&["PREPARED"]) {
                return Ok(Some(refused("COMMIT PREPARED")));
            }
            skip_transaction_word(&mut cursor);
            (
                Kind::Commit {
                    chain: chain(&mut cursor)?,
                },
                "COMMIT",
            )
        }
        "ROLLBACK" | "ABORT" => {
            if cursor.take_words(&["PREPARED"]) {
                return Ok(Some(refused("ROLLBACK PREPARED")));
            }
            skip_transaction_word(&mut cursor);
            if first == "ROLLBACK" && cursor.take_words(&["TO"]) {
                cursor.take_words(&["SAVEPOINT"]);
                (Kind::RollbackTo(cursor.name("a savepoint name")?), "ROLLBACK")
            } else {
                (
                    Kind::Rollback {
                        chain: chain(&mut cursor)?,
                    },
                    "ROLLBACK",
                )
            }
        }
        "SAVEPOINT" => (Kind::Savepoint(cursor.name("a savepoint name")?), "SAVEPOINT"),
        "RELEASE" => {
            cursor.take_words(&["SAVEPOINT"]);
            (Kind::Release(cursor.name("a savepoint name")?), "RELEASE")
        }
        "SET" => {
            let kind = set(&mut cursor)?;
            let tag = if matches!(kind, Kind::SetConstraints { .. }) {
                "SET CONSTRAINTS"
            } else {
                "SET"
            };
            (kind, tag)
        }
        "RESET" => {
            let target = if cursor.take_words(&["ALL"]) {
                ResetTarget::All
            } else if cursor.take_words(&["SESSION", "AUTHORIZATION"]) {
                ResetTarget::Name("session_authorization".to_owned())
            } else if cursor.take_words(&["TIME", "ZONE"]) {
                ResetTarget::Name("timezone".to_owned())
            } else {
                ResetTarget::Name(setting_name(&mut cursor)?)
            };
            (Kind::Reset(target), "RESET")
        }
        "SHOW" => (Kind::Show(show(&mut cursor)?), "SHOW"),
        "DISCARD" => return discard(&mut cursor).map(Some),
        "COPY" => (Kind::Copy(Box::new(super::copy::understand(&mut cursor)?)), "COPY"),
        "LISTEN" => (Kind::Listen(cursor.name("a channel")?), "LISTEN"),
        "UNLISTEN" => {
            let all = cursor.take_sign("*");
            let channel = if all {
                None
            } else {
                Some(cursor.name("a channel or *")?)
            };
            (Kind::Unlisten(channel), "UNLISTEN")
        }
        "NOTIFY" => {
            let channel = cursor.name("a channel")?;
            let payload = if cursor.take_sign(",") {
                match cursor.string()? {
                    Some(payload) => payload,
                    None => return cursor.expected("a string"),
                }
            } else {
                String::new()
            };
            (Kind::Notify { channel, payload }, "NOTIFY")
        }
        "CLOSE" => {
            if cursor.take_words(&["ALL"]) {
                (Kind::Close(None), "CLOSE CURSOR ALL")
            } else {
                (Kind::Close(Some(cursor.name("a cursor or ALL")?)), "CLOSE CURSOR")
            }
        }
        "DEALLOCATE" => {
            cursor.take_words(&["PREPARE"]);
            let all = cursor.take_words(&["ALL"]);
            let name = if all {
                None
            } else {
                Some(cursor.name("a prepared statement name or ALL")?)
            };
            (
                Kind::Deallocate(name),
                if all { "DEALLOCATE ALL" } else { "DEALLOCATE" },
            )
        }
        _ => return Ok(refuse_by_name(&start)),
    };
    cursor.end()?;
    Ok(Some((kind, Tag::Words(words.into()))))
}

fn refused(what: &str) -> (Kind, Tag) {
    (
        Kind::Unsupported {
            what: what.to_owned(),
            hint: None,
        },
        Tag::Words(what.to_owned().into()),
    )
}

fn refused_but(what: &str, hint: &str) -> (Kind, Tag) {
    (
        Kind::Unsupported {
            what: what.to_owned(),
            hint: Some(hint.to_owned()),
        },
        Tag::Words(what.to_owned().into()),
    )
}

/// PostgreSQL's commands that nothing here stands for, and SQLite's that would change a connection others share.
fn refuse_by_name(cursor: &TokenCursor<'_>) -> Option<(Kind, Tag)> {
    let first = cursor.peek_word();
    let mut rest = cursor.clone();
    rest.next();
    Some(match first.as_str() {
        "LOAD" | "CALL" | "DO" | "GRANT" | "REVOKE" | "MERGE" | "REINDEX" | "CLUSTER" | "CHECKPOINT" | "SECURITY"
        | "REASSIGN" | "IMPORT" => refused(&first),
        "ATTACH" | "DETACH" => refused_but(&first, "The server works on the one database it was started with."),
        "CREATE" | "DROP" | "ALTER" => {
            let or_replace = rest.take_words(&["OR", "REPLACE"]);
            for temporary in ["TEMP", "TEMPORARY"] {
                if first == "CREATE" && rest.take_words(&[temporary]) {
                    let what = format!("{first} {temporary} {}", rest.peek_word());
                    return Some(refused_but(&what, WHY_NOT_TEMPORARY));
                }
            }
            if first == "CREATE" && is_qualified_as_temporary(&rest) {
                return Some(refused_but("CREATE of a temporary object", WHY_NOT_TEMPORARY));
            }
            let second = rest.peek_word();
            match second.as_str() {
                // What there is of these, the compiler knows.
                "SEQUENCE" => return None,
                "SCHEMA" | "EXTENSION" if first != "ALTER" => return None,
                "ROLE" | "USER" | "DATABASE" | "SCHEMA" | "EXTENSION" | "FUNCTION" | "PROCEDURE" | "TYPE"
                | "DOMAIN" | "MATERIALIZED" | "LANGUAGE" | "OPERATOR" | "AGGREGATE" | "PUBLICATION"
                | "SUBSCRIPTION" | "SERVER" | "FOREIGN" | "POLICY" | "RULE" | "EVENT" | "CAST" | "COLLATION"
                | "TABLESPACE" | "UNLOGGED" | "SYSTEM" | "DEFAULT" | "OWNED" | "GROUP" | "STATISTICS" => {
                    refused(&format!("{first} {second}"))
                }
                "TRIGGER" if or_replace => refused_but(
                    &format!("CREATE OR REPLACE {second}"),
                    "Drop it first: both statements can be in one transaction.",
                ),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// What PostgreSQL can ALTER or COMMENT ON and the grammar does not read: refused by name, for it is no syntax error.
pub(super) fn unread_alteration(cursor: &TokenCursor<'_>) -> Option<SqlError> {
    const UNREAD: [[&str; 2]; 18] = [
        ["SET", "SCHEMA"],
        ["DROP", "IDENTITY"],
        ["SET", "GENERATED"],
        ["DROP", "EXPRESSION"],
        ["SET", "STATISTICS"],
        ["SET", "STORAGE"],
        ["SET", "COMPRESSION"],
        ["SET", "TABLESPACE"],
        ["SET", "ACCESS"],
        ["SET", "WITHOUT"],
        ["SET", "LOGGED"],
        ["SET", "UNLOGGED"],
        ["CLUSTER", "ON"],
        ["ATTACH", "PARTITION"],
        ["DETACH", "PARTITION"],
        ["ALTER", "CONSTRAINT"],
        ["NO", "INHERIT"],
        ["NOT", "OF"],
    ];
    let mut rest = cursor.clone();
    let what = rest.peek_word();
    if what == "COMMENT" && rest.take_words(&["COMMENT", "ON"]) {
        return Some(SqlError::unsupported(format!("COMMENT ON {}", rest.peek_word())));
    }
    if what != "ALTER" {
        return None;
    }
    rest.next();
    let object = rest.peek_word();
    while rest.next().is_some() {
        for words in &UNREAD {
            if rest.clone().take_words(words) {
                return Some(SqlError::unsupported(format!("{what} {object} … {}", words.join(" "))));
            }
        }
    }
    None
}

const WHY_NOT_TEMPORARY: &str =
    "Connections are shared, so a temporary object would be seen by others or lost; use a plain table.";

/// `TABLE temp.x`, which makes a temporary table without saying so.
fn is_qualified_as_temporary(behind_create: &TokenCursor<'_>) -> bool {
    let mut cursor = behind_create.clone();
    while ["UNIQUE", "VIRTUAL", "TABLE", "VIEW", "INDEX", "TRIGGER"]
        .iter()
        .any(|word| cursor.take_words(&[word]))
    {}
    cursor.take_words(&["IF", "NOT", "EXISTS"]);
    cursor
        .name("a name")
        .is_ok_and(|schema| schema.eq_ignore_ascii_case("temp"))
        && cursor.take_sign(".")
}

fn skip_transaction_word(cursor: &mut TokenCursor<'_>) {
    let _ = cursor.take_words(&["TRANSACTION"]) || cursor.take_words(&["WORK"]);
}

fn chain(cursor: &mut TokenCursor<'_>) -> Result<bool, SqlError> {
    if cursor.take_words(&["AND", "NO", "CHAIN"]) {
        return Ok(false);
    }
    Ok(cursor.take_words(&["AND", "CHAIN"]))
}

fn begin(cursor: &mut TokenCursor<'_>) -> Result<Kind, SqlError> {
    // SQLite's own words for when the lock is taken: asking for it at once says that the transaction will write.
    let will_write = cursor.take_words(&["IMMEDIATE"]) || cursor.take_words(&["EXCLUSIVE"]);
    if !will_write {
        cursor.take_words(&["DEFERRED"]);
    }
    skip_transaction_word(cursor);
    let (isolation, read_only) = modes(cursor)?;
    let read_only = read_only.or(will_write.then_some(false));
    Ok(Kind::Begin { isolation, read_only })
}

fn modes(cursor: &mut TokenCursor<'_>) -> Result<(Option<Isolation>, Option<bool>), SqlError> {
    let (mut isolation, mut read_only) = (None, None);
    loop {
        if cursor.take_words(&["ISOLATION", "LEVEL"]) {
            isolation = Some(if cursor.take_words(&["SERIALIZABLE"]) {
                Isolation::Serializable
            } else if cursor.take_words(&["REPEATABLE", "READ"]) {
                Isolation::RepeatableRead
            } else if cursor.take_words(&["READ", "COMMITTED"]) {
                Isolation::ReadCommitted
            } else if cursor.take_words(&["READ", "UNCOMMITTED"]) {
                Isolation::ReadUncommitted
            } else {
                return cursor.expected("an isolation level");
            });
        } else if cursor.take_words(&["READ", "ONLY"]) {
            read_only = Some(true);
        } else if cursor.take_words(&["READ", "WRITE"]) {
            read_only = Some(false);
        } else if !cursor.take_words(&["NOT", "DEFERRABLE"]) && !cursor.take_words(&["DEFERRABLE"]) {
            return if cursor.is_at_end() {
                Ok((isolation, read_only))
            } else {
                cursor.expected("a transaction mode")
            };
        }
        cursor.take_sign(",");
    }
}

fn set(cursor: &mut TokenCursor<'_>) -> Result<Kind, SqlError> {
    if cursor.take_words(&["SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"]) {
        let (isolation, read_only) = modes(cursor)?;
        return Ok(Kind::SetTransaction {
            isolation,
            read_only,
            session: true,
        });
    }
    if cursor.take_words(&["TRANSACTION"]) {
        let (isolation, read_only) = modes(cursor)?;
        return Ok(Kind::SetTransaction {
            isolation,
            read_only,
            session: false,
        });
    }
    if cursor.take_words(&["CONSTRAINTS"]) {
        return constraints(cursor);
    }
    // `SET session = …` names a setting, `SET SESSION x = …` does not: look at what follows.
    let mut ahead = cursor.clone();
    let local = ahead.take_words(&["LOCAL"]);
    let scoped = local || ahead.take_words(&["SESSION"]);
    let mut scoped_to_session = false;
    if scoped
        && ahead
            .peek()
            .is_some_and(|token| token.kind != TokenKind::Operator && !token.is_word(ahead.source, "TO"))
    {
        scoped_to_session = !local;
        *cursor = ahead;
    }
    let set = |name: &str, value: Option<String>| {
        Ok(Kind::Set {
            name: name.to_owned(),
            value,
            local,
        })
    };
    if cursor.take_words(&["TIME", "ZONE"]) {
        return set("timezone", time_zone(cursor)?);
    }
    if cursor.take_words(&["NAMES"]) {
        if cursor.is_at_end() {
            return set("client_encoding", None);
        }
        return set("client_encoding", value(cursor, "client_encoding")?);
    }
    if scoped_to_session && cursor.take_words(&["AUTHORIZATION"]) {
        return set("session_authorization", value(cursor, "session_authorization")?);
    }
    let mut ahead = cursor.clone();
    if ahead.take_words(&["ROLE"])
        && ahead
            .peek()
            .is_some_and(|token| token.kind != TokenKind::Operator && !token.is_word(ahead.source, "TO"))
    {
        *cursor = ahead;
        return set("role", value(cursor, "role")?);
    }
    let name = setting_name(cursor)?;
    if !cursor.take_words(&["TO"]) && !cursor.take_sign("=") {
        return cursor.expected("TO or =");
    }
    let value = value(cursor, &name)?;
    set(&name, value)
}

/// `ALL DEFERRED`, `name, … IMMEDIATE`.
fn constraints(cursor: &mut TokenCursor<'_>) -> Result<Kind, SqlError> {
    let mut names = Vec::new();
    if !cursor.take_words(&["ALL"]) {
        loop {
            names.push(setting_name(cursor)?);
            if !cursor.take_sign(",") {
                break;
            }
        }
    }
    let deferred = cursor.take_words(&["DEFERRED"]);
    if !deferred && !cursor.take_words(&["IMMEDIATE"]) {
        return cursor.expected("DEFERRED or IMMEDIATE");
    }
    Ok(Kind::SetConstraints { names, deferred })
}

/// What SET TIME ZONE has beside what other settings have: LOCAL and intervals.
fn time_zone(cursor: &mut TokenCursor<'_>) -> Result<Option<String>, SqlError> {
    if cursor.take_words(&["LOCAL"]) {
        return Ok(None);
    }
    if !cursor.take_words(&["INTERVAL"]) {
        return value(cursor, "timezone");
    }
    let Some(interval) = cursor.string()? else {
        return cursor.expected("an interval");
    };
    if cursor.take_words(&["HOUR"]) && cursor.take_words(&["TO"]) && !cursor.take_words(&["MINUTE"]) {
        return cursor.expected("MINUTE");
    }
    Ok(Some(format!("INTERVAL '{interval}'")))
}

fn setting_name(cursor: &mut TokenCursor<'_>) -> Result<String, SqlError> {
    let mut name = cursor.name("the name of a setting")?;
    while cursor.take_sign(".") {
        name.push('.');
        name.push_str(&cursor.name("the rest of the setting's name")?);
    }
    Ok(name)
}

/// Words, numbers and strings, for a setting that is a list several of them; `None` for DEFAULT.
fn value(cursor: &mut TokenCursor<'_>, name: &str) -> Result<Option<String>, SqlError> {
    if cursor.take_words(&["DEFAULT"]) {
        return Ok(None);
    }
    let mut values = Vec::new();
    loop {
        if let Some(text) = cursor.string()? {
            values.push(text);
        } else {
            let sign = if cursor.take_sign("-") {
                "-"
            } else {
                cursor.take_sign("+");
                ""
            };
            match cursor.peek() {
                Some(token) if token.kind == TokenKind::Number => {
                    values.push(format!("{sign}{}", token.text(cursor.source)));
                    cursor.next();
                }
                Some(token) if matches!(token.kind, TokenKind::Word | TokenKind::QuotedName) && sign.is_empty() => {
                    values.push(cursor.name("a value")?);
                }
                _ => return cursor.expected("a value"),
            }
        }
        if !cursor.take_sign(",") {
            break;
        }
    }
    let is_list = name.eq_ignore_ascii_case("search_path") || name.eq_ignore_ascii_case("datestyle");
    if values.len() > 1 && !is_list {
        return Err(SqlError::Fault {
            sqlstate: "22023",
            message: format!("SET {name} takes only one argument"),
            detail: None,
            hint: None,
            position: None,
        });
    }
    if name.eq_ignore_ascii_case("search_path") {
        for value in &mut values {
            *value = quoted_name(value);
        }
    }
    Ok(Some(values.join(", ")))
}

/// A name as PostgreSQL shows it in a list: quoted unless it needs no quotes.
fn quoted_name(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn show(cursor: &mut TokenCursor<'_>) -> Result<String, SqlError> {
    if cursor.take_words(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        return Ok("transaction_isolation".to_owned());
    }
    if cursor.take_words(&["TIME", "ZONE"]) {
        return Ok("timezone".to_owned());
    }
    if cursor.take_words(&["SESSION", "AUTHORIZATION"]) {
        return Ok("session_authorization".to_owned());
    }
    setting_name(cursor)
}

fn discard(cursor: &mut TokenCursor<'_>) -> Result<(Kind, Tag), SqlError> {
    let word = cursor.peek_word();
    let tag = match word.as_str() {
        "ALL" => "DISCARD ALL",
        "PLANS" => "DISCARD PLANS",
        "SEQUENCES" => "DISCARD SEQUENCES",
        "TEMP" | "TEMPORARY" => "DISCARD TEMP",
        _ => return cursor.expected("ALL, PLANS, SEQUENCES or TEMP"),
    };
    cursor.next();
    cursor.end()?;
    let all = word == "ALL";
    let sequences = all || word == "SEQUENCES";
    Ok((Kind::Discard { all, sequences }, Tag::Words(tag.into())))
}
