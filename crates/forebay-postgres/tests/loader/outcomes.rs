//! Values, keys of all kinds, and the meaning of the query's clauses.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

const PEOPLE: &str = "
    CREATE TABLE people (id bigint PRIMARY KEY, name text NOT NULL, email text, height real, admin boolean, photo bytea,
      tags text[], about jsonb);
    INSERT INTO people VALUES
      (1, 'Ada', NULL, 1.5, true, '\\x0102', '{a,NULL}', '{\"langs\": [\"en\"], \"n\": 1}'),
      (2, 'Grace', 'grace@example.org', 2, false, '', '{}', 'null');
";

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct About {
    langs: Vec<String>,
    n: u8,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Person {
    name: String,
    id: i64,
    email: Option<String>,
    height: f64,
    admin: bool,
    photo: Vec<u8>,
    tags: Vec<Option<String>>,
    about: Option<About>,
}

#[tokio::test]
async fn a_row_becomes_a_struct_a_tuple_a_map_or_a_value() {
    let database = &Database::new(PEOPLE).await;
    let ada = Person {
        name: "Ada".to_owned(),
        id: 1,
        email: None,
        height: 1.5,
        admin: true,
        photo: vec![1, 2],
        tags: vec![Some("a".to_owned()), None],
        about: Some(About {
            langs: vec!["en".to_owned()],
            n: 1,
        }),
    };
    let grace = Person {
        name: "Grace".to_owned(),
        id: 2,
        email: Some("grace@example.org".to_owned()),
        height: 2.0,
        admin: false,
        photo: vec![],
        tags: vec![],
        about: None,
    };
    for sql in [
        "SELECT * FROM people WHERE id = ANY($1)",
        "SELECT * FROM people WHERE id = $1",
    ] {
        let people = values::<i64, Person>(database, sql, vec![2, 7, 1, 2]).await;
        assert_eq!(
            people,
            [Some(grace.clone()), None, Some(ada.clone()), Some(grace.clone())]
        );
        assert_eq!(values::<i64, Person>(database, sql, vec![1]).await, [Some(ada.clone())]);
    }
    let sql = "SELECT name, about FROM people WHERE id = $1";
    let tuples = values::<i64, (String, Option<serde_json::Value>)>(database, sql, vec![1, 2]).await;
    assert_eq!(tuples[0].as_ref().unwrap().1.as_ref().unwrap()["langs"][0], "en");
    assert_eq!(tuples[1], Some(("Grace".to_owned(), None)));
    let maps = values::<i64, BTreeMap<String, serde_json::Value>>(database, sql, vec![1, 2]).await;
    assert_eq!(maps[0].as_ref().unwrap()["about"]["n"], 1);
    let names = values::<i64, String>(database, "SELECT name FROM people WHERE id = $1", vec![2, 1]).await;
    assert_eq!(names, [Some("Grace".to_owned()), Some("Ada".to_owned())]);
    let emails = values::<i64, Option<String>>(database, "SELECT email FROM people WHERE id = $1", vec![1, 3]).await;
    assert_eq!(emails, [Some(None), None], "NULL is a value, no row is none");
}

#[tokio::test]
async fn one_a_hundred_and_ten_thousand_keys_are_one_query() {
    let database = &Database::new(
        "CREATE TABLE squares (id bigint PRIMARY KEY, square bigint);
         INSERT INTO squares SELECT n, n * n FROM generate_series(0, 4999) n",
    )
    .await;
    for count in [1, 100, 10_000_i64] {
        let keys: Vec<i64> = (0..count).rev().collect();
        for sql in [
            "SELECT square FROM squares WHERE id = ANY($1)",
            "SELECT square FROM squares WHERE id = $1",
        ] {
            let squares = values::<i64, i64>(database, sql, keys.clone()).await;
            let expected: Vec<_> = keys.iter().map(|n| (*n < 5000).then_some(n * n)).collect();
            assert_eq!(squares, expected);
        }
    }
    assert!(is_one_query(database, "SELECT NOW FROM squares WHERE id = ANY($1)", vec![1_i64, 2]).await);
    assert!(is_one_query(database, "SELECT NOW FROM squares WHERE id = $1 -- why", vec![1_i64, 2]).await);
}

#[tokio::test]
async fn keys_are_compared_as_the_query_says() {
    let database = &Database::new(
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
         CREATE TABLE words (word text COLLATE caseless PRIMARY KEY, n int);
         INSERT INTO words VALUES ('Straße', 1), ('abc', 2);
         CREATE TABLE padded (c char(5), n int);
         INSERT INTO padded VALUES ('ab', 3);
         CREATE TABLE plain (word text, n int);
         INSERT INTO plain VALUES ('MiXed', 4)",
    )
    .await;
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<String>>();
    for sql in [
        "SELECT n FROM words WHERE word = ANY($1)",
        "SELECT n FROM words WHERE $1 = word",
    ] {
        let found =
            values::<String, i64>(database, sql, texts(&["ABC", "abc", "aBc", "STRASSE", "straße", "ab"])).await;
        assert_eq!(found, [Some(2), Some(2), Some(2), None, Some(1), None]);
    }
    assert!(
        is_one_query(
            database,
            "SELECT NOW FROM words WHERE word = ANY($1)",
            texts(&["ABC", "abc"])
        )
        .await
    );
    let found = values::<String, i64>(
        database,
        "SELECT n FROM padded WHERE c = $1",
        texts(&["ab", "ab  ", " ab"]),
    )
    .await;
    assert_eq!(found, [Some(3), Some(3), None]);
    let sql = "SELECT n FROM plain WHERE lower(word) = lower($1)";
    let found = values::<String, i64>(database, sql, texts(&["mixed", "MIXED", "mix"])).await;
    assert_eq!(found, [Some(4), Some(4), None]);
}

#[tokio::test]
async fn keys_of_all_kinds() {
    let database = &Database::new(
        "CREATE TYPE mood AS ENUM ('happy', 'sad');
         CREATE DOMAIN positive AS int CHECK (value > 0);
         CREATE TABLE t (u uuid, d date, at timestamptz, num numeric, b bytea, i2 int2, ok bool, m mood, net inet, p positive,
           f float8, n int);
         INSERT INTO t VALUES ('00000000-0000-0000-0000-0000000000ff', '2024-02-29', '2024-02-29 12:00+00', 1.50, '\\x0001', 7,
           true, 'happy', '10.0.0.0/8', 5, 0.5, 1)",
    )
    .await;
    let some = |found: Vec<Option<i64>>| found == [Some(1), None];
    let text = |one: &str, two: &str| vec![one.to_owned(), two.to_owned()];
    let uuid = "00000000-0000-0000-0000-0000000000FF";
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE u = $1",
            text(uuid, "00000000-0000-0000-0000-000000000000")
        )
        .await
    ));
    let mut bytes = [0_u8; 16];
    bytes[15] = 255;
    assert!(some(
        values(database, "SELECT n FROM t WHERE u = ANY($1)", vec![bytes, [0; 16]]).await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE d = $1",
            text("2024-02-29", "2024-02-28")
        )
        .await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE at = $1",
            text("2024-02-29 13:00+01", "2024-02-29 13:00+00")
        )
        .await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE num = ANY($1)", text("1.5", "1.51")).await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE b = $1", vec![vec![0_u8, 1], vec![0]]).await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE i2 = $1", vec![7_i64, 8]).await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE ok = $1", vec![true, false]).await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE m = $1", text("happy", "sad")).await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE m = ANY($1)", text("happy", "sad")).await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE net >> $1",
            text("10.1.0.0/16", "11.0.0.0/8")
        )
        .await
    ));
    assert!(some(
        values(database, "SELECT n FROM t WHERE p = $1", vec![5_i64, 6]).await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE i2 = $1 AND ok = $2",
            vec![(7, true), (7, false)]
        )
        .await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE (d, i2) = ($2, $1)",
            vec![(7, "2024-02-29"), (8, "2024-02-29")]
        )
        .await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE i2 = ANY($1) AND m = $2",
            vec![(7, "happy"), (7, "sad")]
        )
        .await
    ));
    assert!(some(
        values(
            database,
            "SELECT n FROM t WHERE i2 = $1 AND ok IS DISTINCT FROM $2",
            vec![(7, None::<i64>), (8, None)]
        )
        .await
    ));
    // A part that is used twice.
    assert!(some(
        values(database, "SELECT n FROM t WHERE i2 >= $1 AND i2 <= $1 ", vec![7_i64, 8]).await
    ));
}

#[tokio::test]
async fn clauses_mean_what_they_say_for_each_key() {
    let database = &Database::new(
        "CREATE TABLE posts (id int PRIMARY KEY, author int, score int);
         INSERT INTO posts SELECT n, n % 10, (n * 7919) % 1009 FROM generate_series(1, 3000) n;
         INSERT INTO posts VALUES (5000, 77, NULL)",
    )
    .await;
    let authors: Vec<i64> = vec![3, 77, 5, 99, 0];
    let newest = "SELECT NOW FROM posts WHERE author = $1 ORDER BY id DESC LIMIT 1";
    assert!(is_one_query(database, newest, authors.clone()).await);
    let sql = "SELECT id FROM posts WHERE author = $1 ORDER BY id DESC LIMIT 1";
    let found = values::<i64, i64>(database, sql, authors.clone()).await;
    assert_eq!(found, [Some(2993), Some(5000), Some(2995), None, Some(3000)]);
    let sql = "SELECT count(*), max(score) FROM posts WHERE author = ANY($1)";
    let counts = values::<i64, (i64, Option<i64>)>(database, sql, authors.clone()).await;
    assert_eq!(counts[1], Some((1, None)));
    assert_eq!(counts[3], Some((0, None)), "an aggregate of nothing has a row");
    assert_eq!(counts[0].unwrap().0, 300);
    // All rows, in the query's order.
    let sql = "SELECT score, id FROM posts WHERE author = $1 ORDER BY score DESC NULLS LAST, id";
    for (author, rows) in authors
        .iter()
        .zip(lists::<i64, (Option<i64>, i64)>(database, sql, authors.clone()).await)
    {
        let alone = lists::<i64, (Option<i64>, i64)>(database, sql, vec![*author])
            .await
            .remove(0);
        assert_eq!(rows, alone);
        assert!(rows.is_sorted_by_key(|(score, id)| (std::cmp::Reverse(*score), *id)));
    }
    let sql = "SELECT id, row_number() OVER (ORDER BY id) FROM posts WHERE author = $1 ORDER BY 1 OFFSET 1 LIMIT 2";
    let pages = lists::<i64, (i64, i64)>(database, sql, vec![3, 77]).await;
    assert_eq!(pages, [vec![(13, 2), (23, 3)], vec![]]);
    // Rows that are alike stay as many as they are, and columns may have the same name.
    let twice = "SELECT author AS x, author AS x FROM posts WHERE author = $1 AND id < 30";
    assert_eq!(
        lists::<i64, (i64, i64)>(database, twice, vec![3, 4]).await,
        [vec![(3, 3); 3], vec![(4, 4); 3]]
    );
    let with = "WITH mine AS (SELECT * FROM posts WHERE author = $1) SELECT sum(id) FROM mine WHERE id < 30 -- mine;";
    assert_eq!(
        values::<i64, i64>(database, with, vec![3, 4]).await,
        [Some(39), Some(42)]
    );
    let union =
        "SELECT id FROM posts WHERE id = $1 UNION SELECT id FROM posts WHERE author = $1 AND id < 20 ORDER BY 1;";
    assert_eq!(
        lists::<i64, i64>(database, union, vec![3, 12]).await,
        [vec![3, 13], vec![12]]
    );
    // The key itself is a value, and a column keeps its name.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    struct Named {
        int8: i64,
    }
    let named = values::<i64, Named>(database, "SELECT $1::int8", vec![1, 2]).await;
    assert_eq!(named, [Some(Named { int8: 1 }), Some(Named { int8: 2 })]);
}

#[tokio::test]
async fn what_cannot_be_one_query_is_run_once_a_key() {
    let database = &Database::new(
        "CREATE TYPE mood AS ENUM ('happy', 'sad');
         CREATE TABLE t (id int, m mood, name text);
         INSERT INTO t VALUES (1, 'happy', 'a\\b'), (2, 'sad', 'c')",
    )
    .await;
    let moods = vec!["happy".to_owned(), "sad".to_owned()];
    assert!(!is_one_query(database, "SELECT NOW FROM t WHERE m = $1", moods).await);
    // An aggregate of nothing but the key would be the outer query's.
    let sql = "SELECT max($1::int) FROM t WHERE id < 2";
    assert_eq!(values::<i64, i64>(database, sql, vec![5, 6]).await, [Some(5), Some(6)]);
    assert!(
        !is_one_query(
            database,
            "SELECT NOW, FROM t WHERE id = $1 AND name LIKE '%\\\\%'"
                .replace("NOW,", "NOW")
                .as_str(),
            vec![1_i64, 2]
        )
        .await
    );
    let limit = "SELECT id FROM t ORDER BY id LIMIT $1";
    assert_eq!(
        lists::<i64, i64>(database, limit, vec![1, 2, 0]).await,
        [vec![1], vec![1, 2], vec![]]
    );
}
