//! How PostgreSQL's types are declared in the file.
//!
//! Promises: what [`declared`] writes, [`of_declared`] reads back. Types stand under PostgreSQL's names, but for those that SQLite
//! would give numeric affinity although they are kept as text: `numeric_text`, `json_text`, `jsonb_text`, `name_text`; floats are
//! `float8_blob`, because SQLite's REAL affinity loses the sign of -0. Arrays are `int4_array`.

use super::types::{self, TypeName};
use crate::sql::facts::{self, Oid, oid};

/// The name under which a type is declared in the file.
pub(crate) fn declared(kind: TypeName) -> String {
    let name = |oid: Oid| facts::type_fact(oid).map_or("", |fact| fact.name);
    if let Some(element) = facts::element_of(kind.oid) {
        return format!("{}_array", name(element));
    }
    match kind.oid {
        oid::NUMERIC if kind.typmod >= 0 => {
            let (precision, scale) = types::numeric_limits(kind.typmod);
            format!("numeric_text({precision},{scale})")
        }
        oid::NUMERIC => "numeric_text".to_owned(),
        oid::JSON => "json_text".to_owned(),
        oid::JSONB => "jsonb_text".to_owned(),
        oid::NAME => "name_text".to_owned(),
        oid::BOOL => "boolean".to_owned(),
        // Of REAL affinity SQLite would lose the sign of -0.
        oid::FLOAT4 | oid::FLOAT8 => format!("{}_blob", name(kind.oid)),
        oid::VARCHAR | oid::BPCHAR if kind.typmod >= 0 => format!("{}({})", name(kind.oid), kind.typmod - 4),
        _ if kind.typmod >= 0 => format!("{}({})", name(kind.oid), kind.typmod),
        other => name(other).to_owned(),
    }
}

/// The type that a declaration stands for, and whether its values are kept as something else keeps them.
pub(crate) fn of_declared(declared: &str) -> (TypeName, bool) {
    let lower = declared.to_ascii_lowercase();
    let (name, modifiers) = match lower.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.split(')').next().unwrap_or("")),
        None => (lower.trim(), ""),
    };
    let numbers: Vec<i32> = modifiers
        .split(',')
        .filter_map(|number| number.trim().parse().ok())
        .collect();
    let first = numbers.first().copied();
    let own = |oid: Oid| (TypeName::plain(oid), false);
    if let Some(element) = name.strip_suffix("_array").and_then(facts::type_named) {
        return own(facts::array_of(element).unwrap_or(oid::TEXT));
    }
    let with_length = |oid: Oid| {
        let typmod = first.filter(|length| *length > 0).map_or(-1, |length| length + 4);
        (TypeName { oid, typmod }, false)
    };
    let with_precision = |oid: Oid| {
        let typmod = first.unwrap_or(-1);
        (TypeName { oid, typmod }, false)
    };
    match name {
        "numeric_text" => {
            let typmod = match numbers.as_slice() {
                [precision, scale] => types::numeric_typmod(*precision, *scale),
                _ => -1,
            };
            (
                TypeName {
                    oid: oid::NUMERIC,
                    typmod,
                },
                false,
            )
        }
        "json_text" => own(oid::JSON),
        "jsonb_text" => own(oid::JSONB),
        "name_text" => own(oid::NAME),
        "boolean" | "bool" => own(oid::BOOL),
        "int2" | "smallint" => own(oid::INT2),
        "int4" => own(oid::INT4),
        "float4" | "float4_blob" => own(oid::FLOAT4),
        "float8_blob" => own(oid::FLOAT8),
        "oid" => own(oid::OID),
        "varchar" => with_length(oid::VARCHAR),
        "bpchar" => with_length(oid::BPCHAR),
        "char" if declared == "char" => own(oid::CHAR),
        "bytea" => own(oid::BYTEA),
        "date" => own(oid::DATE),
        "time" => with_precision(oid::TIME),
        "timetz" => with_precision(oid::TIMETZ),
        "timestamp" => with_precision(oid::TIMESTAMP),
        "timestamptz" => with_precision(oid::TIMESTAMPTZ),
        "interval" => with_precision(oid::INTERVAL),
        "uuid" => own(oid::UUID),
        "numeric" | "decimal" | "dec" => (TypeName::plain(oid::NUMERIC), true),
        "json" => (TypeName::plain(oid::JSON), true),
        "jsonb" => (TypeName::plain(oid::JSON), true),
        "datetime" | "timestamp without time zone" => own(oid::TIMESTAMP),
        "timestamp with time zone" => own(oid::TIMESTAMPTZ),
        _ => {
            let has = |word: &str| lower.contains(word);
            own(if has("int") || has("serial") {
                oid::INT8
            } else if has("char") || has("clob") || has("text") {
                oid::TEXT
            } else if has("blob") {
                oid::BYTEA
            } else if has("real") || has("floa") || has("doub") {
                oid::FLOAT8
            } else {
                oid::TEXT
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_read_back() {
        for kind in [
            TypeName::plain(oid::INT2),
            TypeName::plain(oid::INT4),
            TypeName::plain(oid::INT8),
            TypeName::plain(oid::BOOL),
            TypeName::plain(oid::FLOAT4),
            TypeName::plain(oid::FLOAT8),
            TypeName::plain(oid::NUMERIC),
            TypeName {
                oid: oid::NUMERIC,
                typmod: types::numeric_typmod(10, 2),
            },
            TypeName {
                oid: oid::NUMERIC,
                typmod: types::numeric_typmod(3, -2),
            },
            TypeName::plain(oid::TEXT),
            TypeName {
                oid: oid::VARCHAR,
                typmod: 24,
            },
            TypeName {
                oid: oid::BPCHAR,
                typmod: 5,
            },
            TypeName::plain(oid::BYTEA),
            TypeName::plain(oid::DATE),
            TypeName {
                oid: oid::TIMESTAMPTZ,
                typmod: 3,
            },
            TypeName::plain(oid::INTERVAL),
            TypeName::plain(oid::UUID),
            TypeName::plain(oid::JSON),
            TypeName::plain(oid::JSONB),
            TypeName::plain(facts::array_of(oid::TEXT).unwrap()),
        ] {
            assert_eq!(of_declared(&declared(kind)), (kind, false), "{}", declared(kind));
        }
    }
}
