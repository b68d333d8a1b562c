//! Reading: by which settings a server connection reads what is prepared on it now.
//!
//! Promises: what is [in force](InForce) is either what the session has set, which is known, or was asked for since it may have been set last, or is not known. The
//! texts [that set them](Reading::set) hold for no longer than the transaction, and set nothing else. Knows no message.

use std::fmt::Write;

use forebay_sql::READING;

use crate::settings::{Settings, quoted_text};

/// All of them, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reading(Settings);

/// What is in force on a server connection.
#[derive(Debug, Default)]
pub(crate) enum InForce {
    /// What the session has set, and is known of it.
    #[default]
    Settled,
    /// A text may have set something since.
    Moved,
    /// That is asked at this place.
    Asked(u64),
    /// The same, answered.
    Known(Reading),
}

impl InForce {
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self, Self::Settled)
    }
}

/// Whether it is the one that is asked for last.
pub(crate) fn is_last(name: &str) -> bool {
    READING.last() == Some(&name)
}

/// Asks for each of them, by its name: a row of one column. What only shows is anybody's right, and takes no snapshot for the transaction.
pub(crate) fn ask() -> impl Iterator<Item = (&'static str, String)> {
    READING.into_iter().map(|name| (name, format!("SHOW {name}")))
}

fn is_one_of_them() -> String {
    let names: Vec<_> = READING.map(quoted_text).into();
    format!("name OPERATOR(pg_catalog.=) ANY (ARRAY[{}])", names.join(","))
}

/// The text that sets those that are among these settings as they are there, and the others as a new session has them.
pub(crate) fn set(settings: &Settings) -> String {
    let mut text = "SELECT pg_catalog.set_config(name, CASE".to_owned();
    for (name, value) in READING.iter().filter_map(|name| Some((name, settings.get(name)?))) {
        let (name, value) = (quoted_text(name), quoted_text(value));
        let _ = write!(text, " WHEN name OPERATOR(pg_catalog.=) {name} THEN {value}");
    }
    let _ = write!(
        text,
        " WHEN false THEN '' ELSE reset_val END, true) FROM pg_catalog.pg_settings WHERE {}",
        is_one_of_them()
    );
    text
}

/// Whether texts are read alike under both.
pub(crate) fn are_alike(one: &Settings, other: &Settings) -> bool {
    READING.iter().all(|name| one.get(name) == other.get(name))
}

impl Reading {
    pub(crate) fn of(settings: Settings) -> Self {
        Self(settings)
    }

    /// Those of them that are among what is set.
    fn among(settings: &Settings) -> Self {
        let mut own = Settings::default();
        for (name, value) in READING.iter().filter_map(|name| Some((name, settings.get(name)?))) {
            own.set(name, value);
        }
        Self(own)
    }

    /// The one that is in force where the session has set these; none where that is not known.
    pub(crate) fn now(settings: &Settings, in_force: &InForce) -> Option<Self> {
        match in_force {
            InForce::Settled => Some(Self::among(settings)),
            InForce::Known(now) => Some(now.clone()),
            InForce::Moved | InForce::Asked(_) => None,
        }
    }

    /// The text that sets them.
    pub(crate) fn set(&self) -> String {
        set(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_as_in_a_new_session() {
        let mut settings = Settings::default();
        settings.set("TimeZone", "a'b");
        settings.set("work_mem", "4MB");
        let text = set(&settings);
        assert!(text.starts_with(
            "SELECT pg_catalog.set_config(name, CASE WHEN name OPERATOR(pg_catalog.=) 'TimeZone' THEN 'a''b' WHEN false THEN '' ELSE reset_val END, true) FROM"
        ));
        assert!(!text.contains("work_mem"));
        let mut other = settings.clone();
        other.set("work_mem", "8MB");
        assert!(are_alike(&settings, &other));
        other.set("DateStyle", "ISO, DMY");
        assert!(!are_alike(&settings, &other));
    }
}
