//! Goals on the page: each with its verdict, what was measured, and how far that is from what was hoped for.
//!
//! Promises: verdicts are those of the run; a word stands beside every colour. Knows nothing of how goals are judged.

use super::markup::{Drawing, escape};
use crate::figure::figure;
use crate::judged::Wanted;
use crate::judged::{Judged, Verdict};

/// As far as this factor from the goal is told apart.
const FACTOR_MAX: f64 = 4.0;
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 16.0;

/// All goals of a scenario, as a list; empty without goals.
pub(super) fn list(goals: &[Judged]) -> String {
    if goals.is_empty() {
        return String::new();
    }
    let items: String = goals.iter().map(item).collect();
    format!("<ul class=\"goals\">\n{items}</ul>\n")
}

/// How many goals were met: a dot a goal, and the same in words.
pub(super) fn glance(goals: Option<&[Judged]>) -> String {
    let dots: String = goals
        .unwrap_or_default()
        .iter()
        .map(|goal| format!("<i class=\"{}\"></i>", shown(goal.verdict()).0))
        .collect();
    let dots = match &*dots {
        "" => String::new(),
        dots => format!("<span class=\"dots\" aria-hidden=\"true\">{dots}</span>"),
    };
    format!(
        "{dots}<span>{}</span>",
        goals.map_or_else(|| "goals not kept".to_owned(), count)
    )
}

fn count(goals: &[Judged]) -> String {
    let met = goals.iter().filter(|goal| goal.verdict() == Verdict::Met).count();
    match goals.len() {
        0 => "no goals".to_owned(),
        1 => format!("{met} of 1 goal met"),
        all => format!("{met} of {all} goals met"),
    }
}

/// Class, sign and word.
fn shown(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Met => ("met", "✓", "met"),
        Verdict::Missed => ("missed", "✗", "missed"),
        Verdict::NotMeasured => ("unmeasured", "–", "not measured"),
    }
}

fn item(goal: &Judged) -> String {
    let (class, sign, word) = shown(goal.verdict());
    let (side, bound) = match goal.wanted {
        Wanted::AtLeast(bound) => ("at least", bound),
        Wanted::AtMost(bound) => ("at most", bound),
    };
    let unit = if goal.unit.is_empty() {
        "×".to_owned()
    } else {
        format!(" {}", goal.unit)
    };
    let measured = goal
        .measured
        .map_or_else(|| "–".to_owned(), |measured| format!("{}{unit}", amount(measured)));
    let bound_text = format!("{side} {}{unit}", amount(bound));
    let (measured, bound_text, text) = (escape(&measured), escape(&bound_text), escape(&goal.text));
    let distance = distance(goal, bound).unwrap_or_default();
    format!(
        "<li class=\"{class}\"><span class=\"badge\"><span aria-hidden=\"true\">{sign}</span> {word}</span>\
         <span class=\"goal\">{text}</span><span class=\"reached\"><b>{measured}</b> <small>{bound_text}</small></span>\
         {distance}</li>\n"
    )
}

/// Zero is exact, where the table has it among others to four places.
fn amount(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { figure(value) }
}

/// How far the figure is from the bound, by factors; to the right is better.
fn distance(goal: &Judged, bound: f64) -> Option<String> {
    // What may be below zero has no factor to its bound.
    let measured = goal.measured.filter(|measured| bound > 0.0 && *measured >= 0.0)?;
    let better = match goal.wanted {
        Wanted::AtLeast(_) => measured / bound,
        Wanted::AtMost(_) => bound / measured,
    };
    if better.is_nan() {
        return None;
    }
    let share = better.max(0.0).log(FACTOR_MAX).clamp(-1.0, 1.0);
    let (middle, end) = (WIDTH / 2.0, WIDTH / 2.0 * (1.0 + share));
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    drawing.rectangle("track", (0.0, 5.0), (WIDTH, 6.0));
    drawing.rectangle("reach", (middle.min(end), 5.0), ((end - middle).abs().max(1.0), 6.0));
    drawing.line("bound", (middle, 0.0), (middle, HEIGHT));
    // Its words stand beside it.
    Some(drawing.ornament("distance"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(wanted: Wanted, measured: Option<f64>) -> Judged {
        Judged {
            text: "a <b>".into(),
            wanted,
            measured,
            unit: String::new(),
        }
    }

    #[test]
    fn every_goal_says_its_verdict_in_words_with_both_figures() {
        let goals = [
            goal(Wanted::AtLeast(0.6), Some(0.61)),
            goal(Wanted::AtLeast(100.0), Some(99.0)),
            goal(Wanted::AtMost(0.1), Some(0.0)),
            goal(Wanted::AtMost(0.1), None),
        ];
        let list = list(&goals);
        for (class, count) in [("met", 2), ("missed", 1), ("unmeasured", 1)] {
            assert_eq!(
                list.matches(&format!("<li class=\"{class}\">")).count(),
                count,
                "{class}: {list}"
            );
        }
        for text in [
            "0.610×",
            "at least 0.600×",
            "at most 0.100×",
            "not measured",
            "a &lt;b&gt;",
        ] {
            assert!(list.contains(text), "{text}: {list}");
        }
        assert_eq!(
            list.matches("class=\"distance\"").count(),
            3,
            "nothing is drawn of what was not measured"
        );
        assert!(!list.contains("NaN") && !list.contains("inf"), "{list}");
        assert_eq!(count(&goals), "2 of 4 goals met");
        assert_eq!(count(&[]), "no goals");
        assert!(glance(None).contains("not kept"));
        assert_eq!(glance(Some(&goals)).matches("<i class=").count(), 4);
        assert_eq!(super::list(&[]), "");
    }

    #[test]
    fn a_bound_below_zero_has_words_and_no_factor() {
        let mut goal = goal(Wanted::AtLeast(-1.0), Some(-0.2));
        goal.unit = "points".into();
        let list = list(&[goal.clone()]);
        assert!(
            list.contains("-0.200 points") && list.contains("at least -1.00 points"),
            "{list}"
        );
        assert!(!list.contains("class=\"distance\""), "{list}");
        goal.measured = Some(2.0);
        assert!(!super::list(&[goal]).contains("class=\"distance\""));
    }
}
