//! What PostgreSQL's catalog says there is to call: the operators, functions, aggregates and casts over the types compared here.
//!
//! Promises: only functions that are listed by name are called, so none that changes or asks about the server itself, and
//! none whose result is a matter of chance.

use std::collections::HashMap;

use crate::tree::Oid;

pub(crate) mod oid {
    use super::Oid;

    pub(crate) const BOOL: Oid = 16;
    pub(crate) const BYTEA: Oid = 17;
    pub(crate) const INT8: Oid = 20;
    pub(crate) const INT2: Oid = 21;
    pub(crate) const INT4: Oid = 23;
    pub(crate) const TEXT: Oid = 25;
    pub(crate) const JSON: Oid = 114;
    pub(crate) const FLOAT4: Oid = 700;
    pub(crate) const FLOAT8: Oid = 701;
    pub(crate) const UNKNOWN: Oid = 705;
    pub(crate) const BPCHAR: Oid = 1042;
    pub(crate) const VARCHAR: Oid = 1043;
    pub(crate) const DATE: Oid = 1082;
    pub(crate) const TIME: Oid = 1083;
    pub(crate) const TIMESTAMP: Oid = 1114;
    pub(crate) const TIMESTAMPTZ: Oid = 1184;
    pub(crate) const INTERVAL: Oid = 1186;
    pub(crate) const NUMERIC: Oid = 1700;
    pub(crate) const UUID: Oid = 2950;
    pub(crate) const JSONB: Oid = 3802;
    pub(crate) const INT4_ARRAY: Oid = 1007;
    pub(crate) const TEXT_ARRAY: Oid = 1009;
    pub(crate) const REGTYPE: Oid = 2206;
}

use oid::*;

/// Types that are not arrays, with their array types.
pub(crate) const SCALARS: &[(Oid, Oid, &str)] = &[
    (BOOL, 1000, "bool"),
    (INT2, 1005, "int2"),
    (INT4, INT4_ARRAY, "int4"),
    (INT8, 1016, "int8"),
    (FLOAT4, 1021, "float4"),
    (FLOAT8, 1022, "float8"),
    (NUMERIC, 1231, "numeric"),
    (TEXT, TEXT_ARRAY, "text"),
    (VARCHAR, 1015, "varchar"),
    (BPCHAR, 1014, "bpchar"),
    (BYTEA, 1001, "bytea"),
    (DATE, 1182, "date"),
    (TIME, 1183, "time"),
    (TIMESTAMP, 1115, "timestamp"),
    (TIMESTAMPTZ, 1185, "timestamptz"),
    (INTERVAL, 1187, "interval"),
    (UUID, 2951, "uuid"),
    (JSON, 199, "json"),
    (JSONB, 3807, "jsonb"),
];

/// The elements of the arrays that are made often.
pub(crate) const ELEMENTS: &[Oid] = &[
    INT4, TEXT, INT4, TEXT, INT8, NUMERIC, FLOAT8, BOOL, DATE, TIMESTAMP, UUID, JSONB, INTERVAL,
];

pub(crate) fn type_name(oid: Oid) -> String {
    for (scalar, array, name) in SCALARS {
        if *scalar == oid {
            return (*name).to_owned();
        }
        if *array == oid {
            return format!("{name}[]");
        }
    }
    match oid {
        UNKNOWN => "unknown".into(),
        REGTYPE => "regtype".into(),
        0 => "?".into(),
        other => format!("type {other}"),
    }
}

pub(crate) fn element_of(oid: Oid) -> Option<Oid> {
    SCALARS.iter().find(|(_, array, _)| *array == oid).map(|found| found.0)
}

pub(crate) fn array_of(oid: Oid) -> Option<Oid> {
    SCALARS
        .iter()
        .find(|(scalar, _, _)| *scalar == oid)
        .map(|found| found.1)
}

pub(crate) fn is_known(oid: Oid) -> bool {
    SCALARS.iter().any(|(scalar, array, _)| *scalar == oid || *array == oid)
}

/// Functions that are called, by family.
const FUNCTIONS: &[&str] = &[
    // Numbers.
    "abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div \
     exp factorial floor gcd lcm ln log log10 min_scale mod pi pow power radians round scale sign sin sind sinh sqrt tan tand \
     tanh trim_scale trunc width_bucket int2 int4 int8 float4 float8",
    // Texts and bytes.
    "ascii bit_length bit_count btrim char_length character_length chr concat concat_ws convert_from convert_to decode encode \
     format get_bit get_byte initcap is_normalized left length lower lpad ltrim md5 normalize octet_length overlay \
     quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_replace \
     regexp_split_to_array regexp_substr repeat replace reverse right rpad rtrim set_bit set_byte sha224 sha256 sha384 sha512 \
     split_part starts_with string_to_array strpos substr substring text to_hex translate unistr upper",
    // Dates and times.
    "age date date_bin date_part date_trunc isfinite justify_days justify_hours justify_interval make_date make_interval \
     make_time make_timestamp make_timestamptz timezone to_char to_date to_number to_timestamp",
    // JSON.
    "array_to_json json_array_length json_build_array json_build_object json_extract_path json_extract_path_text json_object \
     json_strip_nulls json_typeof jsonb_array_length jsonb_build_array jsonb_build_object jsonb_extract_path \
     jsonb_extract_path_text jsonb_insert jsonb_object jsonb_path_exists jsonb_path_match jsonb_path_query_array \
     jsonb_path_query_first jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_typeof row_to_json to_json to_jsonb",
    // Arrays and the rest.
    "array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions \
     array_prepend array_remove array_replace array_to_string array_upper cardinality num_nonnulls num_nulls pg_typeof \
     trim_array",
];

const SETS: &str = "generate_series unnest json_array_elements json_array_elements_text json_each json_each_text json_object_keys \
     jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys jsonb_path_query \
     regexp_matches regexp_split_to_table string_to_table generate_subscripts";

const AGGREGATES: &str = "array_agg avg bit_and bit_or bit_xor bool_and bool_or count every json_agg jsonb_agg json_object_agg \
     jsonb_object_agg max min string_agg sum stddev stddev_pop stddev_samp var_pop var_samp variance corr covar_pop covar_samp \
     regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy";

const WINDOWS: &str =
    "row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value";

#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) name: String,
    /// 0 for a prefix operator.
    pub(crate) left: Oid,
    pub(crate) right: Oid,
    pub(crate) result: Oid,
}

#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) result: Oid,
    pub(crate) is_variadic: bool,
    pub(crate) defaults: usize,
    pub(crate) arguments: Vec<Oid>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cast {
    pub(crate) from: Oid,
    pub(crate) to: Oid,
}

/// What gives a value, with the element type that its polymorphic types stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Producer {
    Operator(usize, Option<Oid>),
    Function(usize, Option<Oid>),
    Cast(usize),
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) operators: Vec<Operator>,
    pub(crate) functions: Vec<Function>,
    pub(crate) sets: Vec<Function>,
    pub(crate) aggregates: Vec<Function>,
    pub(crate) windows: Vec<Function>,
    pub(crate) casts: Vec<Cast>,
    /// Everything there is to sweep over, in the catalog's order.
    pub(crate) producers: Vec<Producer>,
    pub(crate) by_result: HashMap<Oid, Vec<Producer>>,
}

/// The type that a polymorphic one stands for, or itself; none where it is none of ours.
pub(crate) fn resolve(declared: Oid, element: Option<Oid>) -> Option<Oid> {
    match declared {
        // "any"
        2276 => Some(element.unwrap_or(INT4)),
        // anyelement, anynonarray, anycompatible, anycompatiblenonarray
        2283 | 2776 | 5077 | 5079 => element,
        // anyarray, anycompatiblearray
        2277 | 5078 => array_of(element?),
        REGTYPE => Some(REGTYPE),
        other => is_known(other).then_some(other),
    }
}

pub(crate) fn is_polymorphic(declared: Oid) -> bool {
    matches!(declared, 2276 | 2283 | 2776 | 5077 | 5079 | 2277 | 5078)
}

/// jsonpath is written as a literal.
pub(crate) const JSONPATH: Oid = 4072;

fn number(field: &str) -> Oid {
    field.parse().unwrap_or_else(|_| panic!("{field:?} is not an OID"))
}

impl Facts {
    pub(crate) fn read() -> Self {
        let mut facts = Self {
            operators: operators(),
            functions: functions(&FUNCTIONS.join(" "), "f", false),
            sets: functions(SETS, "f", true),
            aggregates: functions(AGGREGATES, "a", false),
            windows: functions(WINDOWS, "w", false),
            casts: casts(),
            producers: Vec::new(),
            by_result: HashMap::new(),
        };
        facts.list_producers();
        facts
    }

    fn list_producers(&mut self) {
        let mut found: Vec<(Producer, Oid)> = Vec::new();
        for (index, operator) in self.operators.iter().enumerate() {
            let types = [operator.left, operator.right, operator.result];
            for element in elements(&types) {
                if let Some(result) = resolve(operator.result, element) {
                    found.push((Producer::Operator(index, element), result));
                }
            }
        }
        for (index, function) in self.functions.iter().enumerate() {
            let types: Vec<Oid> = function.arguments.iter().copied().chain([function.result]).collect();
            for element in elements(&types) {
                if let Some(result) = resolve(function.result, element) {
                    found.push((Producer::Function(index, element), result));
                }
            }
        }
        for (index, cast) in self.casts.iter().enumerate() {
            found.push((Producer::Cast(index), cast.to));
        }
        for (producer, result) in found {
            self.producers.push(producer);
            self.by_result.entry(result).or_default().push(producer);
        }
    }
}

/// The element types to try for these declared types: one "none" unless there are polymorphic ones.
fn elements(types: &[Oid]) -> Vec<Option<Oid>> {
    if types.iter().any(|oid| is_polymorphic(*oid)) {
        [INT4, TEXT, NUMERIC, DATE, JSONB].into_iter().map(Some).collect()
    } else {
        vec![None]
    }
}

fn is_usable(declared: Oid) -> bool {
    is_known(declared) || is_polymorphic(declared) || declared == JSONPATH || declared == REGTYPE
}

fn operators() -> Vec<Operator> {
    include_str!("../../../forebay-embedded/src/sql/data/operators.txt")
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let operator = Operator {
                name: fields[0].to_owned(),
                left: number(fields[1]),
                right: number(fields[2]),
                result: number(fields[3]),
            };
            let left = operator.left == 0 || is_usable(operator.left);
            (left && is_usable(operator.right) && is_usable(operator.result)).then_some(operator)
        })
        .collect()
}

fn functions(names: &str, kind: &str, is_set: bool) -> Vec<Function> {
    let names: Vec<&str> = names.split_whitespace().collect();
    include_str!("../../../forebay-embedded/src/sql/data/functions.txt")
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let arguments: Vec<Oid> = fields[9]
                .split(',')
                .filter(|text| !text.is_empty())
                .map(number)
                .collect();
            let function = Function {
                name: fields[1].to_owned(),
                result: number(fields[3]),
                is_variadic: fields[4] != "0",
                defaults: number(fields[5]) as usize,
                arguments,
            };
            let wanted = names.contains(&fields[1])
                && fields[2] == kind
                && (fields[6] == "1") == is_set
                && fields[7] != "v"
                // The age of something today.
                && !(fields[1] == "age" && function.arguments.len() == 1);
            let known = function.arguments.iter().all(|oid| is_usable(*oid));
            (wanted && known && (is_set || is_usable(function.result))).then_some(function)
        })
        .collect()
}

fn casts() -> Vec<Cast> {
    let mut casts: Vec<Cast> = include_str!("../../../forebay-embedded/src/sql/data/casts.txt")
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let cast = Cast {
                from: number(fields[0]),
                to: number(fields[1]),
            };
            (is_known(cast.from) && is_known(cast.to)).then_some(cast)
        })
        .collect();
    // Through text, as PostgreSQL's I/O conversions go, which the catalog does not list.
    for (scalar, array, _) in SCALARS {
        casts.push(Cast {
            from: *scalar,
            to: TEXT,
        });
        casts.push(Cast {
            from: TEXT,
            to: *scalar,
        });
        casts.push(Cast {
            from: VARCHAR,
            to: *scalar,
        });
        casts.push(Cast {
            from: UNKNOWN,
            to: *scalar,
        });
        casts.push(Cast {
            from: UNKNOWN,
            to: *array,
        });
    }
    for element in ELEMENTS {
        let array = array_of(*element).expect("elements have arrays");
        casts.push(Cast { from: array, to: TEXT });
        casts.push(Cast { from: TEXT, to: array });
        casts.push(Cast {
            from: array,
            to: TEXT_ARRAY,
        });
        casts.push(Cast {
            from: INT4_ARRAY,
            to: array,
        });
    }
    casts
}
