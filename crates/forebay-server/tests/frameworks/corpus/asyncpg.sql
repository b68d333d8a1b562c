-- sent: extended
-- described: int4
-- columns: "?column?" int4
SELECT $1::int + 1
-- ;
-- sent: simple
SET application_name = 'changed'
-- ;
-- sent: simple
-- columns: pg_advisory_unlock_all void
SELECT pg_advisory_unlock_all();
CLOSE ALL;
UNLISTEN *;
RESET ALL;
-- ;
-- sent: extended
-- columns: application_name text
SHOW application_name
-- ;
-- sent: extended
-- described: text
-- columns: text text
SELECT $1::text
-- ;
-- sent: simple
CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, part real, ok boolean, name varchar(40) UNIQUE, note text, data bytea, day date, clock time, local timestamp, at timestamptz, span interval, doc jsonb, uid uuid)
-- ;
-- sent: extended
-- described: int2, int8, numeric, float8, float4, bool, varchar, text, bytea, date, time, timestamp, timestamptz, interval, jsonb, uuid
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], note text, data bytea, day date, clock time, local timestamp, at timestamptz, span interval, doc jsonb, uid uuid
INSERT INTO kinds (small, big, price, ratio, part, ok, name, note, data, day, clock, local, at, span, doc, uid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) RETURNING *
-- ;
-- sent: extended
-- described: int2
-- columns: count int8
SELECT count(*) FROM kinds WHERE small = $1
-- ;
-- sent: extended
-- described: int8
-- columns: count int8
SELECT count(*) FROM kinds WHERE big = $1
-- ;
-- sent: extended
-- described: numeric
-- columns: count int8
SELECT count(*) FROM kinds WHERE price = $1
-- ;
-- sent: extended
-- described: float8
-- columns: count int8
SELECT count(*) FROM kinds WHERE ratio = $1
-- ;
-- sent: extended
-- described: float4
-- columns: count int8
SELECT count(*) FROM kinds WHERE part = $1
-- ;
-- sent: extended
-- described: bool
-- columns: count int8
SELECT count(*) FROM kinds WHERE ok = $1
-- ;
-- sent: extended
-- described: text
-- columns: count int8
SELECT count(*) FROM kinds WHERE name = $1
-- ;
-- sent: extended
-- described: text
-- columns: count int8
SELECT count(*) FROM kinds WHERE note = $1
-- ;
-- sent: extended
-- described: bytea
-- columns: count int8
SELECT count(*) FROM kinds WHERE data = $1
-- ;
-- sent: extended
-- described: date
-- columns: count int8
SELECT count(*) FROM kinds WHERE day = $1
-- ;
-- sent: extended
-- described: time
-- columns: count int8
SELECT count(*) FROM kinds WHERE clock = $1
-- ;
-- sent: extended
-- described: timestamp
-- columns: count int8
SELECT count(*) FROM kinds WHERE local = $1
-- ;
-- sent: extended
-- described: timestamptz
-- columns: count int8
SELECT count(*) FROM kinds WHERE at = $1
-- ;
-- sent: extended
-- described: interval
-- columns: count int8
SELECT count(*) FROM kinds WHERE span = $1
-- ;
-- sent: extended
-- described: jsonb
-- columns: count int8
SELECT count(*) FROM kinds WHERE doc = $1
-- ;
-- sent: extended
-- described: uuid
-- columns: count int8
SELECT count(*) FROM kinds WHERE uid = $1
-- ;
-- sent: extended
-- described: int4, text
-- columns: id int4, name varchar[44]
SELECT id, name FROM kinds WHERE id = $1 AND name LIKE $2
-- ;
-- sent: extended
-- described: _int4
-- columns: id int4
SELECT id FROM kinds WHERE id = ANY($1::int[]) ORDER BY id
-- ;
-- sent: extended
-- columns: cur text, new text
                    SELECT
                        current_setting('jit') AS cur,
                        set_config('jit', 'off', false) AS new
-- ;
-- sent: extended
-- described: _oid
-- columns: oid oid, ns name, name name, kind char, basetype oid, elemtype oid, elemdelim char, range_subtype oid, attrtypoids _oid, attrnames _text, depth int4, basetype_name text, elemtype_name text, range_subtype_name text
WITH RECURSIVE typeinfo_tree(
    oid, ns, name, kind, basetype, elemtype, elemdelim,
    range_subtype, attrtypoids, attrnames, depth)
AS (
    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, 0
    FROM
            (
        SELECT
            t.oid                           AS oid,
            ns.nspname                      AS ns,
            t.typname                       AS name,
            t.typtype                       AS kind,
            (CASE WHEN t.typtype = 'd' THEN
                (WITH RECURSIVE typebases(oid, depth) AS (
                    SELECT
                        t2.typbasetype      AS oid,
                        0                   AS depth
                    FROM
                        pg_type t2
                    WHERE
                        t2.oid = t.oid

                    UNION ALL

                    SELECT
                        t2.typbasetype      AS oid,
                        tb.depth + 1        AS depth
                    FROM
                        pg_type t2,
                        typebases tb
                    WHERE
                       tb.oid = t2.oid
                       AND t2.typbasetype != 0
               ) SELECT oid FROM typebases ORDER BY depth DESC LIMIT 1)

               ELSE NULL
            END)                            AS basetype,
            t.typelem                       AS elemtype,
            elem_t.typdelim                 AS elemdelim,
            COALESCE(
                range_t.rngsubtype,
                multirange_t.rngsubtype)    AS range_subtype,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.atttypid ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrtypoids,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.attname::text ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrnames
        FROM
            pg_catalog.pg_type AS t
            INNER JOIN pg_catalog.pg_namespace ns ON (
                ns.oid = t.typnamespace)
            LEFT JOIN pg_type elem_t ON (
                t.typlen = -1 AND
                t.typelem != 0 AND
                t.typelem = elem_t.oid
            )
            LEFT JOIN pg_range range_t ON (
                t.oid = range_t.rngtypid
            )
            LEFT JOIN pg_range multirange_t ON (
                t.oid = multirange_t.rngmultitypid
            )
    )
 AS ti
    WHERE
        ti.oid = any($1::oid[])

    UNION ALL

    SELECT
        ti.oid, ti.ns, ti.name, ti.kind, ti.basetype,
        ti.elemtype, ti.elemdelim, ti.range_subtype,
        ti.attrtypoids, ti.attrnames, tt.depth + 1
    FROM
            (
        SELECT
            t.oid                           AS oid,
            ns.nspname                      AS ns,
            t.typname                       AS name,
            t.typtype                       AS kind,
            (CASE WHEN t.typtype = 'd' THEN
                (WITH RECURSIVE typebases(oid, depth) AS (
                    SELECT
                        t2.typbasetype      AS oid,
                        0                   AS depth
                    FROM
                        pg_type t2
                    WHERE
                        t2.oid = t.oid

                    UNION ALL

                    SELECT
                        t2.typbasetype      AS oid,
                        tb.depth + 1        AS depth
                    FROM
                        pg_type t2,
                        typebases tb
                    WHERE
                       tb.oid = t2.oid
                       AND t2.typbasetype != 0
               ) SELECT oid FROM typebases ORDER BY depth DESC LIMIT 1)

               ELSE NULL
            END)                            AS basetype,
            t.typelem                       AS elemtype,
            elem_t.typdelim                 AS elemdelim,
            COALESCE(
                range_t.rngsubtype,
                multirange_t.rngsubtype)    AS range_subtype,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.atttypid ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrtypoids,
            (CASE WHEN t.typtype = 'c' THEN
                (SELECT
                    array_agg(ia.attname::text ORDER BY ia.attnum)
                FROM
                    pg_attribute ia
                    INNER JOIN pg_class c
                        ON (ia.attrelid = c.oid)
                WHERE
                    ia.attnum > 0 AND NOT ia.attisdropped
                    AND c.reltype = t.oid)

                ELSE NULL
            END)                            AS attrnames
        FROM
            pg_catalog.pg_type AS t
            INNER JOIN pg_catalog.pg_namespace ns ON (
                ns.oid = t.typnamespace)
            LEFT JOIN pg_type elem_t ON (
                t.typlen = -1 AND
                t.typelem != 0 AND
                t.typelem = elem_t.oid
            )
            LEFT JOIN pg_range range_t ON (
                t.oid = range_t.rngtypid
            )
            LEFT JOIN pg_range multirange_t ON (
                t.oid = multirange_t.rngmultitypid
            )
    )
 ti,
        typeinfo_tree tt
    WHERE
        (tt.elemtype IS NOT NULL AND ti.oid = tt.elemtype)
        OR (tt.attrtypoids IS NOT NULL AND ti.oid = any(tt.attrtypoids))
        OR (tt.range_subtype IS NOT NULL AND ti.oid = tt.range_subtype)
        OR (tt.basetype IS NOT NULL AND ti.oid = tt.basetype)
)

SELECT DISTINCT
    *,
    basetype::regtype::text AS basetype_name,
    elemtype::regtype::text AS elemtype_name,
    range_subtype::regtype::text AS range_subtype_name
FROM
    typeinfo_tree
ORDER BY
    depth DESC
-- ;
-- sent: extended
-- described: text
-- columns: set_config text
                SELECT
                    set_config('jit', $1, false)
-- ;
-- sent: extended
-- described: _text
-- columns: text _text
SELECT $1::text[]
-- ;
-- sent: simple
CREATE TABLE many (id bigint PRIMARY KEY, name text)
-- ;
-- sent: extended
-- described: int8, text
INSERT INTO many VALUES ($1, $2)
-- ;
-- sent: simple
UPDATE many SET name = name || '!' WHERE id < 10
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM many
-- ;
-- sent: simple
CREATE TABLE copied (id bigint PRIMARY KEY, name text, ok boolean, at timestamptz)
-- ;
-- sent: extended
-- columns: id int8, name text, ok bool, at timestamptz
SELECT * FROM "copied" LIMIT 1
-- ;
-- sent: simple
COPY "copied" FROM STDIN (FORMAT binary)
-- ;
-- sent: extended
-- columns: id int8, name text, ok bool, at timestamptz
SELECT * FROM copied ORDER BY id
-- ;
-- sent: extended
-- described: int8
-- columns: id int8, name text
SELECT id, name FROM copied WHERE id < $1
-- ;
-- sent: extended
-- described: int8
-- columns: quote_literal text
SELECT quote_literal($1::"pg_catalog"."int8"::text)
-- ;
-- sent: simple
COPY (SELECT id, name FROM copied WHERE id < '2') TO STDOUT (FORMAT 'csv')
-- ;
-- sent: simple
COPY "copied" FROM STDIN
-- ;
-- sent: extended
-- columns: id int8, name text, ok bool, at timestamptz
SELECT * FROM copied WHERE id = 2000
-- ;
-- sent: simple
CREATE TABLE ledger (id int PRIMARY KEY)
-- ;
-- sent: simple
BEGIN;
-- ;
-- sent: simple
INSERT INTO ledger VALUES (1)
-- ;
-- sent: simple
SAVEPOINT __asyncpg_savepoint_23__;
-- ;
-- sent: simple
INSERT INTO ledger VALUES (2)
-- ;
-- sent: simple
ROLLBACK TO __asyncpg_savepoint_23__;
-- ;
-- sent: simple
INSERT INTO ledger VALUES (3)
-- ;
-- sent: extended
-- columns: id int4
SELECT id FROM ledger ORDER BY id
-- ;
-- sent: simple
COMMIT;
-- ;
-- sent: simple
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
-- ;
-- sent: simple
SAVEPOINT __asyncpg_savepoint_26__;
-- ;
-- sent: simple
-- fails: 25006 cannot execute INSERT in a read-only transaction
INSERT INTO ledger VALUES (4)
-- ;
-- sent: simple
ROLLBACK TO __asyncpg_savepoint_26__;
-- ;
-- sent: simple
CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))
-- ;
-- sent: extended
-- described: int4, int4, varchar, int4
INSERT INTO strict VALUES ($1, $2, $3, $4)
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
-- fails: 42703 column "missing" does not exist
SELECT missing FROM strict
-- ;
-- sent: simple
-- fails: 22012 division by zero
SELECT 1 / 0
