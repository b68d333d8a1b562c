//! Values, keys of all kinds, and the meaning of the query's clauses.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

const PEOPLE: &str = "
    CREATE TABLE people (id bigint PRIMARY KEY, name varchar(20) NOT NULL, email text, height double, admin boolean, photo blob,
      tags json, about json);
    INSERT INTO people VALUES
      (1, 'Ada', NULL, 1.5, true, 0x0102, '[\"a\", null]', '{\"langs\": [\"en\"], \"n\": 1}'),
      (2, 'Grace', 'grace@example.org', 2, false, '', '[]', NULL);
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
        "SELECT * FROM people WHERE id IN (?)",
        "SELECT * FROM people WHERE id = ?",
        "SELECT * FROM people WHERE id = ? LIMIT 1",
    ] {
        let people = values::<i64, Person>(database, sql, vec![2, 7, 1, 2]).await;
        assert_eq!(
            people,
            [Some(grace.clone()), None, Some(ada.clone()), Some(grace.clone())]
        );
        assert_eq!(values::<i64, Person>(database, sql, vec![1]).await, [Some(ada.clone())]);
    }
    let tuples = values::<i64, (String, i8)>(database, "SELECT name, admin FROM people WHERE id = ?", vec![1, 2]).await;
    assert_eq!(tuples, [Some(("Ada".to_owned(), 1)), Some(("Grace".to_owned(), 0))]);
    let sql = "SELECT id, name FROM people WHERE id = ?";
    let maps = values::<i64, BTreeMap<String, serde_json::Value>>(database, sql, vec![1, 2]).await;
    let keys: Vec<&String> = maps[1].as_ref().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name"], "nothing is there that was not asked for");
    let names = values::<i64, String>(database, "SELECT name FROM people WHERE id = ?", vec![2, 1]).await;
    assert_eq!(names, [Some("Grace".to_owned()), Some("Ada".to_owned())]);
    let emails = values::<i64, Option<String>>(database, "SELECT email FROM people WHERE id = ?", vec![1, 3]).await;
    assert_eq!(emails, [Some(None), None], "NULL is a value, no row is none");
}

#[tokio::test]
async fn a_hundred_and_ten_thousand_keys_are_as_one() {
    let database = &Database::new(
        "CREATE TABLE squares (id bigint PRIMARY KEY, square bigint);
         INSERT INTO squares SELECT seq, seq * seq FROM seq_0_to_4999",
    )
    .await;
    for count in [1, 2, 3, 100, 10_000_i64] {
        let keys: Vec<i64> = (0..count).rev().collect();
        for sql in [
            "SELECT square FROM squares WHERE id IN (?)",
            "SELECT square FROM squares WHERE id = ?",
        ] {
            let squares = values::<i64, i64>(database, sql, keys.clone()).await;
            let expected: Vec<_> = keys.iter().map(|n| (*n < 5000).then_some(n * n)).collect();
            assert_eq!(squares, expected);
        }
    }
    for sql in [
        "SELECT EXECUTION FROM squares WHERE id IN (?)",
        "SELECT EXECUTION FROM squares WHERE id = ? -- why",
        "SELECT EXECUTION FROM squares s JOIN squares t USING (square) WHERE s.square >= 0 AND (`s`.id = ?) ORDER BY t.id DESC;",
    ] {
        assert!(is_one_query(database, sql, vec![1_i64, 2, 3]).await, "{sql}");
    }
}

#[tokio::test]
async fn what_cannot_be_one_query_is_run_once_a_key() {
    let database = &Database::new(
        "CREATE TABLE t (id int PRIMARY KEY, word varchar(5), dec1 decimal(5, 1), y year, bits bit(8));
         INSERT INTO t VALUES (1, '1', 1, 2001, 1), (2, '2', 2, 2002, 2)",
    )
    .await;
    for sql in [
        "SELECT EXECUTION FROM t WHERE word = ?",
        "SELECT EXECUTION FROM t WHERE dec1 = ?",
        "SELECT EXECUTION FROM t WHERE y = ?",
        "SELECT EXECUTION FROM t WHERE bits = ?",
        "SELECT EXECUTION FROM t WHERE id = ? LIMIT 1",
    ] {
        assert!(!is_one_query(database, sql, vec![1_i64, 2]).await, "{sql}");
    }
    // Keys of texts, for a column of numbers.
    let sql = "SELECT EXECUTION FROM t WHERE id = ?";
    assert!(!is_one_query(database, sql, vec!["1".to_owned(), "2".to_owned()]).await);
    assert!(is_one_query(database, sql, vec![1_i64, 2]).await);
}

#[tokio::test]
async fn a_server_that_cuts_results_is_asked_once_a_key() {
    let mut database = Database::on(
        odd_server_url,
        "CREATE TABLE t (id int, n int);
         INSERT INTO t VALUES (1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)",
    )
    .await;
    // For sessions that begin from now on.
    database.say("SET GLOBAL sql_select_limit = 2").await;
    database.mysql = MySql::connect(&database.url).await.unwrap();
    let sql = "SELECT n FROM t WHERE id = ? ORDER BY n";
    assert_eq!(
        lists::<i64, i64>(&database, sql, vec![1, 2]).await,
        [vec![1, 2], vec![4, 5]]
    );
}

#[tokio::test]
async fn keys_are_compared_as_the_query_says() {
    let database = &Database::new(
        "CREATE TABLE words (word varchar(10) COLLATE utf8mb4_general_ci PRIMARY KEY, n int);
         INSERT INTO words VALUES ('abc', 2), ('Stra\u{df}e', 1), ('12x', 7);
         CREATE TABLE padded (c char(5) COLLATE utf8mb4_bin, n int);
         INSERT INTO padded VALUES ('ab', 3);
         CREATE TABLE exact (word varchar(10) COLLATE utf8mb4_nopad_bin, n int);
         INSERT INTO exact VALUES ('ab', 4);
         CREATE TABLE big (b bigint unsigned PRIMARY KEY, s smallint, n int, KEY (s));
         INSERT INTO big VALUES (18446744073709551615, -1, 5), (7, 7, 6), (8, NULL, 8)",
    )
    .await;
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<String>>();
    for sql in [
        "SELECT n FROM words WHERE word IN (?)",
        "SELECT n FROM words WHERE ? = word",
    ] {
        let found = values::<String, i64>(database, sql, texts(&["ABC", "abc ", "aBc", "STRASE", "ab"])).await;
        assert_eq!(found, [Some(2), Some(2), Some(2), Some(1), None]);
    }
    // A number against text is a number: the server's own rule.
    let found = values::<i64, i64>(database, "SELECT n FROM words WHERE word = ?", vec![12, 13]).await;
    assert_eq!(found, [Some(7), None]);
    let found = values::<String, i64>(
        database,
        "SELECT n FROM padded WHERE c = ?",
        texts(&["ab", "ab  ", " ab", "AB"]),
    )
    .await;
    assert_eq!(found, [Some(3), Some(3), None, None]);
    let found = values::<String, i64>(database, "SELECT n FROM exact WHERE word = ?", texts(&["ab", "ab "])).await;
    assert_eq!(found, [Some(4), None]);
    let found = values::<i64, i64>(
        database,
        "SELECT n FROM big WHERE b = ?",
        vec![-1, 7, i64::MAX, i64::MIN],
    )
    .await;
    assert_eq!(found, [None, Some(6), None, None]);
    let found = values::<i64, i64>(database, "SELECT n FROM big WHERE s = ?", vec![-1, 65_535, 7, i64::MAX]).await;
    assert_eq!(found, [Some(5), None, Some(6), None]);
}

#[tokio::test]
async fn keys_of_all_kinds() {
    let database = &Database::new(
        "CREATE TABLE t (d date, at datetime(3), num decimal(10,2), b varbinary(16), ok bool, m enum('happy', 'sad'), f double,
           y year, n int);
         INSERT INTO t VALUES ('2024-02-29', '2024-02-29 12:00:00.5', 1.50, 0x0001, true, 'happy', 0.5, 1970, 1)",
    )
    .await;
    let some = |found: Vec<Option<i64>>| assert_eq!(found, [Some(1), None]);
    let text = |one: &str, two: &str| vec![one.to_owned(), two.to_owned()];
    some(
        values(
            database,
            "SELECT n FROM t WHERE d = ?",
            text("2024-02-29", "2024-02-28"),
        )
        .await,
    );
    some(
        values(
            database,
            "SELECT n FROM t WHERE at = ?",
            text("2024-02-29 12:00:00.500", "2024-02-29"),
        )
        .await,
    );
    some(values(database, "SELECT n FROM t WHERE num IN (?)", text("1.5", "1.51")).await);
    some(values(database, "SELECT n FROM t WHERE b = ?", vec![vec![0_u8, 1], vec![0]]).await);
    some(values(database, "SELECT n FROM t WHERE ok = ?", vec![true, false]).await);
    some(values(database, "SELECT n FROM t WHERE m = ?", text("happy", "sad")).await);
    some(values(database, "SELECT n FROM t WHERE m = ?", vec![1_i64, 2]).await);
    // 70 is the year 1970 to the server.
    some(values(database, "SELECT n FROM t WHERE y = ?", vec![70_i64, 71]).await);
    some(values(database, "SELECT n FROM t WHERE f * 2 = ?", vec![1_i64, 2]).await);
    some(
        values(
            database,
            "SELECT n FROM t WHERE n = ? AND ok = ?",
            vec![(1, true), (1, false)],
        )
        .await,
    );
    some(
        values(
            database,
            "SELECT n FROM t WHERE (n, d) = (?, ?)",
            vec![(1, "2024-02-29"), (2, "2024-02-29")],
        )
        .await,
    );
    some(
        values(
            database,
            "SELECT n FROM t WHERE n = ? AND ok <=> ?",
            vec![(1, Some(1_i64)), (1, None)],
        )
        .await,
    );
    // Two keys that are one number to the server.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Odd(u8);
    impl forebay_write::IntoParameters for Odd {
        fn into_parameters(self) -> forebay_write::Parameters {
            [i64::from(self.0 % 2)].into()
        }
    }
    let found = values::<Odd, i64>(database, "SELECT n FROM t WHERE n = ?", (0..4).map(Odd).collect()).await;
    assert_eq!(found, [None, Some(1), None, Some(1)]);
}

#[tokio::test]
async fn clauses_mean_what_they_say_for_each_key() {
    let database = &Database::new(
        "CREATE TABLE posts (id int PRIMARY KEY, author int, score int, KEY (author));
         INSERT INTO posts SELECT seq, seq % 10, (seq * 7919) % 1009 FROM seq_1_to_3000;
         INSERT INTO posts VALUES (5000, 77, NULL)",
    )
    .await;
    let authors: Vec<i64> = vec![3, 77, 5, 99, 0];
    let sql = "SELECT id FROM posts WHERE author = ? ORDER BY id DESC LIMIT 1";
    let found = values::<i64, i64>(database, sql, authors.clone()).await;
    assert_eq!(found, [Some(2993), Some(5000), Some(2995), None, Some(3000)]);
    let sql = "SELECT count(*), max(score) FROM posts WHERE author IN (?)";
    let counts = values::<i64, (i64, Option<i64>)>(database, sql, authors.clone()).await;
    assert_eq!(counts[1], Some((1, None)));
    assert_eq!(counts[3], Some((0, None)), "an aggregate of nothing has a row");
    assert_eq!(counts[0].unwrap().0, 300);
    // All rows, in the query's order.
    let sql = "SELECT score, id FROM posts WHERE author = ? ORDER BY score DESC, 2";
    assert!(
        is_one_query(
            database,
            "SELECT EXECUTION FROM posts WHERE author = ? ORDER BY score DESC",
            vec![3, 77]
        )
        .await
    );
    let many = lists::<i64, (Option<i64>, i64)>(database, sql, authors.clone()).await;
    for (author, rows) in authors.iter().zip(many) {
        let alone = lists::<i64, (Option<i64>, i64)>(database, sql, vec![*author])
            .await
            .remove(0);
        assert_eq!(rows, alone);
        assert!(rows.is_sorted_by_key(|(score, id)| (std::cmp::Reverse(*score), *id)));
    }
    let sql = "SELECT id, row_number() OVER (ORDER BY id) FROM posts WHERE author = ? ORDER BY 1 LIMIT 2 OFFSET 1";
    let pages = lists::<i64, (i64, i64)>(database, sql, vec![3, 77]).await;
    assert_eq!(pages, [vec![(13, 2), (23, 3)], vec![]]);
    // Rows that are alike stay as many as they are, and columns may have the same name.
    let twice = "SELECT author AS x, author AS x FROM posts WHERE author = ? AND id < 30";
    assert_eq!(
        lists::<i64, (i64, i64)>(database, twice, vec![3, 4]).await,
        [vec![(3, 3); 3], vec![(4, 4); 3]]
    );
    let with =
        "WITH mine AS (SELECT * FROM posts WHERE author = ?) SELECT sum(id) DIV 1 FROM mine WHERE id < 30 -- mine";
    let sums = values::<i64, i64>(database, with, vec![3, 4]).await;
    assert_eq!(sums, [Some(39), Some(42)]);
    let union = "SELECT id FROM posts WHERE id = ? UNION SELECT id FROM posts WHERE author = ? AND id < 20 ORDER BY 1;";
    assert_eq!(
        lists::<(i64, i64), i64>(database, union, vec![(3, 3), (12, 2)]).await,
        [vec![3, 13], vec![2, 12]]
    );
    // A column that is the key under another's name.
    let named = "SELECT score AS author, author AS id FROM posts WHERE author = ? AND id < 20 ORDER BY id, author";
    assert_eq!(
        lists::<i64, (i64, i64)>(database, named, vec![3, 4]).await,
        [
            lists::<i64, (i64, i64)>(database, named, vec![3]).await.remove(0),
            lists::<i64, (i64, i64)>(database, named, vec![4]).await.remove(0),
        ]
    );
    let limit = "SELECT id FROM posts ORDER BY id LIMIT ?";
    assert_eq!(
        lists::<i64, i64>(database, limit, vec![1, 2, 0]).await,
        [vec![1], vec![1, 2], vec![]]
    );
}
