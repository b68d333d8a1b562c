//! A session's settings: what SET takes, what SHOW tells, what is reported to the client when it changes.
//!
//! A setting is taken only if the server does what it says; those that PostgreSQL's drivers and tools set at every connect
//! and that mean nothing here are taken and remembered. Anything else is an error that names it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::wire::error::WireError;

/// The PostgreSQL version whose protocol and catalog are spoken.
pub const SERVER_VERSION: &str = concat!("15.0 (Forebay ", env!("CARGO_PKG_VERSION"), ")");

/// The longest name and value together. Settings are copied at the start of every transaction.
const SETTING_BYTES_MAX: usize = 4 * 1024;
/// The most settings of a session's own.
const CUSTOM_MAX: usize = 1_000;

/// How a setting may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// By nobody.
    Fixed,
    /// To one of these words only, any case: the server knows nothing else.
    Only(&'static [&'static str]),
    /// To anything; it means nothing here, or is the client's own.
    Free,
    /// To a duration.
    Duration,
    /// To a truth value.
    Boolean,
}

struct Setting {
    name: &'static str,
    /// As PostgreSQL writes it.
    spelled: &'static str,
    default: &'static str,
    rule: Rule,
    /// Reported to the client at the start and when it changes.
    reported: bool,
}

const fn setting(name: &'static str, default: &'static str, rule: Rule) -> Setting {
    Setting {
        name,
        spelled: name,
        default,
        rule,
        reported: false,
    }
}

const fn reported(name: &'static str, spelled: &'static str, default: &'static str, rule: Rule) -> Setting {
    Setting {
        name,
        spelled,
        default,
        rule,
        reported: true,
    }
}

const UTF8: Rule = Rule::Only(&["utf8", "utf-8", "unicode"]);

const SETTINGS: &[Setting] = &[
    reported("application_name", "application_name", "", Rule::Free),
    setting("bytea_output", "hex", Rule::Only(&["hex"])),
    setting("client_min_messages", "notice", Rule::Free),
    reported("client_encoding", "client_encoding", "UTF8", UTF8),
    reported(
        "datestyle",
        "DateStyle",
        "ISO, MDY",
        Rule::Only(&["iso", "iso, mdy", "iso,mdy", "iso, dmy", "iso, ymd"]),
    ),
    setting("default_transaction_deferrable", "off", Rule::Boolean),
    setting(
        "default_transaction_isolation",
        "read committed",
        Rule::Only(&["read committed", "read uncommitted", "repeatable read", "serializable"]),
    ),
    reported(
        "default_transaction_read_only",
        "default_transaction_read_only",
        "off",
        Rule::Boolean,
    ),
    setting("extra_float_digits", "1", Rule::Free),
    setting("idle_in_transaction_session_timeout", "0", Rule::Duration),
    reported("in_hot_standby", "in_hot_standby", "off", Rule::Fixed),
    reported("integer_datetimes", "integer_datetimes", "on", Rule::Fixed),
    reported("intervalstyle", "IntervalStyle", "postgres", Rule::Only(&["postgres"])),
    reported("is_superuser", "is_superuser", "on", Rule::Fixed),
    setting("jit", "off", Rule::Free),
    setting("lc_collate", "C", Rule::Fixed),
    setting("lc_ctype", "C.UTF-8", Rule::Fixed),
    setting("lc_messages", "C", Rule::Free),
    setting("lc_monetary", "C", Rule::Free),
    setting("lc_numeric", "C", Rule::Free),
    setting("lc_time", "C", Rule::Free),
    setting("lock_timeout", "0", Rule::Duration),
    setting("max_identifier_length", "63", Rule::Fixed),
    setting("max_index_keys", "32", Rule::Fixed),
    setting("row_security", "on", Rule::Free),
    setting("search_path", "\"$user\", public", Rule::Free),
    reported("server_encoding", "server_encoding", "UTF8", Rule::Fixed),
    reported("server_version", "server_version", SERVER_VERSION, Rule::Fixed),
    setting("server_version_num", "150000", Rule::Fixed),
    reported("session_authorization", "session_authorization", "", Rule::Fixed),
    reported(
        "standard_conforming_strings",
        "standard_conforming_strings",
        "on",
        Rule::Only(&["on", "true", "yes", "1"]),
    ),
    setting("statement_timeout", "0", Rule::Duration),
    setting(
        "synchronous_commit",
        "on",
        Rule::Only(&["on", "local", "remote_write", "remote_apply", "true"]),
    ),
    reported(
        "timezone",
        "TimeZone",
        "UTC",
        Rule::Only(&[
            "utc", "gmt", "etc/utc", "etc/gmt", "zulu", "z", "0", "+00", "+00:00", "default",
        ]),
    ),
    setting("transaction_deferrable", "off", Rule::Boolean),
    setting("xmloption", "content", Rule::Free),
];

/// The settings of one session. A transaction that is rolled back puts the copy it took at its start back.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Those that differ from the default, by name in lower case.
    changed: BTreeMap<&'static str, String>,
    /// Those with a dot in their name: anybody's own.
    custom: BTreeMap<String, String>,
    user: String,
}

fn find(name: &str) -> Option<&'static Setting> {
    // `SET TIME ZONE` and `SET NAMES` are understood by the SQL front end.
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

impl Settings {
    /// The defaults, for that user.
    pub fn new(user: &str) -> Self {
        Self {
            user: user.to_owned(),
            ..Self::default()
        }
    }

    /// The value, or nothing if there is no such setting.
    pub fn value(&self, name: &str) -> Option<String> {
        if let Some(custom) = self.custom.get(&name.to_ascii_lowercase()) {
            return Some(custom.clone());
        }
        let setting = find(name)?;
        if setting.name == "session_authorization" {
            return Some(self.user.clone());
        }
        Some(
            self.changed
                .get(setting.name)
                .cloned()
                .unwrap_or_else(|| setting.default.to_owned()),
        )
    }

    /// Sets it; tells the name and value to report to the client, if it is one that is reported.
    ///
    /// # Errors
    /// 42704 for one that does not exist, 55P02 for one that cannot be changed, 0A000 or 22023 for a value not taken.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<Option<(&'static str, String)>, WireError> {
        if name.len() + value.map_or(0, str::len) > SETTING_BYTES_MAX {
            let message = format!("a parameter and its value have at most {SETTING_BYTES_MAX} bytes");
            return Err(WireError::new("22023", message));
        }
        let Some(setting) = find(name) else {
            if !name.contains('.') {
                return Err(unknown(name));
            }
            if value.is_some()
                && self.custom.len() >= CUSTOM_MAX
                && !self.custom.contains_key(&name.to_ascii_lowercase())
            {
                let message = format!("a session has at most {CUSTOM_MAX} parameters of its own");
                return Err(WireError::new("53400", message));
            }
            match value {
                Some(value) => self.custom.insert(name.to_ascii_lowercase(), value.to_owned()),
                None => self.custom.remove(&name.to_ascii_lowercase()),
            };
            return Ok(None);
        };
        let value = value.unwrap_or(setting.default).trim();
        let invalid = || {
            let message = format!("invalid value for parameter \"{}\": \"{value}\"", setting.spelled);
            WireError::new("22023", message)
        };
        let taken = match setting.rule {
            Rule::Fixed if value == setting.default => setting.default.to_owned(),
            Rule::Fixed => {
                let message = format!("parameter \"{}\" cannot be changed", setting.spelled);
                return Err(WireError::new("55P02", message));
            }
            Rule::Free => value.to_owned(),
            Rule::Only(words) if words.iter().any(|word| word.eq_ignore_ascii_case(value)) => {
                if setting.name == "default_transaction_isolation" {
                    value.to_ascii_lowercase()
                } else {
                    // Other words for what it always is.
                    setting.default.to_owned()
                }
            }
            Rule::Only(_) if value == setting.default => setting.default.to_owned(),
            Rule::Only(_) => {
                let message = format!(
                    "{} = {value} is not supported: it is always {}",
                    setting.spelled, setting.default
                );
                return Err(WireError::unsupported(message));
            }
            Rule::Duration => {
                duration(value).ok_or_else(invalid)?;
                value.to_owned()
            }
            Rule::Boolean => if boolean(value).ok_or_else(invalid)? {
                "on"
            } else {
                "off"
            }
            .to_owned(),
        };
        let report = setting.reported.then(|| (setting.spelled, taken.clone()));
        if taken == setting.default {
            self.changed.remove(setting.name);
        } else {
            self.changed.insert(setting.name, taken);
        }
        Ok(report)
    }

    /// Puts every setting back.
    pub fn reset_all(&mut self) {
        self.changed.clear();
        self.custom.clear();
    }

    /// What is reported to the client: all at the start.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS.iter().filter(|setting| setting.reported).map(|setting| {
            (
                setting.spelled,
                self.value(setting.name).expect("the setting is in the table"),
            )
        })
    }

    /// All of them with their values, for SHOW ALL.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        SETTINGS.iter().map(|setting| {
            (
                setting.spelled,
                self.value(setting.name).expect("the setting is in the table"),
            )
        })
    }

    /// The session's own limit on a statement's time, if it set one.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let value = self.changed.get("statement_timeout")?;
        duration(value).filter(|timeout| !timeout.is_zero())
    }

    /// Whether transactions read only unless they say otherwise.
    pub fn read_only(&self) -> bool {
        self.changed.contains_key("default_transaction_read_only")
    }
}

/// 42704: no such setting.
pub fn unknown(name: &str) -> WireError {
    WireError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

/// `250`, `250ms`, `5s`, `1min`, `2h`, `1d`; bare numbers are milliseconds.
fn duration(value: &str) -> Option<Duration> {
    let value = value.trim();
    let digits = value
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(value.len());
    let number: u64 = value[..digits].parse().ok()?;
    let millis_each = match value[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // As PostgreSQL: at most what an int4 of milliseconds holds.
    let millis = number.checked_mul(millis_each)?;
    (millis <= i32::MAX as u64).then(|| Duration::from_millis(millis))
}

fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "t" | "yes" | "y" | "1" => Some(true),
        "off" | "false" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_does_not_do_is_refused() {
        let mut settings = Settings::new("ann");
        assert_eq!(
            settings.set("client_encoding", Some("LATIN1")).unwrap_err().sqlstate,
            "0A000"
        );
        assert_eq!(
            settings.set("TimeZone", Some("Europe/Berlin")).unwrap_err().sqlstate,
            "0A000"
        );
        assert_eq!(settings.set("server_version", Some("9")).unwrap_err().sqlstate, "55P02");
        assert_eq!(settings.set("no_such_thing", Some("1")).unwrap_err().sqlstate, "42704");
        assert_eq!(
            settings.set("statement_timeout", Some("soon")).unwrap_err().sqlstate,
            "22023"
        );
    }

    #[test]
    fn what_is_set_is_shown_and_reset() {
        let mut settings = Settings::new("ann");
        assert_eq!(
            settings.set("Application_Name", Some("x")).unwrap(),
            Some(("application_name", "x".to_owned()))
        );
        settings.set("statement_timeout", Some("5s")).unwrap();
        settings.set("my.own", Some("7")).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(5)));
        assert_eq!(settings.value("my.own").as_deref(), Some("7"));
        assert_eq!(settings.value("session_authorization").as_deref(), Some("ann"));
        settings.set("statement_timeout", None).unwrap();
        assert_eq!(settings.statement_timeout(), None);
        settings.reset_all();
        assert_eq!(settings.value("application_name").as_deref(), Some(""));
        assert_eq!(settings.value("my.own"), None);
    }

    #[test]
    fn other_words_for_the_same_are_taken() {
        let mut settings = Settings::new("ann");
        for (name, value) in [
            ("client_encoding", "utf-8"),
            ("timezone", "Etc/UTC"),
            ("DateStyle", "iso"),
        ] {
            settings.set(name, Some(value)).unwrap();
        }
        assert_eq!(settings.value("TimeZone").as_deref(), Some("UTC"));
        assert!(settings.changed.is_empty());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2min"), Some(Duration::from_secs(120)));
        assert_eq!(duration("1 h"), Some(Duration::from_secs(3600)));
        assert_eq!(duration("-1"), None);
        assert_eq!(duration("99999999999999999999"), None);
    }
}
