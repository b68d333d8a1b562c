//! Beginning: the settings that a session begins with, and goes back to when it resets them.
//!
//! Promises: two are equal if no session can tell them apart.

use std::sync::Arc;

/// Names and values, sorted by name; shared by all who begin like this.
#[derive(Debug, Clone)]
pub(crate) struct Beginning(Arc<[(String, String)]>);

impl Beginning {
    /// Of the parameters that a client sends. The name of its application is set for each client, and not part of it.
    pub(crate) fn of(parameters: &[(String, String)]) -> Self {
        let mut settings: Vec<_> = parameters
            .iter()
            .filter(|(name, _)| name != "application_name")
            .cloned()
            .collect();
        settings.sort();
        Self(settings.into())
    }

    pub(crate) fn settings(&self) -> &[(String, String)] {
        &self.0
    }
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
    }
}
