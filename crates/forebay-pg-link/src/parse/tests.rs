//! What texts say which server; beside each URL the pairs that say the same.

use std::time::Duration;

use crate::config::{ClearPassword, Config, Endpoint, Host, RequireAuth};

fn config(text: &str) -> Config {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Config>() {
        Ok(config) => panic!("{text} was taken for {config:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_url_and_pairs_say_the_same() {
    for (url, pairs) in [
        (
            "postgresql://app@db:5433/shop",
            "user=app host=db port=5433 dbname=shop",
        ),
        (
            "postgres://app:se%20cret@db/shop",
            "user=app password='se cret' host=db dbname=shop",
        ),
        (
            "postgresql://a%40b:p%3Aw%2F@db/d%2Fe",
            "user=a@b password=p:w/ host=db dbname=d/e",
        ),
        (
            "postgresql://db1,db2:5433,db3/shop",
            "host=db1,db2,db3 port=,5433, dbname=shop",
        ),
        ("postgresql://[::1]:5433/shop", "host=::1 port=5433 dbname=shop"),
        (
            "postgresql://app@[fe80::1],h/shop",
            "user=app host=fe80::1,h dbname=shop",
        ),
        (
            "postgresql://%2Frun%2Fpostgresql/shop",
            "host=/run/postgresql dbname=shop",
        ),
        (
            "postgresql:///shop?host=/run/pg&port=7",
            "dbname=shop host=/run/pg port=7",
        ),
        (
            "postgresql://db?sslmode=verify-full&options=-c%20a%3Db",
            r"host=db sslmode=verify-full options='-c a=b'",
        ),
        ("postgresql://db?ssl=true", "host=db sslmode=require"),
        (
            "postgresql://db?target_session_attrs=read-write",
            "host = db   target_session_attrs = 'read-write'",
        ),
        ("postgresql://:@db:/", "host=db"),
        ("postgresql://", ""),
        ("postgresql://u:it%27s%5C@h", r"user=u password='it\'s\\' host=h"),
        ("postgresql://u:a%20b@h", r"user=u password=a\ b host=h"),
    ] {
        assert_eq!(config(url), config(pairs), "{url}");
    }
}

#[test]
fn hosts_have_their_own_ports_and_addresses() {
    let tcp = |name: &str, address: Option<&str>, port| Host {
        endpoint: Endpoint::Tcp {
            name: name.to_owned(),
            address: address.map(|address| address.parse().unwrap()),
        },
        port,
    };
    assert_eq!(config("host=a,b").hosts, [tcp("a", None, 5432), tcp("b", None, 5432)]);
    assert_eq!(config("host=a,b port=7").hosts, [tcp("a", None, 7), tcp("b", None, 7)]);
    assert_eq!(
        config("host=a,b port=7,8").hosts,
        [tcp("a", None, 7), tcp("b", None, 8)]
    );
    assert_eq!(config("hostaddr=::1").hosts, [tcp("::1", Some("::1"), 5432)]);
    assert_eq!(
        config("host=a,b hostaddr=10.0.0.1,10.0.0.2").hosts,
        [tcp("a", Some("10.0.0.1"), 5432), tcp("b", Some("10.0.0.2"), 5432)]
    );
    let unix = &config("host=/run/pg port=7").hosts[0];
    assert_eq!(unix.endpoint, Endpoint::Unix("/run/pg".into()));
    assert_eq!(unix.to_string(), "/run/pg:7");
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    for (text, why) in [
        ("postgresql://h:0/d", "port"),
        ("postgresql://h:65536/d", "port"),
        ("postgresql://h:five/d", "port"),
        ("host=a,b port=1,2,3", "port has 3"),
        ("host=a,b hostaddr=10.0.0.1", "hostaddr has 1"),
        ("hostaddr=db.example", "hostaddr"),
        ("sslmode=sometimes", "sslmode"),
        ("sslmode=verify-ca", "sslrootcert"),
        ("sslrootcert=system", "verify-full"),
        ("sslnegotiation=direct", "sslmode"),
        ("sslcert=a.pem", "sslkey"),
        ("target_session_attrs=write", "target_session_attrs"),
        ("load_balance_hosts=maybe", "load_balance_hosts"),
        ("channel_binding=yes", "channel_binding"),
        ("require_auth=scram-sha-256,!md5", "require_auth"),
        ("client_encoding=latin1", "UTF8"),
        ("gssencmode=require", "Kerberos"),
        ("passfile=/x", "passfile is not supported"),
        ("connect_timeout=soon", "connect_timeout"),
        ("postgresql://h/d?colour=red", "not known"),
        ("postgresql://h/d?sslmod=require", "there is no key sslmod, but sslmode"),
        ("hots=x", "there is no key hots, but host"),
        ("mysql://h/d", "only postgresql://"),
        ("://h/d", "only postgresql://"),
        ("postgresql://h/%0", "hexadecimal"),
        ("postgresql://h/a%00b", "hexadecimal"),
        ("postgresql://h/%ff", "UTF-8"),
        ("postgresql://[::1/d", "no ]"),
        ("postgresql://[::1]x/d", "behind an address"),
        ("host", "an = is missing"),
        ("password='x", "no end"),
    ] {
        let refused = refusal(text);
        assert!(refused.contains(why), "{text}: {refused}");
    }
}

#[test]
fn no_refusal_and_no_debug_output_repeats_a_password() {
    for text in [
        "postgresql://u:hunter2@h:0/d",
        "password=hunter2 hunter2",
        "password='hunter2",
        "hunter2=x",
        "x hunter2=y",
        "postgresql://u:pw@h/d?hunter2=1",
        "password=hunter2 port=hunter2",
        "sslmode=hunter2",
    ] {
        assert!(!refusal(text).contains("hunter2"), "{text}");
    }
    assert!(!format!("{:?}", config("password=hunter2")).contains("hunter2"));
}

#[test]
fn methods_are_allowed_or_excluded_but_not_both() {
    let methods = |text: &str| config(&format!("require_auth={text}")).require_auth;
    assert_eq!(methods(""), RequireAuth::default());
    let scram = methods("scram-sha-256");
    assert!(scram.scram_sha_256 && !scram.md5 && !scram.none && scram.password == ClearPassword::No);
    assert_eq!(methods("password").password, ClearPassword::Always);
    let not = methods("!password,!none");
    assert!(not.scram_sha_256 && not.md5 && !not.none && not.password == ClearPassword::No);
}

#[test]
fn times_of_zero_are_for_ever() {
    assert_eq!(config("connect_timeout=0").connect_timeout, None);
    assert_eq!(config("connect_timeout=-1").connect_timeout, None);
    assert_eq!(
        config("connect_timeout=2").connect_timeout,
        Some(Duration::from_secs(2))
    );
    assert_eq!(
        config("tcp_user_timeout=250").tcp_user_timeout,
        Some(Duration::from_millis(250))
    );
}
