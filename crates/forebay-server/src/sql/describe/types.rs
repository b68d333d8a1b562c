//! PostgreSQL's types for SQLite's declared types.
//!
//! Contract: a declared type maps by its words, as a reader would take it, not by SQLite's affinity rules (by which INTERVAL and POINT would
//! be integers). What is unknown is `None`, and is shown as text. All integers are int8: SQLite has no narrower ones.

use postgres_types::Type;

/// The type a declared type name stands for.
pub(crate) fn of_declared(declared: &str) -> Option<Type> {
    let upper = declared.to_ascii_uppercase();
    let words: Vec<&str> = upper
        .split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    if upper.contains('[') || words.contains(&"ARRAY") {
        return None;
    }
    let first = *words.first()?;
    let with_time_zone = words
        .windows(3)
        .any(|three| three == ["WITH", "TIME", "ZONE"]);
    Some(match first {
        "TIMESTAMPTZ" => Type::TIMESTAMPTZ,
        "TIMESTAMP" | "DATETIME" if with_time_zone => Type::TIMESTAMPTZ,
        "TIMESTAMP" | "DATETIME" => Type::TIMESTAMP,
        "TIME" if !with_time_zone => Type::TIME,
        "DATE" => Type::DATE,
        "BOOL" | "BOOLEAN" => Type::BOOL,
        "NUMERIC" | "DECIMAL" | "DEC" => Type::NUMERIC,
        "JSON" => Type::JSON,
        "JSONB" => Type::JSONB,
        "UUID" => Type::UUID,
        "BLOB" | "BYTEA" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB" | "BINARY" | "VARBINARY" => {
            Type::BYTEA
        }
        "REAL" | "FLOAT" | "FLOAT4" | "FLOAT8" | "DOUBLE" => Type::FLOAT8,
        "TEXT" | "CHAR" | "VARCHAR" | "CHARACTER" | "NCHAR" | "NVARCHAR" | "NATIVE" | "VARYING"
        | "CLOB" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "STRING" | "BPCHAR" | "CITEXT"
        | "NAME" => Type::TEXT,
        _ if words.iter().any(|word| is_integer_word(word)) => Type::INT8,
        _ => return None,
    })
}

fn is_integer_word(word: &str) -> bool {
    matches!(
        word.trim_end_matches(|character: char| character.is_ascii_digit()),
        "INT"
            | "INTEGER"
            | "TINYINT"
            | "SMALLINT"
            | "MEDIUMINT"
            | "BIGINT"
            | "SERIAL"
            | "BIGSERIAL"
            | "SMALLSERIAL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types_map_by_their_words() {
        for (declared, expected) in [
            ("INTEGER", Some(Type::INT8)),
            ("int4", Some(Type::INT8)),
            ("UNSIGNED BIG INT", Some(Type::INT8)),
            ("bigserial", Some(Type::INT8)),
            ("INTERVAL", None),
            ("POINT", None),
            ("", None),
            ("double precision", Some(Type::FLOAT8)),
            ("FLOAT", Some(Type::FLOAT8)),
            ("character varying(20)", Some(Type::TEXT)),
            ("VARCHAR(255)", Some(Type::TEXT)),
            ("CLOB", Some(Type::TEXT)),
            ("BYTEA", Some(Type::BYTEA)),
            ("boolean", Some(Type::BOOL)),
            ("DECIMAL(10, 2)", Some(Type::NUMERIC)),
            ("DATE", Some(Type::DATE)),
            ("DATETIME", Some(Type::TIMESTAMP)),
            ("timestamp without time zone", Some(Type::TIMESTAMP)),
            ("timestamp with time zone", Some(Type::TIMESTAMPTZ)),
            ("TIMESTAMP(3) WITH TIME ZONE", Some(Type::TIMESTAMPTZ)),
            ("timestamptz", Some(Type::TIMESTAMPTZ)),
            ("TIME", Some(Type::TIME)),
            ("json", Some(Type::JSON)),
            ("JSONB", Some(Type::JSONB)),
            ("uuid", Some(Type::UUID)),
            ("text[]", None),
            ("flurb", None),
        ] {
            assert_eq!(of_declared(declared), expected, "{declared}");
        }
    }
}
