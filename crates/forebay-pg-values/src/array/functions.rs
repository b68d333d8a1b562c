//! The functions and operators of arrays, by symbol.

use std::cmp::Ordering;
use std::iter;

use super::compare::{compare, compare_scalar, equals, need_equality, same};
use super::text::too_many;
use super::{Array, DIMENSIONS_MAX, check_bytes, check_count, damaged};
use crate::text::check_length;
use crate::{Arguments, Body, Datum, Function, Kind, Owned, Result, Type, ValueError, text_form};

const fn of_arrays(symbol: &'static str, body: Body) -> Function {
    Function::new(symbol, body).typed()
}

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("array_in", |a| {
        let (oid, typmod) = (u32::try_from(a.integer(1)?), i32::try_from(a.integer(2)?));
        let (Ok(Some(Type::Scalar(kind))), Ok(typmod)) = (oid.map(Type::from_oid), typmod) else {
            return Err(ValueError::unsupported("arrays of this type are"));
        };
        Ok(super::parse(kind, typmod, a.text(0)?, a.environment)?.into())
    })
    .in_session(),
    of_arrays("array_out", |a| {
        let mut out = String::new();
        super::write(element_kind(a, 0)?, a.text(0)?, a.environment, &mut out)?;
        Ok(out.into())
    })
    .in_session(),
    // Shape.
    of_arrays("array_length", |a| Ok(dimension(a)?.into())),
    of_arrays("array_upper", |a| Ok(dimension(a)?.into())),
    of_arrays("array_lower", |a| Ok(dimension(a)?.map(|_| 1).into())),
    of_arrays("array_ndims", |a| match read(a, 0)?.dimensions.len() {
        0 => Ok(Owned::Null),
        dimensions => integer(dimensions),
    }),
    of_arrays("array_cardinality", |a| integer(read(a, 0)?.elements.len())),
    of_arrays("array_dims", |a| {
        let array = read(a, 0)?;
        let dims: String = array.dimensions.iter().map(|length| format!("[1:{length}]")).collect();
        Ok((!dims.is_empty()).then_some(dims).into())
    }),
    // Comparisons.
    of_arrays("array_eq", |a| {
        Ok(equals(element_kind(a, 0)?, a.text(0)?, a.text(1)?)?.into())
    }),
    of_arrays("array_ne", |a| {
        Ok((!equals(element_kind(a, 0)?, a.text(0)?, a.text(1)?)?).into())
    }),
    of_arrays("array_lt", |a| Ok(order(a)?.is_lt().into())),
    of_arrays("array_le", |a| Ok(order(a)?.is_le().into())),
    of_arrays("array_gt", |a| Ok(order(a)?.is_gt().into())),
    of_arrays("array_ge", |a| Ok(order(a)?.is_ge().into())),
    of_arrays("btarraycmp", |a| Ok((order(a)? as i64).into())),
    of_arrays("array_larger", |a| Ok(a.text(usize::from(!order(a)?.is_gt()))?.into())),
    of_arrays("array_smaller", |a| Ok(a.text(usize::from(!order(a)?.is_lt()))?.into())),
    of_arrays("arraycontains", |a| Ok(contains(a, 0, 1)?.into())),
    of_arrays("arraycontained", |a| Ok(contains(a, 1, 0)?.into())),
    of_arrays("arrayoverlap", overlap),
    // Changes.
    of_arrays("array_append", |a| add_element(a, 0, 1)).called_on_null(),
    of_arrays("array_prepend", |a| add_element(a, 1, 0)).called_on_null(),
    of_arrays("array_cat", concatenate).called_on_null(),
    of_arrays("array_remove", remove).called_on_null(),
    of_arrays("array_replace", replace).called_on_null(),
    of_arrays("array_fill", fill).called_on_null(),
    of_arrays("array_fill_with_lower_bounds", fill).called_on_null(),
    of_arrays("trim_array", trim),
    // Searches.
    of_arrays("array_position", position).called_on_null(),
    of_arrays("array_position_start", position).called_on_null(),
    of_arrays("array_positions", positions).called_on_null(),
    // Texts.
    of_arrays("array_to_text", to_text).in_session(),
    of_arrays("array_to_text_null", to_text).called_on_null().in_session(),
    Function::new("text_to_array", from_text).called_on_null(),
    Function::new("text_to_array_null", from_text).called_on_null(),
];

/// The kind of the elements of an argument.
fn element_kind(arguments: Arguments<'_>, index: usize) -> Result<Kind> {
    match arguments.types.get(index) {
        Some(Type::Array(kind)) => Ok(*kind),
        other => Err(ValueError::new(
            "42804",
            format!("argument {} is not an array but {other:?}", index + 1),
        )),
    }
}

fn read(arguments: Arguments<'_>, index: usize) -> Result<Array> {
    Array::read(element_kind(arguments, index)?, arguments.text(index)?)
}

fn integer(number: usize) -> Result<Owned> {
    Ok(i64::try_from(number)
        .map_err(|_| ValueError::out_of_range("integer"))?
        .into())
}

fn dimension(arguments: Arguments<'_>) -> Result<Option<i64>> {
    let array = read(arguments, 0)?;
    let wanted = usize::try_from(arguments.integer(1)?).unwrap_or(0);
    let length = wanted.checked_sub(1).and_then(|at| array.dimensions.get(at));
    Ok(length.and_then(|length| i64::try_from(*length).ok()))
}

fn order(arguments: Arguments<'_>) -> Result<Ordering> {
    compare(element_kind(arguments, 0)?, arguments.text(0)?, arguments.text(1)?)
}

fn contains(arguments: Arguments<'_>, whole: usize, part: usize) -> Result<bool> {
    let kind = element_kind(arguments, whole)?;
    need_equality(kind)?;
    let (whole, part) = (Members::of(kind, read(arguments, whole)?), read(arguments, part)?);
    let mut wanted = part.elements.iter();
    Ok(wanted.all(|wanted| whole.contains(wanted)))
}

fn overlap(arguments: Arguments<'_>) -> Result<Owned> {
    let kind = element_kind(arguments, 0)?;
    need_equality(kind)?;
    let (left, right) = (Members::of(kind, read(arguments, 0)?), read(arguments, 1)?);
    let mut wanted = right.elements.iter();
    Ok(wanted.any(|wanted| left.contains(wanted)).into())
}

/// What is in an array, in order: looking for all elements of another takes hardly longer than reading them.
struct Members {
    kind: Kind,
    ordered: Vec<Owned>,
}

impl Members {
    fn of(kind: Kind, array: Array) -> Self {
        let mut ordered = array.elements;
        ordered.sort_unstable_by(|left, right| compare_scalar(kind, left.as_datum(), right.as_datum()));
        Self { kind, ordered }
    }

    /// NULL is in no array.
    fn contains(&self, wanted: &Owned) -> bool {
        let against = |element: &Owned| compare_scalar(self.kind, element.as_datum(), wanted.as_datum());
        *wanted != Owned::Null && self.ordered.binary_search_by(against).is_ok()
    }
}

fn add_element(arguments: Arguments<'_>, of_array: usize, of_element: usize) -> Result<Owned> {
    let kind = element_kind(arguments, of_array)?;
    let array = if arguments.is_null(of_array) {
        Array::empty()
    } else {
        read(arguments, of_array)?
    };
    if array.dimensions.len() > 1 {
        return Err(ValueError::new(
            "22000",
            "argument must be empty or one-dimensional array",
        ));
    }
    let mut elements = array.elements;
    let value = arguments.values[of_element].into();
    if of_array == 0 {
        elements.push(value);
    } else {
        elements.insert(0, value);
    }
    Array::of_elements(elements).into_stored(kind)
}

fn concatenate(arguments: Arguments<'_>) -> Result<Owned> {
    let kind = element_kind(arguments, 0)?;
    match (arguments.is_null(0), arguments.is_null(1)) {
        (true, true) => return Ok(Owned::Null),
        (true, false) => return Ok(arguments.text(1)?.into()),
        (false, true) => return Ok(arguments.text(0)?.into()),
        (false, false) => {}
    }
    let (left, right) = (read(arguments, 0)?, read(arguments, 1)?);
    if left.dimensions.is_empty() {
        return right.into_stored(kind);
    }
    if right.dimensions.is_empty() {
        return left.into_stored(kind);
    }
    let incompatible =
        |detail: String| ValueError::new("2202E", "cannot concatenate incompatible arrays").with_detail(detail);
    let (of_left, of_right) = (left.dimensions.len(), right.dimensions.len());
    let dimensions = if of_left == of_right && left.dimensions[1..] == right.dimensions[1..] {
        let mut dimensions = left.dimensions;
        dimensions[0] += right.dimensions[0];
        dimensions
    } else if of_left + 1 == of_right && left.dimensions == right.dimensions[1..] {
        let mut dimensions = right.dimensions;
        dimensions[0] += 1;
        dimensions
    } else if of_left == of_right + 1 && left.dimensions[1..] == right.dimensions {
        let mut dimensions = left.dimensions;
        dimensions[0] += 1;
        dimensions
    } else if of_left.abs_diff(of_right) > 1 {
        return Err(incompatible(format!(
            "Arrays of {of_left} and {of_right} dimensions are not compatible for concatenation."
        )));
    } else {
        return Err(incompatible(
            if of_left == of_right {
                "Arrays with differing element dimensions are not compatible for concatenation."
            } else {
                "Arrays with differing dimensions are not compatible for concatenation."
            }
            .to_owned(),
        ));
    };
    let mut elements = left.elements;
    elements.extend(right.elements);
    Array::new(dimensions, elements).into_stored(kind)
}

fn remove(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let kind = element_kind(arguments, 0)?;
    let mut array = read(arguments, 0)?;
    if array.dimensions.len() > 1 {
        return Err(ValueError::new(
            "0A000",
            "removing elements from multidimensional arrays is not supported",
        ));
    }
    if array.elements.is_empty() {
        return array.into_stored(kind);
    }
    need_equality(kind)?;
    let unwanted = arguments.values[1].into();
    array.elements.retain(|element| !same(kind, element, &unwanted));
    Array::of_elements(array.elements).into_stored(kind)
}

fn replace(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let kind = element_kind(arguments, 0)?;
    let mut array = read(arguments, 0)?;
    if array.elements.is_empty() {
        return array.into_stored(kind);
    }
    need_equality(kind)?;
    let unwanted = arguments.values[1].into();
    let replacement = Owned::from(arguments.values[2]);
    let replaced = |element: &Owned| same(kind, element, &unwanted);
    check_bytes(
        &replacement,
        array.elements.iter().filter(|element| replaced(element)).count(),
    )?;
    for element in &mut array.elements {
        if replaced(element) {
            element.clone_from(&replacement);
        }
    }
    array.into_stored(kind)
}

/// The elements of an int4[] that must hold no NULL.
fn lengths(arguments: Arguments<'_>, index: usize) -> Result<Vec<i64>> {
    let array = Array::read(Kind::Int4, arguments.text(index)?)?;
    if array.dimensions.len() > 1 {
        return Err(ValueError::new("2202E", "wrong number of array subscripts")
            .with_detail("Dimension array must be one dimensional."));
    }
    let lengths = array.elements.into_iter().map(|length| match length {
        Owned::Integer(length) => Ok(length),
        Owned::Null => Err(ValueError::new("22004", "dimension values cannot be null")),
        _ => Err(damaged()),
    });
    lengths.collect()
}

fn fill(arguments: Arguments<'_>) -> Result<Owned> {
    let Some(Type::Scalar(kind)) = arguments.types.first().copied() else {
        return Err(ValueError::unsupported("array_fill of arrays is"));
    };
    if arguments.is_null(1) || (arguments.values.len() > 2 && arguments.is_null(2)) {
        return Err(ValueError::new(
            "22004",
            "dimension array or low bound array cannot be null",
        ));
    }
    let lengths = lengths(arguments, 1)?;
    if lengths.len() > DIMENSIONS_MAX {
        return Err(too_many(lengths.len()));
    }
    if arguments.values.len() > 2 {
        let bounds = self::lengths(arguments, 2)?;
        if bounds.len() != lengths.len() {
            return Err(ValueError::new("2202E", "wrong number of array subscripts")
                .with_detail("Low bound array has different size than dimensions array."));
        }
        if bounds.iter().any(|bound| *bound != 1) {
            return Err(ValueError::unsupported("arrays whose lower bound is not 1 are"));
        }
    }
    if lengths.is_empty() {
        return Array::empty().into_stored(kind);
    }
    let too_large = || ValueError::new("54000", "array size exceeds the maximum allowed (134217727)");
    let mut dimensions = Vec::new();
    let mut items: usize = 1;
    for length in &lengths {
        let length = usize::try_from(*length).map_err(|_| too_large())?;
        dimensions.push(length);
    }
    for length in &dimensions {
        items = items
            .checked_mul(*length)
            .filter(|items| *items <= 134_217_727)
            .ok_or_else(too_large)?;
    }
    check_count(items)?;
    let value = Owned::from(arguments.values[0]);
    check_bytes(&value, items)?;
    Array::new(dimensions, vec![value; items]).into_stored(kind)
}

fn trim(arguments: Arguments<'_>) -> Result<Owned> {
    let kind = element_kind(arguments, 0)?;
    let mut array = read(arguments, 0)?;
    let length = array.dimensions.first().copied().unwrap_or(0);
    let Some(kept) = usize::try_from(arguments.integer(1)?)
        .ok()
        .and_then(|cut| length.checked_sub(cut))
    else {
        return Err(ValueError::new(
            "2202E",
            format!("number of elements to trim must be between 0 and {length}"),
        ));
    };
    if kept == 0 {
        return Array::empty().into_stored(kind);
    }
    let cut = array.elements.split_off(array.elements.len() / length * kept);
    // The binary form tells of an array whether it may hold NULLs; PostgreSQL says so of this one still.
    if cut.contains(&Owned::Null) && !array.elements.contains(&Owned::Null) {
        return Err(ValueError::unsupported("trim_array of all NULLs of an array is"));
    }
    array.dimensions[0] = kept;
    array.into_stored(kind)
}

/// The array to search in; none if there is nothing in it.
fn searched(arguments: Arguments<'_>) -> Result<(Kind, Array)> {
    let kind = element_kind(arguments, 0)?;
    let array = read(arguments, 0)?;
    if array.dimensions.len() > 1 {
        return Err(ValueError::new(
            "0A000",
            "searching for elements in multidimensional arrays is not supported",
        ));
    }
    Ok((kind, array))
}

fn position(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let (kind, array) = searched(arguments)?;
    if array.elements.is_empty() {
        return Ok(Owned::Null);
    }
    let wanted = Owned::from(arguments.values[1]);
    // An array without NULLs is not searched for one.
    if wanted == Owned::Null && !array.elements.contains(&Owned::Null) {
        return Ok(Owned::Null);
    }
    let start = match arguments.values.get(2) {
        None => 1,
        Some(Datum::Null) => return Err(ValueError::new("22004", "initial position must not be null")),
        Some(_) => arguments.integer(2)?,
    };
    need_equality(kind)?;
    let skipped = usize::try_from(start.max(1) - 1).unwrap_or(usize::MAX);
    let mut elements = array.elements.iter().enumerate().skip(skipped);
    match elements.find(|(_, element)| same(kind, element, &wanted)) {
        Some((at, _)) => integer(at + 1),
        None => Ok(Owned::Null),
    }
}

fn positions(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let (kind, array) = searched(arguments)?;
    let wanted = Owned::from(arguments.values[1]);
    // As in [`position`].
    if array.elements.is_empty() || (wanted == Owned::Null && !array.elements.contains(&Owned::Null)) {
        return Array::empty().into_stored(Kind::Int4);
    }
    need_equality(kind)?;
    let found = array
        .elements
        .iter()
        .enumerate()
        .filter(|(_, element)| same(kind, element, &wanted));
    let found = found.map(|(at, _)| integer(at + 1)).collect::<Result<_>>()?;
    Array::of_elements(found).into_stored(Kind::Int4)
}

fn to_text(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) || arguments.is_null(1) {
        return Ok(Owned::Null);
    }
    let kind = element_kind(arguments, 0)?;
    let separator = arguments.text(1)?;
    let for_null = match arguments.values.get(2) {
        Some(Datum::Text(text)) => Some(*text),
        _ => None,
    };
    let mut out = String::new();
    let mut first = true;
    for element in read(arguments, 0)?.elements {
        if element == Owned::Null && for_null.is_none() {
            continue;
        }
        if !std::mem::replace(&mut first, false) {
            out.push_str(separator);
        }
        check_length(i64::try_from(out.len()).unwrap_or(i64::MAX))?;
        match (&element, for_null) {
            (Owned::Null, Some(for_null)) => out.push_str(for_null),
            _ => text_form::write(kind, element.as_datum(), arguments.environment, &mut out)?,
        }
    }
    Ok(out.into())
}

fn from_text(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let text = arguments.text(0)?;
    let for_null = match arguments.values.get(2) {
        Some(Datum::Text(text)) => Some(*text),
        _ => None,
    };
    let parts: Box<dyn Iterator<Item = &str>> = match arguments.values[1] {
        _ if text.is_empty() => Box::new(iter::empty()),
        Datum::Null => Box::new(text.split("").filter(|part| !part.is_empty())),
        Datum::Text("") => Box::new(iter::once(text)),
        _ => Box::new(text.split(arguments.text(1)?)),
    };
    let mut elements = Vec::new();
    for part in parts {
        check_count(elements.len() + 1)?;
        elements.push(if for_null == Some(part) {
            Owned::Null
        } else {
            part.into()
        });
    }
    Array::of_elements(elements).into_stored(Kind::Text)
}
