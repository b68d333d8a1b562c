//! Joins in parentheses, and orders by what is the same for all rows.

use crate::client::Client;
use crate::server;

fn told(client: &mut Client, sql: &str) -> String {
    let rows = client.query(sql).expect(sql).rows();
    let row = |row: Vec<Option<String>>| {
        let values: Vec<String> = row
            .into_iter()
            .map(|value| value.unwrap_or_else(|| "-".to_owned()))
            .collect();
        values.join(" ")
    };
    rows.into_iter().map(row).collect::<Vec<_>>().join(",")
}

#[test]
fn parentheses_around_a_join_are_kept_behind_a_comma() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE a (x int, p int); CREATE TABLE b (x int, q int); CREATE TABLE c (x int, r int);
         CREATE TABLE k (id int PRIMARY KEY, n int)",
    );
    client.run("INSERT INTO a VALUES (1, 10), (2, 20); INSERT INTO b VALUES (1, 100), (3, 300)");
    client.run("INSERT INTO c VALUES (1, 1000), (9, 9000); INSERT INTO k VALUES (1, 0), (2, 0), (9, 0)");
    for (from, rows) in [
        ("a, (b RIGHT JOIN c ON b.x = c.x)", "1 1,1 9,2 1,2 9"),
        ("a, ((b RIGHT JOIN c ON b.x = c.x))", "1 1,1 9,2 1,2 9"),
        (
            "a, (b RIGHT JOIN c ON b.x = c.x) JOIN k ON true",
            "1 1,1 1,1 1,1 9,1 9,1 9,2 1,2 1,2 1,2 9,2 9,2 9",
        ),
        ("a, (b FULL JOIN c ON b.x = c.x)", "1 1,1 9,1 -,2 1,2 9,2 -"),
        ("(b RIGHT JOIN c ON b.x = c.x), a", "1 1,1 9,2 1,2 9"),
    ] {
        let sql = format!("SELECT a.x, c.x FROM {from} ORDER BY 1, 2");
        assert_eq!(told(&mut client, &sql), rows, "{sql}");
    }
    let changed =
        client.query("UPDATE k SET n = c.r FROM a, (b RIGHT JOIN c ON b.x = c.x) WHERE k.id = a.x + 7 AND c.x = 9");
    assert_eq!(changed.tags(), ["UPDATE 1"]);
    assert_eq!(told(&mut client, "SELECT * FROM k ORDER BY id"), "1 0,2 0,9 9000");
}

#[test]
fn a_star_over_merged_columns_in_parentheses_is_not_guessed_at() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE a (x int, p int); CREATE TABLE b (x int, q int); CREATE TABLE c (x int, r int)");
    client.run("INSERT INTO a VALUES (1, 10); INSERT INTO b VALUES (1, 100); INSERT INTO c VALUES (1, 1000)");
    for join in ["b JOIN c USING (x)", "b NATURAL LEFT JOIN c"] {
        let from = format!("FROM a JOIN ({join}) ON a.x = b.x");
        assert_eq!(client.query(&format!("SELECT * {from}")).sqlstate(), "0A000", "{from}");
        assert_eq!(
            told(&mut client, &format!("SELECT a.x, p, b.x, q, r {from}")),
            "1 10 1 100 1000",
            "{from}"
        );
    }
    assert_eq!(told(&mut client, "SELECT * FROM b JOIN c USING (x)"), "1 100 1000");
}

#[test]
fn an_order_by_what_is_the_same_for_all_rows_is_no_columns_place() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE n (id int PRIMARY KEY, u int)");
    client.run("INSERT INTO n VALUES (1, 9), (2, 8), (3, 9), (4, 8)");
    for key in [
        "id <> ALL('{}'::int[])",
        "id = ALL('{}')",
        "id = ANY('{}'::int[])",
        "1 IS NOT NULL",
        "current_user IS NOT NULL",
        "date '2020-01-01' IS NOT NULL",
        "make_date(2020, 1, 1) IS NULL",
        "(id <> ALL('{}'::int[]))::int",
    ] {
        let sql = format!("SELECT id, u FROM n ORDER BY {key}, id DESC LIMIT 2");
        assert_eq!(told(&mut client, &sql), "4 8,3 9", "{key}");
    }
    assert_eq!(
        told(&mut client, "SELECT id, u FROM n ORDER BY 2, 1"),
        "2 8,4 8,1 9,3 9"
    );
    client.run("DELETE FROM n WHERE id IN (SELECT id FROM n ORDER BY id <> ALL('{}'::int[]), id DESC LIMIT 2)");
    assert_eq!(told(&mut client, "SELECT id FROM n ORDER BY id"), "1,2");
}

/// PostgreSQL takes the side that needs no cast; of one type with different lengths, none is told.
#[test]
fn a_merged_column_is_that_of_the_side_which_needs_no_cast() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    client.run(
        "CREATE TABLE i (x int); CREATE TABLE n (x numeric); CREATE TABLE m (x numeric(8,2)); INSERT INTO i VALUES (1);
         INSERT INTO n VALUES (1.000); INSERT INTO m VALUES (1)",
    );
    for (from, value) in [
        ("i JOIN n USING (x)", "1.000"),
        ("n JOIN i USING (x)", "1.000"),
        ("i NATURAL JOIN n", "1.000"),
        ("i LEFT JOIN n USING (x)", "1"),
        ("i RIGHT JOIN n USING (x)", "1.000"),
        ("i FULL JOIN n USING (x)", "1"),
        ("m JOIN n USING (x)", "1.000"),
        ("n JOIN m USING (x)", "1.000"),
        ("m LEFT JOIN n USING (x)", "1.00"),
        ("m JOIN m m2 USING (x)", "1.00"),
        ("i JOIN i i2 USING (x)", "1"),
        ("i JOIN i i2 USING (x) JOIN n USING (x)", "1.000"),
    ] {
        for select in ["x", "*", "x::text"] {
            let sql = format!("SELECT {select} FROM {from}");
            assert_eq!(told(&mut client, &sql), value, "{sql}");
        }
    }
    client.run("CREATE TABLE made AS SELECT x FROM i JOIN n USING (x)");
    assert_eq!(told(&mut client, "SELECT x FROM made"), "1.000");
}
