//! Rules: what is said of statements and of sessions without touching them.
//!
//! Promises: of each thing the first rule holds that says something of it and is of the statement. What a statement says itself goes before
//! that.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// What is said of some statements, or of some sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// Only of this database, as clients call it.
    pub database: Option<String>,
    /// Only of this user's.
    pub user: Option<String>,
    /// Only of statements that name this table.
    pub table: Option<TableName>,
    /// Only of this statement.
    pub statement: Option<NormalText>,
    /// They wait so long for company; with zero they have none.
    pub batch: Option<Duration>,
    /// A read joins one that is on its way already, and asks the very same.
    pub joins: Option<bool>,
    /// Sessions share whatever their application is called.
    pub ignores_application: Option<bool>,
}

/// A table, with its schema or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName(Vec<String>);

/// A text but for its literals, blanks and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalText(String);

impl FromStr for TableName {
    type Err = &'static str;

    /// As in SQL: names without quotes are in lower case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut names = Vec::new();
        let mut rest = text.trim();
        loop {
            let end = match rest.strip_prefix('"') {
                Some(quoted) => quoted.find('"').ok_or("has a quote without its end")? + 2,
                None => rest.find('.').unwrap_or(rest.len()),
            };
            let (name, behind) = rest.split_at(end);
            let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                Some(quoted) => quoted.to_owned(),
                None => name.to_lowercase(),
            };
            if name.is_empty() {
                return Err("has an empty name");
            }
            names.push(name);
            match behind.strip_prefix('.') {
                Some(next) => rest = next,
                None if behind.is_empty() => return Ok(Self(names)),
                None => return Err("is not names with dots between them"),
            }
        }
    }
}

impl FromStr for NormalText {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut normal = String::new();
        match forebay_sql::normal(text, &mut normal) {
            true => Ok(Self(normal)),
            false => Err("has a backslash, a hint, or a quote without its end: such a statement does not travel"),
        }
    }
}

/// What holds of one statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ruled {
    pub(crate) batch: Option<Duration>,
    pub(crate) joins: bool,
}

impl Rule {
    /// Whether it may be of a statement of this user at this database.
    pub(crate) fn is_of(&self, user: &str, database: &str) -> bool {
        let is_of = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        is_of(&self.user, user) && is_of(&self.database, database)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            database,
            user,
            table,
            statement,
            batch,
            joins,
            ignores_application,
        } = self;
        let said = [
            batch.map(|batch| match batch.is_zero() {
                true => "go alone".to_owned(),
                false => format!("wait {batch:?} for company"),
            }),
            joins.map(|joins| match joins {
                true => "join what is on its way".to_owned(),
                false => "join nothing that is on its way".to_owned(),
            }),
            ignores_application.map(|ignores| match ignores {
                true => "share whatever their application is called".to_owned(),
                false => "share where their application is called the same".to_owned(),
            }),
        ];
        let of = [
            database.as_ref().map(|database| format!(" at {database}")),
            user.as_ref().map(|user| format!(" of {user}")),
            table.as_ref().map(|table| format!(" that name {}", table.0.join("."))),
            statement.as_ref().map(|text| format!(" like {}", text.0)),
        ];
        let (of, said): (String, Vec<String>) =
            (of.into_iter().flatten().collect(), said.into_iter().flatten().collect());
        let what = if ignores_application.is_some() {
            "sessions"
        } else {
            "statements"
        };
        write!(formatter, "{name}: {what}{of} {}", said.join(", "))
    }
}

/// Those of one user at one database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rules(pub(crate) Arc<[Rule]>);

impl Rules {
    /// What holds of a statement of this normal form in which these names stand.
    pub(crate) fn ruled(&self, normal: &str, names: &[String]) -> Ruled {
        let is_of = |rule: &&Rule| {
            let is_named = |table: &TableName| table.0.iter().all(|part| names.contains(part));
            rule.table.as_ref().is_none_or(is_named) && rule.statement.as_ref().is_none_or(|text| text.0 == normal)
        };
        let own = || self.0.iter().filter(is_of);
        Ruled {
            batch: own().find_map(|rule| rule.batch),
            joins: own().find_map(|rule| rule.joins).unwrap_or(false),
        }
    }

    /// Whether any read may join another.
    pub(crate) fn join(&self) -> bool {
        self.0.iter().any(|rule| rule.joins == Some(true))
    }

    /// Whether sessions share whatever their application is called.
    pub(crate) fn ignore_applications(&self) -> bool {
        self.0.iter().find_map(|rule| rule.ignores_application).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_that_is_of_a_statement_holds() {
        let rule = |text: Option<&str>, table: Option<&str>| Rule {
            statement: text.map(|text| text.parse().unwrap()),
            table: table.map(|table| table.parse().unwrap()),
            ..Rule::default()
        };
        let all = [
            Rule {
                batch: Some(5 * MS),
                ..rule(Some("SELECT a FROM t WHERE id = 7 -- any"), None)
            },
            Rule {
                batch: Some(2 * MS),
                joins: Some(true),
                ..rule(None, Some("S.t"))
            },
            Rule {
                batch: Some(MS),
                user: Some("ann".to_owned()),
                ..rule(None, None)
            },
            Rule {
                joins: Some(false),
                database: Some("other".to_owned()),
                ..rule(None, None)
            },
        ];
        let of = |user: &str| Rules(all.iter().filter(|rule| rule.is_of(user, "app")).cloned().collect());
        let told = |user: &str, normal: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let ruled = of(user).ruled(normal, &names);
            (ruled.batch, ruled.joins)
        };
        let text = "SELECT a FROM t WHERE id = 0";
        assert_eq!(told("bob", text, &["a", "t", "id"]), (Some(5 * MS), false));
        assert_eq!(told("bob", text, &["a", "t", "s"]), (Some(5 * MS), true));
        assert_eq!(told("bob", "SELECT b FROM s.t", &["b", "s", "t"]), (Some(2 * MS), true));
        assert_eq!(told("bob", "SELECT b FROM u", &["b", "u"]), (None, false));
        assert_eq!(told("ann", "SELECT b FROM u", &["b", "u"]), (Some(MS), false));
        assert!(of("bob").join() && !Rules::default().join());
    }

    #[test]
    fn tables_are_called_as_in_sql() {
        for (text, names) in [
            ("Visits", &["visits"][..]),
            ("app.\"Vis.its\"", &["app", "Vis.its"]),
            (" \"A\".b ", &["A", "b"]),
        ] {
            assert_eq!(text.parse::<TableName>().unwrap().0, names, "{text}");
        }
        for text in ["", "a.", ".a", "\"a", "\"a\"b", "a..b"] {
            assert!(text.parse::<TableName>().is_err(), "{text}");
        }
        assert!("SELECT 'a\\'".parse::<NormalText>().is_err());
    }
}
