//! Followed: what a statement reads without naming it: the definitions of views, and the policies of tables that have row security. Of what changes rows these are
//! all policies, and no views: through one it would change another's rows.
//!
//! Promises: whatever a definition names is asked about as if the statement named it, and so on, until nothing new is named; by the same rules
//! something is the matter with it. What only a rule may allow is told as a [need](Needs): row security, functions that are not reviewed but
//! declared to change nothing, and the time. A policy may ask for the session's settings and roles without one: whose answer is remembered is told by them.
//! Who does so goes alone; what he reads is known, and whose rows he changes. Knows no connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_sql::{Effect, Touches, mentions_a_moment, touches};

use super::reviewed::{is_of_the_catalog, is_of_the_time, is_of_the_version, unsteady};

/// Views of views are followed so far.
pub(crate) const LOOKS_MAX: usize = 8;

/// How the catalog's rows call what is told in a text of its own, or by its name alone.
pub(super) const VIEW: &str = "view ";
pub(super) const POLICY: &str = "policy ";
pub(super) const SECURED: &str = "secured ";
pub(super) const CALLED: &str = "called ";
pub(super) const OF_THE_DAY: &str = "of the day ";

/// Functions that tell of nothing but what answers are told apart by: the session's settings, its user and his roles.
const OF_THE_SESSION: [&str; 2] = ["current_setting", "pg_has_role"];

/// What a rule has to allow, in words that follow "it names".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The first function that is not reviewed, or what hangs on the time.
    pub(crate) stable_functions: Option<String>,
    /// The first table that has it.
    pub(crate) row_security: Option<String>,
}

/// What a read names, with all that is named by definitions that it uses.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) touches: Touches,
    /// Definitions that are known.
    taken: BTreeSet<String>,
    /// A definition tells the time, in those words.
    of_the_time: Option<String>,
    /// What is the matter with a definition, in words that follow "it names".
    matter: Option<String>,
    /// What a rule says that it depends on.
    depends_on: Vec<String>,
}

/// What these rows say that is no more than a reason to go alone.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The first of it, in words that follow "it names".
    pub(super) matter: Option<String>,
    needs: Needs,
    /// There is a view.
    has_view: bool,
}

impl Followed {
    /// Nothing has been looked at. What it depends on by a rule is asked about as if the statement named it.
    pub(crate) fn of(touches: &Touches, depends_on: &[Arc<str>]) -> Self {
        let depends_on: Vec<String> = depends_on.iter().map(ToString::to_string).collect();
        let mut touches = touches.clone();
        add(&mut touches.names, depends_on.clone());
        Self {
            touches,
            taken: BTreeSet::new(),
            of_the_time: None,
            matter: None,
            depends_on,
        }
    }

    /// Takes in the definitions among these rows. Whether the catalog is to be asked again, about what they name.
    pub(crate) fn take(&mut self, rows: &[(String, String)]) -> bool {
        let reads = self.touches.effect == Effect::Reads;
        let before = self.touches.names.len() + self.touches.called.len() + self.touches.operators.len();
        for (kind, definition) in rows {
            let is_policy = kind.starts_with(POLICY);
            let of_view = || kind.strip_prefix(VIEW).filter(|_| reads);
            let Some(name) = kind.strip_prefix(POLICY).or_else(of_view) else {
                continue;
            };
            if self.taken.insert(format!("{kind} {definition}"))
                && let Err(why) = self.take_definition(definition, is_policy)
            {
                self.matter
                    .get_or_insert(format!("{name}, of which the catalog has a definition that {why}"));
            }
        }
        let named = self.touches.names.len() + self.touches.called.len() + self.touches.operators.len();
        self.matter.is_none() && named != before
    }

    /// Takes in one: the query of a view, or the condition of a policy. Or else why it cannot be followed.
    fn take_definition(&mut self, definition: &str, is_policy: bool) -> Result<(), String> {
        let text = if is_policy {
            format!("SELECT {definition}")
        } else {
            definition.to_owned()
        };
        let named = touches(&text).map_err(|why| why.0.to_owned())?;
        if named.effect != Effect::Reads {
            return Err("does more than read".to_owned());
        }
        if mentions_a_moment(&text) {
            return Err("may name a moment".to_owned());
        }
        let is_told_apart = |name: &String| is_policy && OF_THE_SESSION.contains(&name.as_str());
        if let Some(name) = named
            .names
            .iter()
            .find(|name| is_of_the_catalog(name) && !is_told_apart(name))
        {
            return Err(format!("names {name}, which is of the catalog"));
        }
        if let Some(name) = named.names.iter().find(|name| is_of_the_version(name)) {
            return Err(format!("names {name}, which changes where no row does"));
        }
        if let Some(name) = named.names.iter().find(|name| unsteady().contains(&name.as_str())) {
            return Err(format!("names {name}, which answers anew each time"));
        }
        if let Some(name) = named.names.iter().find(|name| is_of_the_time(name)) {
            self.of_the_time
                .get_or_insert_with(|| format!("{name}, by a definition"));
        }
        add(&mut self.touches.names, named.names);
        let called = named.called.into_iter().filter(|name| !is_told_apart(name));
        add(&mut self.touches.called, called);
        add(&mut self.touches.operators, named.operators);
        Ok(())
    }

    /// What a rule says that it depends on, and neither is one of these tables nor a view.
    pub(super) fn missing(&self, tables: &[Arc<str>]) -> Option<&str> {
        let is_view = |name: &str| {
            let begins = format!("{VIEW}{name} ");
            self.taken.iter().any(|taken| taken.starts_with(&begins))
        };
        let mut names = self.depends_on.iter().map(String::as_str);
        names.find(|name| !tables.iter().any(|table| **table == **name) && !is_view(name))
    }

    /// What is the matter with what was taken; none where it is known whole.
    pub(super) fn matter(&self) -> Option<&str> {
        self.matter.as_deref()
    }

    /// Whether there is nothing but row security, by what these rows have told.
    pub(super) fn needs_row_security_alone(&self, told: Told) -> bool {
        let has_view = told.has_view;
        let needs = self.needs(told);
        !has_view && needs.row_security.is_some() && needs.stable_functions.is_none()
    }

    /// What only a rule may allow, by what these rows have told.
    pub(super) fn needs(&self, told: Told) -> Needs {
        Needs {
            stable_functions: told.needs.stable_functions.or_else(|| self.of_the_time.clone()),
            ..told.needs
        }
    }
}

impl Told {
    /// Takes in a row of this kind. False: it tells of something else.
    pub(super) fn take(&mut self, kind: &str) -> bool {
        if kind.starts_with(POLICY) {
            return true;
        }
        self.has_view |= kind.starts_with(VIEW);
        let (matter, need) = if let Some(name) = kind.strip_prefix(VIEW) {
            (format!("the relation {name}, which is no table"), None)
        } else if let Some(name) = kind.strip_prefix(SECURED) {
            let matter = format!("the relation {name}, which has row security");
            (matter, Some(&mut self.needs.row_security))
        } else if let Some(name) = kind.strip_prefix(CALLED) {
            (format!("the function {name}"), Some(&mut self.needs.stable_functions))
        } else if let Some(name) = kind.strip_prefix(OF_THE_DAY) {
            let matter = format!("the relation {name}, which has times of the day that hang on what day it is");
            (matter, Some(&mut self.needs.stable_functions))
        } else {
            return false;
        };
        if let Some(need) = need {
            need.get_or_insert_with(|| matter.clone());
        }
        self.matter.get_or_insert(matter);
        true
    }
}

/// Adds what is not there yet.
fn add(all: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for name in more {
        if !all.contains(&name) {
            all.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(sql: &str, rows: &[(&str, &str)]) -> (Followed, bool) {
        let mut followed = Followed::of(&touches(sql).unwrap(), &[]);
        let rows: Vec<_> = rows
            .iter()
            .map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned()))
            .collect();
        let asks_again = followed.take(&rows);
        (followed, asks_again)
    }

    #[test]
    fn what_definitions_name_is_asked_about_until_nothing_is_new() {
        let rows = [("view v", " SELECT t.id FROM app.t WHERE app.is_open(t.state) <~> 1;")];
        let (mut known, asks_again) = followed("SELECT * FROM v", &rows);
        assert!(asks_again && known.matter().is_none());
        for name in ["v", "app", "t", "is_open", "state"] {
            assert!(known.touches.names.iter().any(|known| known == name), "{name}");
        }
        assert!(known.touches.called.iter().any(|name| name == "is_open"));
        assert!(known.touches.operators.iter().any(|operator| operator == "<~>"));
        let again = [("view v".to_owned(), rows[0].1.to_owned())];
        assert!(!known.take(&again), "nothing is new");
        // Another of that name is another.
        let other = [("view v".to_owned(), "SELECT u.id FROM u".to_owned())];
        assert!(known.take(&other));
        let (_, asks_again) = followed("DELETE FROM v", &rows);
        assert!(!asks_again, "what changes rows through a view is not followed");
    }

    #[test]
    fn what_a_rule_says_it_depends_on_is_there_or_missed() {
        let depends_on: [Arc<str>; 3] = ["t".into(), "v".into(), "ratez".into()];
        let mut known = Followed::of(&touches("SELECT f(1)").unwrap(), &depends_on);
        assert!(
            depends_on
                .iter()
                .all(|name| known.touches.names.contains(&name.to_string()))
        );
        let tables: [Arc<str>; 1] = ["t".into()];
        assert_eq!(known.missing(&tables), Some("v"));
        known.take(&[("view v".to_owned(), "SELECT u.id FROM u".to_owned())]);
        assert_eq!(known.missing(&tables), Some("ratez"));
        assert_eq!(known.missing(&["t".into(), "ratez".into()]), None);
    }

    #[test]
    fn what_cannot_be_followed_is_the_matter() {
        for (kind, definition) in [
            ("view v", "SELECT random()"),
            ("view v", "SELECT t.xmin AS version, t.id FROM t"),
            ("view v", "SELECT relname FROM pg_class"),
            ("view v", "SELECT 'now'::text::timestamp"),
            ("view v", "SELECT E'\\n'"),
            ("view v", "SELECT * FROM t FOR UPDATE"),
            ("view v", "what is this"),
            ("view v", "SELECT pg_has_role('a', 'b')"),
            ("policy t", "(a = pg_backend_pid())"),
        ] {
            let (known, asks_again) = followed("SELECT 1", &[(kind, definition)]);
            assert!(known.matter().is_some() && !asks_again, "{definition}");
        }
        let (known, _) = followed("SELECT 1", &[("view v", "SELECT now()")]);
        assert!(known.matter().is_none() && known.needs(Told::default()).stable_functions.is_some());
    }

    #[test]
    fn a_policy_may_ask_for_settings_and_a_view_may_not() {
        let condition = "(owner = current_setting('app.user'::text)) AND pg_has_role(role, 'MEMBER'::text)";
        let (known, asks_again) = followed("SELECT 1", &[("policy t", condition)]);
        assert!(asks_again && known.matter().is_none());
        let calls = |known: &Followed| known.touches.called.iter().any(|name| name == "current_setting");
        assert!(!calls(&known));
        let (known, _) = followed("SELECT current_setting('a')", &[("policy t", condition)]);
        assert!(calls(&known), "the statement calls it itself");
        let (known, _) = followed("SELECT 1", &[("view v", "SELECT current_setting('a'::text)")]);
        assert!(calls(&known));
    }

    #[test]
    fn the_first_of_each_is_told() {
        let mut told = Told::default();
        for kind in ["policy t", "view v", "secured t", "called f", "secured u"] {
            assert!(told.take(kind), "{kind}");
        }
        assert!(!told.take("the trigger audit"));
        assert_eq!(told.matter.as_deref(), Some("the relation v, which is no table"));
        let needs = Needs {
            stable_functions: Some("the function f".to_owned()),
            row_security: Some("the relation t, which has row security".to_owned()),
        };
        assert_eq!(told.needs, needs);
    }
}
