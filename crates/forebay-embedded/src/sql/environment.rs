//! What a statement may ask about the session it runs in.
//!
//! Knows nothing of sessions: whoever has one answers.

/// See the module. The answers are put into the statement as literals when it is compiled, because SQLite's functions know no session.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// `current_user`, `session_user`, `user`.
    pub user: &'a str,
    /// `current_database()`, `current_catalog`.
    pub database: &'a str,
    /// `pg_backend_pid()`.
    pub pid: i32,
    /// `version()`.
    pub version: &'a str,
    /// `current_setting(name)`, by the name in lower case.
    pub settings: &'a dyn Fn(&str) -> Option<String>,
}
