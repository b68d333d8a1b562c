//! ALTER TABLE.

use super::world::World;

#[tokio::test]
async fn a_default_that_comes_later_is_not_that_of_rows_before() {
    let world = World::new().await;
    world
        .run("create table t (a int); insert into t values (1)")
        .await
        .unwrap();
    world.run("alter table t add b int").await.unwrap();
    world
        .run("alter table t alter b set default 5; insert into t (a) values (2)")
        .await
        .unwrap();
    world
        .run("alter table t alter b set default 6; insert into t (a) values (3)")
        .await
        .unwrap();
    world
        .run("alter table t add c text default 'x' not null, add d serial")
        .await
        .unwrap();
    let rows = world.run("select a, b, c, d from t order by a").await.unwrap();
    assert_eq!(rows, ["1||x|1", "2|5|x|2", "3|6|x|3"]);
    world.check().await;
}

#[tokio::test]
async fn rows_that_do_not_hold_refuse_the_constraint() {
    let world = World::new().await;
    world
        .run("create table p (id int primary key); create table t (a int, b int); insert into t values (null, 1), (1, 1)")
        .await
        .unwrap();
    for (script, sqlstate) in [
        ("alter table t alter a set not null", "23502"),
        ("alter table t add c int not null", "23502"),
        ("alter table t add primary key (a)", "23502"),
        ("alter table t add unique (b)", "23505"),
        ("alter table t add check (a > 1)", "23514"),
        ("alter table t add foreign key (a) references p", "23503"),
        ("alter table t alter b type smallint using b + 40000", "22003"),
        ("alter table t drop column zz", "42703"),
        ("alter table t drop constraint zz", "42704"),
        ("alter table zz add x int", "42P01"),
        ("alter table p add primary key (id)", "42P16"),
    ] {
        assert_eq!(world.state(script).await, sqlstate, "{script}");
    }
    // Nothing of them is left.
    world.run("insert into t values (null, 1)").await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn a_key_that_is_added_later_is_one() {
    let world = World::new().await;
    world
        .run("create table t (id int, a text); insert into t values (1, 'a'), (2, 'b'); alter table t add primary key (id)")
        .await
        .unwrap();
    world
        .run("create table c (x int references t on delete cascade); insert into c values (2)")
        .await
        .unwrap();
    world
        .run("insert into t values (1, 'z') on conflict (id) do update set a = excluded.a")
        .await
        .unwrap();
    assert_eq!(world.state("alter table t drop constraint t_pkey").await, "2BP01");
    world
        .run("alter table t drop constraint t_pkey cascade; delete from t where id = 2")
        .await
        .unwrap();
    assert_eq!(world.run("select x from c").await.unwrap(), ["2"]);
    world.run("insert into t values (1, 'second')").await.unwrap();
    world.check().await;
}

#[tokio::test]
async fn a_parent_whose_rows_are_copied_keeps_its_children() {
    let world = World::new().await;
    world
        .run(
            "create table p (id int primary key, x text); create table c (pid int references p on delete cascade);
             insert into p values (1, '10'), (2, '20'); insert into c values (1), (2)",
        )
        .await
        .unwrap();
    world
        .run("alter table p alter x type int using x::int, alter id type bigint")
        .await
        .unwrap();
    world
        .run("alter table p drop column x, add y text default 'y'")
        .await
        .unwrap();
    assert_eq!(world.run("select count(*) from c").await.unwrap(), ["2"]);
    world.run("delete from p where id = 1").await.unwrap();
    assert_eq!(world.run("select pid from c").await.unwrap(), ["2"]);
    world
        .run("alter table p rename to q; alter table q rename id to number")
        .await
        .unwrap();
    world.run("delete from q").await.unwrap();
    assert_eq!(world.run("select count(*) from c").await.unwrap(), ["0"]);
    world
        .run("insert into c values (null); drop table q cascade; insert into c values (77)")
        .await
        .unwrap();
    world.check().await;
}

#[tokio::test]
async fn a_rollback_takes_the_texts_back() {
    let world = World::new().await;
    world
        .run("create table t (a int not null, b text); insert into t values (1, 'x')")
        .await
        .unwrap();
    for alteration in [
        "alter table t alter a drop not null",
        "alter table t drop column b",
        "alter table t rename b to c",
        "alter table t rename to u",
        "alter table t add unique (b)",
    ] {
        world.run_in_vain(alteration).await;
        assert_eq!(world.run("select a, b from t").await.unwrap(), ["1|x"], "{alteration}");
        assert!(
            world.run("insert into t (b) values ('x')").await.is_err(),
            "{alteration}"
        );
    }
    world.check().await;
}

#[tokio::test]
async fn what_a_view_reads_is_not_changed_under_it() {
    let world = World::new().await;
    world
        .run("create table t (a int, b int); create view v as select a from t")
        .await
        .unwrap();
    for (script, sqlstate) in [
        ("alter table t drop column a", "2BP01"),
        ("alter table t alter a type text", "0A000"),
        ("alter table t rename a to x", "0A000"),
        ("alter table t rename to u", "0A000"),
    ] {
        assert_eq!(world.state(script).await, sqlstate, "{script}");
    }
    world
        .run("alter table t add c int default 1, drop column b; insert into t values (7)")
        .await
        .unwrap();
    assert_eq!(world.run("select * from v").await.unwrap(), ["7"]);
    world.check().await;
}

#[tokio::test]
async fn a_view_does_not_come_to_mean_something_else() {
    let world = World::new().await;
    world
        .run(
            "create table t (a int, b int); create table u (c int, d int);
             create view v as select a, c from t, u; create view w as select c from t natural join u",
        )
        .await
        .unwrap();
    for script in [
        "alter table u add a int",
        "alter table t add d int",
        "alter table u rename d to a",
        "alter table t rename b to d",
    ] {
        assert_eq!(world.state(script).await, "0A000", "{script}");
    }
    world
        .run("alter table t rename b to e; alter table u add f int")
        .await
        .unwrap();
    world.run("drop view w; alter table t add d int").await.unwrap();
}

#[tokio::test]
async fn tables_that_refer_to_one_another_are_emptied_together() {
    let world = World::new().await;
    world
        .run(
            "create table p (id serial primary key); create table c (pid int references p);
             insert into p values (default), (default); insert into c values (1)",
        )
        .await
        .unwrap();
    assert_eq!(world.state("truncate p").await, "0A000");
    world.run("truncate c, p restart identity").await.unwrap();
    assert_eq!(
        world.run("insert into p values (default) returning id").await.unwrap(),
        ["1"]
    );
    world.run("insert into c values (1); truncate p cascade").await.unwrap();
    assert_eq!(world.run("select count(*) from c").await.unwrap(), ["0"]);
    assert_eq!(world.state("drop sequence p_id_seq").await, "2BP01");
    world.check().await;
}

#[tokio::test]
async fn names_change_in_every_text() {
    let world = World::new().await;
    world
        .run(
            "create table t (a int check (t.a > 0), b int generated always as (a * 2) stored, constraint u unique (a));
             create index i on t (a, b); insert into t values (1)",
        )
        .await
        .unwrap();
    world
        .run("alter table t rename a to aa; alter table t rename constraint u to uu; alter index i rename to ii; alter table t rename to tt")
        .await
        .unwrap();
    world.run("update tt set aa = 4").await.unwrap();
    assert_eq!(world.run("select aa, b from tt").await.unwrap(), ["4|8"]);
    assert!(world.run("insert into tt values (0)").await.is_err());
    assert!(world.run("insert into tt values (4)").await.is_err());
    world.run("alter table tt drop constraint uu, drop constraint t_a_check; insert into tt values (0), (4); drop index ii")
        .await
        .unwrap();
    world.check().await;
}
