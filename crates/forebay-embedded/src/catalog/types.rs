//! PostgreSQL's types as the catalog shows them, and which of them a SQLite column's declared type stands for.
//!
//! `data/types.txt` and `data/procedures.txt` hold the rows of PostgreSQL 15's `pg_type` (without row types) and of the in- and
//! output functions these name. Knows nothing of values.

use std::collections::HashMap;
use std::sync::LazyLock;

use postgres_types::{Kind, Type};

/// One row of `pg_type`.
pub(super) struct TypeRow {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    /// The name that SQL knows it by: `bigint` for `int8`.
    pub(super) display: &'static str,
    /// All fields of the line, in the order of [`TYPE_COLUMNS`].
    pub(super) fields: Vec<&'static str>,
}

/// The columns of `pg_type` that `data/types.txt` brings.
pub(super) const TYPE_COLUMNS: &str = "oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typelem, \
     typarray, typalign, typstorage, typcollation, typinput, typoutput, typreceive, typsend";
pub(super) const TYPE_COLUMN_COUNT: usize = 17;

/// One function of `pg_proc`: the in- and output functions of the types.
pub(super) struct Procedure {
    pub(super) oid: u32,
    pub(super) name: &'static str,
    pub(super) result: u32,
    /// Space-separated OIDs, as in `proargtypes`.
    pub(super) arguments: &'static str,
}

/// Every type of the catalog, by OID ascending.
pub(super) static TYPES: LazyLock<Vec<TypeRow>> = LazyLock::new(|| {
    include_str!("data/types.txt")
        .lines()
        .map(|line| {
            let fields: Vec<&'static str> = line.split('\t').collect();
            TypeRow {
                oid: number(fields[0]),
                name: fields[1],
                display: fields[TYPE_COLUMN_COUNT],
                fields,
            }
        })
        .collect()
});

/// Every function of the catalog, by OID ascending.
pub(super) static PROCEDURES: LazyLock<Vec<Procedure>> = LazyLock::new(|| {
    include_str!("data/procedures.txt")
        .lines()
        .map(|line| {
            let fields: Vec<&'static str> = line.split('\t').collect();
            Procedure {
                oid: number(fields[0]),
                name: fields[1],
                result: number(fields[2]),
                arguments: fields[3],
            }
        })
        .collect()
});

static BY_NAME: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    TYPES
        .iter()
        .flat_map(|row| [(row.name, row.oid), (row.display, row.oid)])
        .collect()
});

fn number(field: &str) -> u32 {
    field
        .parse()
        .expect("the catalog's data files hold numbers where OIDs stand")
}

fn row(oid: u32) -> Option<&'static TypeRow> {
    TYPES
        .binary_search_by_key(&oid, |row| row.oid)
        .ok()
        .map(|index| &TYPES[index])
}

/// The type behind a catalog column's type name, for example `int2vector` or `_text`.
pub(super) fn catalog_type(name: &str) -> Type {
    BY_NAME
        .get(name)
        .and_then(|oid| Type::from_oid(*oid))
        .unwrap_or(Type::TEXT)
}

/// The OID a type name means in SQL: `int8`, `bigint`, `pg_catalog.text`, `text[]`, `varchar(20)`.
pub(super) fn type_oid(name: &str) -> Option<u32> {
    let name = name.trim();
    let schemas = ["pg_catalog.", "\"pg_catalog\"."];
    let name = schemas
        .iter()
        .find_map(|schema| name.strip_prefix(schema))
        .unwrap_or(name);
    let folded = name.to_ascii_lowercase();
    if let Some(element) = folded.strip_suffix("[]") {
        let element = type_oid(element)?;
        let array: u32 = number(row(element)?.fields[9]);
        return (array != 0).then_some(array);
    }
    // A quoted "char" is a type of its own; the unquoted word is character(1).
    let unquoted = match folded.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => {
            return TYPES.iter().find(|row| row.name == quoted).map(|row| row.oid);
        }
        None => folded,
    };
    let bare = match unquoted.find('(') {
        Some(open) => {
            let close = unquoted.find(')')?;
            format!("{}{}", unquoted[..open].trim_end(), unquoted.get(close + 1..)?)
        }
        None => unquoted,
    };
    let canonical = match bare.as_str() {
        "int" => "int4",
        "decimal" | "dec" => "numeric",
        "float" => "float8",
        "char" => "bpchar",
        "timestamp" => "timestamp",
        "time" => "time",
        other => other,
    };
    BY_NAME.get(canonical).copied()
}

/// `format_type(oid, typmod)`.
pub(super) fn format_type(oid: u32, modifier: Option<i64>) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let Some(row) = row(oid) else {
        return "???".to_owned();
    };
    match modifier {
        Some(modifier) if modifier >= 0 => {
            crate::sql::compile::types::format_type(oid, i32::try_from(modifier).unwrap_or(-1))
        }
        // With a modifier that says nothing, these are not the character(1) and bit(1) that their SQL names mean.
        Some(_) => match row.name {
            "bpchar" => "bpchar".to_owned(),
            "_bpchar" => "bpchar[]".to_owned(),
            "bit" => "\"bit\"".to_owned(),
            "_bit" => "\"bit\"[]".to_owned(),
            _ => row.display.to_owned(),
        },
        None => row.display.to_owned(),
    }
}

/// What a SQLite column of this declared type looks like from PostgreSQL.
pub(super) fn column_type(declared: &str) -> Type {
    let folded = declared.to_ascii_lowercase();
    let first = folded
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    let has = |part: &str| folded.contains(part);
    match first {
        // These hold letters that SQLite would take for INT.
        "interval" | "point" => Type::TEXT,
        "timestamptz" => Type::TIMESTAMPTZ,
        "timestamp" if has("with time zone") => Type::TIMESTAMPTZ,
        "timestamp" | "datetime" => Type::TIMESTAMP,
        "date" => Type::DATE,
        "time" => Type::TIME,
        "uuid" => Type::UUID,
        "jsonb" => Type::JSONB,
        "json" => Type::JSON,
        "bytea" | "blob" => Type::BYTEA,
        "numeric" | "decimal" | "dec" => Type::NUMERIC,
        "serial" | "bigserial" | "smallserial" => Type::INT8,
        _ if first.starts_with("bool") => Type::BOOL,
        _ if has("int") => Type::INT8,
        _ if has("char") || has("clob") || has("text") => Type::TEXT,
        _ if has("blob") => Type::BYTEA,
        _ if has("real") || has("floa") || has("doub") => Type::FLOAT8,
        _ => Type::TEXT,
    }
}

/// The facts of a type that `pg_attribute` repeats: length, by value, alignment, storage, collation.
pub(super) fn attribute_facts(oid: u32) -> [&'static str; 5] {
    row(oid).map_or(["-1", "0", "i", "x", "0"], |row| {
        [
            row.fields[2],
            row.fields[3],
            row.fields[10],
            row.fields[11],
            row.fields[12],
        ]
    })
}

/// The type of an array's or vector's elements.
pub(super) fn element_type(array: &Type) -> Option<Type> {
    match *array {
        Type::INT2_VECTOR => Some(Type::INT2),
        Type::OID_VECTOR => Some(Type::OID),
        _ => match array.kind() {
            Kind::Array(element) => Some(element.clone()),
            _ => None,
        },
    }
}

/// The array type over an element type.
pub(super) fn array_type(element: &Type) -> Option<Type> {
    row(element.oid()).and_then(|row| Type::from_oid(number(row.fields[9])))
}

/// How values of a type are held in the catalog's SQLite tables, and so what may be compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Integers, OIDs, and the `reg…` types, which are OIDs.
    Integer,
    Float,
    Boolean,
    Text,
    Array,
    /// A literal or parameter whose type the other side decides.
    Unknown,
    /// Held as PostgreSQL's text; equality is safe, order is not looked at.
    Other,
}

pub(super) fn family(kind: &Type) -> Family {
    match *kind {
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::XID | Type::CID => Family::Integer,
        _ if is_registered(kind) => Family::Integer,
        Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => Family::Float,
        Type::BOOL => Family::Boolean,
        Type::TEXT | Type::VARCHAR | Type::NAME | Type::BPCHAR | Type::CHAR | Type::PG_NODE_TREE => Family::Text,
        Type::UNKNOWN => Family::Unknown,
        Type::INT2_VECTOR | Type::OID_VECTOR | Type::ANYARRAY => Family::Array,
        _ if element_type(kind).is_some() => Family::Array,
        _ => Family::Other,
    }
}

/// The function that tells the name behind a value of a `reg…` type.
pub(super) fn name_function(kind: &Type) -> &'static str {
    match *kind {
        Type::REGCLASS => "forebay_regclass_text",
        Type::REGTYPE => "forebay_regtype_text",
        Type::REGNAMESPACE => "forebay_regnamespace_text",
        Type::REGROLE => "forebay_regrole_text",
        Type::REGPROCEDURE => "forebay_regprocedure_text",
        _ => "forebay_regproc_text",
    }
}

/// The `reg…` types: an OID inside, a name when printed.
pub(super) fn is_registered(kind: &Type) -> bool {
    matches!(
        *kind,
        Type::REGCLASS | Type::REGTYPE | Type::REGNAMESPACE | Type::REGROLE | Type::REGPROC | Type::REGPROCEDURE
    )
}
