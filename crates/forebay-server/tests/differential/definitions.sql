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
