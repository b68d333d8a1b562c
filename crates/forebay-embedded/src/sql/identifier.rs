//! Identifiers as PostgreSQL reads and writes them.
//!
//! Promises: cut to PostgreSQL's length; quoted where its `quote_ident` quotes, and nowhere else. Knows nothing of what they name.

/// The most bytes that an identifier has.
const BYTES_MAX: usize = 63;

/// An identifier cut to the length that PostgreSQL keeps of it.
pub(crate) fn cut(mut name: String) -> String {
    name.truncate(boundary(&name, BYTES_MAX));
    name
}

/// The name of what belongs to a table and has none of its own: PostgreSQL's choice, cut where it would be too long.
pub(crate) fn made_of(table: &str, column: &str, kind: &str) -> String {
    let overhead = kind.len() + 1 + usize::from(!column.is_empty());
    let (mut first, mut second) = (table.len(), column.len());
    while first + second > BYTES_MAX - overhead {
        if first > second {
            first -= 1;
        } else {
            second -= 1;
        }
    }
    let (table, column) = (&table[..boundary(table, first)], &column[..boundary(column, second)]);
    if column.is_empty() {
        format!("{table}_{kind}")
    } else {
        format!("{table}_{column}_{kind}")
    }
}

/// The end of the last whole character within so many bytes.
fn boundary(name: &str, bytes_max: usize) -> usize {
    let mut end = bytes_max.min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// An identifier as it must be written in SQL: quoted only when it has to be.
pub(crate) fn quote_identifier(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "authorization",
        "between",
        "bigint",
        "binary",
        "boolean",
        "both",
        "case",
        "cast",
        "char",
        "character",
        "check",
        "coalesce",
        "collate",
        "collation",
        "column",
        "concurrently",
        "constraint",
        "create",
        "cross",
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "exists",
        "false",
        "fetch",
        "float",
        "for",
        "foreign",
        "freeze",
        "from",
        "full",
        "grant",
        "greatest",
        "group",
        "grouping",
        "having",
        "ilike",
        "in",
        "initially",
        "inner",
        "int",
        "integer",
        "intersect",
        "interval",
        "into",
        "is",
        "isnull",
        "join",
        "lateral",
        "leading",
        "least",
        "left",
        "like",
        "limit",
        "localtime",
        "localtimestamp",
        "natural",
        "none",
        "normalize",
        "not",
        "notnull",
        "null",
        "nullif",
        "numeric",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "out",
        "outer",
        "overlaps",
        "overlay",
        "placing",
        "position",
        "precision",
        "primary",
        "real",
        "references",
        "returning",
        "right",
        "row",
        "select",
        "session_user",
        "setof",
        "similar",
        "smallint",
        "some",
        "substring",
        "symmetric",
        "table",
        "tablesample",
        "then",
        "time",
        "timestamp",
        "to",
        "trailing",
        "treat",
        "trim",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "values",
        "varchar",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
    ];
    let mut letters = name.chars();
    let plain = letters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
        && RESERVED.binary_search(&name).is_err();
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
