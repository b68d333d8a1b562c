//! Line plots: a line a system over a number that grows, with whiskers from the least to the most of all rounds.
//!
//! Promises: every point is a measured median at its place, and says its figures when pointed at; the numbers that were
//! measured are those at the axis, as far as they do not touch. Lines are named at their end where there is room. Knows
//! nothing of scenarios.

use super::look::Looks;
use super::markup::{Anchor, Drawing, shortened, width_of};
use super::plan::{Lines, Point};
use super::scale::{POINTS_RATIO_MAX, Scale, compact};
use super::words::{point_title, summary};
use crate::measurement::Series;
use crate::scenario::FOREBAY;

/// Of letters, in units of the drawing.
const LETTER: f64 = 12.0;
const LABEL_HEIGHT: f64 = 15.0;

/// What differs between the drawing for a wide place and that for a narrow one.
#[derive(Debug, Clone, Copy)]
struct Room {
    width: f64,
    height: f64,
    /// For the names of lines; none where only the legend names them.
    labels: f64,
}

const WIDE: Room = Room {
    width: 640.0,
    height: 330.0,
    labels: 200.0,
};
const NARROW: Room = Room {
    width: 340.0,
    height: 270.0,
    labels: 0.0,
};

/// Both drawings; the style sheet shows the one that fits.
pub(super) fn draw(plot: &Lines<'_>, looks: &Looks, id: &str) -> String {
    draw_wide(plot, looks, id) + &draw_in(NARROW, plot, looks, "narrow", &format!("{id}-narrow"))
}

/// Where things are.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    across: Scale,
    up: Scale,
}

impl Frame {
    fn of(room: Room, plot: &Lines<'_>) -> Self {
        let points = || plot.lines.iter().flat_map(|(_, points)| points);
        let series = || points().map(|point| point.series).chain(plot.levels.iter().copied());
        let (top, bottom) = (10.0, room.height - 44.0);
        let figures: Vec<f64> = series().flat_map(|series| [series.min(), series.max()]).collect();
        let up = if plot.unit == "%" {
            // Parts of a whole are seen as such: twice as much of little is little.
            Scale::linear(figures.iter().copied(), bottom, top)
        } else {
            Scale::fit(figures.iter().copied(), POINTS_RATIO_MAX, bottom, top)
        };
        let widest = up
            .ticks(5)
            .into_iter()
            .map(|tick| width_of(&compact(tick), LETTER))
            .fold(0.0, f64::max);
        let labels = if room.labels > 0.0 {
            labels_of(plot)
                .iter()
                .map(|label| label.width() + 22.0)
                .fold(20.0, f64::max)
                .min(room.labels)
        } else {
            16.0
        };
        let (left, right) = (widest + 10.0, room.width - labels);
        let numbers: Vec<f64> = points().map(|point| point.at).collect();
        let across = across(&numbers, left + 12.0, right - 12.0);
        Self {
            left,
            right,
            top,
            bottom,
            across,
            up,
        }
    }

    fn place(&self, point: &Point<'_>) -> (f64, f64) {
        (self.across.place(point.at), self.up.place(point.series.median()))
    }
}

/// Numbers that grow by factors are a factor apart; others begin at zero.
fn across(numbers: &[f64], from: f64, to: f64) -> Scale {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Scale::along(low, high, from, to)
}

/// The drawing for a wide place alone.
pub(super) fn draw_wide(plot: &Lines<'_>, looks: &Looks, id: &str) -> String {
    draw_in(WIDE, plot, looks, "wide", &format!("{id}-wide"))
}

fn draw_in(room: Room, plot: &Lines<'_>, looks: &Looks, class: &str, id: &str) -> String {
    let frame = Frame::of(room, plot);
    let mut drawing = Drawing::new(room.width, room.height);
    draw_axes(&mut drawing, &frame, plot);
    for level in &plot.levels {
        draw_level(&mut drawing, &frame, looks, level);
    }
    // Forebay last, on top of the others.
    let mut lines: Vec<_> = plot.lines.iter().collect();
    lines.sort_by_key(|(system, _)| *system == FOREBAY);
    for (system, points) in lines {
        let look = looks.of(system);
        drawing.group(&look.group(), None, |drawing| {
            let places: Vec<_> = points.iter().map(|point| frame.place(point)).collect();
            if places.len() > 1 {
                drawing.curve("curve", &places);
            }
            for point in points {
                draw_point(drawing, &frame, look.mark, point);
            }
        });
    }
    if room.labels > 0.0 {
        draw_labels(&mut drawing, &frame, room, plot, looks);
    }
    let series: Vec<&Series> = plot
        .lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|point| point.series))
        .collect();
    let title = format!("{} by {}", plot.metric, plot.axis);
    let description = summary(&title, series.into_iter().chain(plot.levels.iter().copied()));
    drawing.finish(class, id, &title, &description)
}

fn draw_axes(drawing: &mut Drawing, frame: &Frame, plot: &Lines<'_>) {
    for tick in frame.up.ticks(5) {
        let y = frame.up.place(tick);
        drawing.line("grid", (frame.left, y), (frame.right, y));
        drawing.text("tick", Anchor::End, (frame.left - 6.0, y + 4.0), &compact(tick));
    }
    drawing.line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
    let mut numbers: Vec<f64> = plot
        .lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|point| point.at))
        .collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let mut free_from = f64::NEG_INFINITY;
    for number in numbers {
        let (x, text) = (frame.across.place(number), compact(number));
        drawing.line("axis", (x, frame.bottom), (x, frame.bottom + 4.0));
        let half = width_of(&text, LETTER) / 2.0;
        if x - half >= free_from {
            drawing.text("tick", Anchor::Middle, (x, frame.bottom + 17.0), &text);
            free_from = x + half + 4.0;
        }
    }
    let middle = f64::midpoint(frame.left, frame.right);
    let logarithmic = match (frame.across.is_logarithmic(), frame.up.is_logarithmic()) {
        (true, true) => ", both axes logarithmic",
        (true, false) => ", logarithmic",
        (false, true) => "; figures logarithmic",
        (false, false) => "",
    };
    let name = format!("{}{logarithmic}", plot.axis);
    let name = shortened(&name, LETTER, frame.right - frame.left);
    drawing.text("name", Anchor::Middle, (middle, frame.bottom + 35.0), &name);
}

fn draw_level(drawing: &mut Drawing, frame: &Frame, looks: &Looks, level: &Series) {
    let look = looks.of(&level.system);
    let y = frame.up.place(level.median());
    drawing.group(&look.group(), Some(&point_title(level)), |drawing| {
        drawing.line("hit", (frame.left, y), (frame.right, y));
        drawing.line("level", (frame.left, y), (frame.right, y));
        let x = frame.right - 3.5;
        draw_whisker(drawing, frame, x, level);
    });
}

fn draw_point(drawing: &mut Drawing, frame: &Frame, mark: &str, point: &Point<'_>) {
    let (x, y) = frame.place(point);
    drawing.group("point", Some(&point_title(point.series)), |drawing| {
        drawing.mark("hit", "M-11 0a11 11 0 1 0 22 0a11 11 0 1 0-22 0z", (x, y));
        draw_whisker(drawing, frame, x, point.series);
        drawing.mark("mark", mark, (x, y));
    });
}

fn draw_whisker(drawing: &mut Drawing, frame: &Frame, x: f64, series: &Series) {
    let (least, most) = (frame.up.place(series.min()), frame.up.place(series.max()));
    drawing.line("whisker", (x, least), (x, most));
    for y in [least, most] {
        drawing.line("whisker", (x - 3.5, y), (x + 3.5, y));
    }
}

/// A name at the end of a line.
struct Label<'a> {
    system: &'a str,
    /// The system, or the case where the system has a line as well.
    name: &'a str,
    figure: String,
    series: &'a Series,
    /// None for a level, which ends at the right.
    at: Option<f64>,
}

impl Label<'_> {
    fn width(&self) -> f64 {
        // A letter more, for Forebay's are heavy.
        width_of(self.name, LETTER) + width_of(&self.figure, LETTER) + LETTER
    }

    /// Both parts; if one has to be shorter, it is the name.
    fn text(&self, width: f64) -> String {
        let name = shortened(self.name, LETTER, width - width_of(&self.figure, LETTER) - LETTER / 2.0);
        format!("{name} {}", self.figure)
    }
}

fn labels_of<'a>(plot: &Lines<'a>) -> Vec<Label<'a>> {
    let lines = plot.lines.iter().filter_map(|(system, points)| {
        let last = points.last()?;
        Some((*system, *system, last.series, Some(last.at)))
    });
    let has_line = |name: &str| plot.lines.iter().any(|(system, _)| *system == name);
    let levels = plot.levels.iter().map(|level| {
        let name = if has_line(&level.system) {
            &level.case
        } else {
            &level.system
        };
        (&*level.system, &**name, *level, None)
    });
    lines
        .chain(levels)
        .map(|(system, name, series, at)| Label {
            system,
            name,
            figure: compact(series.median()),
            series,
            at,
        })
        .collect()
}

fn draw_labels(drawing: &mut Drawing, frame: &Frame, room: Room, plot: &Lines<'_>, looks: &Looks) {
    let height = |label: &Label<'_>| frame.up.place(label.series.median());
    let end = |label: &Label<'_>| label.at.map_or(frame.right, |at| frame.across.place(at));
    let curves: Vec<Vec<(f64, f64)>> = plot
        .lines
        .iter()
        .map(|(_, points)| points.iter().map(|point| frame.place(point)).collect())
        .collect();
    let mut right = Vec::new();
    for label in labels_of(plot) {
        let (x, width) = (end(&label) + 11.0, label.width());
        // Beside a point that is not at the right end, where no curve runs through the words; a name farther away would
        // seem to be another point's.
        let free = [0.0, 13.0, -13.0]
            .into_iter()
            .map(|away| height(&label) + 4.0 + away)
            .filter(|y| (frame.top + LETTER..frame.bottom).contains(y) && x + width < frame.right)
            .find(|y| !curves.iter().any(|curve| crosses(curve, (x, *y), width)));
        match free {
            Some(y) => drawing.group(&looks.of(label.system).group(), None, |drawing| {
                drawing.text(class_of(&label), Anchor::Start, (x, y), &label.text(width));
            }),
            None => right.push(label),
        }
    }
    // More than fit would touch; the legend has them all.
    right.truncate(((frame.bottom - frame.top) / LABEL_HEIGHT) as usize);
    right.sort_by(|one, other| height(one).total_cmp(&height(other)));
    let wanted: Vec<f64> = right.iter().map(height).collect();
    let places = apart(&wanted, frame.top + 4.0, frame.bottom);
    for (label, y) in right.iter().zip(places) {
        let look = looks.of(label.system);
        drawing.group(&look.group(), Some(&point_title(label.series)), |drawing| {
            // From far away it would cross the others.
            if end(label) > frame.right - 13.0 {
                let from = end(label) + if label.at.is_some() { 6.0 } else { 0.0 };
                drawing.line("leader", (from, height(label)), (frame.right + 8.0, y));
            }
            drawing.mark("mark", look.mark, (frame.right + 13.0, y));
            let text = label.text(room.width - frame.right - 22.0);
            drawing.text(class_of(label), Anchor::Start, (frame.right + 22.0, y + 4.0), &text);
        });
    }
}

/// Whether a curve runs through words of this width that begin there.
fn crosses(curve: &[(f64, f64)], (left, base): (f64, f64), width: f64) -> bool {
    const STEPS: u32 = 64;
    let is_inside = |x: f64, y: f64| (left..left + width).contains(&x) && (base - LETTER..base + 4.0).contains(&y);
    curve.windows(2).any(|ends| {
        let [(x1, y1), (x2, y2)] = [ends[0], ends[1]];
        (0..=STEPS).any(|step| {
            let share = f64::from(step) / f64::from(STEPS);
            is_inside(x1 + share * (x2 - x1), y1 + share * (y2 - y1))
        })
    })
}

fn class_of(label: &Label<'_>) -> &'static str {
    if label.system == FOREBAY { "label ours" } else { "label" }
}

/// Places near the wanted ones, which are in order, a label's height apart.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    let mut free_from = top;
    for place in wanted {
        let place = place.max(free_from);
        places.push(place);
        free_from = place + LABEL_HEIGHT;
    }
    // What was pushed below the end pushes back.
    let mut free_to = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(free_to);
        free_to = *place - LABEL_HEIGHT;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch_and_stay_inside() {
        for wanted in [
            &[50.0, 50.0, 50.0][..],
            &[10.0, 11.0, 200.0, 201.0, 202.0],
            &[299.0, 300.0, 300.0],
            &[],
        ] {
            let places = apart(wanted, 10.0, 300.0);
            assert_eq!(places.len(), wanted.len());
            assert!(places.iter().all(|place| (10.0..=300.0).contains(place)), "{places:?}");
            assert!(
                places.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT - 1e-9),
                "{places:?}"
            );
        }
        assert_eq!(apart(&[20.0, 100.0], 10.0, 300.0), [20.0, 100.0], "no need, no move");
    }

    #[test]
    fn words_that_a_curve_runs_through_are_seen() {
        let curve = [(0.0, 0.0), (100.0, 100.0)];
        assert!(crosses(&curve, (40.0, 55.0), 30.0));
        assert!(!crosses(&curve, (40.0, 30.0), 20.0), "above it");
        assert!(!crosses(&curve, (40.0, 90.0), 20.0), "below it");
        assert!(!crosses(&curve[..1], (0.0, 0.0), 20.0), "a point is no curve");
    }

    fn drawn(room: Room) -> String {
        drawn_with("rows/s", 0.0, room)
    }

    /// The limit is `limit` + 4, 5 and 7.
    fn drawn_with(unit: &'static str, limit: f64, room: Room) -> String {
        let series: Vec<Series> = [
            ("forebay", 1.0),
            ("forebay", 10.0),
            ("forebay", 100.0),
            ("peer", 100.0),
            ("limit", limit),
        ]
        .map(|(system, at)| Series {
            case: format!("{at} callers"),
            system: system.into(),
            metric: "rate".into(),
            unit: unit.into(),
            values: vec![at + 4.0, at + 5.0, at + 7.0],
        })
        .into();
        let point = |at: usize| Point {
            at: 10f64.powi(at as i32),
            series: &series[at],
        };
        let peer = Point {
            at: 100.0,
            series: &series[3],
        };
        let plot = Lines {
            metric: "rate",
            unit,
            axis: "callers".to_owned(),
            lines: vec![("forebay", vec![point(0), point(1), point(2)]), ("peer", vec![peer])],
            levels: vec![&series[4]],
        };
        let mut looks = Looks::default();
        looks.add(&["forebay", "peer", "limit"]);
        draw_in(room, &plot, &looks, "wide", "id")
    }

    #[test]
    fn every_point_says_its_figures_and_lines_have_names_where_there_is_room() {
        let wide = drawn(WIDE);
        for title in [
            "forebay, 1 callers\nrate 6.00 rows/s\nfrom 5.00 to 8.00 in 3 rounds",
            "peer, 100 callers",
            "limit, 0 callers",
        ] {
            assert!(wide.contains(&format!("<title>{title}")), "{title}: {wide}");
        }
        assert_eq!(wide.matches("<g class=\"point\">").count(), 4);
        assert_eq!(wide.matches("<polyline").count(), 1, "a single point has no line");
        for number in ["1", "10", "100"] {
            let tick = format!("text-anchor=\"middle\">{number}</text>");
            assert!(
                wide.contains(&tick),
                "the numbers measured are those at the axis: {wide}"
            );
        }
        for label in ["forebay 105", "peer 105", "limit 5"] {
            assert!(wide.contains(&format!(">{label}</text>")), "{label}: {wide}");
            assert!(
                !drawn(NARROW).contains(&format!(">{label}</text>")),
                "the legend names them"
            );
        }
        let (peer, forebay) = (wide.find("<title>peer").unwrap(), wide.find("<polyline").unwrap());
        assert!(peer < forebay, "Forebay lies on top");
    }

    #[test]
    fn whiskers_reach_from_the_least_to_the_most() {
        let wide = drawn(WIDE);
        let place = |class: &str, name: &str| -> Vec<f64> {
            let lines = wide
                .lines()
                .filter(|line| line.starts_with(&format!("<line class=\"{class}\"")));
            let value = |line: &str| {
                line.split_once(&format!(" {name}=\""))
                    .unwrap()
                    .1
                    .split_once('"')
                    .unwrap()
                    .0
                    .parse()
                    .unwrap()
            };
            lines.map(value).collect()
        };
        // The level is drawn first.
        let (from, to) = (place("whisker", "y1"), place("whisker", "y2"));
        let (level_low, level_high, level) = (from[0], to[0], place("level", "y1")[0]);
        assert!(
            level_low > level && level > level_high,
            "{level_low} {level} {level_high}"
        );
        assert!(
            (2.0 * (level_low - level) - (level - level_high)).abs() < 0.1,
            "4, 5 and 7 in proportion"
        );
    }

    #[test]
    fn parts_of_a_whole_begin_at_zero_however_much_they_differ() {
        let says_logarithmic = |unit| drawn_with(unit, -3.9, WIDE).contains("both axes logarithmic");
        assert!(says_logarithmic("rows/s"));
        assert!(!says_logarithmic("%"));
    }
}
