//! Plots as plans, told in a line each.

use super::*;
use crate::goal::Key;
use crate::measurement::Reading;

fn measured(figures: &[(&str, &str)]) -> Measurements {
    let mut measurements = Measurements::default();
    for (system, case) in figures {
        measurements.add(system, case, &[Reading::new("rate", "rows/s", 1.0)]);
    }
    measurements
}

/// `lines AXIS: system at number, …; levels` or `bars CASE: system, …`.
fn told(measurements: &Measurements) -> Vec<String> {
    let yardsticks = Yardsticks {
        limit: Some(Key::new("limit", "bulk")),
        forebay: None,
    };
    let told = |plot: &Plot<'_>| match plot {
        Plot::Lines(plot) => {
            let lines = plot.lines.iter().map(|(system, points)| {
                let points: Vec<String> = points.iter().map(|point| point.at.to_string()).collect();
                format!("{system} {}", points.join(" "))
            });
            let levels: Vec<&str> = plot.levels.iter().map(|series| &*series.system).collect();
            format!(
                "{}: {} [{}]",
                plot.axis,
                lines.collect::<Vec<_>>().join(", "),
                levels.join(", ")
            )
        }
        Plot::Bars(plot) => {
            let groups = plot.groups.iter().map(|(case, group)| {
                let systems: Vec<&str> = group.iter().map(|series| &*series.system).collect();
                format!("{case} = {}", systems.join(", "))
            });
            format!(
                "{} [{}]",
                groups.collect::<Vec<_>>().join("; "),
                u8::from(plot.level.is_some())
            )
        }
    };
    plots(measurements, &yardsticks).iter().map(told).collect()
}

#[test]
fn a_number_that_grows_is_an_axis_and_what_stands_alone_a_level() {
    let measurements = measured(&[
        ("limit", "bulk"),
        ("one by one", "1 caller"),
        ("forebay", "1 caller"),
        ("forebay", "1,000 callers"),
        ("forebay", "10 callers"),
        ("by hand", "1,000 callers"),
        ("by hand", "10 callers, unique"),
        ("forebay", "10 callers, unique"),
        ("by hand", "10 callers, unique, 1 % bad"),
        ("forebay", "10 callers, unique, 1 % bad"),
    ]);
    assert_eq!(
        told(&measurements),
        [
            "callers: one by one 1, forebay 1 10 1000, by hand 1000 [limit]",
            "10 callers, unique = by hand, forebay; 10 callers, unique, 1 % bad = by hand, forebay [1]",
        ]
    );
}

#[test]
fn of_two_numbers_the_one_that_makes_lines_varies() {
    let measurements = measured(&[
        ("forebay", "window 1 ms, 10 callers"),
        ("forebay", "window 2 ms, 10 callers"),
        ("forebay", "window 5 ms, 10 callers"),
        ("forebay", "window 1 ms, 20 callers"),
        ("forebay", "window 2 ms, 20 callers"),
        ("forebay", "window 5 ms, 20 callers"),
        ("forebay", "natural"),
    ]);
    assert_eq!(
        told(&measurements),
        [
            "window … ms, 10 callers: forebay 1 2 5 [forebay]",
            "window … ms, 20 callers: forebay 1 2 5 [forebay]",
        ]
    );
    let both_vary = measured(&[
        ("forebay", "window 100 ms, 1,000 callers"),
        ("forebay", "window 50 ms, 4,000 callers"),
        ("forebay", "window 1 ms, 10,000 callers"),
    ]);
    assert_eq!(
        told(&both_vary),
        [
            "window 100 ms, 1,000 callers = forebay; window 50 ms, 4,000 callers = forebay; window 1 ms, 10,000 callers = forebay [0]"
        ]
    );
}

#[test]
fn what_has_no_number_or_too_few_becomes_bars() {
    let cases = [
        "50 clients, prepared",
        "50 clients, simple",
        "1 client, prepared",
        "<script>",
    ];
    let figures: Vec<_> = cases.iter().map(|case| ("forebay", *case)).collect();
    assert_eq!(
        told(&measured(&figures)),
        [
            "50 clients, prepared = forebay; 50 clients, simple = forebay; 1 client, prepared = forebay; <script> = forebay [0]"
        ]
    );
    // Three systems with a number each make no line.
    let apart = measured(&[("a", "1 caller"), ("b", "2 callers"), ("c", "3 callers")]);
    assert_eq!(told(&apart), ["1 caller = a; 2 callers = b; 3 callers = c [0]"]);
}

#[test]
fn every_series_is_in_one_plot_or_counted() {
    let cases: Vec<String> = (0..100).map(|at| format!("case {}", "x".repeat(at))).collect();
    let figures: Vec<_> = cases.iter().map(|case| ("forebay", case.as_str())).collect();
    let measurements = measured(&figures);
    let plots = plots(&measurements, &Yardsticks::default());
    let [Plot::Bars(bars)] = &plots[..] else {
        panic!("{plots:?}");
    };
    assert_eq!((bars.groups.len(), bars.omitted), (60, 40));
}

#[test]
fn no_series_is_lost_between_the_plots() {
    let systems = ["forebay", "limit", "a", "b", "c", "d", "e"];
    let cases = [
        "natural",
        "1 caller",
        "10 callers",
        "20 callers",
        "window 2 ms, 1 caller",
        "window 5 ms, 1 caller",
    ];
    // Every subset of systems and cases that a bit pattern picks.
    for pattern in 1..1_u64 << 10 {
        let pattern = pattern.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pairs = systems
            .iter()
            .flat_map(|system| cases.iter().map(move |case| (*system, *case)));
        let figures: Vec<_> = pairs
            .enumerate()
            .filter(|(at, _)| pattern >> at & 1 == 1)
            .map(|(_, pair)| pair)
            .collect();
        let measurements = measured(&figures);
        let mut seen: Vec<&Series> = Vec::new();
        for plot in plots(&measurements, &Yardsticks::default()) {
            match plot {
                Plot::Lines(plot) => {
                    seen.extend(
                        plot.lines
                            .iter()
                            .flat_map(|(_, points)| points.iter().map(|point| point.series)),
                    );
                    seen.extend(plot.levels);
                }
                Plot::Bars(plot) => {
                    seen.extend(plot.groups.iter().flat_map(|(_, group)| group));
                    seen.extend(plot.level);
                }
            }
        }
        for series in measurements.series() {
            assert!(seen.contains(&series), "{series:?} of {figures:?}");
        }
    }
}

#[test]
fn figures_in_different_units_are_not_on_one_axis() {
    let mut measurements = measured(&[("limit", "bulk"), ("forebay", "10 callers")]);
    measurements.add("forebay", "20 callers", &[Reading::new("rate", "calls/s", 1.0)]);
    assert_eq!(
        told(&measurements),
        ["10 callers = forebay [1]", "20 callers = forebay [0]"]
    );
}

#[test]
fn bars_of_another_size_are_apart_and_the_limit_alone_is_a_level() {
    let mut measurements = Measurements::default();
    for (system, case, value) in [
        ("limit", "bare", 9e6),
        ("forebay", "50 clients, simple", 4e6),
        ("forebay", "1 client, simple", 1e6),
        ("forebay", "slow source", 10.0),
        ("forebay", "50 clients, extended", 2e6),
        ("forebay", "slower source", 3.0),
    ] {
        measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
    }
    assert_eq!(
        told(&measurements),
        [
            "50 clients, simple = forebay; 1 client, simple = forebay; 50 clients, extended = forebay [1]",
            "slow source = forebay; slower source = forebay [0]",
        ]
    );
    let mut measurements = Measurements::default();
    for (system, case, value) in [("limit", "bare", 9e6), ("forebay", "slow source", 10.0)] {
        measurements.add(system, case, &[Reading::new("rate", "rows/s", value)]);
    }
    assert_eq!(
        told(&measurements),
        ["bare = limit [0]", "slow source = forebay [0]"],
        "no level suits"
    );
    measurements.add("peer", "slow source", &[Reading::new("rate", "rows/s", 1e5)]);
    assert_eq!(
        told(&measurements),
        ["slow source = forebay, peer [1]"],
        "logarithmic as it is"
    );
}

#[test]
fn a_limit_of_the_same_case_is_a_bar_beside_the_others() {
    let measurements = measured(&[("limit", "alone"), ("forebay", "alone"), ("forebay", "together")]);
    assert_eq!(told(&measurements), ["alone = limit, forebay; together = forebay [0]"]);
}

#[test]
fn more_levels_than_can_be_told_apart_become_bars() {
    let line = [
        ("forebay", "1 caller"),
        ("forebay", "2 callers"),
        ("forebay", "3 callers"),
    ];
    let few = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "x")];
    let many = [few.as_slice(), &[("e", "y")]].concat();
    let with = |levels: &[(&'static str, &'static str)]| told(&measured(&[line.as_slice(), levels].concat()));
    assert_eq!(with(&few), ["callers: forebay 1 2 3 [a, b, c, d]"]);
    assert_eq!(
        with(&many),
        ["callers: forebay 1 2 3 []", "x = a, d; y = b, e; z = c [0]"]
    );
}
