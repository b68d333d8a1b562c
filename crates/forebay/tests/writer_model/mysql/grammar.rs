//! What is drawn on MariaDB: tables of all kinds with constraints of all kinds, and what is written to them.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::case::Slot::{self, Id, Key, Note, Number, Other, Parent, Real, Tag};
use crate::case::Template;

/// What is compared in the end, and in what order.
pub(crate) const TABLES: [(&str, &str); 3] = [("t", "t_id, tag, k, u, v, note"), ("parents", "p"), ("log", "log_id")];

const fn text(weight: u32, sql: &'static str, slots: &'static [Slot]) -> Template {
    Template { sql, slots, weight }
}

pub(crate) const TEMPLATES: &[Template] = &[
    // Those of which a set can be made.
    text(20, "INSERT INTO t (tag, k) VALUES (?, ?)", &[Tag, Key]),
    text(
        20,
        "INSERT INTO t (tag, k, u, v) VALUES (?, ?, ?, ?)",
        &[Tag, Key, Other, Number],
    ),
    text(
        15,
        "INSERT INTO t (v, note, m, tag) VALUES (?, ?, ?, ?)",
        &[Number, Note, Real, Tag],
    ),
    text(15, "INSERT INTO t (tag, k, p) VALUES (?, ?, ?)", &[Tag, Key, Parent]),
    text(
        8,
        "INSERT INTO t (tag, k, v, note) VALUES (?, ?, DEFAULT, 'it''s')",
        &[Tag, Key],
    ),
    text(6, "INSERT INTO t (tag, k, u) VALUES (?, -1, ?)", &[Tag, Other]),
    text(
        20,
        "INSERT INTO t (tag, k, u) VALUES (?, ?, ?) RETURNING t_id, tag, v",
        &[Tag, Key, Other],
    ),
    text(8, "INSERT INTO t (tag, k) VALUES (?, ?) RETURNING *", &[Tag, Key]),
    text(
        4,
        "INSERT INTO t (tag, k, v) VALUES (?, ?, ?) RETURNING v + k AS sum, `note`",
        &[Tag, Key, Number],
    ),
    text(8, "INSERT INTO t (t_id, tag, k) VALUES (?, ?, ?)", &[Id, Tag, Key]),
    text(
        4,
        "INSERT INTO t (t_id, tag, k) VALUES (DEFAULT, ?, ?) RETURNING t_id",
        &[Tag, Key],
    ),
    text(4, "INSERT INTO t (t_id, tag, k) VALUES (NULL, ?, ?)", &[Tag, Key]),
    text(3, "INSERT INTO t (g, tag) VALUES (?, ?)", &[Number, Tag]),
    text(8, "INSERT INTO log (what, n) VALUES (?, ?)", &[Note, Number]),
    text(
        5,
        "INSERT INTO log (what, n) VALUES (?, ?) RETURNING log_id, n",
        &[Note, Number],
    ),
    text(10, "INSERT INTO parents (p) VALUES (?)", &[Parent]),
    // Those of which none can.
    text(4, "INSERT INTO t (tag, k, v) VALUES (?, ? + 1, ?)", &[Tag, Key, Number]),
    text(4, "INSERT INTO t SET tag = ?, k = ?", &[Tag, Key]),
    text(
        8,
        "INSERT IGNORE INTO t (tag, k, v) VALUES (?, ?, ?)",
        &[Tag, Key, Number],
    ),
    text(
        4,
        "INSERT IGNORE INTO t (tag, k, note) VALUES (?, ?, ?) RETURNING t_id, tag",
        &[Tag, Key, Note],
    ),
    text(
        8,
        "INSERT INTO t (tag, k, v) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE v = t.v + VALUES(v)",
        &[Tag, Key, Number],
    ),
    text(6, "REPLACE INTO t (tag, k, u) VALUES (?, ?, ?)", &[Tag, Key, Other]),
    text(
        3,
        "REPLACE INTO t (tag, k) VALUES (?, ?) RETURNING t_id, tag",
        &[Tag, Key],
    ),
    text(
        6,
        "INSERT INTO t (tag, k, v) VALUES (?, ?, ?), (?, ?, ?)",
        &[Tag, Key, Number, Tag, Key, Number],
    ),
    text(
        4,
        "INSERT INTO t (tag, k) VALUES (?, ?), (?, ?) RETURNING t_id, tag, k",
        &[Tag, Key, Tag, Key],
    ),
    text(4, "INSERT INTO t (tag, k) SELECT ?, MAX(k) + ? FROM t", &[Tag, Number]),
    text(3, "INSERT INTO t (tag) VALUES (?)", &[Tag]),
    text(6, "UPDATE t SET v = v + ? WHERE k > ?", &[Number, Key]),
    text(4, "UPDATE t SET k = k + 200 WHERE k = ?", &[Key]),
    text(3, "UPDATE t SET u = u + 200, v = NULL WHERE u = ?", &[Other]),
    text(3, "UPDATE t SET p = ? WHERE tag = 10", &[Parent]),
    text(3, "UPDATE t SET v = ? ORDER BY tag LIMIT 1", &[Number]),
    text(6, "DELETE FROM t WHERE k = ? OR v = ?", &[Key, Number]),
    text(2, "DELETE FROM t WHERE k > ?", &[Key]),
    text(3, "DELETE FROM t WHERE tag <= 10 AND k <> ? RETURNING tag, k", &[Key]),
    text(6, "DELETE FROM parents WHERE p = ?", &[Parent]),
    text(3, "UPDATE parents SET p = p + 3 WHERE p = ?", &[Parent]),
    text(3, "SELECT COUNT(*), MAX(k) FROM t WHERE k < ?", &[Key]),
    // Wrong, each in its way.
    text(2, "INSERT INTO absent (tag) VALUES (?)", &[Tag]),
    text(2, "INSERT INTO t (tag, absent) VALUES (?, ?)", &[Tag, Key]),
    text(2, "INSERT INTO t (tag, k) VALUES (?)", &[Tag]),
    text(1, "INSERT INTO t (tag, k) VALUES (?, ?)", &[Tag]),
    // The schema changes on the way.
    text(1, "ALTER TABLE log ADD COLUMN extra INT DEFAULT 3", &[]),
    text(1, "ALTER TABLE log DROP COLUMN extra", &[]),
    text(1, "CREATE UNIQUE INDEX later ON log (n)", &[]),
    text(1, "DROP INDEX later ON log", &[]),
    text(
        1,
        "CREATE TRIGGER later BEFORE INSERT ON parents FOR EACH ROW SET NEW.p = NEW.p + (SELECT COUNT(*) FROM log)",
        &[],
    ),
    text(1, "DROP TRIGGER IF EXISTS later", &[]),
];

const COMMON: [&str; 3] = [
    "CREATE TABLE parents (p INT PRIMARY KEY)",
    "INSERT INTO parents VALUES (0), (1), (2), (3), (4), (5)",
    "CREATE TABLE log (log_id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), n INT CHECK (n <> 13), t_id BIGINT)",
];

const TRIGGERS: [&str; 6] = [
    "CREATE TRIGGER counts BEFORE INSERT ON {} FOR EACH ROW SET NEW.v = COALESCE(NEW.v, 0) + (SELECT COUNT(*) FROM log)",
    "CREATE TRIGGER refuses BEFORE INSERT ON {} FOR EACH ROW IF NEW.k MOD 7 = 3 THEN SIGNAL SQLSTATE '45000' \
     SET MESSAGE_TEXT = 'not that'; END IF",
    "CREATE TRIGGER logs AFTER INSERT ON {} FOR EACH ROW INSERT INTO log (what, n, t_id) VALUES ('row', NEW.tag, NEW.t_id)",
    "CREATE TRIGGER logs_changes AFTER UPDATE ON {} FOR EACH ROW INSERT INTO log (what, n) VALUES ('change', NEW.v)",
    "CREATE TRIGGER refuses_late AFTER INSERT ON {} FOR EACH ROW IF NEW.v = 13 THEN SIGNAL SQLSTATE '45000' \
     SET MESSAGE_TEXT = 'late'; END IF",
    "CREATE TRIGGER refuses_to_go BEFORE DELETE ON {} FOR EACH ROW IF OLD.k MOD 7 = 5 THEN SIGNAL SQLSTATE '45000' \
     SET MESSAGE_TEXT = 'stays'; END IF",
];

/// What kind of thing `t` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Table,
    Parted,
    View,
    CheckedView,
    Versioned,
}

pub(crate) fn schemas() -> BoxedStrategy<Vec<String>> {
    let shape = prop_oneof![
        10 => Just(Shape::Table),
        2 => Just(Shape::Parted),
        1 => Just(Shape::View),
        1 => Just(Shape::CheckedView),
        1 => Just(Shape::Versioned),
    ];
    let number = select(vec![
        "INT AUTO_INCREMENT PRIMARY KEY",
        "BIGINT AUTO_INCREMENT PRIMARY KEY",
        "INT AUTO_INCREMENT UNIQUE",
        "INT AUTO_INCREMENT, INDEX (t_id)",
        "INT",
        "INT DEFAULT 1",
    ]);
    let key = select(vec!["", "UNIQUE", "UNIQUE", "NOT NULL", "NOT NULL UNIQUE"]);
    let other = select(vec!["", "", "UNIQUE", "CHECK (u <> 7)"]);
    let value = select(vec![
        "",
        "NOT NULL DEFAULT 7",
        "NOT NULL",
        "CHECK (v < 90)",
        "DEFAULT (tag MOD 50)",
    ]);
    let note = select(vec!["DEFAULT ''", "NOT NULL DEFAULT 'none'", "CHECK (note <> 'a')"]);
    let parent = select(vec![
        "",
        "FOREIGN KEY (p) REFERENCES parents (p)",
        "FOREIGN KEY (p) REFERENCES parents (p) ON DELETE CASCADE ON UPDATE CASCADE",
        "FOREIGN KEY (p) REFERENCES parents (p) ON DELETE SET NULL",
        "FOREIGN KEY (p) REFERENCES {} (k)",
    ]);
    let generated = select(vec![
        "INT",
        "INT AS (k * 2) STORED",
        "INT AS (k + 1) VIRTUAL",
        "SMALLINT AS (k * 700) STORED",
    ]);
    let index = select(vec!["", "", "UNIQUE INDEX two (k, u)", "UNIQUE INDEX noted (note)"]);
    let triggers = prop_oneof![
        5 => Just(Vec::new()),
        3 => subsequence(TRIGGERS.to_vec(), 1..=2),
        1 => subsequence(TRIGGERS.to_vec(), 3),
    ];
    let columns = (number, key, other, value, note, parent, generated, index);
    (shape, columns, triggers)
        .prop_map(|(shape, columns, triggers)| {
            let mut schema: Vec<String> = COMMON.iter().map(|&statement| statement.to_owned()).collect();
            let is_view = matches!(shape, Shape::View | Shape::CheckedView);
            let table = if is_view { "base" } else { "t" };
            schema.push(table_of(shape, table, columns));
            schema.extend(triggers.iter().map(|trigger| trigger.replace("{}", table)));
            if is_view {
                let check = match shape {
                    Shape::CheckedView => "WHERE k IS NULL OR k <> 8 WITH CHECK OPTION",
                    _ => "",
                };
                schema.push(format!("CREATE VIEW t AS SELECT * FROM base {check}"));
            }
            schema
        })
        .boxed()
}

type Columns<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

fn table_of(
    shape: Shape,
    table: &str,
    (number, key, other, value, note, parent, generated, index): Columns<'_>,
) -> String {
    let is_parted = shape == Shape::Parted;
    // Each unique index of a partitioned table has the column in it by which it is parted; foreign keys it has none.
    let number = match (is_parted, number.contains("AUTO_INCREMENT")) {
        (true, true) => "INT AUTO_INCREMENT, INDEX (t_id)",
        _ => number,
    };
    let other = if is_parted && other == "UNIQUE" { "" } else { other };
    let index = if is_parted && index.contains("note") { "" } else { index };
    let mut more = String::new();
    if !index.is_empty() {
        more = format!(", {index}");
    }
    if !parent.is_empty() && !is_parted {
        let parent = parent.replace("{}", table);
        // What is referred to has an index.
        let indexed = if parent.contains("(k)") { "INDEX (k), " } else { "" };
        more = format!("{more}, {indexed}{parent}");
    }
    let end = match shape {
        Shape::Parted => "PARTITION BY HASH (k) PARTITIONS 3",
        Shape::Versioned => "WITH SYSTEM VERSIONING",
        _ => "",
    };
    format!(
        "CREATE TABLE {table} (tag INT, t_id {number}, k INT {key}, u INT {other}, v SMALLINT {value}, \
         note VARCHAR(8) {note}, m DOUBLE, p INT, g {generated}{more}) {end}"
    )
}
