//! Links that end, are cut anywhere, or are told nonsense.

use std::time::Duration;

use forebay_pg_link::{Config, ConnectError, LinkError, connect};
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
