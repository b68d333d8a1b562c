//! What is read anew on SIGHUP, while clients are there.

use std::path::Path;
use std::process::{Command, Stdio};

use testbed::{Folder, Forebay, Postgres};

use crate::client::{Client, Failure, PATIENCE, bind, execute, parse};
use crate::{PROGRAM, postgres, straight};

/// What the log says of a reload.
pub(crate) const DONE: &str = "options are read anew";
pub(crate) const REFUSED: &str = "options cannot be used, all stays as it was";

/// A proxy, the file that it was started with, and where that is.
pub(crate) struct Reloadable {
    pub(crate) folder: Folder,
    pub(crate) proxy: Forebay,
}

impl Reloadable {
    pub(crate) fn start(text: &str, arguments: &[&str]) -> Self {
        let folder = Folder::new("reload", None).unwrap();
        folder.place("forebay.toml", &with_address(text), None).unwrap();
        let proxy = Forebay::builder(PROGRAM)
            .databases_of(folder.file("forebay.toml"))
            .arguments(arguments)
            .start()
            .unwrap_or_else(|error| panic!("{error}"));
        Self { folder, proxy }
    }

    pub(crate) fn place(&self, text: &str) {
        self.folder.place("forebay.toml", &with_address(text), None).unwrap();
    }

    /// What the log says behind a SIGHUP, up to the outcome.
    pub(crate) fn reload(&mut self, outcome: &str) -> String {
        let before = self.proxy.output().len();
        self.proxy.signal(libc::SIGHUP).unwrap();
        let told = |output: &str| {
            let new = output.get(before..)?;
            [DONE, REFUSED]
                .iter()
                .any(|said| new.contains(said))
                .then(|| new.to_owned())
        };
        let told = self.proxy.wait_for_output(PATIENCE, told).unwrap();
        assert!(told.contains(outcome), "{told}");
        told
    }

    fn at(&self, database: &str) -> Result<Client, Failure> {
        let who = [("user", "postgres"), ("database", database)];
        Client::connect_with(self.proxy.address(), &who)
    }
}

fn with_address(text: &str) -> String {
    text.replace("SERVER", &postgres().address().to_string())
}

/// A database that clients call by this name, and what it is called there.
fn database(name: &str, there: &str) -> String {
    format!("[[database]]\nname = \"{name}\"\nurl = \"postgresql://SERVER/{there}\"\n")
}

fn made(name: &'static str) -> &'static str {
    straight(postgres())
        .query(&format!("CREATE DATABASE {name}"))
        .expect(name);
    name
}

const WHERE: &str = "SELECT current_database()";

#[test]
fn a_client_goes_on_where_its_database_is_now_and_keeps_what_it_has_set_and_prepared() {
    let (here, there) = (made("reload_here"), made("reload_there"));
    let mut reloadable = Reloadable::start(&database("shop", here), &[]);
    let mut idle = reloadable.at("shop").unwrap();
    idle.run("SET work_mem = '123kB'");
    idle.pipeline(&[parse("named", "SELECT current_database(), current_setting('work_mem')")])
        .expect("prepared");
    assert_eq!(idle.ask(WHERE), here);
    let mut busy = reloadable.at("shop").unwrap();
    busy.run("BEGIN");
    assert_eq!(busy.ask(WHERE), here);
    let mut pinned = reloadable.at("shop").unwrap();
    pinned.run("CREATE TEMP TABLE mine AS SELECT 1");
    reloadable.place(&database("shop", there));
    reloadable.reload(DONE);
    let run = idle.pipeline(&[bind("", "named", &[]), execute("", 0)]);
    assert_eq!(run.rows(), [[Some(there.to_owned()), Some("123kB".to_owned())]]);
    assert_eq!(idle.ask(WHERE), there);
    assert_eq!(busy.ask(WHERE), here, "a transaction ends where it began");
    busy.run("COMMIT");
    assert_eq!(busy.ask(WHERE), there);
    assert_eq!(pinned.ask("SELECT count(*) FROM mine"), "1");
    assert_eq!(pinned.ask(WHERE), here, "what cannot be carried stays where it is");
    pinned.run("DISCARD ALL");
    assert_eq!(reloadable.at("shop").unwrap().ask(WHERE), there);
    // Nobody is lent what was made before.
    for mut client in [idle, busy] {
        assert_eq!(client.ask(WHERE), there);
    }
}

#[test]
fn databases_come_and_go_and_who_is_there_may_stay() {
    let (one, other) = (made("reload_one"), made("reload_other"));
    let mut reloadable = Reloadable::start(&database("one", one), &[]);
    let mut stays = reloadable.at("one").unwrap();
    let refused =
        |reloadable: &Reloadable, name: &str| reloadable.at(name).err().map(|error| error.sqlstate().to_owned());
    assert_eq!(refused(&reloadable, "other").as_deref(), Some("3D000"));
    reloadable.place(&database("other", other));
    reloadable.reload(DONE);
    assert_eq!(refused(&reloadable, "one").as_deref(), Some("3D000"));
    assert_eq!(reloadable.at("other").unwrap().ask(WHERE), other);
    assert_eq!(stays.ask(WHERE), one);
    // Back again, it is one of its own.
    reloadable.place(&format!("{}{}", database("other", other), database("one", other)));
    reloadable.reload(DONE);
    assert_eq!(reloadable.at("one").unwrap().ask(WHERE), other);
    assert_eq!(stays.ask(WHERE), one);
}

#[test]
fn a_pool_grows_and_shrinks() {
    grows_for_those_who_wait_and_shrinks_without_ending_anybody("max_server_connections");
}

#[test]
fn the_cap_of_a_server_grows_and_shrinks() {
    grows_for_those_who_wait_and_shrinks_without_ending_anybody("max_upstream_connections");
}

fn grows_for_those_who_wait_and_shrinks_without_ending_anybody(option: &str) {
    let sized = |size| format!("{option} = {size}\n{}", database("shop", "postgres"));
    let mut reloadable = Reloadable::start(&sized(1), &[]);
    let mut first = reloadable.at("shop").unwrap();
    let mut second = reloadable.at("shop").unwrap();
    first.run("BEGIN");
    second.send(&crate::client::query("SELECT 'served'"));
    while reloadable.proxy.metric("forebay_clients_waiting").unwrap() != Some(1.0) {}
    reloadable.place(&sized(2));
    reloadable.reload(DONE);
    assert_eq!(second.answer().value().as_deref(), Some("served"));
    second.run("BEGIN");
    assert_eq!(
        reloadable.proxy.metric("forebay_server_connections").unwrap(),
        Some(2.0)
    );
    reloadable.place(&sized(1));
    reloadable.reload(DONE);
    for client in [&mut first, &mut second] {
        assert_eq!(client.ask("SELECT 'goes on'"), "goes on");
        client.run("COMMIT");
    }
    assert_eq!(
        reloadable.proxy.metric("forebay_server_connections").unwrap(),
        Some(1.0)
    );
    let connection = first.ask("SELECT pg_backend_pid()");
    assert_eq!(second.ask("SELECT pg_backend_pid()"), connection, "they share the one");
}

#[test]
fn what_cannot_be_used_is_said_with_its_line_and_changes_nothing() {
    let good = database("shop", "postgres");
    let mut reloadable = Reloadable::start(&good, &[]);
    let mut client = reloadable.at("shop").unwrap();
    for (text, told) in [
        (format!("{good}colour = 3\n"), "line 4: unknown field `colour`\n"),
        (format!("{good}max_waiting = 0\n"), "line 4: max_waiting: of database"),
        (format!("max_waiting = 0\n{good}"), "line 1: max_waiting: 0 is not"),
        (format!("users = \"/nowhere\"\n{good}"), "line 1: users file /nowhere"),
        (
            good.replace("/postgres\"", "/reload_gone?sslmode=verify-full&sslrootcert=/nowhere\""),
            "line 3: database \"shop\": TLS: /nowhere: No such file",
        ),
        (
            format!("{good}[[user]]\nname = \"ann\"\nsslcert = \"/nowhere.pem\"\nsslkey = \"/nowhere.key\"\n"),
            "line 7: user \"ann\": TLS: /nowhere.key: I/O error: No such file",
        ),
        (
            good.replace("postgresql", "mysql"),
            "line 3: url: of database \"shop\" only postgresql:// is spoken",
        ),
        (
            good.replace("/postgres\"", "/postgres?sslmod=require\""),
            "line 3: url: of database \"shop\" there is no key sslmod, but sslmode",
        ),
        (format!("log = \"a=b=c\"\n{good}"), "log: "),
    ] {
        reloadable.place(&text);
        let said = reloadable.reload(REFUSED);
        assert!(said.contains(told), "{text}: {said}");
        assert_eq!(client.ask(WHERE), "postgres");
        assert_eq!(reloadable.at("shop").unwrap().ask(WHERE), "postgres");
    }
    // What holds from the start to the end is told by name.
    reloadable.place(&format!("max_connections = 7\n{good}"));
    let said = reloadable.reload(DONE);
    assert!(
        said.contains("max_connections has changed: that holds from the next start on"),
        "{said}"
    );
}

#[test]
fn what_is_logged_changes_too() {
    let file = |level: &str| format!("log = \"{level}\"\n{}", database("shop", "postgres"));
    let mut reloadable = Reloadable::start(&file("info"), &[]);
    reloadable.place(&file("info,forebay_proxy=debug"));
    reloadable.reload(DONE);
    let mut client = reloadable.at("shop").unwrap();
    client.run("CREATE TEMP TABLE mine (a int)");
    let told = |output: &str| {
        output
            .contains("a session stays on its server connection")
            .then_some(())
    };
    reloadable.proxy.wait_for_output(PATIENCE, told).unwrap();
}

/// Adds a user of the proxy's own, or removes one.
pub(crate) fn change_user(file: &Path, action: &str, name: &str) {
    let mut command = Command::new(PROGRAM);
    command.args(["user", action, name, "--users"]).arg(file);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"secret\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn users_of_its_own_are_read_anew() {
    let folder = Folder::new("users", None).unwrap();
    let users = folder.file("users");
    for name in ["postgres", "trusted"] {
        change_user(&users, "add", name);
    }
    let arguments = ["--users", users.to_str().unwrap()];
    let mut reloadable = Reloadable::start(&database("shop", "postgres"), &arguments);
    let address = reloadable.proxy.address();
    let log_in = |user: &'static str| crate::login::log_in(address, user, "shop", Some("secret"));
    assert!(log_in("trusted").await.is_ok());
    assert!(log_in("postgres").await.is_ok());
    change_user(&users, "remove", "trusted");
    assert!(log_in("trusted").await.is_ok(), "not before it is told");
    reloadable.reload(DONE);
    assert!(log_in("trusted").await.unwrap_err().contains("28P01"));
    assert!(log_in("postgres").await.is_ok());
}

#[test]
fn a_check_says_what_would_be_served_or_which_line_is_wrong() {
    let folder = Folder::new("check", None).unwrap();
    let check_with = |text: &str, arguments: &[&str]| {
        folder.place("forebay.toml", text, None).unwrap();
        let ended = Command::new(PROGRAM)
            .arg("check")
            .arg(folder.file("forebay.toml"))
            .args(arguments)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code(), text(ended.stdout), text(ended.stderr))
    };
    let check = |text: &str| check_with(text, &[]);
    let url = "url = \"postgresql://ann:hush@db1,db2:5433/shop_production\"";
    let text = format!("listen = \"127.0.0.1:7432\"\n[[database]]\nname = \"shop\"\n{url}\npool_mode = \"session\"\n");
    let (status, plan, _) = check(&text);
    assert_eq!(status, Some(0));
    for told in [
        "127.0.0.1:7432",
        "the databases' users",
        "shop: shop_production at db1:5432, db2:5433",
        "lent for a session",
    ] {
        assert!(plan.contains(told), "{told}: {plan}");
    }
    assert!(!plan.contains("hush"), "{plan}");
    change_user(&folder.file("users"), "add", "ann");
    let file = folder.file("users");
    let (_, plan, why) = check(&format!("users = \"{}\"\n{text}", file.display()));
    assert!(plan.contains(", 1 user of its own, "), "{plan}{why}");
    let whole = "admin_users = \"ann, bea@shop\"\nmax_user_connections = 9\nmax_upstream_connections = 50\n\
        [[database]]\nname = \"shop\"\nurl = \"postgresql://ann:hush@db1/shop\"\nsharing = false\nmax_client_connections = 7\n\
        service_user = true\n[[user]]\nname = \"bea\"\nmax_client_connections = 2\nsharing = true\n";
    let (status, plan, why) = check(whole);
    assert_eq!(status, Some(0), "{why}");
    let told: Vec<&str> = plan.lines().skip(2).collect();
    let expected = [
        "database    shop: shop at db1:5432; for each user at most 20 connections, lent for a transaction, and 10000 who wait, for 30s at most; \
         shares nothing: sharing = false; at most 7 clients; all of them as the user of the URL",
        "servers     at most 50 connections to each, of all pools",
        "users       at most 9 clients of each",
        "user        bea: at most 2 clients, shares",
        "console     for ann, bea@shop",
    ];
    assert_eq!(told, expected);
    let (status, plan, why) = check(&text.replace("session\"", "session\"\nmax_server_connections = 0"));
    assert_eq!((status, plan.as_str()), (Some(1), ""));
    assert!(
        why.contains("line 6: max_server_connections: of database \"shop\" 0 is not"),
        "{why}"
    );
    let doubtful = "upstream = \"postgresql://db1/shop\"\n[[rule]]\nname = \"one\"\nstatement = \"SELECT FROM WHERE (\"\nbatch = \"1ms\"\n\
        [[rule]]\nname = \"two\"\nstatement = \"DELETE FROM t WHERE id=7;\"\njoin = \"in flight\"\n\
        [[rule]]\nname = \"three\"\nstatement = \"SELECT A FROM t LIMIT 0\"\njoin = \"in flight\"\n";
    let (status, plan, _) = check(doubtful);
    let said = |of: &str| {
        let lines = plan.lines().filter_map(|line| line.strip_prefix(of));
        lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((status, said("rule").len()), (Some(0), 3), "{plan}");
    assert_eq!(
        said("rule")[2],
        "three: statements like SELECT A FROM t LIMIT ? join what is on its way"
    );
    let [one, two] = &said("warning")[..] else {
        panic!("{plan}")
    };
    assert!(
        one.ends_with("line 4: statement: of rule \"one\" is not understood by the parser: it goes alone"),
        "{one}"
    );
    assert!(
        two.ends_with("line 9: join: of rule \"two\" is of a statement that does not read: it joins nothing"),
        "{two}"
    );
    for (doubtful, told) in [
        (
            "invalidate = \"stream\"\nupstream = \"postgresql://ann@db1/shop\"\n",
            "line 1: invalidate: \"stream\" is of what is remembered, and there is no memory for it",
        ),
        (
            "cache_memory = \"2MiB\"\nupstream = \"postgresql://db1/shop\"\n[[rule]]\nname = \"one\"\nfresh = \"1s\"\ncapacity = \"16KiB\"\n",
            "line 6: capacity: of rule \"one\" has no room for an answer of 32768 bytes",
        ),
    ] {
        let (status, plan, _) = check(doubtful);
        assert_eq!(status, Some(0));
        assert!(
            plan.lines()
                .any(|line| line.starts_with("warning") && line.contains(told)),
            "{plan}"
        );
    }
    let (status, plan, _) = check("readers = 3\n");
    assert_eq!(status, Some(0));
    assert!(plan.contains("./forebay.db"), "{plan}");
    let ruled = "cache_memory = \"2MiB\"\nupstream = \"postgresql://db1/shop\"\n\
        [[rule]]\nname = \"reports\"\nuser = \"reports\"\nfresh = \"1h\"\n\
        [[rule]]\nname = \"products\"\ntable = \"products\"\nfresh = \"1min\"\nstale = \"1h\"\n\
        [[rule]]\nname = \"all\"\nbatch = \"2ms\"\n";
    let met = |text: &str, arguments: &[&str]| {
        let (status, plan, why) = check_with(text, arguments);
        assert_eq!(status, Some(0), "{why}");
        let lines = plan.lines().skip_while(|line| !line.starts_with("statement"));
        lines.map(|line| line[12..].to_owned()).collect::<Vec<_>>()
    };
    let read = "SELECT name FROM products WHERE id = 7";
    let change = "UPDATE products SET name = 'x' WHERE id = 7";
    assert_eq!(
        met(ruled, &[read, change]),
        [
            "SELECT name FROM products WHERE id = ?",
            "of it: products, all",
            "of it where others ask it: reports",
            "such statements wait 2ms for company, are remembered for 60s, and for 3600s while they are asked again",
            "remembered for 60s, and for 3600s while they are asked again, if the catalog has nothing against it",
            "UPDATE products SET name = ? WHERE id = ?",
            "of it: products, all",
            "of it where others ask it: reports",
            "such statements wait 2ms for company, are remembered for 60s, and for 3600s while they are asked again",
            "not remembered: it changes rows",
        ]
    );
    let of_reports = met(ruled, &[read, "--user", "reports", "--database", "shop"]);
    assert_eq!(of_reports[1], "of it: reports, products, all");
    assert_eq!(
        of_reports[3],
        "remembered for 3600s, if the catalog has nothing against it"
    );
    for (hint, told) in [
        ("/* batch:0 */", "by its own hint it goes alone"),
        ("/* batch:5 */", "by its own hint it waits 5ms for company"),
    ] {
        assert_eq!(met(ruled, &[&format!("{read} {hint}")])[4], told);
    }
    let forgets = ruled.replace("cache_memory = \"2MiB\"\n", "");
    assert_eq!(met(&forgets, &[read])[4], "not remembered: cache_memory is 0");
}

/// Asked as an outsider: what is connected to it.
#[test]
fn nothing_is_connected_to_by_a_reload() {
    let server = Postgres::builder().start().unwrap_or_else(|error| panic!("{error}"));
    let mut watching = straight(&server);
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let text = format!(
        "[[database]]\nname = \"shop\"\nurl = \"postgresql://{}/postgres\"\n",
        server.address()
    );
    let mut reloadable = Reloadable::start(&text, &[]);
    reloadable.reload(DONE);
    assert_eq!(watching.ask(sessions), "1");
}
