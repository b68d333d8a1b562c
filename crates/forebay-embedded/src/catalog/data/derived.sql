-- What PostgreSQL derives by views, and the rows that name the database and its user. SQLite's SQL, run at every refresh; the
-- relations are emptied first, found by the INSERTs that start a line.

INSERT INTO pg_catalog.pg_authid (oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit)
SELECT :owner, forebay_user(), 1, 1, 0, 0, 1, -1;

INSERT INTO pg_catalog.pg_roles (oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, rolpassword, rolbypassrls)
SELECT oid, rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, '********', rolbypassrls FROM pg_catalog.pg_authid;

INSERT INTO pg_catalog.pg_user (usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls, passwd)
SELECT rolname, oid, rolcreatedb, rolsuper, rolreplication, rolbypassrls, '********' FROM pg_catalog.pg_roles;

INSERT INTO pg_catalog.pg_database (oid, datname, datdba, encoding, datlocprovider, datallowconn, datconnlimit, dattablespace, datcollate, datctype)
SELECT :database_oid, current_database(), :owner, 6, 'c', 1, -1, 1663, 'C.UTF-8', 'C.UTF-8';

INSERT INTO pg_catalog.pg_tables (schemaname, tablename, tableowner, hasindexes, hasrules, hastriggers, rowsecurity)
SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner), c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r';

INSERT INTO pg_catalog.pg_views (schemaname, viewname, viewowner, definition)
SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner), pg_get_viewdef(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v';

INSERT INTO pg_catalog.pg_indexes (schemaname, tablename, indexname, indexdef)
SELECT n.nspname, c.relname, i.relname, pg_get_indexdef(i.oid)
FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class c ON c.oid = x.indrelid JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace;

INSERT INTO information_schema.schemata (catalog_name, schema_name, schema_owner)
SELECT current_database(), nspname, pg_get_userbyid(nspowner) FROM pg_catalog.pg_namespace;

INSERT INTO information_schema.information_schema_catalog_name (catalog_name) SELECT current_database();

INSERT INTO information_schema.tables (table_catalog, table_schema, table_name, table_type, is_insertable_into, is_typed)
SELECT current_database(), n.nspname, c.relname, CASE c.relkind WHEN 'r' THEN 'BASE TABLE' ELSE 'VIEW' END,
       CASE c.relkind WHEN 'r' THEN 'YES' ELSE 'NO' END, 'NO'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v');

INSERT INTO information_schema.views (table_catalog, table_schema, table_name, view_definition, check_option, is_updatable, is_insertable_into, is_trigger_updatable, is_trigger_deletable, is_trigger_insertable_into)
SELECT current_database(), n.nspname, c.relname, pg_get_viewdef(c.oid), 'NONE', 'NO', 'NO', 'NO', 'NO', 'NO'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v';

INSERT INTO information_schema.columns (table_catalog, table_schema, table_name, column_name, ordinal_position, column_default, is_nullable, data_type,
    character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, udt_catalog, udt_schema, udt_name,
    dtd_identifier, is_self_referencing, is_identity, identity_generation, identity_start, identity_increment, identity_maximum, identity_minimum,
    identity_cycle, is_generated, generation_expression, is_updatable)
SELECT current_database(), n.nspname, c.relname, a.attname, a.attnum, CASE a.attgenerated WHEN '' THEN d.adbin END,
       CASE a.attnotnull WHEN 1 THEN 'NO' ELSE 'YES' END,
       CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' ELSE format_type(t.oid, NULL) END,
       CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN a.atttypmod - 4 END,
       CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN (a.atttypmod - 4) * 4 WHEN t.typname IN ('text', 'varchar', 'bpchar') THEN 1073741824 END,
       CASE t.typname WHEN 'int2' THEN 16 WHEN 'int4' THEN 32 WHEN 'int8' THEN 64 WHEN 'float4' THEN 24 WHEN 'float8' THEN 53
            WHEN 'numeric' THEN CASE WHEN a.atttypmod >= 4 THEN (a.atttypmod - 4) >> 16 & 65535 END END,
       CASE WHEN t.typname IN ('int2', 'int4', 'int8', 'float4', 'float8') THEN 2 WHEN t.typname = 'numeric' THEN 10 END,
       CASE WHEN t.typname IN ('int2', 'int4', 'int8') THEN 0 WHEN t.typname = 'numeric' AND a.atttypmod >= 4 THEN (((a.atttypmod - 4) & 2047) + 1024) % 2048 - 1024 END,
       CASE WHEN t.typname = 'date' THEN 0 WHEN t.typname IN ('time', 'timetz', 'timestamp', 'timestamptz') THEN CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE 6 END
            WHEN t.typname = 'interval' THEN CASE WHEN a.atttypmod < 0 OR a.atttypmod & 65535 = 65535 THEN 6 ELSE a.atttypmod & 65535 END END,
       current_database(), 'pg_catalog', t.typname, CAST(a.attnum AS TEXT), 'NO',
       CASE a.attidentity WHEN '' THEN 'NO' ELSE 'YES' END, CASE a.attidentity WHEN 'd' THEN 'BY DEFAULT' WHEN 'a' THEN 'ALWAYS' END,
       CASE WHEN a.attidentity <> '' THEN CAST(coalesce(s.seqstart, 1) AS TEXT) END, CASE WHEN a.attidentity <> '' THEN CAST(coalesce(s.seqincrement, 1) AS TEXT) END,
       CASE WHEN a.attidentity <> '' THEN CAST(coalesce(s.seqmax, 9223372036854775807) AS TEXT) END, CASE WHEN a.attidentity <> '' THEN CAST(coalesce(s.seqmin, 1) AS TEXT) END,
       CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END,
       CASE a.attgenerated WHEN '' THEN 'NEVER' ELSE 'ALWAYS' END, CASE a.attgenerated WHEN '' THEN NULL ELSE d.adbin END,
       CASE WHEN c.relkind = 'r' THEN 'YES' ELSE 'NO' END
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_depend e ON e.deptype = 'i' AND e.refobjid = a.attrelid AND e.refobjsubid = a.attnum LEFT JOIN pg_catalog.pg_sequence s ON s.seqrelid = e.objid
WHERE c.relkind IN ('r', 'v');

INSERT INTO information_schema.table_constraints (constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, table_name, constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct)
SELECT current_database(), n.nspname, k.conname, current_database(), n.nspname, c.relname,
       CASE k.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' WHEN 'f' THEN 'FOREIGN KEY' ELSE 'CHECK' END,
       CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END, CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END, 'YES',
       CASE k.contype WHEN 'u' THEN 'YES' END
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = k.connamespace;

INSERT INTO information_schema.key_column_usage (constraint_catalog, constraint_schema, constraint_name, table_catalog, table_schema, table_name, column_name, ordinal_position, position_in_unique_constraint)
SELECT current_database(), n.nspname, k.conname, current_database(), n.nspname, c.relname, a.attname, e.key + 1,
       CASE k.contype WHEN 'f' THEN (SELECT u.key + 1 FROM pg_catalog.pg_index x, json_each('[' || replace(x.indkey, ' ', ',') || ']') u
            WHERE x.indexrelid = k.conindid AND u.value = (SELECT f.value FROM json_each('[' || trim(k.confkey, '{}') || ']') f WHERE f.key = e.key)) END
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN json_each('[' || trim(k.conkey, '{}') || ']') e
JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = e.value JOIN pg_catalog.pg_namespace n ON n.oid = k.connamespace
WHERE k.contype IN ('p', 'u', 'f');

INSERT INTO information_schema.constraint_column_usage (table_catalog, table_schema, table_name, column_name, constraint_catalog, constraint_schema, constraint_name)
SELECT current_database(), n.nspname, c.relname, a.attname, current_database(), o.nspname, k.conname
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = CASE k.contype WHEN 'f' THEN k.confrelid ELSE k.conrelid END
JOIN json_each('[' || trim(CASE k.contype WHEN 'f' THEN k.confkey ELSE k.conkey END, '{}') || ']') e
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = e.value
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_namespace o ON o.oid = k.connamespace;

INSERT INTO information_schema.referential_constraints (constraint_catalog, constraint_schema, constraint_name, unique_constraint_catalog, unique_constraint_schema, unique_constraint_name, match_option, update_rule, delete_rule)
SELECT current_database(), n.nspname, k.conname, current_database(), o.nspname, u.conname, 'NONE',
       CASE k.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END,
       CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_namespace n ON n.oid = k.connamespace
LEFT JOIN pg_catalog.pg_constraint u ON u.conindid = k.conindid AND k.conindid <> 0 AND u.contype IN ('p', 'u')
LEFT JOIN pg_catalog.pg_namespace o ON o.oid = u.connamespace WHERE k.contype = 'f';

INSERT INTO information_schema.check_constraints (constraint_catalog, constraint_schema, constraint_name, check_clause)
SELECT current_database(), n.nspname, k.conname, k.conbin
FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_namespace n ON n.oid = k.connamespace WHERE k.contype = 'c';

INSERT INTO pg_catalog.pg_sequences (schemaname, sequencename, sequenceowner, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size)
SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner), s.seqtypid, s.seqstart, s.seqmin, s.seqmax, s.seqincrement, s.seqcycle, s.seqcache
FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace;

INSERT INTO information_schema.sequences (sequence_catalog, sequence_schema, sequence_name, data_type, numeric_precision, numeric_precision_radix, numeric_scale, start_value, minimum_value, maximum_value, increment, cycle_option)
SELECT current_database(), n.nspname, c.relname, format_type(s.seqtypid, NULL), CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 ELSE 64 END, 2, 0,
       CAST(s.seqstart AS TEXT), CAST(s.seqmin AS TEXT), CAST(s.seqmax AS TEXT), CAST(s.seqincrement AS TEXT), CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END
FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend e WHERE e.objid = s.seqrelid AND e.deptype = 'i');
