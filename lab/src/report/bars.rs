//! Bars: a group a case, a bar a system, each with its name before it and its figure behind it.
//!
//! Promises: bars begin at zero, so that lengths compare; where figures differ so much that the short ones could not be seen,
//! marks on a logarithmic axis stand for bars and the axis says so. Whiskers reach from the least to the most of all rounds.
//! Knows nothing of scenarios.

use super::look::Looks;
use super::markup::{Anchor, Drawing, shortened, width_of};
use super::plan::Bars;
use super::scale::{BARS_RATIO_MAX, Scale, compact};
use super::words::{point_title, summary};
use crate::measurement::Series;
use crate::scenario::FOREBAY;

const LETTER: f64 = 12.0;
const ROW: f64 = 20.0;
const THICKNESS: f64 = 12.0;
/// A group's case stands above its bars.
const HEAD: f64 = 28.0;
const AXIS: f64 = 44.0;

/// Both drawings; the style sheet shows the one that fits.
pub(super) fn draw(plot: &Bars<'_>, looks: &Looks, id: &str) -> String {
    draw_wide(plot, looks, id) + &draw_in(340.0, plot, looks, "narrow", &format!("{id}-narrow"))
}

/// The drawing for a wide place alone.
pub(super) fn draw_wide(plot: &Bars<'_>, looks: &Looks, id: &str) -> String {
    draw_in(640.0, plot, looks, "wide", &format!("{id}-wide"))
}

fn draw_in(width: f64, plot: &Bars<'_>, looks: &Looks, class: &str, id: &str) -> String {
    let bars = || plot.groups.iter().flat_map(|(_, group)| group.iter().copied());
    let all = || bars().chain(plot.level);
    let names = bars()
        .map(|series| width_of(&series.system, LETTER))
        .fold(0.0, f64::max);
    let left = (names + 14.0).min(width * 0.4);
    let figures = bars()
        .map(|series| width_of(&compact(series.median()), LETTER))
        .fold(0.0, f64::max);
    let right = width - figures - 14.0;
    let ends: Vec<f64> = all().flat_map(|series| [series.min(), series.max()]).collect();
    let scale = Scale::fit(ends.iter().copied(), BARS_RATIO_MAX, left, right);
    let rows = bars().count() as f64;
    let bottom = plot.groups.len() as f64 * HEAD + rows * ROW + 4.0;
    let mut drawing = Drawing::new(width, bottom + AXIS);

    draw_axis(&mut drawing, &scale, (left, right), bottom, width, plot);
    if let Some(level) = plot.level {
        let x = scale.place(level.median());
        let look = looks.of(&level.system);
        drawing.group(&look.group(), Some(&point_title(level)), |drawing| {
            drawing.line("hit", (x, 0.0), (x, bottom));
            drawing.line("level", (x, 0.0), (x, bottom));
        });
    }
    let mut y = 0.0;
    for (case, group) in &plot.groups {
        let case = shortened(case, LETTER * 1.06, width);
        drawing.text("case", Anchor::Start, (0.0, y + 20.0), &case);
        y += HEAD;
        for series in group {
            draw_bar(&mut drawing, &scale, left, y, looks, series);
            y += ROW;
        }
    }
    let title = format!("{} by case", plot.metric);
    let description = summary(&title, all());
    drawing.finish(class, id, &title, &description)
}

fn draw_axis(
    drawing: &mut Drawing,
    scale: &Scale,
    (left, right): (f64, f64),
    bottom: f64,
    width: f64,
    plot: &Bars<'_>,
) {
    let mut free_from = f64::NEG_INFINITY;
    for tick in scale.ticks(if width < 500.0 { 3 } else { 6 }) {
        let (x, text) = (scale.place(tick), compact(tick));
        drawing.line("grid", (x, 0.0), (x, bottom));
        let half = width_of(&text, LETTER) / 2.0;
        if x - half >= free_from {
            drawing.text("tick", Anchor::Middle, (x, bottom + 15.0), &text);
            free_from = x + half + 4.0;
        }
    }
    drawing.line("axis", (scale.origin(), 0.0), (scale.origin(), bottom));
    let kind = if scale.is_logarithmic() { ", logarithmic" } else { "" };
    let middle = f64::midpoint(left, right);
    let name = format!("{}{kind}", plot.unit);
    let name = shortened(&name, LETTER, 2.0 * middle.min(width - middle));
    drawing.text("name", Anchor::Middle, (middle, bottom + 33.0), &name);
}

fn draw_bar(drawing: &mut Drawing, scale: &Scale, left: f64, y: f64, looks: &Looks, series: &Series) {
    let look = looks.of(&series.system);
    let middle = y + ROW / 2.0;
    let (origin, end) = (scale.origin(), scale.place(series.median()));
    let (least, most) = (scale.place(series.min()), scale.place(series.max()));
    let ours = if series.system == FOREBAY { " ours" } else { "" };
    drawing.group(&look.group(), Some(&point_title(series)), |drawing| {
        drawing.line("hit", (left, middle), (most.max(end), middle));
        let name = shortened(&series.system, LETTER, left - 10.0);
        drawing.text(&format!("label{ours}"), Anchor::End, (left - 8.0, middle + 4.0), &name);
        if scale.is_logarithmic() {
            drawing.line("thread", (left, middle), (end, middle));
        } else {
            let length = (end - origin).abs();
            // A bar of no length would not be seen to be there.
            let bar = (origin.min(end), middle - THICKNESS / 2.0);
            drawing.rectangle("bar", bar, (length.max(1.0), THICKNESS));
        }
        drawing.line("whisker", (least, middle), (most, middle));
        for x in [least, most] {
            drawing.line("whisker", (x, middle - 3.5), (x, middle + 3.5));
        }
        if scale.is_logarithmic() {
            drawing.mark("mark", look.mark, (end, middle));
        }
        let behind = most.max(end) + 8.0;
        drawing.text(
            &format!("figure{ours}"),
            Anchor::Start,
            (behind, middle + 4.0),
            &compact(series.median()),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(system: &str, values: &[f64]) -> Series {
        Series {
            case: "case".into(),
            system: system.into(),
            metric: "rate".into(),
            unit: "rows/s".into(),
            values: values.to_vec(),
        }
    }

    fn drawn(all: &[Series], level: Option<&Series>) -> String {
        let plot = Bars {
            metric: "rate",
            unit: "rows/s",
            groups: vec![("case", all.iter().collect())],
            level,
            omitted: 0,
        };
        let mut looks = Looks::default();
        looks.add(
            &all.iter()
                .chain(level)
                .map(|series| &*series.system)
                .collect::<Vec<_>>(),
        );
        draw_in(640.0, &plot, &looks, "wide", "id")
    }

    /// The values of an attribute of the elements of this class.
    fn places(drawing: &str, element: &str, attribute: &str) -> Vec<f64> {
        let elements = drawing.lines().filter(|line| line.starts_with(element));
        elements
            .map(|line| {
                let (_, behind) = line.split_once(&format!(" {attribute}=\"")).unwrap();
                behind.split_once('"').unwrap().0.parse().unwrap()
            })
            .collect()
    }

    #[test]
    fn bars_begin_at_zero_and_compare_by_length() {
        let drawing = drawn(
            &[series("forebay", &[100.0, 90.0, 130.0]), series("peer", &[50.0])],
            None,
        );
        let (from, length) = (
            places(&drawing, "<rect class=\"bar\"", "x"),
            places(&drawing, "<rect class=\"bar\"", "width"),
        );
        assert_eq!(from[0], from[1], "{drawing}");
        for words in ["case", "forebay", "100", "peer", "50", "rows/s"] {
            assert!(drawing.contains(&format!(">{words}</text>")), "{words}: {drawing}");
        }
        assert!((length[0] - 2.0 * length[1]).abs() < 0.1, "{length:?}");
        let (least, most) = (
            places(&drawing, "<line class=\"whisker\"", "x1")[0],
            places(&drawing, "<line class=\"whisker\"", "x2")[0],
        );
        let scale = length[0] / 100.0;
        assert!((least - from[0] - 90.0 * scale).abs() < 0.1, "the least of all rounds");
        assert!((most - from[0] - 130.0 * scale).abs() < 0.1, "the most");
        assert!(!drawing.contains("logarithmic"));
    }

    #[test]
    fn what_could_not_be_seen_as_a_bar_is_a_mark_on_an_axis_that_says_so() {
        let drawing = drawn(&[series("forebay", &[1e6]), series("peer", &[10.0])], None);
        assert!(
            drawing.contains("rows/s, logarithmic") && !drawing.contains("<rect"),
            "{drawing}"
        );
        assert_eq!(drawing.matches("<path class=\"mark\"").count(), 2);
    }

    #[test]
    fn the_limit_is_a_line_across_where_it_was_measured_elsewhere() {
        let limit = series("limit", &[200.0]);
        let drawing = drawn(&[series("forebay", &[100.0])], Some(&limit));
        let bar = places(&drawing, "<rect class=\"bar\"", "width")[0];
        let from = places(&drawing, "<rect class=\"bar\"", "x")[0];
        let at = places(&drawing, "<line class=\"level\"", "x1")[0];
        assert!((at - from - 2.0 * bar).abs() < 0.1, "{drawing}");
    }
}
