-- What DBeaver asks when it connects, opens the navigator's tree and shows a table; what depends on the server goes to /dev/null.
\ir schema.sql
\o /dev/null
SET extra_float_digits = 3;
SET application_name = 'DBeaver 25.0 - Main';
SELECT version();
SHOW search_path;
SET search_path = "$user", public;
\o
SELECT current_schema(), session_user = current_user AS same;
\echo ok connect

\o /dev/null
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datname = current_database();
SELECT db.oid, db.datname, db.datdba, db.encoding, pg_encoding_to_char(db.encoding) AS encoding_name, db.datcollate, db.datistemplate, db.datallowconn
    FROM pg_catalog.pg_database db WHERE 1 = 1 AND datallowconn AND NOT datistemplate OR db.datname = current_database() ORDER BY db.datname;
SELECT a.oid, a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname;
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
    FROM pg_catalog.pg_type t
    LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
    LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
    LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
    WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');
SELECT e.oid, e.extname, e.extversion, e.extrelocatable, n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace ORDER BY e.oid;
SELECT s.name, s.setting, s.unit, s.short_desc, s.context, s.vartype, s.min_val, s.max_val, s.boot_val FROM pg_catalog.pg_settings s;
SELECT am.oid, am.* FROM pg_catalog.pg_am am ORDER BY am.oid;
SELECT c.collname, c.oid FROM pg_catalog.pg_collation c ORDER BY c.oid;
SELECT c.oid, c.conname, pg_encoding_to_char(c.conforencoding) FROM pg_catalog.pg_conversion c ORDER BY c.oid;
SELECT l.oid, l.* FROM pg_catalog.pg_language l ORDER BY l.oid;
SELECT t.oid, t.*, pg_tablespace_location(t.oid) loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid;
\o
\echo ok catalogue

SELECT n.nspname, d.description FROM pg_catalog.pg_namespace n
    LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
    WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY nspname;
SELECT c.relname, c.relkind, c.relpersistence, c.relhasindex, c.relnatts, pg_get_partkeydef(c.oid) AS partition_key, d.description
    FROM pg_catalog.pg_class c
    INNER JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
    WHERE n.nspname = 'public' AND c.relkind NOT IN ('i', 'I', 'c') ORDER BY c.relname;
\echo ok tables

SELECT c.relname, a.attnum, a.attname, a.atttypid::regtype, a.attnotnull, a.atthasdef, a.attidentity, format_type(a.atttypid, a.atttypmod) AS type,
        pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid IS NOT NULL AS depends
    FROM pg_catalog.pg_attribute a
    INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
    LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
    LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
    LEFT OUTER JOIN pg_catalog.pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
    WHERE NOT a.attisdropped AND c.oid = 'public.books'::regclass AND a.attnum > 0 ORDER BY a.attnum;
SELECT c.conname, c.contype, c.conkey, c.confkey, c.confupdtype, c.confdeltype, t.relname AS tabrelname, rt.relname AS ref, pg_get_constraintdef(c.oid) AS definition
    FROM pg_catalog.pg_constraint c
    INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
    LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
    WHERE c.conrelid = 'books'::regclass ORDER BY c.conname;
SELECT c.relname, tc.relname AS tabrelname, i.indisunique, i.indisprimary, i.indkey, i.indoption, i.indnatts, dsc.description,
        pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr, pg_catalog.pg_get_indexdef(i.indexrelid) AS definition, am.amname
    FROM pg_catalog.pg_index i
    INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
    INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
    INNER JOIN pg_catalog.pg_am am ON am.oid = c.relam
    LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
    WHERE i.indrelid = 'books'::regclass ORDER BY c.relname;
SELECT DISTINCT dc.relname AS dependent, dc.relkind
    FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid
    JOIN pg_catalog.pg_class dc ON dc.oid = r.ev_class
    WHERE d.refobjid = 'books'::regclass ORDER BY 1;
SELECT x.tgname FROM pg_catalog.pg_trigger x WHERE x.tgrelid = 'books'::regclass AND NOT x.tgisinternal;
SELECT n.nspname, i.inhseqno, c.relname FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c, pg_catalog.pg_namespace n
    WHERE i.inhrelid = 'books'::regclass AND c.oid = i.inhparent AND n.oid = c.relnamespace ORDER BY i.inhseqno;
\echo ok one_table

SELECT pg_get_viewdef('cheap'::regclass, true) IS NOT NULL AS has_definition;
SELECT sequencename, start_value, increment_by, last_value FROM pg_catalog.pg_sequences WHERE schemaname = 'public' ORDER BY sequencename;
SELECT pg_catalog.pg_total_relation_size('books'::regclass) > 0 AS total, pg_catalog.pg_relation_size('books'::regclass) >= 0 AS own;
SELECT count(*) FROM public.books;
SELECT x.* FROM public.authors x ORDER BY x.id LIMIT 200;
SELECT id, title, price FROM public.books WHERE title LIKE '%o%' ORDER BY price DESC LIMIT 200;
\echo ok rows
