//! Every type, there and back.

use super::{super::super::test_server::session, cases, *};

#[tokio::test]
async fn every_type_is_stored_and_returned_as_it_should_be() {
    let session = session().await;
    session.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    for (type_name, cases) in cases::all() {
        let table = format!("CREATE TEMP TABLE kept (value {type_name})");
        session.batch_execute(&table).await.unwrap();
        // A cast of an inet to text always adds the length of its prefix; printing it does not.
        let text = if type_name == "inet" {
            "format('%s', value)"
        } else {
            "value::text"
        };
        let statement = session
            .prepare(&format!("INSERT INTO kept VALUES ($1) RETURNING {text}, value"))
            .await
            .unwrap();
        let [parameter] = statement.params() else { panic!() };
        assert!(returnable(statement.columns()[1].type_()), "{type_name}");
        // What came out goes in again.
        for (sent, case) in cases
            .iter()
            .flat_map(|case| [(&case.sent, case), (&case.returned, case)])
        {
            assert_eq!(takes(parameter, sent), Ok(()), "{type_name} {sent:?}");
            let row = session.query_one(&statement, &[&Parameter(sent)]).await;
            let row = row.unwrap_or_else(|error| panic!("{type_name} {sent:?}: {error:?}"));
            let stored: String = row.get(0);
            let returned = value(&row, 1).unwrap();
            assert_eq!(stored, case.stored, "{type_name} {sent:?}");
            // Debug tells -0.0 from 0.0 too.
            assert_eq!(
                format!("{returned:?}"),
                format!("{:?}", case.returned),
                "{type_name} {sent:?}"
            );
        }
        let row = session
            .query_one(&statement, &[&Parameter(&Value::Null)])
            .await
            .unwrap();
        assert_eq!(value(&row, 1).unwrap(), Value::Null, "{type_name}");
        session.batch_execute("DROP TABLE kept").await.unwrap();
    }
}

#[tokio::test]
async fn a_column_holds_what_parameters_of_their_own_would() {
    let session = session().await;
    session.batch_execute("SET TimeZone = 'UTC'").await.unwrap();
    let mut columns = 0;
    for (type_name, cases) in cases::all() {
        let statement = session.prepare(&format!("SELECT $1::{type_name}")).await.unwrap();
        let element = &statement.params()[0];
        if array_of(element).is_none() {
            assert!(
                cases.iter().all(|case| !fits_column(element, &case.sent)),
                "{type_name}"
            );
            continue;
        }
        columns += 1;
        let fitting: Vec<_> = cases.iter().filter(|case| fits_column(element, &case.sent)).collect();
        assert!(!fitting.is_empty(), "{type_name}");
        let mut values: Vec<Value> = fitting.iter().map(|case| case.sent.clone()).collect();
        values.insert(1, Value::Null);
        let mut rows = through_a_column(&session, element, &values).await;
        assert_eq!(rows.remove(1), (None, Value::Null), "{type_name}");
        assert_eq!(rows.len(), fitting.len(), "{type_name}");
        for ((stored, returned), case) in rows.iter().zip(fitting) {
            assert_eq!(stored.as_deref(), Some(case.stored), "{type_name} {:?}", case.sent);
            assert_eq!(format!("{returned:?}"), format!("{:?}", case.returned), "{type_name}");
        }
    }
    assert_eq!(columns, 19);
}

#[tokio::test]
async fn an_empty_column_has_no_rows() {
    let session = session().await;
    assert_eq!(through_a_column(&session, &Type::INT8, &[]).await, []);
}

#[tokio::test]
async fn types_that_users_make_are_written_and_read() {
    let session = session().await;
    session
        .batch_execute(
            "CREATE TYPE pg_temp.mood AS ENUM ('sad', 'so, so', '5');
             CREATE DOMAIN pg_temp.age AS int4 CHECK (value >= 0);
             CREATE DOMAIN pg_temp.ages AS int4[];
             CREATE TYPE pg_temp.pair AS (a int, b text);
             CREATE TEMP TABLE people (mood pg_temp.mood, age pg_temp.age, ages pg_temp.ages, moods pg_temp.mood[],
                domains pg_temp.age[], pair pg_temp.pair, boxes box[], span int4range)",
        )
        .await
        .unwrap();
    let statement = session
        .prepare("INSERT INTO people VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING *, pair::text, boxes::text, span::text")
        .await
        .unwrap();
    let sent = [
        text("so, so"),
        Value::from(7),
        Value::from(vec![1, 2]),
        [text("so, so"), Value::Null, Value::from(5)].into_iter().collect(),
        [Value::from(7), Value::Null].into_iter().collect(),
        text("(1,\"a b\")"),
        Value::from(vec!["(2,2),(1,1)", "(4,4),(3,3)"]),
        text("[1,5)"),
    ];
    check(statement.params(), &sent).unwrap();
    let parameters: Vec<_> = sent.iter().map(Parameter).collect();
    let row = session
        .query_raw(
            &statement,
            parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)),
        )
        .await
        .unwrap();
    let row = Box::pin(futures_util::TryStreamExt::try_collect::<Vec<_>>(row))
        .await
        .unwrap()
        .remove(0);
    let returned: Vec<_> = (0..5).map(|index| value(&row, index).unwrap()).collect();
    assert_eq!(returned[..3], sent[..3]);
    assert_eq!(
        returned[3],
        [text("so, so"), Value::Null, text("5")].into_iter().collect()
    );
    assert_eq!(returned[4], sent[4]);
    // What has no reading here is refused before, and says so if it was not asked.
    for index in 5..8 {
        let column = &row.columns()[index];
        assert!(!returnable(column.type_()));
        let told = unreturnable(column.name(), column.type_()).message;
        assert!(
            told.contains(column.name()) && told.contains("cast it to text"),
            "{told}"
        );
        assert!(value(&row, index).unwrap_err().message.contains("cast it to text"));
    }
    assert_eq!(value(&row, 8).unwrap(), text("(1,\"a b\")"));
    assert_eq!(value(&row, 9).unwrap(), text("{(2,2),(1,1);(4,4),(3,3)}"));
    assert_eq!(value(&row, 10).unwrap(), text("[1,5)"));
}

#[tokio::test]
async fn what_only_comes_out_is_read() {
    let session = session().await;
    session
        .batch_execute("SET TimeZone = 'America/St_Johns'; SET DateStyle = 'SQL, DMY'")
        .await
        .unwrap();
    let row = session
        .query_one(
            "SELECT pg_advisory_unlock_all(), '2 3'::int2vector, '[5:6]={1,2}'::int[], 'x'::unknown,
                    '2024-02-29 12:00:00+00'::timestamptz, '2024-02-29'::date, '\\377'::bytea, (-1)::int8::bit(9), pg_typeof(1)",
            &[],
        )
        .await
        .unwrap();
    let returned: Vec<_> = (0..8).map(|index| value(&row, index).unwrap()).collect();
    let expected = [
        Value::Null,
        Value::from(vec![2, 3]),
        Value::from(vec![1, 2]),
        text("x"),
        text("2024-02-29T12:00:00Z"),
        text("2024-02-29"),
        Value::Blob(vec![255]),
        text("111111111"),
    ];
    assert_eq!(returned, expected);
    assert!(!returnable(row.columns()[8].type_()));
}
