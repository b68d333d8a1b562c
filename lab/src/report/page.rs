//! The page: all scenarios below one another, each with its run, goals, plots and figures.
//!
//! Promises: of each scenario it is said by which command, when, of which code and on which machine; runs that are of other
//! code or of another machine than the newest are labelled so. Style and script are part of the page. Knows nothing of how
//! a plot is drawn.

use std::collections::BTreeSet;

use super::about::About;
use super::legend::legend;
use super::look::Looks;
use super::markup::escape;
use super::plan::{Plot, plots};
use super::results::Results;
use super::words::direction;
use super::{bars, courses, figures, goals, lines};
use crate::machine::Header;
use crate::record::Run;
use crate::scenario::Yardsticks;

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = concat!(include_str!("plots.css"), include_str!("page.css"));
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub(super) fn render(results: &[Results]) -> String {
    let mut looks = Looks::default();
    for one in results {
        let of_series = one.measurements.series().iter().map(|series| &*series.system);
        let courses = one.run.iter().flat_map(|run| &run.courses);
        let systems: Vec<&str> = of_series.chain(courses.map(|course| &*course.system)).collect();
        looks.add(&systems);
    }
    let newest = results
        .iter()
        .filter_map(|one| Some(&one.run.as_ref()?.header))
        .max_by(|one, other| one.date.cmp(&other.date));
    let cards: String = results.iter().map(|one| card(one, newest)).collect();
    let sections: String = results
        .iter()
        .enumerate()
        .map(|(index, one)| section(index, one, newest, &looks))
        .collect();
    fill(
        TEMPLATE,
        &[
            ("style", STYLE),
            ("script", SCRIPT),
            ("origin", &origin(results)),
            ("cards", &cards),
            ("sections", &sections),
        ],
    )
}

/// Puts each value where the template has its name. What a value holds is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("{{") {
        let (name, after) = behind.split_once("}}").expect("the template closes what it opens");
        let value = values.iter().find(|(known, _)| *known == name);
        page += before;
        page += value.expect("the template has only names that are filled").1;
        rest = after;
    }
    page + rest
}

fn machine(header: &Header) -> String {
    format!(
        "{} cores, {}, {}, {}",
        header.cores, header.processor, header.memory, header.kernel
    )
}

/// Where all of it is from, and whether that is one place.
fn origin(results: &[Results]) -> String {
    let headers = || results.iter().filter_map(|one| Some(&one.run.as_ref()?.header));
    let commits: BTreeSet<&str> = headers().map(|header| &*header.commit).collect();
    let machines: BTreeSet<String> = headers().map(machine).collect();
    let dates: BTreeSet<&str> = headers().map(|header| &*header.date).collect();
    let listed = |what: &str, each: Vec<String>| {
        let each: Vec<String> = each.iter().map(|one| format!("<b>{}</b>", escape(one))).collect();
        format!("<dt>{what}</dt><dd>{}</dd>", each.join("<br>"))
    };
    let mut text = "<dl class=\"facts\">".to_owned();
    text += &listed("machine", machines.iter().cloned().collect());
    text += &listed("commit", commits.iter().map(ToString::to_string).collect());
    if let (Some(first), Some(last)) = (dates.first(), dates.last()) {
        let span = if first == last {
            (*first).to_owned()
        } else {
            format!("{first} to {last}")
        };
        text += &listed("measured", vec![span]);
    }
    text += "</dl>\n";
    let mut differ = Vec::new();
    if commits.len() > 1 {
        differ.push(format!("{} commits", commits.len()));
    }
    if machines.len() > 1 {
        differ.push(format!("{} machines", machines.len()));
    }
    if !differ.is_empty() {
        text += &notice(&format!(
            "These results are of {}: compare within a scenario, not across. Scenarios that differ from the newest run are labelled.",
            differ.join(" and of ")
        ));
    }
    text
}

fn notice(text: &str) -> String {
    format!("<p class=\"notice\">{}</p>\n", escape(text))
}

/// How this run differs from the newest.
fn labels(header: &Header, newest: Option<&Header>) -> Vec<&'static str> {
    let mut labels = Vec::new();
    if let Some(newest) = newest {
        if header.commit != newest.commit {
            labels.push("another commit");
        }
        if machine(header) != machine(newest) {
            labels.push("another machine");
        }
    }
    if header.commit.ends_with("+ changes") {
        labels.push("uncommitted changes");
    }
    labels
}

fn label_list(run: Option<&Run>, newest: Option<&Header>) -> String {
    let labels = run.map_or_else(|| vec!["unknown run"], |run| labels(&run.header, newest));
    labels
        .iter()
        .map(|label| format!(" <span class=\"label\">{label}</span>"))
        .collect()
}

/// A scenario at a glance.
fn card(results: &Results, newest: Option<&Header>) -> String {
    let name = escape(&results.scenario);
    let run = results.run.as_ref();
    let goals = run.and_then(|run| run.goals.as_deref());
    let date = run.map_or("", |run| &*run.header.date);
    format!(
        "<li><a href=\"#{}\">{name}</a> {}<small>{}{}</small></li>\n",
        anchor(&results.scenario),
        goals::glance(goals),
        escape(date),
        label_list(run, newest),
    )
}

/// An id that is one whatever the name holds.
fn anchor(scenario: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("scenario-{}", scenario.chars().map(plain).collect::<String>())
}

fn section(index: usize, results: &Results, newest: Option<&Header>, looks: &Looks) -> String {
    let run = results.run.as_ref();
    let yardsticks = run.map(|run| run.yardsticks.clone()).unwrap_or_default();
    let mut text = format!(
        "<section id=\"{}\" class=\"scenario\">\n<h2>{}{}</h2>\n",
        anchor(&results.scenario),
        escape(&results.scenario),
        label_list(run, newest),
    );
    match run {
        Some(run) => text += &told_of(run, results),
        None => text += &notice("What run these figures are of was not kept beside them; measure again to have it."),
    }
    text += "<div class=\"plots\">\n";
    for (number, plot) in plots(&results.measurements, &yardsticks).iter().enumerate() {
        text += &plot_figure(plot, looks, &format!("plot-{index}-{number}"));
    }
    for (number, course) in run.iter().flat_map(|run| &run.courses).enumerate() {
        text += &courses::plot(course, looks, &format!("course-{index}-{number}"));
    }
    text += "</div>\n<h3>All figures</h3>\n";
    text += &yardstick_words(&yardsticks);
    text += &figures::table(results, &yardsticks, looks);
    text + "</section>\n"
}

/// The run, in words.
fn told_of(run: &Run, results: &Results) -> String {
    let header = &run.header;
    let mut text = format!(
        "<pre class=\"command\"><code>{}</code></pre>\n",
        escape(&header.command)
    );
    for warning in &header.warnings {
        text += &notice(warning);
    }
    for missing in &run.left_out {
        text += &notice(&format!("left out: {missing}"));
    }
    let systems: BTreeSet<&str> = results
        .measurements
        .series()
        .iter()
        .map(|series| &*series.system)
        .collect();
    let about = About::read(&run.about, systems.into_iter());
    if !about.measured.is_empty() {
        text += &format!("<p>{}</p>\n", escape(&about.measured));
    }
    match &run.goals {
        Some(goals) => text += &goals::list(goals),
        None => text += &notice("Its goals were not kept with this run; measure again to have them."),
    }
    text += "<details>\n<summary>Who takes part, and how it was run</summary>\n";
    let facts = |facts: &[(&str, String)]| {
        let facts = facts
            .iter()
            .map(|(what, fact)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(what), escape(fact)));
        format!("<dl class=\"facts\">\n{}</dl>\n", facts.collect::<String>())
    };
    if !about.systems.is_empty() {
        text += &facts(&about.systems);
    }
    let versions: Vec<String> = header
        .versions
        .iter()
        .map(|(what, version)| format!("{what} {version}"))
        .collect();
    text += &facts(&[
        ("date", header.date.clone()),
        ("commit", header.commit.clone()),
        ("versions", versions.join(", ")),
        ("machine", machine(header)),
        (
            "disk",
            format!(
                "{}, 4 KiB write and fdatasync {:.0} µs (median)",
                header.disk, header.fdatasync_us
            ),
        ),
        (
            "rounds",
            format!(
                "{} of {} s a measurement, systems in turns",
                header.rounds, header.seconds_a_measurement
            ),
        ),
        ("load average", format!("{} before the run", header.load_average)),
    ]);
    text + "</details>\n"
}

fn yardstick_words(yardsticks: &Yardsticks) -> String {
    let named = [("limit", &yardsticks.limit), ("forebay", &yardsticks.forebay)];
    let named: Vec<String> = named
        .into_iter()
        .filter_map(|(what, key)| Some((what, key.as_ref()?)))
        .map(|(what, key)| format!("÷ {what}: {}, {}", key.system, key.case))
        .collect();
    if named.is_empty() {
        return "<p class=\"hint\">Ratios are of medians, to the row of the same case.</p>\n".to_owned();
    }
    let named = escape(&named.join("; "));
    format!("<p class=\"hint\">Ratios are of medians, to the row of the same case; where there is none, {named}.</p>\n")
}

fn plot_figure(plot: &Plot<'_>, looks: &Looks, id: &str) -> String {
    let (metric, unit, by, drawn, systems, levels, omitted) = match plot {
        Plot::Lines(plot) => {
            let systems = plot.lines.iter().map(|(system, _)| *system).collect();
            let (by, drawn) = (format!("by {}", plot.axis), lines::draw(plot, looks, id));
            (plot.metric, plot.unit, by, drawn, systems, &plot.levels[..], 0)
        }
        Plot::Bars(plot) => {
            let mut systems: Vec<&str> = Vec::new();
            for series in plot.groups.iter().flat_map(|(_, group)| group) {
                if !systems.contains(&&*series.system) {
                    systems.push(&series.system);
                }
            }
            let by = if plot.groups.len() > 1 { "by case" } else { "" };
            let drawn = bars::draw(plot, looks, id);
            (
                plot.metric,
                plot.unit,
                by.to_owned(),
                drawn,
                systems,
                plot.level.as_slice(),
                plot.omitted,
            )
        }
    };
    let hint = direction(metric, unit).map_or_else(String::new, |words| format!(" · {words}"));
    let more = match omitted {
        0 => String::new(),
        count => format!("<p class=\"hint\">{count} more in the table.</p>\n"),
    };
    format!(
        "<figure>\n<figcaption><b>{}</b> {} <small>{}{hint}</small></figcaption>\n{}<div class=\"plot\">\n{drawn}</div>\n\
         {more}</figure>\n",
        escape(metric),
        escape(&by),
        escape(unit),
        legend(&systems, levels, looks),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_once() {
        assert_eq!(fill("a {{x}} b {{y}}", &[("x", "{{y}}"), ("y", "1")]), "a {{y}} b 1");
        for name in ["style", "script", "origin", "cards", "sections"] {
            assert!(TEMPLATE.contains(&format!("{{{{{name}}}}}")), "{name}");
        }
    }

    #[test]
    fn an_anchor_is_plain_whatever_the_name() {
        assert_eq!(anchor("writes-sqlite"), "scenario-writes-sqlite");
        assert_eq!(anchor("a \"b\"<é"), "scenario-a--b---");
    }
}
