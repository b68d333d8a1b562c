-- sent: simple
CREATE SCHEMA IF NOT EXISTS "drizzle"
-- ;
-- sent: simple
			CREATE TABLE IF NOT EXISTS "drizzle"."__drizzle_migrations" (
				id SERIAL PRIMARY KEY,
				hash text NOT NULL,
				created_at bigint
			)
-- ;
-- sent: simple
-- columns: id int4, hash text, created_at int8
select id, hash, created_at from "drizzle"."__drizzle_migrations" order by created_at desc limit 1
-- ;
-- sent: simple
begin
-- ;
-- sent: simple
CREATE TABLE "authors" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" varchar(50) NOT NULL,
	"born" date,
	CONSTRAINT "authors_name_unique" UNIQUE("name")
);
-- ;
-- sent: simple
CREATE TABLE IF NOT EXISTS "books" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"author_id" integer NOT NULL,
	"title" text NOT NULL,
	"price" numeric(10, 2) DEFAULT '0' NOT NULL
);
-- ;
-- sent: simple
CREATE TABLE "kinds" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "kinds_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"small" smallint,
	"big" bigint,
	"ratio" double precision,
	"part" real,
	"ok" boolean,
	"name" varchar(40),
	"day" date,
	"clock" time,
	"local" timestamp,
	"at" timestamp (3) with time zone,
	"doc" json,
	"docb" jsonb,
	"uid" uuid
);
-- ;
-- sent: simple
ALTER TABLE "books" ADD CONSTRAINT "books_author_id_authors_id_fk" FOREIGN KEY ("author_id") REFERENCES "public"."authors"("id") ON DELETE cascade ON UPDATE no action;
-- ;
-- sent: extended
insert into "drizzle"."__drizzle_migrations" ("hash", "created_at") values($1, $2)
-- ;
-- sent: simple
ALTER TABLE "authors" ALTER COLUMN "name" SET DATA TYPE varchar(120);
-- ;
-- sent: simple
ALTER TABLE "authors" ADD COLUMN "nick" text DEFAULT 'none';
-- ;
-- sent: simple
CREATE INDEX "books_title_index" ON "books" USING btree ("title");
-- ;
-- sent: simple
ALTER TABLE "books" ADD CONSTRAINT "price_not_negative" CHECK ("books"."price" >= 0);
-- ;
-- sent: simple
commit
-- ;
-- sent: simple
CREATE SCHEMA IF NOT EXISTS "drizzle"
-- ;
-- sent: simple
			CREATE TABLE IF NOT EXISTS "drizzle"."__drizzle_migrations" (
				id SERIAL PRIMARY KEY,
				hash text NOT NULL,
				created_at bigint
			)
-- ;
-- sent: simple
-- columns: n int4
SELECT count(*)::int AS n FROM drizzle.__drizzle_migrations
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
insert into "kinds" ("id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid") values (default, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) returning "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid"
-- ;
-- sent: simple
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
insert into "kinds" ("id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid") values (default, default, default, default, default, default, default, default, default, default, default, default, default, default) returning "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid"
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."small" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."big" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."ratio" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."part" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."ok" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."name" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."day" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."clock" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."local" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."at" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."docb" = $1
-- ;
-- sent: extended
-- columns: id int4, small int2, big int8, ratio float8, part float4, ok bool, name varchar[44], day date, clock time, local timestamp, at timestamptz[3], doc json, docb jsonb, uid uuid
select "id", "small", "big", "ratio", "part", "ok", "name", "day", "clock", "local", "at", "doc", "docb", "uid" from "kinds" where "kinds"."uid" = $1
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
insert into "authors" ("id", "name", "born", "nick") values (default, $1, $2, default), (default, $3, default, default) returning "id", "name", "born", "nick"
-- ;
-- sent: extended
insert into "books" ("id", "author_id", "title", "price") values (default, $1, $2, $3), (default, $4, $5, $6), (default, $7, $8, $9), (default, $10, $11, $12), (default, $13, $14, $15), (default, $16, $17, $18), (default, $19, $20, $21), (default, $22, $23, $24), (default, $25, $26, $27), (default, $28, $29, $30), (default, $31, $32, $33), (default, $34, $35, $36), (default, $37, $38, $39), (default, $40, $41, $42), (default, $43, $44, $45), (default, $46, $47, $48), (default, $49, $50, $51), (default, $52, $53, $54), (default, $55, $56, $57), (default, $58, $59, $60), (default, $61, $62, $63), (default, $64, $65, $66), (default, $67, $68, $69), (default, $70, $71, $72), (default, $73, $74, $75), (default, $76, $77, $78), (default, $79, $80, $81), (default, $82, $83, $84), (default, $85, $86, $87), (default, $88, $89, $90), (default, $91, $92, $93), (default, $94, $95, $96), (default, $97, $98, $99), (default, $100, $101, $102), (default, $103, $104, $105), (default, $106, $107, $108), (default, $109, $110, $111), (default, $112, $113, $114), (default, $115, $116, $117), (default, $118, $119, $120), (default, $121, $122, $123), (default, $124, $125, $126), (default, $127, $128, $129), (default, $130, $131, $132), (default, $133, $134, $135), (default, $136, $137, $138), (default, $139, $140, $141), (default, $142, $143, $144), (default, $145, $146, $147), (default, $148, $149, $150), (default, $151, $152, $153), (default, $154, $155, $156), (default, $157, $158, $159), (default, $160, $161, $162), (default, $163, $164, $165), (default, $166, $167, $168), (default, $169, $170, $171), (default, $172, $173, $174), (default, $175, $176, $177), (default, $178, $179, $180), (default, $181, $182, $183), (default, $184, $185, $186), (default, $187, $188, $189), (default, $190, $191, $192), (default, $193, $194, $195), (default, $196, $197, $198), (default, $199, $200, $201), (default, $202, $203, $204), (default, $205, $206, $207), (default, $208, $209, $210), (default, $211, $212, $213), (default, $214, $215, $216), (default, $217, $218, $219), (default, $220, $221, $222), (default, $223, $224, $225), (default, $226, $227, $228), (default, $229, $230, $231), (default, $232, $233, $234), (default, $235, $236, $237), (default, $238, $239, $240), (default, $241, $242, $243), (default, $244, $245, $246), (default, $247, $248, $249), (default, $250, $251, $252), (default, $253, $254, $255), (default, $256, $257, $258), (default, $259, $260, $261), (default, $262, $263, $264), (default, $265, $266, $267), (default, $268, $269, $270), (default, $271, $272, $273), (default, $274, $275, $276), (default, $277, $278, $279), (default, $280, $281, $282), (default, $283, $284, $285), (default, $286, $287, $288), (default, $289, $290, $291), (default, $292, $293, $294), (default, $295, $296, $297), (default, $298, $299, $300)
-- ;
-- sent: extended
update "books" set "price" = "books"."price" + 1 where "books"."price" > $1
-- ;
-- sent: extended
-- columns: title text
delete from "books" where "books"."title" ilike $1 returning "title"
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
insert into "authors" ("id", "name", "born", "nick") values (default, $1, default, $2) on conflict ("name") do update set "nick" = excluded.nick returning "id", "name", "born", "nick"
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
insert into "authors" ("id", "name", "born", "nick") values (default, $1, default, default) on conflict do nothing returning "id", "name", "born", "nick"
-- ;
-- sent: simple
-- columns: name varchar[124], count int8, sum numeric
select "authors"."name", count("books"."id"), sum("books"."price") from "authors" left join "books" on "books"."author_id" = "authors"."id" group by "authors"."name" order by count("books"."id") desc, "authors"."name" asc
-- ;
-- sent: extended
-- columns: id uuid, title text
with "dear" as (select "id", "title" from "books" where "books"."price" > $1) select "id", "title" from "dear" order by "dear"."title" limit $2 offset $3
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
select "id", "name", "born", "nick" from "authors" where ("authors"."id" in (select "author_id" from "books") and "authors"."nick" = $1)
-- ;
-- sent: extended
-- columns: count int8
select count(*) as count from "books" where "books"."author_id" = $1;
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
select "id", "name", "born", "nick" from "authors" where "authors"."name" = $1
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text, books json
select "authors"."id", "authors"."name", "authors"."born", "authors"."nick", "authors_books"."data" as "books" from "authors" "authors" left join lateral (select coalesce(json_agg(json_build_array("authors_books"."title", "authors_books"."price") order by "authors_books"."title" asc), '[]'::json) as "data" from (select * from "books" "authors_books" where "authors_books"."author_id" = "authors"."id" order by "authors_books"."title" asc limit $1) "authors_books") "authors_books" on true where "authors"."name" = $2
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], author json
select "books"."id", "books"."author_id", "books"."title", "books"."price", "books_author"."data" as "author" from "books" "books" left join lateral (select json_build_array("books_author"."id", "books_author"."name", "books_author"."born", "books_author"."nick") as "data" from (select * from "authors" "books_author" where "books_author"."id" = "books"."author_id" limit $1) "books_author") "books_author" on true limit $2
-- ;
-- sent: extended
-- fails: 22001 value too long for type character varying(120)
insert into "authors" ("id", "name", "born", "nick") values (default, $1, default, default)
-- ;
-- sent: extended
-- fails: 23502 null value in column "name" of relation "authors" violates not-null constraint
INSERT INTO authors (name) VALUES ($1)
-- ;
-- sent: extended
-- fails: 23503 insert or update on table "books" violates foreign key constraint "books_author_id_authors_id_fk"
insert into "books" ("id", "author_id", "title", "price") values (default, $1, $2, default)
-- ;
-- sent: extended
-- fails: 23514 new row for relation "books" violates check constraint "price_not_negative"
insert into "books" ("id", "author_id", "title", "price") values (default, $1, $2, $3)
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
SELECT * FROM missing
-- ;
-- sent: simple
delete from "books"
-- ;
-- sent: simple
rollback
-- ;
-- sent: simple
-- columns: count int8
select count(*) as count from "books";
-- ;
-- sent: simple
begin isolation level serializable read write
-- ;
-- sent: simple
savepoint sp1
-- ;
-- sent: simple
rollback to savepoint sp1
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], born date, nick text
select "id", "name", "born", "nick" from "authors" where "authors"."name" = $1 for update
-- ;
-- sent: extended
-- columns: count int8
select count(*) as count from "authors" where "authors"."name" = $1;
