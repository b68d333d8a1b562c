//! Links that end, are cut anywhere, or are told nonsense.

use std::time::Duration;

use bytes::BufMut;
use forebay_pg_link::{Config, ConnectError, IsNull, Link, LinkError, connect};
use testbed::{Behaviour, Deed, Ending, Moment, Proxy, Side};

use super::{answers, link, link_to, query, server_url};

const SOON: Duration = Duration::from_secs(60);

fn proxy() -> (Proxy, String) {
    let url = server_url();
    let (_, host) = url.rsplit_once('@').unwrap();
    let (address, _) = host.split_once('/').unwrap();
    let proxy = Proxy::start(address.parse().unwrap()).unwrap();
    let url = url.replace(address, &proxy.address().to_string());
    (proxy, url)
}

#[tokio::test]
async fn what_it_is_at_can_be_cancelled_and_nothing_else() {
    let mut link = link().await;
    let cancel = link.cancel_token();
    link.outbox().query("SELECT pg_sleep(600) AS cancelled").unwrap();
    link.send().await.unwrap();
    let told = tokio::time::timeout(SOON, async {
        // Cancelled earlier, it would have been described to nobody, or gone on unharmed.
        let mut other = self::link().await;
        let sleeps =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%AS cancelled'";
        while query(&mut other, sleeps).await != "TD(1)C(SELECT 1)ZI" {}
        cancel.cancel().await.unwrap();
        answers(&mut link).await.unwrap()
    });
    assert_eq!(told.await.expect("it is cancelled"), "TE(57014)ZI");
    assert_eq!(query(&mut link, "SELECT 1").await, "TD(1)C(SELECT 1)ZI");
}

#[tokio::test]
async fn what_the_server_said_before_it_hung_up_is_heard() {
    let mut link = link().await;
    let told = {
        link.outbox()
            .query("SELECT pg_terminate_backend(pg_backend_pid())")
            .unwrap();
        // More than the socket takes: sending fails, and what came is there all the same.
        for _ in 0..200 {
            link.outbox()
                .query(&format!("SELECT '{}'", "x".repeat(100_000)))
                .unwrap();
        }
        let mut told = Vec::new();
        loop {
            match link.answer().await {
                Ok(message) => told.push(message.tag().0),
                Err(error) => break (told, error),
            }
        }
    };
    assert!(told.0.contains(&b'E'), "{told:?}");
    assert!(matches!(told.1, LinkError::Lost(_)), "{told:?}");
    assert!(link.is_over() && !link.is_idle());
    assert!(matches!(link.answer().await, Err(LinkError::Lost(_))));
    assert!(matches!(link.send().await, Err(LinkError::Lost(_))));
}

#[tokio::test]
async fn a_link_that_was_lost_while_nobody_looked_says_so() {
    let (proxy, url) = proxy();
    let mut link = link_to(&url).await;
    link.look();
    assert!(link.is_idle());
    proxy.cut();
    // Until the news is here.
    tokio::time::timeout(SOON, async {
        while !link.is_over() {
            tokio::task::yield_now().await;
            link.look();
        }
    })
    .await
    .expect("it is noticed");
    assert!(!link.is_idle());
}

#[tokio::test]
async fn answers_are_the_same_however_the_network_splits_them() {
    let (proxy, url) = proxy();
    let mut link = link_to(&url).await;
    let sql = "SELECT n, repeat('x', n) FROM generate_series(1, 60) AS n";
    let whole = query(&mut link, sql).await;
    // Bytes trickle: messages come in parts, headers too.
    proxy.set(Behaviour::Slow(4_000));
    assert_eq!(query(&mut link, sql).await, whole);
}

/// Many statements sent ahead, in several writes, with answers of many sizes, some of which are errors: all that was said to them.
async fn pipelined(link: &mut Link) -> Vec<String> {
    let mut told = vec![query(link, "CREATE TEMP TABLE t (a int PRIMARY KEY, b text)").await];
    let outbox = link.outbox();
    outbox
        .parse("insert", "INSERT INTO t SELECT $1::int, repeat('x', $1::int)", &[])
        .unwrap();
    outbox
        .parse("select", "SELECT b FROM t WHERE a <= $1::int", &[])
        .unwrap();
    outbox.sync();
    // The second 8,192 is there already: what follows it up to the Sync is skipped.
    let lengths = ["0", "1", "8192", "7", "8192", "16384", "300"];
    for length in lengths {
        for statement in ["insert", "select"] {
            let encode = |value: &str, bytes: &mut bytes::BytesMut| {
                bytes.put_slice(value.as_bytes());
                Ok(IsNull::No)
            };
            let outbox = link.outbox();
            outbox.bind("", statement, [], [length], encode, []).unwrap();
            outbox.execute("", 0).unwrap();
        }
        link.outbox().flush();
        link.send().await.unwrap();
    }
    link.outbox().sync();
    let texts = [
        "SELECT count(*), sum(a), NULL FROM t",
        "DO $$ BEGIN RAISE NOTICE 'n'; END $$; SELECT 1 / 0; SELECT 2",
        "COPY (SELECT a, b FROM t ORDER BY a) TO STDOUT",
        "SELECT n FROM generate_series(1, 100) AS n",
        "",
    ];
    for text in texts {
        link.outbox().query(text).unwrap();
        link.send().await.unwrap();
    }
    while link.expected() > 0 {
        told.push(answers(link).await.unwrap());
    }
    assert!(link.is_idle());
    told
}

#[tokio::test]
async fn a_pipelined_session_is_answered_the_same_on_every_network() {
    let straight = pipelined(&mut link().await).await;
    assert_eq!(straight.len(), 8);
    assert!(straight[2].ends_with("E(23505)ZI"), "an error is in the middle");
    for behaviour in [
        Behaviour::Merge(Duration::from_millis(20)),
        Behaviour::Split,
        Behaviour::Delay(Duration::from_millis(5)),
    ] {
        let (proxy, url) = proxy();
        let mut link = link_to(&url).await;
        proxy.set(behaviour);
        let told = tokio::time::timeout(SOON, pipelined(&mut link)).await;
        assert_eq!(told.expect("no wait is for ever"), straight, "{behaviour:?}");
    }
}

#[tokio::test]
async fn a_connection_cut_behind_any_byte_of_an_answer_is_lost_and_nothing_is_made_up() {
    let (proxy, url) = proxy();
    let mut lost = 0;
    for behind in 0..120_u64 {
        // Where the answer was shorter, the trap before is still set.
        proxy.trap(Moment::Passed(Side::Server, 0), Deed::Stall, 0);
        let mut link = link_to(&url).await;
        proxy.trap(Moment::Passed(Side::Server, behind), Deed::End(Ending::Reset), 1);
        link.outbox().query("SELECT n FROM generate_series(1, 3) AS n").unwrap();
        let told = tokio::time::timeout(SOON, answers(&mut link))
            .await
            .expect("no wait is for ever");
        match told {
            Ok(told) => assert_eq!(told, "TD(1)D(2)D(3)C(SELECT 3)ZI"),
            Err(LinkError::Lost(_)) => lost += 1,
            Err(other) => panic!("cut behind {behind} bytes: {other}"),
        }
    }
    assert!(lost > 0, "nothing was cut");
}

#[tokio::test]
async fn nonsense_is_an_error_and_no_answer() {
    let (proxy, url) = proxy();
    let mut link = link_to(&url).await;
    proxy.set(Behaviour::Garbage);
    link.outbox().query("SELECT 1").unwrap();
    let told = tokio::time::timeout(SOON, answers(&mut link))
        .await
        .expect("no wait is for ever");
    assert!(matches!(told, Err(LinkError::Protocol(_))), "{told:?}");
    let config: Config = url.parse().unwrap();
    let refused = tokio::time::timeout(SOON, connect(&config))
        .await
        .expect("no wait is for ever");
    assert!(
        matches!(
            refused,
            Err(ConnectError::Link(LinkError::Protocol(_)) | ConnectError::Tls(_))
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let (proxy, url) = proxy();
    proxy.set(Behaviour::Stall);
    let config: Config = format!("{url}?connect_timeout=1").parse().unwrap();
    let refused = tokio::time::timeout(SOON, connect(&config))
        .await
        .expect("no wait is for ever");
    assert!(matches!(refused, Err(ConnectError::Silent { .. })), "{refused:?}");
}
