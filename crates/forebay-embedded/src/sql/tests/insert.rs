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
