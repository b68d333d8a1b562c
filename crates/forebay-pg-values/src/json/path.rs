//! Paths into documents: finding, setting, inserting and deleting what a list of keys and indexes names.
//!
//! Promises: json is searched in its text, where a key may stand more than once; jsonb in its tree.

use super::jsonb::Value;
use super::text::{self, Shape};
use crate::{Result, ValueError};

/// A step of a path as C's `strtol` reads an int4: white space and a sign before the digits, nothing behind.
fn index(step: &str) -> Option<i64> {
    let step = step.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let digits = step.strip_prefix(['+', '-']).unwrap_or(step);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let index: i64 = step.parse().ok()?;
    i32::try_from(index).ok().map(i64::from)
}

/// The element that an index means, counted from the end if negative.
pub(crate) fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 {
        index + i64::try_from(length).ok()?
    } else {
        index
    };
    usize::try_from(index).ok().filter(|at| *at < length)
}

/// The member of that name in a json text; of several the last. Nothing if it is no object.
pub(crate) fn member<'a>(json: &'a str, name: &str) -> Result<Option<&'a str>> {
    if text::shape(json)? != Shape::Object {
        return Ok(None);
    }
    let members = text::members(json)?;
    Ok(members
        .into_iter()
        .rev()
        .find(|(key, _)| text::unquote(key) == name)
        .map(|member| member.1))
}

/// The element at that index in a json text. Nothing if it is no array.
pub(crate) fn element(json: &str, index: i64) -> Result<Option<&str>> {
    if text::shape(json)? != Shape::Array {
        return Ok(None);
    }
    let elements = text::elements(json)?;
    Ok(position(index, elements.len()).map(|at| elements[at]))
}

/// What a path names in a json text. Where a key stands more than once every one is searched, and the last find counts.
pub(crate) fn find<'a>(json: &'a str, path: &[&str]) -> Result<Option<&'a str>> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(Some(text::trim(json)));
    };
    if path.len() > text::DEPTH_MAX {
        return Err(text::too_deep());
    }
    let mut found = None;
    match text::shape(json)? {
        Shape::Object => {
            for (key, value) in text::members(json)? {
                if text::unquote(key) == *step {
                    found = find(value, rest)?.or(found);
                }
            }
        }
        Shape::Array => {
            if let Some(at) = index(step)
                && let Some(value) = element(json, at)?
            {
                found = find(value, rest)?;
            }
        }
        _ => {}
    }
    Ok(found)
}

/// What becomes of the place that a path names.
#[derive(Debug, Clone)]
pub(crate) enum Change<'a> {
    /// Gets the value, if it is there; and if it is not, when `create`.
    Set { value: Value<'a>, create: bool },
    /// The value comes before or after it.
    Insert { value: Value<'a>, after: bool },
    /// Is no more.
    Delete,
}

impl<'a> Change<'a> {
    /// What a place that is not there gets.
    fn created(&self) -> Option<Value<'a>> {
        match self {
            Self::Set { value, create: true } | Self::Insert { value, .. } => Some(value.clone()),
            _ => None,
        }
    }
}

/// Carries out a change. `path` is not empty; `level` is the position of its first step in the whole path, for messages.
pub(crate) fn change<'a>(
    value: Value<'a>,
    path: &[Option<&'a str>],
    level: usize,
    what: &Change<'a>,
) -> Result<Value<'a>> {
    let Some((step, rest)) = path.split_first() else {
        return Ok(value);
    };
    let Some(step) = *step else {
        return Err(ValueError::new(
            "22004",
            format!("path element at position {} is null", level + 1),
        ));
    };
    match value {
        Value::Object(members) => change_object(members, step, rest, level, what),
        Value::Array(elements) => change_array(elements, step, rest, level, what),
        scalar => Ok(scalar),
    }
}

fn change_object<'a>(
    mut members: Vec<(std::borrow::Cow<'a, str>, Value<'a>)>,
    step: &'a str,
    rest: &[Option<&'a str>],
    level: usize,
    what: &Change<'a>,
) -> Result<Value<'a>> {
    match members.iter().position(|(key, _)| key == step) {
        Some(at) if rest.is_empty() => match what {
            Change::Delete => {
                members.remove(at);
            }
            Change::Set { value, .. } => members[at].1 = value.clone(),
            Change::Insert { .. } => {
                return Err(ValueError::new("22023", "cannot replace existing key")
                    .with_hint("Try using the function jsonb_set to replace key value."));
            }
        },
        Some(at) => {
            let inner = std::mem::replace(&mut members[at].1, Value::Null);
            members[at].1 = change(inner, rest, level + 1, what)?;
        }
        None => {
            if rest.is_empty()
                && let Some(value) = what.created()
            {
                members.push((step.into(), value));
            }
        }
    }
    Ok(Value::object(members))
}

fn change_array<'a>(
    mut elements: Vec<Value<'a>>,
    step: &str,
    rest: &[Option<&'a str>],
    level: usize,
    what: &Change<'a>,
) -> Result<Value<'a>> {
    let Some(wanted) = index(step) else {
        return Err(ValueError::new(
            "22P02",
            format!("path element at position {} is not an integer: \"{step}\"", level + 1),
        ));
    };
    match position(wanted, elements.len()) {
        Some(at) if rest.is_empty() => match what {
            Change::Delete => {
                elements.remove(at);
            }
            Change::Set { value, .. } => elements[at] = value.clone(),
            Change::Insert { value, after } => elements.insert(at + usize::from(*after), value.clone()),
        },
        Some(at) => {
            let inner = std::mem::replace(&mut elements[at], Value::Null);
            elements[at] = change(inner, rest, level + 1, what)?;
        }
        None => {
            if rest.is_empty()
                && let Some(value) = what.created()
            {
                // Beyond the beginning it becomes the first, beyond the end the last.
                let at = if wanted < 0 { 0 } else { elements.len() };
                elements.insert(at, value);
            }
        }
    }
    Ok(Value::Array(elements))
}
