-- What pgAdmin asks when it connects, shows its dashboard, opens the tree and a table's properties.
\ir schema.sql
\o /dev/null
SET DateStyle = ISO;
SET client_min_messages = notice;
SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output';
SET client_encoding = 'UTF-8';
SELECT version();
SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
        has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
    FROM pg_catalog.pg_database db WHERE db.datname = current_database();
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,
        CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,
        CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db
    FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user;
\o
SELECT pg_is_in_recovery() AS inrecovery;
SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname = 'bdr') > 0 THEN 'pgd'
        WHEN (SELECT COUNT(*) FROM pg_replication_slots) > 0 THEN 'log' ELSE NULL END AS type;
\echo ok connect

\o /dev/null
SELECT 'session_stats' AS chart_name, row_to_json(t) AS chart_data FROM (SELECT
    (SELECT count(*) FROM pg_catalog.pg_stat_activity) AS "Total",
    (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active') AS "Active",
    (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle') AS "Idle") t
UNION ALL SELECT 'tps_stats' AS chart_name, row_to_json(t) AS chart_data FROM (SELECT
    (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database) AS "Transactions",
    (SELECT sum(xact_commit) FROM pg_catalog.pg_stat_database) AS "Commits") t;
SELECT pid, datname, usename, application_name, client_addr, pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start, state,
        wait_event_type || ': ' || wait_event AS wait_event, array_to_string(pg_catalog.pg_blocking_pids(pid), ', ') AS blocking_pids, query
    FROM pg_catalog.pg_stat_activity WHERE datname = current_database() ORDER BY pid;
SELECT pid, locktype, datname, relation::regclass, mode, granted FROM pg_catalog.pg_locks l
    LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid) ORDER BY pid, locktype;
SELECT name, category, setting, unit, short_desc FROM pg_catalog.pg_settings ORDER BY category;
\o
\echo ok dashboard

SELECT nsp.nspname AS name, has_schema_privilege(nsp.oid, 'CREATE') AS can_create, has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description
    FROM pg_catalog.pg_namespace nsp
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
    WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' ORDER BY nspname;
SELECT rel.relname AS name, (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = false) AS triggercount,
        (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits
    FROM pg_catalog.pg_class rel
    WHERE rel.relkind IN ('r', 's', 't', 'p') AND rel.relnamespace = 'public'::regnamespace AND NOT rel.relispartition ORDER BY rel.relname;
\echo ok tree

SELECT rel.relname, spc.spcname, rel.relpersistence, rel.relkind, con.conname, con.conkey, rel.relhasoids IS NULL AS none
    FROM (SELECT c.*, NULL::boolean AS relhasoids FROM pg_catalog.pg_class c) rel
    LEFT OUTER JOIN pg_catalog.pg_tablespace spc ON spc.oid = rel.reltablespace
    LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid = rel.oid AND con.contype = 'p'
    WHERE rel.relname = 'books' AND rel.relnamespace = 'public'::regnamespace;
SELECT att.attname AS name, att.attnum, att.attlen, att.attnotnull, format_type(ty.oid, NULL) AS typname, format_type(ty.oid, att.atttypmod) AS displaytypname,
        pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS defval, CASE WHEN att.attidentity IN ('a', 'd') THEN 'i' ELSE 'n' END AS colconstype,
        CASE WHEN length(coll.collname::text) > 0 THEN concat(quote_ident(nspc.nspname), '.', quote_ident(coll.collname)) ELSE '' END AS collspcname,
        EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = att.attrelid AND contype = 'f' AND att.attnum = ANY (conkey)) AS is_fk
    FROM pg_catalog.pg_attribute att
    JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
    LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
    LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation = coll.oid AND coll.collname <> 'default'
    LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace = nspc.oid
    WHERE att.attrelid = 'books'::regclass AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;
SELECT ct.conname AS name, ct.condeferrable, ct.confupdtype, ct.confdeltype, fl.relname AS fktab, nr.nspname AS refnsp, cr.relname AS reftab, ct.convalidated
    FROM pg_catalog.pg_constraint ct
    JOIN pg_catalog.pg_class cl ON cl.oid = ct.conrelid
    JOIN pg_catalog.pg_class fl ON fl.oid = ct.conrelid
    JOIN pg_catalog.pg_class cr ON cr.oid = ct.confrelid
    JOIN pg_catalog.pg_namespace nr ON nr.oid = cr.relnamespace
    WHERE ct.contype = 'f' AND ct.conrelid = 'books'::regclass ORDER BY conname;
SELECT DISTINCT ON (cls.relname) cls.relname AS name, indisunique, indisprimary, indisclustered, am.amname
    FROM pg_catalog.pg_index idx
    JOIN pg_catalog.pg_class cls ON cls.oid = indexrelid
    JOIN pg_catalog.pg_am am ON am.oid = cls.relam
    WHERE indrelid = 'books'::regclass AND NOT indisprimary ORDER BY cls.relname;
SELECT i.indnatts, i.indkey, pg_catalog.pg_get_indexdef(i.indexrelid, 1, true) AS first, pg_catalog.pg_get_indexdef(i.indexrelid, 2, true) AS second
    FROM pg_catalog.pg_index i WHERE i.indexrelid = 'books_price'::regclass;
SELECT pg_catalog.obj_description('books'::regclass, 'pg_class') AS comment, pg_catalog.col_description('books'::regclass, 1) AS of_column;
SELECT n_live_tup >= 0 AS live, seq_scan >= 0 AS scans FROM pg_catalog.pg_stat_all_tables WHERE relid = 'books'::regclass;
\echo ok one_table

BEGIN;
SELECT at.attname, at.attnum, ty.typname FROM pg_catalog.pg_attribute at
    LEFT JOIN pg_catalog.pg_type ty ON (ty.oid = at.atttypid)
    JOIN pg_catalog.pg_constraint con ON con.conrelid = at.attrelid AND con.contype = 'p' AND at.attnum = ANY (con.conkey)
    WHERE at.attrelid = 'books'::regclass;
SELECT id, author_id, title, price, sold, at FROM public.books ORDER BY id ASC LIMIT 100;
UPDATE public.books SET price = '9.99'::numeric WHERE id = '1';
SELECT price FROM public.books WHERE id = 1;
ROLLBACK;
SELECT oid::regtype, typname FROM pg_catalog.pg_type WHERE oid IN (20, 23, 25, 1700) ORDER BY oid;
\echo ok rows
