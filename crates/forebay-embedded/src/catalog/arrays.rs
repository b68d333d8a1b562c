//! Arrays as PostgreSQL writes them: `{a,"b c",NULL}`, and `1 2 3` for the vectors of the catalog.
//!
//! The catalog stores arrays in this form, so that a result in text format needs no conversion. Subscripts start at 1, those of vectors at
//! 0; an array that starts elsewhere says so: `[0:1]={a,b}`. Knows one dimension only; knows no types.

/// An array or vector.
pub(super) struct Array {
    /// The first subscript.
    pub(super) first: i64,
    pub(super) elements: Vec<Option<String>>,
}

/// Reads an array or vector. `None` for text that is neither.
pub(super) fn parse(text: &str) -> Option<Array> {
    if let Some(rest) = text.strip_prefix('[') {
        let (bounds, array) = rest.split_once("]=")?;
        let (first, last) = bounds.split_once(':')?;
        let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
        let elements = elements(array)?;
        let counted = last.checked_sub(first)?.checked_add(1)?;
        return (array.starts_with('{') && i64::try_from(elements.len()) == Ok(counted))
            .then_some(Array { first, elements });
    }
    Some(Array {
        first: i64::from(text.starts_with('{')),
        elements: elements(text)?,
    })
}

fn elements(text: &str) -> Option<Vec<Option<String>>> {
    let Some(rest) = text.strip_prefix('{') else {
        return Some(
            text.split_ascii_whitespace()
                .map(|word| Some(word.to_owned()))
                .collect(),
        );
    };
    let inner = rest.strip_suffix('}')?;
    let mut elements = Vec::new();
    if inner.trim().is_empty() {
        return Some(elements);
    }
    let mut letters = inner.chars().peekable();
    loop {
        let mut element = String::new();
        let quoted = letters.next_if_eq(&'"').is_some();
        if quoted {
            loop {
                match letters.next()? {
                    '"' => break,
                    '\\' => element.push(letters.next()?),
                    letter => element.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                match letter {
                    '{' | '}' | '"' => return None,
                    '\\' => element.push(letters.next()?),
                    _ => element.push(letter),
                }
            }
        }
        let is_null = !quoted && element.eq_ignore_ascii_case("null");
        elements.push((!is_null).then_some(element));
        match letters.next() {
            None => return Some(elements),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}

/// Writes a vector as PostgreSQL prints it after a cast to an array: it keeps its first subscript.
pub(super) fn format_vector(elements: &[Option<String>]) -> String {
    match elements.len() {
        0 => "{}".to_owned(),
        length => format!("[0:{}]={}", length - 1, format(elements)),
    }
}

/// Writes elements as PostgreSQL would print the array.
pub(super) fn format(elements: &[Option<String>]) -> String {
    let mut text = String::from("{");
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        match element {
            None => text.push_str("NULL"),
            Some(element) => {
                let plain = !element.is_empty()
                    && !element.eq_ignore_ascii_case("null")
                    && !element.contains(|letter: char| {
                        matches!(letter, '{' | '}' | ',' | '"' | '\\') || letter.is_whitespace()
                    });
                if plain {
                    text.push_str(element);
                } else {
                    text.push('"');
                    for letter in element.chars() {
                        if matches!(letter, '"' | '\\') {
                            text.push('\\');
                        }
                        text.push(letter);
                    }
                    text.push('"');
                }
            }
        }
    }
    text.push('}');
    text
}
