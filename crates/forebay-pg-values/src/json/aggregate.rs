//! The aggregates that make one document of many rows.
//!
//! Promises: NULLs count, as `null`; the order of rows counts; of no rows there is NULL. They read the types of their arguments.

use std::borrow::Cow;

use super::build::{key, to_value, type_of, write_json};
use super::jsonb::Value;
use super::text;
use crate::aggregate::{Accumulator, Start};
use crate::{Arguments, Datum, Owned, Result, Type, ValueError};

/// `json_agg`.
#[derive(Debug, Default)]
struct JsonAgg {
    out: String,
}

impl Accumulator for JsonAgg {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let of = type_of(&arguments, 0);
        let first = self.out.is_empty();
        self.out.push_str(if first { "[" } else { ", " });
        if !first && matches!(of, Type::Array(_)) && arguments.values[0] != Datum::Null {
            self.out.push_str("\n ");
        }
        write_json(of, arguments.values[0], ",", arguments.environment, &mut self.out)
    }

    fn finish(&self) -> Result<Owned> {
        Ok((!self.out.is_empty()).then(|| format!("{}]", self.out)).into())
    }
}

/// `json_object_agg`.
#[derive(Debug, Default)]
struct JsonObjectAgg {
    out: String,
}

impl Accumulator for JsonObjectAgg {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let [name, value] = arguments.values else {
            return Err(ValueError::new("XX000", "json_object_agg takes a key and a value"));
        };
        self.out.push_str(if self.out.is_empty() { "{ " } else { ", " });
        let Some(name) = key(type_of(&arguments, 0), *name, arguments.environment)? else {
            return Err(null_field());
        };
        text::quote(&name, &mut self.out);
        self.out.push_str(" : ");
        write_json(
            type_of(&arguments, 1),
            *value,
            ",",
            arguments.environment,
            &mut self.out,
        )
    }

    fn finish(&self) -> Result<Owned> {
        Ok((!self.out.is_empty()).then(|| format!("{} }}", self.out)).into())
    }
}

fn null_field() -> ValueError {
    ValueError::new("22023", "field name must not be null")
}

/// `jsonb_agg`.
#[derive(Debug, Default)]
struct JsonbAgg {
    elements: Option<Vec<Value<'static>>>,
}

impl Accumulator for JsonbAgg {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let value = to_value(type_of(&arguments, 0), arguments.values[0], arguments.environment)?;
        self.elements.get_or_insert_default().push(value);
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        self.elements
            .as_ref()
            .map_or(Ok(Owned::Null), |elements| Value::Array(elements.clone()).stored())
    }
}

/// `jsonb_object_agg`.
#[derive(Debug, Default)]
struct JsonbObjectAgg {
    members: Option<Vec<(Cow<'static, str>, Value<'static>)>>,
}

impl Accumulator for JsonbObjectAgg {
    fn add(&mut self, arguments: Arguments<'_>) -> Result<()> {
        let [name, value] = arguments.values else {
            return Err(ValueError::new("XX000", "jsonb_object_agg takes a key and a value"));
        };
        let Some(name) = key(type_of(&arguments, 0), *name, arguments.environment)? else {
            return Err(null_field());
        };
        let value = to_value(type_of(&arguments, 1), *value, arguments.environment)?;
        self.members.get_or_insert_default().push((Cow::Owned(name), value));
        Ok(())
    }

    fn finish(&self) -> Result<Owned> {
        self.members
            .as_ref()
            .map_or(Ok(Owned::Null), |members| Value::object(members.clone()).stored())
    }
}

/// By symbol.
pub(crate) const AGGREGATES: &[(&str, Start)] = &[
    ("json_agg(anyelement)", || Box::<JsonAgg>::default()),
    ("jsonb_agg(anyelement)", || Box::<JsonbAgg>::default()),
    ("json_object_agg(any,any)", || Box::<JsonObjectAgg>::default()),
    ("jsonb_object_agg(any,any)", || Box::<JsonbObjectAgg>::default()),
];
