//! Array literals: `{1,2,NULL,"a b"}`.
//!
//! Promises: reads what PostgreSQL 15 reads, if the lower bounds are 1; writes what it writes.

use super::{Array, DIMENSIONS_MAX, check_count};
use crate::{Environment, Kind, Owned, Result, ValueError, text_form};

/// Reads a literal; the stored form.
pub fn parse(kind: Kind, typmod: i32, text: &str, environment: &Environment) -> Result<String> {
    let mut element = |text: &str| text_form::parse(kind, typmod, text, environment);
    read(text, &mut element)?.stored(kind)
}

/// Appends the literal of a stored array.
pub fn write(kind: Kind, stored: &str, environment: &Environment, out: &mut String) -> Result<()> {
    let array = Array::read(kind, stored)?;
    if array.dimensions.is_empty() {
        out.push_str("{}");
        return Ok(());
    }
    write_level(kind, &array.dimensions, &array.elements, environment, out)
}

fn write_level(
    kind: Kind,
    dimensions: &[usize],
    elements: &[Owned],
    environment: &Environment,
    out: &mut String,
) -> Result<()> {
    let Some((length, below)) = dimensions.split_first() else {
        return write_element(kind, &elements[0], environment, out);
    };
    out.push('{');
    for (at, part) in elements.chunks(elements.len() / length).enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_level(kind, below, part, environment, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_element(kind: Kind, element: &Owned, environment: &Environment, out: &mut String) -> Result<()> {
    if *element == Owned::Null {
        out.push_str("NULL");
        return Ok(());
    }
    let start = out.len();
    text_form::write(kind, element.as_datum(), environment, out)?;
    let written = &out[start..];
    let needs_quotes = written.is_empty()
        || written.eq_ignore_ascii_case("null")
        || written
            .bytes()
            .any(|byte| is_space(byte) || matches!(byte, b'"' | b'\\' | b'{' | b'}' | b','));
    if needs_quotes {
        let written = written.replace('\\', "\\\\").replace('"', "\\\"");
        out.truncate(start);
        out.push('"');
        out.push_str(&written);
        out.push('"');
    }
    Ok(())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}

/// Reads a literal whose elements `element` makes of their texts.
pub(crate) fn read(text: &str, element: &mut dyn FnMut(&str) -> Result<Owned>) -> Result<Array> {
    let mut literal = Literal {
        text,
        quoted_from: 0,
        at: 0,
        dimensions: Vec::new(),
        leaf: None,
        elements: Vec::new(),
    };
    let declared = literal.bounds()?;
    if literal.peek() != Some(b'{') {
        return Err(if declared.is_empty() {
            literal.malformed("Array value must start with \"{\" or dimension information.")
        } else {
            literal.malformed("Array contents must start with \"{\".")
        });
    }
    literal.quoted_from = literal.at;
    literal.level(0)?;
    literal.skip_space();
    if literal.peek().is_some() {
        return Err(literal.malformed("Junk after closing right brace."));
    }
    let mut dimensions = literal.dimensions.clone();
    if literal.elements.is_empty() {
        dimensions.clear();
    }
    literal.quoted_from = 0;
    if !declared.is_empty() && declared != dimensions {
        return Err(literal.malformed("Specified array dimensions do not match array contents."));
    }
    let mut elements = Vec::with_capacity(literal.elements.len());
    for text in literal.elements {
        elements.push(match text {
            Some(text) => element(&text)?,
            None => Owned::Null,
        });
    }
    Ok(if elements.is_empty() {
        Array::empty()
    } else {
        Array::new(dimensions, elements)
    })
}

struct Literal<'a> {
    text: &'a str,
    /// Where messages begin to quote it: behind white space and bounds, if it is the contents that are wrong.
    quoted_from: usize,
    at: usize,
    dimensions: Vec<usize>,
    /// The level that elements are on, once one was seen.
    leaf: Option<usize>,
    elements: Vec<Option<String>>,
}

impl Literal<'_> {
    fn malformed(&self, detail: &str) -> ValueError {
        ValueError::new(
            "22P02",
            format!("malformed array literal: \"{}\"", &self.text[self.quoted_from..]),
        )
        .with_detail(detail)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// `[1:2][3]=` before the first brace: the lengths.
    fn bounds(&mut self) -> Result<Vec<usize>> {
        let mut lengths = Vec::new();
        loop {
            self.skip_space();
            if self.peek() != Some(b'[') {
                break;
            }
            self.at += 1;
            if lengths.len() >= DIMENSIONS_MAX {
                return Err(too_many(lengths.len() + 1));
            }
            let mut lower = 1;
            let mut upper = self.bound("\"[\" must introduce explicitly-specified array dimensions.")?;
            if self.peek() == Some(b':') {
                self.at += 1;
                lower = upper;
                upper = self.bound("Missing array dimension value.")?;
            }
            if self.peek() != Some(b']') {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            self.at += 1;
            if upper < lower {
                return Err(ValueError::new("2202E", "upper bound cannot be less than lower bound"));
            }
            if lower != 1 {
                return Err(ValueError::unsupported("arrays whose lower bound is not 1 are"));
            }
            lengths.push(usize::try_from(upper).expect("not less than 1"));
        }
        if !lengths.is_empty() {
            if self.peek() != Some(b'=') {
                return Err(self.malformed("Missing \"=\" after array dimensions."));
            }
            self.at += 1;
            self.skip_space();
        }
        Ok(lengths)
    }

    fn bound(&mut self, missing: &str) -> Result<i64> {
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        self.at += sign + digits;
        if digits == 0 {
            return Err(self.malformed(missing));
        }
        let bound = rest[..sign + digits]
            .parse()
            .ok()
            .filter(|bound: &i64| i32::try_from(*bound).is_ok());
        bound.ok_or_else(|| ValueError::unsupported("array bounds beyond the range of integer are"))
    }

    /// From `{` to behind its `}`.
    fn level(&mut self, depth: usize) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(too_many(depth + 1));
        }
        self.at += 1;
        self.skip_space();
        let mut length = 0;
        // Only the outermost braces may hold nothing.
        if depth > 0 || self.peek() != Some(b'}') {
            loop {
                self.item(depth, length == 0)?;
                length += 1;
                self.skip_space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                    }
                    Some(b'}') => break,
                    None => return Err(self.unexpected_end()),
                    Some(b'{') => return Err(self.malformed("Unexpected \"{\" character.")),
                    Some(_) => return Err(self.malformed("Unexpected array element.")),
                }
            }
        }
        self.at += 1;
        // Inner levels end first.
        if self.dimensions.len() <= depth {
            self.dimensions.resize(depth + 1, 0);
        }
        let known = &mut self.dimensions[depth];
        if *known != 0 && *known != length {
            return Err(self.mismatch());
        }
        *known = length;
        Ok(())
    }

    fn item(&mut self, depth: usize, first: bool) -> Result<()> {
        match self.peek() {
            None => return Err(self.unexpected_end()),
            Some(b'{') => {
                if self.leaf.is_some_and(|leaf| leaf <= depth) {
                    // Behind an element braces are wrong; behind shallower braces PostgreSQL 15 takes some.
                    return Err(if first {
                        uneven()
                    } else {
                        self.malformed("Unexpected \"{\" character.")
                    });
                }
                return self.level(depth + 1);
            }
            Some(b'}') => return Err(self.malformed("Unexpected \"}\" character.")),
            Some(b',') => return Err(self.malformed("Unexpected \",\" character.")),
            Some(_) => {}
        }
        if *self.leaf.get_or_insert(depth) != depth {
            return Err(uneven());
        }
        let element = if self.peek() == Some(b'"') {
            Some(self.quoted()?)
        } else {
            self.unquoted()?
        };
        self.elements.push(element);
        check_count(self.elements.len())
    }

    fn quoted(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err(self.unexpected_end());
            };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(out),
                '\\' => out.push(self.escaped()?),
                other => out.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Result<char> {
        let Some(character) = self.text[self.at..].chars().next() else {
            return Err(self.unexpected_end());
        };
        self.at += character.len_utf8();
        Ok(character)
    }

    fn unquoted(&mut self) -> Result<Option<String>> {
        let mut out = String::new();
        let mut escaped = false;
        // White space at the end does not count, unless it is escaped.
        let mut end = 0;
        loop {
            let Some(character) = self.text[self.at..].chars().next() else {
                return Err(self.unexpected_end());
            };
            match character {
                ',' | '}' => break,
                '{' => return Err(self.malformed("Unexpected \"{\" character.")),
                '"' => return Err(self.malformed("Unexpected array element.")),
                _ => {}
            }
            self.at += character.len_utf8();
            if character == '\\' {
                out.push(self.escaped()?);
                escaped = true;
                end = out.len();
            } else {
                out.push(character);
                if !(character.is_ascii() && is_space(character as u8)) {
                    end = out.len();
                }
            }
        }
        out.truncate(end);
        Ok((escaped || !out.eq_ignore_ascii_case("null")).then_some(out))
    }

    fn unexpected_end(&self) -> ValueError {
        self.malformed("Unexpected end of input.")
    }

    fn mismatch(&self) -> ValueError {
        self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
    }
}

/// Elements at different depths: PostgreSQL 15 refuses some of these, and takes others and loses elements.
fn uneven() -> ValueError {
    ValueError::unsupported("array literals with elements at different depths are")
}

pub(crate) fn too_many(dimensions: usize) -> ValueError {
    ValueError::new(
        "54000",
        format!("number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})"),
    )
}
