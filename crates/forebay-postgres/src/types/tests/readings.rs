//! Texts that are read here are read as the server reads them.

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::{super::super::test_server::session, *};

/// Sends many random texts as one column, and their text again for the server to read.
async fn both_read_alike(element: Type, texts: impl Strategy<Value = String>, fitting_min: usize) {
    const TEXTS: usize = 4_000;
    let session = session().await;
    session.batch_execute("SET TimeZone = 'Asia/Kolkata'").await.unwrap();
    let mut runner = TestRunner::deterministic();
    let values: Vec<Value> = (0..TEXTS)
        .map(|_| Value::Text(texts.new_tree(&mut runner).unwrap().current()))
        .filter(|value| fits_column(&element, value))
        .collect();
    assert!(values.len() >= fitting_min, "only {} fit", values.len());
    let rows = through_a_column(&session, &element, &values).await;
    let words: Vec<&str> = values.iter().map(|value| value.as_text().unwrap()).collect();
    let query = format!(
        "SELECT t::{}::text FROM unnest($1::text[]) WITH ORDINALITY AS u (t, at) ORDER BY at",
        element.name()
    );
    let read = session.query(&query, &[&words]).await.unwrap();
    assert_eq!(read.len(), values.len());
    let mut returned = Vec::new();
    for ((word, (stored, value)), row) in words.iter().zip(rows).zip(read) {
        assert_eq!(stored, row.get::<_, Option<String>>(0), "{element} {word:?}");
        returned.push((stored, value));
    }
    // What came out is the same again.
    for (stored, value) in returned.iter().take(50) {
        let (again, same) = through_a_parameter(&session, element.name(), value).await.unwrap();
        assert_eq!((&again, &same), (stored, value), "{element}");
    }
}

#[tokio::test]
async fn numeric_is_read_as_the_server_does() {
    both_read_alike(
        Type::NUMERIC,
        "[+-]?[0-9]{0,40}(\\.[0-9]{0,40})?([eE][+-]?[0-9]{1,2})?",
        3_000,
    )
    .await;
    both_read_alike(Type::NUMERIC, "-?0{0,9}[1-9]?0{0,9}\\.?0{0,9}[1-9]?0{0,9}", 3_000).await;
}

#[tokio::test]
async fn floats_are_read_as_the_server_does() {
    both_read_alike(
        Type::FLOAT8,
        "[+-]?[0-9]{0,20}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?",
        2_000,
    )
    .await;
    both_read_alike(
        Type::FLOAT4,
        "[+-]?[0-9]{0,9}(\\.[0-9]{0,9})?([eE][+-]?[0-9]{1,2})?",
        2_000,
    )
    .await;
}

#[tokio::test]
async fn integers_are_read_as_the_server_does() {
    both_read_alike(Type::INT8, "[+-]?[0-9]{1,19}", 3_000).await;
    both_read_alike(Type::OID, "[+]?[0-9]{1,10}", 2_000).await;
    both_read_alike(Type::BOOL, "t|f|true|false|yes|1|0|on|T", 1_000).await;
}

#[tokio::test]
async fn moments_are_read_as_the_server_does() {
    let date = "[0-9]{4}-(0[0-9]|1[0-3])-([0-2][0-9]|3[0-1])";
    let time = "([01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,7})?";
    let zone = "(Z|[+-](0[0-9]|1[0-6])(:?[0-6][0-9])?)";
    both_read_alike(Type::DATE, date, 2_000).await;
    both_read_alike(Type::TIME, time, 1_500).await;
    both_read_alike(
        Type::TIMESTAMP,
        format!("{date}([ T]{time}{zone}?)?").as_str().to_owned().leak() as &str,
        1_000,
    )
    .await;
    both_read_alike(
        Type::TIMESTAMPTZ,
        format!("{date}[ T]{time}{zone}?").leak() as &str,
        500,
    )
    .await;
}

#[tokio::test]
async fn lists_of_texts_come_back_as_they_went() {
    let session = session().await;
    let mut runner = TestRunner::deterministic();
    let lists = prop::collection::vec(prop::option::of("[a-c\"\\\\,{} \nNUL'ä😀]{0,6}"), 0..6);
    // Binary, and as a literal.
    for type_name in ["text", "name"] {
        for _ in 0..100 {
            let list: Value = lists.new_tree(&mut runner).unwrap().current().into_iter().collect();
            let (_, returned) = through_a_parameter(&session, &format!("{type_name}[]"), &list)
                .await
                .unwrap();
            assert_eq!(returned, list);
        }
    }
}

#[tokio::test]
async fn numbers_are_spelled_as_the_server_spells_them() {
    let session = session().await;
    let mut runner = TestRunner::deterministic();
    let numbers: Vec<Value> = (0..2_000)
        .map(|index| {
            let any = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
            let near = -1e18..1e18_f64;
            let pick =
                |strategy: BoxedStrategy<f64>, runner: &mut TestRunner| strategy.new_tree(runner).unwrap().current();
            Value::Real(if index % 2 == 0 {
                pick(any.boxed(), &mut runner)
            } else {
                pick(near.boxed(), &mut runner)
            })
        })
        .collect();
    let spelled = through_a_column(&session, &Type::TEXT, &numbers).await;
    let printed = through_a_column(&session, &Type::FLOAT8, &numbers).await;
    let mut same = 0;
    for ((spelled, _), (printed, _)) in spelled.into_iter().zip(printed) {
        let (spelled, printed) = (spelled.unwrap(), printed.unwrap());
        assert_eq!(spelled.parse::<f64>(), printed.parse::<f64>());
        assert_eq!(spelled.contains('e'), printed.contains('e'));
        // The server has no use for digits that lie just between two numbers, and prints one more of them.
        assert!(spelled.len() <= printed.len(), "{spelled} {printed}");
        same += usize::from(spelled == printed);
    }
    assert!(same > 1_900, "{same}");
}

#[tokio::test]
async fn addresses_are_printed_as_the_server_prints_them() {
    let session = session().await;
    let mut runner = TestRunner::deterministic();
    let words = prop::collection::vec(prop::sample::select(vec!["0", "0", "0", "1", "abc", "ffff"]), 8);
    let addresses: Value = (0..3_000)
        .map(|index| {
            let address = words.new_tree(&mut runner).unwrap().current().join(":");
            if index % 2 == 0 {
                address
            } else {
                format!("{address}/{}", index % 129)
            }
        })
        .collect();
    let row = session
        .query_one(
            "SELECT array_agg(a ORDER BY at), array_agg(format('%s', a) ORDER BY at)
             FROM unnest($1::inet[]) WITH ORDINALITY AS u (a, at)",
            &[&Parameter(&addresses)],
        )
        .await
        .unwrap();
    assert_eq!(value(&row, 0).unwrap(), value(&row, 1).unwrap());
}
