-- What has no equality is no key.
CREATE TABLE k_t (a json PRIMARY KEY)
CREATE TABLE k_t (a json UNIQUE)
CREATE TABLE k_t (a json)
ALTER TABLE k_t ADD UNIQUE (a)
DROP TABLE k_t
-- A key that is equal and looks different.
CREATE TABLE k_p (a numeric PRIMARY KEY)
CREATE TABLE k_c (a numeric REFERENCES k_p)
INSERT INTO k_p VALUES (1.0)
INSERT INTO k_c VALUES (1.00)
UPDATE k_p SET a = 1.000
SELECT a, (SELECT a FROM k_p) FROM k_c
UPDATE k_c SET a = 1.0000
DROP TABLE k_c
DROP TABLE k_p
-- Views keep the columns they had, and what they read is not dropped under them.
create table t(a int primary key, b text)
create table u(a int, c text)
insert into t values(1,'x'),(2,'y')
insert into u values(1,'z')
create view w as select t.*, u.c from t join u using(a)
create view x as select * from t join u using(a)
create view y as select * from v
create view z as select a from t where b in (select * from (select b from t) q)
create view n as select count(*) from t
create view e as select a from t where exists(select * from u where u.a = t.a)
create view al as select * from t as k(p, q), u as "U u"
create view cte as with s as (select * from t) select * from s order by 1
alter table t add column d int default 7
select * from v order by 1
select * from w order by 1
select * from x order by 1
select * from y order by 1
select * from z order by 1
select * from n
select * from e
select * from al
select * from cte
insert into t values(3,'q',8)
select * from v order by 1
drop view v
drop table u
alter table t drop column b
alter table t drop column d
alter table u drop column c
alter table t alter b type varchar
alter table u alter a type bigint
drop view y
drop view v
drop view w
alter table u drop column c
drop view x
alter table u drop column c cascade
select * from al
drop table t cascade
select * from z
select * from n
drop view if exists cte cascade
drop view if exists al cascade
drop view if exists e cascade
drop view if exists n cascade
drop view if exists z cascade
drop view if exists y cascade
drop view if exists x cascade
drop view if exists w cascade
drop table if exists u cascade
drop table if exists t cascade
create table t(a int, b int)
create view v as select a from t
create view w as select * from v
create view x as select * from w
drop table t
drop view v
alter table t drop column b
alter table t drop column a
alter table t drop column a cascade
select * from x
create view v1 as select 1 from t
create view v2 as select * from v1
drop table t, v1, v2
drop view v2, v1
drop table t
drop view if exists v2 cascade
drop view if exists v1 cascade
drop view if exists x cascade
drop view if exists w cascade
drop view if exists v cascade
drop table if exists t cascade
create table t(a int, b int)
create table c(x int)
create or replace view v as select *, 1 as one from t
select * from v
create or replace view v as select a from t
drop view v cascade
select * from v
create view v4 as select * from t natural join c
create view v5 as select * from (values (1,2)) as s(m,n)
select * from v5
alter table t add e text
select * from v7
select * from v4
drop table t cascade
drop view if exists v5 cascade
drop view if exists v4 cascade
drop view if exists v cascade
drop table if exists c cascade
drop table if exists t cascade
create table parent(id int primary key)
create table child(id int references parent)
create view pv as select * from parent
drop table parent
drop table parent cascade
select * from child
drop view if exists pv cascade
drop table if exists child cascade
drop table if exists parent cascade
create view v as select * from nothing
create table t(a int)
create view v as select * from t, t
create view v as select x.*, y.* from t x, t y
create view v as select x.*, y.a as b from t x, t y
select * from v
alter table t add a2 int
select * from v
alter table t rename a2 to a3
select * from v
drop table if exists t cascade
drop view if exists v cascade
-- What is violated, and by what.
create table p(id serial primary key, name text unique, n numeric(6,2) default 5 check (n > 0), g int generated always as (id*2) stored, constraint zz check (name <> 'bad'), constraint aa check (length(name) < 100))
insert into p(name) values('a'),('b'),('c')
insert into p(name) values('a')
insert into p(name) values('d'),('a')
insert into p(name) values('d'),('d')
insert into p(name,n) values('d',-1)
insert into p(name,n) values('e',1),('d',-1.5),('f',-2)
insert into p(name) values('bad')
insert into p(name,n) values('bad', -1)
insert into p(id) values(1)
insert into p(id,name) values(1,'a')
insert into p values(null,'x')
insert into p select 1, 'q'
insert into p select 50+i, 'n' || i from generate_series(1,3) i
insert into p select 60+i, 'n' || (i % 3 + 3) from generate_series(1,6) i order by i
insert into p select 70+i, 'm' || i, 2 - i from generate_series(1,6) i order by i
update p set name = 'a' where id = 2
update p set name = 'zz'
update p set n = -n where id > 1
update p set id = null where id = 1
update p set id = id + 1
update p set n = n - 5, name = name || repeat('xyz', 40) where id=1
update p set n = n - 6, name = name || repeat('xüz', 30) where id=1
create table c(id int primary key, pid int not null references p, other text references p(name), b bytea, ts timestamp default '2020-01-02', arr int[], bo bool, unique(pid, other))
insert into c values(1, 1, 'a', '\x0102', default, '{1,2}', true)
insert into c values(2, 99, 'a')
insert into c values(2, 1, 'none')
insert into c values(2, 99, 'none')
insert into c values(2, 1, null),(3,98,null),(4,97,null)
insert into c values(2, null, 'b', '\x0102', default, '{1,2}', true)
insert into c values(2, 1, 'a', '\x0102', default, '{1,2}', true)
insert into c select 10 + i, 1, 'b' from generate_series(1,2) i
update c set pid = 77
update c set other = 'q' || other
update c set pid = null
delete from p
update p set id = 100 where id = 1
update p set name = 'new' where id = 1
update p set name = 'new' where id = 2
delete from p where name = 'a'
with x as (select 5 as a) insert into c select a, 500 from x
with x as (select 5 as a) insert into c select a, null from x
insert into c(id, pid) values (1, 1) on conflict do nothing
insert into c(id, pid) values (1, null) on conflict do nothing
create table self(id int primary key, up int references self)
insert into self values (1,1),(2,3),(3,1)
insert into self values (4,5)
insert into self values (5,6),(6,7)
delete from self where id = 3
delete from self where id in (2,3)
delete from self where id = 1
insert into self values (2,1)
update self set id = 9 where id = 1
update self set up = 8 where id = 2
create table cas(id int primary key references p on delete cascade)
insert into cas values (1)
create table gran(id int references cas)
insert into gran values (1)
delete from c
create unique index pidx on p(n) where n > 100
insert into p(id, name,n) values(201, 'k', 101)
create unique index pexp on p(lower(name))
create table multi(a int, b text, c date, primary key(a,b), unique(c), unique(b))
insert into multi values(1,'x','2020-01-01')
insert into multi values(1,'x','2020-01-01')
insert into multi values(1,'x',null)
insert into multi values(2,'y','2020-01-01')
insert into multi values(3,'y','2020-01-03'),(3,'y','2020-01-02')
insert into multi values(3,null,'2020-01-03')
insert into multi values(null,null,null)
create table u(id uuid primary key default gen_random_uuid(), a int not null check (a > 0), at timestamptz default now())
insert into u(a) values (1)
begin
insert into multi values(1,'x','2020-01-01')
rollback
select * from p order by id
create table ba(a numeric unique, b interval unique, c jsonb unique, d char(3) unique, e float8 unique)
insert into ba values (1.0, '1 day', '{"a":1}', 'a', 0)
insert into ba(a) values (1.00)
insert into ba(b) values ('24 hours')
insert into ba(c) values ('{"a":1.0}')
insert into ba(d) values ('a ')
insert into ba(e) values ('-0')
insert into ba(a) values (2.0), (2.00)
insert into ba(d) values ('z'), ('z ')
insert into multi values (1, 'x', '2030-02-02') returning a
insert into multi values (1, 'xx', '2030-02-02')
insert into c values (30, 1)
drop table if exists ba cascade
drop table if exists u cascade
drop table if exists multi cascade
drop table if exists gran cascade
drop table if exists cas cascade
drop table if exists self cascade
drop table if exists c cascade
drop table if exists p cascade
-- Columns that have their values from themselves.
create table t(id int generated always as identity primary key, a int, g int generated always as (a*2) stored)
insert into t(a) values (1)
insert into t(id,a) values (5,1)
insert into t values (5,1)
insert into t values (default,1)
insert into t(a,g) values (1,2)
insert into t(a,g) values (1,default)
update t set id = 100 where id = 1
update t set id = default where id = 1
update t set g = 5
insert into t(id,a) values (default,1),(7,2)
create table d(id int generated by default as identity (start 10 increment 5), a int)
insert into d(a) values (1),(2)
insert into d values (3,3)
insert into d values (null,3)
create table e(a text generated always as identity)
create table e(a int generated always as identity default 5)
create table e(a int default 5 generated always as (3) stored)
create table e(a int generated always as (b) stored, b int generated always as (3) stored)
create table e(a int generated always as (a+1) stored)
create table e(a int generated always as (random()) stored)
create table e(a int, b int generated always as (a) stored references t(id) on update cascade)
create table e(a int, b int generated always as (a) stored references t(id) on delete set null)
create table e(a int, b int generated always as (sum(a)) stored)
create table e(a int, b int generated always as ((select 1)) stored)
create table e(a int, b int generated always as (a/0) stored)
insert into e values (1)
create table f(a int, b int generated always as (a + 1) stored not null check (b > 0), primary key(b))
insert into f values (1)
insert into f values (1)
insert into f values (-5)
insert into f values (null)
create table s(id serial, b bigserial primary key)
insert into s default values
select * from s
\data 200|5 
drop table if exists s cascade
drop table if exists f cascade
drop table if exists e cascade
drop table if exists d cascade
drop table if exists t cascade
-- Comments.
create table t(a int, b text)
comment on table t is 'about t, it''s */ here'
comment on column t.b is 'col b'
comment on column public.t.a is 'col a'
select obj_description('t'::regclass), obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 1), col_description('t'::regclass, 2)
select objsubid, description from pg_description where objoid = 't'::regclass order by 1
insert into t values (1,'x')
alter table t rename b to c
alter table t add d int default 5
select col_description('t'::regclass, 2), obj_description('t'::regclass)
comment on column t.c is null
comment on column t.a is ''
comment on table t is E'new\nline'
select objsubid, description from pg_description where objoid = 't'::regclass order by 1
comment on column t.zz is 'x'
comment on table nope is 'x'
comment on column nope.a is 'x'
create view v as select * from t
comment on table v is 'x'
comment on column a is 'x'
select * from t
select col_description('t'::regclass, 0), col_description('t'::regclass, 9)
drop table t cascade
create table t(a int)
select obj_description('t'::regclass)
begin; comment on table t is 'rolled'; rollback
select obj_description('t'::regclass)
comment on table t is 'x'; alter table t rename to t2
select obj_description('t2'::regclass)
select c.relname, d.description from pg_class c join pg_description d on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass where c.relname like 't2'
drop view if exists v cascade
drop table if exists t cascade
-- The database may be said before the schema.
CREATE TABLE k_t (a integer)
COMMENT ON COLUMN public.k_t.a IS 'x'
SELECT col_description((quote_ident(current_database()) || '.public.k_t')::regclass, 1)
DROP TABLE k_t
-- The sequence of a column, found by its name.
create schema x
create table u(id serial primary key, "N m" int)
create table x.u(id serial primary key)
select pg_get_serial_sequence('u','id'), pg_get_serial_sequence('"u"','N m')
select pg_get_serial_sequence('u','nosuch')
select pg_get_serial_sequence('nou','nosuch')
select setval(pg_get_serial_sequence('"u"','id'), coalesce(max("id"), 1), max("id") is not null) from "u"
insert into u default values returning id
insert into u(id) values (70)
select setval(pg_get_serial_sequence('"u"','id'), coalesce(max("id"), 1), max("id") is not null) from "u"
insert into u default values returning id
select setval(pg_get_serial_sequence('x.u','id'), coalesce(max("id"), 1), max("id") is not null) from x."u"
insert into x.u default values returning id
select setval(pg_get_serial_sequence('u','id'), 5)
select currval(pg_get_serial_sequence('u','id')), nextval(pg_get_serial_sequence('u','id')::regclass)
select setval(pg_get_serial_sequence('u','N m'), 5)
select nextval(pg_get_serial_sequence('u','N m'))
select setval('u_id_seq', null), setval('u_id_seq', 3, null)
select setval(pg_get_serial_sequence('u','nosuch'), 5) from u
select pg_get_serial_sequence('u','id') from u limit 1
drop table u
drop schema x cascade
-- Sequences that are altered, and what is taken back.
create table u(id serial primary key, b int)
create sequence s start 1
alter sequence s owned by u.b
alter sequence s owned by nosuch.id
alter sequence s owned by u.x
alter sequence s owned by id
select pg_get_serial_sequence('u','b')
alter sequence public.s owned by none
select pg_get_serial_sequence('u','b')
select nextval('s'), nextval('s'), nextval('s')
alter sequence s increment by 10
select nextval('s')
begin
alter sequence s restart with 100
select nextval('s')
rollback
select nextval('s')
begin
alter sequence s increment 3
rollback
select nextval('s')
begin
savepoint a
alter sequence s restart
select nextval('s')
rollback to a
select nextval('s')
commit
select nextval('s')
alter sequence s maxvalue 20
alter sequence s minvalue 10
alter sequence s increment 0
alter sequence s restart 60 maxvalue 65 minvalue 50 start 55 increment by 3
select nextval('s'), nextval('s')
select nextval('s')
alter sequence s cycle
select nextval('s')
alter sequence s no cycle restart
select nextval('s')
alter sequence s no maxvalue no minvalue increment -1
select nextval('s')
alter sequence s no maxvalue minvalue -100 increment -1 restart with -5 start with -4
select nextval('s')
alter sequence s restart
select nextval('s')
alter sequence s increment by 2 increment by 3
alter sequence u restart
alter sequence if exists nos restart
alter sequence nos restart
alter sequence s cache 0
alter sequence s restart 1.5
alter sequence s as text
alter sequence s as smallint maxvalue 40000
alter sequence s as smallint minvalue -5 no maxvalue increment 1 start 1 restart
select seqstart, seqmin, seqmax, seqincrement, seqcycle, seqtypid::regtype from pg_sequence where seqrelid = 's'::regclass
alter sequence s as bigint
select seqstart, seqmin, seqmax, seqincrement, seqcycle, seqtypid::regtype from pg_sequence where seqrelid = 's'::regclass
alter sequence u_id_seq restart with 42
insert into u default values returning id
begin
select nextval('s')
alter sequence s restart 30
select nextval('s')
rollback
select nextval('s')
begin
alter sequence s increment 5
select nextval('s')
rollback
select nextval('s')
create sequence f start 7
begin
alter sequence f increment 5
select nextval('f'), nextval('f')
rollback
select nextval('f'), nextval('f')
alter sequence f owned by u.b
drop table u
select nextval('f')
create table i(n int generated always as identity)
alter sequence i_n_seq owned by none
alter sequence i_n_seq restart 9
insert into i default values returning n
create sequence c cache 0
drop table i
drop sequence s
drop sequence c
create table u(id serial primary key)
insert into u default values
insert into u default values returning id
begin
truncate u restart identity
insert into u default values returning id
rollback
insert into u default values returning id
drop table u
-- RETURNING's queries know the changed row beside their own tables.
create table ra(id int primary key, x int)
create table rb(id int primary key, y int)
insert into rb values (1,10),(2,20),(3,30)
insert into ra values (1,5),(2,6),(3,7) returning id, (select count(*) from rb where rb.id <= ra.id), ra.x+1
update ra set x = x+1 where id = 2 returning id, (select sum(y) from rb where rb.id <= ra.id), x
update ra as q set x = x+1 where id = 3 returning id, (select sum(y) from rb where rb.id <= q.id), x, q.x
insert into ra values (1,50),(4,9) on conflict(id) do update set x = excluded.x returning id, x, (select max(y) from rb where rb.id <= ra.id), (select (select count(*) from rb c where c.id > rb.id and c.id > ra.id) from rb where id = 1)
insert into ra as rb values (1,50),(5,9) on conflict(id) do update set x = excluded.x returning id, x, (select max(y) from rb c where c.id <= rb.id)
delete from ra where id = 2 returning *, (select min(y) from rb where rb.id >= ra.id), exists(select from rb where id = ra.id)
create table r2(id int primary key, x int)
insert into r2 values (1,2),(2,3) returning id, (select count(*) from rb where rb.id <= r2.id)
create table "select"(id int primary key, "from" int)
insert into "select" values (1,2),(2,3) returning id, (select count(*) from rb where rb.id <= "select".id), "from"
drop table "select"
drop table r2
-- Rows of VALUES beside a UNION ALL that ORDER BY merges.
create view rv as select id from rb union all select id from rb
select q.id, v.n from (select id from rb union all select id from rb) q cross join (values (1),(2)) v(n) order by 1,2
select q.id, v.n from (select id from rb union all select id from rb) q cross join (select n+1 from (values (1),(2)) w(n) where n > 0) v(n) order by 1,2
select q.id, v.n from rv q cross join (values (1),(2)) v(n) order by 1,2
with c(n) as (values (1),(2)) select q.id, v.n from rv q cross join c v order by 1,2
select q.id, v.n from (values (1),(2),(3)) v(n), rv q where q.id >= v.n order by q.id, v.n
drop view rv
drop table ra
drop table rb
-- Another value under the same type.
create table t(id int primary key, c int, d text check (length(d) < 5), n numeric(6,2), ts timestamptz)
insert into t values (1,10,'ab',1.25,'2024-01-01'),(2,20,'cd',2.5,'2024-01-02')
alter table t alter c type int using c+1
select * from t order by id
alter table t alter d type text using d || 'xyz'
alter table t alter d type text using d || 'x'
alter table t alter n type numeric(6,2) using n*2, alter ts type timestamptz using ts + interval '1 day'
alter table t alter id type int using id
select * from t order by id
alter table t alter id type int using 3
alter table t alter id type int using id+10
create table u(id int primary key, r int references t(id), q int generated always as identity, z bool default true)
insert into u(id,r) values (1,11)
alter table u alter r type int using r+100
alter table u alter r type int using r+1
alter table u alter q type int using q+40
alter table u alter z type bool using not z
select * from u
insert into u(id,r) values (2,13)
insert into u(id,r) values (2,12)
select * from u order by id
drop table u
drop table t
-- A CHECK that rows may violate, and an UPDATE that sets none of its columns.
create table nv(a int, b int, c int)
insert into nv values (-1, 1, 1), (1, 1, 1)
alter table nv add constraint nv_a check (a > 0) not valid
update nv set b = 2
update nv set b = 2 where a > 0
update nv set c = c where a < 0
select * from nv order by a
drop table nv
-- A key that protects what another one would take along.
create table p(id int primary key)
create table c1(id int primary key, pid int references p on delete cascade)
create table c2(id int primary key, pid int references p, c1 int references c1 on delete cascade)
insert into p values (1),(2),(3)
insert into c1 values (1,1),(2,2)
insert into c2 values (1,1,1),(2,null,2)
delete from p where id=1
delete from p where id=2 returning *
select * from c2
delete from p where id>=1
delete from c1 where id=1
delete from p
select * from c2
drop table c2
drop table c1
drop table p
-- Keys that take rows along on many ways, and one that protects some of them.
create table m0(id int primary key)
insert into m0 values (1),(2)
create table m1(id int primary key, k0 int references m0 on delete cascade)
insert into m1 values (1, 1),(2, 2)
create table m2(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade)
insert into m2 values (1, 1, 1),(2, 2, 2)
create table m3(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade, k2 int references m2 on delete cascade)
insert into m3 values (1, 1, 1, 1),(2, 2, 2, 2)
create table m4(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade, k2 int references m2 on delete cascade, k3 int references m3 on delete cascade)
insert into m4 values (1, 1, 1, 1, 1),(2, 2, 2, 2, 2)
create table m5(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade, k2 int references m2 on delete cascade, k3 int references m3 on delete cascade, k4 int references m4 on delete cascade)
insert into m5 values (1, 1, 1, 1, 1, 1),(2, 2, 2, 2, 2, 2)
create table m6(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade, k2 int references m2 on delete cascade, k3 int references m3 on delete cascade, k4 int references m4 on delete cascade, k5 int references m5 on delete cascade)
insert into m6 values (1, 1, 1, 1, 1, 1, 1),(2, 2, 2, 2, 2, 2, 2)
create table m7(id int primary key, k0 int references m0 on delete cascade, k1 int references m1 on delete cascade, k2 int references m2 on delete cascade, k3 int references m3 on delete cascade, k4 int references m4 on delete cascade, k5 int references m5 on delete cascade, k6 int references m6 on delete cascade)
insert into m7 values (1, 1, 1, 1, 1, 1, 1, 1),(2, 2, 2, 2, 2, 2, 2, 2)
create table mx(id int primary key, a int references m2 on delete cascade, b int references m2)
insert into mx values (1,1,1),(2,null,2)
delete from m0 where id = 1 returning id
delete from m0
delete from mx
delete from m0
select count(*) from m0
select count(*) from m1
select count(*) from m2
select count(*) from m3
select count(*) from m4
select count(*) from m5
select count(*) from m6
select count(*) from m7
drop table mx
drop table m7
drop table m6
drop table m5
drop table m4
drop table m3
drop table m2
drop table m1
drop table m0
-- Whatever ON CONFLICT would have done: what was violated is told.
create table fp(id int primary key, n int unique)
create table fc(id int primary key, p int references fp, q int unique, n int references fp(n), check (q > 0))
insert into fp values (1,1),(2,2),(3,3)
insert into fc values (1,1,1,1),(2,2,2,2)
insert into fc values (3,9,3) on conflict do nothing
insert into fc values (3,9,3) on conflict (id) do nothing
insert into fc values (3,1,2) on conflict (id) do nothing
insert into fc values (3,9,3) on conflict (id) do update set p = excluded.p
insert into fc values (2,9,3) on conflict (id) do update set p = excluded.p
insert into fc values (3,1,3,9) on conflict (id) do update set p = excluded.p, n = excluded.n returning id
insert into fc values (3,9,3) on conflict (id) do update set q = excluded.q + 1
insert into fc values (3,1,-3) on conflict (id) do update set p = excluded.p
insert into fc values (1,1,-3) on conflict (id) do update set p = excluded.p
insert into fc values (null,1,3) on conflict (id) do update set p = excluded.p
insert into fp values (4,1) on conflict (n) do nothing
select * from fc order by id
drop table fc
drop table fp
-- A value that is another each time hides no other column's.
create table gp(id uuid primary key default gen_random_uuid(), email text unique not null, n int check (n > 0))
create table gc(id uuid primary key default gen_random_uuid(), owner text not null references gp(email), k int generated always as (length(owner)) stored, unique(k))
insert into gp(email, n) values ('a', 1)
insert into gc(owner) values ('a')
insert into gc(owner) values ('b')
insert into gc(owner) values ('a')
insert into gc(id, owner) values (gen_random_uuid(), 'bb'), (gen_random_uuid(), 'a')
insert into gp(email) values ('a')
insert into gp(email, n) values ('b', 2), ('a', 3)
drop table gc
drop table gp
-- Another key of the row that refers is in nobody's way unless the deletion goes there, too.
create table ha(id int primary key)
create table hb(id int primary key)
create table hl(a int references ha on delete cascade, b int references hb on delete restrict, primary key (a, b))
insert into ha values (1),(2)
insert into hb values (1),(2)
insert into hl values (1,1),(2,2)
delete from hb where id = 1
delete from hb
update hb set id = id + 5 where id = 2
delete from ha where id = 1
delete from hb where id = 1
drop table hl
drop table hb
drop table ha
