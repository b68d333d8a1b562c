//! Each answer, for texts as people write them and as attackers do.

use super::*;

/// The answer, and a word of its reason.
enum Expected {
    Shares,
    Alone,
    Refused(&'static str),
}
use Expected::{Alone, Refused, Shares};

fn check(dialect: Dialect, table: &[(&str, Expected)]) {
    for (sql, expected) in table {
        let found = role(dialect, sql);
        let fits = match (&found, expected) {
            (Role::Shares, Shares) | (Role::Alone, Alone) => true,
            (Role::Refused(reason), Refused(word)) => reason.contains(word),
            _ => false,
        };
        assert!(fits, "{sql}: {found:?}");
    }
}

#[test]
fn what_shares_a_transaction_on_postgres() {
    let deep = format!("{} SELECT 1", "(".repeat(10_000));
    check(
        Dialect::Postgres,
        &[
            ("INSERT INTO t (a) VALUES ($1)", Shares),
            ("insert into t (begin) values ($1);", Shares),
            (
                "  -- COMMIT\n/* BEGIN /* ; */ ; */ UPDATE t SET a = 1; -- ; COMMIT",
                Shares,
            ),
            ("DELETE FROM t WHERE a = 'x; COMMIT'", Shares),
            (r"UPDATE t SET a = E'\'; COMMIT; --' ; ", Shares),
            ("UPDATE t SET a = 'a''; COMMIT'", Shares),
            ("SELECT $$ ; COMMIT $$, $b$ $$ ; $b$", Shares),
            ("SELECT \"a;b\" FROM t", Shares),
            ("SELECT 'set', \"begin\", \"größe;\"", Shares),
            ("(SELECT 1) UNION (SELECT 2)", Shares),
            ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", Shares),
            ("VALUES (1), (2)", Shares),
            ("TABLE t", Shares),
            ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE", Shares),
            ("TRUNCATE t", Shares),
            ("NOTIFY channel, 'text'", Shares),
            ("DO $$ BEGIN; COMMIT; END $$", Shares),
            ("EXPLAIN ANALYZE SELECT 1", Shares),
            ("SHOW search_path", Shares),
            ("CREATE TABLE temp (a int)", Shares),
            ("CREATE TABLE t (temporary int)", Shares),
            ("CREATE UNIQUE INDEX i ON t (a)", Shares),
            ("CREATE INDEX i ON t (\"concurrently\")", Shares),
            ("DROP INDEX i", Shares),
            ("ALTER TABLE t ADD COLUMN begin int", Shares),
            (
                "CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM u; DELETE FROM v)",
                Shares,
            ),
            (
                "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; SELECT 2; END;",
                Shares,
            ),
            (
                "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1; SELECT 2'",
                Shares,
            ),
            ("REFRESH MATERIALIZED VIEW CONCURRENTLY v", Shares),
            ("setting up", Shares),
            ("beginning", Shares),
            ("\"BEGIN\"", Shares),
            ("1", Shares),
            ("'unclosed; COMMIT", Shares),
            ("SELECT 1 /* unclosed; COMMIT", Shares),
            ("/* unclosed", Shares),
            ("; SELECT 1", Shares),
            (&deep, Shares),
        ],
    );
}

#[test]
fn what_runs_alone_on_postgres() {
    check(
        Dialect::Postgres,
        &[
            ("VACUUM", Alone),
            ("vacuum (analyze) t;", Alone),
            ("CREATE DATABASE d", Alone),
            ("DROP DATABASE IF EXISTS d", Alone),
            ("ALTER DATABASE d SET TABLESPACE s", Alone),
            ("CREATE TABLESPACE s LOCATION '/x'", Alone),
            ("DROP TABLESPACE s", Alone),
            ("CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p", Alone),
            ("CREATE INDEX CONCURRENTLY ON t (a)", Alone),
            ("create unique index /* ; */ concurrently i on t (a)", Alone),
            ("DROP INDEX CONCURRENTLY i", Alone),
            ("REINDEX TABLE CONCURRENTLY t", Alone),
            ("REINDEX (CONCURRENTLY) TABLE t", Alone),
            ("ALTER TABLE t DETACH PARTITION p CONCURRENTLY", Alone),
            ("ALTER SYSTEM SET work_mem = '1MB'", Alone),
            ("ALTER TYPE e ADD VALUE 'x'", Alone),
            ("CLUSTER", Alone),
            ("CALL p()", Alone),
            ("CHECKPOINT", Alone),
        ],
    );
}

#[test]
fn what_is_refused_on_postgres() {
    check(
        Dialect::Postgres,
        &[
            ("", Refused("no statement")),
            (" \n-- only a comment", Refused("no statement")),
            (" ;; /* x */", Refused("no statement")),
            ("BEGIN", Refused("Writer::begin")),
            ("begin; INSERT INTO t VALUES (1); COMMIT", Refused("Writer::begin")),
            (
                "/* /* */ */ Begin Isolation Level Serializable",
                Refused("BEGIN is not"),
            ),
            ("START TRANSACTION", Refused("Writer::begin")),
            ("COMMIT", Refused("Writer::begin")),
            ("COMMIT PREPARED 'x'", Refused("Writer::begin")),
            ("END;", Refused("Writer::begin")),
            ("ROLLBACK", Refused("Writer::begin")),
            ("ROLLBACK TO SAVEPOINT s", Refused("Writer::begin")),
            ("ABORT", Refused("Writer::begin")),
            ("SAVEPOINT s", Refused("Writer::begin")),
            ("RELEASE s", Refused("Writer::begin")),
            ("PREPARE TRANSACTION 'x'", Refused("Writer::begin")),
            ("PREPARE p AS SELECT 1", Refused("prepared")),
            ("EXECUTE p", Refused("prepared")),
            ("DEALLOCATE ALL", Refused("prepared")),
            ("SET search_path = x", Refused("SET is refused")),
            ("SET LOCAL work_mem = '1MB'", Refused("SET is refused")),
            ("SET CONSTRAINTS ALL DEFERRED", Refused("SET is refused")),
            ("RESET ALL", Refused("RESET")),
            ("DISCARD ALL", Refused("DISCARD")),
            ("LISTEN c", Refused("of your own")),
            ("UNLISTEN *", Refused("of your own")),
            ("DECLARE c CURSOR FOR SELECT 1", Refused("cursor")),
            ("FETCH c", Refused("cursor")),
            ("MOVE c", Refused("cursor")),
            ("CLOSE c", Refused("cursor")),
            ("LOCK TABLE t", Refused("FOR UPDATE")),
            ("LOAD 'x'", Refused("LOAD")),
            ("COPY t FROM STDIN", Refused("INSERT")),
            ("CREATE TEMP TABLE t (a int)", Refused("temporary")),
            ("CREATE LOCAL TEMPORARY TABLE t (a int)", Refused("temporary")),
            ("create or replace temp view v as select 1", Refused("temporary")),
            ("CREATE TEMPORARY SEQUENCE s", Refused("temporary")),
            ("SELECT 1; SELECT 2", Refused("more than one")),
            ("SELECT 1; 'unclosed", Refused("more than one")),
            ("SELECT 1;; COMMIT", Refused("more than one")),
            ("; SELECT 1; COMMIT", Refused("more than one")),
            (r"SELECT '\'; COMMIT; --'", Refused("more than one")),
            ("SELECT $a$ $a$; COMMIT; $a$", Refused("more than one")),
            ("SELECT a$a$; COMMIT; $a$", Refused("more than one")),
            ("SELECT 1 /* */; COMMIT /* */", Refused("more than one")),
            ("VACUUM; COMMIT", Refused("more than one")),
            ("SELECT begin FROM t; COMMIT", Refused("more than one")),
            (
                "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT",
                Refused("more than one"),
            ),
        ],
    );
}

#[test]
fn what_shares_a_transaction_on_mysql() {
    check(
        Dialect::MySql,
        &[
            ("INSERT INTO t (a) VALUES (?)", Shares),
            ("insert into t (`begin`) values ('; commit');", Shares),
            ("# COMMIT\n-- COMMIT\n/* ; */UPDATE t SET a = 1 # ; COMMIT", Shares),
            ("UPDATE t SET a = a--1", Shares),
            (r"UPDATE t SET a = '\'; COMMIT; -- '", Shares),
            (r#"UPDATE t SET a = "\"; COMMIT; -- ""#, Shares),
            ("DELETE FROM `a;b`", Shares),
            ("REPLACE INTO t VALUES (1)", Shares),
            ("INSERT /*! IGNORE */ INTO t VALUES (1)", Shares),
            ("SELECT /*+ MAX_EXECUTION_TIME(1) */ 1", Shares),
            ("((SELECT 1) UNION SELECT 2)", Shares),
            ("WITH x AS (SELECT 1) SELECT * FROM x", Shares),
            ("VALUES (1)", Shares),
            ("TABLE t", Shares),
            ("SELECT 'unclosed; COMMIT", Shares),
        ],
    );
}

#[test]
fn what_runs_alone_on_mysql() {
    check(
        Dialect::MySql,
        &[
            ("CREATE TABLE t (temporary INT)", Alone),
            ("CREATE TABLE temporary_things (a INT)", Alone),
            ("ALTER TABLE t ADD COLUMN b INT", Alone),
            ("DROP TABLE t;", Alone),
            ("RENAME TABLE t TO u", Alone),
            ("TRUNCATE t", Alone),
            ("ANALYZE TABLE t", Alone),
            ("OPTIMIZE TABLE t", Alone),
            ("REPAIR TABLE t", Alone),
            ("GRANT SELECT ON t TO u", Alone),
            ("REVOKE SELECT ON t FROM u", Alone),
            ("FLUSH TABLES", Alone),
            ("CALL p()", Alone),
            ("LOAD DATA INFILE 'x' INTO TABLE t", Alone),
            ("SHOW TABLES", Alone),
            ("EXPLAIN SELECT 1", Alone),
            ("START REPLICA", Alone),
            ("CREATE PROCEDURE p() BEGIN DELETE FROM t; DELETE FROM u; END", Alone),
            (
                "CREATE DEFINER = `a`@`b` TRIGGER t AFTER INSERT ON u FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END",
                Alone,
            ),
            ("unknown", Alone),
            ("1", Alone),
            ("/* unclosed", Alone),
        ],
    );
}

#[test]
fn what_is_refused_on_mysql() {
    check(
        Dialect::MySql,
        &[
            ("", Refused("no statement")),
            ("# nothing\n;", Refused("no statement")),
            ("BEGIN", Refused("Writer::begin")),
            ("BEGIN NOT ATOMIC DELETE FROM t; COMMIT; END", Refused("Writer::begin")),
            ("START TRANSACTION READ ONLY", Refused("Writer::begin")),
            ("COMMIT AND CHAIN", Refused("Writer::begin")),
            ("ROLLBACK", Refused("Writer::begin")),
            ("SAVEPOINT s", Refused("Writer::begin")),
            ("RELEASE SAVEPOINT s", Refused("Writer::begin")),
            ("XA START 'x'", Refused("Writer::begin")),
            ("SET autocommit = 0", Refused("SET is refused")),
            ("SET @a = 1", Refused("SET is refused")),
            (
                "SET STATEMENT max_statement_time=1 FOR SELECT 1",
                Refused("SET is refused"),
            ),
            ("USE d", Refused("address")),
            ("PREPARE p FROM 'SELECT 1'", Refused("prepared")),
            ("EXECUTE IMMEDIATE 'COMMIT'", Refused("prepared")),
            ("DEALLOCATE PREPARE p", Refused("prepared")),
            ("DROP PREPARE p", Refused("prepared")),
            ("HANDLER t OPEN", Refused("cursor")),
            ("LOCK TABLES t WRITE", Refused("FOR UPDATE")),
            ("UNLOCK TABLES", Refused("FOR UPDATE")),
            ("BACKUP LOCK t", Refused("BACKUP")),
            ("FLUSH TABLES WITH READ LOCK", Refused("lock")),
            ("FLUSH TABLES t FOR EXPORT", Refused("lock")),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", Refused("INSERT")),
            ("DELIMITER //", Refused("mysql program")),
            ("CREATE TEMPORARY TABLE t (a INT)", Refused("temporary")),
            ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", Refused("temporary")),
            ("DROP TEMPORARY TABLE t", Refused("temporary")),
            ("/*! COMMIT */", Refused("without the comment")),
            ("/*M!100100 COMMIT */", Refused("without the comment")),
            (
                "CREATE /*! TEMPORARY */ TABLE t (a INT)",
                Refused("without the comment"),
            ),
            ("SELECT 1; COMMIT", Refused("more than one")),
            ("SELECT 1; /*! COMMIT */", Refused("more than one")),
            ("SELECT 1--;\n; COMMIT", Refused("more than one")),
            (r"SELECT '\\'; COMMIT; -- '", Refused("more than one")),
            (r"SELECT `\`; COMMIT; -- `", Refused("more than one")),
            ("SELECT 1 /* /* */; COMMIT /* */", Refused("more than one")),
            ("DROP TABLE t; COMMIT", Refused("more than one")),
        ],
    );
}
