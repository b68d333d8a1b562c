//! jsonb: a document as a tree, its one text, its order, and what contains what.
//!
//! Promises: [`Value::read`] takes any JSON, so also a stored text that somebody else wrote otherwise; [`Value`] writes itself as
//! PostgreSQL prints jsonb: keys by length, then by bytes; of equal keys the last; numbers as numeric; one space behind `:` and `,`.
//! [`compare`] is total on all texts: those that are no jsonb come behind all that are, by their bytes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;

use super::number;
use super::text::{self, Builder, DEPTH_MAX, Shape, Token};
use crate::{Owned, Result};

/// A document, or a part of one.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value<'a> {
    Null,
    Boolean(bool),
    /// As numeric writes it.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    /// In the order of `key_order`, each key once.
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

/// The order of keys in an object.
pub(crate) fn key_order(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

struct Tree;

impl<'a> Builder<'a> for Tree {
    type Node = Value<'a>;

    fn scalar(&mut self, token: Token<'a>) -> Result<Value<'a>> {
        Ok(match token {
            Token::String(string) => Value::String(text::unquote(string)),
            Token::Number(number) => Value::Number(number::canonical(number)?),
            Token::True => Value::Boolean(true),
            Token::False => Value::Boolean(false),
            Token::Null | Token::Punctuation(_) | Token::End => Value::Null,
        })
    }

    fn array(&mut self, elements: Vec<Value<'a>>) -> Result<Value<'a>> {
        Ok(Value::Array(elements))
    }

    fn object(&mut self, members: Vec<(&'a str, Value<'a>)>) -> Result<Value<'a>> {
        Ok(Value::object(
            members
                .into_iter()
                .map(|(key, value)| (text::unquote(key), value))
                .collect(),
        ))
    }
}

impl<'a> Value<'a> {
    /// Reads JSON.
    pub fn read(text: &'a str) -> Result<Self> {
        text::parse(text, true, &mut Tree)
    }

    /// An object of members in any order, of which the last of a key counts.
    pub fn object(mut members: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        let sorted = members
            .windows(2)
            .all(|pair| key_order(&pair[0].0, &pair[1].0) == Ordering::Less);
        if !sorted {
            // Stable, so that the last of equal keys is still the last.
            members.sort_by(|left, right| key_order(&left.0, &right.0));
            members.reverse();
            members.dedup_by(|left, right| left.0 == right.0);
            members.reverse();
        }
        Self::Object(members)
    }

    /// What it is.
    pub fn shape(&self) -> Shape {
        match self {
            Self::Null => Shape::Null,
            Self::Boolean(_) => Shape::Boolean,
            Self::Number(_) => Shape::Number,
            Self::String(_) => Shape::String,
            Self::Array(_) => Shape::Array,
            Self::Object(_) => Shape::Object,
        }
    }

    pub(crate) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// The member of that name.
    pub(crate) fn member(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .binary_search_by(|(name, _)| key_order(name, key))
                .ok()
                .map(|at| &members[at].1),
            _ => None,
        }
    }

    /// Appends the text.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Self::Number(number) => out.push_str(number),
            Self::String(string) => text::quote(string, out),
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    text::quote(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The stored form; refused if it has more levels than can be read again.
    pub(crate) fn stored(&self) -> Result<Owned> {
        if self.depth() > DEPTH_MAX {
            return Err(text::too_deep());
        }
        Ok(self.to_string().into())
    }

    fn depth(&self) -> usize {
        match self {
            Self::Array(elements) => 1 + elements.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The text of `jsonb_pretty`.
    pub fn write_pretty(&self, level: usize, out: &mut String) {
        let line = |level: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n("    ", level));
        };
        match self {
            Self::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(level + 1, out);
                    element.write_pretty(level + 1, out);
                }
                line(level, out);
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(level + 1, out);
                    text::quote(key, out);
                    out.push_str(": ");
                    value.write_pretty(level + 1, out);
                }
                line(level, out);
                out.push('}');
            }
            scalar => scalar.write(out),
        }
    }

    /// Without the members of objects that are null, at all levels.
    pub(crate) fn strip_nulls(self) -> Self {
        match self {
            Self::Array(elements) => Self::Array(elements.into_iter().map(Self::strip_nulls).collect()),
            Self::Object(members) => Self::Object(
                members
                    .into_iter()
                    .filter(|(_, value)| *value != Self::Null)
                    .map(|(key, value)| (key, value.strip_nulls()))
                    .collect(),
            ),
            scalar => scalar,
        }
    }

    /// PostgreSQL's order of parts: by kind, containers by size first.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Number(left), Self::Number(right)) => crate::numeric::compare(left, right),
            (Self::String(left), Self::String(right)) => left.cmp(right),
            (Self::Array(left), Self::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
                let pairs = left.iter().zip(right);
                pairs
                    .map(|(left, right)| left.order(right))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            (Self::Object(left), Self::Object(right)) => left.len().cmp(&right.len()).then_with(|| {
                let pairs = left.iter().zip(right);
                pairs
                    .map(|(left, right)| left.0.cmp(&right.0).then_with(|| left.1.order(&right.1)))
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::String(_) => 1,
            Self::Number(_) => 2,
            Self::Boolean(_) => 3,
            Self::Array(_) => 4,
            Self::Object(_) => 5,
        }
    }

    /// PostgreSQL's order of documents. A scalar at the top counts as an array of one, which puts the empty array before all scalars.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Array(elements), scalar) if scalar.is_scalar() => {
                if elements.is_empty() {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (scalar, Self::Array(_)) if scalar.is_scalar() => other.compare(self).reverse(),
            _ => self.order(other),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }

    /// `@>` of documents: as of parts, and an array contains the scalars that are its elements.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(elements), scalar) if scalar.is_scalar() => {
                elements.iter().any(|element| element.equals(scalar))
            }
            _ => self.contains_part(other),
        }
    }

    fn contains_part(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(left), Self::Array(right)) => {
                let (mut scalars, nested): (Vec<_>, Vec<_>) = left.iter().partition(|element| element.is_scalar());
                // In order, so that looking for many takes hardly longer than reading them.
                scalars.sort_unstable_by(|one, other| one.order(other));
                right.iter().all(|wanted| {
                    if wanted.is_scalar() {
                        scalars.binary_search_by(|element| element.order(wanted)).is_ok()
                    } else {
                        nested.iter().any(|element| element.contains_part(wanted))
                    }
                })
            }
            (Self::Object(_), Self::Object(right)) => right
                .iter()
                .all(|(key, wanted)| self.member(key).is_some_and(|value| value.contains_part(wanted))),
            (Self::Array(_) | Self::Object(_), _) | (_, Self::Array(_) | Self::Object(_)) => false,
            (left, right) => left.equals(right),
        }
    }

    /// `?`: a key of an object, a string in an array, or the string itself.
    pub(crate) fn exists(&self, key: &str) -> bool {
        match self {
            Self::Object(_) => self.member(key).is_some(),
            Self::Array(elements) => elements
                .iter()
                .any(|element| matches!(element, Self::String(string) if string == key)),
            Self::String(string) => string == key,
            _ => false,
        }
    }

    /// All that [`exists`](Self::exists).
    pub(crate) fn keys(&self) -> HashSet<&str> {
        match self {
            Self::Object(members) => members.iter().map(|(key, _)| &**key).collect(),
            Self::Array(elements) => elements
                .iter()
                .filter_map(|element| match element {
                    Self::String(string) => Some(&**string),
                    _ => None,
                })
                .collect(),
            Self::String(string) => HashSet::from([&**string]),
            _ => HashSet::new(),
        }
    }

    /// `||`: objects are merged, everything else is put into one array.
    pub(crate) fn concatenate(self, other: Self) -> Self {
        match (self, other) {
            (Self::Object(mut left), Self::Object(right)) => {
                left.extend(right);
                Self::object(left)
            }
            (left, right) => {
                let mut elements = left.into_elements();
                elements.extend(right.into_elements());
                Self::Array(elements)
            }
        }
    }

    fn into_elements(self) -> Vec<Self> {
        match self {
            Self::Array(elements) => elements,
            other => vec![other],
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        formatter.write_str(&out)
    }
}

/// The stored form of a JSON text.
pub fn input(text: &str) -> Result<String> {
    let value = Value::read(text)?;
    let mut out = String::with_capacity(text.len());
    value.write(&mut out);
    Ok(out)
}

/// PostgreSQL's order of jsonb. Total on all texts.
pub fn compare(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    match (Value::read(left), Value::read(right)) {
        (Ok(left), Ok(right)) => left.compare(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}
