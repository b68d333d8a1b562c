//! Met: which rules are of a statement, and what it comes to, as far as its text tells.
//!
//! Promises: what it says holds of a proxy that has these rules, but for what the database's catalog says of the statement. Knows no connection.

use std::time::Duration;

use forebay_sql::hints_and_caller;

use super::plan::Plan;
use super::rules::{Rule, Rules};

/// Who asks a statement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asks<'a> {
    /// As whom.
    pub user: Option<&'a str>,
    /// Where, as clients call it.
    pub database: Option<&'a str>,
    /// What its program is called.
    pub application: Option<&'a str>,
}

/// What rules say of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// The statement, without its literals.
    pub text: String,
    /// The names of those that are of it, in their order.
    pub rules: Vec<String>,
    /// The names of those that are of it where somebody else asks it.
    pub of_others: Vec<String>,
    /// What it comes to, of each thing what the first of them says, in words that follow "statements".
    pub said: Vec<String>,
    /// How long it waits for company by its own hint, which goes before that.
    pub waits: Option<Duration>,
    /// How old its answers may be, as its own hint or a rule says, in words that follow "are remembered"; or why none is remembered.
    pub remembered: Result<String, String>,
}

impl Met {
    /// Of this statement, as this one asks it, by these rules.
    #[must_use]
    pub fn of(text: &str, asks: Asks<'_>, all: &[Rule]) -> Self {
        let is_its = |rule: &Rule| rule.is_of(asks.user.unwrap_or_default(), asks.database.unwrap_or_default());
        let rules = Rules::of(all.iter().filter(|rule| is_its(rule)).cloned()).of_application(asks.application);
        let whoever_asks = all.iter().cloned().map(|rule| Rule {
            user: None,
            database: None,
            application: None,
            ..rule
        });
        let plan = Plan::of(text, &rules);
        let names = |rules: &Rules, plan: &Plan| {
            let own = rules.own(&plan.ruled);
            own.map(|rule| rule.name.clone()).collect::<Vec<_>>()
        };
        let own = names(&rules, &plan);
        let by_anybody = Rules::of(whoever_asks);
        let mut of_others = names(&by_anybody, &Plan::of(text, &by_anybody));
        of_others.retain(|name| !own.contains(name));
        let hints = hints_and_caller(text).0;
        let windows = plan.windows(&hints);
        if windows.is_some() {
            plan.note_windows();
        }
        let remembered = match (plan.why_never_remembered(), windows) {
            (None, Some(windows)) => Ok(windows.to_string()),
            (why, _) => Err(why.unwrap_or_default()),
        };
        Self {
            text: plan.text().to_owned(),
            said: rules.said(&plan.ruled).says(),
            waits: hints.batch,
            rules: own,
            of_others,
            remembered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> Rule {
        let name = name.to_owned();
        Rule {
            name,
            ..Rule::default()
        }
    }

    #[test]
    fn of_each_thing_the_first_rule_holds_that_is_of_who_asks_and_of_what() {
        let second = Duration::from_secs(1);
        let all = [
            Rule {
                fresh: Some(second),
                table: Some("visits".parse().unwrap()),
                user: Some("ann".to_owned()),
                ..rule("ann's")
            },
            Rule {
                fresh: Some(second * 60),
                batch: Some(second),
                table: Some("visits".parse().unwrap()),
                ..rule("visits")
            },
            Rule {
                batch: Some(Duration::ZERO),
                ..rule("all")
            },
            Rule {
                application: Some("shop".to_owned()),
                ..rule("shop's")
            },
        ];
        let met = |text: &str, user, application| {
            let asks = Asks {
                user,
                application,
                database: None,
            };
            Met::of(text, asks, &all)
        };
        let read = "SELECT n FROM visits WHERE id = 7";
        let by_ann = met(read, Some("ann"), Some("shop"));
        assert_eq!(by_ann.text, "SELECT n FROM visits WHERE id = ?");
        assert_eq!(by_ann.rules, ["ann's", "visits", "all", "shop's"]);
        assert_eq!(by_ann.remembered, Ok("for 1s".to_owned()));
        let of_others: [&str; 0] = [];
        assert_eq!(by_ann.of_others, of_others);
        let by_bob = met(read, Some("bob"), None);
        assert_eq!(
            (by_bob.rules, by_bob.of_others),
            (
                vec!["visits".to_owned(), "all".to_owned()],
                vec!["ann's".to_owned(), "shop's".to_owned()]
            )
        );
        assert_eq!(by_bob.said, ["wait 1s for company", "are remembered for 60s"]);
        assert_eq!(by_bob.remembered, Ok("for 60s".to_owned()));
        let hinted = met(&format!("/* ttl:5 batch:7 */ {read}"), None, None);
        assert_eq!(hinted.remembered, Ok("for 5s".to_owned()), "its own hint goes before");
        assert_eq!((hinted.waits, by_bob.waits), (Some(Duration::from_millis(7)), None));
        for (text, why) in [
            ("SELECT 1", "nothing says how old its answer may be"),
            ("UPDATE visits SET n = 1 WHERE id = 1", "it changes rows"),
            ("SELECT n FROM visits FOR UPDATE", "it locks"),
            ("SELECT random() FROM visits", "it"),
        ] {
            let said = met(text, None, None).remembered.unwrap_err();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
