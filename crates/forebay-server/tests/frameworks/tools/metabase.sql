-- What Metabase asks: its synchronisation of the schema (beside pgjdbc's own queries of metadata), its fingerprints of columns, and
-- the statements that its query builder makes.
\ir schema.sql
\o /dev/null
SET SESSION TIMEZONE TO 'UTC';
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;
SELECT current_setting('TIMEZONE');
\o
SELECT 1 AS one;
SELECT to_char(current_timestamp, 'YYYY-MM-DD') = to_char(now(), 'YYYY-MM-DD') AS today;
\echo ok connect

SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' END AS type,
        d.description
    FROM pg_catalog.pg_class AS c
    INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
    LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
    WHERE c.relnamespace = n.oid AND n.nspname !~ '^information_schema|catalog_history|pg_' AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
    ORDER BY type ASC, schema ASC, name ASC;
SELECT c.table_name, c.column_name, c.udt_name, c.ordinal_position - 1 AS position, pk.column_name IS NOT NULL AS pk, c.is_nullable, c.column_default IS NOT NULL AS has_default,
        (c.column_default LIKE 'nextval(%' OR c.is_identity <> 'NO') AS auto
    FROM information_schema.columns AS c
    LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
            WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
        ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
    WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' ORDER BY c.table_name, c.ordinal_position;
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name",
        pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
    FROM pg_constraint AS c
    INNER JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid
    INNER JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid
    INNER JOIN pg_attribute AS fk_column ON c.conrelid = fk_column.attrelid
    INNER JOIN pg_class AS pk_table ON c.confrelid = pk_table.oid
    INNER JOIN pg_namespace AS pk_ns ON pk_table.relnamespace = pk_ns.oid
    INNER JOIN pg_attribute AS pk_column ON c.confrelid = pk_column.attrelid
    WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f' AND fk_column.attnum = ANY (c.conkey) AND pk_column.attnum = ANY (c.confkey)
    ORDER BY 1, 2;
SELECT tmp.table_name, tmp.index_name, trim(BOTH '"' FROM pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.pos, false)) AS field
    FROM (SELECT ct.relname AS table_name, ci.relname AS index_name, ci.oid AS ci_oid, (information_schema._pg_expandarray(i.indkey)).n AS pos
            FROM pg_catalog.pg_class AS ct
            INNER JOIN pg_catalog.pg_namespace AS n ON ct.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS i ON ct.oid = i.indrelid
            INNER JOIN pg_catalog.pg_class AS ci ON ci.oid = i.indexrelid
            WHERE n.nspname = 'public' AND pg_catalog.pg_get_expr(i.indpred, i.indrelid) IS NULL) AS tmp
    WHERE tmp.pos = 1 ORDER BY 1, 2;
SELECT has_table_privilege(current_user, '"public"."books"', 'SELECT') AS readable,
        has_any_column_privilege(current_user, '"public"."books"', 'update') AS writable;
\echo ok synchronisation

SELECT TRUE AS "_" FROM "public"."books" WHERE 1 <> 1 LIMIT 0;
SELECT SUBSTRING("source"."title" FROM 1 FOR 1234) AS "substring1", "source"."price", "source"."at" FROM
    (SELECT "public"."books"."title" AS "title", "public"."books"."price" AS "price", "public"."books"."at" AS "at", "public"."books"."id" FROM "public"."books") AS "source"
    ORDER BY "source"."id" LIMIT 10000;
SELECT COUNT(DISTINCT "title") AS distinct_titles, AVG(LENGTH("title")) AS length, MIN(price) AS least, STDDEV_POP(price) AS deviation, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY price) AS median FROM books;
\echo ok fingerprints

SELECT DATE_TRUNC('month', "public"."books"."at") AS "at", COUNT(*) AS "count", SUM("public"."books"."price") AS "sum"
    FROM "public"."books" GROUP BY DATE_TRUNC('month', "public"."books"."at") ORDER BY DATE_TRUNC('month', "public"."books"."at") ASC;
SELECT CAST(EXTRACT(dow FROM "public"."books"."at") AS integer) + 1 AS day_of_week, COUNT(*) AS count
    FROM "public"."books" WHERE "public"."books"."at" >= timestamp with time zone '2024-01-01 00:00:00.000Z' AND "public"."books"."at" < timestamp with time zone '2024-01-02 00:00:00.000Z'
    GROUP BY CAST(EXTRACT(dow FROM "public"."books"."at") AS integer) + 1 ORDER BY 1;
SELECT "Authors"."name" AS "Authors__name", SUM(CASE WHEN "public"."books"."price" > 2 THEN 1 ELSE 0.0 END) AS dear
    FROM "public"."books" LEFT JOIN "public"."authors" AS "Authors" ON "public"."books"."author_id" = "Authors"."id"
    WHERE LOWER("Authors"."name") LIKE '%n%' GROUP BY "Authors"."name" ORDER BY dear DESC, "Authors"."name" ASC LIMIT 2000;
SELECT FLOOR(("public"."books"."price" - 0.0) / 1.0) * 1.0 + 0.0 AS price, COUNT(*) AS count FROM "public"."books"
    GROUP BY FLOOR(("public"."books"."price" - 0.0) / 1.0) * 1.0 + 0.0 ORDER BY 1;
SELECT SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', at) ROWS UNBOUNDED PRECEDING) AS running FROM books GROUP BY DATE_TRUNC('month', at) ORDER BY 1;
SELECT COUNT(*) AS count FROM books WHERE at >= CAST(NOW() + INTERVAL '-30 day' AS date) AND at < CAST(NOW() AS date);
\echo ok queries
