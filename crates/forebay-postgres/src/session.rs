//! Session: what every connection is set up with.

use std::time::Duration;

use forebay_remote::settings::Settings;

/// What is said to a new connection, and to one that was reset.
pub(super) fn setup(settings: &Settings) -> String {
    format!("SET lock_timeout = {}", milliseconds(settings.lock_timeout))
}

/// A time as the server's timeouts take it: 0 would be for ever, and what is longer than it can count is refused.
pub(super) fn milliseconds(time: Duration) -> u32 {
    let most = i32::MAX.unsigned_abs();
    u32::try_from(time.as_millis()).unwrap_or(most).clamp(1, most)
}
