//! What the metrics count of statements and errors.

use crate::client::{Client, PATIENCE, query, whole};
use crate::{at, postgres, proxy, straight};

/// A metric with these labels.
fn labelled(proxy: &testbed::Forebay, metric: &str) -> u64 {
    let metrics = proxy.metrics().unwrap();
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

const ALONE: &str = "forebay_statements_total{way=\"alone\"}";
const SHARED: &str = "forebay_statements_total{way=\"shared\"}";

#[test]
fn each_statement_is_counted_once_and_each_error_by_its_code() {
    let mut itself = straight(postgres());
    itself.run("CREATE TABLE counted (a int)");
    let proxy = proxy(postgres(), &[]);
    let mut clients: [Client; 2] = [(); 2].map(|()| at(proxy.address()));
    let [one, other] = &mut clients;
    assert_eq!(one.ask("SELECT 1"), "1");
    assert_eq!(one.pipeline(&[whole("SELECT 2", &[])]).value().as_deref(), Some("2"));
    for (sql, sqlstate) in [("SELECT 1/0", "22012"), ("SELECT 1/0", "22012"), ("SELEC", "42601")] {
        assert_eq!(other.query(sql).sqlstate(), sqlstate);
    }
    assert_eq!((labelled(&proxy, ALONE), labelled(&proxy, SHARED)), (5, 0));
    for (sqlstate, count) in [("22012", 2), ("42601", 1)] {
        let metric = format!("forebay_errors_total{{sqlstate=\"{sqlstate}\"}}");
        assert_eq!(labelled(&proxy, &metric), count, "{sqlstate}");
    }
    // Until some have travelled: what is to be known of the table is learnt meanwhile.
    let mut asked = 5;
    let begun = std::time::Instant::now();
    while labelled(&proxy, SHARED) == 0 {
        assert!(begun.elapsed() < PATIENCE, "none has travelled of {asked}");
        for client in [&mut *one, &mut *other] {
            client.send(&query("INSERT INTO counted VALUES (1) /* batch:20 */"));
        }
        for client in [&mut *one, &mut *other] {
            assert_eq!(client.answer().tags(), ["INSERT 0 1"]);
        }
        asked += 2;
        assert_eq!(labelled(&proxy, ALONE) + labelled(&proxy, SHARED), asked);
    }
    let trips = labelled(&proxy, "forebay_trips_total");
    assert!((1..=labelled(&proxy, SHARED)).contains(&trips), "{trips}");
    assert_eq!(labelled(&proxy, "forebay_statements_joined_total"), 0);
    // The proxy's own refusals are errors, too.
    let mut ended = at(proxy.address());
    ended.send(&[&b"Q"[..], &[0xff; 4], b"nonsense"].concat());
    assert_eq!(ended.last_words()[0].failure().sqlstate(), "08P01");
    assert_eq!(labelled(&proxy, "forebay_errors_total{sqlstate=\"08P01\"}"), 1);
    itself.run("DROP TABLE counted");
}
