//! string_agg, of texts and of bytes.

use crate::aggregate::{Accumulator, Start};
use crate::{Arguments, Datum, Owned, Result};

/// Gathers `string_agg(value, separator)`: values that are not NULL, each but the first after the separator of its own row (a NULL
/// separator is nothing). Nothing gathered: NULL.
#[derive(Debug, Clone, Default)]
pub struct StringAggregate {
    gathered: Option<Vec<u8>>,
}

impl StringAggregate {
    /// Adds a row's value with its separator.
    pub fn add(&mut self, value: Option<&[u8]>, separator: Option<&[u8]>) {
        let Some(value) = value else { return };
        match &mut self.gathered {
            None => self.gathered = Some(value.to_vec()),
            Some(gathered) => {
                gathered.extend_from_slice(separator.unwrap_or_default());
                gathered.extend_from_slice(value);
            }
        }
    }

    /// What was gathered of bytes.
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        self.gathered
    }

    /// What was gathered of texts.
    pub fn into_text(self) -> Option<String> {
        self.gathered
            .map(|bytes| String::from_utf8(bytes).expect("texts and separators are whole characters"))
    }
}

/// The aggregates of this module.
pub(crate) const AGGREGATES: &[(&str, Start)] = &[
    ("string_agg(text,text)", || Box::new(Texts::default())),
    ("string_agg(bytea,bytea)", || Box::new(Bytes::default())),
];

#[derive(Default)]
struct Texts(StringAggregate);

#[derive(Default)]
struct Bytes(StringAggregate);

fn bytes<'a>(arguments: &Arguments<'a>, place: usize) -> Result<Option<&'a [u8]>> {
    match arguments.values.get(place) {
        Some(Datum::Null) | None => Ok(None),
        Some(Datum::Text(text)) => Ok(Some(text.as_bytes())),
        _ => arguments.blob(place).map(Some),
    }
}

impl Accumulator for Texts {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        self.0.add(bytes(&arguments, 0)?, bytes(&arguments, 1)?);
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.0.clone().into_text().into())
    }
}

impl Accumulator for Bytes {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        self.0.add(bytes(&arguments, 0)?, bytes(&arguments, 1)?);
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        Ok(self.0.clone().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_their_rows_own() {
        let mut aggregate = StringAggregate::default();
        assert_eq!(aggregate.clone().into_text(), None);
        for (value, separator) in [
            (None, Some(",")),
            (Some("a"), Some(";")),
            (None, Some("?")),
            (Some("é"), None),
            (Some(""), Some("-")),
        ] {
            aggregate.add(value.map(str::as_bytes), separator.map(str::as_bytes));
        }
        assert_eq!(aggregate.clone().into_text().as_deref(), Some("aé-"));
        assert_eq!(aggregate.into_bytes().as_deref(), Some("aé-".as_bytes()));
    }
}
