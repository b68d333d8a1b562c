//! What PostgreSQL 15 knows of its types, operators, functions and casts: the rows of its own catalog.
//!
//! `data/*.txt` were taken from `pg_type`, `pg_operator`, `pg_proc` and `pg_cast` of PostgreSQL 15.18. A function's *symbol* is its
//! internal name (`prosrc`), or, for those that PostgreSQL writes in SQL, `name(argument types)`. All of them are here, also those
//! that nothing here can carry out: which one a call means depends on all that there are. Knows nothing of statements.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// PostgreSQL's number for a type.
pub(crate) type Oid = u32;

/// The numbers of the types that rules mention.
#[allow(missing_docs, reason = "the names are PostgreSQL's own")]
pub(crate) mod oid {
    use super::Oid;

    pub(crate) const BOOL: Oid = 16;
    pub(crate) const BYTEA: Oid = 17;
    pub(crate) const CHAR: Oid = 18;
    pub(crate) const NAME: Oid = 19;
    pub(crate) const INT8: Oid = 20;
    pub(crate) const INT2: Oid = 21;
    pub(crate) const INT4: Oid = 23;
    pub(crate) const TEXT: Oid = 25;
    pub(crate) const OID: Oid = 26;
    pub(crate) const INT2VECTOR: Oid = 22;
    pub(crate) const OIDVECTOR: Oid = 30;
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
    pub(crate) const TIMETZ: Oid = 1266;
    pub(crate) const NUMERIC: Oid = 1700;
    pub(crate) const REGCLASS: Oid = 2205;
    pub(crate) const REGTYPE: Oid = 2206;
    pub(crate) const RECORD: Oid = 2249;
    pub(crate) const ANY: Oid = 2276;
    pub(crate) const ANYARRAY: Oid = 2277;
    pub(crate) const ANYELEMENT: Oid = 2283;
    pub(crate) const ANYNONARRAY: Oid = 2776;
    pub(crate) const UUID: Oid = 2950;
    pub(crate) const ANYENUM: Oid = 3500;
    pub(crate) const JSONB: Oid = 3802;
    pub(crate) const ANYRANGE: Oid = 3831;
    pub(crate) const ANYMULTIRANGE: Oid = 4537;
    pub(crate) const ANYCOMPATIBLEMULTIRANGE: Oid = 4538;
    pub(crate) const ANYCOMPATIBLE: Oid = 5077;
    pub(crate) const ANYCOMPATIBLEARRAY: Oid = 5078;
    pub(crate) const ANYCOMPATIBLENONARRAY: Oid = 5079;
    pub(crate) const ANYCOMPATIBLERANGE: Oid = 5080;
}

/// A row of `pg_type`.
#[derive(Debug)]
pub(crate) struct TypeFact {
    pub(crate) oid: Oid,
    pub(crate) name: &'static str,
    /// `typcategory`.
    pub(crate) category: u8,
    pub(crate) preferred: bool,
    /// Its array type, or 0.
    pub(crate) array: Oid,
    /// The type of its elements, or 0.
    pub(crate) element: Oid,
}

/// A row of `pg_operator`.
#[derive(Debug)]
pub(crate) struct OperatorFact {
    /// 0 for a prefix operator.
    pub(crate) left: Oid,
    pub(crate) right: Oid,
    pub(crate) result: Oid,
    pub(crate) symbol: &'static str,
    pub(crate) volatility: u8,
}

/// A row of `pg_proc`.
#[derive(Debug)]
pub(crate) struct FunctionFact {
    /// `f` function, `a` aggregate, `w` window function.
    pub(crate) kind: u8,
    pub(crate) result: Oid,
    /// The type of a variadic argument, or 0.
    pub(crate) variadic: Oid,
    /// How many of the last arguments may be left out.
    pub(crate) defaults: usize,
    pub(crate) returns_set: bool,
    /// `i` immutable, `s` stable, `v` volatile.
    pub(crate) volatility: u8,
    pub(crate) arguments: Vec<Oid>,
    pub(crate) symbol: &'static str,
    pub(crate) argument_names: Vec<&'static str>,
}

/// How a cast is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastMethod {
    /// A function.
    Function(&'static str),
    /// The value stays as it is.
    Binary,
    /// Through the text form.
    InOut,
}

/// Where a cast may be applied without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Context {
    /// Anywhere.
    Implicit,
    /// On the way into a column.
    Assignment,
    /// Only where it is written.
    Explicit,
}

/// A row of `pg_cast`.
#[derive(Debug)]
pub(crate) struct CastFact {
    pub(crate) context: Context,
    pub(crate) method: CastMethod,
    /// How many arguments the function takes: the value, the type modifier, whether the cast is explicit.
    pub(crate) arguments: usize,
}

fn fields(line: &'static str) -> Vec<&'static str> {
    line.split('\t').collect()
}

fn number<T: std::str::FromStr>(field: &str) -> T {
    match field.parse() {
        Ok(number) => number,
        Err(_) => unreachable!("the data files hold numbers where numbers stand, as the tests see: {field}"),
    }
}

fn first_byte(field: &str) -> u8 {
    field.as_bytes().first().copied().unwrap_or(b' ')
}

static TYPES: LazyLock<HashMap<Oid, TypeFact>> = LazyLock::new(|| {
    include_str!("data/types.txt")
        .lines()
        .map(|line| {
            let fields = fields(line);
            let fact = TypeFact {
                oid: number(fields[0]),
                name: fields[1],
                category: first_byte(fields[2]),
                preferred: fields[3] == "1",
                array: number(fields[4]),
                // Some types have elements without being arrays (name, point): only arrays count here.
                element: if fields[2] == "A" { number(fields[5]) } else { 0 },
            };
            (fact.oid, fact)
        })
        .collect()
});

static TYPES_BY_NAME: LazyLock<HashMap<&'static str, Oid>> =
    LazyLock::new(|| TYPES.values().map(|fact| (fact.name, fact.oid)).collect());

static OPERATORS: LazyLock<HashMap<&'static str, Vec<OperatorFact>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&'static str, Vec<OperatorFact>> = HashMap::new();
    for line in include_str!("data/operators.txt").lines() {
        let fields = fields(line);
        by_name.entry(fields[0]).or_default().push(OperatorFact {
            left: number(fields[1]),
            right: number(fields[2]),
            result: number(fields[3]),
            symbol: fields[4],
            volatility: first_byte(fields[5]),
        });
    }
    by_name
});

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<FunctionFact>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&'static str, Vec<FunctionFact>> = HashMap::new();
    for line in include_str!("data/functions.txt").lines() {
        let fields = fields(line);
        by_name.entry(fields[1]).or_default().push(FunctionFact {
            kind: first_byte(fields[2]),
            result: number(fields[3]),
            variadic: number(fields[4]),
            defaults: number(fields[5]),
            returns_set: fields[6] == "1",
            volatility: first_byte(fields[7]),
            arguments: fields[9].split(',').filter(|oid| !oid.is_empty()).map(number).collect(),
            symbol: fields[10],
            argument_names: fields
                .get(11)
                .map(|names| names.split(',').filter(|name| !name.is_empty()).collect())
                .unwrap_or_default(),
        });
    }
    by_name
});

static CASTS: LazyLock<HashMap<(Oid, Oid), CastFact>> = LazyLock::new(|| {
    include_str!("data/casts.txt")
        .lines()
        .map(|line| {
            let fields = fields(line);
            let fact = CastFact {
                context: match fields[2] {
                    "i" => Context::Implicit,
                    "a" => Context::Assignment,
                    _ => Context::Explicit,
                },
                method: match fields[3] {
                    "f" => CastMethod::Function(fields[4]),
                    "b" => CastMethod::Binary,
                    _ => CastMethod::InOut,
                },
                arguments: number(fields[5]),
            };
            ((number(fields[0]), number(fields[1])), fact)
        })
        .collect()
});

static IMMUTABLE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    FUNCTIONS
        .values()
        .flatten()
        .filter(|function| function.volatility == b'i')
        .map(|function| function.symbol)
        .collect()
});

/// Whether the function of that symbol gives the same for the same arguments for ever.
pub(crate) fn is_immutable(symbol: &str) -> bool {
    IMMUTABLE.contains(symbol)
}

/// The type of that number.
pub(crate) fn type_fact(oid: Oid) -> Option<&'static TypeFact> {
    TYPES.get(&oid)
}

/// The type of that internal name: `int4`, `_text`.
pub(crate) fn type_named(name: &str) -> Option<Oid> {
    TYPES_BY_NAME.get(name).copied()
}

/// The operators of that name.
pub(crate) fn operators(name: &str) -> &'static [OperatorFact] {
    OPERATORS.get(name).map_or(&[], Vec::as_slice)
}

/// The functions of that name, aggregates and window functions too.
pub(crate) fn functions(name: &str) -> &'static [FunctionFact] {
    FUNCTIONS.get(name).map_or(&[], Vec::as_slice)
}

/// The cast from one type to another, if PostgreSQL's catalog has one.
pub(crate) fn cast(from: Oid, to: Oid) -> Option<&'static CastFact> {
    CASTS.get(&(from, to))
}

/// The type's category: `N` numbers, `S` strings, …
pub(crate) fn category(oid: Oid) -> u8 {
    if oid == oid::UNKNOWN {
        return b'X';
    }
    type_fact(oid).map_or(b'U', |fact| fact.category)
}

/// Whether it is the one that others of its category are converted to.
pub(crate) fn is_preferred(oid: Oid) -> bool {
    type_fact(oid).is_some_and(|fact| fact.preferred)
}

/// The type of an array's elements.
pub(crate) fn element_of(array: Oid) -> Option<Oid> {
    type_fact(array)
        .map(|fact| fact.element)
        .filter(|element| *element != 0)
}

/// The array type of an element.
pub(crate) fn array_of(element: Oid) -> Option<Oid> {
    type_fact(element).map(|fact| fact.array).filter(|array| *array != 0)
}

/// The type's name in messages: `integer`, `timestamp with time zone`, `text[]`.
pub(crate) fn display_name(oid: Oid) -> String {
    if let Some(element) = element_of(oid) {
        return format!("{}[]", display_name(element));
    }
    let name = type_fact(oid).map_or("???", |fact| fact.name);
    match name {
        "bool" => "boolean",
        "int2" => "smallint",
        "int4" => "integer",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "varchar" => "character varying",
        "bpchar" => "character",
        "char" => "\"char\"",
        "time" => "time without time zone",
        "timetz" => "time with time zone",
        "timestamp" => "timestamp without time zone",
        "timestamptz" => "timestamp with time zone",
        "varbit" => "bit varying",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_read_whole() {
        assert_eq!(TYPES.len(), include_str!("data/types.txt").lines().count());
        assert_eq!(
            OPERATORS.values().map(Vec::len).sum::<usize>(),
            include_str!("data/operators.txt").lines().count()
        );
        assert_eq!(
            FUNCTIONS.values().map(Vec::len).sum::<usize>(),
            include_str!("data/functions.txt").lines().count()
        );
        assert_eq!(CASTS.len(), include_str!("data/casts.txt").lines().count());
        assert_eq!(
            display_name(array_of(oid::TIMESTAMPTZ).unwrap()),
            "timestamp with time zone[]"
        );
        assert_eq!(
            cast(oid::INT4, oid::INT8).unwrap().method,
            CastMethod::Function("int48")
        );
        assert!(functions("now").iter().all(|function| function.volatility == b's'));
    }
}
