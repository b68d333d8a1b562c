//! lpad, rpad, ltrim, rtrim, btrim.

use std::collections::HashSet;

use super::{ALLOCATION_BYTES_MAX, check_length, length, offset_of, too_large};
use crate::{Arguments, Function, Owned, Result};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("lpad", |arguments| pad(arguments, Side::Left, arguments.text(2)?)),
    Function::new("rpad", |arguments| pad(arguments, Side::Right, arguments.text(2)?)),
    Function::new("lpad(text,int4)", |arguments| pad(arguments, Side::Left, " ")),
    Function::new("rpad(text,int4)", |arguments| pad(arguments, Side::Right, " ")),
    Function::new("ltrim", |arguments| trim(arguments, true, false)),
    Function::new("rtrim", |arguments| trim(arguments, false, true)),
    Function::new("btrim", |arguments| trim(arguments, true, true)),
    Function::new("ltrim1", |arguments| {
        Ok(arguments.text(0)?.trim_start_matches(' ').into())
    }),
    Function::new("rtrim1", |arguments| {
        Ok(arguments.text(0)?.trim_end_matches(' ').into())
    }),
    Function::new("btrim1", |arguments| Ok(arguments.text(0)?.trim_matches(' ').into())),
];

#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn pad(arguments: Arguments<'_>, side: Side, fill: &str) -> Result<Owned> {
    let (text, wanted) = (arguments.text(0)?, arguments.integer(1)?.max(0));
    let there = length(text);
    let wanted = if fill.is_empty() { wanted.min(there) } else { wanted };
    // PostgreSQL reserves four bytes a character, before it knows what they are.
    if wanted * 4 + 4 > ALLOCATION_BYTES_MAX {
        return Err(too_large());
    }
    check_length(wanted)?;
    let missing = usize::try_from(wanted - there).unwrap_or(0);
    let kept = &text[..offset_of(text, usize::try_from(wanted).unwrap_or(0))];
    let padding = fill.chars().cycle().take(missing);
    Ok(Owned::Text(match side {
        Side::Left => padding.chain(kept.chars()).collect(),
        Side::Right => kept.chars().chain(padding).collect(),
    }))
}

fn trim(arguments: Arguments<'_>, left: bool, right: bool) -> Result<Owned> {
    let (mut text, set) = (arguments.text(0)?, arguments.text(1)?);
    let members: HashSet<char> = set.chars().collect();
    let in_set = |character| members.contains(&character);
    if left {
        text = text.trim_start_matches(in_set);
    }
    if right {
        text = text.trim_end_matches(in_set);
    }
    Ok(text.into())
}
