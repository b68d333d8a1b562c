//! When the catalog is rebuilt, what stays the same, and how SQLite's schema looks in PostgreSQL's terms.

use super::{World, identity};
use crate::catalog::{Catalog, Identity};
use rusqlite::Connection;

#[test]
fn oids_stay_when_other_objects_come_and_go() {
    let mut world = World::standard();
    let query =
        "SELECT relname, oid FROM pg_class WHERE relname IN ('author', 'book', 'author_pkey', 'book_price') ORDER BY 1";
    let before = world.rows(query);
    assert_eq!(before.len(), 4);
    world
        .source
        .execute_batch("CREATE TABLE aaa (x); CREATE TABLE zzz (y); DROP VIEW cheap_book")
        .unwrap();
    world.refresh();
    assert_eq!(world.rows(query), before);
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE relname IN ('aaa', 'zzz', 'cheap_book') ORDER BY 1"),
        ["aaa", "zzz"]
    );
    assert_eq!(
        world.rows("SELECT count(*) FROM pg_class WHERE oid < 16384 AND oid >= 0 OR oid > 2147483647"),
        world.rows("SELECT count(*) FROM pg_class WHERE relnamespace <> 2200")
    );
}

#[test]
fn an_unchanged_schema_is_not_read_again() {
    let mut world = World::standard();
    // A mark that a rebuild would wipe out.
    world
        .catalog
        .connection()
        .execute_batch("UPDATE pg_catalog.pg_class SET relname = 'marked' WHERE relname = 'book'")
        .unwrap();
    world
        .source
        .execute_batch("INSERT INTO author (name) VALUES ('x')")
        .unwrap();
    world.refresh();
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE relname = 'marked'"),
        ["marked"]
    );
    world.source.execute_batch("CREATE TABLE another (x)").unwrap();
    world.refresh();
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE relname IN ('marked', 'book', 'another') ORDER BY 1"),
        ["another", "book"]
    );
}

#[test]
fn another_identity_is_shown_at_once() {
    let mut world = World::standard();
    let other = Identity {
        database: "shop".to_owned(),
        user: "Alice".to_owned(),
        ..identity()
    };
    world.catalog.refresh(&world.source, &other).unwrap();
    assert_eq!(
        world.rows(
            "SELECT current_database(), pg_get_userbyid(relowner), current_user FROM pg_class WHERE relname = 'book'"
        ),
        ["shop|Alice|Alice"]
    );
    assert_eq!(world.rows("SELECT datname FROM pg_database"), ["shop"]);
    assert_eq!(
        world.rows("SELECT DISTINCT table_catalog FROM information_schema.tables"),
        ["shop"]
    );
    assert_eq!(world.rows("SELECT pg_catalog.version()"), ["PostgreSQL 15.0 (Forebay)"]);
}

#[test]
fn a_schema_that_is_rolled_back_is_forgotten() {
    let mut world = World::standard();
    world.source.execute_batch("BEGIN; CREATE TABLE dream (x)").unwrap();
    world.refresh();
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE relname IN ('dream', 'real')"),
        ["dream"]
    );
    // The same schema version as the one rolled back.
    world.source.execute_batch("ROLLBACK; CREATE TABLE real (x)").unwrap();
    world.refresh();
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE relname IN ('dream', 'real')"),
        ["real"]
    );
}

#[test]
fn a_failed_refresh_leaves_the_catalog_as_it_was() {
    let mut world = World::standard();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.db");
    std::fs::write(
        &path,
        b"this is no database, however long one reads on in it, and it goes on".repeat(40),
    )
    .unwrap();
    let broken = Connection::open(&path).unwrap();
    assert!(world.catalog.refresh(&broken, &identity()).is_err());
    assert_eq!(
        world.rows("SELECT relname FROM pg_class WHERE oid = 'book'::regclass"),
        ["book"]
    );
}

#[test]
fn a_database_in_memory_is_read_every_time() {
    let mut catalog = Catalog::new().unwrap();
    // Two databases without a name, both at the same schema version.
    for table in ["one", "two"] {
        let source = Connection::open_in_memory().unwrap();
        source.execute_batch(&format!("CREATE TABLE {table} (x)")).unwrap();
        catalog.refresh(&source, &identity()).unwrap();
        let sql = Catalog::translate("SELECT relname FROM pg_class WHERE oid >= 16384")
            .unwrap()
            .sql;
        let name: String = catalog.connection().query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(name, table);
    }
}

#[test]
fn triggers_are_shown_with_what_they_fire_for() {
    let world = World::new(
        "CREATE TABLE plain (x); CREATE TABLE watched (x);
         CREATE TRIGGER early BEFORE UPDATE OF x ON watched BEGIN DELETE FROM plain; END;
         CREATE VIEW seen AS SELECT x FROM watched;
         CREATE TRIGGER instead INSTEAD OF INSERT ON seen BEGIN SELECT 1; END;",
    );
    assert_eq!(
        world.rows(
            "SELECT relname, relhastriggers FROM pg_class WHERE relkind IN ('r', 'v') AND oid >= 16384 ORDER BY 1"
        ),
        ["plain|f", "seen|t", "watched|t"]
    );
    assert_eq!(
        world.rows("SELECT tgname, tgrelid::regclass, tgtype FROM pg_trigger ORDER BY 1"),
        ["early|watched|19", "instead|seen|69"]
    );
}

#[test]
fn declared_types_are_shown_as_postgresqls() {
    let types = [
        ("int", "bigint"),
        ("INTEGER", "bigint"),
        ("smallint", "bigint"),
        ("bigserial", "bigint"),
        ("unsigned big int", "bigint"),
        ("real", "double precision"),
        ("float", "double precision"),
        ("double precision", "double precision"),
        ("text", "text"),
        ("varchar(20)", "text"),
        ("character varying(20)", "text"),
        ("clob", "text"),
        ("", "text"),
        ("whatever", "text"),
        ("interval", "text"),
        ("point", "text"),
        ("blob", "bytea"),
        ("bytea", "bytea"),
        ("bool", "boolean"),
        ("BOOLEAN", "boolean"),
        ("numeric(10,2)", "numeric"),
        ("decimal", "numeric"),
        ("date", "date"),
        ("timestamp", "timestamp without time zone"),
        ("datetime", "timestamp without time zone"),
        ("timestamptz", "timestamp with time zone"),
        ("timestamp with time zone", "timestamp with time zone"),
        ("timestamp(3)", "timestamp without time zone"),
        ("time", "time without time zone"),
        ("json", "json"),
        ("jsonb", "jsonb"),
        ("uuid", "uuid"),
    ];
    let columns: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(index, (declared, _))| format!("c{index} {declared}"))
        .collect();
    let world = World::new(&format!("CREATE TABLE t ({})", columns.join(", ")));
    let shown = world.rows(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 't'::regclass ORDER BY attnum",
    );
    for ((declared, expected), shown) in types.iter().zip(shown) {
        assert_eq!(shown, *expected, "{declared}");
    }
}

#[test]
fn names_that_need_quotes_work_throughout() {
    let world = World::new(
        "CREATE TABLE \"Order Line\" (\"Id\" INTEGER PRIMARY KEY, \"select\" text UNIQUE, \"a'b\" int CHECK (\"a'b\" > 0));
         CREATE INDEX \"My Index\" ON \"Order Line\" (\"select\", \"Id\" DESC)",
    );
    assert_eq!(
        world.rows("SELECT relname, oid::regclass FROM pg_class WHERE oid = '\"Order Line\"'::regclass"),
        ["Order Line|\"Order Line\""]
    );
    assert_eq!(
        world.rows("SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i ORDER BY 1"),
        [
            "CREATE INDEX \"My Index\" ON public.\"Order Line\" USING btree (\"select\", \"Id\" DESC)",
            "CREATE UNIQUE INDEX \"Order Line_pkey\" ON public.\"Order Line\" USING btree (\"Id\")",
            "CREATE UNIQUE INDEX \"Order Line_select_key\" ON public.\"Order Line\" USING btree (\"select\")",
        ]
    );
    assert_eq!(world.rows("SELECT to_regclass('Order Line')"), ["<null>"]);
    assert_eq!(
        world.rows("SELECT attname FROM pg_attribute WHERE attrelid = '\"Order Line\"'::regclass ORDER BY attnum"),
        ["Id", "select", "a'b"]
    );
}

#[test]
fn keys_of_every_shape_are_shown() {
    let world = World::new(
        "CREATE TABLE parent (a int, b int, c int UNIQUE, PRIMARY KEY (a, b)) WITHOUT ROWID;
         CREATE TABLE child (
             id integer primary key, pa int, pb int, pc int REFERENCES parent (c), self int REFERENCES child, gone int REFERENCES nowhere (x),
             total int GENERATED ALWAYS AS (pa + pb) STORED,
             CONSTRAINT to_parent FOREIGN KEY (pa, pb) REFERENCES parent ON UPDATE SET NULL ON DELETE RESTRICT,
             CHECK (pa < pb), CHECK (pc > 0));",
    );
    assert_eq!(
        world.rows("SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'child'::regclass ORDER BY 1"),
        [
            "child_check|c|CHECK ((pa < pb))",
            "child_pc_check|c|CHECK ((pc > 0))",
            "child_pc_fkey|f|FOREIGN KEY (pc) REFERENCES parent(c)",
            "child_pkey|p|PRIMARY KEY (id)",
            "child_self_fkey|f|FOREIGN KEY (self) REFERENCES child(id)",
            "to_parent|f|FOREIGN KEY (pa, pb) REFERENCES parent(a, b) ON UPDATE SET NULL ON DELETE RESTRICT",
        ]
    );
    assert_eq!(
        world.rows("SELECT indkey FROM pg_index WHERE indrelid = 'parent'::regclass ORDER BY indisprimary DESC"),
        ["1 2", "3"]
    );
    assert_eq!(
        world.rows("SELECT attgenerated, pg_get_expr(adbin, adrelid) FROM pg_attribute a JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum WHERE attrelid = 'child'::regclass"),
        ["s|pa + pb"]
    );
    assert_eq!(world.rows("SELECT attname, attnotnull, attidentity FROM pg_attribute WHERE attrelid = 'child'::regclass AND attnum = 1"), ["id|t|"]);
}

#[test]
fn a_view_that_no_longer_works_does_not_hide_the_rest() {
    let mut world = World::standard();
    world
        .source
        .execute_batch("CREATE TABLE base (x); CREATE VIEW over_base AS SELECT x FROM base; DROP TABLE base")
        .unwrap();
    world.refresh();
    assert_eq!(
        world.rows("SELECT relname, relnatts FROM pg_class WHERE relname IN ('over_base', 'author') ORDER BY 1"),
        ["author|6", "over_base|0"]
    );
}
