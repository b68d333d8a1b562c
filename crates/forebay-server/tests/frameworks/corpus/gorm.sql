-- sent: simple
-- ping
-- ;
-- sent: extended
-- described: name, text
-- columns: count int8
SELECT count(*) FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA() AND table_name = $1 AND table_type = $2
-- ;
-- sent: simple
CREATE TABLE "authors" ("id" bigserial,"created_at" timestamptz,"updated_at" timestamptz,"deleted_at" timestamptz,"name" varchar(50) NOT NULL,"born" date,PRIMARY KEY ("id"))
-- ;
-- sent: simple
CREATE UNIQUE INDEX IF NOT EXISTS "idx_authors_name" ON "authors" ("name")
-- ;
-- sent: simple
CREATE INDEX IF NOT EXISTS "idx_authors_deleted_at" ON "authors" ("deleted_at")
-- ;
-- sent: simple
CREATE TABLE "books" ("id" bigserial,"author_id" bigint NOT NULL,"title" text NOT NULL,"price" numeric(10,2) DEFAULT 0,"sold" boolean DEFAULT false,PRIMARY KEY ("id"),CONSTRAINT "fk_authors_books" FOREIGN KEY ("author_id") REFERENCES "authors"("id") ON DELETE CASCADE,CONSTRAINT "price_not_negative" CHECK (price >= 0))
-- ;
-- sent: simple
CREATE UNIQUE INDEX IF NOT EXISTS "one_title_an_author" ON "books" ("author_id","title")
-- ;
-- sent: simple
CREATE TABLE "tags" ("id" bigserial,"word" varchar(20),PRIMARY KEY ("id"),CONSTRAINT "uni_tags_word" UNIQUE ("word"))
-- ;
-- sent: simple
CREATE TABLE "book_tags" ("book_id" bigint,"tag_id" bigint,PRIMARY KEY ("book_id","tag_id"),CONSTRAINT "fk_book_tags_book" FOREIGN KEY ("book_id") REFERENCES "books"("id"),CONSTRAINT "fk_book_tags_tag" FOREIGN KEY ("tag_id") REFERENCES "tags"("id"))
-- ;
-- sent: simple
CREATE TABLE "kinds" ("id" serial,"small" smallint,"big" bigint,"price" decimal(12,4),"ratio" decimal,"ok" boolean,"name" varchar(40),"note" text,"data" bytea,"at" timestamptz,"uid" uuid DEFAULT gen_random_uuid(),"doc" jsonb,PRIMARY KEY ("id"))
-- ;
-- sent: extended
-- described: name, name
-- columns: count int8
SELECT count(*) FROM INFORMATION_SCHEMA.table_constraints WHERE table_schema = CURRENT_SCHEMA() AND table_name = $1 AND constraint_name = $2
-- ;
-- sent: extended
-- described: name, name
-- columns: count int8
SELECT count(*) FROM pg_indexes WHERE tablename = $1 AND indexname = $2 AND schemaname = CURRENT_SCHEMA()
-- ;
-- sent: extended
-- columns: current_database name
SELECT CURRENT_DATABASE()
-- ;
-- sent: extended
-- described: name, name
-- columns: column_name name, "?column?" bool, udt_name name, character_maximum_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, "?column?" int4, column_default varchar, description text, identity_increment varchar
SELECT c.column_name, c.is_nullable = 'YES', c.udt_name, c.character_maximum_length, c.numeric_precision, c.numeric_precision_radix, c.numeric_scale, c.datetime_precision, 8 * typlen, c.column_default, pd.description, c.identity_increment FROM information_schema.columns AS c JOIN pg_type AS pgt ON c.udt_name = pgt.typname LEFT JOIN pg_catalog.pg_description as pd ON pd.objsubid = c.ordinal_position AND pd.objoid = (SELECT oid FROM pg_catalog.pg_class WHERE relname = c.table_name AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = c.table_schema)) where table_catalog = $1 AND table_schema = CURRENT_SCHEMA() AND table_name = $2
-- ;
-- sent: simple
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[54], born date
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[124], born date, nick text
SELECT * FROM "authors" LIMIT  '1'
-- ;
-- sent: extended
-- described: name, name, text
-- columns: constraint_name name
SELECT constraint_name FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = $1 AND c.table_schema = CURRENT_SCHEMA() AND c.table_name = $2 AND constraint_type = $3
-- ;
-- sent: extended
-- described: name, name
-- columns: column_name name, constraint_name name, constraint_type varchar
SELECT c.column_name, constraint_name, constraint_type FROM information_schema.table_constraints tc JOIN information_schema.constraint_column_usage AS ccu USING (constraint_schema, constraint_catalog, table_name, constraint_name) JOIN information_schema.columns AS c ON c.table_schema = tc.constraint_schema AND tc.table_name = c.table_name AND ccu.column_name = c.column_name WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND c.table_catalog = $1 AND c.table_schema = CURRENT_SCHEMA() AND c.table_name = $2
-- ;
-- sent: extended
-- described: name
-- columns: column_name name, data_type text
SELECT a.attname as column_name, format_type(a.atttypid, a.atttypmod) AS data_type	FROM pg_attribute a JOIN pg_class b ON a.attrelid = b.oid AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = CURRENT_SCHEMA())	WHERE a.attnum > 0	AND NOT a.attisdropped	AND b.relname = $1
-- ;
-- sent: extended
-- described: name, name, name
-- columns: description text
SELECT description FROM pg_catalog.pg_description WHERE objsubid = (SELECT ordinal_position FROM information_schema.columns WHERE table_schema = CURRENT_SCHEMA() AND table_name = $1 AND column_name = $2) AND objoid = (SELECT oid FROM pg_catalog.pg_class WHERE relname = $3 AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = CURRENT_SCHEMA()))
-- ;
-- sent: simple
-- columns: id int8, author_id int8, title text, price numeric[655366], sold bool
SELECT * FROM "books" LIMIT  '1'
-- ;
-- sent: simple
-- columns: id int8, word varchar[24]
SELECT * FROM "tags" LIMIT  '1'
-- ;
-- sent: simple
-- columns: book_id int8, tag_id int8
SELECT * FROM "book_tags" LIMIT  '1'
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio numeric, ok bool, name varchar[44], note text, data bytea, at timestamptz, uid uuid, doc jsonb
SELECT * FROM "kinds" LIMIT  '1'
-- ;
-- sent: extended
-- described: text
-- columns: table_name name
SELECT table_name FROM information_schema.tables WHERE table_schema = CURRENT_SCHEMA() AND table_type = $1
-- ;
-- sent: simple
begin
-- ;
-- sent: extended
-- described: int2, int8, numeric, numeric, bool, varchar, text, bytea, timestamptz, jsonb, uuid
-- columns: uid uuid, id int4
INSERT INTO "kinds" ("small","big","price","ratio","ok","name","note","data","at","doc","uid") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11) RETURNING "uid","id"
-- ;
-- sent: simple
commit
-- ;
-- sent: extended
-- described: int4, int8
-- columns: id int4, small int2, big int8, price numeric[786440], ratio numeric, ok bool, name varchar[44], note text, data bytea, at timestamptz, uid uuid, doc jsonb
SELECT * FROM "kinds" WHERE "kinds"."id" = $1 ORDER BY "kinds"."id" LIMIT $2
-- ;
-- sent: extended
-- described: int2, int8, numeric, numeric, bool, varchar, text, bytea, timestamptz, jsonb
-- columns: uid uuid, id int4
INSERT INTO "kinds" ("small","big","price","ratio","ok","name","note","data","at","doc") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10) RETURNING "uid","id"
-- ;
-- sent: extended
-- described: int2
-- columns: count int8
SELECT count(*) FROM "kinds" WHERE "kinds"."small" = $1
-- ;
-- sent: extended
-- described: numeric
-- columns: count int8
SELECT count(*) FROM "kinds" WHERE "kinds"."price" = $1
-- ;
-- sent: extended
-- described: bool
-- columns: count int8
SELECT count(*) FROM "kinds" WHERE "kinds"."ok" = $1
-- ;
-- sent: extended
-- described: timestamptz
-- columns: count int8
SELECT count(*) FROM "kinds" WHERE "kinds"."at" = $1
-- ;
-- sent: extended
-- described: uuid
-- columns: count int8
SELECT count(*) FROM "kinds" WHERE "kinds"."uid" = $1
-- ;
-- sent: extended
-- described: timestamptz, timestamptz, timestamptz, varchar, date
-- columns: id int8
INSERT INTO "authors" ("created_at","updated_at","deleted_at","name","born") VALUES ($1,$2,$3,$4,$5) RETURNING "id"
-- ;
-- sent: extended
-- described: int8, text, numeric, bool, int8, text, numeric, bool
-- columns: id int8
INSERT INTO "books" ("author_id","title","price","sold") VALUES ($1,$2,$3,$4),($5,$6,$7,$8) ON CONFLICT ("id") DO UPDATE SET "author_id"="excluded"."author_id" RETURNING "id"
-- ;
-- sent: extended
-- described: varchar
-- columns: id int8
INSERT INTO "tags" ("word") VALUES ($1) ON CONFLICT DO NOTHING RETURNING "id"
-- ;
-- sent: extended
-- described: int8, int8
INSERT INTO "book_tags" ("book_id","tag_id") VALUES ($1,$2) ON CONFLICT DO NOTHING
-- ;
-- sent: extended
-- described: text, int8
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[54], born date
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[124], born date, nick text
SELECT * FROM "authors" WHERE name = $1 AND "authors"."deleted_at" IS NULL ORDER BY "authors"."id" LIMIT $2
-- ;
-- sent: extended
-- described: int8
-- columns: id int8, author_id int8, title text, price numeric[655366], sold bool
SELECT * FROM "books" WHERE "books"."author_id" = $1 ORDER BY title
-- ;
-- sent: extended
-- described: int8, int8
-- columns: book_id int8, tag_id int8
SELECT * FROM "book_tags" WHERE "book_tags"."book_id" IN ($1,$2)
-- ;
-- sent: extended
-- described: int8
-- columns: id int8, word varchar[24]
SELECT * FROM "tags" WHERE "tags"."id" = $1
-- ;
-- sent: extended
-- described: numeric, text, int8
UPDATE "books" SET "price"=price + $1,"title"=$2 WHERE "id" = $3
-- ;
-- sent: extended
-- described: varchar, int8
-- columns: id int8
INSERT INTO "tags" ("word","id") VALUES ($1,$2) ON CONFLICT DO NOTHING RETURNING "id"
-- ;
-- sent: extended
-- described: timestamptz, timestamptz, timestamptz, varchar, date, int8
UPDATE "authors" SET "created_at"=$1,"updated_at"=$2,"deleted_at"=$3,"name"=$4,"born"=$5 WHERE "authors"."deleted_at" IS NULL AND "id" = $6
-- ;
-- sent: extended
-- described: int8, text, numeric, bool, int8, int8, text, numeric, bool, int8
-- columns: id int8
INSERT INTO "books" ("author_id","title","price","sold","id") VALUES ($1,$2,$3,$4,$5),($6,$7,$8,$9,$10) ON CONFLICT ("id") DO UPDATE SET "author_id"="excluded"."author_id" RETURNING "id"
-- ;
-- sent: extended
-- described: text, int8, int8
-- columns: id int8, author_id int8, title text, price numeric[655366], sold bool, Author__id int8, Author__created_at timestamptz, Author__updated_at timestamptz, Author__deleted_at timestamptz, Author__name varchar[54], Author__born date
SELECT "books"."id","books"."author_id","books"."title","books"."price","books"."sold","Author"."id" AS "Author__id","Author"."created_at" AS "Author__created_at","Author"."updated_at" AS "Author__updated_at","Author"."deleted_at" AS "Author__deleted_at","Author"."name" AS "Author__name","Author"."born" AS "Author__born" FROM "books" LEFT JOIN "authors" "Author" ON "books"."author_id" = "Author"."id" AND "Author"."deleted_at" IS NULL WHERE "Author".name = $1 AND "books"."id" = $2 ORDER BY title,"books"."id" LIMIT $3
-- ;
-- sent: extended
-- described: varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar
-- columns: id int8
INSERT INTO "tags" ("word") VALUES ($1),($2),($3),($4),($5),($6),($7),($8),($9),($10),($11),($12),($13),($14),($15),($16),($17),($18),($19),($20),($21),($22),($23),($24),($25),($26),($27),($28),($29),($30),($31),($32),($33),($34),($35),($36),($37),($38),($39),($40) RETURNING "id"
-- ;
-- sent: extended
-- described: varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar, varchar
-- columns: id int8
INSERT INTO "tags" ("word") VALUES ($1),($2),($3),($4),($5),($6),($7),($8),($9),($10),($11),($12),($13),($14),($15),($16),($17),($18),($19),($20) RETURNING "id"
-- ;
-- sent: extended
-- described: text
DELETE FROM "tags" WHERE word LIKE $1
-- ;
-- sent: extended
-- described: varchar
-- columns: id int8
INSERT INTO "tags" ("word") VALUES ($1) ON CONFLICT ("word") DO UPDATE SET "word"="excluded"."word" RETURNING "id"
-- ;
-- sent: extended
-- described: text, int8
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[54], born date
SELECT * FROM "authors" WHERE "authors"."name" = $1 AND "authors"."deleted_at" IS NULL ORDER BY "authors"."id" LIMIT $2
-- ;
-- sent: extended
-- described: timestamptz, int8
UPDATE "authors" SET "deleted_at"=$1 WHERE "authors"."id" = $2 AND "authors"."deleted_at" IS NULL
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM "authors" WHERE "authors"."deleted_at" IS NULL
-- ;
-- sent: extended
-- columns: count int8
SELECT count(*) FROM "authors"
-- ;
-- sent: extended
-- described: int8
-- columns: name varchar[54], total numeric
SELECT authors.name, sum(books.price) AS total FROM "books" JOIN authors ON authors.id = books.author_id GROUP BY "authors"."name" HAVING count(*) > $1
-- ;
-- sent: extended
-- described: int8, int8
-- columns: title text
SELECT "title" FROM "books" WHERE author_id IN (SELECT "id" FROM "authors" WHERE "authors"."deleted_at" IS NULL) ORDER BY title DESC LIMIT $1 OFFSET $2
-- ;
-- sent: extended
-- described: int8
-- columns: id int8, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name varchar[54], born date
SELECT * FROM "authors" WHERE "authors"."deleted_at" IS NULL ORDER BY "authors"."id" LIMIT $1
-- ;
-- sent: simple
rollback
-- ;
-- sent: extended
-- described: int8, text, numeric, bool
-- columns: id int8
-- fails: 23514 new row for relation "books" violates check constraint "price_not_negative"
INSERT INTO "books" ("author_id","title","price","sold") VALUES ($1,$2,$3,$4) RETURNING "id"
-- ;
-- sent: extended
-- described: varchar
-- columns: id int8
-- fails: 22001 value too long for type character varying(20)
INSERT INTO "tags" ("word") VALUES ($1) RETURNING "id"
-- ;
-- sent: extended
-- described: varchar
-- fails: 23502 null value in column "name" of relation "authors" violates not-null constraint
INSERT INTO authors (name) VALUES ($1)
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
SAVEPOINT sp17679524512525585196
-- ;
-- sent: simple
ROLLBACK TO SAVEPOINT sp17679524512525585196
-- ;
-- sent: extended
-- described: text, int8
-- columns: id int8, word varchar[24]
SELECT * FROM "tags" WHERE word = $1 ORDER BY "tags"."id" LIMIT $2 FOR UPDATE
-- ;
-- sent: extended
-- described: varchar, varchar
-- columns: count int8
SELECT count(*) FROM "tags" WHERE word IN ($1,$2)
-- ;
-- sent: simple
ALTER TABLE "authors" ALTER COLUMN "name" TYPE varchar(120) USING "name"::varchar(120)
-- ;
-- sent: simple
ALTER TABLE "authors" ADD "nick" text DEFAULT 'none'
-- ;
-- sent: simple
COMMENT ON COLUMN "authors"."born" IS 'when'
-- ;
-- sent: simple
CREATE INDEX IF NOT EXISTS "idx_authors_nick" ON "authors" ("nick")
-- ;
-- sent: simple
ALTER TABLE "kinds" RENAME COLUMN "note" TO "remark"
-- ;
-- sent: extended
-- described: name, name
-- columns: count int8
SELECT count(*) FROM INFORMATION_SCHEMA.columns WHERE table_schema = CURRENT_SCHEMA() AND table_name = $1 AND column_name = $2
-- ;
-- sent: simple
ALTER TABLE "kinds" DROP COLUMN "remark"
-- ;
-- sent: simple
DROP INDEX "idx_authors_deleted_at"
-- ;
-- sent: simple
ALTER TABLE "books" DROP CONSTRAINT "price_not_negative"
-- ;
-- sent: simple
ALTER TABLE "kinds" RENAME TO "sorts"
-- ;
-- sent: simple
DROP TABLE IF EXISTS "authors" CASCADE
-- ;
-- sent: simple
DROP TABLE IF EXISTS "books" CASCADE
-- ;
-- sent: simple
DROP TABLE IF EXISTS "tags" CASCADE
-- ;
-- sent: simple
DROP TABLE IF EXISTS "book_tags" CASCADE
-- ;
-- sent: simple
DROP TABLE IF EXISTS "sorts" CASCADE
