//! Plots of courses: a figure over the seconds of one turn, below what it should stay.
//!
//! Promises: every kept point is on the curve; the highest says its figure; the axes begin at zero. Knows nothing of scenarios.

use super::legend::legend;
use super::look::Looks;
use super::markup::{Anchor, Drawing, escape, width_of};
use super::scale::{Scale, compact};
use crate::figure::figure;
use crate::measurement::CourseOf;

/// Of letters, in units of the drawing.
const LETTER: f64 = 12.0;
const HEIGHT: f64 = 220.0;
const WIDE: f64 = 640.0;
const NARROW: f64 = 340.0;

/// With its caption, in a drawing for a wide place and one for a narrow; the style sheet shows the one that fits.
pub(super) fn plot(of: &CourseOf, looks: &Looks, id: &str) -> String {
    let course = &of.course;
    let drawn = draw_in(WIDE, of, looks, "wide", &format!("{id}-wide"))
        + &draw_in(NARROW, of, looks, "narrow", &format!("{id}-narrow"));
    format!(
        "<figure>\n<figcaption><b>{}</b> by seconds <small>{} · {}, {}</small></figcaption>\n{}<div class=\"plot\">\n{drawn}</div>\n\
         </figure>\n",
        escape(&course.metric),
        escape(&course.unit),
        escape(&of.system),
        escape(&of.case),
        legend(&[&of.system], &[], looks),
    )
}

fn draw_in(width: f64, of: &CourseOf, looks: &Looks, class: &str, id: &str) -> String {
    let (course, points) = (&of.course, of.course.points());
    let bound = course.bound.iter().map(|(_, bound)| *bound);
    let (top, bottom) = (16.0, HEIGHT - 44.0);
    let up = Scale::linear(points.iter().map(|(_, figure)| *figure).chain(bound), bottom, top);
    let widest = up
        .ticks(4)
        .into_iter()
        .map(|tick| width_of(&compact(tick), LETTER))
        .fold(0.0, f64::max);
    let (left, right) = (widest + 10.0, width - 16.0);
    let across = Scale::linear(points.iter().map(|(seconds, _)| *seconds), left, right);
    let mut drawing = Drawing::new(width, HEIGHT);
    for tick in up.ticks(4) {
        let y = up.place(tick);
        drawing.line("grid", (left, y), (right, y));
        drawing.text("tick", Anchor::End, (left - 6.0, y + 4.0), &compact(tick));
    }
    drawing.line("axis", (left, bottom), (right, bottom));
    for tick in across.ticks(6) {
        let x = across.place(tick);
        drawing.line("axis", (x, bottom), (x, bottom + 4.0));
        drawing.text("tick", Anchor::Middle, (x, bottom + 17.0), &compact(tick));
    }
    drawing.text(
        "name",
        Anchor::Middle,
        (f64::midpoint(left, right), bottom + 35.0),
        "seconds",
    );
    if let Some((name, bound)) = &course.bound {
        let y = up.place(*bound);
        drawing.line("bound", (left, y), (right, y));
        let said = format!("{name} {} {}", figure(*bound), course.unit);
        drawing.text("label", Anchor::End, (right, y - 4.0), &said);
    }
    let places: Vec<_> = points
        .iter()
        .map(|(seconds, figure)| (across.place(*seconds), up.place(*figure)))
        .collect();
    let title = format!("{} by seconds, {}, {}", course.metric, of.system, of.case);
    let most = format!("at most {} {}", figure(course.most()), course.unit);
    drawing.group(
        &looks.of(&of.system).group(),
        Some(&format!("{title}\n{most}")),
        |drawing| {
            drawing.curve("curve", &places);
        },
    );
    drawing.finish(class, id, &title, &most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Course;

    #[test]
    fn the_curve_has_every_point_and_the_bound_its_words() {
        let points = [(0.0, 0.0), (1.0, 900.0), (2.0, 1_010.0), (3.0, 950.0)];
        let of = CourseOf {
            system: "forebay".to_owned(),
            case: "cold, <50> readers".to_owned(),
            course: Course::new("resident memory", "MiB", &points).bounded("cap", 1_024.0),
        };
        let mut looks = Looks::default();
        looks.add(&["forebay"]);
        let plot = plot(&of, &looks, "id");
        assert_eq!(plot.matches("<polyline").count(), 2, "wide and narrow");
        let curve = plot.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
        let places: Vec<(f64, f64)> = curve
            .split(' ')
            .map(|place| place.split_once(',').unwrap())
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        assert_eq!(places.len(), 4);
        assert!(places.windows(2).all(|pair| pair[0].0 < pair[1].0), "{places:?}");
        assert!(
            places[2].1 < places[3].1 && places[3].1 < places[1].1,
            "higher is more: {places:?}"
        );
        for said in [
            "cap 1,024 MiB",
            "at most 1,010 MiB",
            "cold, &lt;50&gt; readers",
            "by seconds",
        ] {
            assert!(plot.contains(said), "{said}: {plot}");
        }
    }
}
