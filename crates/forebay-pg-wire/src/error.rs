//! Errors as PostgreSQL's clients understand them: a severity, an SQLSTATE, a message, and what helps the reader further.
//!
//! Promises: what is encoded is always a well-formed ErrorResponse or NoticeResponse, whatever the message contains (a NUL byte
//! inside a text would end it early and break the frame, so it is replaced). Does not know which database error becomes which
//! SQLSTATE: whoever has that error decides.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::{BufMut, BytesMut};
use forebay_pg_values::ValueError;

/// The SQLSTATE codes that the wire layer itself uses; other layers may use any five characters of PostgreSQL's appendix A.
pub mod sqlstate {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    /// Everything went well; only for notices.
    pub const SUCCESSFUL_COMPLETION: &str = "00000";
    /// The message does not follow the protocol.
    pub const PROTOCOL_VIOLATION: &str = "08P01";
    /// What was asked for is not there (yet).
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// A number does not fit its type, or cannot be kept exactly.
    pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
    /// Text that is no date or time.
    pub const INVALID_DATETIME_FORMAT: &str = "22007";
    /// A date or time that exists, but not within the supported range.
    pub const DATETIME_FIELD_OVERFLOW: &str = "22008";
    /// Bytes that are not UTF-8, or text with a NUL inside.
    pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    /// A parameter of a request has a value it may not have.
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    /// Text that is no value of its type.
    pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
    /// Bytes that are no binary value of their type.
    pub const INVALID_BINARY_REPRESENTATION: &str = "22P03";
    /// The client may not connect this way.
    pub const INVALID_AUTHORIZATION: &str = "28000";
    /// User name or password are wrong.
    pub const INVALID_PASSWORD: &str = "28P01";
    /// Too many connections.
    pub const TOO_MANY_CONNECTIONS: &str = "53300";
    /// What the configuration allows is exceeded.
    pub const CONFIGURATION_LIMIT_EXCEEDED: &str = "53400";
    /// A limit of the server is exceeded.
    pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
    /// A query was cancelled, by request or by a timeout.
    pub const QUERY_CANCELED: &str = "57014";
    /// The server is shutting down.
    pub const ADMIN_SHUTDOWN: &str = "57P01";
    /// A defect of the server.
    pub const INTERNAL_ERROR: &str = "XX000";

    /// A code that another server has used, for as long as the process lives. There are some hundreds; what no server would say, or more
    /// of them than that, is [`INTERNAL_ERROR`].
    pub fn of_another_server(code: &str) -> &'static str {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(code) {
            return known;
        }
        let is_code = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_code || known.len() >= 1024 {
            return INTERNAL_ERROR;
        }
        let code: &'static str = Box::leak(code.into());
        known.insert(code);
        code
    }
}

/// How bad it is, and so what the client should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed; the connection lives on.
    Error,
    /// The connection ends after this.
    Fatal,
    /// Something to know; the statement goes on.
    Warning,
    /// Something to know; the statement goes on.
    Notice,
}

impl Severity {
    /// The word in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }
}

/// An error (or notice) for the client. Small to return: the fields live behind one pointer and are reached by dereferencing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError(Box<ErrorFields>);

/// The fields of a [`WireError`], named as in PostgreSQL's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorFields {
    /// How bad it is.
    pub severity: Severity,
    /// The five characters programs decide by.
    pub sqlstate: &'static str,
    /// One line for people.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement, in characters, counted from 1.
    pub position: Option<u32>,
    /// What was done when it happened.
    pub context: Option<String>,
    /// The schema that the error is about.
    pub schema: Option<String>,
    /// The table that the error is about.
    pub table: Option<String>,
    /// The column that the error is about.
    pub column: Option<String>,
    /// The constraint that was violated.
    pub constraint: Option<String>,
}

impl WireError {
    /// An error that fails the statement and leaves the connection usable.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        debug_assert_eq!(sqlstate.len(), 5, "an SQLSTATE has five characters");
        Self(Box::new(ErrorFields {
            severity: Severity::Error,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            constraint: None,
        }))
    }

    /// An error after which the server closes the connection.
    pub fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Self::new(sqlstate, message).with_severity(Severity::Fatal)
    }

    /// 08P01: the client does not follow the protocol.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(sqlstate::PROTOCOL_VIOLATION, message)
    }

    /// 0A000: asked for, not there.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
    }

    /// XX000: a defect of the server.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(sqlstate::INTERNAL_ERROR, message)
    }

    /// The same, with another severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The same, saying more.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same, saying what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With what was done when it happened, as PostgreSQL's CONTEXT has it.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> Self {
        self.0.context = Some(context.into());
        self
    }

    /// The same, pointing into the statement: characters, counted from 1.
    #[must_use]
    pub fn with_position(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }

    /// The same, naming the table, with its schema before it.
    #[must_use]
    pub fn with_table(mut self, (schema, table): (&str, &str)) -> Self {
        self.schema = Some(schema.to_owned());
        self.table = Some(table.to_owned());
        self
    }

    /// The same, naming the column.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// The same, naming the constraint.
    #[must_use]
    pub fn with_constraint(mut self, constraint: impl Into<String>) -> Self {
        self.constraint = Some(constraint.into());
        self
    }

    /// Whether the connection ends after this.
    pub fn is_fatal(&self) -> bool {
        self.severity == Severity::Fatal
    }

    /// Writes the message: NoticeResponse for warnings and notices, ErrorResponse otherwise.
    pub fn encode(&self, out: &mut BytesMut) {
        let kind = match self.severity {
            Severity::Error | Severity::Fatal => b'E',
            Severity::Warning | Severity::Notice => b'N',
        };
        out.put_u8(kind);
        let start = out.len();
        out.put_i32(0);
        let severity = self.severity.as_str();
        put_field(out, b'S', severity);
        put_field(out, b'V', severity);
        put_field(out, b'C', self.sqlstate);
        put_field(out, b'M', &self.message);
        let position = self.position.map(|position| position.to_string());
        let optional = [
            (b'D', &self.detail),
            (b'H', &self.hint),
            (b'P', &position),
            (b'W', &self.context),
            (b's', &self.schema),
            (b't', &self.table),
            (b'c', &self.column),
            (b'n', &self.constraint),
        ];
        for (code, text) in optional {
            if let Some(text) = text {
                put_field(out, code, text);
            }
        }
        out.put_u8(0);
        let length = i32::try_from(out.len() - start).expect("every text was shortened to FIELD_BYTES_MAX");
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// A message that quotes a huge statement or value helps nobody, and clients refuse huge messages.
const FIELD_BYTES_MAX: usize = 16 * 1024;

fn put_field(out: &mut BytesMut, code: u8, text: &str) {
    out.put_u8(code);
    let mut end = text.len().min(FIELD_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for byte in text[..end].bytes() {
        out.put_u8(if byte == 0 { b'?' } else { byte });
    }
    out.put_u8(0);
}

impl Deref for WireError {
    type Target = ErrorFields;

    fn deref(&self) -> &ErrorFields {
        &self.0
    }
}

impl DerefMut for WireError {
    fn deref_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: {} ({})",
            self.severity.as_str(),
            self.message,
            self.sqlstate
        )
    }
}

impl std::error::Error for WireError {}

/// An error of a value says already what PostgreSQL would have told.
impl From<ValueError> for WireError {
    fn from(error: ValueError) -> Self {
        let mut told = Self::new(error.sqlstate, error.message);
        (told.detail, told.hint) = (error.detail, error.hint);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_encoded_under_its_code() {
        let mut out = BytesMut::new();
        WireError::new("23505", "duplicate")
            .with_detail("d")
            .with_hint("h")
            .with_position(7)
            .with_table(("public", "t"))
            .with_column("c")
            .with_constraint("k")
            .encode(&mut out);
        let body = b"SERROR\0VERROR\0C23505\0Mduplicate\0Dd\0Hh\0P7\0spublic\0tt\0cc\0nk\0\0";
        let mut expected = vec![b'E'];
        expected.extend((body.len() as u32 + 4).to_be_bytes());
        expected.extend(body);
        assert_eq!(&out[..], &expected[..]);
    }

    #[test]
    fn notices_have_their_own_message() {
        let mut out = BytesMut::new();
        WireError::new("00000", "hi")
            .with_severity(Severity::Notice)
            .encode(&mut out);
        assert_eq!(out[0], b'N');
    }

    #[test]
    fn a_nul_in_a_text_cannot_break_the_frame() {
        let mut out = BytesMut::new();
        WireError::new("XX000", "a\0b").encode(&mut out);
        assert_eq!(&out[5..], b"SERROR\0VERROR\0CXX000\0Ma?b\0\0");
    }

    #[test]
    fn a_huge_text_is_shortened_at_a_character() {
        let mut out = BytesMut::new();
        WireError::new("XX000", format!("a{}", "é".repeat(FIELD_BYTES_MAX))).encode(&mut out);
        assert!(out.len() < FIELD_BYTES_MAX + 100);
        assert!(std::str::from_utf8(&out[5..]).is_ok());
    }

    #[test]
    fn it_is_one_pointer() {
        assert_eq!(size_of::<WireError>(), size_of::<usize>());
    }
}
