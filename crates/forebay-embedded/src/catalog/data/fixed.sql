-- Rows that every PostgreSQL 15 database has. SQLite's SQL, run once when the catalog is made.
INSERT INTO pg_catalog.pg_am (oid, amname, amhandler, amtype) VALUES (2, 'heap', 0, 't'), (403, 'btree', 0, 'i');
INSERT INTO pg_catalog.pg_language (oid, lanname, lanowner) VALUES (12, 'internal', 10), (13, 'c', 10), (14, 'sql', 10);
INSERT INTO pg_catalog.pg_collation (oid, collname, collnamespace, collowner, collprovider, collisdeterministic, collencoding, collcollate, collctype)
VALUES (100, 'default', 11, 10, 'd', 1, -1, NULL, NULL), (950, 'C', 11, 10, 'c', 1, -1, 'C', 'C'), (951, 'POSIX', 11, 10, 'c', 1, -1, 'POSIX', 'POSIX');
INSERT INTO pg_catalog.pg_range (rngtypid, rngsubtype, rngmultitypid, rngcollation, rngsubopc)
VALUES (3904, 23, 4451, 0, 1978), (3906, 1700, 4532, 0, 3125), (3908, 1114, 4533, 0, 3128),
       (3910, 1184, 4534, 0, 3127), (3912, 1082, 4535, 0, 3122), (3926, 20, 4536, 0, 3124);
INSERT INTO pg_catalog.pg_description (objoid, classoid, objsubid, description) VALUES (2200, 2615, 0, 'standard public schema');
INSERT INTO pg_catalog.pg_tablespace (oid, spcname, spcowner) VALUES (1663, 'pg_default', 10), (1664, 'pg_global', 10);
