//! What is remembered of views, of what functions read, and of what row security lets through: followed to the tables that it hangs on, and made old by
//! whatever changes them.
//!
//! For longer, and again: `FOREBAY_FOLLOWED_ROUNDS`, `FOREBAY_FOLLOWED_SEED`.

use std::sync::OnceLock;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use testbed::Postgres;

use crate::client::Client;
use crate::crowd::until;
use crate::stream::{Stage, started};

/// A database of a server that nobody changes the catalog of beside.
fn stage(name: &'static str, lines: &str) -> Stage {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    Stage::at(SERVER.get_or_init(|| started(&[])), name, lines)
}

fn one<'a, T>(random: &mut StdRng, all: &'a [T]) -> &'a T {
    &all[random.random_range(0..all.len())]
}

/// What all tables are called, with the last of them read by a function alone.
const TABLES: [&str; 5] = ["f_0", "f_1", "f_2", "f_parts", "f_rates"];

const PLACE: &[&str] = &[
    "CREATE TABLE f_0 (id int PRIMARY KEY, a int, b int)",
    "CREATE TABLE f_1 (id int PRIMARY KEY, a int, b int)",
    "CREATE TABLE f_2 (id int PRIMARY KEY, a int, b int)",
    "CREATE TABLE f_parts (id int PRIMARY KEY, a int, b int) PARTITION BY RANGE (id)",
    "CREATE TABLE f_part_1 PARTITION OF f_parts FOR VALUES FROM (MINVALUE) TO (5)",
    "CREATE TABLE f_part_2 PARTITION OF f_parts DEFAULT",
    "CREATE TABLE f_rates (id int PRIMARY KEY, a int, b int)",
    "CREATE FUNCTION f_rate(of int) RETURNS int STABLE LANGUAGE plpgsql AS \
     $$ BEGIN RETURN (SELECT coalesce(sum(a), 0) FROM f_rates WHERE id >= of); END $$",
    // A view that is called as its table is, and whose columns are others.
    "CREATE SCHEMA shown",
    "CREATE VIEW shown.f_0 AS SELECT id + 1 AS id, b AS a, a AS b FROM public.f_0",
];

const RULES: &str =
    "[[rule]]\nname = \"rates\"\nfunction = \"f_rate\"\nstable_functions = true\ndepends_on = [\"f_rates\"]\n";

/// Views of one or two others, all with the same columns.
const VIEWS: &[&str] = &[
    "SELECT id, a + 1 AS a, b FROM ONE WHERE b % 2 = 0",
    "SELECT x.id, x.a, y.b FROM ONE x LEFT JOIN TWO y ON y.id = x.a % 5",
    "SELECT min(id) AS id, sum(a)::int AS a, count(*)::int AS b FROM ONE GROUP BY b % 3",
    "SELECT id, a, b FROM ONE UNION ALL SELECT id + 100, b, a FROM TWO",
    "WITH c AS (SELECT * FROM ONE) SELECT id, (SELECT max(y.a) FROM TWO y WHERE y.b = c.b) AS a, b FROM c",
    "SELECT id, a, b FROM ONE x WHERE EXISTS (SELECT FROM TWO y WHERE y.id = x.a)",
    "SELECT DISTINCT ON (a) id, a, b FROM ONE ORDER BY a, id",
    "SELECT x.id, x.a, y.total::int AS b FROM ONE x CROSS JOIN LATERAL (SELECT count(*) AS total FROM TWO y WHERE y.a = x.a) y",
    "SELECT id, a, rank() OVER (PARTITION BY b ORDER BY a, id)::int AS b FROM ONE",
];

const READS: &[&str] = &[
    "SELECT id, a, b FROM ONE ORDER BY 1, 2, 3",
    "SELECT id, a, b FROM ONE WHERE id = KEY ORDER BY 1, 2, 3",
    "SELECT count(*), sum(a), max(b) FROM ONE",
    "SELECT x.id, y.a FROM ONE x JOIN TWO y ON x.id = y.id ORDER BY 1, 2",
    "SELECT id, f_rate(id) FROM ONE ORDER BY 1, 2",
    "SELECT f_rate(KEY)",
];

const CHANGES: &[&str] = &[
    "UPDATE TABLE SET a = a + 1, b = b + 1 WHERE id = KEY",
    "UPDATE TABLE SET a = a + 1, b = b + 1 WHERE id = KEY",
    "UPDATE TABLE SET b = b + 1",
    "INSERT INTO TABLE VALUES (KEY, KEY, 1) ON CONFLICT (id) DO UPDATE SET a = TABLE.a + 2",
    "DELETE FROM TABLE WHERE id = KEY",
    "TRUNCATE TABLE",
    "UPDATE f_part_1 SET a = a + 1",
    "UPDATE shown.f_0 SET a = a + 1 WHERE id = KEY",
];

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A definition of one of these.
fn definition(random: &mut StdRng, of: &[String]) -> String {
    let text = *one(random, VIEWS);
    let (first, second) = (one(random, of), one(random, of));
    text.replace("ONE", first).replace("TWO", second)
}

/// Makes views, of tables and of one another, and names all that can be read.
fn make_views(random: &mut StdRng, server: &mut Client) -> Vec<String> {
    for sql in PLACE {
        server.run(sql);
    }
    for table in TABLES {
        server.run(&format!(
            "INSERT INTO {table} SELECT n, n % 4, n % 5 FROM generate_series(1, 9) n"
        ));
    }
    let mut all: Vec<String> = TABLES[..4].iter().map(|&table| table.to_owned()).collect();
    all.push("shown.f_0".to_owned());
    for number in 0..10 {
        // The later ones more often of views.
        let of = &all[all.len().saturating_sub(6)..];
        let text = definition(random, of);
        println!("f_view_{number}: {text}");
        server.run(&format!("CREATE VIEW f_view_{number} AS {text}"));
        all.push(format!("f_view_{number}"));
    }
    all
}

/// Of what is read: the same is asked straight, and must be told.
fn judge(name: &'static str, lines: &str, is_heard: bool) {
    let seed = set("FOREBAY_FOLLOWED_SEED").unwrap_or_else(rand::random);
    println!("FOREBAY_FOLLOWED_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let rounds = set("FOREBAY_FOLLOWED_ROUNDS").unwrap_or(80);
    let stage = stage(name, &format!("{lines}{RULES}"));
    let (mut client, mut server, mut judge) = (stage.client(), stage.straight(), stage.straight());
    let all = make_views(&mut random, &mut server);
    // All are published, and were when it begins.
    for read in &all {
        let read = format!("SELECT id FROM {read}");
        stage.until_remembered(&mut client, &format!("/* ttl:3600 */ {read} ORDER BY 1"), &read);
    }
    stage.until_remembered(&mut client, "/* ttl:3600 */ SELECT f_rate(1)", "SELECT f_rate");
    let (mut hits, mut different) = (0, 0);
    for round in 0..rounds {
        let key = |random: &mut StdRng| random.random_range(1..10).to_string();
        let reads: Vec<String> = (0..4)
            .map(|_| {
                let text = one(&mut random, READS).replace("KEY", &key(&mut random));
                let (first, second) = (one(&mut random, &all), one(&mut random, &all));
                format!("/* ttl:3600 */ {}", text.replace("ONE", first).replace("TWO", second))
            })
            .collect();
        for read in reads.iter().cycle().take(4 * reads.len()) {
            client.run(read);
        }
        let before: Vec<_> = reads.iter().map(|read| judge.query(read).rows()).collect();
        let change = one(&mut random, CHANGES).replace("KEY", &key(&mut random));
        let table = *one(&mut random, &TABLES);
        let change = change.replace("TABLE", table);
        let is_own = !is_heard || random.random_bool(0.3);
        let changes = if is_own { &mut client } else { &mut server };
        changes.run(&change);
        let counted = stage.remembered("SELECT").0;
        for (read, before) in reads.iter().zip(before) {
            let now = judge.query(read).rows();
            different += u64::from(now != before);
            match is_own {
                true => assert_eq!(client.query(read).rows(), now, "round {round}: {change}; {read}"),
                false => until(&format!("round {round}: {change}; {read}"), || {
                    client.query(read).rows() == now
                }),
            }
        }
        hits += stage.remembered("SELECT").0 - counted;
        if change.starts_with("TRUNCATE") || random.random_bool(0.2) {
            for table in TABLES {
                let sql = format!(
                    "INSERT INTO {table} SELECT n, n % 4, n % 5 FROM generate_series(1, 9) n ON CONFLICT DO NOTHING"
                );
                let changes = if is_own { &mut client } else { &mut server };
                changes.run(&sql);
            }
        }
        if is_heard {
            // What is told of it is told before what comes next.
            stage.until_heard(&judge.ask("SELECT CAST(pg_current_wal_insert_lsn() AS text)"));
        }
    }
    println!("{hits} answers from memory, {different} that a change has made others");
    assert!(different > rounds / 4, "{different} answers were made old");
    let told = stage.remembered("SELECT").0;
    assert!(told > rounds, "{told} answers from memory in {rounds} rounds");
    if is_heard {
        assert!(hits > rounds / 4, "{hits} answers from memory");
        // What a view reads is another thing once it is replaced.
        for (at, view) in all.iter().enumerate().filter(|(_, view)| view.starts_with("f_view")) {
            let text = definition(&mut random, &all[..at]);
            let read = format!("/* ttl:3600 */ SELECT id, a, b FROM {view} ORDER BY 1, 2, 3");
            server.run(&format!("CREATE OR REPLACE VIEW {view} AS {text}"));
            let now = judge.query(&read).rows();
            until(&text, || client.query(&read).rows() == now);
            server.run("UPDATE f_0 SET a = a + 1");
            let now = judge.query(&read).rows();
            until(&text, || client.query(&read).rows() == now);
        }
    }
}

#[test]
fn an_answer_of_views_is_made_old_by_what_changes_any_table_that_they_read() {
    judge("followed", "", true);
}

#[test]
fn so_it_is_by_what_passes_the_proxy_alone() {
    judge("followed_own", "invalidate = \"own\"\n", false);
}

/// What is not shown to hang on tables alone is remembered by no hint, and some of it by no rule either.
#[test]
fn what_a_view_cannot_be_followed_to_is_not_remembered() {
    const BY_RULE: [&str; 5] = ["v_stable", "v_time", "v_setting", "v_secured", "v_immutable"];
    let by_rule = "[[rule]]\nname = \"all\"\nstable_functions = true\nrow_security = true\n";
    for (name, rule) in [("not_followed", ""), ("not_by_rule", by_rule)] {
        let stage = stage(name, &format!("invalidate = \"none\"\n{rule}"));
        let (mut client, mut server) = (stage.client(), stage.straight());
        for sql in [
            "CREATE TABLE t (id int PRIMARY KEY, a int)",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM t",
            "CREATE SEQUENCE s",
            "CREATE FUNCTION own() RETURNS int VOLATILE LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION steady() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'",
            "CREATE FUNCTION fixed() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'",
            "CREATE UNLOGGED TABLE unlogged (id int)",
            "CREATE TABLE secured (id int)",
            "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
            "CREATE VIEW v_catalog AS SELECT relname FROM pg_catalog.pg_class LIMIT 1",
            "CREATE VIEW v_random AS SELECT random()",
            "CREATE VIEW v_kept AS SELECT * FROM kept",
            "CREATE VIEW v_sequence AS SELECT last_value FROM s",
            "CREATE VIEW v_volatile AS SELECT own()",
            "CREATE VIEW v_stable AS SELECT steady()",
            "CREATE VIEW v_immutable AS SELECT fixed()",
            "CREATE VIEW v_time AS SELECT id FROM t WHERE now() > '2020-01-01'::timestamptz",
            "CREATE VIEW v_moment AS SELECT 'today'::text::date",
            "CREATE VIEW v_sample AS SELECT * FROM t TABLESAMPLE BERNOULLI (50)",
            "CREATE VIEW v_setting AS SELECT current_setting('application_name')",
            "CREATE VIEW v_process AS SELECT pg_backend_pid()",
            "CREATE VIEW v_locks AS SELECT * FROM t FOR UPDATE",
            "CREATE VIEW v_unlogged AS SELECT * FROM unlogged",
            "CREATE VIEW v_secured AS SELECT * FROM secured",
            "CREATE VIEW v_of_views AS SELECT * FROM v_random",
        ] {
            server.run(sql);
        }
        let views = "SELECT relname FROM pg_class WHERE relname LIKE 'v\\_%' AND relkind = 'v'";
        let views = server.query(views).rows();
        assert_eq!(views.len(), 16);
        for view in views.into_iter().map(|row| row[0].clone().unwrap()) {
            let read = format!("SELECT * FROM {view}");
            let hinted = format!("/* ttl:3600 */ {read}");
            if !rule.is_empty() && BY_RULE.contains(&&*view) {
                stage.until_remembered(&mut client, &hinted, &read);
                continue;
            }
            let mut why = None;
            until(&view, || {
                client.run(&hinted);
                why = stage.remembered(&read).1;
                why.as_deref().is_some_and(|why| !why.contains("has not been asked"))
            });
            for _ in 0..8 {
                client.run(&hinted);
            }
            assert_eq!(stage.remembered(&read).0, 0, "{view}: {why:?}");
        }
    }
}

/// By rule alone, and then by whatever the policies read.
#[test]
fn under_row_security_answers_are_remembered_by_rule_and_hang_on_what_policies_read() {
    let rules = "[[rule]]\nname = \"secured\"\ntable = \"secured\"\nrow_security = true\n\
                 [[rule]]\nname = \"by function\"\ntable = \"by_function\"\nrow_security = true\nstable_functions = true\n";
    let stage = stage("row_security", rules);
    let mut server = stage.straight();
    for sql in [
        "CREATE ROLE ann",
        "CREATE ROLE bob",
        "CREATE TABLE teams (team int, who text, PRIMARY KEY (team, who))",
        "CREATE TABLE open_teams (team int PRIMARY KEY)",
        "CREATE VIEW mine AS SELECT team FROM open_teams",
        "CREATE TABLE secured (id int PRIMARY KEY, team int, tenant text)",
        "CREATE TABLE not_by_rule (id int PRIMARY KEY, team int)",
        "CREATE TABLE by_function (id int PRIMARY KEY, team int)",
        "CREATE FUNCTION is_mine(of int) RETURNS bool STABLE LANGUAGE sql AS \
         'SELECT EXISTS (SELECT FROM public.teams WHERE team = of AND who = current_user)'",
        "CREATE POLICY teams ON secured USING (EXISTS (SELECT FROM teams t WHERE t.team = secured.team AND t.who = current_user))",
        "CREATE POLICY opened ON secured FOR SELECT USING (team IN (SELECT team FROM mine))",
        "CREATE POLICY tenants ON secured USING (tenant = current_setting('app.tenant', true))",
        "CREATE POLICY written ON secured FOR INSERT WITH CHECK (random() < 2)",
        "CREATE POLICY teams ON not_by_rule USING (true)",
        "CREATE POLICY teams ON by_function USING (is_mine(team))",
        "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE not_by_rule ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE by_function ENABLE ROW LEVEL SECURITY",
        "INSERT INTO secured SELECT n, n % 4, 'tenant ' || n % 3 FROM generate_series(1, 12) n",
        "INSERT INTO by_function SELECT n, n % 4 FROM generate_series(1, 12) n",
        "INSERT INTO teams VALUES (1, 'ann'), (2, 'bob')",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO ann, bob",
    ] {
        server.run(sql);
    }
    const READ: &str = "SELECT id FROM secured WHERE id > 0 ORDER BY id";
    let hinted = format!("/* ttl:3600 */ {READ}");
    let by_key = "/* ttl:3600 */ SELECT id FROM secured WHERE id = 1";
    let mut pairs: Vec<(Client, Client)> = [
        ("ann", "tenant 0"),
        ("bob", "tenant 0"),
        ("bob", "tenant 1"),
        ("ann", "none"),
    ]
    .into_iter()
    .map(|(who, tenant)| {
        let mut both = (stage.client(), stage.straight());
        for client in [&mut both.0, &mut both.1] {
            client.run(&format!("SET ROLE {who}"));
            client.run(&format!("SET app.tenant = '{tenant}'"));
        }
        both
    })
    .collect();
    for (client, _) in &mut pairs {
        stage.until_remembered(client, &hinted, "SELECT id FROM secured WHERE id >");
        stage.until_remembered(client, by_key, "SELECT id FROM secured WHERE id =");
    }
    for change in [
        "INSERT INTO teams VALUES (3, 'ann')",
        "DELETE FROM teams WHERE who = 'bob'",
        "INSERT INTO open_teams VALUES (1)",
        "UPDATE secured SET team = 1 WHERE id = 12",
        "UPDATE secured SET tenant = 'tenant 1' WHERE id = 1",
        "TRUNCATE open_teams",
        "DROP POLICY opened ON secured",
        "ALTER POLICY tenants ON secured USING (tenant = 'tenant 2')",
        "INSERT INTO open_teams VALUES (2)",
        "ALTER TABLE secured DISABLE ROW LEVEL SECURITY",
    ] {
        server.run(change);
        for (number, (client, judge)) in pairs.iter_mut().enumerate() {
            for read in [&*hinted, by_key] {
                let now = judge.query(read).rows();
                until(&format!("{change}, {number}"), || client.query(read).rows() == now);
                for _ in 0..3 {
                    assert_eq!(client.query(read).rows(), now, "{change}, {number}");
                }
            }
        }
    }
    // What its function reads is not known: no rule has said it.
    let client = &mut pairs[0].0;
    let read = "SELECT id FROM by_function ORDER BY id";
    stage.until_remembered(client, &format!("/* ttl:3600 */ {read}"), read);
    for _ in 0..8 {
        client.run("/* ttl:3600 */ SELECT id FROM not_by_rule");
    }
    let (count, why) = stage.remembered("SELECT id FROM not_by_rule");
    let why = why.unwrap();
    assert!(
        count == 0 && why.contains("row security, and no rule says row_security"),
        "{why}"
    );
}

/// Enums and rows may be compared, added and cast by functions of the user's, of which nothing is known.
#[test]
fn what_operators_and_casts_of_enums_and_rows_read_is_not_known() {
    let stage = stage("enums", "invalidate = \"own\"\n");
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE rates (n int)",
        "INSERT INTO rates VALUES (100)",
        "CREATE TABLE moods (id int PRIMARY KEY, mood mood, moods mood[])",
        "INSERT INTO moods VALUES (1, 'glad', '{sad}')",
    ] {
        server.run(sql);
    }
    // What is asked of enums is remembered, as long as there is nothing of that.
    let plain = "SELECT mood FROM moods WHERE id = 1";
    // Of a text up to its first literal.
    let begins = |text: &str| text.split('1').next().unwrap_or_default().to_owned();
    stage.until_remembered(&mut client, &format!("/* ttl:3600 */ {plain}"), &begins(plain));
    for sql in [
        "CREATE FUNCTION rate() RETURNS int STABLE LANGUAGE sql AS 'SELECT n FROM public.rates'",
        "CREATE FUNCTION of_mood(mood, int) RETURNS int STABLE LANGUAGE sql AS 'SELECT public.rate() + $2'",
        "CREATE FUNCTION of_moods(mood[], int) RETURNS int STABLE LANGUAGE sql AS 'SELECT public.rate() + $2'",
        "CREATE FUNCTION of_row(moods, int) RETURNS int STABLE LANGUAGE sql AS 'SELECT public.rate() + $2'",
        "CREATE FUNCTION negated(mood) RETURNS int STABLE LANGUAGE sql AS 'SELECT - public.rate()'",
        "CREATE OPERATOR + (LEFTARG = mood, RIGHTARG = int, FUNCTION = of_mood)",
        "CREATE OPERATOR + (LEFTARG = mood[], RIGHTARG = int, FUNCTION = of_moods)",
        "CREATE OPERATOR + (LEFTARG = moods, RIGHTARG = int, FUNCTION = of_row)",
        "CREATE OPERATOR @@@ (RIGHTARG = mood, FUNCTION = negated)",
    ] {
        stage.client().run(sql);
    }
    let mut number = 100;
    let mut never = |reads: &[&str]| {
        for read in reads {
            let hinted = format!("/* ttl:3600 */ {read}");
            for _ in 0..8 {
                number += 1;
                server.run(&format!("UPDATE rates SET n = {number}"));
                assert_eq!(client.ask(&hinted), server.ask(&hinted), "{read}");
            }
            let (count, why) = stage.remembered(&begins(read));
            assert!(count == 0 && why.is_some(), "{read}: {why:?}");
        }
    };
    never(&[
        "SELECT mood + 1 FROM moods WHERE id = 1",
        "SELECT moods + 1 FROM moods m WHERE id = 1",
        "SELECT m + 1 FROM moods m WHERE id = 1",
        "SELECT @@@ mood FROM moods WHERE id = 1",
    ]);
    for sql in [
        "CREATE FUNCTION mood_number(mood) RETURNS int STABLE LANGUAGE sql AS 'SELECT public.rate()'",
        "CREATE CAST (mood AS int) WITH FUNCTION mood_number(mood)",
    ] {
        stage.client().run(sql);
    }
    never(&[
        "SELECT mood::int FROM moods WHERE id = 1",
        "SELECT CAST(mood AS integer) FROM moods",
    ]);
}

/// What a rule says that functions read is what is there of that name: a table with its parts, or a view with what it reads.
#[test]
fn what_a_rule_depends_on_is_told_with_its_parts_and_missed_where_it_is_not_there() {
    let rule = |function: &str, depends_on: &str| {
        format!(
            "[[rule]]\nname = \"{function}\"\nfunction = \"{function}\"\nfresh = \"1h\"\nstable_functions = true\n\
             depends_on = [\"{depends_on}\"]\n"
        )
    };
    let rules = [
        rule("of_parts", "parted"),
        rule("of_view", "summed"),
        rule("of_nothing", "partedz"),
    ];
    let stage = stage("depended_on", &rules.concat());
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id)",
        "CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (100)",
        "CREATE TABLE beneath (id int PRIMARY KEY, n int)",
        "INSERT INTO parted VALUES (1, 1)",
        "INSERT INTO beneath VALUES (1, 1)",
        "CREATE VIEW summed AS SELECT sum(n) AS n FROM beneath",
        "CREATE FUNCTION of_parts() RETURNS int STABLE LANGUAGE sql AS 'SELECT sum(n)::int FROM parted'",
        "CREATE FUNCTION of_view() RETURNS int STABLE LANGUAGE sql AS 'SELECT n::int FROM summed'",
        "CREATE FUNCTION of_nothing() RETURNS int STABLE LANGUAGE sql AS 'SELECT sum(n)::int FROM parted'",
    ] {
        server.run(sql);
    }
    for (function, table) in [("of_parts", "parted_low"), ("of_view", "beneath")] {
        let read = format!("SELECT {function}()");
        for n in 2..6 {
            stage.until_remembered(&mut client, &read, &read);
            server.run(&format!("UPDATE {table} SET n = {n}"));
            until("it is told", || client.ask(&read) == n.to_string());
        }
    }
    for _ in 0..8 {
        client.run("SELECT of_nothing()");
    }
    let (count, why) = stage.remembered("SELECT of_nothing()");
    let why = why.unwrap();
    assert!(
        count == 0 && why.contains("the table partedz, by a rule's depends_on, which is not there"),
        "{why}"
    );
}

/// Whose answer hangs on the time is told again by a rule that says so.
#[test]
fn what_tells_the_time_is_remembered_by_rule_alone() {
    let rules = "invalidate = \"own\"\n[[rule]]\nname = \"recent\"\ntable = \"recent\"\nfresh = \"1h\"\nstable_functions = true\n";
    let stage = stage("the_time", rules);
    let (mut client, mut server) = (stage.client(), stage.straight());
    server.run("CREATE TABLE recent (id int PRIMARY KEY, at timestamptz)");
    server.run("CREATE TABLE other (id int PRIMARY KEY, at timestamptz)");
    server.run("CREATE VIEW recent_view AS SELECT now() AS told, id FROM recent");
    server.run("INSERT INTO recent VALUES (1, now())");
    for read in [
        "SELECT now(), count(*) FROM recent WHERE at > now() - interval '1 day'",
        "SELECT clock.told, id FROM recent, (SELECT CURRENT_TIMESTAMP AS told) clock WHERE id = 1",
    ] {
        stage.until_remembered(&mut client, read, &read[..12]);
        let first = client.query(read).rows();
        assert_eq!(client.query(read).rows(), first);
        client.run("UPDATE recent SET at = now() WHERE id = 1");
        assert_ne!(client.query(read).rows(), first);
    }
    let hinted = "/* ttl:3600 */ SELECT now(), count(*) FROM other";
    for _ in 0..8 {
        client.run(hinted);
    }
    let (count, why) = stage.remembered("SELECT now(), count(*) FROM other");
    assert_eq!(
        (count, why.as_deref()),
        (
            0,
            Some("its answer hangs on the time, and no rule says stable_functions")
        )
    );
}

/// An aggregate is always declared to be immutable, and no rule believes that.
#[test]
fn an_aggregate_of_what_is_volatile_is_volatile() {
    let rules = "[[rule]]\nname = \"all\"\nfresh = \"1h\"\nstable_functions = true\n";
    let stage = stage("aggregates", rules);
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE limits (n int PRIMARY KEY)",
        "CREATE TABLE summed (n int PRIMARY KEY)",
        "INSERT INTO summed VALUES (1)",
        "CREATE FUNCTION adds(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2'",
        "CREATE FUNCTION adds_more(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + $2 + (SELECT count(*)::int FROM limits)'",
        "CREATE FUNCTION ends(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + (SELECT count(*)::int FROM limits)'",
        "CREATE AGGREGATE steady_sum(int) (sfunc = adds, stype = int, initcond = 0)",
        "CREATE AGGREGATE sum_of_more(int) (sfunc = adds_more, stype = int, initcond = 0)",
        "CREATE AGGREGATE sum_to_an_end(int) (sfunc = adds, finalfunc = ends, stype = int, initcond = 0)",
    ] {
        server.run(sql);
    }
    stage.until_remembered(&mut client, "SELECT steady_sum(n) FROM summed", "SELECT steady_sum");
    for name in ["sum_of_more", "sum_to_an_end"] {
        let read = format!("SELECT {name}(n) FROM summed");
        for _ in 0..8 {
            client.run(&read);
        }
        let (count, why) = stage.remembered(&read);
        let wanted = format!("it names the function {name}, which is volatile");
        assert_eq!((count, why), (0, Some(wanted)));
        server.run("INSERT INTO limits SELECT 1 + count(*) FROM limits");
        assert_eq!(client.ask(&read), server.ask(&read));
    }
}

/// Where only what passes the proxy is known.
#[test]
fn a_function_that_a_rule_believes_makes_nothing_old_and_any_other_does() {
    let rules = "invalidate = \"own\"\n[[rule]]\nname = \"steady\"\nfunction = \"steady\"\nstable_functions = true\n";
    let stage = stage("believed", rules);
    let (mut client, mut server) = (stage.client(), stage.straight());
    for sql in [
        "CREATE TABLE t (id int PRIMARY KEY, a int)",
        "INSERT INTO t VALUES (1, 0)",
        "CREATE FUNCTION steady() RETURNS int STABLE LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION writes() RETURNS int VOLATILE LANGUAGE sql AS 'UPDATE t SET a = a + 1 RETURNING a'",
        // It is declared to be what it is not, and nobody believes it.
        "CREATE FUNCTION sly() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT writes()); END $$",
    ] {
        server.run(sql);
    }
    let read = "SELECT a FROM t WHERE id = 1";
    let hinted = format!("/* ttl:3600 */ {read}");
    for _ in 0..8 {
        client.run("SELECT steady()");
        client.run("SELECT sly()");
    }
    stage.until_remembered(&mut client, &hinted, "SELECT a FROM t");
    let old = client.query(&hinted).value();
    server.run("UPDATE t SET a = a + 100");
    client.run("SELECT steady()");
    assert_eq!(client.query(&hinted).value(), old, "from memory");
    client.run("SELECT sly()");
    assert_eq!(client.query(&hinted).value(), server.query(read).value());
}
