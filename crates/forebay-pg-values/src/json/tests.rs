//! Answers of PostgreSQL 15, recorded; and what its answers do not show.

use std::cmp::Ordering;

use super::{DEPTH_MAX, Flavor, jsonb};
use crate::aggregate::accumulator;
use crate::{Arguments, Datum, Environment, Kind, Owned, Type};

#[test]
fn functions_answer_as_postgresql_does() {
    crate::recorded::check(include_str!("recorded.txt"));
}

#[test]
fn details_say_what_is_wrong() {
    let detail = |text: &str| super::validate(text).expect_err(text).detail.expect("a detail");
    assert_eq!(detail("[1 2]"), "Expected \",\" or \"]\", but found \"2\".");
    assert_eq!(detail("{1:2}"), "Expected string or \"}\", but found \"1\".");
    assert_eq!(detail("{\"a\":1,}"), "Expected string, but found \"}\".");
    assert_eq!(detail("{\"a\"}"), "Expected \":\", but found \"}\".");
    assert_eq!(detail("[1"), "The input string ended unexpectedly.");
    assert_eq!(detail("1 2"), "Expected end of input, but found \"2\".");
    assert_eq!(detail("nope"), "Token \"nope\" is invalid.");
    assert_eq!(detail("\"\\x\""), "Escape sequence \"\\x\" is invalid.");
    assert_eq!(detail("\"\u{1}\""), "Character with value 0x01 must be escaped.");
}

#[test]
fn documents_have_a_total_order() {
    // In PostgreSQL's order; what is no jsonb comes last, by its bytes.
    let ordered = [
        "[]",
        "null",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"b\"",
        "-1",
        "1.50",
        "2",
        "false",
        "true",
        "[null]",
        "[1]",
        "[[]]",
        "[{}]",
        "[1, 2]",
        "{}",
        "{\"a\": 1}",
        "{\"b\": 0}",
        "{\"a\": 1, \"b\": 1}",
        "",
        "nope",
        "{",
        "}",
    ];
    for (i, left) in ordered.iter().enumerate() {
        for (j, right) in ordered.iter().enumerate() {
            assert_eq!(jsonb::compare(left, right), i.cmp(&j), "{left} and {right}");
        }
    }
    assert_eq!(
        jsonb::compare("[1.0, {\"a\":1}]", "[1, {\"a\": 1.00}]"),
        Ordering::Equal
    );
}

#[test]
fn no_depth_overflows_a_stack() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(jsonb::input(&nested(DEPTH_MAX)).as_ref(), Ok(&nested(DEPTH_MAX)));
    let deep = nested(DEPTH_MAX + 1);
    assert_eq!(jsonb::input(&deep).map_err(|error| error.sqlstate), Err("0A000"));
    let endless = "{\"a\":".repeat(1_000_000);
    assert_eq!(super::validate(&endless).map_err(|error| error.sqlstate), Err("0A000"));
    assert_eq!(jsonb::compare(&endless, "{}"), Ordering::Greater);
    // What others stored.
    assert!(super::members(&endless).is_err());
    assert!(super::elements("[1,2").is_err());
    assert!(super::elements("[1 2]").is_err());
    assert!(super::elements("[\"\\").is_err());
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let levels = nested(DEPTH_MAX);
    let call = |symbol: &str, values: &[Datum<'_>]| {
        let types = vec![Type::Scalar(Kind::Jsonb); values.len()];
        crate::function(symbol).expect(symbol).call(Arguments {
            values,
            types: &types,
            environment: &environment,
        })
    };
    let document = Datum::Text(&levels);
    for symbol in [
        "jsonb_pretty",
        "jsonb_strip_nulls",
        "json_strip_nulls",
        "to_jsonb",
        "jsonb_typeof",
        "jsonb_array_length",
    ] {
        assert!(call(symbol, &[document]).is_ok(), "{symbol}");
    }
    for symbol in ["jsonb_eq", "jsonb_lt", "jsonb_contains", "jsonb_concat"] {
        assert!(call(symbol, &[document, document]).is_ok(), "{symbol}");
    }
    let path = format!("[{}]", vec!["\"0\""; DEPTH_MAX].join(","));
    let changed = call(
        "jsonb_set",
        &[document, Datum::Text(&path), Datum::Text("1"), Datum::Integer(1)],
    );
    assert_eq!(changed, Ok(levels.replace("[]", "[1]").into()));
    let deeper = call(
        "jsonb_set",
        &[document, Datum::Text(&path), document, Datum::Integer(1)],
    );
    assert_eq!(deeper.map_err(|error| error.sqlstate), Err("0A000"));
    let built = call("jsonb_build_array", &[document]);
    assert_eq!(built.map_err(|error| error.sqlstate), Err("0A000"));
}

#[test]
fn rows_keep_the_order_of_the_document() {
    let document = "{ \"b\" : [1, 2] , \"\\u0061\" : null, \"b\":\"x\\ny\"}";
    let row = |key: &str, value: Owned| (key.to_owned(), value);
    assert_eq!(
        super::each(Flavor::Json, document),
        Ok(vec![
            row("b", "[1, 2]".into()),
            row("a", "null".into()),
            row("b", "\"x\\ny\"".into())
        ])
    );
    assert_eq!(
        super::each_text(Flavor::Json, document),
        Ok(vec![
            row("b", "[1, 2]".into()),
            row("a", Owned::Null),
            row("b", "x\ny".into())
        ])
    );
    assert_eq!(
        super::object_keys(Flavor::Json, document),
        Ok(["b", "a", "b"].map(str::to_owned).to_vec())
    );
    assert_eq!(
        super::array_elements_text(Flavor::Jsonb, "[1, null, \"a\"]"),
        Ok(vec!["1".into(), Owned::Null, "a".into()])
    );
    let message = |result: crate::Result<Vec<Owned>>| result.expect_err("an error").message;
    assert_eq!(
        message(super::array_elements(Flavor::Jsonb, "{}")),
        "cannot extract elements from an object"
    );
    assert_eq!(
        message(super::array_elements(Flavor::Json, "{}")),
        "cannot call json_array_elements on a non-array"
    );
}

#[test]
fn aggregates_make_one_document() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let start = |symbol: &str| accumulator(symbol).expect(symbol);
    let (mut json, mut jsonb) = (start("json_agg(anyelement)"), start("jsonb_agg(anyelement)"));
    let (mut json_of, mut jsonb_of) = (start("json_object_agg(any,any)"), start("jsonb_object_agg(any,any)"));
    assert_eq!(json.finish(), Ok(Owned::Null));
    assert_eq!(jsonb.finish(), Ok(Owned::Null));
    assert_eq!(json_of.finish(), Ok(Owned::Null));
    assert_eq!(jsonb_of.finish(), Ok(Owned::Null));
    for (name, list) in [
        ("b", Datum::Text("[1,2]")),
        ("a", Datum::Null),
        ("b", Datum::Text("[3]")),
    ] {
        let arguments = Arguments {
            values: &[list],
            types: &[Type::Array(Kind::Int4)],
            environment: &environment,
        };
        json.add(arguments).expect("a row");
        jsonb.add(arguments).expect("a row");
        let arguments = Arguments {
            values: &[Datum::Text(name), list],
            types: &[Type::Scalar(Kind::Text), Type::Array(Kind::Int4)],
            environment: &environment,
        };
        json_of.add(arguments).expect("a row");
        jsonb_of.add(arguments).expect("a row");
    }
    assert_eq!(json.finish(), Ok("[[1,2], null, \n [3]]".into()));
    assert_eq!(jsonb.finish(), Ok("[[1, 2], null, [3]]".into()));
    assert_eq!(
        json_of.finish(),
        Ok("{ \"b\" : [1,2], \"a\" : null, \"b\" : [3] }".into())
    );
    assert_eq!(jsonb_of.finish(), Ok("{\"a\": null, \"b\": [3]}".into()));
    let null_key = Arguments {
        values: &[Datum::Null, Datum::Integer(1)],
        types: &[Type::Scalar(Kind::Text), Type::Scalar(Kind::Int4)],
        environment: &environment,
    };
    assert_eq!(json_of.add(null_key).map_err(|error| error.sqlstate), Err("22023"));
    assert_eq!(jsonb_of.add(null_key).map_err(|error| error.sqlstate), Err("22023"));
}
