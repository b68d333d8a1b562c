//! The types that have values here, under PostgreSQL's own numbers (OIDs) and names.

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PostgreSQL's own")]
pub enum Kind {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    Name,
    /// `"char"`, one byte.
    Char,
    Unknown,
    Bytea,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    Json,
    Jsonb,
}

/// A type: a scalar, or an array of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Type {
    Scalar(Kind),
    Array(Kind),
}

/// Kind, OID, OID of its array type, internal name, name in messages.
const KINDS: &[(Kind, u32, u32, &str, &str)] = &[
    (Kind::Bool, 16, 1000, "bool", "boolean"),
    (Kind::Int2, 21, 1005, "int2", "smallint"),
    (Kind::Int4, 23, 1007, "int4", "integer"),
    (Kind::Int8, 20, 1016, "int8", "bigint"),
    (Kind::Oid, 26, 1028, "oid", "oid"),
    (Kind::Float4, 700, 1021, "float4", "real"),
    (Kind::Float8, 701, 1022, "float8", "double precision"),
    (Kind::Numeric, 1700, 1231, "numeric", "numeric"),
    (Kind::Text, 25, 1009, "text", "text"),
    (Kind::Varchar, 1043, 1015, "varchar", "character varying"),
    (Kind::Bpchar, 1042, 1014, "bpchar", "character"),
    (Kind::Name, 19, 1003, "name", "name"),
    (Kind::Char, 18, 1002, "char", "\"char\""),
    (Kind::Unknown, 705, 0, "unknown", "unknown"),
    (Kind::Bytea, 17, 1001, "bytea", "bytea"),
    (Kind::Date, 1082, 1182, "date", "date"),
    (Kind::Time, 1083, 1183, "time", "time without time zone"),
    (Kind::Timetz, 1266, 1270, "timetz", "time with time zone"),
    (Kind::Timestamp, 1114, 1115, "timestamp", "timestamp without time zone"),
    (Kind::Timestamptz, 1184, 1185, "timestamptz", "timestamp with time zone"),
    (Kind::Interval, 1186, 1187, "interval", "interval"),
    (Kind::Uuid, 2950, 2951, "uuid", "uuid"),
    (Kind::Json, 114, 199, "json", "json"),
    (Kind::Jsonb, 3802, 3807, "jsonb", "jsonb"),
];

impl Kind {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Self, u32, u32, &'static str, &'static str) {
        KINDS.iter().find(|row| row.0 == self).expect("every kind has its row")
    }

    /// PostgreSQL's number for it.
    pub fn oid(self) -> u32 {
        self.row().1
    }

    /// PostgreSQL's internal name: `int4`, `timestamptz`.
    pub fn name(self) -> &'static str {
        self.row().3
    }

    /// The name in PostgreSQL's messages: `integer`, `timestamp with time zone`.
    pub fn display_name(self) -> &'static str {
        self.row().4
    }
}

impl Type {
    /// The type of that number, if it has values here.
    pub fn from_oid(oid: u32) -> Option<Self> {
        KINDS.iter().find_map(|row| {
            if row.1 == oid {
                Some(Self::Scalar(row.0))
            } else {
                (row.2 == oid && oid != 0).then_some(Self::Array(row.0))
            }
        })
    }

    /// The type of that internal name: `int4`, `_int4`.
    pub fn from_name(name: &str) -> Option<Self> {
        let (element, array) = name.strip_prefix('_').map_or((name, false), |element| (element, true));
        let kind = KINDS.iter().find(|row| row.3 == element)?.0;
        Some(if array { Self::Array(kind) } else { Self::Scalar(kind) })
    }

    /// PostgreSQL's number for it.
    pub fn oid(self) -> u32 {
        match self {
            Self::Scalar(kind) => kind.row().1,
            Self::Array(kind) => kind.row().2,
        }
    }

    /// The kind, or that of the elements.
    pub fn kind(self) -> Kind {
        match self {
            Self::Scalar(kind) | Self::Array(kind) => kind,
        }
    }
}
