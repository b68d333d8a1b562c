//! PostgreSQL's regular expressions (Henry Spencer's advanced regular expressions) and the functions over them.
//!
//! Promises: the match is the one that PostgreSQL finds: of those that start first the longest, or the shortest where the expression
//! prefers that, with groups as PostgreSQL's rules place them. What cannot be answered is refused by name: back references, lookaround,
//! named collating elements, basic expressions.
//!
//! How: `syntax` reads the expression as PostgreSQL does. Whether there is a match and where the first starts does not depend on
//! preferences; the `regex` crate finds it in linear time. Where it ends, `program` says; which part is which group, `tree`. Both
//! run only when a caller asks for the extent of a match.

mod functions;
mod program;
mod similar;
mod syntax;
mod tree;

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

pub(crate) use functions::FUNCTIONS;
pub use functions::{Found, matches, split};
pub use similar::similar_to_escape;
pub use syntax::Options;

use crate::{Result, interruption};
use program::Language;
use syntax::Assertion;
use tree::{Dissection, Spans, Tree};

/// An expression, ready to match.
#[derive(Debug)]
pub(super) struct Expression {
    tree: Tree,
    groups: usize,
    newline_anchors: bool,
    /// The same language for the `regex` crate; None if it has no words for it (its words have other letters) or finds it too large.
    fast: Option<regex::Regex>,
}

/// How many expressions a thread keeps.
const KEPT_MAX: usize = 64;

impl Expression {
    /// The expression of a text, maybe an earlier one.
    pub(super) fn of(text: &str, options: Options) -> Result<Rc<Self>> {
        type Kept = Vec<(Options, Box<str>, Rc<Expression>)>;
        thread_local! {
            /// The latest used last.
            static KEPT: RefCell<Kept> = const { RefCell::new(Vec::new()) };
        }
        KEPT.with_borrow_mut(|kept| {
            if let Some(place) = kept.iter().rposition(|row| row.0 == options && *row.1 == *text) {
                if place + 1 < kept.len() {
                    let row = kept.remove(place);
                    kept.push(row);
                }
                return Ok(kept[kept.len() - 1].2.clone());
            }
            let expression = Rc::new(Self::new(text, options)?);
            if kept.len() >= KEPT_MAX {
                kept.remove(0);
            }
            kept.push((options, text.into(), expression.clone()));
            Ok(expression)
        })
    }

    fn new(text: &str, options: Options) -> Result<Self> {
        let read = syntax::parse(text, options)?;
        let tree = Tree::of_alternation(&read.content);
        let newline_anchors = read.options.newline_anchors;
        // Its size is checked here, so that what is too large is refused whatever text it meets.
        tree.machine(newline_anchors)?;
        let mut translation = String::new();
        let fast = translate(tree.language(), newline_anchors, &mut translation)
            .then(|| regex::Regex::new(&translation).ok())
            .flatten();
        Ok(Self {
            tree,
            groups: read.groups,
            newline_anchors,
            fast,
        })
    }

    /// How many groups it has.
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Whether there is a match at all.
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        match &self.fast {
            Some(fast) => Ok(fast.is_match(text)),
            None => Ok(Subject::new(text).find(self, 0, false)?.is_some()),
        }
    }
}

/// A text that is matched, by characters.
pub(super) struct Subject<'a> {
    text: &'a str,
    characters: Vec<char>,
    /// Where each character starts, and where the text ends; nothing if characters are bytes.
    offsets: Vec<usize>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let offsets = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect()
        };
        Self {
            text,
            characters: text.chars().collect(),
            offsets,
        }
    }

    /// The number of characters.
    pub(super) fn length(&self) -> usize {
        self.characters.len()
    }

    /// A part of the text.
    pub(super) fn part(&self, begin: usize, end: usize) -> &'a str {
        &self.text[self.offset(begin)..self.offset(end)]
    }

    fn offset(&self, place: usize) -> usize {
        if self.offsets.is_empty() {
            place
        } else {
            self.offsets[place]
        }
    }

    /// The first match from a place on: it, and its groups if they are wanted.
    pub(super) fn find(&self, expression: &Expression, from: usize, with_groups: bool) -> Result<Option<Spans>> {
        if from > self.length() {
            return Ok(None);
        }
        interruption::check()?;
        let machine = expression.tree.machine(expression.newline_anchors)?;
        let end_of = |begin: usize| {
            if expression.tree.prefers_shortest() {
                machine.shortest(&self.characters, begin, begin, self.length())
            } else {
                machine.longest(&self.characters, begin, self.length())
            }
        };
        let found = match &expression.fast {
            Some(fast) => fast.find_at(self.text, self.offset(from)).map(|found| {
                let begin = if self.offsets.is_empty() {
                    found.start()
                } else {
                    self.offsets.partition_point(|offset| *offset < found.start())
                };
                (begin, end_of(begin).expect("a match starts here"))
            }),
            None => (from..=self.length()).find_map(|begin| Some((begin, end_of(begin)?))),
        };
        // A machine that was interrupted has found nothing, or too little.
        interruption::check()?;
        let Some((begin, end)) = found else { return Ok(None) };
        let mut spans = vec![None; if with_groups { expression.groups + 1 } else { 1 }];
        if with_groups && expression.groups > 0 {
            let dissection = Dissection {
                text: &self.characters,
                newline_anchors: expression.newline_anchors,
            };
            dissection.dissect(&expression.tree, begin, end, &mut spans)?;
            interruption::check()?;
        }
        spans[0] = Some((begin, end));
        Ok(Some(spans))
    }
}

/// Writes a language for the `regex` crate; false if it has no words for it.
fn translate(language: &Language, newline_anchors: bool, out: &mut String) -> bool {
    match language {
        Language::One(set) => {
            if set.is_empty() {
                out.push_str("[^\\x{0}-\\x{10FFFF}]");
                return true;
            }
            out.push('[');
            for (first, last) in set.iter() {
                // Halves of pairs are no characters, here as there.
                let first = if (0xd800..=0xdfff).contains(first) {
                    0xe000
                } else {
                    *first
                };
                let last = if (0xd800..=0xdfff).contains(last) {
                    0xd7ff
                } else {
                    *last
                };
                if first <= last {
                    write!(out, "\\x{{{first:x}}}-\\x{{{last:x}}}").expect("a string takes all");
                }
            }
            out.push(']');
            true
        }
        Language::Assertion(assertion) => {
            out.push_str(match assertion {
                Assertion::LineStart if newline_anchors => "(?m:^)",
                Assertion::LineEnd if newline_anchors => "(?m:$)",
                Assertion::LineStart | Assertion::TextStart => "\\A",
                Assertion::LineEnd | Assertion::TextEnd => "\\z",
                Assertion::WordStart | Assertion::WordEnd | Assertion::WordBoundary | Assertion::NoWordBoundary => {
                    return false;
                }
            });
            true
        }
        Language::Concatenation(parts) => parts.iter().all(|part| translate(part, newline_anchors, out)),
        Language::Alternation(branches) => {
            out.push_str("(?:");
            for (place, branch) in branches.iter().enumerate() {
                if place > 0 {
                    out.push('|');
                }
                if !translate(branch, newline_anchors, out) {
                    return false;
                }
            }
            out.push(')');
            true
        }
        Language::Repetition(part, min, max) => {
            out.push_str("(?:");
            if !translate(part, newline_anchors, out) {
                return false;
            }
            match max {
                Some(max) => write!(out, "){{{min},{max}}}").expect("a string takes all"),
                None => write!(out, "){{{min},}}").expect("a string takes all"),
            }
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_answer_as_postgresql_does() {
        crate::recorded::check(include_str!("recorded.txt"));
    }

    #[test]
    fn what_has_no_answer_is_named() {
        for (pattern, words) in [
            ("(a)\\1", "back references in regular expressions are not supported"),
            ("a(?=b)", "lookaround in regular expressions is not supported"),
            ("(?<!a)b", "lookaround in regular expressions is not supported"),
            ("[[.a.]]", "collating elements in regular expressions are not supported"),
            ("(?b)a", "the regular expression option \"b\" is not supported"),
            (
                "(((a{255}){255}){255}){255}",
                "regular expressions of this size are not supported",
            ),
        ] {
            let error = Expression::of(pattern, Options::default()).expect_err(pattern);
            assert_eq!((error.sqlstate, error.message.as_str()), ("0A000", words), "{pattern}");
        }
    }

    #[test]
    fn rows_of_matches_and_parts() {
        let rows = matches("foobarbequebaz", "(b[^b]+)(b[^b]+)", "g").expect("a plain expression");
        assert_eq!(rows, [[Some("bar".to_owned()), Some("beque".to_owned())]]);
        assert_eq!(
            split("a, b,c", "\\s*,\\s*", ""),
            Ok(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()])
        );
        assert_eq!(split("a", "b", "g").expect_err("all in any case").sqlstate, "22023");
    }

    #[test]
    fn no_expression_overflows_a_stack() {
        for part in ["()", "a*b*?", "(a)*?"] {
            let error = Expression::of(&part.repeat(2000), Options::default()).expect_err(part);
            assert_eq!(error.sqlstate, "0A000");
            let expression = Expression::of(&part.repeat(120), Options::default()).expect(part);
            let spans = Subject::new("b").find(&expression, 0, true).expect("an answer");
            assert!(spans.is_some());
        }
        let nested = format!("{}a{}", "(".repeat(100), ")*".repeat(100));
        let expression = Expression::of(&nested, Options::default()).expect("deep, but not too deep");
        assert!(
            Subject::new("aaa")
                .find(&expression, 0, true)
                .expect("an answer")
                .is_some()
        );
        let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(
            Expression::of(&deep, Options::default()).expect_err("deep").sqlstate,
            "0A000"
        );
    }

    #[test]
    fn long_texts_take_linear_time() {
        let text = "a".repeat(100_000);
        let subject = Subject::new(&text);
        let expression = Expression::of("((a*)*b|a*?c|(a|aa)*$)", Options::default()).expect("a plain expression");
        let spans = subject.find(&expression, 0, false).expect("an answer");
        assert_eq!(spans, Some(vec![Some((0, text.len()))]));
    }
}
