//! A process that hears nothing serves nothing that is older than the bound; and when it hears again, nothing that it may have missed.

use super::*;
use std::time::Instant;

use testbed::{Behaviour, Proxy};

const MAX_LAG: Duration = ms(400);

/// One that is told by Redis directly, and one whose connections lead over a proxy.
fn pair(redis: &Redis, database: &Database) -> (Member, Member, Proxy) {
    let proxy = Proxy::start(redis.address()).unwrap();
    let member = |address| database.cache().backplane(backplane(address), MAX_LAG).build();
    (member(redis.address()), member(proxy.address()), proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_all_is_heard_entries_live_as_long_as_their_windows_say() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let (teller, member, _proxy) = pair(&redis, &database);
    hears(&teller, &member).await;
    member.get(&1).await.unwrap();
    let began = Instant::now();
    while began.elapsed() < 3 * MAX_LAG {
        tokio::time::sleep(ms(10)).await;
        assert!(member.get_if_fresh(&1).is_some(), "after {:?}", began.elapsed());
    }
}

/// Cut off in some way, until it is let back in.
async fn is_cut_off(away: Behaviour, cut: bool) {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let (teller, member, proxy) = pair(&redis, &database);
    hears(&teller, &member).await;
    for key in 0..10 {
        database.write(key, 1);
        assert_eq!(member.get(&key).await.unwrap(), Some(1));
    }
    proxy.set(away);
    if cut {
        proxy.cut();
    }
    let cut_at = Instant::now();
    let mut changed = HashMap::new();
    // Each is changed at another moment; none is served longer than the bound after that.
    for key in 0..10 {
        database.write(key, 2);
        teller.invalidate(&key).await;
        changed.insert(key, Instant::now());
        for known in 0..10 {
            let asked = Instant::now();
            let served = member.get(&known).await.unwrap();
            if served == Some(1)
                && let Some(changed) = changed.get(&known)
            {
                assert!(
                    asked - *changed < MAX_LAG,
                    "key {known} was served {:?} after",
                    asked - *changed
                );
            }
        }
        tokio::time::sleep(MAX_LAG / 5).await;
    }
    assert!(cut_at.elapsed() > MAX_LAG);
    // While it is away entries still serve, for a while.
    member.get(&50).await.unwrap();
    assert!(member.get_if_fresh(&50).is_some());
    for key in 0..10 {
        assert_eq!(member.get(&key).await.unwrap(), Some(2));
        database.write(key, 3);
        teller.invalidate(&key).await;
    }
    let last = Instant::now();
    proxy.set(Behaviour::Pass);
    until("it is back and has forgotten", async || {
        let mut all = true;
        for key in 0..10 {
            let asked = Instant::now();
            let served = member.get(&key).await.unwrap();
            assert!(served == Some(3) || asked - last < MAX_LAG, "served {served:?}");
            all &= served == Some(3);
        }
        all
    })
    .await;
    hears(&teller, &member).await;
    // And what the cut-off one changes is heard.
    database.write(1, 4);
    teller.get(&1).await.unwrap();
    member.invalidate(&1).await;
    until("it is heard", async || teller.get(&1).await.unwrap() == Some(4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_refused() {
    is_cut_off(Behaviour::Refuse, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_says_nothing_more() {
    is_cut_off(Behaviour::Stall, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_comes_back() {
    let mut redis = Redis::start().unwrap();
    let database = Database::default();
    let member = || database.cache().backplane(backplane(redis.address()), MAX_LAG).build();
    let (one, other) = (member(), member());
    hears(&one, &other).await;
    database.write(1, 1);
    other.get(&1).await.unwrap();
    redis.kill9().unwrap();
    database.write(1, 2);
    let settled = one.invalidate(&1);
    let changed = Instant::now();
    while changed.elapsed() < 2 * MAX_LAG {
        let asked = Instant::now();
        if other.get(&1).await.unwrap() == Some(1) {
            assert!(asked - changed < MAX_LAG, "{:?} after", asked - changed);
        }
        tokio::time::sleep(ms(5)).await;
    }
    redis.restart().unwrap();
    tokio::time::timeout(10 * SECOND, settled)
        .await
        .expect("it is sent once the server is back");
    hears(&one, &other).await;
    assert_eq!(other.get(&1).await.unwrap(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_nobody_can_read_is_a_change_of_everything() {
    let redis = Redis::start().unwrap();
    let database = Database::default();
    let (teller, member, _proxy) = pair(&redis, &database);
    hears(&teller, &member).await;
    for message in ["", "x", "\u{1}", "\u{1}\u{7f}\u{7f}\u{7f}", "\u{2}abc"] {
        member.get(&1).await.unwrap();
        assert_eq!(
            redis.command(&["PUBLISH", "fleet;changes;0", message]).unwrap(),
            ":2\r\n"
        );
        until("it forgets", async || member.get_if_fresh(&1).is_none()).await;
    }
}
