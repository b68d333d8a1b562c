//! Beginning: the settings that a session begins with, and goes back to when it resets them.
//!
//! Promises: two are equal if no session can tell them apart.

use std::sync::Arc;

/// Names in PostgreSQL have no more.
const NAME_BYTES_MAX: usize = 63;

/// Names and values, sorted by name; shared by all who begin like this.
#[derive(Debug, Clone)]
pub(crate) struct Beginning(Arc<[(String, String)]>);

impl Beginning {
    /// Of the parameters that a client sends. The name of its application is set for each client, and not part of it, unless the server
    /// has something to say of it.
    pub(crate) fn of(parameters: &[(String, String)]) -> Self {
        let mut settings: Vec<_> = parameters
            .iter()
            .filter(|(name, value)| name != "application_name" || !is_plain(value))
            .cloned()
            .collect();
        settings.sort();
        Self(settings.into())
    }

    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.0
    }

    /// Whether the setting of this name may be among them, by itself or among others.
    pub(crate) fn may_set(&self, setting: &str) -> bool {
        let has_it = |text: &String| text.to_ascii_lowercase().replace('-', "_").contains(setting);
        self.0.iter().any(|(name, value)| has_it(name) || has_it(value))
    }
}

/// Whether the server takes a name of an application as it is: another is cut, or has letters exchanged, and its client is told so.
pub(crate) fn is_plain(application: &str) -> bool {
    application.len() <= NAME_BYTES_MAX && application.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

impl PartialEq for Beginning {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Beginning {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_the_applications_name_do_not_matter() {
        let of = |pairs: &[(&str, &str)]| {
            Beginning::of(
                &pairs
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            of(&[("a", "1"), ("b", "2"), ("application_name", "x")]),
            of(&[("b", "2"), ("application_name", "y"), ("a", "1")])
        );
        assert_ne!(of(&[("a", "1")]), of(&[("a", "2")]));
        assert_ne!(of(&[("a", "1")]), of(&[]));
        let (longest, longer) = ("x".repeat(63), "x".repeat(64));
        assert_eq!(of(&[("application_name", &longest)]), of(&[]));
        for not_plain in [longer.as_str(), "h\u{f6}r"] {
            assert_ne!(of(&[("application_name", not_plain)]), of(&[]), "{not_plain}");
        }
    }
}
