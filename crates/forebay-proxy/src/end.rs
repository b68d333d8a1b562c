//! End: why a session has ended, and the last words to its client.

use std::io;

use bytes::BytesMut;
use forebay_pg_link::{ConnectError, ServerError};
use forebay_pg_wire::error::{WireError, sqlstate};

use crate::clients::TooMany;
use crate::frames::{self, BadLength};
use crate::pool::Unavailable;
use crate::replies::Unexpected;

/// Why a session has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    #[error("the client has gone")]
    Client,
    #[error("terminating connection due to administrator command")]
    Stopped,
    #[error("the client broke the protocol: {0}")]
    Malformed(#[from] BadLength),
    #[error("a message of {length} bytes is longer than max_message_bytes, which is {max}")]
    TooLong { length: usize, max: usize },
    #[error("terminating connection due to idle-session timeout")]
    Idle,
    #[error("terminating connection due to idle-in-transaction timeout")]
    IdleInTransaction,
    #[error("the server did not end a statement that was cancelled for taking too long (statement_timeout)")]
    Unanswered,
    /// The client has been told why, in the server's own words.
    #[error("the server has ended the session")]
    LastWord,
    #[error("the server connection was lost: {0}")]
    Server(#[from] io::Error),
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    #[error("what the session had set could not be set again")]
    Settings,
    #[error("the role that has logged in is called otherwise by now, or is gone")]
    AnotherRole,
    #[error("a copy that had a Sync behind its beginning failed, and what is answered next cannot be told")]
    Uncertain,
    #[error("the connection ended while the statement was to commit; whether it took effect is not known")]
    Unknown,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// The last words to a client, where there are any.
pub(crate) fn last_word(end: &End) -> Option<WireError> {
    let code = match end {
        End::Client | End::LastWord => return None,
        End::Unavailable(error) => return Some(wire_error(error)),
        End::Server(_) | End::Unanswered => "08006",
        End::TooLong { .. } => sqlstate::PROGRAM_LIMIT_EXCEEDED,
        End::Malformed(_) | End::Unexpected(_) | End::Settings | End::Uncertain => sqlstate::PROTOCOL_VIOLATION,
        End::Idle => "57P05",
        End::IdleInTransaction => "25P03",
        End::Unknown => "08007",
        End::AnotherRole => sqlstate::INVALID_AUTHORIZATION,
        End::Stopped => sqlstate::ADMIN_SHUTDOWN,
    };
    Some(WireError::fatal(code, end.to_string()))
}

/// What a client is told that there is no connection for: of the server as the server itself said it.
pub(crate) fn wire_error(error: &Unavailable) -> WireError {
    match error {
        Unavailable::Connect(ConnectError::Server(said)) => as_said(said),
        Unavailable::Connect(ConnectError::Authentication(why)) => {
            WireError::fatal(sqlstate::INVALID_AUTHORIZATION, why.clone())
        }
        Unavailable::Connect(error @ ConnectError::NoPassword) => {
            WireError::fatal(sqlstate::INVALID_AUTHORIZATION, error.to_string())
        }
        Unavailable::Connect(error) => WireError::fatal("08006", error.to_string()),
        error => WireError::fatal("53300", error.to_string()),
    }
}

/// In the server's own words.
pub(crate) fn as_said(said: &ServerError) -> WireError {
    let mut error = WireError::fatal(sqlstate::of_another_server(&said.code), said.message.clone());
    error.detail.clone_from(&said.detail);
    error.hint.clone_from(&said.hint);
    error
}

/// As PostgreSQL says it of its own bounds.
pub(crate) fn too_many(too_many: TooMany, user: &str, database: &str) -> WireError {
    let (of, max) = match too_many {
        TooMany::OfUser(max) => (format!("role \"{user}\""), max),
        TooMany::OfDatabase(max) => (format!("database \"{database}\""), max),
    };
    WireError::fatal("53300", format!("too many connections for {of}"))
        .with_hint(format!("The proxy takes {max} of them (max_client_connections)."))
}

/// What somebody is told who has cancelled what others carry.
pub(crate) fn put_cancelled(out: &mut BytesMut) {
    put(
        out,
        "ERROR",
        "57014",
        "canceling statement due to user request",
        None,
        None,
    );
}

/// Why there is no session, or no more of it.
pub(crate) fn put_refusal(out: &mut BytesMut, error: &WireError) {
    let (detail, hint) = (error.detail.as_deref(), error.hint.as_deref());
    put(out, "FATAL", error.sqlstate, &error.message, detail, hint);
}

fn put(out: &mut BytesMut, severity: &str, code: &str, message: &str, detail: Option<&str>, hint: Option<&str>) {
    let mut body = Vec::new();
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(code)),
        (b'M', Some(message)),
        (b'D', detail),
        (b'H', hint),
    ];
    for (field, text) in fields {
        if let Some(text) = text {
            body.push(field);
            body.extend(text.bytes().filter(|&byte| byte != 0));
            body.push(0);
        }
    }
    body.push(0);
    frames::put(out, b'E', &[&body]);
}
