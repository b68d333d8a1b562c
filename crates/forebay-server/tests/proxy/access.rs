//! Rules of access, beside a PostgreSQL that has the same in its `pg_hba.conf`; certificates; users that a query tells of.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use testbed::{Folder, Forebay};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use crate::login::log_in;
use crate::reload::{DONE, REFUSED, Reloadable};
use crate::{PASSWORD, PROGRAM, client, postgres, proxy, proxy_of, started, started_with_users, straight};

type Issuer = rcgen::Issuer<'static, rcgen::KeyPair>;

/// What a client from here is told: the error's message, or that it is let in.
async fn told(address: SocketAddr, from: Ipv4Addr, parameters: &[(&str, &str)]) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(&client::startup(parameters)).await.unwrap();
    loop {
        let kind = stream.read_u8().await.unwrap();
        let length = stream.read_u32().await.unwrap() as usize - 4;
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let message = client::Message { kind, body };
        match kind {
            b'Z' => return "let in".to_owned(),
            b'E' => return message.failure().message().to_owned(),
            _ => {}
        }
    }
}

/// A line of rules, mostly one that can be understood by both, and means something for the clients of this test.
fn line(random: &mut StdRng) -> String {
    let mut pick = |from: &[&str]| (*from.choose(random).unwrap()).to_owned();
    let kind = pick(&[
        "host",
        "host",
        "host",
        "local",
        "hostssl",
        "hostnossl",
        "hostgssenc",
        "hostnogssenc",
    ]);
    let database = pick(&[
        "all",
        "postgres",
        "\"all\"",
        "sameuser",
        "trusted,postgres",
        "template1, trusted",
        "template1 ,trusted",
        "tru\"sted\"",
        "a\"l\"l",
        "replication",
        "\"sameuser\"",
        "\"trusted\"",
    ]);
    let user = pick(&[
        "all",
        "trusted",
        "postgres",
        "\"all\"",
        "trusted,postgres",
        "scram",
        "\"postgres\",\tall",
        "All",
    ]);
    let address = pick(&[
        "all",
        "127.0.0.1/32",
        "127.0.0.2/31",
        "127.0.0.0/8",
        "127.0.0.3 255.255.255.255",
        "127.0.0.4    255.255.255.252",
        "0.0.0.0/0",
        "::/0",
        "::1/128",
        "10.0.0.0/8",
        "\"127.0.0.5/32\"",
    ]);
    let method = pick(&["trust", "reject", "trust", "\"reject\""]);
    let between = pick(&[" ", "\t", "  \\\n ", " "]);
    let comment = pick(&["", " # said", "#", ""]);
    match kind.as_str() {
        "local" => format!("{kind}{between}{database} {user} {method}{comment}"),
        _ => format!("{kind} {database}{between}{user} {address}{between}{method}{comment}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_let_in_whom_postgresqls_own_do() {
    let seed = std::env::var("FOREBAY_ACCESS_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("FOREBAY_ACCESS_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // Of its own: its rules are replaced.
    let judge = started_with_users();
    let mut judge_itself = straight(&judge);
    let rules = Folder::new("rules", None).unwrap();
    rules.place("hba.conf", "local all all trust\n", None).unwrap();
    let file = rules.file("hba.conf");
    let mut reloadable = Reloadable::start(
        "upstream = \"postgresql://SERVER/postgres\"\n",
        &["--hba-file", file.to_str().unwrap()],
    );
    let behind = reloadable.proxy.address();
    for server in [&judge, postgres()] {
        straight(server).query("CREATE DATABASE trusted").expect("a database");
    }
    let clients: Vec<(&str, &str, Ipv4Addr)> = ["trusted", "postgres", "all"]
        .into_iter()
        .flat_map(|user| ["postgres", "trusted", "all", "template1"].map(|database| (user, database)))
        .flat_map(|(user, database)| [1, 2, 3, 5, 9].map(|host| (user, database, Ipv4Addr::new(127, 0, 0, host))))
        .collect();
    let (mut compared, mut let_in) = (0, 0);
    // Rules as they come may let in nobody twenty times; rules that never do are a mistake of the generator.
    for round in 0..200 {
        if round >= 20 && let_in > 0 {
            break;
        }
        let marker = format!("marker{round}");
        let lines: Vec<String> = (0..random.random_range(1..7)).map(|_| line(&mut random)).collect();
        let text = format!("host all {marker} all trust\n{}\n", lines.join("\n"));
        std::fs::write(judge.folder().join("data/pg_hba.conf"), &text).unwrap();
        std::fs::write(&file, &text).unwrap();
        let mistakes = "SELECT coalesce(string_agg(line_number || ': ' || error, ', '), '') FROM pg_hba_file_rules WHERE error NOT LIKE '%record cannot match%'";
        let mistakes = judge_itself.ask(mistakes);
        if !mistakes.is_empty() {
            println!("{mistakes} in\n{text}");
            reloadable.reload(REFUSED);
            continue;
        }
        judge_itself.query("SELECT pg_reload_conf()").expect("reload");
        reloadable.reload(DONE);
        compared += 1;
        // The judge has them once its marker's user is let through to where there is none.
        let who = [("user", marker.as_str()), ("database", "postgres")];
        while !told(judge.address(), Ipv4Addr::LOCALHOST, &who)
            .await
            .contains("does not exist")
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for (user, database, from) in &clients {
            let who = [("user", *user), ("database", *database)];
            let expected = told(judge.address(), *from, &who).await;
            let_in += usize::from(expected == "let in");
            assert_eq!(
                told(behind, *from, &who).await,
                expected,
                "{user} at {database} from {from}, by\n{text}"
            );
        }
    }
    assert!(compared > 5 && let_in > 0, "{compared} files let {let_in} clients in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_cannot_be_shown_do_not_start() {
    let folder = Folder::new("rules", None).unwrap();
    let started = |rules: &str, arguments: &[&str]| {
        folder.place("hba.conf", rules, None).unwrap();
        let file = folder.file("hba.conf");
        let forebay = Forebay::builder(PROGRAM)
            .argument("--hba-file")
            .argument(file)
            .arguments(arguments)
            .start();
        forebay.map(drop).map_err(|error| error.to_string())
    };
    let why = started("host all all all scram-sha-256\n", &[]).unwrap_err();
    assert!(why.contains("there are no users"), "{why}");
    let why = started("hostssl all all all cert\n", &[]).unwrap_err();
    assert!(why.contains("--tls-client-ca"), "{why}");
    let why = started("host all all all trust\nhost all all trust\n", &[]).unwrap_err();
    assert!(why.contains("line 2"), "{why}");
    // Rules say who may come from where, and so it may be listened there.
    assert_eq!(
        started("host all all 10.0.0.0/8 trust\n", &["--listen", "0.0.0.0:0"]),
        Ok(())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_lets_its_own_user_in() {
    let (shop, own) = authority("Shop");
    let (stranger, _) = authority("Stranger");
    let folder = Folder::new("certificates", None).unwrap();
    let place = |name: &str, text: &str| {
        folder.place(name, text, None).unwrap();
        folder.file(name).to_str().unwrap().to_owned()
    };
    let (server, server_key) = signed("localhost", &shop);
    let rules =
        "hostssl all anna all cert\nhostssl all bert all trust clientcert=verify-ca\nhostssl all all all reject\n";
    let arguments = [
        ("--tls-certificate", place("server.pem", &server)),
        ("--tls-key", place("server.key", &server_key)),
        ("--tls-client-ca", place("ca.pem", &own)),
        ("--hba-file", place("hba.conf", rules)),
    ];
    let arguments: Vec<&str> = arguments.iter().flat_map(|(name, value)| [*name, value]).collect();
    let behind = started();
    let mut client = straight(&behind);
    for user in ["anna", "bert"] {
        client.query(&format!("CREATE ROLE {user} LOGIN")).expect(user);
    }
    let mut proxy = proxy(&behind, &arguments);
    let address = proxy.address();
    let (ca, ca_key) = (folder.file("ca.pem"), place("ca.key", &shop.key().serialize_pem()));
    let ca = ca.to_str().unwrap();
    let psql = |user: &str, certificate: Option<(&str, &str)>| {
        let mut psql = std::process::Command::new("psql");
        psql.args([
            "-XAtqc",
            "SELECT current_user",
            "-h",
            "127.0.0.1",
            "-U",
            user,
            "-d",
            "postgres",
            "-p",
        ])
        .arg(address.port().to_string())
        .env("PGSSLMODE", "require")
        .env(
            "PGSSLCERT",
            certificate.map_or("/nonexistent", |(certificate, _)| certificate),
        )
        .env("PGSSLKEY", certificate.map_or("/nonexistent", |(_, key)| key));
        let output = psql.output().unwrap();
        let told = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8(told).unwrap().trim().to_owned(),
        )
    };
    let certified = |name: &str, by: &Issuer| {
        let (certificate, key) = signed(name, by);
        let key = place(&format!("{name}.key"), &key);
        // As psql wants it.
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        (place(&format!("{name}.pem"), &certificate), key)
    };
    let (annas, annas_key) = certified("anna", &shop);
    let anna = Some((annas.as_str(), annas_key.as_str()));
    assert_eq!(psql("anna", anna), (true, "anna".to_owned()));
    assert_eq!(
        psql("bert", anna),
        (true, "bert".to_owned()),
        "one that is trusted, whosever it is"
    );
    let (is_let_in, why) = psql("carl", anna);
    assert!(!is_let_in && why.contains("pg_hba.conf rejects connection"), "{why}");
    for user in ["anna", "bert"] {
        let (is_let_in, why) = psql(user, None);
        assert!(
            !is_let_in && why.contains("requires a valid client certificate"),
            "{why}"
        );
    }
    let (berts, berts_key) = certified("bert", &shop);
    let (is_let_in, why) = psql("anna", Some((&berts, &berts_key)));
    assert!(
        !is_let_in && why.contains("certificate authentication failed for user \"anna\""),
        "{why}"
    );
    let (forged, forged_key) = certified("anna", &stranger);
    assert!(!psql("anna", Some((&forged, &forged_key))).0, "signed by somebody else");
    let logged = |said: &'static str| move |output: &str| output.contains(said).then_some(());
    let why = logged("the client's certificate is refused: none of the authorities");
    proxy.wait_for_output(client::PATIENCE, why).unwrap();
    // As openssl makes one where it is given no extensions.
    let [request, old] = ["old.csr", "old.pem"].map(|name| folder.file(name));
    for arguments in [
        vec![
            "req",
            "-new",
            "-subj",
            "/CN=anna",
            "-key",
            &annas_key,
            "-out",
            request.to_str().unwrap(),
        ],
        vec![
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            request.to_str().unwrap(),
            "-CA",
            ca,
            "-CAkey",
            &ca_key,
            "-CAcreateserial",
            "-out",
            old.to_str().unwrap(),
        ],
    ] {
        let made = std::process::Command::new("openssl").args(&arguments).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    }
    assert!(
        !psql("anna", Some((old.to_str().unwrap(), &annas_key))).0,
        "of version 1"
    );
    let why = logged("the client's certificate is refused: it is not of version 3");
    proxy.wait_for_output(client::PATIENCE, why).unwrap();
    assert_eq!(proxy.metric("forebay_logins_failed_total").unwrap(), Some(6.0));
}

/// What the guide says to type, typed.
#[test]
fn the_guides_certificates_are_taken() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guide/src/operating.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let folder = Folder::new("certificates", None).unwrap();
    let lines: Vec<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("$ openssl "))
        .collect();
    assert_eq!(lines.len(), 3, "an authority, a server's and a client's");
    let shell = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", line]).current_dir(folder.path()).output().unwrap()
    };
    for line in lines {
        let made = shell(&format!("openssl {line}"));
        assert!(made.status.success(), "{line}: {made:?}");
    }
    folder.place("hba.conf", "hostssl all ann all cert\n", None).unwrap();
    let file = |name: &str| folder.file(name).to_str().unwrap().to_owned();
    let arguments = [
        ("--tls-certificate", file("server.pem")),
        ("--tls-key", file("server.key")),
        ("--tls-client-ca", file("authority.pem")),
        ("--hba-file", file("hba.conf")),
    ];
    let arguments: Vec<&str> = arguments.iter().flat_map(|(name, value)| [*name, value]).collect();
    let behind = started();
    straight(&behind).query("CREATE ROLE ann LOGIN").expect("created");
    let proxy = proxy(&behind, &arguments);
    let line = guide
        .split('`')
        .find(|code| code.starts_with("psql \"host=localhost"))
        .unwrap();
    let line = line
        .replace(
            "port=6432",
            &format!("hostaddr=127.0.0.1 port={}", proxy.address().port()),
        )
        .replace("dbname=shop", "dbname=postgres");
    let told = shell(&format!("{line} -XAtc 'SELECT current_user'"));
    assert_eq!(String::from_utf8_lossy(&told.stdout), "ann\n", "{told:?}");
}

/// Who signs, and its own certificate in PEM.
pub(crate) fn authority(name: &str) -> (Issuer, String) {
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().unwrap();
    let own = parameters.self_signed(&key).unwrap().pem();
    (Issuer::new(parameters, key), own)
}

/// Certificate and key, in PEM.
pub(crate) fn signed(name: &str, issuer: &Issuer) -> (String, String) {
    let mut parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    let key = rcgen::KeyPair::generate().unwrap();
    (parameters.signed_by(&key, issuer).unwrap().pem(), key.serialize_pem())
}

/// The users of the server, as a function tells of them whom the proxy's own user may ask.
const LOOKUP: &str = "CREATE SCHEMA forebay;
CREATE FUNCTION forebay.lookup(name text) RETURNS TABLE (name text, password text) LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog
AS $$ SELECT rolname::text, rolpassword FROM pg_authid WHERE rolname = $1 $$;
REVOKE ALL ON FUNCTION forebay.lookup(text) FROM public;
CREATE ROLE asker LOGIN PASSWORD 'asks';
GRANT USAGE ON SCHEMA forebay TO asker;
GRANT EXECUTE ON FUNCTION forebay.lookup(text) TO asker;";
const AUTH_QUERY: &str = "SELECT * FROM forebay.lookup($1)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_tells_of_users() {
    let server = &started_with_users();
    let mut itself = straight(server);
    itself.query(LOOKUP).expect("the function");
    let url = format!("postgresql://asker:asks@{}/postgres", server.address());
    let proxy = proxy_of(&url, &["--auth-query", AUTH_QUERY, "--auth-query-kept", "0"]);
    let me = |user: &'static str, password: &'static str| log_in(proxy.address(), user, "postgres", Some(password));
    assert_eq!(me("scram", PASSWORD).await.as_deref(), Ok("scram postgres"));
    assert_eq!(me("hashed", PASSWORD).await.as_deref(), Ok("hashed postgres"));
    for (user, password) in [
        ("scram", "wrong"),
        ("hashed", "wrong"),
        ("nobody", PASSWORD),
        ("nobody", ""),
    ] {
        let refused = me(user, password).await.unwrap_err();
        assert_eq!(
            refused,
            format!("FATAL 28P01 password authentication failed for user \"{user}\"")
        );
    }
    // It is asked each time.
    itself
        .query("ALTER ROLE changes PASSWORD 'another'")
        .expect("another password");
    assert_eq!(me("changes", "another").await.as_deref(), Ok("changes postgres"));
    assert!(me("changes", PASSWORD).await.is_err());
    itself
        .query("ALTER ROLE changes VALID UNTIL '2020-01-01'")
        .expect("an end");
    assert!(
        me("changes", "another").await.unwrap_err().contains("28P01"),
        "its time is past, though a connection is idle"
    );
    itself
        .query("ALTER ROLE changes VALID UNTIL 'infinity' NOLOGIN")
        .expect("no login");
    assert!(me("changes", "another").await.unwrap_err().contains("28P01"));
    itself.query("ALTER ROLE changes LOGIN").expect("login");
    assert_eq!(me("changes", "another").await.as_deref(), Ok("changes postgres"));
    // A connection that was lost is made anew.
    itself
        .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'asker'")
        .expect("its end");
    assert_eq!(me("changes", "another").await.as_deref(), Ok("changes postgres"));
    // What the query may not ask lets nobody in.
    itself
        .query("REVOKE EXECUTE ON FUNCTION forebay.lookup(text) FROM asker")
        .expect("revoked");
    let refused = me("scram", PASSWORD).await.unwrap_err();
    assert_eq!(refused, "FATAL 08006 the database could not be asked about this user");
}

/// What it said is believed for a while, and never a reason to refuse anybody for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_query_said_is_kept_and_asked_anew_before_it_refuses() {
    let server = &started_with_users();
    let mut itself = straight(server);
    itself.query(LOOKUP).expect("the function");
    // How often it is asked of each.
    itself
        .query(
            "CREATE TABLE public.asked (name text);
             CREATE FUNCTION forebay.counted(name text) RETURNS TABLE (name text, password text) LANGUAGE sql SECURITY DEFINER
             SET search_path = pg_catalog AS $$ INSERT INTO public.asked VALUES ($1); SELECT * FROM forebay.lookup($1) $$",
        )
        .expect("a counting one");
    let url = format!("postgresql://asker:asks@{}/postgres", server.address());
    let query = "SELECT * FROM forebay.counted($1)";
    let proxy = proxy_of(&url, &["--auth-query", query, "--auth-query-kept", "1h"]);
    let me = |user: &'static str, password: &'static str| log_in(proxy.address(), user, "postgres", Some(password));
    let mut asked = |user: &str| itself.ask(&format!("SELECT count(*) FROM public.asked WHERE name = '{user}'"));
    for _ in 0..5 {
        for user in ["scram", "hashed", "changes"] {
            assert_eq!(me(user, PASSWORD).await, Ok(format!("{user} postgres")));
        }
    }
    assert_eq!([asked("scram"), asked("hashed"), asked("changes")], ["1", "1", "1"]);
    // A wrong password is looked up before it is refused; who is nobody each time.
    assert!(me("scram", "wrong").await.unwrap_err().contains("28P01"));
    assert_eq!(asked("scram"), "2");
    for _ in 0..2 {
        assert!(me("nobody", "wrong").await.unwrap_err().contains("28P01"));
    }
    assert_eq!(asked("nobody"), "2");
    // One that was changed is known to the first who comes with it where the proof is of no salt, and to the second where it is.
    let change = |sql: &str| drop(straight(server).query(sql).expect(sql));
    change("SET password_encryption = 'md5'; ALTER ROLE hashed PASSWORD 'another'");
    assert_eq!(me("hashed", "another").await.as_deref(), Ok("hashed postgres"));
    assert!(me("hashed", PASSWORD).await.is_err());
    change("ALTER ROLE changes PASSWORD 'another'");
    assert!(me("changes", "another").await.unwrap_err().contains("28P01"));
    assert_eq!(me("changes", "another").await.as_deref(), Ok("changes postgres"));
    assert!(me("changes", PASSWORD).await.is_err());
    // What has an end is not believed beyond it.
    change("ALTER ROLE changes VALID UNTIL 'infinity'");
    change(
        "SET TimeZone = 'UTC'; DO $$BEGIN EXECUTE format('ALTER ROLE scram VALID UNTIL %L', now() + interval '1 second'); END$$",
    );
    assert!(me("scram", "wrong").await.is_err());
    let begun = std::time::Instant::now();
    while me("scram", PASSWORD).await.is_ok() {
        assert!(begun.elapsed() < client::PATIENCE, "it is believed for an hour");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobodys_names_stand_before_the_catalogs_in_the_query() {
    let server = &started_with_users();
    // Who may make things in public would like to answer in place of the catalog.
    straight(server)
        .query(
            "CREATE ROLE asker SUPERUSER LOGIN PASSWORD 'asks';
             CREATE TABLE public.pg_authid (rolname text, rolpassword text);
             INSERT INTO public.pg_authid VALUES ('postgres', 'md5' || md5('mine' || 'postgres'));
             ALTER ROLE asker SET search_path = public, pg_catalog",
        )
        .expect("a trap");
    let url = format!("postgresql://asker:asks@{}/postgres", server.address());
    let proxy = proxy_of(
        &url,
        &[
            "--auth-query",
            "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1",
        ],
    );
    assert!(
        log_in(proxy.address(), "postgres", "postgres", Some("mine"))
            .await
            .is_err()
    );
    let whom = log_in(proxy.address(), "scram", "postgres", Some(PASSWORD)).await;
    assert_eq!(whom.as_deref(), Ok("scram postgres"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_are_the_services_user_at_the_database_once_they_have_shown_who_they_are() {
    let server = postgres();
    let encoded = "se%27cr%40t%C3%A9";
    let url = format!("postgresql://scram:{encoded}@{}/postgres", server.address());
    let folder = Folder::new("users", None).unwrap();
    let hash = "SELECT 'md5' || md5('hers' || 'anna')";
    folder
        .place("users", &format!("anna:{}\n", straight(server).ask(hash)), None)
        .unwrap();
    let file = folder.file("users");
    let proxy = proxy_of(&url, &["--service-user", "--users", file.to_str().unwrap()]);
    let whom = log_in(proxy.address(), "anna", "postgres", Some("hers")).await;
    assert_eq!(whom.as_deref(), Ok("scram postgres"));
    assert!(
        log_in(proxy.address(), "anna", "postgres", Some("wrong"))
            .await
            .is_err()
    );
    assert!(
        log_in(proxy.address(), "scram", "postgres", Some(PASSWORD))
            .await
            .is_err(),
        "not in the file"
    );
    // Without users the database says who they are; that it trusts this machine is no proof of them.
    let asking = proxy_of(&url, &["--service-user"]);
    let whom = log_in(asking.address(), "hashed", "postgres", Some(PASSWORD)).await;
    assert_eq!(whom.as_deref(), Ok("scram postgres"));
    assert!(
        log_in(asking.address(), "hashed", "postgres", Some("wrong"))
            .await
            .is_err()
    );
    assert!(log_in(asking.address(), "trusted", "postgres", None).await.is_err());
    let trusting = proxy_of(&url, &["--service-user", "--trust-loopback"]);
    let whom = log_in(trusting.address(), "whoever", "postgres", None).await;
    assert_eq!(whom.as_deref(), Ok("scram postgres"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hash_of_md5_is_proof_enough_for_a_database_that_asks_so() {
    let server = postgres();
    let hash = straight(server).ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'hashed'");
    let folder = Folder::new("users", None).unwrap();
    folder.place("users", &format!("hashed:{hash}\n"), None).unwrap();
    let file = folder.file("users");
    let proxy = proxy(server, &["--users", file.to_str().unwrap()]);
    let me = |password: &'static str| log_in(proxy.address(), "hashed", "postgres", Some(password));
    assert_eq!(me(PASSWORD).await.as_deref(), Ok("hashed postgres"));
    assert!(me("wrong").await.unwrap_err().contains("28P01"));
}
