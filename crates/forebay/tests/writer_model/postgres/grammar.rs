//! What is drawn on PostgreSQL: tables of all kinds with constraints of all kinds, and what is written to them.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::case::Slot::{Id, Key, Note, Number, Other, Parent, Real, Tag};
use crate::case::Template;

/// What is compared in the end, and in what order.
pub(crate) const TABLES: [(&str, &str); 4] = [
    ("t", "t_id, tag, k, u, v, note"),
    ("parents", "p"),
    ("log", "log_id"),
    ("late", "late_id"),
];

const fn text(weight: u32, sql: &'static str, slots: &'static [crate::case::Slot]) -> Template {
    Template { sql, slots, weight }
}

pub(crate) const TEMPLATES: &[Template] = &[
    // Those of which a set can be made.
    text(20, "INSERT INTO t (tag, k) VALUES ($1, $2)", &[Tag, Key]),
    text(
        20,
        "INSERT INTO t (tag, k, u, v) VALUES ($1, $2, $3, $4)",
        &[Tag, Key, Other, Number],
    ),
    text(
        15,
        "INSERT INTO t (v, note, m, tag) VALUES ($4, $2, $3, $1)",
        &[Tag, Note, Real, Number],
    ),
    text(15, "INSERT INTO t (tag, k, p) VALUES ($1, $2, $3)", &[Tag, Key, Parent]),
    text(
        8,
        "INSERT INTO t (tag, k, v, note) VALUES ($1, $2, DEFAULT, 'it''s')",
        &[Tag, Key],
    ),
    text(6, "INSERT INTO t (tag, k, u) VALUES ($1, -1, $2)", &[Tag, Other]),
    text(
        20,
        "INSERT INTO t (tag, k, u) VALUES ($1, $2, $3) RETURNING t_id, tag, v",
        &[Tag, Key, Other],
    ),
    text(8, "INSERT INTO t (tag, k) VALUES ($1, $2) RETURNING *", &[Tag, Key]),
    text(
        4,
        "INSERT INTO t (tag, k, v) VALUES ($1, $2, $3) RETURNING v + k AS sum, \"note\"",
        &[Tag, Key, Number],
    ),
    text(8, "INSERT INTO t (t_id, tag, k) VALUES ($1, $2, $3)", &[Id, Tag, Key]),
    text(
        4,
        "INSERT INTO t (t_id, tag, k) VALUES (DEFAULT, $1, $2) RETURNING t_id",
        &[Tag, Key],
    ),
    text(3, "INSERT INTO t (g, tag) VALUES ($1, $2)", &[Number, Tag]),
    text(8, "INSERT INTO log (what, n) VALUES ($1, $2)", &[Note, Number]),
    text(
        5,
        "INSERT INTO log (what, n) VALUES ($1, $2) RETURNING log_id, n",
        &[Note, Number],
    ),
    text(10, "INSERT INTO parents (p) VALUES ($1)", &[Parent]),
    // Those of which none can.
    text(
        4,
        "INSERT INTO t (tag, k, v) VALUES ($1, $2::int + 1, $3)",
        &[Tag, Key, Number],
    ),
    text(
        8,
        "INSERT INTO t (tag, k) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        &[Tag, Key],
    ),
    text(
        4,
        "INSERT INTO t (tag, k) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING t_id, tag",
        &[Tag, Key],
    ),
    text(
        8,
        "INSERT INTO t (tag, k, v) VALUES ($1, $2, $3) ON CONFLICT (k) DO UPDATE SET v = t.v + excluded.v RETURNING t_id, v",
        &[Tag, Key, Number],
    ),
    text(
        6,
        "INSERT INTO t (tag, k, v) VALUES ($1, $3, $5), ($2, $4, $6) RETURNING t_id, tag, k",
        &[Tag, Tag, Key, Key, Number, Number],
    ),
    text(
        4,
        "INSERT INTO t (tag, k) SELECT $1, max(k) + $2 FROM t",
        &[Tag, Number],
    ),
    text(3, "INSERT INTO t (tag) VALUES ($1)", &[Tag]),
    text(6, "UPDATE t SET v = v + $1 WHERE k > $2", &[Number, Key]),
    text(4, "UPDATE t SET k = k + 200 WHERE k = $1", &[Key]),
    text(
        3,
        "UPDATE t SET u = u + 200, v = NULL WHERE u = $1 RETURNING t_id, tag, u",
        &[Other],
    ),
    text(3, "UPDATE t SET p = $1 WHERE tag = 10 RETURNING p", &[Parent]),
    text(6, "DELETE FROM t WHERE k = $1 OR v = $2", &[Key, Number]),
    text(2, "DELETE FROM t WHERE k > $1", &[Key]),
    text(3, "DELETE FROM t WHERE tag <= 30 AND k <> $1 RETURNING tag, k", &[Key]),
    text(6, "DELETE FROM parents WHERE p = $1", &[Parent]),
    text(3, "UPDATE parents SET p = p + 3 WHERE p = $1", &[Parent]),
    text(
        3,
        "WITH gone AS (DELETE FROM t WHERE k = $1 RETURNING tag) INSERT INTO log (what, n) SELECT 'gone', tag FROM gone",
        &[Key],
    ),
    text(3, "SELECT count(*), sum(k) FROM t WHERE k < $1", &[Key]),
    text(3, "SELECT $1::int / $2::int AS quotient", &[Number, Number]),
    // Wrong, each in its way.
    text(2, "INSERT INTO absent (tag) VALUES ($1)", &[Tag]),
    text(2, "INSERT INTO t (tag, absent) VALUES ($1, $2)", &[Tag, Key]),
    text(2, "INSERT INTO t (tag, k) VALUES ($1)", &[Tag]),
    text(1, "INSERT INTO t (tag, k) VALUES ($1, $2)", &[Tag]),
    // The schema changes on the way.
    text(1, "ALTER TABLE t ADD COLUMN extra int DEFAULT 3", &[]),
    text(1, "ALTER TABLE t DROP COLUMN extra", &[]),
    text(1, "ALTER TABLE t ALTER v SET DEFAULT 9", &[]),
    text(1, "CREATE UNIQUE INDEX later ON t (u)", &[]),
    text(1, "DROP INDEX later", &[]),
    text(
        1,
        "CREATE TRIGGER later BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION counts()",
        &[],
    ),
    text(1, "DROP TRIGGER later ON t", &[]),
    text(1, "VACUUM parents", &[]),
];

/// Functions of triggers, and what else all have.
const COMMON: &str = "
    CREATE SEQUENCE numbers;
    CREATE TABLE parents (p int PRIMARY KEY);
    INSERT INTO parents VALUES (0), (1), (2), (3), (4), (5);
    CREATE TABLE log (log_id serial PRIMARY KEY, what text, n int CHECK (n <> 13), t_id bigint);
    CREATE FUNCTION small(n int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN n < 90; END';
    CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.v := coalesce(NEW.v, 0) + (SELECT count(*) FROM t); RETURN NEW; END';
    CREATE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.k % 7 = 3 THEN RAISE EXCEPTION ''not %'', NEW.k; END IF; RETURN NEW; END';
    CREATE FUNCTION skips() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.k % 7 = 4 THEN RETURN NULL; END IF; RETURN NEW; END';
    CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO log (what, n, t_id) VALUES (''row'', NEW.tag, NEW.t_id); RETURN NULL; END';
    CREATE FUNCTION logs_count() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO log (what, n) SELECT ''count'', count(*) FROM t; RETURN NULL; END';
    CREATE TABLE late (late_id serial PRIMARY KEY, n int);
    CREATE FUNCTION counts_late() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO late (n) SELECT count(*) FROM t; RETURN NULL; END';
    CREATE FUNCTION refuses_late() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.v = 13 THEN RAISE EXCEPTION ''late''; END IF; RETURN NULL; END'";

const TRIGGERS: [&str; 7] = [
    "TRIGGER counts BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION counts()",
    "TRIGGER refuses BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION refuses()",
    "TRIGGER skips BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION skips()",
    "TRIGGER logs AFTER INSERT ON {} FOR EACH ROW EXECUTE FUNCTION logs()",
    "TRIGGER logs_count AFTER INSERT ON {} FOR EACH STATEMENT EXECUTE FUNCTION logs_count()",
    "CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
     EXECUTE FUNCTION refuses_late()",
    // Into a table of its own: where it comes among the statement's other triggers is not compared.
    "CONSTRAINT TRIGGER late_count AFTER INSERT ON {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
     EXECUTE FUNCTION counts_late()",
];

/// What kind of thing `t` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Table,
    Unlogged,
    Parted,
    View,
    CheckedView,
    Inherited,
    Ruled,
}

pub(crate) fn schemas() -> BoxedStrategy<Vec<String>> {
    let kind = prop_oneof![
        10 => Just(Kind::Table),
        1 => Just(Kind::Unlogged),
        2 => Just(Kind::Parted),
        1 => Just(Kind::View),
        1 => Just(Kind::CheckedView),
        1 => Just(Kind::Inherited),
        1 => Just(Kind::Ruled),
    ];
    let number = select(vec![
        "serial PRIMARY KEY",
        "bigserial PRIMARY KEY",
        "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "bigint GENERATED ALWAYS AS IDENTITY UNIQUE",
        "int DEFAULT nextval('numbers') UNIQUE",
        "serial",
        "int",
    ]);
    let key = select(vec![
        "",
        "UNIQUE",
        "UNIQUE",
        "UNIQUE NULLS NOT DISTINCT",
        "UNIQUE DEFERRABLE",
        "UNIQUE DEFERRABLE INITIALLY DEFERRED",
        "NOT NULL",
        "UNIQUE REFERENCES t (k)",
    ]);
    let other = select(vec![
        "",
        "",
        "UNIQUE",
        "UNIQUE DEFERRABLE INITIALLY DEFERRED",
        "CHECK (u <> 7)",
    ]);
    let value = select(vec![
        "",
        "NOT NULL DEFAULT 7",
        "NOT NULL",
        "CHECK (v < 90)",
        "CHECK (small(v))",
    ]);
    let note = select(vec!["DEFAULT ''", "NOT NULL DEFAULT 'none'", "CHECK (note <> 'a')"]);
    let parent = select(vec![
        "",
        "REFERENCES parents",
        "REFERENCES parents DEFERRABLE INITIALLY DEFERRED",
        "REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE",
        "REFERENCES parents ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED",
    ]);
    let generated = select(vec![
        "int",
        "int GENERATED ALWAYS AS (k * 2) STORED",
        "int GENERATED ALWAYS AS (100 / (k - 5)) STORED",
    ]);
    let index = select(vec![
        "",
        "",
        "CREATE UNIQUE INDEX partial ON {} (k) WHERE k > 20",
        "CREATE UNIQUE INDEX two ON {} (k, u)",
        "CREATE UNIQUE INDEX computed ON {} (lower(note))",
        "ALTER TABLE {} ADD EXCLUDE USING btree (k WITH =)",
    ]);
    let triggers = prop_oneof![
        5 => Just(Vec::new()),
        3 => subsequence(TRIGGERS.to_vec(), 1..=2),
        1 => subsequence(TRIGGERS.to_vec(), 3),
    ];
    let columns = (number, key, other, value, note, parent, generated);
    (kind, columns, index, triggers)
        .prop_map(|(kind, columns, index, triggers)| {
            let mut schema = vec![COMMON.to_owned()];
            let table = if matches!(kind, Kind::View | Kind::CheckedView) {
                "base"
            } else {
                "t"
            };
            schema.extend(made(kind, table, columns));
            // Of a partitioned table each unique index has the key's column in it.
            if !index.is_empty() && !(kind == Kind::Parted && (index.contains("lower") || index.contains("EXCLUDE"))) {
                schema.push(index.replace("{}", table));
            }
            schema.extend(
                triggers
                    .iter()
                    .map(|trigger| format!("CREATE {}", trigger.replace("{}", table))),
            );
            schema
        })
        .boxed()
}

type Columns<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

/// The table, and the view on it.
fn made(kind: Kind, table: &str, (number, key, other, value, note, parent, generated): Columns<'_>) -> Vec<String> {
    let is_parted = kind == Kind::Parted;
    let unique = |text: &str| {
        if is_parted {
            text.replace("PRIMARY KEY", "").replace("UNIQUE", "")
        } else {
            text.to_owned()
        }
    };
    let other = if is_parted && other.starts_with("UNIQUE") {
        ""
    } else {
        other
    };
    let columns = format!(
        "t_id {}, tag int, k int {}, u int {other}, v smallint {value}, note varchar(8) {note}, m float8, p int {parent}, g {generated}",
        unique(number),
        key.replace("REFERENCES t", &format!("REFERENCES {table}")),
    );
    let unlogged = if kind == Kind::Unlogged { "UNLOGGED" } else { "" };
    // A table that is kept cannot refer to one that is not, but the other way round it can.
    let by = if is_parted { "PARTITION BY RANGE (k)" } else { "" };
    let mut made = vec![format!("CREATE {unlogged} TABLE {table} ({columns}) {by}")];
    match kind {
        Kind::Table | Kind::Unlogged => {}
        Kind::Parted => made.extend([
            "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (MINVALUE) TO (20)".to_owned(),
            // Between them is a gap.
            "CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (25) TO (MAXVALUE)".to_owned(),
        ]),
        Kind::View => made.push("CREATE VIEW t AS SELECT * FROM base".to_owned()),
        Kind::CheckedView => {
            made.push("CREATE VIEW t AS SELECT * FROM base WHERE k IS NULL OR k <> 8 WITH CHECK OPTION".to_owned());
        }
        Kind::Inherited => made.push("CREATE TABLE heir () INHERITS (t)".to_owned()),
        Kind::Ruled => made.push(
            "CREATE RULE also AS ON INSERT TO t DO ALSO INSERT INTO log (what, n) VALUES ('rule', NEW.tag)".to_owned(),
        ),
    }
    made
}
