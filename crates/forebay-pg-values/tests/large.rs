//! Arguments of many megabytes: nothing can interrupt a function, so none takes time in the square of its arguments, or memory out of
//! proportion to them. Each of these would run for minutes at least, or take gigabytes.

use forebay_pg_values::{Arguments, Datum, Environment, Kind, Owned, Type, function, text_form};

fn call(symbol: &str, kind: Kind, values: &[Datum<'_>]) -> Result<Owned, &'static str> {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let answer = function(symbol).expect(symbol).call(Arguments {
        values,
        types: &vec![Type::Array(kind); values.len()],
        environment: &environment,
    });
    answer.map_err(|error| error.sqlstate)
}

fn list(count: i64, element: impl Fn(i64) -> String) -> String {
    format!("[{}]", (0..count).map(element).collect::<Vec<_>>().join(","))
}

#[test]
fn numbers_of_too_many_digits_are_refused_before_they_are_read() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let read = |text: &str| text_form::parse(Kind::Numeric, -1, text, &environment).map_err(|error| error.sqlstate);
    let ones = "1".repeat(5_000_000);
    for text in [&ones, &format!("0.{ones}"), &format!("{ones}e-5000000")] {
        assert_eq!(read(text), Err("22003"));
    }
    let zeros = "0".repeat(5_000_000);
    assert_eq!(read(&format!("{zeros}7")), Ok("7".into()));
    assert_eq!(read(&format!("0.{zeros}7e5000001")), Ok("7".into()));
    assert_eq!(read(&"9".repeat(131_072)), Ok("9".repeat(131_072).into()));
    assert_eq!(read(&"9".repeat(131_073)), Err("22003"));
}

#[test]
fn sets_of_many_elements_are_compared_in_time() {
    let (even, odd) = (
        list(200_000, |number| (2 * number).to_string()),
        list(200_000, |number| (2 * number + 1).to_string()),
    );
    let ask = |symbol, left: &str, right: &str| call(symbol, Kind::Int4, &[Datum::Text(left), Datum::Text(right)]);
    assert_eq!(ask("arraycontains", &even, &even), Ok(true.into()));
    assert_eq!(ask("arraycontained", &even, "[2,4]"), Ok(false.into()));
    assert_eq!(ask("arrayoverlap", &even, &odd), Ok(false.into()));
    assert_eq!(ask("arrayoverlap", "[null]", "[null]"), Ok(false.into()));
    assert_eq!(ask("arraycontains", "[null,1]", "[1,null]"), Ok(false.into()));
    assert_eq!(ask("jsonb_contains", &even, &even), Ok(true.into()));
    assert_eq!(
        ask("jsonb_contains", "[1,[2,3],{\"a\":1}]", "[{\"a\":1},[3],1.0]"),
        Ok(true.into())
    );
    assert_eq!(ask("jsonb_contains", "[1,[2]]", "[2]"), Ok(false.into()));
    let quoted = |number: i64| format!("\"{number}\"");
    let (names, others) = (list(100_000, quoted), list(100_000, |number| quoted(number + 100_000)));
    assert_eq!(ask("jsonb_exists_any", &names, &others), Ok(false.into()));
    assert_eq!(ask("jsonb_exists_all", &names, &names), Ok(true.into()));
    assert_eq!(ask("jsonb_delete_array", &names, &names), Ok("[]".into()));
}

#[test]
fn characters_are_looked_up_in_long_sets_in_time() {
    let text = "a".repeat(1_000_000);
    let set = format!("{}a", "b".repeat(200_000));
    let trimmed = call("btrim", Kind::Text, &[Datum::Text(&text), Datum::Text(&set)]);
    assert_eq!(trimmed, Ok("".into()));
    let changed = call(
        "translate",
        Kind::Text,
        &[Datum::Text(&text), Datum::Text(&set), Datum::Text("x")],
    );
    assert_eq!(changed, Ok("".into()));
    let first = call(
        "translate",
        Kind::Text,
        &[Datum::Text("aba"), Datum::Text("aab"), Datum::Text("xyz")],
    );
    assert_eq!(first, Ok("xzx".into()));
}

#[test]
fn a_like_that_takes_too_long_is_refused() {
    let text = "a".repeat(10_000_000);
    let pattern = format!("%{}b", "a".repeat(1_000_000));
    let values = [Datum::Text(&text), Datum::Text(&pattern)];
    assert_eq!(call("textlike", Kind::Text, &values), Err("0A000"));
}

#[test]
fn arrays_have_a_bound() {
    let environment = Environment::new(jiff::tz::TimeZone::UTC, 0);
    let literal = format!("{{{}1}}", "1,".repeat(5_000_000));
    let read = forebay_pg_values::array::parse(Kind::Int4, -1, &literal, &environment);
    assert_eq!(read.map_err(|error| error.sqlstate), Err("0A000"));
    let parts = "a,".repeat(5_000_000);
    let split = call("text_to_array", Kind::Text, &[Datum::Text(&parts), Datum::Text(",")]);
    assert_eq!(split, Err("0A000"));
    let characters = call("text_to_array", Kind::Text, &[Datum::Text("aé"), Datum::Null]);
    assert_eq!(characters, Ok("[\"a\",\"é\"]".into()));
    let long = "x".repeat(1_000_000);
    let short = list(5_000, |_| "\"\"".to_owned());
    let values = [Datum::Text(&short), Datum::Text(""), Datum::Text(&long)];
    assert_eq!(call("array_replace", Kind::Text, &values), Err("54000"));
    let values = [Datum::Text(&short), Datum::Text(&long)];
    assert_eq!(call("array_to_text", Kind::Text, &values), Err("54000"));
}
