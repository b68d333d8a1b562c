//! What ALTER SEQUENCE makes of a sequence.
//!
//! Promises: PostgreSQL's numbers and errors. Knows nothing of numbers that are given meanwhile: it is told the last one.

use forebay_pg_values::ValueError;
use serde::{Deserialize, Serialize};

/// What is to be changed; what is `None` stays. Of the bounds and of RESTART, an inner `None` is the one that nobody named.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SequenceChange {
    /// The type's name.
    pub(crate) kind: Option<String>,
    pub(crate) increment: Option<i64>,
    #[serde(default, with = "named")]
    pub(crate) minimum: Option<Option<i64>>,
    #[serde(default, with = "named")]
    pub(crate) maximum: Option<Option<i64>>,
    pub(crate) start: Option<i64>,
    #[serde(default, with = "named")]
    pub(crate) restart: Option<Option<i64>>,
    pub(crate) cache: Option<i64>,
    pub(crate) cycle: Option<bool>,
    /// Table and column; neither for nobody.
    #[serde(default, with = "named")]
    pub(crate) owner: Option<Option<(String, String)>>,
}

/// What is said of something, which may be that it is left to us: as a list of nothing or one, for JSON has one null only.
mod named {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        said: &Option<Option<T>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        said.as_ref()
            .map(|said| said.iter().collect::<Vec<_>>())
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        let said: Option<Vec<T>> = Option::deserialize(deserializer)?;
        Ok(said.map(|said| said.into_iter().next()))
    }
}

/// What a sequence is, but for its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) kind: String,
    pub(super) start: i64,
    pub(super) increment: i64,
    pub(super) minimum: i64,
    pub(super) maximum: i64,
    pub(super) cycle: bool,
    pub(super) last: i64,
    pub(super) called: bool,
}

impl SequenceChange {
    /// What becomes of a sequence.
    pub(super) fn of(&self, old: &Described) -> Result<Described, ValueError> {
        let mut new = old.clone();
        // Bounds that are those of a type go with it.
        let (mut minimum, mut maximum) = (self.minimum, self.maximum);
        if let Some(kind) = &self.kind {
            let (low, high) = sequence_bounds(&old.kind);
            if old.maximum == high {
                maximum = maximum.or(Some(None));
            }
            if old.minimum == low {
                minimum = minimum.or(Some(None));
            }
            new.kind.clone_from(kind);
        }
        if let Some(increment) = self.increment {
            if increment == 0 {
                return Err(wrong("INCREMENT must not be zero"));
            }
            new.increment = increment;
        }
        new.cycle = self.cycle.unwrap_or(old.cycle);
        let (low, high) = sequence_bounds(&new.kind);
        let ascending = new.increment > 0;
        if let Some(said) = maximum {
            new.maximum = said.unwrap_or(if ascending { high } else { -1 });
        }
        if let Some(said) = minimum {
            new.minimum = said.unwrap_or(if ascending { 1 } else { low });
        }
        for (word, bound) in [("MAXVALUE", new.maximum), ("MINVALUE", new.minimum)] {
            if !(low..=high).contains(&bound) {
                let kind = &new.kind;
                return Err(wrong(format!(
                    "{word} ({bound}) is out of range for sequence data type {kind}"
                )));
            }
        }
        if new.minimum >= new.maximum {
            return Err(wrong(format!(
                "MINVALUE ({}) must be less than MAXVALUE ({})",
                new.minimum, new.maximum
            )));
        }
        new.start = self.start.unwrap_or(old.start);
        if let Some(restart) = self.restart {
            new.last = restart.unwrap_or(new.start);
            new.called = false;
        }
        for (word, number) in [("START", new.start), ("RESTART", new.last)] {
            if number < new.minimum {
                let minimum = new.minimum;
                return Err(wrong(format!(
                    "{word} value ({number}) cannot be less than MINVALUE ({minimum})"
                )));
            }
            if number > new.maximum {
                let maximum = new.maximum;
                return Err(wrong(format!(
                    "{word} value ({number}) cannot be greater than MAXVALUE ({maximum})"
                )));
            }
        }
        match self.cache {
            Some(cache) if cache < 1 => Err(wrong(format!("CACHE ({cache}) must be greater than zero"))),
            Some(cache) if cache > 1 => Err(ValueError::unsupported(
                "CACHE of more than one number of a sequence is",
            )),
            _ => Ok(new),
        }
    }
}

/// The least and the greatest number of a sequence of this type.
pub(crate) fn sequence_bounds(kind: &str) -> (i64, i64) {
    match kind {
        "smallint" => (i16::MIN.into(), i16::MAX.into()),
        "integer" => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

fn wrong(message: impl Into<String>) -> ValueError {
    ValueError::new("22023", message)
}
