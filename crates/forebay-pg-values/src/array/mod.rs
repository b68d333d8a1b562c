//! Arrays: PostgreSQL's, of up to six dimensions, all of whose lower bounds are 1.
//!
//! Promises: the stored form is a JSON array without white space: integers and floats as numbers (floats always with a point or an
//! exponent), truth values as `true` and `false`, NULL as `null`, all else as strings of the elements' stored form; dimensions are
//! nested. One text for each array. bytea elements and infinite floats have no stored form and are refused.
//!
//! Knows nothing of statements. Text of elements is [`crate::text_form`]'s.

mod aggregate;
mod compare;
mod functions;
mod subscript;
#[cfg(test)]
mod tests;
mod text;
mod wire;

pub(crate) use aggregate::AGGREGATES;
pub use compare::{compare, compare_scalar, contains_element, equals};
pub(crate) use functions::FUNCTIONS;
pub use subscript::{Bounds, slice, subscript};
pub use text::{parse, write};
pub use wire::{Dimensions, decode, encode, read_dimensions};

use crate::text::check_length;
use crate::{Datum, Kind, Owned, Result, ValueError};

/// PostgreSQL's limit.
pub const DIMENSIONS_MAX: usize = 6;

/// An array taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The length of each dimension, none of them zero; none for the empty array.
    dimensions: Vec<usize>,
    /// As many as the product of the dimensions, the last dimension's together.
    elements: Vec<Owned>,
}

/// What an array has at most: each element takes some hundred bytes while one is read or made, and a short statement must not take
/// all memory.
const ELEMENTS_MAX: usize = 4_000_000;

/// An error if an array of so many elements is too large.
pub(crate) fn check_count(elements: usize) -> Result<()> {
    if elements > ELEMENTS_MAX {
        return Err(ValueError::unsupported(format_args!(
            "an array of more than {ELEMENTS_MAX} elements is"
        )));
    }
    Ok(())
}

/// An error if so many copies of a value are more than a result may be.
pub(crate) fn check_bytes(value: &Owned, copies: usize) -> Result<()> {
    let bytes = match value {
        Owned::Text(text) => text.len(),
        Owned::Blob(bytes) => bytes.len(),
        Owned::Null | Owned::Integer(_) | Owned::Real(_) => 0,
    };
    check_length(i64::try_from(bytes.saturating_mul(copies)).unwrap_or(i64::MAX))
}

/// A stored text that is no array.
pub(crate) fn damaged() -> ValueError {
    ValueError::new("XX001", "a stored array is not one")
}

impl Array {
    /// The empty one.
    pub fn empty() -> Self {
        Self {
            dimensions: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// One of one dimension.
    pub fn of_elements(elements: Vec<Owned>) -> Self {
        let dimensions = if elements.is_empty() {
            Vec::new()
        } else {
            vec![elements.len()]
        };
        Self { dimensions, elements }
    }

    /// One of these dimensions, whose product is the number of elements; empty if it is zero.
    pub fn new(dimensions: Vec<usize>, elements: Vec<Owned>) -> Self {
        assert_eq!(
            dimensions.iter().product::<usize>(),
            if dimensions.is_empty() { 1 } else { elements.len() },
            "as many elements as there are places"
        );
        if elements.is_empty() {
            Self::empty()
        } else {
            Self { dimensions, elements }
        }
    }

    /// The length of each dimension.
    pub fn dimensions(&self) -> &[usize] {
        &self.dimensions
    }

    /// All elements.
    pub fn elements(&self) -> &[Owned] {
        &self.elements
    }

    /// All elements.
    pub fn into_elements(self) -> Vec<Owned> {
        self.elements
    }

    /// Reads the stored form.
    pub fn read(kind: Kind, stored: &str) -> Result<Self> {
        let mut reader = Reader {
            kind,
            dimensions: Vec::new(),
            elements: Vec::new(),
            leaf: None,
        };
        reader.level(stored, 0)?;
        let Reader {
            dimensions, elements, ..
        } = reader;
        if elements.is_empty() {
            return Ok(Self::empty());
        }
        if dimensions.iter().product::<usize>() != elements.len() {
            return Err(damaged());
        }
        Ok(Self { dimensions, elements })
    }

    /// The stored form.
    pub fn stored(&self, kind: Kind) -> Result<String> {
        let mut out = String::new();
        if self.dimensions.is_empty() {
            out.push_str("[]");
        } else {
            self.store_level(kind, &self.dimensions, &self.elements, &mut out)?;
        }
        Ok(out)
    }

    /// The stored form, as a value.
    pub fn into_stored(self, kind: Kind) -> Result<Owned> {
        self.stored(kind).map(Owned::Text)
    }

    fn store_level(&self, kind: Kind, dimensions: &[usize], elements: &[Owned], out: &mut String) -> Result<()> {
        let Some((length, below)) = dimensions.split_first() else {
            return store_element(kind, &elements[0], out);
        };
        out.push('[');
        for (at, part) in elements.chunks(elements.len() / length).enumerate() {
            if at > 0 {
                out.push(',');
            }
            self.store_level(kind, below, part, out)?;
        }
        out.push(']');
        Ok(())
    }
}

fn store_element(kind: Kind, element: &Owned, out: &mut String) -> Result<()> {
    use std::fmt::Write;
    match (element, kind) {
        (Owned::Null, _) => out.push_str("null"),
        (Owned::Integer(truth), Kind::Bool) => out.push_str(if *truth == 0 { "false" } else { "true" }),
        #[allow(clippy::cast_precision_loss, reason = "what SQLite made of a float is one")]
        (Owned::Integer(integer), Kind::Float4 | Kind::Float8) => {
            return store_element(kind, &Owned::Real(*integer as f64), out);
        }
        (Owned::Integer(integer), _) => write!(out, "{integer}").expect("a String takes everything"),
        (Owned::Real(real), _) if !real.is_finite() => {
            return Err(ValueError::unsupported("infinite floats in arrays are"));
        }
        // Debug's spelling always has a point or an exponent, and reads back as the same float.
        (Owned::Real(real), _) => write!(out, "{real:?}").expect("a String takes everything"),
        (Owned::Text(text), _) => crate::json::quote(text, out),
        (Owned::Blob(_), _) => return Err(ValueError::unsupported("arrays of bytea are")),
    }
    Ok(())
}

struct Reader {
    kind: Kind,
    dimensions: Vec<usize>,
    elements: Vec<Owned>,
    /// The level that elements are on, once one was seen.
    leaf: Option<usize>,
}

impl Reader {
    fn level(&mut self, stored: &str, depth: usize) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(damaged());
        }
        let parts = crate::json::elements(stored).map_err(|_| damaged())?;
        if self.dimensions.len() == depth {
            self.dimensions.push(parts.len());
        }
        if self.dimensions[depth] != parts.len() {
            return Err(damaged());
        }
        for part in parts {
            if part.starts_with('[') {
                if self.leaf.is_some_and(|leaf| leaf <= depth) {
                    return Err(damaged());
                }
                self.level(part, depth + 1)?;
            } else {
                if *self.leaf.get_or_insert(depth) != depth {
                    return Err(damaged());
                }
                self.elements.push(read_element(self.kind, part)?);
            }
        }
        Ok(())
    }
}

fn read_element(kind: Kind, part: &str) -> Result<Owned> {
    Ok(match part.as_bytes().first() {
        Some(b'n') => Owned::Null,
        Some(b't') => Owned::from(true),
        Some(b'f') => Owned::from(false),
        Some(b'"') => Owned::Text(crate::json::unquote(part).into_owned()),
        _ if matches!(kind, Kind::Float4 | Kind::Float8) => Owned::Real(part.parse().map_err(|_| damaged())?),
        _ => Owned::Integer(part.parse().map_err(|_| damaged())?),
    })
}

/// The elements of a stored array, as `unnest` gives them.
pub fn elements(kind: Kind, stored: &str) -> Result<Vec<Owned>> {
    Ok(Array::read(kind, stored)?.into_elements())
}

/// An array of the same dimensions, of other elements: what a cast of an array is. NULLs stay.
pub fn convert_elements(
    from: Kind,
    to: Kind,
    stored: &str,
    mut convert: impl FnMut(Datum<'_>) -> Result<Owned>,
) -> Result<String> {
    let mut array = Array::read(from, stored)?;
    for element in &mut array.elements {
        if *element != Owned::Null {
            *element = convert(element.as_datum())?;
        }
    }
    array.stored(to)
}
