//! Statements that ask for more than there is: refused or cut short, in bounded memory, and the next one is served.

use crate::client::{Client, bind_raw, execute, parse, parse_typed, query};
use crate::{forget_resident_bytes_max, resident_bytes, resident_bytes_max, server};

#[test]
fn what_is_too_large_is_refused_in_bounded_memory() {
    let server = server(&["--statement-timeout", "2s", "--max-result-bytes", "16MiB"]);
    let mut client = Client::connect(server.address());
    client.run("CREATE TABLE t (a BYTEA, b TEXT)");
    client.ask("SELECT 1");
    let at_first = resident_bytes(&server);
    let rows = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s)";
    for (sql, states) in [
        ("SELECT repeat('x', 2000000000)".to_owned(), &["54000"][..]),
        ("SELECT length(repeat('x', 2000000000))".to_owned(), &["54000"]),
        ("SELECT length(convert_to(repeat('x', 200000000), 'UTF8'))".to_owned(), &["54000"]),
        ("SELECT encode(convert_to(repeat('x', 12000000), 'UTF8'), 'hex')".to_owned(), &["54000"]),
        ("SELECT lpad('x', 1000000000)".to_owned(), &["54000"]),
        ("SELECT rpad('x', 1000000000, 'yz')".to_owned(), &["54000"]),
        ("SELECT format('%1000000000s', 'x')".to_owned(), &["54000", "0A000"]),
        ("SELECT replace(repeat('x', 1000000), 'x', repeat('y', 1000000))".to_owned(), &["54000"]),
        ("SELECT regexp_replace(repeat('x', 1000000), 'x', repeat('y', 1000000), 'g')".to_owned(), &["54000"]),
        ("SELECT repeat('x', 8000000) || repeat('y', 8000000) || repeat('z', 8000000)".to_owned(), &["54000"]),
        (format!("{rows} SELECT string_agg(repeat('x', 10000), ',') FROM s"), &["54000", "57014"]),
        (format!("{rows} SELECT json_agg(n) FROM s"), &["54000", "57014"]),
        (format!("{rows} SELECT array_agg(n) FROM s"), &["54000", "57014"]),
        // What must be kept goes to a file, not to memory.
        ("WITH RECURSIVE s (n) AS (SELECT repeat('x', 100000) || random() UNION ALL SELECT repeat('x', 100000) || random() FROM s) SELECT count(n) FROM s".to_owned(), &["57014", "53100"]),
        ("WITH RECURSIVE s (n) AS (SELECT 1 UNION SELECT n + 1 FROM s) SELECT count(*) FROM s".to_owned(), &["57014"]),
        ("WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT s.n FROM s, (VALUES (1), (2)) AS twice) SELECT count(*) FROM s".to_owned(), &["57014"]),
        (format!("{rows} SELECT n FROM s ORDER BY n DESC"), &["57014"]),
        ("SELECT count(*) FROM generate_series(1, 100000000000) AS s (n)".to_owned(), &["54000"]),
        ("SELECT count(*) FROM generate_series(1, 10000000) AS s (n)".to_owned(), &["00000", "54000", "57014"]),
        ("SELECT n FROM generate_series(1, 10000000) AS s (n) ORDER BY n DESC LIMIT 10".to_owned(), &["00000", "54000", "57014"]),
        ("INSERT INTO t VALUES (convert_to(repeat('x', 20000000), 'UTF8'))".to_owned(), &["54000"]),
        ("INSERT INTO t (b) VALUES (repeat('x', 8500000)), (repeat('y', 8500000)) RETURNING b".to_owned(), &["54000"]),
        (format!("INSERT INTO t {rows} SELECT convert_to(n::text, 'UTF8') FROM s LIMIT 1000000 RETURNING a, a, a, a"), &["54000", "57014"]),
        ("SELECT repeat('a', 16000000) LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%b'".to_owned(), &["00000", "57014"]),
    ] {
        // Of this statement alone: how much of what was needed before is still there is the allocator's affair.
        forget_resident_bytes_max(&server);
        let before = resident_bytes_max(&server);
        let answer = client.query(&sql);
        assert!(states.contains(&answer.sqlstate().as_str()), "{sql}: {} {:?}", answer.sqlstate(), answer.error());
        assert_eq!(answer.status, 'I');
        let grown = resident_bytes_max(&server).saturating_sub(before);
        assert!(grown < 128 << 20, "{sql}: grew by {} MiB", grown >> 20);
    }
    let kept = resident_bytes(&server).saturating_sub(at_first);
    assert!(kept < 160 << 20, "{} MiB are kept", kept >> 20);
    assert_eq!(client.ask("SELECT count(*) FROM t"), "0", "an error means no effect");
}

#[test]
fn deep_and_wide_statements_end_in_an_answer() {
    let server = server(&["--statement-timeout", "20s"]);
    let mut client = Client::connect(server.address());
    for depth in [100, 1_000, 100_000] {
        for sql in [
            format!("SELECT {}1{}", "(".repeat(depth), ")".repeat(depth)),
            format!("SELECT {}1", "+ -".repeat(depth)),
            format!("SELECT {}1", "NOT ".repeat(depth)),
            format!("SELECT 1{}", " + 1".repeat(depth)),
            format!("SELECT 1 WHERE 1{}", " OR 1".repeat(depth)),
            format!("SELECT {}1{}", "abs(".repeat(depth), ")".repeat(depth)),
            format!("SELECT {}1{}", "CASE WHEN 1 THEN ".repeat(depth), " END".repeat(depth)),
            format!("{}SELECT 1{}", "SELECT * FROM (".repeat(depth), ")".repeat(depth)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(depth)),
            format!("SELECT 1{}", "::int".repeat(depth)),
            format!("SELECT {}", "[".repeat(depth)),
            format!("SELECT '{}'::json", "[".repeat(depth)),
            format!("SELECT {}1{}", "/*".repeat(depth), "*/".repeat(depth)),
            format!("EXPLAIN {}SELECT 1", "EXPLAIN ".repeat(depth)),
        ] {
            let shown: String = sql.chars().take(40).collect();
            client.send(&query(&sql));
            let answer = client
                .try_answer()
                .unwrap_or_else(|error| panic!("{depth} of {shown}: {error:?}"));
            let state = answer.sqlstate();
            assert!(
                state == "00000"
                    || state.starts_with("42")
                    || state.starts_with("54")
                    || state.starts_with("22")
                    || state == "0A000",
                "{depth} of {shown}: {state}"
            );
        }
    }
    let mut state = |sql: &str| client.query(sql).sqlstate();
    let columns = |count: usize| {
        (0..count)
            .map(|number| format!("c{number} INTEGER"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(state(&format!("CREATE TABLE wide ({})", columns(1_600))), "00000");
    assert_eq!(state(&format!("CREATE TABLE wider ({})", columns(1_601))), "54011");
    assert_eq!(client.run("SELECT * FROM wide").messages[0].kind, b'T');
    // A megabyte of text, as a literal and as statements.
    let long = "x".repeat(1 << 20);
    assert_eq!(client.ask(&format!("SELECT length('{long}')")), (1 << 20).to_string());
    assert_eq!(client.run(&"SELECT 1;".repeat(20_000)).tags().len(), 20_000);
}

#[test]
fn parameters_are_many_but_not_too_many() {
    let server = server(&[]);
    let mut client = Client::connect(server.address());
    let sum = |count: usize| {
        let numbers: Vec<String> = (1..=count).map(|number| format!("(${number})")).collect();
        format!("SELECT count(*) FROM (VALUES {}) AS v", numbers.join(", "))
    };
    let mut ask = |sql: &str, count: usize| {
        let parameters = vec![Some(b"7".as_slice()); count];
        client.pipeline(&[parse("", sql), bind_raw("", "", &[], &parameters, &[]), execute("", 0)])
    };
    assert_eq!(ask(&sum(65_535), 65_535).value().as_deref(), Some("65535"));
    // The session's own parameter stands beside them.
    let with_time = format!("{} WHERE now() > '2000-01-01'", sum(65_535));
    assert_eq!(ask(&with_time, 65_535).value().as_deref(), Some("65535"));
    let refused = ask("SELECT $65536", 1);
    assert_eq!((refused.kinds().as_str(), refused.sqlstate().as_str()), ("E", "42P02"));
    // A list of values takes time by its length, not by its square.
    let list = |count: usize| {
        let numbers: Vec<String> = (1..=count).map(|number| format!("${number}")).collect();
        format!(
            "SELECT count(*) FROM (VALUES (7), (8)) AS s (n) WHERE n IN ({})",
            numbers.join(", ")
        )
    };
    let begun = std::time::Instant::now();
    assert_eq!(ask(&list(65_535), 65_535).value().as_deref(), Some("1"));
    let took = begun.elapsed();
    assert!(took < std::time::Duration::from_secs(5), "{took:?}");
    let types = vec![23; 65_535];
    let answer = client.pipeline(&[parse_typed("", "SELECT 1", &types)]);
    assert_eq!(answer.status, 'I');
    assert_eq!(client.ask("SELECT 1"), "1");
}

#[test]
fn a_message_is_bounded() {
    let server = server(&["--max-message-bytes", "100KiB"]);
    let mut client = Client::connect(server.address());
    let text = |bytes: usize| query(&format!("SELECT length('{}')", "x".repeat(bytes)));
    client.send(&text(100_000));
    assert_eq!(client.answer().value().as_deref(), Some("100000"));
    client.send(&text(110_000));
    let words = client.last_words();
    assert_eq!(words.last().unwrap().failure().sqlstate(), "54000");
}

#[test]
fn patterns_take_no_exponential_time() {
    let server = server(&["--statement-timeout", "30s"]);
    let mut client = Client::connect(server.address());
    let begun = std::time::Instant::now();
    for operator in ["LIKE", "ILIKE", "NOT LIKE"] {
        let pattern = format!("{}b", "%a".repeat(40));
        client.query(&format!("SELECT repeat('a', 5000) {operator} '{pattern}'"));
        // Of a text that is not known before it runs.
        let row = "SELECT repeat('a', 5000) AS text FROM generate_series(1, 1) AS s (n) WHERE n > 0";
        client.run(&format!("SELECT text {operator} '{pattern}' FROM ({row}) AS rows"));
        client.run(&format!(
            "SELECT text ~ '^({}a*)*$' FROM ({row}) AS rows",
            "a*".repeat(30)
        ));
    }
    client.query(&format!(
        "SELECT relname FROM pg_class WHERE repeat('a', 5000) ~ '^({}a*)*$'",
        "a*".repeat(30)
    ));
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(client.ask("SELECT 1"), "1");
}
