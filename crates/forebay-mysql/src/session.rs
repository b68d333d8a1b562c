//! Session: what every connection is set up with.

use forebay_remote::settings::Settings;

/// What is said to a new connection, and to one that was reset.
pub(super) fn setup(settings: &Settings) -> String {
    let seconds = settings.lock_timeout.as_secs().max(1);
    // Times of the type TIMESTAMP are UTC, whatever zone the server is in. A commit ends a transaction and begins none, and
    // `id IS NULL` asks for NULLs, whatever the server's defaults are.
    format!(
        "SET SESSION time_zone = '+00:00', innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}, \
         autocommit = 1, completion_type = 'NO_CHAIN', sql_auto_is_null = 0"
    )
}
