//! Markup: text that cannot break out of where it is put, and the few SVG elements that plots are made of.
//!
//! Promises: whatever a text holds, the document around it stays what it was. Knows nothing of plots or pages.

use std::fmt::Display;

/// Around a drawing that stands alone.
const MARGIN: f64 = 14.0;
/// The height of its heading.
const HEADING: f64 = 20.0;

/// Text for between tags and for quoted attributes. What no document may hold is shown as U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// About how wide a text is in letters of this size: fonts differ, so it is rather too much.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let ems = text.chars().map(|letter| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ' ' | '\'' | '|' | ':' | ';' => 0.34,
        'm' | 'w' | 'M' | 'W' | '%' | '…' | '@' => 0.97,
        '<' | '>' | '&' | '+' | '=' | '~' | '#' => 0.84,
        'A'..='Z' => 0.7,
        _ if letter.is_ascii() => 0.59,
        _ => 0.8,
    });
    ems.sum::<f64>() * size
}

/// The text, with an ellipsis where it gets wider than this.
pub(super) fn shortened(text: &str, size: f64, width_max: f64) -> String {
    if width_of(text, size) <= width_max {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if width_of(&short, size) + width_of("…", size) > width_max {
            short.pop();
            break;
        }
    }
    format!("{}…", short.trim_end())
}

/// A coordinate: a hundredth is finer than any screen, and the same on every machine.
pub(super) fn place(coordinate: f64) -> String {
    let text = format!("{coordinate:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A drawing that is being made.
#[derive(Debug)]
pub(super) struct Drawing {
    width: f64,
    height: f64,
    body: String,
}

/// What side of its place a text is on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Drawing {
    /// An empty one.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(place);
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A rectangle.
    pub(super) fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let [x, y, width, height] = [x, y, width, height].map(place);
        let round = r#"rx="1.5""#;
        self.add(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}" {round}/>"#
        ));
    }

    /// A line through points.
    pub(super) fn curve(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", place(*x), place(*y)))
            .collect();
        self.add(format_args!(
            r#"<polyline class="{class}" points="{}"/>"#,
            points.join(" ")
        ));
    }

    /// A path around a point.
    pub(super) fn mark(&mut self, class: &str, path: &str, (x, y): (f64, f64)) {
        let (x, y) = (place(x), place(y));
        self.add(format_args!(
            r#"<path class="{class}" d="{path}" transform="translate({x} {y})"/>"#
        ));
    }

    /// A text.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y, text) = (place(x), place(y), escape(text));
        self.add(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    /// What is drawn inside belongs together and is named when pointed at.
    pub(super) fn group(&mut self, class: &str, title: Option<&str>, draw: impl FnOnce(&mut Self)) {
        self.add(format_args!(r#"<g class="{class}">"#));
        if let Some(title) = title {
            self.add(format_args!("<title>{}</title>", escape(title)));
        }
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// The drawing as an element with this id, title and description; `class` says when it is shown.
    pub(super) fn finish(self, class: &str, id: &str, title: &str, description: &str) -> String {
        let (width, height) = (place(self.width), place(self.height));
        let (title, description, body) = (escape(title), escape(description), self.body);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-title {id}-description\">\n\
             <title id=\"{id}-title\">{title}</title>\n<desc id=\"{id}-description\">{description}</desc>\n{body}</svg>\n"
        )
    }

    /// The drawing as an element that says nothing which is not said beside it.
    pub(super) fn ornament(self, class: &str) -> String {
        let (width, height) = (place(self.width), place(self.height));
        let body = self.body;
        format!("<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" aria-hidden=\"true\">\n{body}</svg>")
    }

    fn add(&mut self, element: impl Display) {
        self.body += &format!("{element}\n");
    }
}

/// A drawing as a document of its own, under this heading, on a card, in this style. It begins as [`Drawing::finish`] lets it.
pub(super) fn stand_alone(drawing: &str, heading: &str, style: &str) -> String {
    let (opening, body) = drawing
        .split_once('\n')
        .expect("a drawing's element begins with a line of its own");
    let opening = opening.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1);
    // Room around what was drawn: on the report's page the card has it.
    let (before, view) = opening.split_once("viewBox=\"0 0 ").expect("a drawing has a view");
    let (size, after) = view.split_once('"').expect("attributes are quoted");
    let size: Vec<f64> = size
        .split(' ')
        .map(|side| side.parse().expect("sides are numbers"))
        .collect();
    let (width, height) = (place(size[0] + 2.0 * MARGIN), place(size[1] + 2.0 * MARGIN + HEADING));
    let (left, top) = (place(-MARGIN), place(-MARGIN - HEADING));
    let heading = escape(heading);
    format!(
        "{before}width=\"{width}\" height=\"{height}\" viewBox=\"{left} {top} {width} {height}\"{after}\n\
         <style>\n{style}</style>\n\
         <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"var(--card)\"/>\n\
         <text class=\"name\" x=\"0\" y=\"-13\">{heading}</text>\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_text() {
        assert_eq!(
            escape("<script a='1' b=\"2\">&amp;\u{0}\u{1b}\n"),
            "&lt;script a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;amp;\u{fffd}\u{fffd}\n"
        );
        let mut drawing = Drawing::new(10.0, 10.0);
        drawing.group("a", Some("</g>"), |drawing| {
            drawing.text("b", Anchor::End, (0.0, -0.001), "</text>");
        });
        let text = drawing.finish("wide", "id", "</title>", "</desc>");
        for tag in ["</g>", "</text>", "</desc>"] {
            assert_eq!(text.matches(tag).count(), 1, "{text}");
        }
        assert_eq!(text.matches("</title>").count(), 2, "{text}");
        assert!(text.contains(r#"y="0""#), "{text}");
    }

    #[test]
    fn a_text_that_is_too_wide_is_shortened_to_its_width() {
        assert_eq!(shortened("forebay", 12.0, 200.0), "forebay");
        let short = shortened("a system with a long name", 12.0, 60.0);
        assert!(short.ends_with('…') && width_of(&short, 12.0) <= 60.0, "{short}");
        assert_eq!(shortened("wide", 12.0, 0.0), "…");
    }
}
