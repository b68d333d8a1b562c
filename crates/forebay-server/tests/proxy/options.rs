//! What the proxy is told on its command line.

use std::process::Command;

use crate::reload::Reloadable;
use crate::{PROGRAM, at, postgres, proxy};

#[test]
fn options_of_the_other_kind_are_refused_by_name() {
    let refused = |arguments: &[&str]| {
        let ended = Command::new(PROGRAM).arg("serve").args(arguments).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        String::from_utf8(ended.stderr).unwrap()
    };
    let url = "postgresql://127.0.0.1/app";
    for (arguments, named) in [
        (
            &["--upstream", url, "--database", "x.db"][..],
            "database: is of the embedded database",
        ),
        (
            &["--upstream", url, "--synchronous", "off"],
            "synchronous: is of the embedded database",
        ),
        (
            &["--max-server-connections", "3"],
            "max_server_connections: means something only with upstream",
        ),
        (
            &["--trust-loopback"],
            "trust_loopback: means something only with upstream",
        ),
        (
            &["--upstream", url, "--max-server-connections", "0"],
            "max_server_connections: 0 is not from 1",
        ),
        (
            &["--upstream", url, "--server-wait-timeout", "0"],
            "server_wait_timeout: must not be 0",
        ),
        (&["--upstream", "postgresql://127.0.0.1:x/app"], "upstream: "),
        (
            &["--upstream", "mysql://127.0.0.1/app"],
            "upstream: only postgresql:// is spoken",
        ),
        (
            &["--upstream", url, "--listen", "0.0.0.0:0"],
            "listen: clients beyond this machine",
        ),
        (
            &["--upstream", url, "--http", "0.0.0.0:0"],
            "http = 0.0.0.0:0 can be reached from other machines",
        ),
    ] {
        let told = refused(arguments);
        assert!(told.starts_with(&format!("forebay: {named}")), "{arguments:?}: {told}");
    }
}

#[test]
fn the_help_names_the_proxy_at_its_beginning() {
    let help = Command::new(PROGRAM).arg("-h").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.lines().next().unwrap().contains("proxy"), "{help}");
}

#[test]
fn a_start_refuses_a_users_certificate_that_is_not_there() {
    let folder = testbed::Folder::new("certificates", None).unwrap();
    let text = "upstream = \"postgresql://127.0.0.1/app\"\nlisten = \"127.0.0.1:0\"\nhttp = \"off\"\n\
        [[user]]\nname = \"ann\"\nsslcert = \"/nowhere.pem\"\nsslkey = \"/nowhere.key\"\n";
    folder.place("forebay.toml", text, None).unwrap();
    let config = folder.file("forebay.toml");
    let ended = Command::new(PROGRAM)
        .arg("serve")
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    let expected = format!(
        "forebay: configuration file {}, line 7: user \"ann\": TLS: /nowhere.key: ",
        config.display()
    );
    assert!(told.starts_with(&expected), "{told}");
}

#[test]
fn a_password_in_the_url_is_in_no_message() {
    let ended = Command::new(PROGRAM)
        .args(["serve", "--upstream", "postgresql://anna:hush@127.0.0.1:x/app"])
        .output()
        .unwrap();
    assert!(!String::from_utf8(ended.stderr).unwrap().contains("hush"));
}

#[test]
fn the_banner_says_how_to_begin() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let (banner, address) = (proxy.output(), proxy.address());
    assert!(
        banner.contains(&format!("proxy of PostgreSQL at {}", server.address())),
        "{banner}"
    );
    assert!(
        banner.contains(&format!("psql -h 127.0.0.1 -p {} -U NAME postgres", address.port())),
        "{banner}"
    );
    assert_eq!(proxy.http_get("/healthz").unwrap().status, 200);
}

/// Of what shares nothing no statement is known that could tell why.
#[test]
fn what_shares_nothing_says_by_which_option() {
    for (option, of_the_file, of_the_console) in [
        ("", None, None),
        (
            "sharing = false",
            Some("shares nothing: sharing = false"),
            Some("nothing is shared: sharing = false"),
        ),
        (
            "pool_mode = \"session\"",
            Some("shares nothing: pool_mode = \"session\""),
            Some("nothing is shared: pool_mode = \"session\""),
        ),
        (
            "session_functions = \"pin\"",
            Some("shares nothing of a client that has written: session_functions = \"pin\""),
            Some("a client that has written shares nothing: session_functions = \"pin\""),
        ),
    ] {
        let text = format!("upstream = \"postgresql://SERVER/postgres\"\nadmin_users = [\"postgres\"]\n{option}\n");
        let reloadable = Reloadable::start(&text, &[]);
        let checked = Command::new(PROGRAM)
            .arg("check")
            .arg(reloadable.folder.file("forebay.toml"))
            .output()
            .unwrap();
        let plan = String::from_utf8(checked.stdout).unwrap();
        let line = plan.lines().find(|line| line.starts_with("databases")).unwrap();
        let told = line.find("; shares").map(|begin| &line[begin + 2..]);
        assert_eq!(told, of_the_file, "{plan}");
        let mut admin = at(reloadable.proxy.address());
        admin.ask("SELECT 1");
        let shown = admin.query("SHOW FOREBAY SHARING").expect("shown");
        let of_all = shown.rows().into_iter().find(|row| row[2].is_none());
        let why = of_all.map(|row| row[6].clone().expect("a reason"));
        assert_eq!(why.as_deref(), of_the_console, "{option}");
    }
}

/// What a package brings is what the program takes.
#[test]
fn the_packaged_files_can_be_used() {
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let unit = std::fs::read_to_string(format!("{packaging}/forebay.service")).unwrap();
    let mut commands = 0;
    for line in unit.lines() {
        let Some((_, command)) = line.split_once("=/usr/bin/forebay ") else {
            continue;
        };
        let command = command.replace("/etc/forebay", packaging);
        // A check has an end; what serves is asked for its help, behind arguments that it must understand.
        let is_check = command.starts_with("check ");
        let arguments = command.split(' ').chain((!is_check).then_some("--help"));
        let ended = Command::new(PROGRAM).args(arguments).output().unwrap();
        assert!(ended.status.success(), "{line}: {ended:?}");
        if is_check {
            let plan = String::from_utf8(ended.stdout).unwrap();
            assert!(plan.contains("reports: shop at 127.0.0.1:5432"), "{plan}");
        }
        commands += 1;
    }
    assert_eq!(commands, 3, "ExecStartPre, ExecStart and ExecReload");
}
