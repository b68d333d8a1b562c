-- sent: simple
-- columns: version text
select version();
-- ;
-- sent: extended
-- columns: table_catalog name, table_schema name, table_name name, table_type varchar, self_referencing_column_name name, reference_generation varchar, user_defined_type_catalog name, user_defined_type_schema name, user_defined_type_name name, is_insertable_into varchar[7], is_typed varchar[7], commit_action varchar
select * from information_schema.tables where table_name = $1 and table_schema = current_schema()
-- ;
-- sent: simple
create table "knex_migrations" ("id" serial primary key, "name" varchar(255), "batch" integer, "migration_time" timestamptz)
-- ;
-- sent: simple
create table "knex_migrations_lock" ("index" serial primary key, "is_locked" integer)
-- ;
-- sent: simple
-- columns: index int4, is_locked int4
select * from "knex_migrations_lock"
-- ;
-- sent: extended
insert into "knex_migrations_lock" ("is_locked") values ($1)
-- ;
-- sent: simple
-- columns: name varchar[259]
select "name" from "knex_migrations" order by "id" asc
-- ;
-- sent: simple
BEGIN;
-- ;
-- sent: extended
update "knex_migrations_lock" set "is_locked" = $1 where "is_locked" = $2
-- ;
-- sent: simple
-- columns: max_batch int4
select max("batch") as "max_batch" from "knex_migrations"
-- ;
-- sent: simple
create table "authors" ("id" serial primary key, "name" varchar(50) not null, "born" date, "created_at" timestamptz not null default CURRENT_TIMESTAMP, "updated_at" timestamptz not null default CURRENT_TIMESTAMP)
-- ;
-- sent: simple
alter table "authors" add constraint "authors_name_unique" unique ("name")
-- ;
-- sent: simple
create table "books" ("id" uuid, "author_id" integer not null, "title" text not null, "price" decimal(10, 2) default '0', "sold" boolean not null default '0', "state" text check ("state" in ('new', 'used')) default 'new', "doc" jsonb, "data" bytea, "big" bigint, "ratio" double precision, "at" timestamptz, "clock" time, constraint "books_pkey" primary key ("id"), constraint price_not_negative check ("price" >= 0))
-- ;
-- sent: simple
alter table "books" add constraint "books_author_id_foreign" foreign key ("author_id") references "authors" ("id") on delete CASCADE
-- ;
-- sent: simple
create index "books_title_index" on "books" ("title")
-- ;
-- sent: simple
alter table "books" add constraint "one_title_an_author" unique ("author_id", "title")
-- ;
-- sent: extended
insert into "knex_migrations" ("batch", "migration_time", "name") values ($1, $2, $3)
-- ;
-- sent: extended
update "knex_migrations_lock" set "is_locked" = $1
-- ;
-- sent: simple
COMMIT;
-- ;
-- sent: extended
insert into "authors" ("born", "name") values ($1, $2)
-- ;
-- sent: simple
alter table "authors" add column "nick" varchar(255) default 'none'
-- ;
-- sent: simple
alter table "authors" alter column "name" drop default
-- ;
-- sent: simple
alter table "authors" alter column "name" drop not null
-- ;
-- sent: simple
alter table "authors" alter column "name" type varchar(120) using ("name"::varchar(120))
-- ;
-- sent: simple
alter table "authors" alter column "name" set not null
-- ;
-- sent: simple
alter table "authors" rename "born" to "birthday"
-- ;
-- sent: simple
alter table "books" alter column "sold" drop not null
-- ;
-- sent: simple
drop index "books_title_index"
-- ;
-- sent: simple
create index "books_price" on "books" ("price", "title")
-- ;
-- sent: simple
alter table "books" alter column "price" set not null
-- ;
-- sent: extended
insert into "authors" ("name") values ($1)
-- ;
-- sent: extended
-- columns: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, column_default varchar, is_nullable varchar[7], data_type varchar, character_maximum_length int4, character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, interval_precision int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar[7], is_identity varchar[7], identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum varchar, identity_minimum varchar, identity_cycle varchar[7], is_generated varchar, generation_expression varchar, is_updatable varchar[7]
select * from information_schema.columns where table_name = $1 and column_name = $2 and table_schema = current_schema()
-- ;
-- sent: extended
-- columns: table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, column_default varchar, is_nullable varchar[7], data_type varchar, character_maximum_length int4, character_octet_length int4, numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type varchar, interval_precision int4, character_set_catalog name, character_set_schema name, character_set_name name, collation_catalog name, collation_schema name, collation_name name, domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name, udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, dtd_identifier name, is_self_referencing varchar[7], is_identity varchar[7], identity_generation varchar, identity_start varchar, identity_increment varchar, identity_maximum varchar, identity_minimum varchar, identity_cycle varchar[7], is_generated varchar, generation_expression varchar, is_updatable varchar[7]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema()
-- ;
-- sent: extended
-- columns: nick varchar[259]
select "nick" from "authors" where "name" = $1
-- ;
-- sent: extended
-- columns: id int4
select "id" from "authors" where "name" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
insert into "books" ("at", "author_id", "big", "clock", "data", "doc", "id", "price", "ratio", "sold", "state", "title") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning *
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "id" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "title" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "price" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "sold" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "state" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "data" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "big" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "ratio" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "at" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where "clock" = $1
-- ;
-- sent: extended
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books" where jsonb_path_query_first("doc", $1)::int = $2
-- ;
-- sent: extended
insert into "authors" ("birthday", "name") values ($1, $2), ($3, $4), ($5, $6), ($7, $8), ($9, $10), ($11, $12), ($13, $14), ($15, $16), ($17, $18), ($19, $20), ($21, $22), ($23, $24), ($25, $26), ($27, $28), ($29, $30), ($31, $32), ($33, $34), ($35, $36), ($37, $38), ($39, $40), ($41, $42), ($43, $44), ($45, $46), ($47, $48), ($49, $50), ($51, $52), ($53, $54), ($55, $56), ($57, $58), ($59, $60), ($61, $62), ($63, $64), ($65, $66), ($67, $68), ($69, $70), ($71, $72), ($73, $74), ($75, $76), ($77, $78), ($79, $80), ($81, $82), ($83, $84), ($85, $86), ($87, $88), ($89, $90), ($91, $92), ($93, $94), ($95, $96), ($97, $98), ($99, $100), ($101, $102), ($103, $104), ($105, $106), ($107, $108), ($109, $110), ($111, $112), ($113, $114), ($115, $116), ($117, $118), ($119, $120), ($121, $122), ($123, $124), ($125, $126), ($127, $128), ($129, $130), ($131, $132), ($133, $134), ($135, $136), ($137, $138), ($139, $140), ($141, $142), ($143, $144), ($145, $146), ($147, $148), ($149, $150), ($151, $152), ($153, $154), ($155, $156), ($157, $158), ($159, $160), ($161, $162), ($163, $164), ($165, $166), ($167, $168), ($169, $170), ($171, $172), ($173, $174), ($175, $176), ($177, $178), ($179, $180), ($181, $182), ($183, $184), ($185, $186), ($187, $188), ($189, $190), ($191, $192), ($193, $194), ($195, $196), ($197, $198), ($199, $200)
-- ;
-- sent: extended
insert into "authors" ("birthday", "name") values ($1, $2), ($3, $4), ($5, $6), ($7, $8), ($9, $10), ($11, $12), ($13, $14), ($15, $16), ($17, $18), ($19, $20), ($21, $22), ($23, $24), ($25, $26), ($27, $28), ($29, $30), ($31, $32), ($33, $34), ($35, $36), ($37, $38), ($39, $40), ($41, $42), ($43, $44), ($45, $46), ($47, $48), ($49, $50), ($51, $52), ($53, $54), ($55, $56), ($57, $58), ($59, $60), ($61, $62), ($63, $64), ($65, $66), ($67, $68), ($69, $70), ($71, $72), ($73, $74), ($75, $76), ($77, $78), ($79, $80), ($81, $82), ($83, $84), ($85, $86), ($87, $88), ($89, $90), ($91, $92), ($93, $94), ($95, $96), ($97, $98), ($99, $100)
-- ;
-- sent: extended
update "authors" set "nick" = $1 where "name" like $2
-- ;
-- sent: extended
delete from "authors" where "nick" = $1
-- ;
-- sent: extended
-- columns: n int8
select count(*) as "n" from "authors" limit $1
-- ;
-- sent: extended
-- columns: name varchar[124], nick varchar[259]
insert into "authors" ("name", "nick") values ($1, $2) on conflict ("name") do update set "nick" = excluded."nick" returning "name", "nick"
-- ;
-- sent: extended
insert into "authors" ("name") values ($1) on conflict do nothing
-- ;
-- sent: extended
-- columns: name varchar[124], n int8
select "a"."name", count("b"."id") as "n" from "authors" as "a" left join "books" as "b" on "b"."author_id" = "a"."id" group by "a"."name" order by "n" desc, "a"."name" asc limit $1
-- ;
-- sent: extended
-- columns: id int4, name varchar[124]
with "recent" as (select "id", "name" from "authors" where "birthday" > $1) select * from "recent" where "id" in (select "id" from "authors") and not exists (select * from "books" where books.author_id = recent.id) order by "name" asc limit $2
-- ;
-- sent: extended
-- columns: nick varchar[259]
select distinct "nick" from "authors" where "id" between $1 and $2 or "nick" is null
-- ;
-- sent: extended
update "authors" set "id" = "id" + $1 where "name" ilike $2
-- ;
-- sent: extended
-- columns: name varchar[124]
select "name" from "authors" where "name" in ($1) union select "name" from "authors" where "name" = $2
-- ;
-- sent: extended
-- columns: sum int4
SELECT $1::int + $2 AS sum
-- ;
-- sent: extended
-- columns: id int4
select "id" from "authors"
-- ;
-- sent: extended
-- fails: 23514 new row for relation "books" violates check constraint "books_state_check"
insert into "books" ("at", "author_id", "big", "clock", "data", "doc", "id", "price", "ratio", "sold", "state", "title") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
-- ;
-- sent: simple
-- fails: 42P01 relation "missing" does not exist
select * from "missing"
-- ;
-- sent: simple
delete from "books"
-- ;
-- sent: simple
ROLLBACK
-- ;
-- sent: simple
BEGIN TRANSACTION ISOLATION LEVEL serializable;
-- ;
-- sent: simple
SAVEPOINT trx8;
-- ;
-- sent: simple
ROLLBACK TO SAVEPOINT trx8
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], birthday date, created_at timestamptz, updated_at timestamptz, nick varchar[259]
select * from "authors" where "name" = $1 for update skip locked
-- ;
-- sent: simple
-- columns: id uuid, author_id int4, title text, price numeric[655366], sold bool, state text, doc jsonb, data bytea, big int8, ratio float8, at timestamptz, clock time
select * from "books"
-- ;
-- sent: extended
-- columns: id int4, name varchar[124], birthday date, created_at timestamptz, updated_at timestamptz, nick varchar[259]
select * from "authors" where "name" = $1
-- ;
-- sent: simple
-- columns: id int4, name varchar[259], batch int4, migration_time timestamptz
select * from "knex_migrations" where "batch" = (select max("batch") from "knex_migrations") order by "id" desc
-- ;
-- sent: extended
delete from "authors" where "name" = $1
-- ;
-- sent: simple
drop index "books_price"
-- ;
-- sent: simple
create index "books_title_index" on "books" ("title")
-- ;
-- sent: simple
alter table "authors" drop column "nick"
-- ;
-- sent: simple
alter table "authors" rename "birthday" to "born"
-- ;
-- sent: extended
delete from "knex_migrations" where "name" = $1
-- ;
-- sent: simple
alter table "authors" add column "nick" varchar(255) default 'none'
-- ;
-- sent: simple
alter table "authors" alter column "name" drop default
-- ;
-- sent: simple
alter table "authors" alter column "name" drop not null
-- ;
-- sent: simple
alter table "authors" alter column "name" type varchar(120) using ("name"::varchar(120))
-- ;
-- sent: simple
alter table "authors" alter column "name" set not null
-- ;
-- sent: simple
alter table "authors" rename "born" to "birthday"
-- ;
-- sent: simple
alter table "books" alter column "sold" drop not null
-- ;
-- sent: simple
drop index "books_title_index"
-- ;
-- sent: simple
create index "books_price" on "books" ("price", "title")
-- ;
-- sent: simple
alter table "books" alter column "price" set not null
-- ;
-- sent: simple
drop index "books_price"
-- ;
-- sent: simple
create index "books_title_index" on "books" ("title")
-- ;
-- sent: simple
alter table "authors" drop column "nick"
-- ;
-- sent: simple
alter table "authors" rename "birthday" to "born"
-- ;
-- sent: simple
drop table "books"
-- ;
-- sent: simple
drop table "authors"
-- ;
-- sent: simple
drop table if exists "ledger"
-- ;
-- sent: simple
create table "ledger" ("id" bigserial primary key)
-- ;
-- sent: simple
comment on column "ledger"."id" is 'the key'
-- ;
-- sent: simple
create view "ledger_ids" ("id") as select "id" from "ledger"
-- ;
-- sent: simple
-- columns: id int8
select * from "ledger_ids"
-- ;
-- sent: simple
drop view "ledger_ids"
-- ;
-- sent: simple
alter table "ledger" rename to "book"
-- ;
-- sent: simple
truncate "book" restart identity
-- ;
-- sent: simple
drop table "book"
