//! Rows that are changed along with others of the same statement, by foreign keys that come back to their own table.

use crate::client::Client;
use crate::server;

fn tree(client: &mut Client, actions: &str) {
    client.run("DROP TABLE IF EXISTS tree");
    client.run(&format!(
        "CREATE TABLE tree (id int PRIMARY KEY, self int REFERENCES tree {actions}, x int)"
    ));
    client.run("INSERT INTO tree VALUES (1, NULL, 1), (2, 1, 2), (3, 1, 3), (4, 2, 4)");
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    let rows = client.run(sql).rows().into_iter();
    rows.map(|row| row.into_iter().map(shown).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn new_values_are_computed_of_the_rows_as_they_were() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    tree(&mut client, "ON UPDATE CASCADE");
    assert_eq!(
        client.run("UPDATE tree SET id = id * 10, x = self").tags(),
        ["UPDATE 4"]
    );
    let all = "SELECT id, self, x FROM tree ORDER BY id";
    assert_eq!(
        rows(&mut client, all),
        ["10 NULL NULL", "20 10 1", "30 10 1", "40 20 2"]
    );
    let returning = client.query("UPDATE tree SET id = id + 1 RETURNING id, self");
    assert_eq!(returning.sqlstate(), "0A000");
    // What sets no key may return what it likes.
    let kept = rows(&mut client, "UPDATE tree SET x = 0 WHERE id = 20 RETURNING id, self");
    assert_eq!(kept, ["20 10"]);
}

#[test]
fn all_rows_that_were_meant_are_counted() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    for (sql, tag, left) in [
        ("DELETE FROM tree", "DELETE 4", "0"),
        ("DELETE FROM tree WHERE id IN (1, 2)", "DELETE 2", "0"),
        ("DELETE FROM tree WHERE id = 2", "DELETE 1", "2"),
        (
            "DELETE FROM tree AS t USING (VALUES (1), (4)) AS v (i) WHERE t.id = v.i",
            "DELETE 2",
            "0",
        ),
        ("DELETE FROM tree WHERE id = 9", "DELETE 0", "4"),
    ] {
        tree(&mut client, "ON DELETE CASCADE");
        assert_eq!(client.run(sql).tags(), [tag], "{sql}");
        assert_eq!(client.ask("SELECT count(*) FROM tree"), left, "{sql}");
    }
    // One row is returned as it was; of several, what one has done to another would show.
    tree(&mut client, "ON DELETE CASCADE");
    let one = rows(&mut client, "DELETE FROM tree WHERE id = 2 RETURNING id, self");
    assert_eq!(one, ["2 1"]);
    let several = client.query("DELETE FROM tree RETURNING id");
    assert_eq!(several.sqlstate(), "0A000");
    assert_eq!(client.ask("SELECT count(*) FROM tree"), "2", "nothing is done");
    // Along a circle of tables, too.
    client.run("CREATE TABLE a (id int PRIMARY KEY, b int)");
    client.run("CREATE TABLE b (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE)");
    client.run("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES b ON DELETE CASCADE");
    client.run("INSERT INTO a VALUES (1, NULL), (2, NULL)");
    client.run("INSERT INTO b VALUES (1, 1)");
    client.run("UPDATE a SET b = 1 WHERE id = 2");
    assert_eq!(client.run("DELETE FROM a").tags(), ["DELETE 2"]);
    assert_eq!(client.ask("SELECT count(*) FROM b"), "0");
}
