//! Server error: what an ErrorResponse or a NoticeResponse says.
//!
//! Promises: each field as the server sent it, fields that are not known here are left out. Does not know what follows from
//! an error.

use crate::message::{Malformed, Message, Reader};

/// How severe it is. Only after the last two does the server hang up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// DEBUG, LOG, INFO, NOTICE or WARNING: nothing has failed.
    Notice,
    /// The statement failed.
    Error,
    /// The session ends.
    Fatal,
    /// All sessions end.
    Panic,
}

/// An error, or a notice, of the server's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
pub struct ServerError {
    /// None from servers older than 9.6, whose words for it are in their own language.
    pub severity: Option<Severity>,
    /// The SQLSTATE: five characters.
    pub code: String,
    /// What happened, in one line.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
    /// Where in a statement of the server's own making, [which it names](Self::internal_query).
    pub internal_position: Option<u32>,
    /// The statement that the server had made.
    pub internal_query: Option<String>,
    /// What was called when it happened.
    pub context: Option<String>,
    /// The schema of the object that it is about.
    pub schema: Option<String>,
    /// The table.
    pub table: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The type.
    pub data_type: Option<String>,
    /// The constraint.
    pub constraint: Option<String>,
    /// The function of the server's source that reported it.
    pub routine: Option<String>,
}

impl ServerError {
    /// What an ErrorResponse or a NoticeResponse says. Text that is not UTF-8, as before the session's encoding is agreed on, has
    /// replacement characters.
    ///
    /// # Errors
    /// [`Malformed`]; also if it has no code or no message.
    pub fn read(message: &Message<'_>) -> Result<Self, Malformed> {
        let mut reader = Reader(message.body());
        let mut severity = None;
        let [
            mut code,
            mut text,
            mut detail,
            mut hint,
            mut internal_query,
            mut context,
        ] = [const { None }; 6];
        let [
            mut schema,
            mut table,
            mut column,
            mut data_type,
            mut constraint,
            mut routine,
        ] = [const { None }; 6];
        let (mut position, mut internal_position) = (None, None);
        loop {
            let field = reader.u8()?;
            if field == 0 {
                break;
            }
            let value = String::from_utf8_lossy(reader.zero_terminated()?).into_owned();
            match field {
                b'V' => severity = severity_of(&value),
                b'C' => code = Some(value),
                b'M' => text = Some(value),
                b'D' => detail = Some(value),
                b'H' => hint = Some(value),
                b'P' => position = value.parse().ok(),
                b'p' => internal_position = value.parse().ok(),
                b'q' => internal_query = Some(value),
                b'W' => context = Some(value),
                b's' => schema = Some(value),
                b't' => table = Some(value),
                b'c' => column = Some(value),
                b'd' => data_type = Some(value),
                b'n' => constraint = Some(value),
                b'R' => routine = Some(value),
                _ => {}
            }
        }
        reader.end()?;
        Ok(Self {
            severity,
            code: code.ok_or(Malformed)?,
            message: text.ok_or(Malformed)?,
            detail,
            hint,
            position,
            internal_position,
            internal_query,
            context,
            schema,
            table,
            column,
            data_type,
            constraint,
            routine,
        })
    }

    /// Whether the server hangs up after it.
    pub fn ends_the_session(&self) -> bool {
        match self.severity {
            Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
            None => {
                let ends = ["57P01", "57P02", "57P03", "57P04", "57P05", "53300"];
                self.code.starts_with("08") || ends.contains(&self.code.as_str())
            }
        }
    }
}

fn severity_of(word: &str) -> Option<Severity> {
    Some(match word {
        "ERROR" => Severity::Error,
        "FATAL" => Severity::Fatal,
        "PANIC" => Severity::Panic,
        "WARNING" | "NOTICE" | "DEBUG" | "INFO" | "LOG" => Severity::Notice,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<ServerError, Malformed> {
        let length = u32::try_from(body.len() + 4).unwrap();
        ServerError::read(&Message::whole(&[b"E", &length.to_be_bytes()[..], body].concat()))
    }

    #[test]
    fn fields_are_told_as_they_came() {
        let body = b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0DKey (id)=(1) already exists.\0P8\0sapp\0tusers\0nusers_pkey\0R_bt_check_unique\0xnobody knows\0\0";
        let error = read(body).unwrap();
        assert_eq!(error.severity, Some(Severity::Error));
        assert_eq!((&*error.code, &*error.message), ("23505", "duplicate key"));
        assert_eq!(error.detail.as_deref(), Some("Key (id)=(1) already exists."));
        assert_eq!(error.position, Some(8));
        assert_eq!(error.constraint.as_deref(), Some("users_pkey"));
        assert_eq!(error.routine.as_deref(), Some("_bt_check_unique"));
        assert!(!error.ends_the_session());
        for cut in 0..body.len() - 1 {
            assert_eq!(read(&body[..cut]), Err(Malformed), "cut at {cut}");
        }
    }

    #[test]
    fn what_ends_the_session_is_known_by_severity_or_without_one_by_code() {
        let ends = |body: &[u8]| read(body).unwrap().ends_the_session();
        assert!(ends(b"VFATAL\0C28P01\0Mno\0\0"));
        assert!(ends(b"VPANIC\0CXX000\0Mno\0\0"));
        assert!(!ends(b"VERROR\0C57P01\0Mraised by a function\0\0"));
        assert!(ends(b"C57P01\0Mno\0\0"));
        assert!(!ends(b"C23505\0Mno\0\0"));
    }
}
