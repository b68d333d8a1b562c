//! INSERT.

use super::world::World;

#[tokio::test]
async fn what_is_the_same_for_each_row_is_said_once() {
    let world = World::new().await;
    world
        .run("create table t (id serial primary key, v varchar(3), n numeric(6, 2), at timestamptz default now(), a int default 7)")
        .await
        .unwrap();
    let text = world
        .text("insert into t (v, n) values ($1, $2), ($3, $4), ($5, $6)")
        .await;
    assert!(text.ends_with("FROM (VALUES (?, ?), (?, ?), (?, ?)) WHERE 1"), "{text}");
    // A value that is not a parameter, and one of another type, is converted where it stands.
    let mixed = world
        .text("insert into t (v, n, a) values ($1::int4, $2::int8, $3), ($4, 1, default), ($5::varchar, $6::int4, $7)")
        .await;
    assert!(
        mixed.contains("FROM (VALUES (") && !mixed.contains("VALUES (?"),
        "{mixed}"
    );
    let rows = "select id, v, n, at = now(), a from t order by id";
    world
        .run("insert into t (v, n) values ('a', 1.005), ('b  ', null), ('c', 12)")
        .await
        .unwrap();
    assert_eq!(
        world.state("insert into t (n, v) values (1, 'd'), (2, 'long')").await,
        "22001"
    );
    world
        .run("insert into t (a, v) values (1, 'x'), (default, 'y'), (null, 'z')")
        .await
        .unwrap();
    assert_eq!(
        world.run(rows).await.unwrap(),
        [
            "1|a|1.01|1|7",
            "2|b  ||1|7",
            "3|c|12.00|1|7",
            "4|x||1|1",
            "5|y||1|7",
            "6|z||1|"
        ]
    );
    world.check().await;
}

/// As PostgreSQL 15 has it: of one row in the order of the table's columns, of several as they are listed, and the others behind them.
#[tokio::test]
async fn numbers_are_drawn_and_asked_for_in_the_order_of_the_columns() {
    let world = World::new().await;
    for (key, name) in [("serial primary key", "k"), ("serial", "p")] {
        world
            .run(&format!("create table {name} (id {key}, ref bigint, t text)"))
            .await
            .unwrap();
        let run = |sql: &str| {
            let sql = sql.replace("T", name);
            let world = &world;
            async move { world.run(&sql).await.unwrap() }
        };
        run("select nextval('T_id_seq')").await;
        for (sql, expected) in [
            (
                "insert into T (id, ref) values (nextval('T_id_seq'), currval('T_id_seq'))",
                "2|2|",
            ),
            ("insert into T (ref) values (currval('T_id_seq'))", "3|3|"),
            ("insert into T (t) values ('/' || currval('T_id_seq'))", "4||/4"),
            ("insert into T (ref, id) values (lastval(), default)", "5|5|"),
            (
                "insert into T (t, ref) values ('x', (select currval('T_id_seq')))",
                "6|6|x",
            ),
            (
                "insert into T (ref, id) values (nextval('T_id_seq'), nextval('T_id_seq'))",
                "7|8|",
            ),
            (
                "insert into T (ref) values (currval('T_id_seq')), (currval('T_id_seq'))",
                "9|8|;10|9|",
            ),
            (
                "insert into T (ref, id) values (nextval('T_id_seq'), nextval('T_id_seq')), (nextval('T_id_seq'), default)",
                "12|11|;14|13|",
            ),
            (
                "insert into T (ref) values (currval('T_id_seq')) on conflict do nothing",
                "15|15|",
            ),
            (
                "insert into T (id, ref) values (setval('T_id_seq', 50), currval('T_id_seq'))",
                "50|50|",
            ),
        ] {
            assert_eq!(
                run(&format!("{sql} returning id, ref, t")).await.join(";"),
                expected,
                "{name}: {sql}"
            );
        }
    }
    world
        .run(
            "create sequence s; create table two (id int primary key default nextval('s'), n int default nextval('s'))",
        )
        .await
        .unwrap();
    for (sql, expected) in [
        ("insert into two default values returning id, n, lastval()", "1|2|2"),
        (
            "insert into two (n) values (default), (default) returning id, n",
            "4|3;6|5",
        ),
        (
            "insert into two (n, id) values (default, nextval('s')), (nextval('s'), default) returning id, n",
            "8|7;10|9",
        ),
    ] {
        assert_eq!(world.run(sql).await.unwrap().join(";"), expected, "{sql}");
    }
    assert_eq!(
        world.state("select nextval('s'), n from two order by n desc").await,
        "0A000"
    );
    let ordered = "select nextval('s'), n from (select n from two order by n desc) ordered";
    assert_eq!(
        world.run(ordered).await.unwrap(),
        ["11|9", "12|7", "13|5", "14|3", "15|2"]
    );
    world.check().await;
}
