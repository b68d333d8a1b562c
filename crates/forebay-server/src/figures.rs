//! Figures: what is counted by rule, by caller and by statement, as Prometheus reads it.
//!
//! Promises: no value that a client has sent is shown; names that it has chosen are escaped, and were [bounded](forebay_proxy::Databases::figures). Not among
//! the metrics of the program's own registry, which would keep each name for ever.

use std::fmt::Write;

use forebay_proxy::{Databases, Figures};

/// What stands for all that have no figures of their own.
const OTHERS: &str = "other";

/// How one of them is written.
type Value = fn(&Figures) -> String;
/// A row: its labels' values, and its figures.
type Row<const COUNT: usize> = ([String; COUNT], Figures);

/// Appends all of them.
pub(crate) fn put(databases: &Databases, out: &mut String) {
    let figures = databases.figures();
    let of_rules = figures.rules.into_iter().map(|(name, figures)| ([name], figures));
    put_rows(out, "rule", ["rule"], of_rules.collect());
    let of_callers = figures.callers.0.into_iter();
    let of_callers = of_callers.map(|(caller, figures)| ([caller.file, caller.line], figures));
    let others = ([OTHERS.to_owned(), String::new()], figures.callers.1);
    put_rows(out, "caller", ["file", "line"], with_others(of_callers, others));
    let of_statements = figures
        .statements
        .0
        .into_iter()
        .map(|(text, figures)| ([text], figures));
    let others = ([OTHERS.to_owned()], figures.statements.1);
    put_rows(out, "statement", ["statement"], with_others(of_statements, others));
}

/// With those of all others, where there are any. Who is called as they are is one of them.
fn with_others<const COUNT: usize>(named: impl Iterator<Item = Row<COUNT>>, mut others: Row<COUNT>) -> Vec<Row<COUNT>> {
    let mut rows: Vec<Row<COUNT>> = Vec::new();
    for (labels, figures) in named {
        match labels == others.0 {
            true => others.1 += figures,
            false => rows.push((labels, figures)),
        }
    }
    if others.1 != Figures::default() {
        rows.push(others);
    }
    rows
}

fn put_rows<const COUNT: usize>(out: &mut String, of: &str, labels: [&str; COUNT], rows: Vec<Row<COUNT>>) {
    if rows.is_empty() {
        return;
    }
    let rows: Vec<(String, Figures)> = rows
        .into_iter()
        .map(|(values, figures)| {
            let labelled = labels.iter().zip(&values);
            let labelled: Vec<String> = labelled
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            (labelled.join(","), figures)
        })
        .collect();
    let kinds: [(&str, Value); 3] = [
        ("asked_total", |figures| figures.asked.to_string()),
        ("remembered_total", |figures| figures.remembered.to_string()),
        ("database_seconds_total", |figures| {
            figures.at_database.as_secs_f64().to_string()
        }),
    ];
    for (kind, value) in kinds {
        // It fails for no text.
        let _ = writeln!(out, "# TYPE forebay_{of}_{kind} counter");
        for (labelled, figures) in &rows {
            let _ = writeln!(out, "forebay_{of}_{kind}{{{labelled}}} {}", value(figures));
        }
        out.push('\n');
    }
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_as_all_others_are_is_among_them() {
        let one = Figures::default;
        let of = |name: &str| [name.to_owned()];
        let mut some = one();
        some.asked = 2;
        let rows = with_others([(of("a"), some), (of("other"), some)].into_iter(), (of("other"), some));
        let told: Vec<_> = rows.iter().map(|([name], figures)| (&**name, figures.asked)).collect();
        assert_eq!(told, [("a", 2), ("other", 4)]);
        let none = with_others([(of("a"), some)].into_iter(), (of("other"), one()));
        assert_eq!(none.len(), 1);
    }

    #[test]
    fn no_name_ends_its_label() {
        let mut out = String::new();
        let name = "\"} 1\n\\".to_owned();
        put_rows(&mut out, "rule", ["rule"], vec![([name], Figures::default())]);
        let first = out.lines().nth(1).unwrap();
        assert_eq!(first, r#"forebay_rule_asked_total{rule="\"} 1\n\\"} 0"#);
    }
}
