//! What two answers to the same statement say about each other.

use crate::connection::{Answer, LOST};

/// From the best to the worst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Equal,
    /// Both say no.
    BothError {
        same_state: bool,
    },
    /// The server under test says that it does not support this; in its words.
    Refused(String),
    /// PostgreSQL knows no such thing, the server under test has an answer.
    Extra,
    /// One of the servers met a limit of time or size.
    Limit,
    /// PostgreSQL reports an error of a part that it need not have evaluated, or the other way round: SQL leaves it open. PostgreSQL's
    /// planner leaves out what stands beside a NULL under an operator that gives NULL for it.
    Unordered,
    /// Everything else, in a few words.
    Different(String),
}

/// The kinds, as columns of tables.
pub(crate) const KINDS: &[&str] = &[
    "equal",
    "both error",
    "other state",
    "refused",
    "extra",
    "limit",
    "unordered",
    "DIFFERENT",
];

impl Verdict {
    pub(crate) fn kind(&self) -> usize {
        match self {
            Self::Equal => 0,
            Self::BothError { same_state: true } => 1,
            Self::BothError { same_state: false } => 2,
            Self::Refused(_) => 3,
            Self::Extra => 4,
            Self::Limit => 5,
            Self::Unordered => 6,
            Self::Different(_) => 7,
        }
    }

    pub(crate) fn is_different(&self) -> bool {
        matches!(self, Self::Different(_))
    }
}

/// The whole case's: that of the first statement that did not go the same way.
pub(crate) fn of_case(postgres: &[Answer], forebay: &[Answer], ordered: &[bool]) -> Verdict {
    let mut answers = postgres.iter().zip(forebay).zip(ordered);
    answers
        .by_ref()
        .map(|((postgres, forebay), ordered)| of(postgres, forebay, *ordered))
        .find(|verdict| *verdict != Verdict::Equal)
        .unwrap_or(Verdict::Equal)
}

/// `ordered`: whether the statement says in which order its rows come.
pub(crate) fn of(postgres: &Answer, forebay: &Answer, ordered: bool) -> Verdict {
    match (&postgres.error, &forebay.error) {
        (_, Some(failure)) if failure.sqlstate == LOST => Verdict::Different(failure.message.clone()),
        (Some(failure), _) if failure.sqlstate == LOST => Verdict::Limit,
        (Some(ours), _) | (_, Some(ours)) if is_limit(&ours.sqlstate) => Verdict::Limit,
        (_, Some(failure)) if failure.sqlstate.starts_with("XX") => {
            Verdict::Different(format!("internal error {}", failure.message))
        }
        (Some(wanted), Some(failure)) => Verdict::BothError {
            same_state: wanted.sqlstate == failure.sqlstate,
        },
        (None, Some(failure)) => {
            let says_so = failure.message.contains("support");
            if failure.sqlstate == "0A000" || (failure.sqlstate.starts_with("42") && says_so) {
                Verdict::Refused(failure.message.clone())
            } else {
                Verdict::Different(format!("an error {} where PostgreSQL has a value", failure.sqlstate))
            }
        }
        (Some(wanted), None) if wanted.sqlstate.starts_with("42") => Verdict::Extra,
        (Some(wanted), None) => {
            Verdict::Different(format!("a value where PostgreSQL has the error {}", wanted.sqlstate))
        }
        (None, None) => of_values(postgres, forebay, ordered),
    }
}

/// Out of memory, too large, too complex, cancelled because it took too long.
fn is_limit(sqlstate: &str) -> bool {
    sqlstate.starts_with("53") || sqlstate.starts_with("54") || sqlstate == "57014"
}

fn of_values(postgres: &Answer, forebay: &Answer, ordered: bool) -> Verdict {
    let different = |what: &str| Verdict::Different(what.to_owned());
    if postgres.columns.len() != forebay.columns.len() {
        return different("number of columns");
    }
    let columns = || postgres.columns.iter().zip(&forebay.columns);
    if columns().any(|(wanted, given)| wanted.oid != given.oid) {
        return different("type of a column");
    }
    let mut rows = (postgres.rows.clone(), forebay.rows.clone());
    if !ordered {
        rows.0.sort();
        rows.1.sort();
    }
    if rows.0 != rows.1 {
        return different(if rows.0.len() == rows.1.len() {
            "value"
        } else {
            "number of rows"
        });
    }
    if columns().any(|(wanted, given)| wanted.modifier != given.modifier) {
        return different("type modifier of a column");
    }
    if columns().any(|(wanted, given)| wanted.name != given.name) {
        return different("name of a column");
    }
    if postgres.tag != forebay.tag {
        return different("command tag");
    }
    if postgres.parameters != forebay.parameters {
        return different("type of a parameter");
    }
    Verdict::Equal
}

/// An answer in a few lines.
pub(crate) fn shown(answer: &Answer) -> String {
    if let Some(failure) = &answer.error {
        return format!("ERROR {}: {} {:?}", failure.sqlstate, failure.message, failure.told);
    }
    let mut shown = String::new();
    let columns: Vec<String> = answer
        .columns
        .iter()
        .map(|column| {
            format!(
                "{} {}({})",
                column.name,
                crate::facts::type_name(column.oid),
                column.modifier
            )
        })
        .collect();
    shown.push_str(&format!("{} [{}]", answer.tag, columns.join(", ")));
    if !answer.parameters.is_empty() {
        let types: Vec<String> = answer
            .parameters
            .iter()
            .map(|oid| crate::facts::type_name(*oid))
            .collect();
        shown.push_str(&format!(" parameters ({})", types.join(", ")));
    }
    for row in answer.rows.iter().take(15) {
        let values: Vec<String> = row
            .iter()
            .map(|value| match value {
                None => "NULL".to_owned(),
                Some(bytes) if bytes.len() > 300 => {
                    format!("{} bytes {:?}…", bytes.len(), String::from_utf8_lossy(&bytes[..200]))
                }
                Some(bytes) => {
                    std::str::from_utf8(bytes).map_or_else(|_| format!("{bytes:02x?}"), |text| format!("{text:?}"))
                }
            })
            .collect();
        shown.push_str(&format!("\n        ({})", values.join(", ")));
    }
    if answer.rows.len() > 15 {
        shown.push_str(&format!("\n        … {} rows", answer.rows.len()));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Column, Failure};

    fn value(text: &str) -> Answer {
        Answer {
            columns: vec![Column {
                name: "x".into(),
                oid: 25,
                modifier: -1,
            }],
            rows: vec![vec![Some(text.into())], vec![None]],
            tag: "SELECT 2".into(),
            ..Answer::default()
        }
    }

    fn error(sqlstate: &str, message: &str) -> Answer {
        Answer {
            error: Some(Failure {
                sqlstate: sqlstate.into(),
                message: message.into(),
                told: std::collections::BTreeMap::new(),
            }),
            ..Answer::default()
        }
    }

    #[test]
    fn whatever_a_client_can_see_makes_a_difference() {
        let changes: [fn(&mut Answer); 8] = [
            |answer| answer.columns[0].name = "y".into(),
            |answer| answer.columns[0].oid = 23,
            |answer| answer.columns[0].modifier = 7,
            |answer| answer.rows[0][0] = Some(b"a ".to_vec()),
            |answer| answer.rows[1][0] = Some(Vec::new()),
            |answer| answer.rows.truncate(1),
            |answer| answer.tag = "SELECT 1".into(),
            |answer| answer.parameters = vec![25],
        ];
        assert_eq!(of(&value("a"), &value("a"), true), Verdict::Equal);
        for (number, change) in changes.iter().enumerate() {
            let mut changed = value("a");
            change(&mut changed);
            assert!(of(&value("a"), &changed, false).is_different(), "change {number}");
        }
        let mut turned = value("a");
        turned.rows.reverse();
        assert!(of(&value("a"), &turned, true).is_different());
        assert_eq!(of(&value("a"), &turned, false), Verdict::Equal);
    }

    #[test]
    fn only_what_says_so_is_a_refusal() {
        let refused = |message: &str| Verdict::Refused(message.to_owned());
        assert_eq!(of(&value("a"), &error("0A000", "no"), true), refused("no"));
        assert_eq!(
            of(&value("a"), &error("42883", "x is not supported"), true),
            refused("x is not supported")
        );
        assert!(of(&value("a"), &error("42883", "no such function"), true).is_different());
        assert!(of(&value("a"), &error("22003", "not supported"), true).is_different());
        assert!(of(&error("22012", "division by zero"), &value("a"), true).is_different());
        assert_eq!(of(&error("42601", "syntax"), &value("a"), true), Verdict::Extra);
        let both = |same_state| Verdict::BothError { same_state };
        assert_eq!(of(&error("22012", "a"), &error("22012", "b"), true), both(true));
        assert_eq!(of(&error("22012", "a"), &error("0A000", "b"), true), both(false));
        assert!(of(&error("22012", "a"), &error("XX000", "b"), true).is_different());
        assert!(of(&error("22012", "a"), &error(LOST, "b"), true).is_different());
    }
}
