//! The operators `~`, and the functions regexp_…, substring(text from pattern), SIMILAR TO.

use super::{Expression, Options, Subject, similar_to_escape};
use crate::{Arguments, Function, Owned, Result, ValueError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("textregexeq", |arguments| Ok(is_match(arguments, false)?.into())),
    Function::new("textregexne", |arguments| Ok((!is_match(arguments, false)?).into())),
    Function::new("texticregexeq", |arguments| Ok(is_match(arguments, true)?.into())),
    Function::new("texticregexne", |arguments| Ok((!is_match(arguments, true)?).into())),
    Function::new("nameregexeq", |arguments| Ok(is_match(arguments, false)?.into())),
    Function::new("nameregexne", |arguments| Ok((!is_match(arguments, false)?).into())),
    Function::new("nameicregexeq", |arguments| Ok(is_match(arguments, true)?.into())),
    Function::new("nameicregexne", |arguments| Ok((!is_match(arguments, true)?).into())),
    Function::new("regexp_like_no_flags", |arguments| {
        Ok(is_match(arguments, false)?.into())
    }),
    Function::new("regexp_like", |arguments| {
        let options = local_options(arguments.text(2)?, "regexp_like()")?;
        let expression = Expression::of(arguments.text(1)?, options)?;
        Ok(expression.is_match(arguments.text(0)?)?.into())
    }),
    Function::new("textregexsubstr", |arguments| {
        Ok(substring(arguments.text(0)?, arguments.text(1)?)?.into())
    }),
    Function::new("substring(text,text,text)", |arguments| {
        let pattern = similar_to_escape(arguments.text(1)?, arguments.text(2)?)?;
        Ok(substring(arguments.text(0)?, &pattern)?.into())
    }),
    Function::new("similar_to_escape_1", |arguments| {
        Ok(Owned::Text(similar_to_escape(arguments.text(0)?, "\\")?))
    }),
    Function::new("similar_to_escape_2", |arguments| {
        Ok(Owned::Text(similar_to_escape(arguments.text(0)?, arguments.text(1)?)?))
    }),
    Function::new("similar_escape", |arguments| {
        if arguments.is_null(0) {
            return Ok(Owned::Null);
        }
        let escape = if arguments.is_null(1) { "\\" } else { arguments.text(1)? };
        Ok(Owned::Text(similar_to_escape(arguments.text(0)?, escape)?))
    })
    .called_on_null(),
    Function::new("regexp_match_no_flags", |arguments| {
        first_match(arguments, Options::default())
    }),
    Function::new("regexp_match", |arguments| {
        let (options, global) = read_options(arguments.text(2)?)?;
        if global {
            return Err(no_global("regexp_match()").with_hint("Use the regexp_matches function instead."));
        }
        first_match(arguments, options)
    }),
    Function::new("regexp_split_to_array_no_flags", |arguments| {
        split_to_array(arguments, Options::default())
    }),
    Function::new("regexp_split_to_array", |arguments| {
        split_to_array(arguments, local_options(arguments.text(2)?, "regexp_split_to_array()")?)
    }),
    Function::new("textregexreplace_noopt", |arguments| {
        replace(arguments, Options::default(), 1, 1)
    }),
    Function::new("textregexreplace", |arguments| {
        let flags = arguments.text(3)?;
        if flags.starts_with(|first: char| first.is_ascii_digit()) {
            let hint = "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.";
            return Err(invalid_option(flags.chars().next().expect("a digit")).with_hint(hint));
        }
        let (options, global) = read_options(flags)?;
        replace(arguments, options, 1, i64::from(!global))
    }),
    Function::new("textregexreplace_extended_no_n", |arguments| {
        let start = at_least(arguments, 3, 1, "start")?;
        replace(arguments, Options::default(), start, 1)
    }),
    Function::new("textregexreplace_extended_no_flags", |arguments| {
        let start = at_least(arguments, 3, 1, "start")?;
        replace(arguments, Options::default(), start, at_least(arguments, 4, 0, "n")?)
    }),
    Function::new("textregexreplace_extended", |arguments| {
        let (start, place) = (at_least(arguments, 3, 1, "start")?, at_least(arguments, 4, 0, "n")?);
        replace(arguments, read_options(arguments.text(5)?)?.0, start, place)
    }),
    Function::new("regexp_count_no_start", count),
    Function::new("regexp_count_no_flags", count),
    Function::new("regexp_count", count),
    Function::new("regexp_instr_no_start", position),
    Function::new("regexp_instr_no_n", position),
    Function::new("regexp_instr_no_endoption", position),
    Function::new("regexp_instr_no_flags", position),
    Function::new("regexp_instr_no_subexpr", position),
    Function::new("regexp_instr", position),
    Function::new("regexp_substr_no_start", matched_part),
    Function::new("regexp_substr_no_n", matched_part),
    Function::new("regexp_substr_no_flags", matched_part),
    Function::new("regexp_substr_no_subexpr", matched_part),
    Function::new("regexp_substr", matched_part),
];

/// The groups of a match, or all of it if the expression has none.
pub type Found = Vec<Option<String>>;

fn invalid_option(letter: char) -> ValueError {
    ValueError::new("22023", format!("invalid regular expression option: \"{letter}\""))
}

fn no_global(function: &str) -> ValueError {
    ValueError::new("22023", format!("{function} does not support the \"global\" option"))
}

/// Options by their letters, and whether all matches are wanted.
fn read_options(letters: &str) -> Result<(Options, bool)> {
    let (mut options, mut global) = (Options::default(), false);
    for letter in letters.chars() {
        if letter == 'g' {
            global = true;
        } else if !options.set(letter)? {
            return Err(invalid_option(letter));
        }
    }
    Ok((options, global))
}

fn local_options(letters: &str, function: &str) -> Result<Options> {
    match read_options(letters)? {
        (_, true) => Err(no_global(function)),
        (options, false) => Ok(options),
    }
}

/// An argument that has a least value.
fn at_least(arguments: Arguments<'_>, index: usize, least: i64, name: &str) -> Result<i64> {
    let value = arguments.integer(index)?;
    if value < least {
        return Err(ValueError::new(
            "22023",
            format!("invalid value for parameter \"{name}\": {value}"),
        ));
    }
    Ok(value)
}

fn is_match(arguments: Arguments<'_>, ignore_case: bool) -> Result<bool> {
    let options = Options {
        ignore_case,
        ..Options::default()
    };
    Expression::of(arguments.text(1)?, options)?.is_match(arguments.text(0)?)
}

fn substring(text: &str, pattern: &str) -> Result<Option<String>> {
    let expression = Expression::of(pattern, Options::default())?;
    let subject = Subject::new(text);
    let Some(spans) = subject.find(&expression, 0, true)? else {
        return Ok(None);
    };
    Ok(spans[usize::from(expression.groups() > 0)].map(|(begin, end)| subject.part(begin, end).to_owned()))
}

fn groups_of(subject: &Subject<'_>, spans: &[Option<(usize, usize)>]) -> Found {
    let wanted = if spans.len() > 1 { &spans[1..] } else { spans };
    wanted
        .iter()
        .map(|span| span.map(|(begin, end)| subject.part(begin, end).to_owned()))
        .collect()
}

fn first_match(arguments: Arguments<'_>, options: Options) -> Result<Owned> {
    let expression = Expression::of(arguments.text(1)?, options)?;
    let subject = Subject::new(arguments.text(0)?);
    let spans = subject.find(&expression, 0, true)?;
    Ok(spans
        .map(|spans| serde_json::Value::from(groups_of(&subject, &spans)).to_string())
        .into())
}

/// Tells `found` the matches from a place on, until it says that it has enough. The next is looked for where the last one ended, after an
/// empty one a character later.
fn each_match(
    subject: &Subject<'_>,
    expression: &Expression,
    from: usize,
    with_groups: bool,
    mut found: impl FnMut(&[Option<(usize, usize)>]) -> bool,
) -> Result<()> {
    let mut from = from;
    while let Some(spans) = subject.find(expression, from, with_groups)? {
        let (begin, end) = spans[0].expect("the whole of a match");
        if !found(&spans) {
            break;
        }
        from = end + usize::from(begin == end);
    }
    Ok(())
}

/// The rows of regexp_matches.
pub fn matches(text: &str, pattern: &str, letters: &str) -> Result<Vec<Found>> {
    let (options, global) = read_options(letters)?;
    let expression = Expression::of(pattern, options)?;
    let subject = Subject::new(text);
    let mut rows = Vec::new();
    each_match(&subject, &expression, 0, true, |spans| {
        rows.push(groups_of(&subject, spans));
        global
    })?;
    Ok(rows)
}

fn split_to_array(arguments: Arguments<'_>, options: Options) -> Result<Owned> {
    let parts = split_with(arguments.text(0)?, arguments.text(1)?, options)?;
    Ok(Owned::Text(serde_json::Value::from(parts).to_string()))
}

/// The rows of regexp_split_to_table.
pub fn split(text: &str, pattern: &str, letters: &str) -> Result<Vec<String>> {
    split_with(text, pattern, local_options(letters, "regexp_split_to_table()")?)
}

fn split_with(text: &str, pattern: &str, options: Options) -> Result<Vec<String>> {
    let expression = Expression::of(pattern, options)?;
    let subject = Subject::new(text);
    let (mut parts, mut after, mut last_end) = (Vec::new(), 0, 0);
    each_match(&subject, &expression, 0, false, |spans| {
        let (begin, end) = spans[0].expect("the whole of a match");
        // Empty matches at the ends, and right behind another match, divide nothing.
        if begin < subject.length() && end > last_end {
            parts.push(subject.part(after, begin).to_owned());
            after = end;
        }
        last_end = end;
        true
    })?;
    parts.push(subject.part(after, subject.length()).to_owned());
    Ok(parts)
}

/// Replaces the match of that number from the character `start` on, or all for 0.
fn replace(arguments: Arguments<'_>, options: Options, start: i64, place: i64) -> Result<Owned> {
    let (subject, by) = (Subject::new(arguments.text(0)?), arguments.text(2)?);
    let expression = Expression::of(arguments.text(1)?, options)?;
    let with_groups = by.contains('\\');
    let (mut out, mut copied, mut number) = (String::new(), 0, 0);
    let mut too_long = Ok(());
    each_match(
        &subject,
        &expression,
        usize::try_from(start - 1).unwrap_or(usize::MAX),
        with_groups,
        |spans| {
            number += 1;
            if place > 0 && number != place {
                return true;
            }
            let (begin, end) = spans[0].expect("the whole of a match");
            out.push_str(subject.part(copied, begin));
            write_replacement(by, &subject, spans, &mut out);
            copied = end;
            too_long = crate::text::check_length(i64::try_from(out.len()).unwrap_or(i64::MAX));
            place == 0 && too_long.is_ok()
        },
    )?;
    too_long?;
    out.push_str(subject.part(copied, subject.length()));
    Ok(Owned::Text(out))
}

fn write_replacement(by: &str, subject: &Subject<'_>, spans: &[Option<(usize, usize)>], out: &mut String) {
    let mut rest = by;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let place = match after.bytes().next() {
            Some(digit @ b'1'..=b'9') => Some(usize::from(digit - b'0')),
            Some(b'&') => Some(0),
            Some(b'\\') => None,
            _ => {
                out.push('\\');
                rest = after;
                continue;
            }
        };
        match place {
            Some(place) => {
                if let Some(Some((begin, end))) = spans.get(place) {
                    out.push_str(subject.part(*begin, *end));
                }
            }
            None => out.push('\\'),
        }
        rest = &after[1..];
    }
    out.push_str(rest);
}

/// The options in an argument that may not be there.
fn optional_options(arguments: Arguments<'_>, index: usize, function: &str) -> Result<Options> {
    if arguments.values.len() <= index {
        return Ok(Options::default());
    }
    local_options(arguments.text(index)?, function)
}

fn optional(arguments: Arguments<'_>, index: usize, least: i64, name: &str) -> Result<usize> {
    let value = if arguments.values.len() > index {
        at_least(arguments, index, least, name)?
    } else {
        1
    };
    Ok(usize::try_from(value).expect("at least 0"))
}

fn count(arguments: Arguments<'_>) -> Result<Owned> {
    let start = optional(arguments, 2, 1, "start")?;
    let expression = Expression::of(arguments.text(1)?, optional_options(arguments, 3, "regexp_count()")?)?;
    let mut count = 0_i64;
    each_match(&Subject::new(arguments.text(0)?), &expression, start - 1, false, |_| {
        count += 1;
        true
    })?;
    Ok(count.into())
}

/// The span of a group (0: the whole) of the match of that number.
fn nth(
    subject: &Subject<'_>,
    expression: &Expression,
    start: usize,
    number: usize,
    group: usize,
) -> Result<Option<(usize, usize)>> {
    // The only "group" of an expression without groups is the whole.
    let group = if group == 1 && expression.groups() == 0 {
        0
    } else {
        group
    };
    let (mut seen, mut span) = (0, None);
    each_match(subject, expression, start - 1, group > 0, |spans| {
        seen += 1;
        if seen == number {
            span = spans.get(group).copied().flatten();
        }
        seen < number
    })?;
    Ok(span)
}

fn position(arguments: Arguments<'_>) -> Result<Owned> {
    let (start, number) = (optional(arguments, 2, 1, "start")?, optional(arguments, 3, 1, "n")?);
    let to_end = match arguments.values.get(4).map_or(Ok(0), |_| arguments.integer(4))? {
        0 => false,
        1 => true,
        other => {
            return Err(ValueError::new(
                "22023",
                format!("invalid value for parameter \"endoption\": {other}"),
            ));
        }
    };
    let group = if arguments.values.len() > 6 {
        optional(arguments, 6, 0, "subexpr")?
    } else {
        0
    };
    let expression = Expression::of(arguments.text(1)?, optional_options(arguments, 5, "regexp_instr()")?)?;
    let span = nth(&Subject::new(arguments.text(0)?), &expression, start, number, group)?;
    let place = span.map_or(0, |(begin, end)| 1 + if to_end { end } else { begin });
    Ok(i64::try_from(place).expect("a text is no longer than memory").into())
}

fn matched_part(arguments: Arguments<'_>) -> Result<Owned> {
    let (start, number) = (optional(arguments, 2, 1, "start")?, optional(arguments, 3, 1, "n")?);
    let group = if arguments.values.len() > 5 {
        optional(arguments, 5, 0, "subexpr")?
    } else {
        0
    };
    let expression = Expression::of(arguments.text(1)?, optional_options(arguments, 4, "regexp_substr()")?)?;
    let subject = Subject::new(arguments.text(0)?);
    let span = nth(&subject, &expression, start, number, group)?;
    Ok(span.map(|(begin, end)| subject.part(begin, end).to_owned()).into())
}
