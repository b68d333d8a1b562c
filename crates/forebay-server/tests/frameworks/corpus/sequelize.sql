-- sent: simple
SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;
-- ;
-- sent: simple
-- columns: typname name, typtype char, oid oid, typarray oid, rngtypname name, rngtypid oid, rngtyparray oid
WITH ranges AS (  SELECT pg_range.rngtypid, pg_type.typname AS rngtypname,         pg_type.typarray AS rngtyparray, pg_range.rngsubtype    FROM pg_range LEFT OUTER JOIN pg_type ON pg_type.oid = pg_range.rngtypid)SELECT pg_type.typname, pg_type.typtype, pg_type.oid, pg_type.typarray,       ranges.rngtypname, ranges.rngtypid, ranges.rngtyparray  FROM pg_type LEFT OUTER JOIN ranges ON pg_type.oid = ranges.rngsubtype WHERE (pg_type.typtype IN('b', 'e'));
-- ;
-- sent: simple
-- columns: result int4
SELECT 1+1 AS result
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'Authors'
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "Authors" ("id"   SERIAL , "name" VARCHAR(50) NOT NULL UNIQUE, "born" DATE, "createdAt" TIMESTAMP WITH TIME ZONE NOT NULL, "updatedAt" TIMESTAMP WITH TIME ZONE NOT NULL, PRIMARY KEY ("id"));
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'Authors' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'Books'
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "Books" ("id" UUID , "title" TEXT NOT NULL, "price" DECIMAL(10,2) NOT NULL DEFAULT 0, "createdAt" TIMESTAMP WITH TIME ZONE NOT NULL, "updatedAt" TIMESTAMP WITH TIME ZONE NOT NULL, "deletedAt" TIMESTAMP WITH TIME ZONE, "authorId" INTEGER NOT NULL REFERENCES "Authors" ("id") ON DELETE CASCADE ON UPDATE CASCADE, PRIMARY KEY ("id"));
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'Books' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
CREATE INDEX "books_title" ON "Books" ("title")
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'tags'
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "tags" ("id"   SERIAL , "word" VARCHAR(255), UNIQUE ("word"), PRIMARY KEY ("id"));
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'tags' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'BookTags'
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "BookTags" ("BookId" UUID  REFERENCES "Books" ("id") ON DELETE CASCADE ON UPDATE CASCADE, "TagId" INTEGER  REFERENCES "tags" ("id") ON DELETE CASCADE ON UPDATE CASCADE, PRIMARY KEY ("BookId","TagId"));
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'BookTags' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'Kinds'
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "Kinds" ("id"   SERIAL , "small" SMALLINT, "big" BIGINT, "price" DECIMAL(12,4), "ratio" DOUBLE PRECISION, "part" REAL, "ok" BOOLEAN, "name" VARCHAR(40), "data" BYTEA, "day" DATE, "clock" TIME, "at" TIMESTAMP WITH TIME ZONE, "doc" JSON, "docb" JSONB, "uid" UUID, PRIMARY KEY ("id"));
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'Kinds' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type LIKE '%TABLE' AND table_name != 'spatial_ref_sys';
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], data bytea, day date, clock time, at timestamptz, doc json, docb jsonb, uid uuid
INSERT INTO "Kinds" ("id","small","big","price","ratio","part","ok","name","data","day","clock","at","doc","docb","uid") VALUES (DEFAULT,$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14) RETURNING "id","small","big","price","ratio","part","ok","name","data","day","clock","at","doc","docb","uid";
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], data bytea, day date, clock time, at timestamptz, doc json, docb jsonb, uid uuid
SELECT "id", "small", "big", "price", "ratio", "part", "ok", "name", "data", "day", "clock", "at", "doc", "docb", "uid" FROM "Kinds" AS "Kinds" WHERE "Kinds"."id" = 1;
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], data bytea, day date, clock time, at timestamptz, doc json, docb jsonb, uid uuid
INSERT INTO "Kinds" ("id") VALUES (DEFAULT) RETURNING "id","small","big","price","ratio","part","ok","name","data","day","clock","at","doc","docb","uid";
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, part float4, ok bool, name varchar[44], data bytea, day date, clock time, at timestamptz, doc json, docb jsonb, uid uuid
SELECT "id", "small", "big", "price", "ratio", "part", "ok", "name", "data", "day", "clock", "at", "doc", "docb", "uid" FROM "Kinds" AS "Kinds" WHERE "Kinds"."id" = 2;
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."small" = -7;
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."big" = '4611686018427387904';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."price" = '12345.6700';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."ratio" = '0.1';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."part" = '0.5';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."ok" = false;
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."name" = 'naïve 🐘 ''q'' \';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."data" = E'\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."day" = '2024-02-29';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."clock" = '23:59:59.25';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."at" = '2024-02-29 23:59:59.123 +00:00';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."uid" = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Kinds" AS "Kinds" WHERE "Kinds"."docb" @> '{"b":[1.5]}';
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date, createdAt timestamptz, updatedAt timestamptz
INSERT INTO "Authors" ("id","name","born","createdAt","updatedAt") VALUES (DEFAULT,$1,$2,$3,$4) RETURNING "id","name","born","createdAt","updatedAt";
-- ;
-- sent: extended
-- columns: id uuid, title text, price numeric[655366], createdAt timestamptz, updatedAt timestamptz, deletedAt timestamptz, authorId int4
INSERT INTO "Books" ("id","title","price","createdAt","updatedAt","authorId") VALUES ($1,$2,$3,$4,$5,$6) RETURNING "id","title","price","createdAt","updatedAt","deletedAt","authorId";
-- ;
-- sent: extended
-- columns: id int4, word varchar[259]
INSERT INTO "tags" ("id","word") VALUES (DEFAULT,$1) RETURNING "id","word";
-- ;
-- sent: extended
-- columns: BookId uuid, TagId int4
INSERT INTO "BookTags" ("BookId","TagId") VALUES ($1,$2) RETURNING "BookId","TagId";
-- ;
-- sent: simple
-- columns: id int4, name varchar[54], born date, createdAt timestamptz, updatedAt timestamptz, "Books.id" uuid, "Books.title" text, "Books.price" numeric[655366], "Books.createdAt" timestamptz, "Books.updatedAt" timestamptz, "Books.deletedAt" timestamptz, "Books.authorId" int4, "Books.Tags.id" int4, "Books.Tags.word" varchar[259], "Books.Tags.BookTags.BookId" uuid, "Books.Tags.BookTags.TagId" int4
SELECT "Author".*, "Books"."id" AS "Books.id", "Books"."title" AS "Books.title", "Books"."price" AS "Books.price", "Books"."createdAt" AS "Books.createdAt", "Books"."updatedAt" AS "Books.updatedAt", "Books"."deletedAt" AS "Books.deletedAt", "Books"."authorId" AS "Books.authorId", "Books->Tags"."id" AS "Books.Tags.id", "Books->Tags"."word" AS "Books.Tags.word", "Books->Tags->BookTags"."BookId" AS "Books.Tags.BookTags.BookId", "Books->Tags->BookTags"."TagId" AS "Books.Tags.BookTags.TagId" FROM (SELECT "Author"."id", "Author"."name", "Author"."born", "Author"."createdAt", "Author"."updatedAt" FROM "Authors" AS "Author" WHERE "Author"."name" ILIKE 'AN%' LIMIT 1) AS "Author" LEFT OUTER JOIN "Books" AS "Books" ON "Author"."id" = "Books"."authorId" AND ("Books"."deletedAt" IS NULL) LEFT OUTER JOIN ( "BookTags" AS "Books->Tags->BookTags" INNER JOIN "tags" AS "Books->Tags" ON "Books->Tags"."id" = "Books->Tags->BookTags"."TagId") ON "Books"."id" = "Books->Tags->BookTags"."BookId" ORDER BY "Books"."title" ASC;
-- ;
-- sent: extended
UPDATE "Books" SET "title"=$1,"updatedAt"=$2 WHERE "id" = $3
-- ;
-- sent: extended
UPDATE "Books" SET "price"=price + 1,"updatedAt"=$1 WHERE ("deletedAt" IS NULL AND "title" = $2)
-- ;
-- sent: simple
-- columns: id uuid, title text, price numeric[655366], createdAt timestamptz, updatedAt timestamptz, deletedAt timestamptz, authorId int4
UPDATE "Books" SET "price"="price"+ 0.25,"updatedAt"='2026-11-22 10:58:44.284 +00:00' WHERE "id" = '97d62edb-ea96-4cfd-be5c-01bd78d7dd12' RETURNING *
-- ;
-- sent: simple
-- columns: id uuid, title text, price numeric[655366], createdAt timestamptz, updatedAt timestamptz, deletedAt timestamptz, authorId int4, "Tags.id" int4, "Tags.word" varchar[259], "Tags.BookTags.BookId" uuid, "Tags.BookTags.TagId" int4
SELECT "Book"."id", "Book"."title", "Book"."price", "Book"."createdAt", "Book"."updatedAt", "Book"."deletedAt", "Book"."authorId", "Tags"."id" AS "Tags.id", "Tags"."word" AS "Tags.word", "Tags->BookTags"."BookId" AS "Tags.BookTags.BookId", "Tags->BookTags"."TagId" AS "Tags.BookTags.TagId" FROM "Books" AS "Book" LEFT OUTER JOIN ( "BookTags" AS "Tags->BookTags" INNER JOIN "tags" AS "Tags" ON "Tags"."id" = "Tags->BookTags"."TagId") ON "Book"."id" = "Tags->BookTags"."BookId" WHERE ("Book"."deletedAt" IS NULL AND "Book"."id" = '97d62edb-ea96-4cfd-be5c-01bd78d7dd12');
-- ;
-- sent: simple
-- columns: id uuid, title text, price numeric[655366], createdAt timestamptz, updatedAt timestamptz, deletedAt timestamptz, authorId int4
UPDATE "Books" SET "price"="price"- 0.25,"updatedAt"='2026-11-22 10:58:44.304 +00:00' WHERE "id" = '97d62edb-ea96-4cfd-be5c-01bd78d7dd12' RETURNING *
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Books" AS "Book" WHERE ("Book"."deletedAt" IS NULL AND "Book"."price" BETWEEN 1 AND 10);
-- ;
-- sent: simple
-- columns: id uuid, title text, price numeric[655366], createdAt timestamptz, updatedAt timestamptz, deletedAt timestamptz, authorId int4
SELECT "id", "title", "price", "createdAt", "updatedAt", "deletedAt", "authorId" FROM "Books" AS "Book" WHERE ("Book"."deletedAt" IS NULL AND "Book"."price" BETWEEN 1 AND 10) ORDER BY "Book"."title" DESC LIMIT 1 OFFSET 1;
-- ;
-- sent: simple
-- columns: sum numeric
SELECT sum("price") AS "sum" FROM "Books" AS "Book" WHERE ("Book"."deletedAt" IS NULL);
-- ;
-- sent: simple
-- columns: authorId int4, count int8
SELECT "authorId", COUNT("id") AS "count" FROM "Books" AS "Book" WHERE ("Book"."deletedAt" IS NULL) GROUP BY "authorId" HAVING COUNT("id") > 1;
-- ;
-- sent: simple
-- columns: id int4, word varchar[259]
INSERT INTO "tags" ("id","word") VALUES (DEFAULT,'word 0'),(DEFAULT,'word 1'),(DEFAULT,'word 2'),(DEFAULT,'word 3'),(DEFAULT,'word 4'),(DEFAULT,'word 5'),(DEFAULT,'word 6'),(DEFAULT,'word 7'),(DEFAULT,'word 8'),(DEFAULT,'word 9'),(DEFAULT,'word 10'),(DEFAULT,'word 11'),(DEFAULT,'word 12'),(DEFAULT,'word 13'),(DEFAULT,'word 14'),(DEFAULT,'word 15'),(DEFAULT,'word 16'),(DEFAULT,'word 17'),(DEFAULT,'word 18'),(DEFAULT,'word 19'),(DEFAULT,'word 20'),(DEFAULT,'word 21'),(DEFAULT,'word 22'),(DEFAULT,'word 23'),(DEFAULT,'word 24'),(DEFAULT,'word 25'),(DEFAULT,'word 26'),(DEFAULT,'word 27'),(DEFAULT,'word 28'),(DEFAULT,'word 29'),(DEFAULT,'word 30'),(DEFAULT,'word 31'),(DEFAULT,'word 32'),(DEFAULT,'word 33'),(DEFAULT,'word 34'),(DEFAULT,'word 35'),(DEFAULT,'word 36'),(DEFAULT,'word 37'),(DEFAULT,'word 38'),(DEFAULT,'word 39'),(DEFAULT,'word 40'),(DEFAULT,'word 41'),(DEFAULT,'word 42'),(DEFAULT,'word 43'),(DEFAULT,'word 44'),(DEFAULT,'word 45'),(DEFAULT,'word 46'),(DEFAULT,'word 47'),(DEFAULT,'word 48'),(DEFAULT,'word 49'),(DEFAULT,'word 50'),(DEFAULT,'word 51'),(DEFAULT,'word 52'),(DEFAULT,'word 53'),(DEFAULT,'word 54'),(DEFAULT,'word 55'),(DEFAULT,'word 56'),(DEFAULT,'word 57'),(DEFAULT,'word 58'),(DEFAULT,'word 59'),(DEFAULT,'word 60'),(DEFAULT,'word 61'),(DEFAULT,'word 62'),(DEFAULT,'word 63'),(DEFAULT,'word 64'),(DEFAULT,'word 65'),(DEFAULT,'word 66'),(DEFAULT,'word 67'),(DEFAULT,'word 68'),(DEFAULT,'word 69'),(DEFAULT,'word 70'),(DEFAULT,'word 71'),(DEFAULT,'word 72'),(DEFAULT,'word 73'),(DEFAULT,'word 74'),(DEFAULT,'word 75'),(DEFAULT,'word 76'),(DEFAULT,'word 77'),(DEFAULT,'word 78'),(DEFAULT,'word 79'),(DEFAULT,'word 80'),(DEFAULT,'word 81'),(DEFAULT,'word 82'),(DEFAULT,'word 83'),(DEFAULT,'word 84'),(DEFAULT,'word 85'),(DEFAULT,'word 86'),(DEFAULT,'word 87'),(DEFAULT,'word 88'),(DEFAULT,'word 89'),(DEFAULT,'word 90'),(DEFAULT,'word 91'),(DEFAULT,'word 92'),(DEFAULT,'word 93'),(DEFAULT,'word 94'),(DEFAULT,'word 95'),(DEFAULT,'word 96'),(DEFAULT,'word 97'),(DEFAULT,'word 98'),(DEFAULT,'word 99') RETURNING "id","word";
-- ;
-- sent: simple
-- columns: id int4, word varchar[259]
INSERT INTO "tags" ("id","word") VALUES (DEFAULT,'word 1') ON CONFLICT DO NOTHING RETURNING "id","word";
-- ;
-- sent: simple
DELETE FROM "tags" WHERE "word" LIKE 'word 1%'
-- ;
-- sent: extended
-- columns: id int4, word varchar[259]
INSERT INTO "tags" ("word") VALUES ($1) ON CONFLICT ("word") DO UPDATE SET "word"=EXCLUDED."word" RETURNING "id","word";
-- ;
-- sent: simple
START TRANSACTION;
-- ;
-- sent: simple
-- columns: id int4, name varchar[54], born date, createdAt timestamptz, updatedAt timestamptz
SELECT "id", "name", "born", "createdAt", "updatedAt" FROM "Authors" AS "Author" WHERE "Author"."name" = 'Ben';
-- ;
-- sent: simple
-- columns: id int4, name varchar[54], born date, createdAt timestamptz, updatedAt timestamptz, sequelize_caught_exception text
CREATE OR REPLACE FUNCTION pg_temp.testfunc(OUT response "Authors", OUT sequelize_caught_exception text) RETURNS RECORD AS $func_4d383432ec2b4b8f928cceeb587383b9$ BEGIN INSERT INTO "Authors" ("id","name","born","createdAt","updatedAt") VALUES (DEFAULT,'Ben','1970-01-01','2026-11-22 10:58:44.396 +00:00','2026-11-22 10:58:44.396 +00:00') RETURNING * INTO response; EXCEPTION WHEN unique_violation THEN GET STACKED DIAGNOSTICS sequelize_caught_exception = PG_EXCEPTION_DETAIL; END $func_4d383432ec2b4b8f928cceeb587383b9$ LANGUAGE plpgsql; SELECT (testfunc.response)."id", (testfunc.response)."name", (testfunc.response)."born", (testfunc.response)."createdAt", (testfunc.response)."updatedAt", testfunc.sequelize_caught_exception FROM pg_temp.testfunc(); DROP FUNCTION IF EXISTS pg_temp.testfunc();
-- ;
-- sent: simple
COMMIT;
-- ;
-- sent: extended
UPDATE "Books" SET "deletedAt"=$1 WHERE "deletedAt" IS NULL AND "title" = $2
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Books" AS "Book" WHERE ("Book"."deletedAt" IS NULL);
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "Books" AS "Book";
-- ;
-- sent: extended
UPDATE "Books" SET "deletedAt"=$1 WHERE "title" = $2
-- ;
-- sent: extended
-- columns: name varchar[54]
SELECT name FROM "Authors" WHERE name = $1
-- ;
-- sent: simple
-- columns: name varchar[54]
SELECT name FROM "Authors" WHERE name IN ('Ben', 'x')
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date, createdAt timestamptz, updatedAt timestamptz
-- fails: 22001 value too long for type character varying(50)
INSERT INTO "Authors" ("id","name","createdAt","updatedAt") VALUES (DEFAULT,$1,$2,$3) RETURNING "id","name","born","createdAt","updatedAt";
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
ROLLBACK;
-- ;
-- sent: simple
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
-- ;
-- sent: simple
SAVEPOINT "38955ac7-2026-4dfc-806b-e90b9110516d-sp-1";
-- ;
-- sent: simple
ROLLBACK TO SAVEPOINT "38955ac7-2026-4dfc-806b-e90b9110516d-sp-1";
-- ;
-- sent: simple
-- columns: id int4, word varchar[259]
SELECT "id", "word" FROM "tags" AS "Tag" WHERE "Tag"."word" = 'kept' FOR UPDATE;
-- ;
-- sent: simple
-- columns: count int8
SELECT count(*) AS "count" FROM "tags" AS "Tag" WHERE "Tag"."word" IN ('kept', 'undone');
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'Authors' AND c.table_schema = 'public'
-- ;
-- sent: simple
-- columns: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred varchar[7], is_deferrable varchar[7], column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'Authors' AND tc.table_catalog = 'forebay_sequelize'
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "name" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "name" DROP DEFAULT;ALTER TABLE "Authors"  ADD UNIQUE ("name");ALTER TABLE "Authors" ALTER COLUMN "name" TYPE VARCHAR(50)  ;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "born" DROP NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "born" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "born" TYPE DATE;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "createdAt" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "createdAt" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "createdAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "updatedAt" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "updatedAt" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "updatedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'Books' AND c.table_schema = 'public'
-- ;
-- sent: simple
-- columns: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred varchar[7], is_deferrable varchar[7], column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'Books' AND tc.table_catalog = 'forebay_sequelize'
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "title" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "title" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "title" TYPE TEXT;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "price" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "price" SET DEFAULT 0;ALTER TABLE "Books" ALTER COLUMN "price" TYPE DECIMAL(10,2);
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "createdAt" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "createdAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "createdAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "updatedAt" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "updatedAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "updatedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "deletedAt" DROP NOT NULL;ALTER TABLE "Books" ALTER COLUMN "deletedAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "deletedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" DROP CONSTRAINT "Books_authorId_fkey"
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "authorId" SET NOT NULL;ALTER TABLE "Books"  ADD FOREIGN KEY ("authorId") REFERENCES "Authors" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'tags' AND c.table_schema = 'public'
-- ;
-- sent: simple
-- columns: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred varchar[7], is_deferrable varchar[7], column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'tags' AND tc.table_catalog = 'forebay_sequelize'
-- ;
-- sent: simple
ALTER TABLE "tags" ALTER COLUMN "word" DROP NOT NULL;ALTER TABLE "tags" ALTER COLUMN "word" DROP DEFAULT;ALTER TABLE "tags" ALTER COLUMN "word" TYPE VARCHAR(255);
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'BookTags' AND c.table_schema = 'public'
-- ;
-- sent: simple
-- columns: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred varchar[7], is_deferrable varchar[7], column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'BookTags' AND tc.table_catalog = 'forebay_sequelize'
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'Kinds' AND c.table_schema = 'public'
-- ;
-- sent: simple
-- columns: constraint_name name, constraint_schema name, constraint_catalog name, table_name name, table_schema name, table_catalog name, initially_deferred varchar[7], is_deferrable varchar[7], column_name name, referenced_table_schema name, referenced_table_catalog name, referenced_table_name name, referenced_column_name name
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'Kinds' AND tc.table_catalog = 'forebay_sequelize'
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "small" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "small" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "small" TYPE SMALLINT;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "big" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "big" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "big" TYPE BIGINT;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "price" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "price" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "price" TYPE DECIMAL(12,4);
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "ratio" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "ratio" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "ratio" TYPE DOUBLE PRECISION;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "part" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "part" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "part" TYPE REAL;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "ok" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "ok" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "ok" TYPE BOOLEAN;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "name" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "name" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "name" TYPE VARCHAR(40);
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "data" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "data" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "data" TYPE BYTEA;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "day" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "day" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "day" TYPE DATE;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "clock" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "clock" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "clock" TYPE TIME;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "at" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "at" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "at" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "doc" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "doc" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "doc" TYPE JSON;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "docb" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "docb" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "docb" TYPE JSONB;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "uid" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "uid" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "uid" TYPE UUID;
-- ;
-- sent: simple
ALTER TABLE "public"."Authors" ADD COLUMN "nick" VARCHAR(255) DEFAULT 'none';
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "name" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "name" DROP DEFAULT;ALTER TABLE "Authors"  ADD UNIQUE ("name");ALTER TABLE "Authors" ALTER COLUMN "name" TYPE VARCHAR(120)  ;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "born" DROP NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "born" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "born" TYPE DATE;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "createdAt" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "createdAt" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "createdAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Authors" ALTER COLUMN "updatedAt" SET NOT NULL;ALTER TABLE "Authors" ALTER COLUMN "updatedAt" DROP DEFAULT;ALTER TABLE "Authors" ALTER COLUMN "updatedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "title" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "title" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "title" TYPE TEXT;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "price" DROP NOT NULL;ALTER TABLE "Books" ALTER COLUMN "price" SET DEFAULT 0;ALTER TABLE "Books" ALTER COLUMN "price" TYPE DECIMAL(10,2);
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "createdAt" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "createdAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "createdAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "updatedAt" SET NOT NULL;ALTER TABLE "Books" ALTER COLUMN "updatedAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "updatedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "deletedAt" DROP NOT NULL;ALTER TABLE "Books" ALTER COLUMN "deletedAt" DROP DEFAULT;ALTER TABLE "Books" ALTER COLUMN "deletedAt" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Books" DROP CONSTRAINT "Books_authorId_fkey"
-- ;
-- sent: simple
ALTER TABLE "Books" ALTER COLUMN "authorId" SET NOT NULL;ALTER TABLE "Books"  ADD FOREIGN KEY ("authorId") REFERENCES "Authors" ("id") ON DELETE CASCADE ON UPDATE CASCADE;
-- ;
-- sent: simple
ALTER TABLE "tags" ALTER COLUMN "word" DROP NOT NULL;ALTER TABLE "tags" ALTER COLUMN "word" DROP DEFAULT;ALTER TABLE "tags" ALTER COLUMN "word" TYPE VARCHAR(255);
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "small" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "small" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "small" TYPE SMALLINT;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "big" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "big" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "big" TYPE BIGINT;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "price" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "price" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "price" TYPE DECIMAL(12,4);
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "ratio" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "ratio" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "ratio" TYPE DOUBLE PRECISION;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "part" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "part" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "part" TYPE REAL;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "ok" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "ok" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "ok" TYPE BOOLEAN;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "name" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "name" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "name" TYPE VARCHAR(40);
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "data" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "data" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "data" TYPE BYTEA;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "day" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "day" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "day" TYPE DATE;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "clock" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "clock" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "clock" TYPE TIME;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "at" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "at" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "at" TYPE TIMESTAMP WITH TIME ZONE;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "doc" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "doc" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "doc" TYPE JSON;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "docb" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "docb" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "docb" TYPE JSONB;
-- ;
-- sent: simple
ALTER TABLE "Kinds" ALTER COLUMN "uid" DROP NOT NULL;ALTER TABLE "Kinds" ALTER COLUMN "uid" DROP DEFAULT;ALTER TABLE "Kinds" ALTER COLUMN "uid" TYPE UUID;
-- ;
-- sent: simple
-- columns: id int4, name varchar[124], nick varchar[259], born date, createdAt timestamptz, updatedAt timestamptz, "Books.id" uuid, "Books.title" text, "Books.price" numeric[655366], "Books.createdAt" timestamptz, "Books.updatedAt" timestamptz, "Books.deletedAt" timestamptz, "Books.authorId" int4
SELECT "Author"."id", "Author"."name", "Author"."nick", "Author"."born", "Author"."createdAt", "Author"."updatedAt", "Books"."id" AS "Books.id", "Books"."title" AS "Books.title", "Books"."price" AS "Books.price", "Books"."createdAt" AS "Books.createdAt", "Books"."updatedAt" AS "Books.updatedAt", "Books"."deletedAt" AS "Books.deletedAt", "Books"."authorId" AS "Books.authorId" FROM "Authors" AS "Author" LEFT OUTER JOIN "Books" AS "Books" ON "Author"."id" = "Books"."authorId" AND ("Books"."deletedAt" IS NULL) WHERE "Author"."name" = 'Ann';
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], nick varchar[259], born date, createdAt timestamptz, updatedAt timestamptz
-- fails: 23505 duplicate key value violates unique constraint "Authors_name_key"
INSERT INTO "Authors" ("id","name","nick","createdAt","updatedAt") VALUES (DEFAULT,$1,$2,$3,$4) RETURNING "id","name","nick","born","createdAt","updatedAt";
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "ledger" ("id"  SERIAL , "amount" INTEGER, PRIMARY KEY ("id"));
-- ;
-- sent: simple
INSERT INTO "ledger" ("amount") VALUES (1),(2);
-- ;
-- sent: simple
ALTER TABLE "public"."ledger" ADD COLUMN "memo" VARCHAR(20) NOT NULL DEFAULT 'x';
-- ;
-- sent: simple
ALTER TABLE "ledger" ALTER COLUMN "amount" SET NOT NULL;ALTER TABLE "ledger" ALTER COLUMN "amount" SET DEFAULT 5;ALTER TABLE "ledger" ALTER COLUMN "amount" TYPE BIGINT;
-- ;
-- sent: simple
-- columns: Constraint varchar, Field name, Default varchar, Null varchar[7], Type text, special _name, Comment text
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'ledger' AND c.table_schema = 'public'
-- ;
-- sent: simple
ALTER TABLE "ledger" RENAME COLUMN "memo" TO "note";
-- ;
-- sent: simple
CREATE INDEX "ledger_note" ON "ledger" ("note")
-- ;
-- sent: simple
ALTER TABLE "ledger" ADD CONSTRAINT "ledger_amount" CHECK ("amount" >= 0);
-- ;
-- sent: simple
-- columns: name name, primary bool, unique bool, indkey int2vector, column_indexes _int2, column_names _name, definition text
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'ledger' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- ;
-- sent: simple
-- columns: amount int8, note varchar[24]
SELECT amount, note FROM ledger ORDER BY id
-- ;
-- sent: simple
-- fails: 23514 new row for relation "ledger" violates check constraint "ledger_amount"
INSERT INTO "ledger" ("amount") VALUES (-1);
-- ;
-- sent: simple
ALTER TABLE "ledger" DROP CONSTRAINT "ledger_amount"
-- ;
-- sent: simple
DROP INDEX IF EXISTS "ledger_note"
-- ;
-- sent: simple
ALTER TABLE "public"."ledger" DROP COLUMN "note";
-- ;
-- sent: simple
ALTER TABLE "ledger" RENAME TO "book";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "book";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Kinds";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "BookTags";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "tags";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Books";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Authors";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "BookTags";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Authors";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Books";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "tags";
-- ;
-- sent: simple
DROP TABLE IF EXISTS "Kinds";
