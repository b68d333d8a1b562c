-- sent: simple
BEGIN
-- ;
-- sent: simple
-- The migration that Prisma's engine writes for `schema.prisma`, statement by statement.
-- CreateTable
CREATE TABLE "authors" (
    "id" SERIAL NOT NULL,
    "name" VARCHAR(50) NOT NULL,
    "born" DATE,

    CONSTRAINT "authors_pkey" PRIMARY KEY ("id")
)
-- ;
-- sent: simple
-- CreateTable
CREATE TABLE "books" (
    "id" UUID NOT NULL,
    "author_id" INTEGER NOT NULL,
    "title" TEXT NOT NULL,
    "price" DECIMAL(10,2) NOT NULL DEFAULT 0,
    "created" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "books_pkey" PRIMARY KEY ("id")
)
-- ;
-- sent: simple
-- CreateTable
CREATE TABLE "tags" (
    "id" BIGSERIAL NOT NULL,
    "word" TEXT NOT NULL,

    CONSTRAINT "tags_pkey" PRIMARY KEY ("id")
)
-- ;
-- sent: simple
-- CreateTable
CREATE TABLE "kinds" (
    "id" SERIAL NOT NULL,
    "small" SMALLINT,
    "big" BIGINT,
    "price" DECIMAL(12,4),
    "ratio" DOUBLE PRECISION,
    "ok" BOOLEAN,
    "name" VARCHAR(40),
    "data" BYTEA,
    "day" DATE,
    "local" TIMESTAMP(3),
    "at" TIMESTAMPTZ(3),
    "doc" JSONB,
    "uid" UUID,

    CONSTRAINT "kinds_pkey" PRIMARY KEY ("id")
)
-- ;
-- sent: simple
-- CreateTable
CREATE TABLE "_BookToTag" (
    "A" UUID NOT NULL,
    "B" BIGINT NOT NULL,

    CONSTRAINT "_BookToTag_AB_pkey" PRIMARY KEY ("A","B")
)
-- ;
-- sent: simple
-- CreateIndex
CREATE UNIQUE INDEX "authors_name_key" ON "authors"("name")
-- ;
-- sent: simple
-- CreateIndex
CREATE INDEX "books_price_idx" ON "books"("price")
-- ;
-- sent: simple
-- CreateIndex
CREATE UNIQUE INDEX "books_author_id_title_key" ON "books"("author_id", "title")
-- ;
-- sent: simple
-- CreateIndex
CREATE UNIQUE INDEX "tags_word_key" ON "tags"("word")
-- ;
-- sent: simple
-- CreateIndex
CREATE INDEX "_BookToTag_B_index" ON "_BookToTag"("B")
-- ;
-- sent: simple
-- AddForeignKey
ALTER TABLE "books" ADD CONSTRAINT "books_author_id_fkey" FOREIGN KEY ("author_id") REFERENCES "authors"("id") ON DELETE CASCADE ON UPDATE CASCADE
-- ;
-- sent: simple
-- AddForeignKey
ALTER TABLE "_BookToTag" ADD CONSTRAINT "_BookToTag_A_fkey" FOREIGN KEY ("A") REFERENCES "books"("id") ON DELETE CASCADE ON UPDATE CASCADE
-- ;
-- sent: simple
-- AddForeignKey
ALTER TABLE "_BookToTag" ADD CONSTRAINT "_BookToTag_B_fkey" FOREIGN KEY ("B") REFERENCES "tags"("id") ON DELETE CASCADE ON UPDATE CASCADE
-- ;
-- sent: simple
COMMIT
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."authors"."id" FROM "public"."authors" WHERE 1=1 OFFSET $1) AS "sub"
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], data bytea, day date, local timestamp[3], at timestamptz[3], doc jsonb, uid uuid
INSERT INTO "public"."kinds" ("small","big","price","ratio","ok","name","data","day","local","at","doc","uid") VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12) RETURNING "public"."kinds"."id", "public"."kinds"."small", "public"."kinds"."big", "public"."kinds"."price", "public"."kinds"."ratio", "public"."kinds"."ok", "public"."kinds"."name", "public"."kinds"."data", "public"."kinds"."day", "public"."kinds"."local", "public"."kinds"."at", "public"."kinds"."doc", "public"."kinds"."uid"
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, price numeric[786440], ratio float8, ok bool, name varchar[44], data bytea, day date, local timestamp[3], at timestamptz[3], doc jsonb, uid uuid
INSERT INTO "public"."kinds" DEFAULT VALUES RETURNING "public"."kinds"."id", "public"."kinds"."small", "public"."kinds"."big", "public"."kinds"."price", "public"."kinds"."ratio", "public"."kinds"."ok", "public"."kinds"."name", "public"."kinds"."data", "public"."kinds"."day", "public"."kinds"."local", "public"."kinds"."at", "public"."kinds"."doc", "public"."kinds"."uid"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."small" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."big" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."price" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."ratio" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."ok" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."name" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."data" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."day" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."local" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."at" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."doc"::jsonb = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE "public"."kinds"."uid" = $1 OFFSET $2) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."kinds"."id" FROM "public"."kinds" WHERE ("public"."kinds"."doc"#>ARRAY[$1, $2]::text[])::jsonb::jsonb = $3 OFFSET $4) AS "sub"
-- ;
-- sent: extended
-- columns: id int4
INSERT INTO "public"."authors" ("name","born") VALUES ($1,$2) RETURNING "public"."authors"."id"
-- ;
-- sent: extended
-- columns: id uuid
INSERT INTO "public"."books" ("id","author_id","title","price","created","updated") VALUES ($1,$2,$3,$4,$5,$6) RETURNING "public"."books"."id"
-- ;
-- sent: extended
-- columns: id int8
INSERT INTO "public"."tags" ("word") VALUES ($1) RETURNING "public"."tags"."id"
-- ;
-- sent: extended
INSERT INTO "public"."_BookToTag" ("A","B") VALUES ($1,$2) ON CONFLICT DO NOTHING
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date
SELECT "public"."authors"."id", "public"."authors"."name", "public"."authors"."born" FROM "public"."authors" WHERE "public"."authors"."id" = $1 LIMIT $2 OFFSET $3
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], created timestamptz[3], updated timestamp[3]
SELECT "public"."books"."id", "public"."books"."author_id", "public"."books"."title", "public"."books"."price", "public"."books"."created", "public"."books"."updated" FROM "public"."books" WHERE "public"."books"."author_id" = $1 ORDER BY "public"."books"."title" ASC OFFSET $2
-- ;
-- sent: extended
-- columns: id int8, word text, "BookToTag@Book" uuid
SELECT "public"."tags"."id", "public"."tags"."word", "t0"."A" AS "BookToTag@Book" FROM "public"."tags" INNER JOIN "public"."_BookToTag" AS "t0" ON "t0"."B" = "public"."tags"."id" WHERE (1=1 AND "t0"."A" IN ($1,$2)) OFFSET $3
-- ;
-- sent: extended
INSERT INTO "public"."tags" ("word") VALUES ($1), ($2), ($3), ($4), ($5), ($6), ($7), ($8), ($9), ($10), ($11), ($12), ($13), ($14), ($15), ($16), ($17), ($18), ($19), ($20), ($21), ($22), ($23), ($24), ($25), ($26), ($27), ($28), ($29), ($30), ($31), ($32), ($33), ($34), ($35), ($36), ($37), ($38), ($39), ($40), ($41), ($42), ($43), ($44), ($45), ($46), ($47), ($48), ($49), ($50), ($51), ($52), ($53), ($54), ($55), ($56), ($57), ($58), ($59), ($60), ($61), ($62), ($63), ($64), ($65), ($66), ($67), ($68), ($69), ($70), ($71), ($72), ($73), ($74), ($75), ($76), ($77), ($78), ($79), ($80), ($81), ($82), ($83), ($84), ($85), ($86), ($87), ($88), ($89), ($90), ($91), ($92), ($93), ($94), ($95), ($96), ($97), ($98), ($99), ($100)
-- ;
-- sent: extended
INSERT INTO "public"."tags" ("word") VALUES ($1) ON CONFLICT DO NOTHING
-- ;
-- sent: extended
DELETE FROM "public"."tags" WHERE "public"."tags"."word" ILIKE ($1 || '%')
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], created timestamptz[3], updated timestamp[3]
UPDATE "public"."books" SET "title" = $1, "price" = ("public"."books"."price" + $2), "updated" = $3 WHERE (("public"."books"."author_id" = $4 AND "public"."books"."title" = $5) AND 1=1) RETURNING "public"."books"."id", "public"."books"."author_id", "public"."books"."title", "public"."books"."price", "public"."books"."created", "public"."books"."updated"
-- ;
-- sent: extended
-- columns: id int4
SELECT "public"."authors"."id" FROM "public"."authors" WHERE ("public"."authors"."name" = $1 AND 1=1) OFFSET $2
-- ;
-- sent: extended
-- columns: id int4
INSERT INTO "public"."authors" ("name") VALUES ($1) RETURNING "public"."authors"."id"
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date
INSERT INTO "public"."authors" ("name") VALUES ($1) ON CONFLICT ("name") DO UPDATE SET "name" = $2 WHERE ("public"."authors"."name" = $3 AND 1=1) RETURNING "public"."authors"."id", "public"."authors"."name", "public"."authors"."born"
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], created timestamptz[3], updated timestamp[3]
SELECT "public"."books"."id", "public"."books"."author_id", "public"."books"."title", "public"."books"."price", "public"."books"."created", "public"."books"."updated" FROM "public"."books" LEFT JOIN "public"."authors" AS "j0" ON ("j0"."id") = ("public"."books"."author_id") WHERE (("j0"."name"::text LIKE ('%' || $1 || '%') AND ("j0"."id" IS NOT NULL)) AND "public"."books"."price" >= $2) ORDER BY "public"."books"."price" DESC, "public"."books"."title" ASC LIMIT $3 OFFSET $4
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date, _aggr_count_books int8
SELECT "public"."authors"."id", "public"."authors"."name", "public"."authors"."born", COALESCE("aggr_selection_0_Book"."_aggr_count_books", 0) AS "_aggr_count_books" FROM "public"."authors" LEFT JOIN (SELECT "public"."books"."author_id", COUNT(*) AS "_aggr_count_books" FROM "public"."books" WHERE 1=1 GROUP BY "public"."books"."author_id") AS "aggr_selection_0_Book" ON ("public"."authors"."id" = "aggr_selection_0_Book"."author_id") WHERE (EXISTS(SELECT "t0"."author_id" FROM "public"."books" AS "t0" WHERE (EXISTS(SELECT "t1"."A" FROM "public"."_BookToTag" AS "t1" INNER JOIN "public"."tags" AS "j1" ON ("j1"."id") = ("t1"."B") WHERE ("j1"."word" = $1 AND ("t0"."id") = ("t1"."A") AND "t1"."A" IS NOT NULL)) AND ("public"."authors"."id") = ("t0"."author_id") AND "t0"."author_id" IS NOT NULL)) OR NOT EXISTS(SELECT "t2"."author_id" FROM "public"."books" AS "t2" WHERE (1=1 AND ("public"."authors"."id") = ("t2"."author_id") AND "t2"."author_id" IS NOT NULL))) ORDER BY "public"."authors"."name" ASC OFFSET $2
-- ;
-- sent: extended
-- columns: "_sum$price" numeric, "_avg$price" numeric, "_count$_all" int8
SELECT SUM("price") AS "_sum$price", AVG("price") AS "_avg$price", COUNT(*) AS "_count$_all" FROM (SELECT "public"."books"."price", "public"."books"."id" FROM "public"."books" WHERE 1=1 OFFSET $1) AS "sub"
-- ;
-- sent: extended
-- columns: "_count$_all" int8, author_id int4
SELECT COUNT(*) AS "_count$_all", "public"."books"."author_id" FROM "public"."books" WHERE 1=1 GROUP BY "public"."books"."author_id" HAVING SUM("public"."books"."price") > $1 OFFSET $2
-- ;
-- sent: extended
-- columns: name varchar[54]
SELECT name FROM authors WHERE id = $1
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date
DELETE FROM "public"."authors" WHERE ("public"."authors"."name" = $1 AND 1=1) RETURNING "public"."authors"."id", "public"."authors"."name", "public"."authors"."born"
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date
-- fails: 22001 value too long for type character varying(50)
INSERT INTO "public"."authors" ("name") VALUES ($1) RETURNING "public"."authors"."id", "public"."authors"."name", "public"."authors"."born"
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], created timestamptz[3], updated timestamp[3]
-- fails: 23503 insert or update on table "books" violates foreign key constraint "books_author_id_fkey"
INSERT INTO "public"."books" ("id","author_id","title","price","created","updated") VALUES ($1,$2,$3,$4,$5,$6) RETURNING "public"."books"."id", "public"."books"."author_id", "public"."books"."title", "public"."books"."price", "public"."books"."created", "public"."books"."updated"
-- ;
-- sent: extended
-- columns: id int4, name varchar[54], born date
UPDATE "public"."authors" SET "name" = $1 WHERE ("public"."authors"."name" = $2 AND 1=1) RETURNING "public"."authors"."id", "public"."authors"."name", "public"."authors"."born"
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: extended
-- columns: id int8, word text
INSERT INTO "public"."tags" ("word") VALUES ($1) RETURNING "public"."tags"."id", "public"."tags"."word"
-- ;
-- sent: simple
ROLLBACK
-- ;
-- sent: simple
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
-- ;
-- sent: extended
-- columns: "_count$_all" int8
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "public"."tags"."id" FROM "public"."tags" WHERE "public"."tags"."word" IN ($1,$2) OFFSET $3) AS "sub"
