//! Reviewed: functions of PostgreSQL's own that what travels in company may call.
//!
//! Promises: none of them changes, locks or leaves anything, runs a text, or tells of the connection, of the transaction's number or of what else
//! its session has done. What is not here is not called in company, whatever the catalog says of it.

/// Names by which a statement is told when its transaction began, or what hangs on that.
const OF_THE_TIME: &[&str] = &[
    "_timetz",
    "age",
    "clock_timestamp",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "now",
    "statement_timestamp",
    "timeofday",
    // Which offset a place has is a matter of the day.
    "timetz",
    "transaction_timestamp",
];

/// Functions whose answer hangs on their arguments, the tables, the settings and the beginning of the transaction alone.
const STEADY: &[&str] = &[
    // Aggregates and windows.
    "any_value",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "cume_dist",
    "dense_rank",
    "every",
    "first_value",
    "json_agg",
    "json_object_agg",
    "jsonb_agg",
    "jsonb_object_agg",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "mode",
    "nth_value",
    "ntile",
    "percent_rank",
    "percentile_cont",
    "percentile_disc",
    "rank",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "row_number",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    // Numbers.
    "abs",
    "acos",
    "acosd",
    "acosh",
    "asin",
    "asind",
    "asinh",
    "atan",
    "atan2",
    "atan2d",
    "atand",
    "atanh",
    "cbrt",
    "ceil",
    "ceiling",
    "cos",
    "cosd",
    "cosh",
    "cot",
    "cotd",
    "degrees",
    "div",
    "exp",
    "factorial",
    "floor",
    "gcd",
    "lcm",
    "ln",
    "log",
    "log10",
    "min_scale",
    "mod",
    "pi",
    "pow",
    "power",
    "radians",
    "round",
    "scale",
    "sign",
    "sin",
    "sind",
    "sinh",
    "sqrt",
    "tan",
    "tand",
    "tanh",
    "to_number",
    "trim_scale",
    "trunc",
    "width_bucket",
    // Texts and bytes.
    "ascii",
    "bit_count",
    "bit_length",
    "btrim",
    "char_length",
    "character_length",
    "chr",
    "concat",
    "concat_ws",
    "convert_from",
    "convert_to",
    "decode",
    "encode",
    "format",
    "get_bit",
    "get_byte",
    "initcap",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "normalize",
    "octet_length",
    "overlay",
    "position",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "regexp_count",
    "regexp_instr",
    "regexp_like",
    "regexp_match",
    "regexp_matches",
    "regexp_replace",
    "regexp_split_to_array",
    "regexp_split_to_table",
    "regexp_substr",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "set_bit",
    "set_byte",
    "sha224",
    "sha256",
    "sha384",
    "sha512",
    "split_part",
    "starts_with",
    "string_to_array",
    "string_to_table",
    "strpos",
    "substr",
    "substring",
    "to_hex",
    "translate",
    "trim",
    "upper",
    // Dates and times.
    "age",
    "date_bin",
    "date_part",
    "date_trunc",
    "extract",
    "isfinite",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "make_date",
    "make_interval",
    "make_time",
    "make_timestamp",
    "make_timestamptz",
    "now",
    "timezone",
    "to_char",
    "to_date",
    "to_timestamp",
    "transaction_timestamp",
    // JSON.
    "array_to_json",
    "json_array_elements",
    "json_array_elements_text",
    "json_array_length",
    "json_build_array",
    "json_build_object",
    "json_each",
    "json_each_text",
    "json_extract_path",
    "json_extract_path_text",
    "json_object",
    "json_object_keys",
    "json_strip_nulls",
    "json_typeof",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_array_length",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_each",
    "jsonb_each_text",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_object_keys",
    "jsonb_path_exists",
    "jsonb_path_match",
    "jsonb_path_query",
    "jsonb_path_query_array",
    "jsonb_path_query_first",
    "jsonb_pretty",
    "jsonb_set",
    "jsonb_set_lax",
    "jsonb_strip_nulls",
    "jsonb_typeof",
    "row_to_json",
    "to_json",
    "to_jsonb",
    // Arrays, ranges, sets of rows.
    "array_append",
    "array_cat",
    "array_dims",
    "array_fill",
    "array_length",
    "array_lower",
    "array_ndims",
    "array_position",
    "array_positions",
    "array_prepend",
    "array_remove",
    "array_replace",
    "array_to_string",
    "array_upper",
    "cardinality",
    "daterange",
    "generate_series",
    "generate_subscripts",
    "int4range",
    "int8range",
    "isempty",
    "lower_inc",
    "lower_inf",
    "numrange",
    "range_agg",
    "range_merge",
    "trim_array",
    "tsrange",
    "tstzrange",
    "unnest",
    "upper_inc",
    "upper_inf",
    // Search in texts.
    "phraseto_tsquery",
    "plainto_tsquery",
    "setweight",
    "to_tsquery",
    "to_tsvector",
    "ts_headline",
    "ts_rank",
    "ts_rank_cd",
    "websearch_to_tsquery",
    // Words of the language that the catalog has functions of, too, and types, which take a length or a value in parentheses.
    "bit",
    "bool",
    "bpchar",
    "char",
    "coalesce",
    "current_time",
    "current_timestamp",
    "date",
    "decimal",
    "exists",
    "float4",
    "float8",
    "greatest",
    "int2",
    "int4",
    "int8",
    "interval",
    "least",
    "localtime",
    "localtimestamp",
    "nullif",
    "numeric",
    "row",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "varbit",
    "varchar",
];

/// Functions that answer anew each time, and do nothing else.
const UNSTEADY: &[&str] = &["clock_timestamp", "gen_random_uuid", "random", "timeofday"];

/// What tells of transactions, by the names that were before those that begin with `pg_`. Declared stable, and nothing that a table says.
const OF_TRANSACTIONS: &[&str] = &[
    "txid_current",
    "txid_current_if_assigned",
    "txid_current_snapshot",
    "txid_status",
];

/// Types whose values are names of the catalog's.
const OF_NAMES: &[&str] = &[
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
];

/// What draws a number for a row, where a table does so by itself.
pub(crate) const DRAWING: &str = "nextval";

/// Words that a parenthesis may follow where PostgreSQL writes an expression out.
const WORDS: &[&str] = &[
    "all", "and", "any", "array", "between", "case", "cast", "else", "in", "is", "not", "or", "then", "varying", "when",
];

/// Whether it may be called in company.
pub(crate) fn is_reviewed(function: &str) -> bool {
    STEADY.contains(&function) || UNSTEADY.contains(&function)
}

/// Whether it is called in an expression of a table's own that may be used in company; `is_default`: where a row is given a value.
pub(crate) fn may_stand_in_a_table(function: &str, is_default: bool) -> bool {
    is_reviewed(function) || WORDS.contains(&function) || (is_default && function == DRAWING)
}

/// Whether the name tells the time of a transaction.
pub(crate) fn is_of_the_time(name: &str) -> bool {
    OF_THE_TIME.contains(&name)
}

/// Whether a name is of the catalog, about which nobody needs to be asked, or of what the server itself is at.
pub(crate) fn is_of_the_catalog(name: &str) -> bool {
    (name.starts_with("pg_") && name != "pg_catalog")
        || name == "information_schema"
        || OF_TRANSACTIONS.contains(&name)
        || OF_NAMES.contains(&name)
}

/// Whether a name tells of a row's version, which changes where the row does not: by who locks it, by a change that is undone, by `VACUUM FULL`.
pub(crate) fn is_of_the_version(name: &str) -> bool {
    ["xmin", "xmax", "cmin", "cmax", "ctid"].contains(&name)
}

/// Those that answer anew each time.
pub(crate) fn unsteady() -> &'static [&'static str] {
    UNSTEADY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_or_does_more_is_not_among_them() {
        for function in [
            "nextval",
            "currval",
            "lastval",
            "setval",
            "setseed",
            "set_config",
            "current_setting",
            "pg_notify",
            "pg_sleep",
            "txid_current",
            "pg_current_xact_id",
            "pg_backend_pid",
            "pg_advisory_lock",
            "query_to_xml",
            "table_to_xml",
            "ts_stat",
            "ts_rewrite",
            "lo_create",
            "dblink",
            "inet_client_port",
        ] {
            assert!(!is_reviewed(function), "{function}");
        }
        assert!(may_stand_in_a_table("nextval", true) && !may_stand_in_a_table("nextval", false));
    }

    #[test]
    fn names_of_the_catalog_are_known_without_asking() {
        for (name, is) in [
            ("pg_class", true),
            ("information_schema", true),
            ("pg_catalog", false),
            ("txid_current", true),
            ("regclass", true),
            ("page", false),
        ] {
            assert_eq!(is_of_the_catalog(name), is, "{name}");
        }
    }
}
