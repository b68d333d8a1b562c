//! Answers of PostgreSQL 15, recorded; and what its answers do not show.

use super::{Array, Bounds};
use crate::aggregate::accumulator;
use crate::{Arguments, Datum, Environment, Kind, Owned, Type, ValueError};

#[test]
fn functions_answer_as_postgresql_does() {
    crate::recorded::check(include_str!("recorded.txt"));
}

fn sqlstate<T>(result: crate::Result<T>) -> Option<&'static str> {
    result.err().map(|error: ValueError| error.sqlstate)
}

#[test]
fn each_array_has_one_stored_text() {
    let stored = |kind, elements: Vec<Owned>| Array::of_elements(elements).stored(kind);
    assert_eq!(
        stored(Kind::Int8, vec![i64::MAX.into(), Owned::Null]).as_deref(),
        Ok("[9223372036854775807,null]")
    );
    assert_eq!(
        stored(
            Kind::Float8,
            vec![1.0.into(), (-0.0).into(), 1e300.into(), 0.1.into(), Owned::Integer(2)]
        )
        .as_deref(),
        Ok("[1.0,-0.0,1e300,0.1,2.0]")
    );
    assert_eq!(
        stored(Kind::Bool, vec![true.into(), false.into()]).as_deref(),
        Ok("[true,false]")
    );
    assert_eq!(stored(Kind::Numeric, vec!["1.50".into()]).as_deref(), Ok("[\"1.50\"]"));
    assert_eq!(
        stored(Kind::Text, vec!["a\"\\\n\u{1}/é".into()]).as_deref(),
        Ok("[\"a\\\"\\\\\\n\\u0001/é\"]")
    );
    assert_eq!(stored(Kind::Text, Vec::new()).as_deref(), Ok("[]"));
    assert_eq!(
        sqlstate(stored(Kind::Float8, vec![f64::INFINITY.into()])),
        Some("0A000")
    );
    assert_eq!(sqlstate(stored(Kind::Bytea, vec![vec![1].into()])), Some("0A000"));
}

/// PostgreSQL's array still says in its binary form that it may hold one.
#[test]
fn trim_array_that_takes_the_only_nulls_is_refused() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let trimmed = |array, cut| {
        crate::function("trim_array").expect("known").call(Arguments {
            values: &[Datum::Text(array), Datum::Integer(cut)],
            types: &[Type::Array(Kind::Int4), Type::Scalar(Kind::Int4)],
            environment: &environment,
        })
    };
    assert_eq!(sqlstate(trimmed("[1,null]", 1)), Some("0A000"));
    assert_eq!(sqlstate(trimmed("[[1],[null]]", 1)), Some("0A000"));
    assert_eq!(trimmed("[1,null]", 0), Ok("[1,null]".into()));
    assert_eq!(trimmed("[null,null]", 1), Ok("[null]".into()));
    assert_eq!(trimmed("[1,null]", 2), Ok("[]".into()));
}

#[test]
fn what_is_no_array_is_refused() {
    for damaged in [
        "",
        "{}",
        "[",
        "[1",
        "[1,[2]]",
        "[[1],2]",
        "[[1],[2,3]]",
        "[[],[1]]",
        "[x]",
        "[1.5]",
        "[[[[[[[1]]]]]]]",
    ] {
        assert_eq!(sqlstate(Array::read(Kind::Int4, damaged)), Some("XX001"), "{damaged}");
    }
    let read = Array::read(Kind::Int4, " [ [1, 2],[3 , null] ] ").expect("an array");
    assert_eq!(read.dimensions(), [2, 2]);
    assert_eq!(read.stored(Kind::Int4).as_deref(), Ok("[[1,2],[3,null]]"));
}

#[test]
fn literals_that_cannot_be_kept_are_refused_by_name() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let parse = |text: &str| super::parse(Kind::Int4, -1, text, &environment);
    assert_eq!(parse(" [1:2] = { 1 , NULL } ").as_deref(), Ok("[1,null]"));
    assert_eq!(sqlstate(parse("[0:1]={1,2}")), Some("0A000"));
    assert_eq!(sqlstate(parse("{{{1}},{2}}")), Some("0A000"));
    assert_eq!(sqlstate(parse("{{1},{{2}}}")), Some("0A000"));
    assert_eq!(sqlstate(parse("{1,{2}}")), Some("22P02"));
    let error = parse("{1,2").expect_err("no end");
    assert_eq!(error.message, "malformed array literal: \"{1,2\"");
    assert_eq!(error.detail.as_deref(), Some("Unexpected end of input."));
}

#[test]
fn subscripts_and_slices() {
    let square = "[[1,2,3],[4,5,6]]";
    assert_eq!(super::subscript(Kind::Int4, square, &[2, 3]), Ok(6.into()));
    for nowhere in [&[1][..], &[0, 1], &[3, 1], &[1, 4], &[1, 1, 1], &[i64::MIN, i64::MAX]] {
        assert_eq!(
            super::subscript(Kind::Int4, square, nowhere),
            Ok(Owned::Null),
            "{nowhere:?}"
        );
    }
    let slice = |bounds: &[(Option<i64>, Option<i64>)]| {
        let bounds: Vec<Bounds> = bounds.iter().map(|&(lower, upper)| Bounds { lower, upper }).collect();
        super::slice(Kind::Int4, square, &bounds).expect("a slice")
    };
    assert_eq!(slice(&[(Some(2), None)]), "[[4,5,6]]");
    assert_eq!(slice(&[(None, None), (Some(-5), Some(2))]), "[[1,2],[4,5]]");
    assert_eq!(slice(&[(Some(2), Some(1))]), "[]");
    assert_eq!(slice(&[(None, None), (None, None), (None, None)]), "[]");
}

#[test]
fn membership_has_three_values() {
    let within = |stored: &str, value| super::contains_element(Kind::Numeric, stored, value).expect("an answer");
    assert_eq!(within("[\"1.50\",null]", Datum::Text("1.5")), Some(true));
    assert_eq!(within("[\"1.50\",null]", Datum::Text("2")), None);
    assert_eq!(within("[\"1.50\"]", Datum::Text("2")), Some(false));
    assert_eq!(within("[\"1.50\"]", Datum::Null), None);
    assert_eq!(within("[]", Datum::Null), Some(false));
    assert_eq!(
        sqlstate(super::contains_element(Kind::Json, "[\"1\"]", Datum::Text("1"))),
        Some("42883")
    );
}

#[test]
fn elements_convert_and_nulls_stay() {
    let text = super::convert_elements(Kind::Int4, Kind::Text, "[[1,null],[3,4]]", |datum| match datum {
        Datum::Integer(integer) => Ok(integer.to_string().into()),
        other => panic!("not an integer: {other:?}"),
    });
    assert_eq!(text.as_deref(), Ok("[[\"1\",null],[\"3\",\"4\"]]"));
}

#[test]
fn the_binary_format_is_postgresqls() {
    let mut bytes = Vec::new();
    super::encode(Kind::Int4, "[[1,null]]", &mut bytes, |datum, out| match datum {
        Datum::Integer(integer) => {
            out.extend_from_slice(&i32::try_from(integer).expect("an int4").to_be_bytes());
            Ok(())
        }
        other => panic!("not an integer: {other:?}"),
    })
    .expect("encoded");
    // select array_send('{{1,NULL}}'::int4[])
    let expected: [i32; 10] = [2, 1, 23, 1, 1, 2, 1, 4, 1, -1];
    assert_eq!(
        bytes,
        expected
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect::<Vec<u8>>()
    );
    let element = |bytes: &[u8]| {
        let bytes = bytes
            .try_into()
            .map_err(|_| ValueError::new("22P03", "incorrect binary data format"))?;
        Ok(Owned::Integer(i32::from_be_bytes(bytes).into()))
    };
    assert_eq!(super::decode(Kind::Int4, &bytes, element).as_deref(), Ok("[[1,null]]"));
    for length in 0..bytes.len() {
        assert_eq!(
            sqlstate(super::decode(Kind::Int4, &bytes[..length], element)),
            Some("22P03"),
            "{length}"
        );
    }
    bytes[19] = 0;
    assert_eq!(
        sqlstate(super::decode(Kind::Int4, &bytes, element)),
        Some("0A000"),
        "another lower bound"
    );
    assert_eq!(
        sqlstate(super::decode(Kind::Int8, &bytes, element)),
        Some("42804"),
        "another element"
    );
    assert_eq!(
        super::read_dimensions(Kind::Int4, "[[1,null]]").map(|found| (found.lengths, found.has_null)),
        Ok((vec![1, 2], true))
    );
}

#[test]
fn a_short_call_does_not_take_all_memory() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let filled = crate::function("array_fill").expect("is there").call(Arguments {
        values: &[Datum::Integer(1), Datum::Text("[10000,10000]")],
        types: &[Type::Scalar(Kind::Int4), Type::Array(Kind::Int4)],
        environment: &environment,
    });
    assert_eq!(sqlstate(filled), Some("0A000"));
}

#[test]
fn aggregates() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let row = |of, value| Arguments {
        values: Box::leak(Box::new([value])),
        types: Box::leak(Box::new([of])),
        environment: &environment,
    };
    let start = |symbol: &str| accumulator(symbol).expect(symbol);
    let mut values = start("array_agg(anynonarray)");
    assert_eq!(values.finish(), Ok(Owned::Null));
    for value in [Datum::Integer(1), Datum::Null] {
        values.add(row(Type::Scalar(Kind::Int4), value)).expect("a row");
    }
    assert_eq!(values.finish(), Ok("[1,null]".into()));
    let (mut arrays, mut least, mut greatest) = (
        start("array_agg(anyarray)"),
        start("min(anyarray)"),
        start("max(anyarray)"),
    );
    for value in ["[3,1]", "[2,9]", "[10,0]"] {
        let row = row(Type::Array(Kind::Int4), Datum::Text(value));
        arrays.add(row).expect("a row");
        least.add(row).expect("a row");
        greatest.add(row).expect("a row");
    }
    assert_eq!(arrays.finish(), Ok("[[3,1],[2,9],[10,0]]".into()));
    assert_eq!(least.finish(), Ok("[2,9]".into()));
    assert_eq!(greatest.finish(), Ok("[10,0]".into()));
    // Of equal ones the last.
    for extreme in ["min(anyarray)", "max(anyarray)"] {
        let mut extreme = start(extreme);
        for value in ["[\"0\"]", "[\"0.00\"]"] {
            let row = row(Type::Array(Kind::Numeric), Datum::Text(value));
            extreme.add(row).expect("a row");
        }
        assert_eq!(extreme.finish(), Ok("[\"0.00\"]".into()));
    }
    assert_eq!(
        sqlstate(arrays.add(row(Type::Array(Kind::Int4), Datum::Text("[1]")))),
        Some("2202E")
    );
    assert_eq!(
        sqlstate(arrays.add(row(Type::Array(Kind::Int4), Datum::Null))),
        Some("22004")
    );
}
