//! The page of the last results, from the command line to the file, and in a real browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod document;
mod real_browser;
mod synthetic;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use document::Element;
use serde_json::Value;
use synthetic::{BATCHERS, HOSTILE, LOADERS};

fn lab_report(results: &Path, out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["report", "--results"])
        .arg(results)
        .arg("--out")
        .arg(out)
        .output()
        .unwrap()
}

/// Makes the page of these results.
fn report(results: &Path, out: &Path) -> String {
    let ran = lab_report(results, out);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(said.trim(), out.to_str().unwrap(), "it says where the page is");
    std::fs::read_to_string(out).unwrap()
}

/// What the lab says when it cannot make a page of these results.
fn refused(results: &Path) -> String {
    let out = results.join("report.html");
    let ran = lab_report(results, &out);
    assert!(!ran.status.success() && !out.exists());
    String::from_utf8(ran.stderr).unwrap()
}

/// The page of synthetic results, where one can look at it afterwards.
fn synthetic_page(name: &str) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let results = folder.join("results");
    synthetic::write(&results);
    let out = folder.join("report.html");
    let page = report(&results, &out);
    (out, page)
}

fn texts<'a>(elements: &'a [Element], name: &str) -> Vec<&'a str> {
    let found = elements.iter().filter(|element| element.name == name);
    found.map(|element| &*element.text).collect()
}

fn count(elements: &[Element], name: &str, class: &str) -> usize {
    let is_one = |element: &&Element| element.name == name && element.has_class(class);
    elements.iter().filter(is_one).count()
}

/// The part of the page that is about this scenario.
fn section<'a>(page: &'a str, scenario: &str) -> &'a str {
    let (_, behind) = page
        .split_once(&format!("<section id=\"scenario-{scenario}\""))
        .unwrap();
    behind.split_once("</section>").unwrap().0
}

#[test]
fn every_scenario_system_and_figure_is_on_a_well_formed_page() {
    let (out, page) = synthetic_page("structure");
    let elements = document::read(&page);
    let titles: Vec<&str> = texts(&elements, "h2").into_iter().map(str::trim).collect();
    assert_eq!(titles, ["batcher", "loader", "odd"]);

    let results = out.with_file_name("results");
    let mut rows = 0;
    for scenario in titles {
        let figures = std::fs::read_to_string(results.join(format!("{scenario}.jsonl"))).unwrap();
        rows += figures.lines().count();
    }
    let cells = elements.iter().filter(|element| element.name == "th");
    let cells = cells
        .filter(|element| element.attribute("scope") == Some("row"))
        .count();
    assert_eq!(cells, rows, "a row a series");

    for (scenario, systems) in [("batcher", BATCHERS), ("loader", LOADERS)] {
        let section = section(&page, scenario);
        for (system, _) in systems {
            assert!(
                section.contains(&format!("</svg>{system}</th>")),
                "{system} in the table"
            );
            assert!(section.contains(&format!("</svg>{system}")), "{system} in a legend");
            assert!(section.contains(&format!("<title>{system}, ")), "{system} in a plot");
        }
    }
    let batcher = section(&page, "batcher");
    let levels = batcher.matches("</svg>limit, 10,000 tasks</button>").count();
    assert_eq!(
        levels, 2,
        "a level is named with its case, across lines and across bars"
    );
    assert_eq!(
        page.matches(" more in the table.").count(),
        1,
        "only what is left out is counted"
    );
    assert!(section(&page, "odd").contains("<p class=\"hint\">10 more in the table.</p>"));
    assert_eq!(
        batcher.matches("<polyline").count(),
        2 * (4 * 5 + 1),
        "two drawings, four metrics, five systems with lines, and a course"
    );
    assert!(batcher.contains("resident memory by seconds, forebay, 10 callers of batcher\nat most 63.0 MiB"));
    assert!(
        batcher.contains("forebay, 10,000 callers\nthroughput 11,133,201 calls/s\nfrom 10,465,209 to "),
        "{page}"
    );
    assert!(
        batcher.contains("<td data-value=\"1.113"),
        "figures in full, to sort by"
    );
}

#[test]
fn of_each_run_it_is_said_what_it_was_and_where_it_differs() {
    let (_, page) = synthetic_page("runs");
    for said in [
        "cargo run --release -p lab -- batcher --quick",
        "2026-11-20 10:00 UTC",
        "0123456789ab",
        "rustc 1.95.0 (59807616e 2026-04-14)",
        "2 cores, AMD EPYC, 23.5 GiB, linux 6.18",
        "ext4 on /dev/vda, 4 KiB write and fdatasync 113 µs (median)",
        "5 of 3 s a measurement",
        "other work was running on this machine",
        "left out: Go is not here",
        "These results are of 2 commits and of 2 machines",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let labels = |scenario| {
        let labels = [
            "another commit",
            "another machine",
            "uncommitted changes",
            "unknown run",
        ];
        labels.map(|label| section(&page, scenario).contains(&format!("<span class=\"label\">{label}</span>")))
    };
    assert_eq!(
        labels("batcher"),
        [false, false, false, false],
        "the newest is what others differ from"
    );
    assert_eq!(labels("loader"), [true, true, true, false]);
    assert_eq!(labels("odd"), [false, false, false, true]);
}

#[test]
fn goals_have_the_verdicts_of_the_run() {
    let (_, page) = synthetic_page("goals");
    let elements = document::read(&page);
    let verdicts = ["met", "missed", "unmeasured"].map(|verdict| count(&elements, "li", verdict));
    assert_eq!(verdicts, [4, 2, 1]);
    for said in [
        "3 of 5 goals met",
        "1 of 2 goals met",
        "goals not kept",
        "2.80×",
        "at least 2.50×",
        "at most 0.100",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn a_plot_has_axes_a_legend_whiskers_and_words_for_those_who_do_not_see_it() {
    let (_, page) = synthetic_page("plots");
    let elements = document::read(&page);
    let figures = count(&elements, "div", "plot");
    let drawings: Vec<&Element> = elements
        .iter()
        .filter(|element| element.name == "svg" && element.attribute("role") == Some("img"))
        .collect();
    assert_eq!(
        drawings.len(),
        2 * figures,
        "one for a wide place and one for a narrow one"
    );
    let ids: Vec<&str> = elements.iter().filter_map(|element| element.attribute("id")).collect();
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len(), "ids are given once");
    for drawing in drawings {
        for id in drawing.attribute("aria-labelledby").unwrap().split(' ') {
            let named = elements
                .iter()
                .find(|element| element.attribute("id") == Some(id))
                .unwrap();
            assert!(!named.text.trim().is_empty(), "{id} says something");
        }
    }
    assert_eq!(count(&elements, "ul", "legend"), figures);
    for class in ["tick", "grid", "axis", "whisker", "level"] {
        assert!(elements.iter().any(|element| element.has_class(class)), "no {class}");
    }
    let (drawn, _) = page.split_once("<script>").unwrap();
    assert!(
        !drawn.contains("NaN") && !drawn.contains("inf\""),
        "every place is a number"
    );
}

#[test]
fn a_system_has_one_colour_and_forebay_its_own() {
    let (_, page) = synthetic_page("colours");
    let elements = document::read(&page);
    let mut looks = BTreeSet::new();
    let mut systems = BTreeSet::new();
    for element in elements.iter().filter(|element| element.has_class("system")) {
        let classes: Vec<&str> = element.attribute("class").unwrap().split(' ').collect();
        looks.insert((classes[1], classes[2]));
        systems.insert(classes[1]);
    }
    assert_eq!(looks.len(), systems.len(), "{looks:?}");
    let with = |colour| looks.iter().filter(|(_, class)| *class == colour).count();
    assert_eq!((with("forebay"), with("limit")), (1, 1), "{looks:?}");
}

#[test]
fn the_page_asks_for_nothing_else() {
    let (_, page) = synthetic_page("alone");
    for foreign in [
        "http://",
        "https://",
        "//cdn",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    for element in document::read(&page) {
        for name in ["src", "data", "action", "srcset", "poster"] {
            assert!(element.attribute(name).is_none(), "{element:?}");
        }
        let target = element.attribute("href").unwrap_or("#");
        assert!(target.starts_with('#'), "{element:?}");
        assert!(element.name != "link" && element.name != "iframe", "{element:?}");
    }
    assert!(page.contains("default-src 'none'"), "a browser holds it to that");
}

#[test]
fn whatever_a_result_holds_is_text() {
    let (_, page) = synthetic_page("hostile");
    let elements = document::read(&page);
    assert_eq!(texts(&elements, "script").len(), 1, "only our own");
    let cells = texts(&elements, "td");
    assert!(cells.contains(&HOSTILE), "it is shown as it is");
    assert_eq!(
        page.matches("{{").count(),
        page.matches("&amp;amp;&#39;{{").count(),
        "nothing is filled in twice"
    );
}

#[test]
fn the_same_results_give_the_same_page() {
    let (out, first) = synthetic_page("same");
    let again = report(&out.with_file_name("results"), &out.with_file_name("again.html"));
    assert_eq!(first, again);
}

#[test]
fn without_results_it_says_how_to_get_some() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(folder.path());
    assert!(
        error.contains("no results in") && error.contains("cargo xtask lab"),
        "{error}"
    );
}

#[test]
fn results_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    synthetic::write(folder.path());
    std::fs::write(folder.path().join("loader.jsonl"), "{\"case\": 1}\n").unwrap();
    let error = refused(folder.path());
    assert!(
        error.contains("loader.jsonl") && error.contains("line 1") && error.contains("measure"),
        "{error}"
    );
}

#[test]
fn results_of_a_lab_that_kept_less_are_shown_with_what_they_have() {
    let folder = tempfile::tempdir().unwrap();
    synthetic::write(folder.path());
    let path = folder.path().join("batcher.run.json");
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for later in ["about", "yardsticks", "goals", "left_out"] {
        run.as_object_mut().unwrap().remove(later).unwrap();
    }
    std::fs::write(&path, run.to_string()).unwrap();
    let page = report(folder.path(), &folder.path().join("report.html"));
    document::read(&page);
    let batcher = section(&page, "batcher");
    assert!(
        batcher.contains("Its goals were not kept with this run"),
        "{batcher:.3000}"
    );
    assert!(batcher.contains("0123456789ab"));
}
