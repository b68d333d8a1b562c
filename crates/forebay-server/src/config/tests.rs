//! Options from the command line, a file and the defaults: which wins, and what is refused.

use std::path::Path;

use clap::CommandFactory as _;
use forebay_proxy::pool::{PoolMode, Timeouts};

use super::*;

fn options(arguments: &[&str]) -> Result<Options, OptionsError> {
    let line = CommandLine::try_parse_from(["forebay"].iter().chain(arguments)).expect("a command line");
    assert!(line.command.is_none());
    line.serve.resolve()
}

fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[test]
fn without_anything_the_defaults_hold() {
    assert_eq!(options(&[]).unwrap(), Options::default());
    let serve = CommandLine::try_parse_from(["forebay", "serve"]).unwrap();
    let Some(Command::Serve(settings)) = serve.command else {
        panic!("not serve")
    };
    assert_eq!(settings.resolve().unwrap(), Options::default());
}

#[test]
fn the_command_line_wins_over_the_file_and_the_file_over_the_defaults() {
    let (_file, path) =
        file("listen = \"127.0.0.1:1\"\nreaders = 7\nmax_message_bytes = 20000\nstatement_timeout = \"0\"\n");
    let options = options(&[
        "--config",
        &path,
        "--listen",
        "localhost:2",
        "--max-result-bytes",
        "1MiB",
    ])
    .unwrap();
    assert_eq!(options.listen.port(), 2, "command line over file");
    assert_eq!(options.readers, 7, "file over default");
    assert_eq!(options.max_message_bytes, 20_000);
    assert_eq!(options.statement_timeout, None, "0 is no limit");
    assert_eq!(options.max_result_bytes, 1 << 20, "command line over default");
    assert_eq!(options.batch_max_items, 4096, "default");
}

/// What the embedded database is told.
const OF_THE_DATABASE: [(&str, &str); 10] = [
    ("database", "x.db"),
    ("max_input_bytes", "3MiB"),
    ("max_result_bytes", "2MiB"),
    ("busy_timeout", "2s"),
    ("idle_snapshot_timeout", "10s"),
    ("stall_timeout", "11s"),
    ("batch_max_items", "6"),
    ("batch_max_wait", "7ms"),
    ("readers", "8"),
    ("synchronous", "normal"),
];
/// What a proxy is told.
const OF_THE_PROXY: [(&str, &str); 28] = [
    ("upstream", "postgresql://app@127.0.0.1/app"),
    ("max_server_connections", "3"),
    ("min_server_connections", "2"),
    ("reserve_server_connections", "1"),
    ("reserve_after", "1s"),
    ("idle_session_timeout", "8s"),
    ("max_upstream_connections", "9"),
    ("max_waiting", "7"),
    ("pool_mode", "session"),
    ("sharing", "false"),
    ("session_functions", "pin"),
    ("server_wait_timeout", "5s"),
    ("server_idle_timeout", "6s"),
    ("server_lifetime", "7s"),
    ("handover_socket", "forebay.handover"),
    ("trust_loopback", "true"),
    ("service_user", "true"),
    ("auth_query", "SELECT * FROM forebay.lookup($1)"),
    ("auth_query_kept", "3s"),
    ("max_client_connections", "11"),
    ("max_user_connections", "12"),
    ("admin_users", "ann, bob@shop"),
    ("cache_memory", "2MiB"),
    ("warm_file", "hot"),
    ("invalidate", "stream"),
    ("max_lag", "300ms"),
    ("publication", "told"),
    ("max_wal", "3MiB"),
];
/// What both are told.
const OF_BOTH: [(&str, &str); 16] = [
    ("listen", "127.0.0.1:1"),
    ("socket_folder", "sockets"),
    ("http", "off"),
    ("users", "u"),
    ("hba_file", "hba.conf"),
    ("insecure", "true"),
    ("tls_certificate", "c.pem"),
    ("tls_key", "k.pem"),
    ("tls_client_ca", "ca.pem"),
    ("require_tls", "true"),
    ("max_connections", "5"),
    ("max_message_bytes", "1MiB"),
    ("startup_timeout", "4s"),
    ("statement_timeout", "1s"),
    ("idle_transaction_timeout", "3s"),
    ("drain_timeout", "9s"),
];

/// Every key in the file and on the command line, each with a value that is not the default.
#[test]
fn file_and_command_line_have_the_same_keys() {
    let log = [("log", "debug"), ("log_format", "json")];
    let database = [&OF_BOTH[..], &OF_THE_DATABASE, &log].concat();
    let proxy = [&OF_BOTH[..], &OF_THE_PROXY, &log].concat();
    let keys: Vec<_> = CommandLine::command()
        .get_arguments()
        .map(|argument| argument.get_id().to_string())
        .collect();
    for key in keys
        .iter()
        .filter(|key| !["config", "help", "version"].contains(&key.as_str()))
    {
        let is_tested = [&database, &proxy]
            .iter()
            .any(|given| given.iter().any(|(name, _)| name == key));
        assert!(is_tested, "{key} is not tested");
    }
    let of_the_database = same_in_both(&database);
    assert_eq!(of_the_database.tls.as_ref().unwrap().key, Path::new("k.pem"));
    assert_eq!(
        (of_the_database.http, of_the_database.synchronous),
        (None, Synchronous::Normal)
    );
    let of_the_proxy = same_in_both(&proxy).proxy.unwrap();
    assert_eq!(of_the_proxy.max_user_clients, Some(12));
    let upstream = of_the_proxy.upstream.unwrap();
    assert_eq!(
        (upstream.auth_query_kept.as_secs(), upstream.max_clients),
        (3, Some(11))
    );
    assert!(upstream.is_service && upstream.auth_query.is_some());
    let limits = upstream.limits;
    assert_eq!(limits.mode, PoolMode::Session);
    assert_eq!(
        (limits.max_connections, limits.max_waiting, limits.max_message_bytes),
        (3, 7, 1 << 20)
    );
    assert_eq!((limits.min_connections, limits.reserve_connections), (2, 1));
    assert_eq!(limits.reserve_after.as_secs(), 1);
    let Timeouts {
        statement,
        idle_transaction,
        idle_session,
    } = limits.timeouts;
    let seconds = [statement, idle_transaction, idle_session].map(|limit| limit.map(|limit| limit.as_secs()));
    assert_eq!(seconds, [Some(1), Some(3), Some(8)]);
    let times = [limits.max_wait, limits.idle_timeout, limits.lifetime].map(|time| time.as_secs());
    assert_eq!((times, of_the_proxy.trusts_loopback), ([5, 6, 7], true));
    for (user, database, is_one) in [
        ("ann", "shop", true),
        ("ann", "mail", true),
        ("bob", "shop", true),
        ("bob", "mail", false),
        ("bob@shop", "mail", true),
        ("an", "shop", false),
        ("", "shop", false),
    ] {
        assert_eq!(of_the_proxy.admins.have(user, database), is_one, "{user} at {database}");
    }
    for text in ["admin_users = \"\"", "admin_users = [\"ann\", \" \"]"] {
        let (_file, path) = file(text);
        let error = options(&["--config", &path]).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("a name is empty"), "{error}");
    }
}

/// What is given in a file, and on the command line.
fn same_in_both(given: &[(&str, &str)]) -> Options {
    let text: String = given
        .iter()
        .map(|(key, text)| {
            let number = text.parse::<u32>().is_ok() || text.parse::<bool>().is_ok();
            if number {
                format!("{key} = {text}\n")
            } else {
                format!("{key} = \"{text}\"\n")
            }
        })
        .collect();
    let (_file, path) = file(&text);
    let from_file = options(&["--config", &path]).unwrap();
    let arguments: Vec<String> = given
        .iter()
        .map(|(key, text)| format!("--{}={text}", key.replace('_', "-")))
        .collect();
    let from_line = options(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!(from_file, from_line);
    from_file
}

/// The same options in the same order, with the same defaults, whatever the commas, quotes and blanks they are written with.
#[test]
fn the_guide_has_every_option_and_its_default() {
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide/src/operating.md");
    let text = std::fs::read_to_string(chapter).unwrap();
    let plain = |words: &str| words.replace([' ', ',', '`'], "");
    let (_, table) = text.split_once("\n| option | default | |\n|---|---|---|\n").unwrap();
    let told: Vec<(String, String)> = table
        .lines()
        .map_while(|line| line.strip_prefix("| `--")?.split_once('|'))
        .map(|(option, rest)| (plain(option), plain(rest.split('|').next().unwrap())))
        .collect();
    let serve = CommandLine::command();
    let options: Vec<(String, String)> = serve
        .get_arguments()
        .filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
        .map(|argument| {
            let help = argument.get_help().unwrap().to_string();
            let (_, default) = help.rsplit_once("[default: ").unwrap_or(("", "none"));
            (
                argument.get_long().unwrap().to_owned(),
                plain(default.trim_end_matches(']')),
            )
        })
        .collect();
    assert_eq!(told, options);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    for text in [
        "readers = 1\nlisten_on = \"x\"\n",
        "readers = 1\nconfig = \"x\"\n",
        "readers = 1\nreaders = 2\n",
        "\nreaders = \"two\"\n",
    ] {
        let (_file, path) = file(text);
        let error = options(&["--config", &path]).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
    let (_file, path) = file("listen_on = \"x\"\n");
    assert!(
        options(&["--config", &path])
            .unwrap_err()
            .to_string()
            .contains("listen_on")
    );
    for (key, told) in [
        (
            "cache_memroy",
            "unknown field `cache_memroy`: did you mean `cache_memory`?",
        ),
        (
            "max_connection",
            "unknown field `max_connection`: did you mean `max_connections`?",
        ),
        ("xyzzy", "unknown field `xyzzy`"),
    ] {
        let (_file, path) = file(&format!("{key} = \"x\"\n"));
        let error = options(&["--config", &path]).unwrap_err().to_string();
        assert!(error.trim_end().ends_with(told), "{error}");
    }
    let (_file, path) = file("[[rule]]\nname = \"x\"\nfesh = \"1s\"\n");
    let error = options(&["--config", &path]).unwrap_err().to_string();
    assert!(
        error.contains("line 3") && error.trim_end().ends_with("did you mean `fresh`?"),
        "{error}"
    );
    assert!(matches!(
        options(&["--config", "/nonexistent"]),
        Err(OptionsError::File { .. })
    ));
    assert!(CommandLine::try_parse_from(["forebay", "--listen-on", "x"]).is_err());
}

#[test]
fn beyond_loopback_only_with_users_or_on_purpose() {
    for arguments in [
        ["--listen", "0.0.0.0:1"],
        ["--listen", "[::]:1"],
        ["--http", "192.0.2.1:1"],
        ["--listen", "[::ffff:192.0.2.1]:1"],
    ] {
        let error = options(&arguments).unwrap_err();
        assert!(matches!(error, OptionsError::OpenToEveryone { .. }));
        assert!(
            error.to_string().contains("--users") && error.to_string().contains("--insecure"),
            "{error}"
        );
        assert!(options(&[&arguments[..], &["--users", "u"]].concat()).is_ok());
        assert!(options(&[&arguments[..], &["--insecure"]].concat()).is_ok());
        assert!(options(&[&arguments[..], &["--insecure=false"]].concat()).is_err());
    }
    for address in ["127.0.0.2:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(options(&["--listen", address]).is_ok(), "{address}");
    }
}

#[test]
fn values_out_of_their_range_are_named() {
    for (arguments, option) in [
        (["--max-connections", "0"], "max_connections"),
        (["--batch-max-items", "0"], "batch_max_items"),
        (["--readers", "2000"], "readers"),
        (["--max-message-bytes", "9999"], "max_message_bytes"),
        (["--max-message-bytes", "2GiB"], "max_message_bytes"),
        (["--max-result-bytes", "0"], "max_result_bytes"),
        (["--max-input-bytes", "64MiB"], "max_input_bytes"),
        (["--require-tls=true", "--readers=1"], "require_tls"),
        (["--stall-timeout", "0"], "stall_timeout"),
        (["--startup-timeout", "0"], "startup_timeout"),
        (
            ["--upstream=postgresql://db", "--min-server-connections=21"],
            "min_server_connections",
        ),
        (
            ["--upstream=postgresql://db", "--reserve-server-connections=21"],
            "reserve_server_connections",
        ),
        (["--tls-client-ca", "c"], "tls_client_ca"),
        (["--upstream=postgresql://db", "--service-user"], "service_user"),
        (["--upstream=postgresql://db", "--auth-query=SELECT"], "auth_query"),
        (["--tls-key", "k"], "tls_certificate"),
        (["--tls-certificate", "c"], "tls_key"),
    ] {
        assert!(
            options(&arguments).unwrap_err().to_string().starts_with(option),
            "{arguments:?}"
        );
    }
}

/// What the help says of a default is what happens: given explicitly, nothing changes.
#[test]
fn every_option_says_its_true_default() {
    let mut command = CommandLine::command();
    command.build();
    command.clone().debug_assert();
    let (mut given, mut of_the_proxy) = (Vec::new(), vec!["--upstream=postgresql://127.0.0.1/app".to_owned()]);
    let a_stream = ["--upstream=postgresql://app@127.0.0.1/app", "--invalidate=stream"];
    let mut of_the_stream = a_stream.map(str::to_owned).to_vec();
    for argument in command
        .get_arguments()
        .filter(|argument| !["help", "version"].contains(&argument.get_id().as_str()))
    {
        let help = argument.get_help().unwrap().to_string();
        let (_, default) = help.split_once("[default: ").expect(&help);
        let default = default.strip_suffix(']').expect(&help);
        if default != "none" && argument.get_id() != "readers" {
            let is_of_the_proxy = OF_THE_PROXY.iter().any(|(name, _)| argument.get_id() == name);
            let is_of_the_stream = ["max_lag", "max_wal"].contains(&argument.get_id().as_str());
            let one = match (is_of_the_proxy, is_of_the_stream) {
                (_, true) => &mut of_the_stream,
                (true, false) => &mut of_the_proxy,
                (false, false) => &mut given,
            };
            one.push(format!("--{}={default}", argument.get_long().unwrap()));
        }
    }
    assert!(
        given.len() > 15 && of_the_proxy.len() + of_the_stream.len() == OF_THE_PROXY.len() - 6,
        "all but what has no default"
    );
    let of = |given: &[String]| options(&given.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!(of(&given), Options::default());
    assert_eq!(options(&a_stream).unwrap(), of(&of_the_stream));
    assert_eq!(of(&of_the_proxy), of(&of_the_proxy[..1]));
}

#[test]
fn users_have_bounds_and_certificates_of_their_own() {
    let of = |text: &str| -> Result<Options, OptionsError> {
        let (_file, path) = file(&format!("upstream = \"postgresql://db/x\"\n{text}"));
        options(&["--config", &path])
    };
    let proxy = of("max_client_connections = 7\n\
        [[user]]\nname = \"ann\"\nmax_client_connections = 3\nsharing = false\nsslcert = \"a.pem\"\nsslkey = \"a.key\"\n\
        [[user]]\nname = \"bob\"\n\
        [[database]]\nname = \"shop\"\nurl = \"postgresql://db/shop\"\nmax_client_connections = 5\n")
    .unwrap()
    .proxy
    .unwrap();
    assert_eq!(proxy.users["ann"].max_clients, Some(3));
    assert_eq!(
        (proxy.users["ann"].shares, proxy.users["bob"].shares),
        (Some(false), None)
    );
    assert_eq!(
        proxy.users["ann"].certificate,
        Some((PathBuf::from("a.pem"), PathBuf::from("a.key")))
    );
    assert_eq!(
        (proxy.users["bob"].max_clients, &proxy.users["bob"].certificate),
        (None, &None)
    );
    assert_eq!(proxy.databases["shop"].max_clients, Some(5));
    let upstream = proxy.upstream.unwrap();
    assert_eq!(
        (upstream.max_clients, upstream.auth_query_kept.as_secs()),
        (Some(7), 10)
    );
    let ann = "[[user]]\nname = \"ann\"\n";
    for (text, line, told) in [
        (format!("{ann}{ann}"), 5, "name: of user \"ann\" is given twice"),
        (
            format!("{ann}sslkey = \"k\""),
            4,
            "sslkey: of user \"ann\" needs sslcert",
        ),
        (
            format!("{ann}sslcert = \"k\""),
            4,
            "sslcert: of user \"ann\" needs sslkey",
        ),
        (
            format!("{ann}max_client_connections = 0"),
            4,
            "max_client_connections: of user \"ann\" 0 is not from 1",
        ),
        (ann.replace("ann", ""), 3, "name: of user \"\" must not be empty"),
        (
            "max_user_connections = 0".to_owned(),
            2,
            "max_user_connections: 0 is not from 1",
        ),
    ] {
        let error = of(&text).unwrap_err().to_string();
        assert!(error.contains(&format!(", line {line}: {told}")), "{text}: {error}");
    }
}

#[test]
fn rules_say_something_of_something() {
    let of = |text: &str| -> Result<Options, OptionsError> {
        let (_file, path) = file(&format!("upstream = \"postgresql://db@db/x\"\n{text}"));
        options(&["--config", &path])
    };
    let rule = "[[rule]]\nname = \"visits\"\n";
    let proxy = of(&format!(
        "{rule}database = \"shop\"\nuser = \"ann\"\ntable = \"app.\\\"Visits\\\"\"\nstatement = \"SELECT 1\"\nbatch = \"10ms\"\n\
         join = \"in flight\"\n[[rule]]\nname = \"all\"\njoin = \"unsent\"\napplication_name = \"ignored\"\n\
         [[rule]]\nname = \"beside hints\"\ntable = \"orders\"\nrow_security = true\nstable_functions = true\n\
         depends_on = [\"app.rates\", \"prices\"]\n"
    ))
    .unwrap()
    .proxy
    .unwrap();
    let told: Vec<String> = proxy.rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "visits: statements at shop of ann that name app.Visits like SELECT ? wait 10ms for company, join what is on its way",
            "all: sessions join nothing that is on its way, share whatever their application is called",
            "beside hints: statements that name orders are remembered though they call stable functions or tell the time, \
             are remembered under row security, hang on app.rates and prices too",
        ]
    );
    for (text, line, told) in [
        (
            format!("{rule}batch = \"0\"\n{rule}batch = \"0\""),
            6,
            "name: of rule \"visits\" is given twice",
        ),
        (rule.to_owned(), 3, "name: of rule \"visits\" says nothing"),
        (rule.replace("visits", ""), 3, "name: of rule \"\" must not be empty"),
        (
            format!("{rule}batch = \"2s\""),
            4,
            "batch: of rule \"visits\" is longer than 1s",
        ),
        (
            format!("{rule}batch = \"0\"\ntable = \"a.\""),
            5,
            "table: of rule \"visits\" has an empty name",
        ),
        (
            format!("{rule}row_security = true\ndepends_on = [\"a\", \"b.\"]"),
            5,
            "depends_on: of rule \"visits\" has an empty name",
        ),
        (
            format!("{rule}batch = \"0\"\nstatement = \"'\""),
            5,
            "statement: of rule \"visits\" has a backslash",
        ),
        (
            format!("{rule}table = \"a\"\napplication_name = \"ignored\""),
            5,
            "application_name: of rule \"visits\" is of sessions",
        ),
        (
            format!("{rule}join = \"unsent\"\nstale = \"1h\""),
            5,
            "stale: of rule \"visits\" is beyond fresh, which is not given",
        ),
        (
            format!("{rule}fresh = \"0\"\nstale_if_away = \"1h\""),
            5,
            "stale_if_away: of rule \"visits\" is beyond fresh, which is \"0\"",
        ),
        (
            format!("cache_memory = 64\n{rule}fresh = \"1s\""),
            2,
            "cache_memory: must be 1MiB at least, or 0",
        ),
        (
            format!("{rule}fresh = \"1s\"\nmax_answer = \"17MiB\""),
            5,
            "max_answer: of rule \"visits\" must be 16MiB at most",
        ),
        (
            format!("{rule}fresh = \"0\"\nmissing = \"1s\""),
            5,
            "missing: of rule \"visits\" is in place of fresh, which is \"0\"",
        ),
        (
            format!("{rule}batch = \"0\"\ncapacity = \"1MiB\""),
            5,
            "capacity: of rule \"visits\" is for what is fresh, which is not given",
        ),
        (
            format!("{rule}fresh = \"1s\"\ncapacity = 0"),
            5,
            "capacity: of rule \"visits\" must not be 0",
        ),
        (
            format!(
                "cache_memory = \"2MiB\"\n[[rule]]\nname = \"first\"\nfresh = \"1s\"\ncapacity = \"1MiB\"\n\
                 {rule}fresh = \"1s\"\ncapacity = \"1MiB\""
            ),
            10,
            "capacity: of rule \"visits\" leaves nothing of cache_memory",
        ),
        (
            format!("{rule}application_name = \"ignored\"\njitter = 0.1"),
            5,
            "jitter: of rule \"visits\" is of fresh, which is not given",
        ),
        (
            format!("{rule}fresh = \"1min\"\nmax_lag = \"1s\""),
            5,
            "max_lag: of rule \"visits\" means something only with invalidate = \"stream\"",
        ),
        (
            format!("invalidate = \"stream\"\n{rule}fresh = \"1min\"\nmax_lag = \"19ms\""),
            6,
            "max_lag: of rule \"visits\" must be 20ms at least",
        ),
        (
            format!("invalidate = \"stream\"\n{rule}join = \"unsent\"\nmax_lag = \"1s\""),
            6,
            "max_lag: of rule \"visits\" is of what is fresh, which is not given",
        ),
    ] {
        let error = of(&text).unwrap_err().to_string();
        assert!(error.contains(&format!(", line {line}: {told}")), "{text}: {error}");
    }
    let unknown = of(&format!("{rule}join = \"always\"")).unwrap_err().to_string();
    assert!(
        unknown.contains("line 4") && unknown.contains("`in flight` or `unsent`"),
        "{unknown}"
    );
    let share = of(&format!("{rule}fresh = \"1min\"\njitter = 10"))
        .unwrap_err()
        .to_string();
    assert!(share.contains("line 5") && share.contains("10 is no share"), "{share}");
    let room = of(&format!(
        "cache_memory = \"2MiB\"\n{rule}fresh = \"1s\"\ncapacity = \"1MiB\""
    ));
    assert_eq!(
        room.unwrap().proxy.unwrap().rules[0].to_string(),
        "visits: statements are remembered for 1s, in 1048576 bytes of their own"
    );
    let whole = of(&format!("{rule}fresh = \"1min\"\njitter = 1"))
        .unwrap()
        .proxy
        .unwrap();
    assert_eq!(
        whole.rules[0].to_string(),
        "visits: statements are remembered for 60s, each for up to 100% less"
    );
    let (_file, path) = file(&format!("{rule}batch = \"0\""));
    let error = options(&["--config", &path]).unwrap_err().to_string();
    assert!(error.contains("rule: means something only with upstream"), "{error}");
}

/// What is not said of a database is as for all.
#[test]
fn databases_have_names_and_limits_of_their_own() {
    let of = |text: &str| -> Result<Options, OptionsError> {
        let (_file, path) = file(text);
        options(&["--config", &path])
    };
    let proxy = of("
        max_server_connections = 7
        pool_mode = \"session\"
        [[database]]
        name = \"shop\"
        url = \"postgresql://db1/shop_production\"
        max_server_connections = 40
        pool_mode = \"transaction\"
        [[database]]
        name = \"mail\"
        url = \"postgresql://ann@db2\"
        server_lifetime = \"5min\"
    ")
    .unwrap()
    .proxy
    .unwrap();
    assert!(proxy.upstream.is_none());
    let [shop, mail] = [&proxy.databases["shop"], &proxy.databases["mail"]];
    assert_eq!(
        (
            shop.limits.max_connections,
            shop.limits.mode,
            shop.config.dbname.as_deref()
        ),
        (40, PoolMode::Transaction, Some("shop_production"))
    );
    assert_eq!(
        (
            mail.limits.max_connections,
            mail.limits.mode,
            mail.limits.lifetime.as_secs()
        ),
        (7, PoolMode::Session, 300)
    );
    assert_eq!(proxy.example(), (Some("mail"), Some("ann")));
    let one = "[[database]]\nname = \"shop\"\nurl = \"postgresql://db1/x\"\n";
    for (text, told) in [
        (format!("{one}{one}"), "name: of database \"shop\" is given twice"),
        (
            format!("{one}max_waiting = 0"),
            "max_waiting: of database \"shop\" 0 is not from 1",
        ),
        (
            one.replace("5432", "x").replace("postgresql:", "mysql:"),
            "url: of database \"shop\"",
        ),
        (one.replace("shop", ""), "name: of database \"\" must not be empty"),
        (
            format!("synchronous = \"off\"\n{one}"),
            "synchronous: is of the embedded database",
        ),
    ] {
        let error = of(&text).unwrap_err().to_string();
        assert!(error.contains(&format!(": {told}")), "{text}: {error}");
    }
    // What is out of its range is told with its line: that of the database, where it has one of its own.
    for (text, line) in [
        (format!("max_waiting = 5\n{one}max_waiting = 0"), 5),
        (format!("max_waiting = 0\n{one}"), 1),
        (format!("{one}\n{one}"), 6),
        (format!("\nlisten = \"0.0.0.0:1\"\n{one}"), 2),
        ("\n\nreaders = 0\n".to_owned(), 3),
    ] {
        let error = of(&text).unwrap_err().to_string();
        assert!(error.contains(&format!(", line {line}: ")), "{text}: {error}");
    }
    for (text, line, told) in [
        (format!("{one}colour = 3"), 4, "unknown field `colour`"),
        ("[[database]]\nname = \"shop\"\n".to_owned(), 1, "missing field `url`"),
        (
            "database = 3".to_owned(),
            1,
            "a file, or a table [[database]] for each database",
        ),
    ] {
        let error = of(&text).unwrap_err().to_string();
        assert!(
            error.contains(&format!("line {line}")) && error.contains(told),
            "{text}: {error}"
        );
    }
}
