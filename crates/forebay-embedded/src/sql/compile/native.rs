//! Operators that SQLite has exactly as PostgreSQL does, given values in their stored forms.
//!
//! Promises: only what is equal for all values of the types, NULL included. Everything else calls a function with PostgreSQL's meaning.

use forebay_pg_values::{Type, array};

use super::scalar::{Form, Scalar};
use super::types;

/// A function in SQLite's own words.
pub(super) struct Native {
    pub(super) sql: String,
    /// NULL only if an argument is.
    pub(super) keeps_not_null: bool,
}

/// The comparison that a symbol of PostgreSQL's is, if it compares values of types that SQLite orders likewise.
fn comparison(symbol: &str) -> Option<&'static str> {
    const FAMILIES: [&str; 33] = [
        "int2",
        "int4",
        "int8",
        "int24",
        "int28",
        "int42",
        "int48",
        "int82",
        "int84",
        "float4",
        "float8",
        "float48",
        "float84",
        "numeric_",
        "bool",
        "text",
        "text_",
        "bpchar",
        "name",
        "namee",
        "char",
        "bytea",
        "date_",
        "time_",
        "timestamp_",
        "timestamptz_",
        "interval_",
        "uuid_",
        "oid",
        "jsonb_",
        "nametext",
        "textname",
        "text_pattern_",
    ];
    const ENDINGS: [(&str, &str); 11] = [
        ("eq", "="),
        ("ne", "<>"),
        ("lt", "<"),
        ("le", "<="),
        ("gt", ">"),
        ("ge", ">="),
        ("_lt", "<"),
        ("_le", "<="),
        ("_gt", ">"),
        ("_ge", ">="),
        ("_ne", "<>"),
    ];
    FAMILIES.iter().find_map(|family| {
        let ending = symbol.strip_prefix(family)?;
        ENDINGS
            .iter()
            .find(|(written, _)| *written == ending)
            .map(|(_, operator)| *operator)
    })
}

/// What a comparison of two constants of one type comes to.
pub(super) fn compared(symbol: &str, arguments: &[Scalar]) -> Option<bool> {
    let [left, right] = arguments else { return None };
    let (Form::Constant(of_left), Form::Constant(of_right)) = (&left.form, &right.form) else {
        return None;
    };
    let Some(Type::Scalar(kind)) = Type::from_oid(left.oid).filter(|_| left.oid == right.oid) else {
        return None;
    };
    let order = array::compare_scalar(kind, of_left.as_datum(), of_right.as_datum());
    Some(match comparison(symbol)? {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

pub(super) fn lower(symbol: &str, arguments: &[Scalar]) -> Option<Native> {
    if let (Some(operator), [left, right]) = (comparison(symbol), arguments) {
        if !types::is_ordered(left.oid) || !types::is_ordered(right.oid) {
            return None;
        }
        // The collation is said on the left, so that none inside of the right side decides.
        let left = if types::collation(left.oid).is_none() && !left.has_collation() && right.has_collation() {
            format!("{} COLLATE BINARY", left.sql)
        } else {
            left.compared()
        };
        return Some(Native {
            sql: format!("({left} {operator} {})", right.sql),
            keeps_not_null: true,
        });
    }
    let sql = match (symbol, arguments) {
        // Widening changes nothing of the stored form.
        ("int48" | "int28" | "i2toi4" | "oidtoi8" | "ftod", [value]) => value.sql.clone(),
        ("textcat", [left, right]) => format!("({} || {})", left.sql, right.sql),
        ("i4tod" | "i2tod" | "i8tod", [value]) => format!("CAST({} AS REAL)", value.sql),
        ("boolne", [left, right]) => format!("({} <> {})", left.sql, right.sql),
        ("bool_int4", [value]) => value.sql.clone(),
        ("int4_bool", [value]) => format!("({} <> 0)", value.sql),
        _ => return None,
    };
    Some(Native {
        sql,
        keeps_not_null: true,
    })
}
