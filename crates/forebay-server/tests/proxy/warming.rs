//! What was asked for most before a start, and is asked anew behind it.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use testbed::{Folder, Forebay};

use crate::client::{Client, bind, describe, execute, parse, whole};
use crate::crowd::until;
use crate::memory::status_of;
use crate::reload::{DONE, Reloadable};
use crate::stream::{Stage, connect};
use crate::{as_user, at, postgres, straight};

/// One use in 256 is sampled, by chance: of so many one is, but in a case of a million.
const MUCH: usize = 4_000;

const RULES: &str = "[[rule]]\nname = \"ruled\"\ntable = \"warm_ruled\"\nfresh = \"1h\"\ncapacity = \"1MiB\"\n";

fn text(lines: &str) -> String {
    format!(
        "upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\", \"trusted\"]\ncache_memory = \"8MiB\"\n{lines}"
    )
}

/// A proxy that writes down what is asked for most, and where.
fn warming(lines: &str) -> (Reloadable, Folder, PathBuf) {
    let folder = Folder::new("warm", None).unwrap();
    let file = folder.file("hot");
    let reloadable = Reloadable::start(&text(lines), &["--warm-file", file.to_str().unwrap()]);
    (reloadable, folder, file)
}

fn warmed(proxy: &Forebay) -> u64 {
    proxy.metric("forebay_cache_warmed_total").unwrap().unwrap_or_default() as u64
}

fn lines_of(file: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Whose answers come from memory from the first on.
fn asks_memory(client: &mut Client, ask: impl Fn(&mut Client) -> Option<String>) -> Option<String> {
    let told = ask(client);
    assert_eq!(status_of(client, "last_answered_by").as_deref(), Some("cache"));
    told
}

/// A way to ask, and what it is answered.
type Way = Box<dyn Fn(&mut Client) -> Option<String>>;

/// Each is told from the others.
fn ways() -> Vec<Way> {
    let executed = |value: &'static str| {
        move |client: &mut Client| {
            let run = client.pipeline(&[bind("", "one", &[value]), describe(b'P', ""), execute("", 0)]);
            run.value()
        }
    };
    vec![
        Box::new(|client| Some(client.ask("SELECT n FROM warm_hinted /* ttl:3600 stale:60 missing:5 away:7 */"))),
        Box::new(|client| Some(client.ask("SELECT n FROM warm_ruled WHERE n > -1"))),
        Box::new(|client| Some(client.ask("SELECT n FROM warm_ruled WHERE n > -2"))),
        Box::new(|client| {
            let sql = "/* ttl:3600 */ SELECT n + $1::int FROM warm_hinted";
            client.pipeline(&[whole(sql, &["1"])]).value()
        }),
        Box::new(executed("10")),
        Box::new(executed("20")),
        // What its columns are was told before.
        Box::new(|client| {
            client
                .pipeline(&[bind("", "described", &["30"]), execute("", 0)])
                .value()
        }),
        Box::new(|client| {
            let some = client.pipeline(&[bind("", "described", &["31"]), execute("", 1)]);
            assert_eq!(some.kinds(), "2Ds");
            some.value()
        }),
    ]
}

fn prepares(client: &mut Client) {
    let sql = "SELECT n * $1 /* ttl:3600 file:a.php */ FROM warm_hinted";
    client.pipeline(&[parse("one", sql)]).expect("prepared");
    let sql = "SELECT n - $1 AS less /* ttl:3600 */ FROM warm_hinted";
    client
        .pipeline(&[parse("described", sql), describe(b'S', "described")])
        .expect("described");
}

fn tables(server: &mut Client) {
    for table in ["warm_hinted", "warm_ruled"] {
        server.run(&format!("DROP TABLE IF EXISTS {table}"));
        server.run(&format!("CREATE TABLE {table} (n int)"));
        server.run(&format!("INSERT INTO {table} VALUES (1)"));
        server.run(&format!("GRANT SELECT ON {table} TO trusted"));
    }
}

/// As one who has set this, at the address.
fn who(address: SocketAddr, user: &str, work_mem: &str) -> Client {
    let mut client = as_user(address, user).unwrap();
    client.run(&format!("SET work_mem = '{work_mem}'"));
    client
}

#[test]
fn what_was_asked_for_most_is_asked_anew_when_those_come_who_ask_it() {
    let (mut reloadable, _folder, file) = warming(RULES);
    let mut server = straight(postgres());
    tables(&mut server);
    let mut client = who(reloadable.proxy.address(), "trusted", "123kB");
    prepares(&mut client);
    for way in ways() {
        (0..MUCH).for_each(|_| drop(way(&mut client)));
    }
    assert_eq!(warmed(&reloadable.proxy), 0);
    drop(client);
    assert!(reloadable.proxy.terminate().unwrap().status.success());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let written = lines_of(&file);
    assert_eq!(written.len(), ways().len(), "{written:#?}");
    // What was so then is not so now.
    server.run("UPDATE warm_hinted SET n = 2");
    server.run("UPDATE warm_ruled SET n = 3");
    reloadable.proxy.restart().unwrap();
    let address = reloadable.proxy.address();
    // Others are not asked for.
    for (user, work_mem) in [("postgres", "123kB"), ("trusted", "124kB")] {
        who(address, user, work_mem).run("SELECT 1");
    }
    let mut client = who(address, "trusted", "123kB");
    assert_eq!(warmed(&reloadable.proxy), 0, "nobody has asked yet");
    until("it is asked anew", || {
        client.run("SELECT 1");
        warmed(&reloadable.proxy) == ways().len() as u64
    });
    prepares(&mut client);
    let told: Vec<_> = ways().iter().map(|way| asks_memory(&mut client, way)).collect();
    let told: Vec<_> = told.iter().flatten().map(String::as_str).collect();
    assert_eq!(told, ["2", "3", "3", "3", "20", "40", "-28", "-29"]);
    let again = who(address, "trusted", "123kB").ask("SELECT n FROM warm_ruled WHERE n > -1");
    assert_eq!(
        (again.as_str(), warmed(&reloadable.proxy)),
        ("3", ways().len() as u64),
        "once"
    );
    // What passes makes it old as ever.
    client.run("SELECT 1");
    at(address).run("UPDATE warm_ruled SET n = 4");
    assert_eq!(client.ask("SELECT n FROM warm_ruled WHERE n > -1"), "4");
    drop(client);
    // And it is still known to be hot, though it was hardly asked this time.
    assert!(reloadable.proxy.terminate().unwrap().status.success());
    let mut again = lines_of(&file);
    let mut written = written;
    let but_for_uses = |line: &mut String| *line = line[line.find("\"user\"").unwrap()..].to_owned();
    [&mut again, &mut written].into_iter().for_each(|lines| {
        lines.iter_mut().for_each(but_for_uses);
        lines.sort();
    });
    assert_eq!(again, written);
}

#[test]
fn what_is_not_claimed_stays_written_and_what_cannot_be_asked_any_more_is_let_be() {
    let (mut reloadable, _folder, file) = warming("");
    let mut server = straight(postgres());
    for sql in [
        "CREATE TABLE warm_gone (n int)",
        "CREATE TABLE warm_taken (n int)",
        "CREATE TABLE warm_left (n int)",
        "GRANT SELECT ON warm_gone, warm_taken, warm_left TO trusted",
    ] {
        server.run(sql);
    }
    let asks = ["gone", "taken", "left"].map(|of| format!("/* ttl:3600 */ SELECT count(*) FROM warm_{of}"));
    let mut client = who(reloadable.proxy.address(), "trusted", "321kB");
    let mut other = who(reloadable.proxy.address(), "trusted", "322kB");
    for ask in &asks {
        (0..MUCH).for_each(|_| drop(client.run(ask)));
    }
    (0..MUCH).for_each(|_| drop(other.run(&asks[2])));
    drop((client, other));
    reloadable.proxy.terminate().unwrap();
    assert_eq!(lines_of(&file).len(), 4);
    server.run("DROP TABLE warm_gone");
    server.run("REVOKE SELECT ON warm_taken FROM trusted");
    // A line that is no question, and one that no client can send.
    let mut text = fs::read_to_string(&file).unwrap();
    text += "{}\n";
    let like = lines_of(&file).pop().unwrap();
    text += &(like.replace("SELECT", "SELECT 1; SELECT") + "\n");
    text += &(like.replace(
        "}",
        ",\"bound\":{\"types\":[],\"values\":\"AAAA\",\"messages\":\"EBP\"}}",
    ) + "\n");
    fs::write(&file, text).unwrap();
    reloadable.proxy.restart().unwrap();
    let mut client = who(reloadable.proxy.address(), "trusted", "321kB");
    until("one is asked anew", || {
        client.run("SELECT 1");
        warmed(&reloadable.proxy) == 1
    });
    assert_eq!(client.ask(&asks[2]), "0");
    assert_eq!(status_of(&mut client, "last_answered_by").as_deref(), Some("cache"));
    assert_eq!(client.query(&asks[0]).sqlstate(), "42P01");
    assert_eq!(client.query(&asks[1]).sqlstate(), "42501");
    drop(client);
    reloadable.proxy.terminate().unwrap();
    let left = lines_of(&file);
    let of_other = left.iter().filter(|line| line.contains("\"322\"")).count();
    assert!(of_other >= 1, "nobody has come who asks it: {left:#?}");
}

#[test]
fn a_database_that_tells_of_its_changes_is_listened_to_before_anything_is_asked_anew() {
    let folder = Folder::new("warm-stream", None).unwrap();
    let file = folder.file("hot");
    let mut stage = Stage::new("warm_stream", &format!("warm_file = {:?}\n", file.to_str().unwrap()));
    let mut server = stage.straight();
    server.run("CREATE TABLE told (id int PRIMARY KEY, n int)");
    server.run("INSERT INTO told SELECT i, 1 FROM generate_series(1, 5) i");
    let ask = |id: i32| format!("/* ttl:3600 */ SELECT n FROM told WHERE id = {id}");
    let mut client = stage.client();
    // Until its table is told of, the database is asked, and nobody watches that.
    stage.until_remembered(&mut client, &ask(1), "SELECT n FROM told");
    for id in 1..=5 {
        (0..MUCH).for_each(|_| drop(client.run(&ask(id))));
    }
    drop(client);
    stage.reloadable.proxy.terminate().unwrap();
    assert_eq!(lines_of(&file).len(), 5);
    server.run("UPDATE told SET n = 2");
    stage.reloadable.proxy.restart().unwrap();
    let mut client = connect(stage.reloadable.proxy.address(), "postgres", "warm_stream");
    client.run("SELECT 1");
    until("all are asked anew", || warmed(&stage.reloadable.proxy) == 5);
    assert_eq!(client.ask(&ask(3)), "2");
    assert_eq!(status_of(&mut client, "last_answered_by").as_deref(), Some("cache"));
    // Who listens goes on, and what is known stays.
    stage.reloadable.reload(DONE);
    assert_eq!(client.ask(&ask(3)), "2");
    assert_eq!(status_of(&mut client, "last_answered_by").as_deref(), Some("cache"));
    server.run("UPDATE told SET n = 3 WHERE id = 3");
    until("the change is told", || client.ask(&ask(3)) == "3");
    assert_eq!(client.ask(&ask(4)), "2");
    assert_eq!(status_of(&mut client, "last_answered_by").as_deref(), Some("cache"));
}

#[test]
fn what_rules_have_forgotten_is_asked_anew() {
    let (mut reloadable, _folder, _) = warming(RULES);
    let mut server = straight(postgres());
    server.run("CREATE TABLE warm_kept (n int)");
    server.run("INSERT INTO warm_kept VALUES (1)");
    let mut client = at(reloadable.proxy.address());
    let ask = "/* ttl:3600 */ SELECT n FROM warm_kept";
    (0..MUCH).for_each(|_| drop(client.run(ask)));
    // Where nothing else is said, nothing is forgotten.
    server.run("UPDATE warm_kept SET n = 2");
    reloadable.reload(DONE);
    assert_eq!(client.ask(ask), "1");
    reloadable.place(&text(
        "[[rule]]\nname = \"other\"\ntable = \"warm_other\"\nfresh = \"1h\"\n",
    ));
    reloadable.reload(DONE);
    client.run("SELECT 1");
    until("it is asked anew", || warmed(&reloadable.proxy) == 1);
    assert_eq!(client.ask(ask), "2");
    assert_eq!(status_of(&mut client, "last_answered_by").as_deref(), Some("cache"));
}

#[test]
fn who_comes_is_not_kept_waiting_by_what_is_asked_anew() {
    let (mut reloadable, _folder, file) = warming("max_server_connections = 4\n");
    let mut server = straight(postgres());
    server.run("CREATE TABLE warm_locked (n int)");
    let ask = |n: usize| format!("/* ttl:3600 */ SELECT count(*) FROM warm_locked WHERE n > {n}");
    let mut client = at(reloadable.proxy.address());
    for n in 0..8 {
        (0..MUCH).for_each(|_| drop(client.run(&ask(n))));
    }
    drop(client);
    reloadable.proxy.terminate().unwrap();
    assert_eq!(lines_of(&file).len(), 8);
    server.run("BEGIN");
    server.run("LOCK TABLE warm_locked");
    reloadable.proxy.restart().unwrap();
    let mut clients: Vec<Client> = (0..3).map(|_| at(reloadable.proxy.address())).collect();
    // Each has a connection of its own.
    for client in &mut clients {
        client.run("BEGIN");
        client.run("SELECT 1");
    }
    clients.iter_mut().for_each(|client| drop(client.run("COMMIT")));
    until("the first waits for the lock", || {
        clients[0].run("SELECT 1");
        server.ask("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'warm_locked'::regclass") == "1"
    });
    for _ in 0..100 {
        for client in &mut clients {
            client.run("BEGIN");
        }
        clients.iter_mut().for_each(|client| drop(client.run("COMMIT")));
    }
    server.run("COMMIT");
    until("all are asked", || warmed(&reloadable.proxy) == 8);
}

#[test]
fn a_file_of_something_else_is_refused_and_left() {
    let folder = Folder::new("warm-foreign", None).unwrap();
    folder.place("notes", "not ours\n", None).unwrap();
    let file = folder.file("notes");
    let refused = Forebay::builder(crate::PROGRAM)
        .upstream(format!("postgresql://{}/postgres", postgres().address()))
        .arguments(["--cache-memory", "1MiB", "--warm-file", file.to_str().unwrap()])
        .start();
    let told = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(told.contains("is no file of hot questions"), "{told}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "not ours\n");
}
