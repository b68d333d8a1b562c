//! A session's settings: what SET takes, what SHOW tells, what is reported to the client when it changes.
//!
//! A setting is taken only if the server does what it says; those that PostgreSQL's drivers and tools set at every connect
//! and that mean nothing here are taken and remembered. Anything else is an error that names it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::setting_values::{boolean, date_style, encoding, millis, read_duration, write_duration, zone_name};
use crate::sql;
use forebay_pg_wire::error::WireError;

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
    /// To the first of these words only, any case, for the server knows nothing else; PostgreSQL knows the others too.
    Always(&'static [&'static str]),
    /// To one of these words, any case.
    OneOf(&'static [&'static str]),
    /// To anything; it means nothing here, or is the client's own.
    Free,
    /// To a duration.
    Duration,
    /// To a truth value.
    Boolean,
    /// To true.
    AlwaysTrue,
    /// UTF-8 by any of its names.
    Encoding,
    /// ISO, whatever the order of day and month, which only matters to dates that are written otherwise.
    DateStyle,
    /// A time zone.
    Zone,
    /// How many digits floats have beyond those that are always right: more than none give the shortest that is exact.
    FloatDigits,
    /// The user, for there is no acting as another.
    Oneself,
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

const ISOLATION: Rule = Rule::OneOf(&["serializable", "repeatable read", "read committed", "read uncommitted"]);
const LEVELS: Rule = Rule::OneOf(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error",
]);

const SETTINGS: &[Setting] = &[
    reported("application_name", "application_name", "", Rule::Free),
    setting("bytea_output", "hex", Rule::Always(&["hex", "escape"])),
    setting("check_function_bodies", "on", Rule::Boolean),
    setting("client_min_messages", "notice", LEVELS),
    reported("client_encoding", "client_encoding", "UTF8", Rule::Encoding),
    reported("datestyle", "DateStyle", "ISO, MDY", Rule::DateStyle),
    setting("default_table_access_method", "heap", Rule::Free),
    setting("default_tablespace", "", Rule::Free),
    setting("default_transaction_deferrable", "off", Rule::Boolean),
    setting("default_transaction_isolation", "read committed", ISOLATION),
    reported(
        "default_transaction_read_only",
        "default_transaction_read_only",
        "off",
        Rule::Boolean,
    ),
    setting("enable_hashjoin", "on", Rule::Boolean),
    setting("enable_indexonlyscan", "on", Rule::Boolean),
    setting("enable_indexscan", "on", Rule::Boolean),
    setting("enable_mergejoin", "on", Rule::Boolean),
    setting("enable_nestloop", "on", Rule::Boolean),
    setting("enable_seqscan", "on", Rule::Boolean),
    setting("extra_float_digits", "1", Rule::FloatDigits),
    setting("idle_in_transaction_session_timeout", "0", Rule::Duration),
    reported("in_hot_standby", "in_hot_standby", "off", Rule::Fixed),
    reported("integer_datetimes", "integer_datetimes", "on", Rule::Fixed),
    reported(
        "intervalstyle",
        "IntervalStyle",
        "postgres",
        Rule::Always(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
    ),
    reported("is_superuser", "is_superuser", "on", Rule::Fixed),
    setting("jit", "off", Rule::Boolean),
    setting("lc_collate", "C", Rule::Fixed),
    setting("lc_ctype", "C.UTF-8", Rule::Fixed),
    setting("lc_messages", "C", Rule::Free),
    setting("lc_monetary", "C", Rule::Free),
    setting("lc_numeric", "C", Rule::Free),
    setting("lc_time", "C", Rule::Free),
    setting("lock_timeout", "0", Rule::Duration),
    setting("maintenance_work_mem", "64MB", Rule::Free),
    setting("max_identifier_length", "63", Rule::Fixed),
    setting("max_index_keys", "32", Rule::Fixed),
    setting(
        "plan_cache_mode",
        "auto",
        Rule::OneOf(&["auto", "force_generic_plan", "force_custom_plan"]),
    ),
    setting("quote_all_identifiers", "off", Rule::Boolean),
    setting("role", "none", Rule::Oneself),
    setting("row_security", "on", Rule::Boolean),
    setting("search_path", "\"$user\", public", Rule::Free),
    reported("server_encoding", "server_encoding", "UTF8", Rule::Fixed),
    reported("server_version", "server_version", SERVER_VERSION, Rule::Fixed),
    setting("server_version_num", "150000", Rule::Fixed),
    reported("session_authorization", "session_authorization", "", Rule::Oneself),
    reported(
        "standard_conforming_strings",
        "standard_conforming_strings",
        "on",
        Rule::AlwaysTrue,
    ),
    setting("statement_timeout", "0", Rule::Duration),
    setting(
        "synchronous_commit",
        "on",
        Rule::Always(&["on", "local", "remote_write", "remote_apply", "true", "off", "false"]),
    ),
    reported("timezone", "TimeZone", "UTC", Rule::Zone),
    setting("transaction_deferrable", "off", Rule::Boolean),
    setting("work_mem", "4MB", Rule::Free),
    setting("xmloption", "content", Rule::OneOf(&["content", "document"])),
];

/// The settings of one session. A transaction that is rolled back puts the copy it took at its start back.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Those that differ from the default, by name in lower case.
    changed: BTreeMap<&'static str, String>,
    /// Those with a dot in their name: anybody's own. Shared, for each savepoint keeps a copy.
    custom: Arc<BTreeMap<String, String>>,
    user: String,
    /// What `timezone` names, if it is not the default.
    zone: Option<TimeZone>,
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

    /// Whose session it is.
    pub(super) fn user(&self) -> &str {
        &self.user
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
                Some(value) => Arc::make_mut(&mut self.custom).insert(name.to_ascii_lowercase(), value.to_owned()),
                None => Arc::make_mut(&mut self.custom).remove(&name.to_ascii_lowercase()),
            };
            return Ok(None);
        };
        let taken = match value {
            None => setting.default.to_owned(),
            Some(value) => self.taken(setting, value)?,
        };
        let report = setting.reported.then(|| {
            let told = if setting.rule == Rule::Oneself {
                &self.user
            } else {
                &taken
            };
            (setting.spelled, told.clone())
        });
        if setting.rule == Rule::Zone {
            self.zone = (taken != setting.default).then(|| sql::zone(&taken));
        }
        if taken == setting.default {
            self.changed.remove(setting.name);
        } else {
            self.changed.insert(setting.name, taken);
        }
        Ok(report)
    }

    /// A value as it is kept and shown.
    fn taken(&self, setting: &Setting, value: &str) -> Result<String, WireError> {
        let spelled = setting.spelled;
        let invalid = || {
            WireError::new(
                "22023",
                format!("invalid value for parameter \"{spelled}\": \"{value}\""),
            )
        };
        let always = || {
            let always = setting.default;
            WireError::unsupported(format!("{spelled} = {value} is not supported: it is always {always}"))
        };
        let available = |words: &[&str]| {
            let name = setting.name;
            WireError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""))
                .with_hint(format!("Available values: {}.", words.join(", ")))
        };
        let truth = || {
            boolean(value)
                .ok_or_else(|| WireError::new("22023", format!("parameter \"{spelled}\" requires a Boolean value")))
        };
        Ok(match setting.rule {
            Rule::Fixed if value == setting.default => setting.default.to_owned(),
            Rule::Fixed => {
                let message = format!("parameter \"{spelled}\" cannot be changed");
                return Err(WireError::new("55P02", message));
            }
            Rule::Free => value.to_owned(),
            Rule::Always(words) => match words.iter().position(|word| word.eq_ignore_ascii_case(value)) {
                // To commit durably is more than is asked for.
                Some(0) => setting.default.to_owned(),
                Some(_) if setting.name == "synchronous_commit" && boolean(value) != Some(false) => {
                    setting.default.to_owned()
                }
                Some(_) => return Err(always()),
                None => return Err(available(words)),
            },
            Rule::OneOf(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(value)) {
                Some(word) => (*word).to_owned(),
                None => return Err(available(words)),
            },
            Rule::Duration => write_duration(read_duration(setting.name, value)?),
            Rule::Boolean => if truth()? { "on" } else { "off" }.to_owned(),
            Rule::AlwaysTrue if truth()? => "on".to_owned(),
            Rule::AlwaysTrue => return Err(always()),
            Rule::Encoding => match encoding(value) {
                Some(true) => "UTF8".to_owned(),
                Some(false) => return Err(always()),
                None => return Err(invalid()),
            },
            Rule::DateStyle => {
                let now = self.changed.get(setting.name).map_or(setting.default, String::as_str);
                date_style(value, now).map_err(|word| match word {
                    Some(word) => invalid().with_detail(format!("Unrecognized key word: \"{word}\".")),
                    None => always(),
                })?
            }
            Rule::Zone => zone_name(value)?,
            Rule::FloatDigits => match value.trim().parse::<i32>() {
                Ok(digits @ 1..=3) => digits.to_string(),
                Ok(-15..=0) => {
                    return Err(WireError::unsupported(format!(
                        "{spelled} = {value} is not supported: floats are always exact, as 1 to 3 have them"
                    )));
                }
                Ok(_) => {
                    let message = format!("{value} is outside the valid range for parameter \"{spelled}\" (-15 .. 3)");
                    return Err(WireError::new("22023", message));
                }
                Err(_) => return Err(invalid()),
            },
            Rule::Oneself if value == self.user => value.to_owned(),
            Rule::Oneself if setting.name == "role" && value == "none" => value.to_owned(),
            Rule::Oneself => {
                return Err(WireError::unsupported(format!(
                    "{spelled} = {value} is not supported: nobody acts as another user"
                )));
            }
        })
    }

    /// Puts every setting back.
    pub fn reset_all(&mut self) {
        self.changed.clear();
        self.custom = Arc::default();
        self.zone = None;
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

    /// The name of the time zone.
    pub fn zone_name(&self) -> &str {
        self.changed.get("timezone").map_or("UTC", String::as_str)
    }

    /// `search_path`.
    pub fn search_path(&self) -> &str {
        self.changed
            .get("search_path")
            .map_or("\"$user\", public", String::as_str)
    }

    /// The time zone.
    pub fn zone(&self) -> TimeZone {
        self.zone.clone().unwrap_or(TimeZone::UTC)
    }

    /// The session's own limit on a statement's time, if it set one.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.duration("statement_timeout")
    }

    /// How long to wait for a lock, if the session set a bound.
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.duration("lock_timeout")
    }

    /// How long the client may leave a transaction idle, if the session set a bound.
    pub fn idle_in_transaction_session_timeout(&self) -> Option<Duration> {
        self.duration("idle_in_transaction_session_timeout")
    }

    fn duration(&self, name: &str) -> Option<Duration> {
        let millis = millis(self.changed.get(name)?).ok()?;
        (millis > 0.0).then(|| Duration::from_secs_f64(millis / 1_000.0))
    }

    /// Whether the client wants to be told what is less than a warning; and warnings.
    pub fn wants_notices(&self) -> (bool, bool) {
        match self.changed.get("client_min_messages").map(String::as_str) {
            Some("warning") => (false, true),
            Some("error") => (false, false),
            _ => (true, true),
        }
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
            settings.set("client_encoding", Some("foo")).unwrap_err().sqlstate,
            "22023"
        );
        assert_eq!(settings.set("TimeZone", Some("x")).unwrap_err().sqlstate, "22023");
        assert_eq!(settings.set("DateStyle", Some("German")).unwrap_err().sqlstate, "0A000");
        assert_eq!(settings.set("DateStyle", Some("foo")).unwrap_err().sqlstate, "22023");
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
            ("timezone", "etc/utc"),
            ("DateStyle", "iso"),
        ] {
            settings.set(name, Some(value)).unwrap();
        }
        assert_eq!(settings.value("TimeZone").as_deref(), Some("Etc/UTC"));
        assert_eq!(settings.changed.len(), 1);
    }
}
