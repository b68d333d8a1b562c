//! Types as statements name them: from the syntax tree to PostgreSQL's number and modifier; and what PostgreSQL knows of a type.
//!
//! Promises: a name that PostgreSQL does not know is its error (42704); a type that PostgreSQL has and that cannot be stored here is refused by
//! name.

use forebay_pg_values::{Kind, Type};
use sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, IntervalFields, ObjectName, ObjectNamePart,
    TimezoneInfo,
};

use super::fault::{Fault, Result};
use super::resolve::converts;
use super::syntax::folded;
use crate::sql::facts::{self, Oid, oid};

/// A type with its modifier, -1 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeName {
    pub(crate) oid: Oid,
    pub(crate) typmod: i32,
}

impl TypeName {
    pub(crate) fn plain(oid: Oid) -> Self {
        Self { oid, typmod: -1 }
    }
}

/// A name of one part in lower case unless quoted; `pg_catalog.` in front changes nothing.
pub(crate) fn object_name(name: &ObjectName) -> Result<String> {
    let mut parts = Vec::with_capacity(name.0.len());
    for part in &name.0 {
        match part {
            ObjectNamePart::Identifier(name) => parts.push(folded(name)),
            ObjectNamePart::Function(_) => return Err(Fault::unsupported(format!("the name {name}"))),
        }
    }
    match parts.as_slice() {
        [only] => Ok(only.clone()),
        [schema, last] if schema == "pg_catalog" => Ok(last.clone()),
        _ => Ok(parts.join(".")),
    }
}

/// The type that a statement names.
pub(crate) fn resolve(data_type: &DataType) -> Result<TypeName> {
    let plain = |oid| Ok(TypeName::plain(oid));
    match data_type {
        DataType::Bool | DataType::Boolean => plain(oid::BOOL),
        DataType::SmallInt(None) | DataType::Int2(None) => plain(oid::INT2),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => plain(oid::INT4),
        DataType::BigInt(None) | DataType::Int8(None) => plain(oid::INT8),
        DataType::Real | DataType::Float4 => plain(oid::FLOAT4),
        DataType::Float8 | DataType::DoublePrecision => plain(oid::FLOAT8),
        DataType::Float(ExactNumberInfo::None) => plain(oid::FLOAT8),
        DataType::Float(ExactNumberInfo::Precision(bits @ 1..=53)) => {
            plain(if *bits <= 24 { oid::FLOAT4 } else { oid::FLOAT8 })
        }
        DataType::Float(ExactNumberInfo::Precision(0)) => {
            Err(Fault::new("22023", "precision for type float must be at least 1 bit"))
        }
        DataType::Float(_) => Err(Fault::new(
            "22023",
            "precision for type float must be less than 54 bits",
        )),
        DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) => numeric(*info),
        DataType::Text => plain(oid::TEXT),
        DataType::Varchar(length) | DataType::CharacterVarying(length) | DataType::CharVarying(length) => {
            character(oid::VARCHAR, length.as_ref(), -1)
        }
        DataType::Char(length) | DataType::Character(length) => character(oid::BPCHAR, length.as_ref(), 5),
        DataType::Bytea => plain(oid::BYTEA),
        DataType::Date => plain(oid::DATE),
        DataType::Time(precision, zone) => {
            with_precision(if has_zone(*zone) { oid::TIMETZ } else { oid::TIME }, *precision)
        }
        DataType::Timestamp(precision, zone) => with_precision(
            if has_zone(*zone) {
                oid::TIMESTAMPTZ
            } else {
                oid::TIMESTAMP
            },
            *precision,
        ),
        DataType::Interval { fields, precision } => interval(fields.as_ref(), *precision),
        DataType::Uuid => plain(oid::UUID),
        DataType::JSON => plain(oid::JSON),
        DataType::JSONB => plain(oid::JSONB),
        DataType::Regclass => plain(oid::REGCLASS),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Qualified(element, _)
            | ArrayElemTypeDef::AngleBracket(element),
        ) => array(element),
        DataType::Custom(name, modifiers) => custom(name, modifiers),
        other => {
            let name = other.to_string().to_ascii_lowercase();
            match facts::type_named(name.split('(').next().unwrap_or(&name)) {
                Some(_) => Err(Fault::unsupported(format!("the type {name}"))),
                None => Err(Fault::new("42704", format!("type \"{name}\" does not exist"))),
            }
        }
    }
}

fn array(element: &DataType) -> Result<TypeName> {
    // int[][] is int[]: dimensions belong to values, not to types.
    let element = resolve(element)?;
    if facts::element_of(element.oid).is_some() {
        return Ok(element);
    }
    let oid = facts::array_of(element.oid)
        .ok_or_else(|| Fault::unsupported(format!("an array of {}", facts::display_name(element.oid))))?;
    Ok(TypeName {
        oid,
        typmod: element.typmod,
    })
}

fn has_zone(zone: TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz)
}

fn numeric(info: ExactNumberInfo) -> Result<TypeName> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(TypeName::plain(oid::NUMERIC)),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if !(1..=1000).contains(&precision) {
        return Err(Fault::new(
            "22023",
            format!("NUMERIC precision {precision} must be between 1 and 1000"),
        ));
    }
    if !(-1000..=1000).contains(&scale) {
        return Err(Fault::new(
            "22023",
            format!("NUMERIC scale {scale} must be between -1000 and 1000"),
        ));
    }
    Ok(TypeName {
        oid: oid::NUMERIC,
        typmod: numeric_typmod(precision as i32, scale as i32),
    })
}

/// PostgreSQL's packing of precision and scale (`make_numeric_typmod`).
pub(crate) fn numeric_typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}

/// Precision and scale of a numeric type.
pub(crate) fn numeric_limits(typmod: i32) -> (i32, i32) {
    let packed = typmod - 4;
    ((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024)
}

fn character(oid: Oid, length: Option<&CharacterLength>, without: i32) -> Result<TypeName> {
    const LENGTH_MAX: u64 = 10_485_760;
    let name = if oid == oid::VARCHAR { "varchar" } else { "char" };
    match length {
        None => Ok(TypeName { oid, typmod: without }),
        Some(CharacterLength::IntegerLength { length: 0, .. }) => Err(Fault::new(
            "22023",
            format!("length for type {name} must be at least 1"),
        )),
        Some(CharacterLength::IntegerLength { length, .. }) if *length <= LENGTH_MAX => Ok(TypeName {
            oid,
            typmod: *length as i32 + 4,
        }),
        Some(CharacterLength::IntegerLength { .. }) => Err(Fault::new(
            "22023",
            format!("length for type {name} cannot exceed {LENGTH_MAX}"),
        )),
        Some(CharacterLength::Max) => Err(Fault::new("42601", "syntax error at or near \"max\"")),
    }
}

fn with_precision(oid: Oid, precision: Option<u64>) -> Result<TypeName> {
    match precision {
        None => Ok(TypeName::plain(oid)),
        // PostgreSQL takes more as 6, with a warning.
        Some(precision) => Ok(TypeName {
            oid,
            typmod: precision.min(6) as i32,
        }),
    }
}

/// PostgreSQL's packing of an interval's fields and precision (`INTERVAL_TYPMOD`, with the bits of `INTERVAL_MASK`).
fn interval(fields: Option<&IntervalFields>, precision: Option<u64>) -> Result<TypeName> {
    const YEAR: i32 = 1 << 2;
    const MONTH: i32 = 1 << 1;
    const DAY: i32 = 1 << 3;
    const HOUR: i32 = 1 << 10;
    const MINUTE: i32 = 1 << 11;
    const SECOND: i32 = 1 << 12;
    const FULL_RANGE: i32 = 0x7fff;
    const FULL_PRECISION: i32 = 0xffff;
    let range = match fields {
        None => FULL_RANGE,
        Some(IntervalFields::Year) => YEAR,
        Some(IntervalFields::Month) => MONTH,
        Some(IntervalFields::Day) => DAY,
        Some(IntervalFields::Hour) => HOUR,
        Some(IntervalFields::Minute) => MINUTE,
        Some(IntervalFields::Second) => SECOND,
        Some(IntervalFields::YearToMonth) => YEAR | MONTH,
        Some(IntervalFields::DayToHour) => DAY | HOUR,
        Some(IntervalFields::DayToMinute) => DAY | HOUR | MINUTE,
        Some(IntervalFields::DayToSecond) => DAY | HOUR | MINUTE | SECOND,
        Some(IntervalFields::HourToMinute) => HOUR | MINUTE,
        Some(IntervalFields::HourToSecond) => HOUR | MINUTE | SECOND,
        Some(IntervalFields::MinuteToSecond) => MINUTE | SECOND,
    };
    let typmod = match (fields, precision) {
        (None, None) => -1,
        (_, None) => (range << 16) | FULL_PRECISION,
        (_, Some(precision)) => (range << 16) | precision.min(6) as i32,
    };
    Ok(TypeName {
        oid: oid::INTERVAL,
        typmod,
    })
}

fn custom(name: &ObjectName, modifiers: &[String]) -> Result<TypeName> {
    let spelled = object_name(name)?;
    let resolved = match spelled.as_str() {
        "int" | "integer" => Some(oid::INT4),
        "decimal" => Some(oid::NUMERIC),
        other => facts::type_named(other),
    };
    let Some(oid) = resolved else {
        return Err(Fault::new("42704", format!("type \"{spelled}\" does not exist")));
    };
    let modifier = |index: usize| {
        modifiers
            .get(index)
            .and_then(|modifier| modifier.trim().parse::<u64>().ok())
    };
    match oid {
        _ if modifiers.is_empty() => Ok(TypeName::plain(oid)),
        oid::NUMERIC => match (
            modifier(0),
            modifiers.get(1).and_then(|scale| scale.trim().parse::<i64>().ok()),
        ) {
            (Some(precision), Some(scale)) => numeric(ExactNumberInfo::PrecisionAndScale(precision, scale)),
            (Some(precision), None) if modifiers.len() == 1 => numeric(ExactNumberInfo::Precision(precision)),
            _ => Err(Fault::new("22023", "invalid NUMERIC type modifier")),
        },
        oid::VARCHAR | oid::BPCHAR => {
            let length = modifier(0).map(|length| CharacterLength::IntegerLength { length, unit: None });
            character(oid, length.as_ref(), -1)
        }
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => with_precision(oid, modifier(0)),
        _ => Err(Fault::new(
            "42601",
            format!("type modifier is not allowed for type \"{spelled}\""),
        )),
    }
}

/// The type as PostgreSQL writes it with its modifier (`format_type`): `character varying(20)`.
pub(crate) fn format_type(oid: Oid, typmod: i32) -> String {
    if let Some(element) = facts::element_of(oid) {
        return format!("{}[]", format_type(element, typmod));
    }
    let name = facts::display_name(oid);
    if typmod < 0 {
        return name;
    }
    match oid {
        oid::VARCHAR | oid::BPCHAR => format!("{name}({})", typmod - 4),
        oid::NUMERIC => {
            let (precision, scale) = numeric_limits(typmod);
            format!("{name}({precision},{scale})")
        }
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => match name.split_once(' ') {
            Some((first, rest)) => format!("{first}({typmod}) {rest}"),
            None => format!("{name}({typmod})"),
        },
        _ => name,
    }
}

/// Refuses a key of values that have no equality.
pub(crate) fn check_key(oid: Oid) -> Result<()> {
    if oid == oid::JSON {
        return Err(Fault::new(
            "42704",
            "data type json has no default operator class for access method \"btree\"",
        )
        .with_hint(
            "You must specify an operator class for the index or define a default operator class for the data type.",
        ));
    }
    if facts::element_of(oid) == Some(oid::JSON) {
        return Err(Fault::unsupported("a key of type json[]"));
    }
    Ok(())
}

/// Whether stored values of the type may be equal and look different.
pub(crate) fn has_equal_variants(kind: TypeName) -> bool {
    match kind.oid {
        oid::FLOAT4 | oid::FLOAT8 => true,
        // Of a given scale or length all values are written alike.
        oid::NUMERIC | oid::BPCHAR => kind.typmod < 0,
        other => collation(other).is_some(),
    }
}

/// Whether values of the types can be a foreign key and the key it refers to: `Ok(false)` where PostgreSQL says no.
pub(crate) fn may_refer(referring: Oid, referred: Oid) -> Result<bool> {
    let integers = |oid| matches!(oid, oid::INT2 | oid::INT4 | oid::INT8);
    let texts = |oid| matches!(oid, oid::TEXT | oid::VARCHAR);
    if referring == referred || integers(referring) && integers(referred) || texts(referring) && texts(referred) {
        return Ok(true);
    }
    if converts(referring, referred, facts::Context::Implicit) {
        return Err(Fault::unsupported(format!(
            "a foreign key of type {} to a key of type {}",
            facts::display_name(referring),
            facts::display_name(referred)
        )));
    }
    Ok(false)
}

/// Whether values of the type can be made here at all.
pub(crate) fn has_values(oid: Oid) -> bool {
    Type::from_oid(oid).is_some()
}

/// The collation by which values of the type are told apart and ordered, where that is not by their bytes.
pub(crate) fn collation(oid: Oid) -> Option<&'static str> {
    match oid {
        oid::NUMERIC => Some("pg_numeric"),
        oid::BPCHAR => Some("RTRIM"),
        oid::INTERVAL => Some("pg_interval"),
        oid::JSONB => Some("pg_jsonb"),
        array => array_collation(facts::element_of(array)?),
    }
}

/// Whether values of the type that are equal may be written differently: 1.0 and 1.00.
pub(crate) fn equals_may_look_different(oid: Oid) -> bool {
    collation(oid).is_some() || matches!(oid, oid::FLOAT4 | oid::FLOAT8)
}

/// The collation of arrays of these elements.
fn array_collation(element: Oid) -> Option<&'static str> {
    ARRAY_COLLATIONS
        .iter()
        .find(|(kind, _)| kind.oid() == element)
        .map(|(_, name)| *name)
}

/// The collations of arrays, by the kind of their elements.
pub(crate) const ARRAY_COLLATIONS: [(Kind, &str); 19] = [
    (Kind::Bool, "pg_array_bool"),
    (Kind::Int2, "pg_array_int2"),
    (Kind::Int4, "pg_array_int4"),
    (Kind::Int8, "pg_array_int8"),
    (Kind::Oid, "pg_array_oid"),
    (Kind::Float4, "pg_array_float4"),
    (Kind::Float8, "pg_array_float8"),
    (Kind::Numeric, "pg_array_numeric"),
    (Kind::Text, "pg_array_text"),
    (Kind::Varchar, "pg_array_varchar"),
    (Kind::Bpchar, "pg_array_bpchar"),
    (Kind::Name, "pg_array_name"),
    (Kind::Date, "pg_array_date"),
    (Kind::Time, "pg_array_time"),
    (Kind::Timestamp, "pg_array_timestamp"),
    (Kind::Timestamptz, "pg_array_timestamptz"),
    (Kind::Interval, "pg_array_interval"),
    (Kind::Uuid, "pg_array_uuid"),
    (Kind::Jsonb, "pg_array_jsonb"),
];

/// Whether values of the type are told apart and ordered by SQLite's own comparison, under [`collation`].
pub(crate) fn is_ordered(oid: Oid) -> bool {
    if let Some(element) = facts::element_of(oid) {
        return array_collation(element).is_some();
    }
    matches!(
        oid,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::NUMERIC
            | oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::NAME
            | oid::CHAR
            | oid::UNKNOWN
            | oid::BYTEA
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
            | oid::UUID
            | oid::JSONB
    )
}

/// That values of a type cannot be told apart, or put in order, here: in PostgreSQL neither, or in PostgreSQL only.
pub(crate) fn without_operator(oid: Oid, operator: &str) -> Fault {
    let name = facts::display_name(oid);
    if oid != oid::JSON && facts::element_of(oid) != Some(oid::JSON) {
        return Fault::unsupported(format!("{operator} of {name}"));
    }
    let fault = Fault::new(
        "42883",
        format!("could not identify an {operator} operator for type {name}"),
    );
    if operator == "ordering" {
        return fault.with_hint("Use an explicit ordering operator or modify the query.");
    }
    fault
}

/// A text of SQLite's for a comparison, an order, an index or the declaration of values of the type.
pub(crate) fn compared(sql: &str, oid: Oid) -> String {
    match collation(oid) {
        Some(collation) => format!("{sql} COLLATE \"{collation}\""),
        None => sql.to_owned(),
    }
}
