//! What fits, and what is said of what does not.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

fn columns(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|name| Column {
            name: name.trim_end_matches(":json").to_owned(),
            is_json: name.ends_with(":json"),
        })
        .collect()
}

fn read<V: DeserializeOwned>(names: &[&str], values: impl IntoIterator<Item = Value>) -> Result<V, String> {
    deserialize(&columns(names), values.into_iter().collect()).map_err(|error| error.to_string())
}

fn one<V: DeserializeOwned>(value: impl Into<Value>) -> Result<V, String> {
    read(&["x"], [value.into()])
}

fn json<V: DeserializeOwned>(text: &str) -> Result<V, String> {
    read(&["x:json"], [text.into()])
}

#[derive(Debug, PartialEq, Deserialize)]
struct User {
    name: String,
    id: u8,
    email: Option<String>,
    admin: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Happy,
    Sad,
    Other(i64),
}

#[derive(Debug, PartialEq, Deserialize)]
struct Id(i64);

#[test]
fn a_struct_or_map_takes_columns_by_name_and_a_tuple_in_order() {
    let names = ["id", "name", "admin", "email", "more"];
    let row = || [1.into(), "Ada".into(), true.into(), Value::Null, 2.5.into()];
    let ada = User {
        name: "Ada".to_owned(),
        id: 1,
        email: None,
        admin: true,
    };
    assert_eq!(read(&names, row()), Ok(ada));
    assert_eq!(
        read(&names, row()),
        Ok((1_i64, "Ada".to_owned(), true, None::<String>, 2.5_f64))
    );
    let map: BTreeMap<String, serde_json::Value> = read(&names, row()).unwrap();
    assert_eq!(map["admin"], 1);
    assert_eq!(map["email"], serde_json::Value::Null);
    assert_eq!(read(&["a", "b"], [1.into(), 2.into()]), Ok(vec![1, 2]));
    assert_eq!(
        read::<Option<(i64, i64)>>(&["a", "b"], [1.into(), 2.into()]),
        Ok(Some((1, 2)))
    );
}

#[test]
fn a_single_value_is_the_only_column() {
    assert_eq!(one(5), Ok(5_i64));
    assert_eq!(one(5), Ok(5.0_f64));
    assert_eq!(one(5), Ok(Id(5)));
    assert_eq!(one(Value::Null), Ok(None::<Id>));
    assert_eq!(one(5), Ok(Some(Id(5))));
    assert_eq!(one(1), Ok(true));
    assert_eq!(one("x"), Ok("x".to_owned()));
    assert_eq!(one("x"), Ok('x'));
    assert_eq!(one("happy"), Ok(Mood::Happy));
    assert_eq!(one(vec![1_u8, 2]), Ok(vec![1_u8, 2]));
    assert_eq!(read::<(Vec<u8>,)>(&["x"], [vec![1_u8, 2].into()]), Ok((vec![1, 2],)));
    assert_eq!(one(vec![1_u8, 2]), Ok((vec![1_u8, 2],)));
    assert_eq!(one::<()>(5), Ok(()));
    assert_eq!(
        read::<i64>(&["a", "b"], [1.into(), 2.into()]),
        Err("a row cannot be read: one value is read, and the query gives 2 columns".to_owned())
    );
}

#[test]
fn what_does_not_fit_names_its_column() {
    for error in [
        one::<(u8,)>(700).unwrap_err(),
        one::<(i64,)>("7").unwrap_err(),
        one::<(f64,)>("7.5").unwrap_err(),
        one::<(bool,)>(2).unwrap_err(),
        one::<(String,)>(2).unwrap_err(),
        one::<(Mood,)>("furious").unwrap_err(),
        one::<(Mood,)>(1).unwrap_err(),
        one::<(i64,)>(Value::Null).unwrap_err(),
        one::<(Vec<i64>,)>("[1, 2").unwrap_err(),
        one::<(Vec<i64>,)>("[1] 2").unwrap_err(),
        one::<(Vec<i64>,)>("no JSON").unwrap_err(),
        one::<(BTreeMap<String, i64>,)>(1).unwrap_err(),
        one::<u8>(700).unwrap_err(),
        json::<(i64,)>("\"7\"").unwrap_err(),
    ] {
        assert!(error.starts_with("a row cannot be read: column x: "), "{error}");
    }
    let error = read::<User>(&["id"], [1.into()]).unwrap_err();
    assert!(error.contains("missing field"), "{error}");
    let error = read::<(i64,)>(&["a", "b"], [1.into(), 2.into()]).unwrap_err();
    assert!(error.contains("gives 2"), "{error}");
}

#[test]
fn arrays_are_lists() {
    let nested = Value::Array(vec![vec![1_i64, 2].into(), vec![3_i64].into()]);
    assert_eq!(one::<(Vec<Vec<i64>>,)>(nested), Ok((vec![vec![1, 2], vec![3]],)));
    let holed = Value::Array(vec!["a".into(), Value::Null]);
    assert_eq!(
        one::<(Vec<Option<String>>,)>(holed),
        Ok((vec![Some("a".to_owned()), None],))
    );
    assert_eq!(one::<(serde_json::Value,)>(vec![1_i64]), Ok((serde_json::json!([1]),)));
    assert_eq!(one::<((i64, i64),)>(vec![1_i64, 2]), Ok(((1, 2),)));
}

#[test]
fn json_is_read_where_it_is_asked_for() {
    let ada = r#"{"id": 1, "name": "Ada", "admin": true, "email": null}"#;
    for row in [one::<(User,)>(ada), json::<(User,)>(ada)] {
        assert_eq!(row.unwrap().0.name, "Ada");
    }
    for list in [one::<(Vec<i64>,)>("[1, 2]"), json::<(Vec<i64>,)>("[1, 2]")] {
        assert_eq!(list, Ok((vec![1, 2],)));
    }
    // Anything: only the database can say that it is JSON.
    assert_eq!(one::<(serde_json::Value,)>("[1]"), Ok(("[1]".into(),)));
    assert_eq!(json::<(serde_json::Value,)>("[1]"), Ok((serde_json::json!([1]),)));
    assert_eq!(json::<(String,)>("[1]"), Ok(("[1]".to_owned(),)));
    assert_eq!(json::<(bool,)>("true"), Ok((true,)));
    assert_eq!(json::<(f64,)>("2.5"), Ok((2.5,)));
    assert_eq!(json::<(Option<i64>,)>(" null"), Ok((None,)));
    assert_eq!(json::<Option<i64>>("null"), Ok(None));
    assert_eq!(json::<(Option<i64>,)>("7"), Ok((Some(7),)));
    assert_eq!(json::<(Mood,)>(r#"{"other": 7}"#), Ok((Mood::Other(7),)));
    assert_eq!(json::<(Mood,)>("\"sad\""), Ok((Mood::Sad,)));
    let deep = "[".repeat(100_000);
    assert!(one::<(Vec<serde_json::Value>,)>(deep.as_str()).is_err());
}

#[test]
fn rows_are_read_first_or_all() {
    let rows = |rows: Vec<Vec<Value>>| Rows {
        columns: columns(&["x"]).into(),
        rows,
    };
    assert_eq!(rows(Vec::new()).first::<i64>(), Ok(None));
    assert_eq!(rows(Vec::new()).all::<i64>(), Ok(Some(Vec::new())));
    let two = || rows(vec![vec![1.into()], vec!["no".into()]]);
    assert_eq!(two().first::<i64>(), Ok(Some(1)), "further rows are not read");
    assert!(matches!(two().all::<i64>(), Err(ReadError::Row { .. })));
}

/// As where a value is taken by `TryFrom`: see there.
#[test]
fn no_real_number_is_rounded() {
    for real in [
        0.5,
        -0.0,
        f64::INFINITY,
        f64::from(0.1_f32),
        f64::from(f32::MAX),
        0.1,
        1e300,
        16_777_217.0,
        1.0 / 3.0,
    ] {
        let narrow = f32::try_from(Value::Real(real)).ok();
        assert_eq!(
            one::<f32>(real).ok().map(f32::to_bits),
            narrow.map(f32::to_bits),
            "{real}"
        );
        assert_eq!(one::<f64>(real), Ok(real));
    }
    assert!(one::<f32>(f64::NAN).is_ok_and(f32::is_nan));
    for integer in [
        0,
        -7,
        1 << 24,
        (1 << 24) + 1,
        1 << 53,
        (1 << 53) + 1,
        i64::MAX,
        i64::MIN + 1,
    ] {
        let value = || Value::Integer(integer);
        assert_eq!(one::<f32>(value()).ok(), f32::try_from(value()).ok(), "{integer}");
        assert_eq!(one::<f64>(value()).ok(), f64::try_from(value()).ok(), "{integer}");
        assert_eq!(
            one::<Option<f64>>(value()).ok().flatten(),
            f64::try_from(value()).ok(),
            "{integer}"
        );
    }
    for (integer, exact) in [
        (5, true),
        (1 << 24, true),
        (1 << 53, true),
        ((1 << 53) + 1, false),
        (u64::MAX, false),
    ] {
        let value = || Value::Unsigned(integer);
        assert_eq!(f64::try_from(value()).is_ok(), exact, "{integer}");
        assert_eq!(one::<f64>(value()).ok(), f64::try_from(value()).ok(), "{integer}");
        assert_eq!(one::<f32>(value()).ok(), f32::try_from(value()).ok(), "{integer}");
    }
    assert!(one::<f32>(Value::Unsigned((1 << 24) + 1)).is_err());
    assert!(one::<f32>(0.1).unwrap_err().contains("a real number of this size"));
    assert!(one::<f32>("0.5").is_err());
}
