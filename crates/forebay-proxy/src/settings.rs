//! Settings: what a client has set in its session, to be set again wherever it runs next.
//!
//! Promises: the text that brings a connection from one map to another sets nothing else, whatever names and values contain.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The setting that says what may be set.
pub(crate) const ROLE: &str = "role";
/// The setting that ends what takes longer.
pub(crate) const STATEMENT_TIMEOUT: &str = "statement_timeout";
/// The setting that says how texts are written.
pub(crate) const CLIENT_ENCODING: &str = "client_encoding";

/// A text of ours that begins so waits for no snapshot, whatever transactions of its session are by default: one that is deferrable waits until no other may
/// disturb it.
pub(crate) const AT_ONCE: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, NOT DEFERRABLE;";

/// What is set, by name, as `pg_settings` shows it; what is of the user's own (`app.tenant`), in small letters: the server tells names apart by their letters alone.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    by_name: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let name = if name.contains('.') {
            name.to_ascii_lowercase()
        } else {
            name.to_owned()
        };
        self.by_name.insert(name, value.to_owned());
    }

    /// What one is set to.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// All, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The same, but for one.
    pub(crate) fn without(&self, name: &str) -> Self {
        let mut others = self.clone();
        others.by_name.remove(name);
        others
    }

    /// What the others say holds.
    pub(crate) fn extend(&mut self, others: &Self) {
        for (name, value) in &others.by_name {
            self.set(name, value);
        }
    }

    /// The statement that brings a connection on which `self` is set to `wanted`, and does this before, each ended by a semicolon; empty where there is nothing to do. Each
    /// of the two is as it is written in the `client_encoding` that it has, and the text is read by that of before.
    pub(crate) fn change_to(&self, wanted: &Self, before: &str) -> String {
        let mut text = String::new();
        if before.is_empty() && self == wanted {
            return text;
        }
        text.push_str(AT_ONCE);
        // All of it takes as long as it takes.
        if self.by_name.contains_key(STATEMENT_TIMEOUT) {
            let _ = write!(text, "SET LOCAL \"{STATEMENT_TIMEOUT}\" = 0;");
        }
        text.push_str(before);
        if self == wanted {
            return text;
        }
        // What may be set depends on the role: all is set by who has logged in, and the role last.
        let had_role = self.by_name.contains_key(ROLE);
        if had_role {
            let _ = write!(text, "RESET \"{ROLE}\";");
        }
        let is_written_otherwise = self.get(CLIENT_ENCODING) != wanted.get(CLIENT_ENCODING);
        let is_wanted = |name: &String| wanted.by_name.contains_key(name);
        // By its own encoding, before that is another.
        let of_letters = self.by_name.keys().filter(|name| !name.is_ascii());
        for name in of_letters.filter(|name| is_written_otherwise || !is_wanted(name)) {
            let _ = write!(text, "SELECT pg_catalog.set_config({},NULL,false);", literal(name));
        }
        let gone = self.by_name.keys().filter(|name| name.is_ascii() && !is_wanted(name));
        for name in gone.filter(|name| *name != ROLE) {
            let quoted = quoted_name(name);
            let _ = write!(text, "RESET {quoted};");
        }
        let mut separator = "SELECT ";
        let others = wanted
            .by_name
            .iter()
            .filter(|(name, _)| *name != ROLE && *name != CLIENT_ENCODING);
        let encoding = wanted.by_name.get_key_value(CLIENT_ENCODING);
        let role = wanted.by_name.get_key_value(ROLE);
        for (name, value) in encoding.into_iter().chain(others).chain(role) {
            let is_same = !is_written_otherwise || (name.is_ascii() && value.is_ascii());
            if !is_same || self.by_name.get(name) != Some(value) || name == ROLE {
                let (name, value) = (literal(name), literal(value));
                let _ = write!(text, "{separator}pg_catalog.set_config({name},{value},false)");
                separator = ",";
            }
        }
        text
    }
}

/// What says this in every encoding: what is more than ASCII is read by the client's of the time when it is computed.
fn literal(text: &str) -> String {
    if text.is_ascii() {
        return quoted_text(text);
    }
    let mut hex = String::new();
    for byte in text.bytes() {
        let _ = write!(hex, "{byte:02x}");
    }
    format!("pg_catalog.convert_from(pg_catalog.decode('{hex}','hex'),pg_catalog.pg_client_encoding())")
}

/// Each part between dots by itself: settings of extensions and of users have two.
fn quoted_name(name: &str) -> String {
    let parts: Vec<String> = name
        .split('.')
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
        .collect();
    parts.join(".")
}

/// In a form that `standard_conforming_strings` does not change.
pub(crate) fn quoted_text(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    match doubled.contains('\\') {
        true => format!("E'{}'", doubled.replace('\\', "\\\\")),
        false => format!("'{doubled}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in pairs {
            settings.set(name, value);
        }
        settings
    }

    fn at_once(text: &str) -> String {
        AT_ONCE.to_owned() + text
    }

    #[test]
    fn only_what_differs_is_changed() {
        let from = settings(&[("TimeZone", "UTC"), ("work_mem", "4096")]);
        assert_eq!(from.change_to(&from, ""), "");
        assert_eq!(
            from.change_to(&settings(&[("TimeZone", "Asia/Tokyo"), ("a.b", "c")]), ""),
            at_once(
                "RESET \"work_mem\";SELECT pg_catalog.set_config('TimeZone','Asia/Tokyo',false),\
                 pg_catalog.set_config('a.b','c',false)"
            )
        );
    }

    #[test]
    fn names_of_the_users_own_are_told_apart_by_their_letters_alone() {
        let from = settings(&[("App.TenantId", "1")]);
        assert_eq!(from, settings(&[("app.tenantid", "1")]));
        assert_eq!(from.change_to(&settings(&[("app.tenantID", "1")]), ""), "");
    }

    #[test]
    fn what_ends_a_statement_ends_none_that_sets() {
        let from = settings(&[("app.a", "1"), ("statement_timeout", "1")]);
        assert_eq!(from.change_to(&from, ""), "");
        assert_eq!(
            from.change_to(&from, "DISCARD PLANS;"),
            at_once("SET LOCAL \"statement_timeout\" = 0;DISCARD PLANS;")
        );
        assert_eq!(
            from.change_to(&settings(&[("app.a", "2")]), "DISCARD PLANS;"),
            at_once(
                "SET LOCAL \"statement_timeout\" = 0;DISCARD PLANS;RESET \"statement_timeout\";\
             SELECT pg_catalog.set_config('app.a','2',false)"
            )
        );
        assert_eq!(
            from.change_to(&settings(&[("app.a", "2"), ("statement_timeout", "1")]), ""),
            at_once("SET LOCAL \"statement_timeout\" = 0;SELECT pg_catalog.set_config('app.a','2',false)")
        );
    }

    #[test]
    fn the_role_goes_first_and_comes_last() {
        let from = settings(&[("log_statement", "all"), ("role", "a")]);
        assert_eq!(
            from.change_to(&settings(&[("work_mem", "64")]), ""),
            at_once("RESET \"role\";RESET \"log_statement\";SELECT pg_catalog.set_config('work_mem','64',false)")
        );
        assert_eq!(
            from.change_to(&settings(&[("role", "a"), ("track_counts", "off")]), ""),
            at_once(
                "RESET \"role\";RESET \"log_statement\";SELECT pg_catalog.set_config('track_counts','off',false),\
             pg_catalog.set_config('role','a',false)"
            )
        );
    }

    #[test]
    fn what_is_more_than_ascii_is_of_its_own_encoding() {
        let from = settings(&[
            ("client_encoding", "LATIN1"),
            ("app.\u{e9}", "1"),
            ("app.b", "1"),
            ("app.c", "\u{e9}"),
        ]);
        let to = settings(&[("app.c", "\u{e9}"), ("client_encoding", "UTF8")]);
        assert_eq!(
            from.change_to(&to, ""),
            at_once(
                "SELECT pg_catalog.set_config(pg_catalog.convert_from(pg_catalog.decode('6170702ec3a9','hex'),\
             pg_catalog.pg_client_encoding()),NULL,false);RESET \"app\".\"b\";\
             SELECT pg_catalog.set_config('client_encoding','UTF8',false),pg_catalog.set_config('app.c',\
             pg_catalog.convert_from(pg_catalog.decode('c3a9','hex'),pg_catalog.pg_client_encoding()),false)"
            )
        );
    }

    #[test]
    fn no_name_and_no_value_ends_its_quotes() {
        let from = settings(&[("a\".\"b;", "1")]);
        let to = settings(&[("it's", "a\\'); DROP TABLE t; --")]);
        assert_eq!(
            from.change_to(&to, ""),
            at_once(
                "RESET \"a\"\"\".\"\"\"b;\";SELECT pg_catalog.set_config('it''s',E'a\\\\''); DROP TABLE t; --',false)"
            )
        );
    }
}
