//! Who is greeted, with what words, and how many are.

use std::time::Duration;

use crate::access::{authority, signed};
use crate::client::{Client, Failure, Message, query, startup};
use crate::reload::{DONE, Reloadable};
use crate::{PROGRAM, at, postgres, proxy, straight};

/// All that is said up to the first ReadyForQuery, without what differs between any two sessions; settings have no order.
fn greeting(address: std::net::SocketAddr, parameters: &[(&str, &str)]) -> Vec<Message> {
    let mut client = Client::raw(address);
    client.send(&startup(parameters));
    let mut said = client.answer().messages;
    said.retain(|message| message.kind != b'K');
    said.sort_by(|one, other| (one.kind, &one.body).cmp(&(other.kind, &other.body)));
    said
}

#[test]
fn what_the_server_says_beside_its_welcome_is_said_to_each() {
    let server = postgres();
    let proxy = proxy(server, &[]);
    let long = "x".repeat(70);
    for application in [long.as_str(), "h\u{f6}r zu", "plain", "it's \\'; DROP TABLE t; --"] {
        let parameters = [
            ("user", "postgres"),
            ("database", "postgres"),
            ("application_name", application),
        ];
        let expected = greeting(server.address(), &parameters);
        let notices = expected.iter().filter(|message| message.kind == b'N').count();
        assert_eq!(notices, usize::from(application == long), "{expected:?}");
        // The second is told what the first was.
        for _ in 0..2 {
            assert_eq!(greeting(proxy.address(), &parameters), expected, "{application}");
        }
        let mut client = Client::connect_with(proxy.address(), &parameters).unwrap();
        let mut itself = Client::connect_with(server.address(), &parameters).unwrap();
        let shows = "SHOW application_name";
        assert_eq!(client.query(shows).messages, itself.query(shows).messages);
    }
}

/// All connections are at work: whoever comes is greeted all the same, and waits only once it asks for something.
#[test]
fn nobody_stands_at_the_door_because_others_are_at_work() {
    let arguments = ["--max-server-connections", "2", "--server-wait-timeout", "500ms"];
    let proxy = proxy(postgres(), &arguments);
    let mut busy = [(); 2].map(|()| at(proxy.address()));
    for client in &mut busy {
        client.run("BEGIN");
    }
    let mut comes = at(proxy.address());
    assert_eq!(comes.settings, straight(postgres()).settings);
    comes.send(&query("SELECT 'served'"));
    assert!(comes.read_within(Duration::from_millis(20)).is_none(), "it waits");
    busy[0].run("COMMIT");
    assert_eq!(comes.answer().value().as_deref(), Some("served"));
    // How one is greeted that begins otherwise is for the server to say.
    busy[0].run("BEGIN");
    let otherwise = [("user", "postgres"), ("database", "postgres"), ("work_mem", "123kB")];
    let refused = Client::connect_with(proxy.address(), &otherwise).unwrap_err();
    assert_eq!(refused.sqlstate(), "53300");
}

/// Two come that begin alike, before anybody did: as soon as one of them is greeted both are, though the connection goes to another.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "who waits has to have waited: on a thread of the test's own"
)]
fn who_waits_to_be_greeted_is_when_another_is() {
    let proxy = proxy(postgres(), &["--max-server-connections", "1"]);
    let waiting = |count: f64| while proxy.metric("forebay_clients_waiting").unwrap() != Some(count) {};
    let [mut holds, mut next] = [(); 2].map(|()| at(proxy.address()));
    holds.run("BEGIN");
    let [mut first, mut second] = [(); 2].map(|()| Client::raw(proxy.address()));
    let opening = startup(&[("user", "postgres"), ("database", "postgres"), ("work_mem", "123kB")]);
    first.send(&opening);
    waiting(1.0);
    next.send(&query("BEGIN"));
    waiting(2.0);
    second.send(&opening);
    waiting(3.0);
    // Nobody who has waited for longer than this is passed over.
    std::thread::sleep(Duration::from_millis(30));
    holds.run("COMMIT");
    assert_eq!(first.answer().status, 'I');
    assert_eq!(next.answer().status, 'T', "it has the connection, and keeps it");
    assert_eq!(second.answer().status, 'I');
}

fn refusal(came: Result<Client, Failure>) -> (String, String) {
    let failure = came.expect_err("there are too many");
    (failure.sqlstate().to_owned(), failure.message().to_owned())
}

#[test]
fn of_a_user_and_a_database_there_are_as_many_as_the_file_says() {
    let text = |users: usize, database: usize| {
        format!(
            "upstream = \"postgresql://SERVER/postgres\"\nmax_user_connections = 3\nadmin_users = \"trusted\"\n\
             [[user]]\nname = \"scram\"\nmax_client_connections = {users}\n\
             [[database]]\nname = \"few\"\nurl = \"postgresql://SERVER/postgres\"\nmax_client_connections = {database}\n"
        )
    };
    let mut reloadable = Reloadable::start(&text(1, 2), &["--trust-loopback"]);
    let address = reloadable.proxy.address();
    let comes = |user: &str, database: &str| Client::connect_with(address, &[("user", user), ("database", database)]);
    let mut clients = vec![comes("postgres", "few").unwrap(), comes("postgres", "few").unwrap()];
    let of_the_database = (
        "53300".to_owned(),
        "too many connections for database \"few\"".to_owned(),
    );
    assert_eq!(refusal(comes("postgres", "few")), of_the_database);
    clients.push(comes("postgres", "postgres").unwrap());
    let of_the_user = (
        "53300".to_owned(),
        "too many connections for role \"postgres\"".to_owned(),
    );
    assert_eq!(refusal(comes("postgres", "postgres")), of_the_user, "of all databases");
    // Who looks after it is let in.
    clients.extend((0..5).map(|_| comes("trusted", "few").unwrap()));
    reloadable.place(&text(1, 9));
    reloadable.reload(DONE);
    assert_eq!(refusal(comes("postgres", "few")), of_the_user);
    // Who goes makes room.
    drop(clients);
    let begun = std::time::Instant::now();
    let client = loop {
        match comes("postgres", "few") {
            Ok(client) => break client,
            Err(_) => assert!(begun.elapsed() < crate::client::PATIENCE),
        }
    };
    drop(client);
}

/// The database takes the proxy for the user whose certificate it shows: nobody else is let in on the strength of that.
#[test]
fn a_users_certificate_proves_it_to_the_database_and_not_its_client() {
    let (issuer, own) = authority("Behind");
    let folder = testbed::Folder::new("certificates", None).unwrap();
    let place = |name: &str, text: &str| {
        folder.place(name, text, None).unwrap();
        let file = folder.file(name);
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let server = testbed::Postgres::builder()
        .host_based_authentication("hostssl all anna 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 trust\n")
        .start()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut itself = straight(&server);
    itself.run("CREATE ROLE anna LOGIN");
    let (certificate, key) = signed("localhost", &issuer);
    let data = server.folder().join("data");
    let owner = std::fs::metadata(&data).unwrap();
    for (name, text) in [("server.crt", &certificate), ("server.key", &key), ("ca.crt", &own)] {
        let file = data.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let (user, group) = (
            std::os::unix::fs::MetadataExt::uid(&owner),
            std::os::unix::fs::MetadataExt::gid(&owner),
        );
        std::os::unix::fs::chown(&file, Some(user), Some(group)).unwrap();
    }
    for setting in ["ssl_ca_file = 'ca.crt'", "ssl = on"] {
        itself.run(&format!("ALTER SYSTEM SET {setting}"));
    }
    itself.run("SELECT pg_reload_conf()");
    let (annas, annas_key) = signed("anna", &issuer);
    let text = format!(
        "upstream = \"postgresql://{}/postgres?sslmode=require\"\n[[user]]\nname = \"anna\"\nsslcert = \"{}\"\nsslkey = \"{}\"\n",
        server.address(),
        place("anna.pem", &annas),
        place("anna.key", &annas_key)
    );
    let config = place("forebay.toml", &text);
    let started = |arguments: &[&str]| {
        let forebay = testbed::Forebay::builder(PROGRAM)
            .databases_of(&config)
            .arguments(arguments);
        forebay.start().unwrap_or_else(|error| panic!("{error}"))
    };
    let as_anna = |proxy: &testbed::Forebay| {
        let begun = std::time::Instant::now();
        loop {
            let came = Client::connect_with(proxy.address(), &[("user", "anna"), ("database", "postgres")]);
            // The server may still be about to read its certificates.
            match came {
                Err(failure) if failure.sqlstate() == "08006" && begun.elapsed() < crate::client::PATIENCE => {}
                came => return came,
            }
        }
    };
    let refused = as_anna(&started(&[])).unwrap_err();
    assert!(refused.message().contains("no proof of yours"), "{refused:?}");
    let trusting = started(&["--trust-loopback"]);
    let mut anna = as_anna(&trusting).unwrap();
    assert_eq!(anna.ask("SELECT current_user"), "anna");
    assert_eq!(
        anna.ask("SELECT client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()"),
        "/CN=anna"
    );
    // A file that is not there is said before anything is served.
    std::fs::write(&config, text.replace("anna.pem", "absent.pem")).unwrap();
    let check = std::process::Command::new(PROGRAM)
        .args(["check", &config])
        .output()
        .unwrap();
    assert_eq!(check.status.code(), Some(1), "{check:?}");
}
