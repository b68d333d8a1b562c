//! concat, concat_ws, format: what takes values of any type, and writes them with the output function of their type.

use super::quote;
use crate::{Arguments, Datum, Function, Owned, Result, Type, ValueError, array, text_form};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new("text_concat", |arguments| {
        let mut out = String::new();
        for index in 0..arguments.values.len() {
            write_argument(arguments, index, &mut out)?;
        }
        Ok(Owned::Text(out))
    })
    .called_on_null()
    .typed()
    .in_session(),
    Function::new("text_concat_ws", concat_with_separator)
        .called_on_null()
        .typed()
        .in_session(),
    Function::new("quote_literal(anyelement)", |arguments| {
        let mut text = String::new();
        write_argument(arguments, 0, &mut text)?;
        Ok(Owned::Text(quote::literal(&text)))
    })
    .typed()
    .in_session(),
    Function::new("quote_nullable(anyelement)", |arguments| {
        if arguments.is_null(0) {
            return Ok("NULL".into());
        }
        let mut text = String::new();
        write_argument(arguments, 0, &mut text)?;
        Ok(Owned::Text(quote::literal(&text)))
    })
    .called_on_null()
    .typed()
    .in_session(),
    Function::new("text_format", format)
        .called_on_null()
        .typed()
        .in_session(),
    Function::new("text_format_nv", format)
        .called_on_null()
        .typed()
        .in_session(),
];

/// The text of an argument; of NULL nothing.
fn write_argument(arguments: Arguments<'_>, index: usize, out: &mut String) -> Result<()> {
    if arguments.is_null(index) {
        return Ok(());
    }
    match (arguments.types.get(index), arguments.values.get(index)) {
        (Some(Type::Scalar(kind)), Some(value)) => text_form::write(*kind, *value, arguments.environment, out),
        (Some(Type::Array(kind)), Some(Datum::Text(stored))) => array::write(*kind, stored, arguments.environment, out),
        _ => Err(ValueError::unsupported("values of unknown types are")),
    }
}

fn concat_with_separator(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let separator = arguments.text(0)?;
    let mut out = String::new();
    let mut first = true;
    for index in 1..arguments.values.len() {
        if arguments.is_null(index) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push_str(separator);
        }
        write_argument(arguments, index, &mut out)?;
    }
    Ok(Owned::Text(out))
}

/// What stands between `%` and the end of one specifier.
#[derive(Default)]
struct Specifier {
    /// The argument's number, from 1, if it is named.
    argument: Option<usize>,
    left: bool,
    width: Width,
}

#[derive(Default)]
enum Width {
    #[default]
    None,
    Fixed(i32),
    /// The next argument.
    Next,
    /// The argument of that number.
    Argument(usize),
}

fn format(arguments: Arguments<'_>) -> Result<Owned> {
    if arguments.is_null(0) {
        return Ok(Owned::Null);
    }
    let mut rest = arguments.text(0)?;
    let mut out = String::new();
    let mut used = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let specifier = read_specifier(&mut rest)?;
        let conversion = rest.chars().next().ok_or_else(unterminated)?;
        rest = &rest[conversion.len_utf8()..];
        if !matches!(conversion, 's' | 'I' | 'L') {
            let words = format!("unrecognized format() type specifier \"{conversion}\"");
            return Err(ValueError::new("22023", words).with_hint(HINT));
        }
        let mut next = |named: Option<usize>| {
            used = named.unwrap_or(used + 1);
            if used >= arguments.values.len() {
                return Err(ValueError::new("22023", "too few arguments for format()"));
            }
            Ok(used)
        };
        let width = match specifier.width {
            Width::None => 0,
            Width::Fixed(width) => width,
            Width::Next => width_of(arguments, next(None)?)?,
            Width::Argument(number) => width_of(arguments, next(Some(number))?)?,
        };
        let index = next(specifier.argument)?;
        let text = converted(arguments, index, conversion)?;
        write_padded(&text, width, specifier.left, &mut out)?;
    }
    out.push_str(rest);
    Ok(Owned::Text(out))
}

const HINT: &str = "For a single \"%\" use \"%%\".";

fn unterminated() -> ValueError {
    ValueError::new("22023", "unterminated format() type specifier").with_hint(HINT)
}

fn read_specifier(rest: &mut &str) -> Result<Specifier> {
    let mut specifier = Specifier::default();
    if let Some(number) = read_number(rest)? {
        if let Some(after) = rest.strip_prefix('$') {
            specifier.argument = Some(argument_number(number)?);
            *rest = ended(after)?;
        } else {
            // A number alone is a width.
            specifier.width = Width::Fixed(number);
            return Ok(specifier);
        }
    }
    while let Some(after) = rest.strip_prefix('-') {
        specifier.left = true;
        *rest = ended(after)?;
    }
    if let Some(after) = rest.strip_prefix('*') {
        *rest = ended(after)?;
        specifier.width = match read_number(rest)? {
            Some(number) => {
                let Some(after) = rest.strip_prefix('$') else {
                    return Err(ValueError::new(
                        "22023",
                        "width argument position must be ended by \"$\"",
                    ));
                };
                let number = argument_number(number)?;
                *rest = ended(after)?;
                Width::Argument(number)
            }
            None => Width::Next,
        };
    } else if let Some(number) = read_number(rest)? {
        specifier.width = Width::Fixed(number);
    }
    Ok(specifier)
}

fn ended(rest: &str) -> Result<&str> {
    if rest.is_empty() { Err(unterminated()) } else { Ok(rest) }
}

fn argument_number(number: i32) -> Result<usize> {
    usize::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| {
            ValueError::new(
                "22023",
                "format specifies argument 0, but arguments are numbered from 1",
            )
        })
}

fn read_number(rest: &mut &str) -> Result<Option<i32>> {
    let digits = rest.len()
        - rest
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    if digits == 0 {
        return Ok(None);
    }
    let number = rest[..digits]
        .parse()
        .map_err(|_| ValueError::new("22003", "number is out of range"))?;
    *rest = ended(&rest[digits..])?;
    Ok(Some(number))
}

/// A width that is an argument: an integer, or the text of one; NULL is 0.
fn width_of(arguments: Arguments<'_>, index: usize) -> Result<i32> {
    match arguments.values[index] {
        Datum::Null => Ok(0),
        _ => {
            let mut text = String::new();
            write_argument(arguments, index, &mut text)?;
            let plain = text.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
            let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ValueError::invalid_text("22P02", "integer", &text));
            }
            plain
                .parse()
                .map_err(|_| ValueError::new("22003", format!("value \"{text}\" is out of range for type integer")))
        }
    }
}

fn converted(arguments: Arguments<'_>, index: usize, conversion: char) -> Result<String> {
    if arguments.is_null(index) {
        return match conversion {
            's' => Ok(String::new()),
            'L' => Ok("NULL".to_owned()),
            _ => Err(ValueError::new(
                "22004",
                "null values cannot be formatted as an SQL identifier",
            )),
        };
    }
    let mut text = String::new();
    write_argument(arguments, index, &mut text)?;
    Ok(match conversion {
        's' => text,
        'I' => quote::identifier(&text),
        _ => quote::literal(&text),
    })
}

/// A negative width asks for the left side too.
fn write_padded(text: &str, width: i32, left: bool, out: &mut String) -> Result<()> {
    if width == i32::MIN {
        return Err(ValueError::new("22003", "number is out of range"));
    }
    let wanted = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
    super::check_length(i64::try_from(out.len().saturating_add(wanted)).unwrap_or(i64::MAX))?;
    let missing = wanted.saturating_sub(text.chars().count());
    let padding = std::iter::repeat_n(' ', missing);
    if left || width < 0 {
        out.push_str(text);
        out.extend(padding);
    } else {
        out.extend(padding);
        out.push_str(text);
    }
    Ok(())
}
