//! Links that end, are cut anywhere, or are told nonsense.

use std::time::Duration;

use forebay_mysql_link::{Config, ConnectError, Link, LinkError, connect};
use testbed::{Behaviour, Deed, Ending, Moment, Proxy, Side};

use super::pipelines::execute;
use super::{answer, link, link_to, prepare, query, rows, server_url};

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
async fn what_the_server_said_before_it_hung_up_is_heard() {
    let mut link = link().await;
    link.outbox().query("SELECT 1; KILL CONNECTION_ID()").unwrap();
    // More than the socket takes: sending fails, and what came is there all the same.
    for _ in 0..200 {
        let sql = format!("SELECT '{}'", "x".repeat(100_000));
        link.outbox().query(&sql).unwrap();
    }
    let told = answer(&mut link).await.unwrap();
    assert!(told.starts_with("TD(1)E"), "{told}");
    let error = loop {
        match answer(&mut link).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LinkError::Lost(_)), "{error:?}");
    assert!(link.is_over() && !link.is_idle());
    assert!(matches!(link.send().await, Err(LinkError::Lost(_))));
}

#[tokio::test]
async fn a_link_that_was_lost_or_killed_while_nobody_looked_says_so() {
    let (proxy, url) = proxy();
    let mut cut = link_to(&url).await;
    let mut killed = link().await;
    cut.look();
    killed.look();
    assert!(cut.is_idle() && killed.is_idle());
    proxy.cut();
    let kill = format!("KILL {}", killed.connection_id());
    assert_eq!(query(&mut link().await, &kill).await, "O(0)");
    // Until the news is here.
    tokio::time::timeout(SOON, async {
        while !cut.is_over() || !killed.is_over() {
            tokio::task::yield_now().await;
            cut.look();
            killed.look();
        }
    })
    .await
    .expect("it is noticed");
    assert!(!cut.is_idle() && !killed.is_idle());
}

#[tokio::test]
async fn who_is_dropped_while_idle_takes_leave() {
    let aborted = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Aborted_clients'";
    // Of the server that the tests share, others' links are cut meanwhile.
    let lone = testbed::MariaDb::start().unwrap();
    let mut observer = link_to(&lone.url()).await;
    let before = query(&mut observer, aborted).await;
    for _ in 0..5 {
        drop(link_to(&lone.url()).await);
    }
    link_to(&lone.url()).await.close().await;
    let others = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'root'";
    tokio::time::timeout(SOON, async { while query(&mut observer, others).await != "TD(1)E" {} })
        .await
        .expect("they go");
    assert_eq!(query(&mut observer, aborted).await, before);
}

#[tokio::test]
async fn answers_are_the_same_however_the_network_splits_them() {
    let (proxy, url) = proxy();
    let mut link = link_to(&url).await;
    let sql = "SELECT seq, REPEAT('x', seq) FROM seq_1_to_60";
    let whole = query(&mut link, sql).await;
    // Bytes trickle: packets come in parts, headers too.
    proxy.set(Behaviour::Slow(4_000));
    assert_eq!(query(&mut link, sql).await, whole);
}

/// Many statements sent ahead, in several writes, with answers of many sizes, some of which are errors: all that was said to them.
async fn pipelined(link: &mut Link) -> Vec<String> {
    let mut told = vec![query(link, "CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b TEXT)").await];
    let (insert, mut none) = prepare(link, "INSERT INTO t SELECT ? + 0, REPEAT('x', ?)").await;
    let (select, mut columns) = prepare(link, "SELECT b FROM t WHERE a <= ?").await;
    // The second 8,192 is there already.
    let lengths = ["0", "1", "8192", "7", "8192", "16384", "300"];
    for length in lengths {
        execute(link, insert, &[Some(length), Some(length)]);
        execute(link, select, &[Some(length)]);
        link.send().await.unwrap();
    }
    let texts = [
        "SELECT COUNT(*), SUM(a), NULL FROM t",
        "SELECT 1; SELECT x; SELECT 2",
        "SELECT a, b FROM t ORDER BY a",
        "SELECT 1; DO 1; SELECT 2",
        "",
    ];
    for text in texts {
        link.outbox().query(text).unwrap();
        link.send().await.unwrap();
    }
    for _ in lengths {
        told.push(rows(link, &mut none).await.0);
        told.push(rows(link, &mut columns).await.0);
    }
    for _ in texts {
        told.push(answer(link).await.unwrap());
    }
    assert!(link.is_idle());
    told
}

#[tokio::test]
async fn a_pipelined_session_is_answered_the_same_on_every_network() {
    let straight = pipelined(&mut link().await).await;
    assert_eq!(straight.len(), 20);
    assert_eq!(straight[9], "X(1062)", "an error is in the middle");
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
        link.outbox().query("SELECT seq FROM seq_1_to_3").unwrap();
        let told = tokio::time::timeout(SOON, answer(&mut link))
            .await
            .expect("no wait is for ever");
        match told {
            Ok(told) => assert_eq!(told, "TD(1)D(2)D(3)E"),
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
    let told = tokio::time::timeout(SOON, answer(&mut link))
        .await
        .expect("no wait is for ever");
    assert!(matches!(told, Err(LinkError::Protocol(_))), "{told:?}");
    let config: Config = url.parse().unwrap();
    let refused = tokio::time::timeout(SOON, connect(&config))
        .await
        .expect("no wait is for ever");
    assert!(
        matches!(refused, Err(ConnectError::Link(LinkError::Protocol(_)))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let (proxy, url) = proxy();
    proxy.set(Behaviour::Stall);
    let mut config: Config = url.parse().unwrap();
    config.connect_timeout = Some(Duration::from_millis(200));
    let refused = tokio::time::timeout(SOON, connect(&config))
        .await
        .expect("no wait is for ever");
    assert!(matches!(refused, Err(ConnectError::Silent(_))), "{refused:?}");
}
