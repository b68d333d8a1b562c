//! The tiers over a real Redis that is killed, paused, full, cut off and garbled: a reader is never failed nor held up for longer
//! than the timeout, nothing old is read, and all is well again by itself.

use crate::tier::By;
use testbed::{Behaviour, Proxy, Redis};

use super::super::redis::RedisTier;
use super::super::{BreakerState, Form, KeyForm, Postcard};
use super::*;

/// What a slow machine may take; nothing here waits so long unless something is wrong.
const SOON: Duration = Duration::from_secs(20);

fn form() -> Form<u64, u64> {
    Form::new("test", KeyForm::display(), Postcard)
}

/// Tiers over the Redis at this address, with the real clock and short pauses.
fn over(address: &str) -> Tiers<u64, u64> {
    let tier: Arc<dyn Tier<u64, u64>> = Arc::new(RedisTier::open(address, form()).unwrap());
    let settings = TierSettings {
        pause: (ms(100), ms(400)),
        retry_after: (ms(20), ms(100)),
        ..TierSettings::default()
    };
    Tiers::new(vec![tier], settings, None, Arc::new(|| Handle::try_current().ok()))
}

fn now(key: u64, value: u64) -> Put<u64, u64> {
    put(key, value, SystemTime::now())
}

/// Waits until the value is read, and returns how often something else was.
async fn until_read(tiers: &Tiers<u64, u64>, key: u64, value: u64) {
    let until = Instant::now() + SOON;
    while read(tiers, &[key]).await != [Some(value)] {
        assert!(Instant::now() < until, "{:?}", tiers.stats());
        tokio::time::sleep(ms(10)).await;
    }
}

/// Fills until a value is kept, as a cache with readers would.
async fn until_filled(tiers: &Tiers<u64, u64>, key: u64, value: u64) {
    let until = Instant::now() + SOON;
    loop {
        tiers.fill_with(now(key, value));
        tiers.settled().await;
        if read(tiers, &[key]).await == [Some(value)] {
            return;
        }
        assert!(Instant::now() < until, "{:?}", tiers.stats());
        tokio::time::sleep(ms(10)).await;
    }
}

/// Reads until the breaker opens; no read takes much longer than the timeout.
async fn until_open(tiers: &Tiers<u64, u64>, key: u64) {
    let until = Instant::now() + SOON;
    while stats(tiers).breaker == BreakerState::Closed {
        let begun = Instant::now();
        assert_eq!(read(tiers, &[key]).await, [None]);
        // The timeout is 250 ms; the rest is for a machine that is busy.
        assert!(
            begun.elapsed() < ms(1_250),
            "a reader was held up for {:?}",
            begun.elapsed()
        );
        assert!(Instant::now() < until, "{:?}", tiers.stats());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_is_used_again() {
    let mut redis = Redis::builder().durable().start().unwrap();
    let tiers = over(&redis.url());
    tiers.fill_with(now(1, 10));
    tiers.settled().await;
    assert_eq!(read(&tiers, &[1, 2]).await, [Some(10), None]);
    redis.kill9().unwrap();
    until_open(&tiers, 1).await;
    redis.restart().unwrap();
    until_read(&tiers, 1, 10).await;
    until_filled(&tiers, 2, 20).await;
    assert_eq!(stats(&tiers).breaker, BreakerState::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_when_the_program_starts_is_used_when_it_comes() {
    let mut redis = Redis::start().unwrap();
    redis.kill9().unwrap();
    let tiers = over(&redis.url());
    assert_eq!(read(&tiers, &[1]).await, [None]);
    redis.restart().unwrap();
    until_filled(&tiers, 1, 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalidation_while_the_server_is_down_is_done_when_it_is_back_and_nothing_old_read_in_between() {
    let mut redis = Redis::builder().durable().start().unwrap();
    let tiers = over(&redis.url());
    for key in 0..100 {
        tiers.fill_with(now(key, 9));
    }
    tiers.settled().await;
    redis.kill9().unwrap();
    for key in 0..50 {
        drop(tiers.invalidate(key, By::This));
        tiers.insert_with(now(50 + key, 10));
    }
    let all: Vec<u64> = (0..100).collect();
    let reading = {
        let tiers = tiers.clone();
        tokio::spawn(async move {
            // Until all is acknowledged, and once more.
            let mut values = Vec::new();
            loop {
                let is_last = stats(&tiers).owed == 0;
                values.extend(read(&tiers, &all).await.into_iter().flatten());
                if is_last {
                    return values;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    // The old values are there again, before anyone can delete them.
    redis.restart().unwrap();
    tokio::time::timeout(SOON, tiers.settled()).await.unwrap();
    let values = reading.await.unwrap();
    assert!(values.iter().all(|value| *value == 10), "an old value was read");
    assert_eq!(redis.command(&["EXISTS", "test:0", "test:49"]).unwrap(), ":0\r\n");
    // Another process, which knows of nothing, reads no old value either.
    let other = over(&redis.url());
    let read = read(&other, &(0..100).collect::<Vec<u64>>()).await;
    assert!(read.iter().flatten().all(|value| *value == 10), "an old value was left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_server_holds_readers_up_for_no_longer_than_the_timeout_and_then_not_at_all() {
    let mut redis = Redis::start().unwrap();
    let tiers = over(&redis.url());
    until_filled(&tiers, 1, 10).await;
    redis.pause().unwrap();
    until_open(&tiers, 1).await;
    assert!(stats(&tiers).timeouts >= 5);
    let skipped = stats(&tiers).skipped;
    let begun = Instant::now();
    assert_eq!(read(&tiers, &[1]).await, [None]);
    assert!(
        stats(&tiers).skipped > skipped || begun.elapsed() >= ms(250),
        "neither skipped nor a probe"
    );
    // An invalidation does not wait for it.
    drop(tiers.invalidate(1, By::This));
    assert_eq!(stats(&tiers).owed, 1);
    redis.resume().unwrap();
    tokio::time::timeout(SOON, tiers.settled()).await.unwrap();
    assert_eq!(redis.command(&["EXISTS", "test:1"]).unwrap(), ":0\r\n");
    until_filled(&tiers, 1, 11).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_left_on_a_silent_connection_is_not_done_after_a_later_one() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let tiers = over(&format!("redis://{}/", proxy.address()));
    until_filled(&tiers, 1, 9).await;
    // The old value is on its way, and stays there until its connection has been given up for a new one.
    proxy.hold();
    tiers.fill_with(now(1, 9));
    tiers.settled().await;
    let until = Instant::now() + SOON;
    while stats(&tiers).hits < 2 {
        read(&tiers, &[1]).await;
        assert!(Instant::now() < until, "{:?}", tiers.stats());
    }
    drop(tiers.invalidate(1, By::This));
    tiers.settled().await;
    assert_eq!(redis.command(&["EXISTS", "test:1"]).unwrap(), ":0\r\n");
    proxy.release();
    while proxy.connections() > 1 {
        assert!(Instant::now() < until, "the old connection is still there");
        tokio::task::yield_now().await;
    }
    // More than one, so that the server has looked at all its connections in between.
    for _ in 0..10 {
        assert_eq!(
            redis.command(&["EXISTS", "test:1"]).unwrap(),
            ":0\r\n",
            "the old value came back"
        );
    }
}

/// A server that was started anew counts its connections anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_an_old_connection_s_number_behind_a_restart_keeps_his_own() {
    use std::io::{Read, Write};

    let mut redis = Redis::start().unwrap();
    let tiers = over(&redis.url());
    until_filled(&tiers, 1, 9).await;
    redis.restart().unwrap();
    let others = (0..50).map(|_| std::net::TcpStream::connect(redis.address()).unwrap());
    let others: Vec<_> = others.collect();
    let is_served = |mut other: &std::net::TcpStream| {
        let mut answer = [0; 7];
        let asked = other
            .write_all(b"PING\r\n")
            .and_then(|()| other.read_exact(&mut answer));
        asked.is_ok() && answer == *b"+PONG\r\n"
    };
    assert!(others.iter().all(is_served));
    until_filled(&tiers, 1, 10).await;
    assert!(others.iter().all(is_served), "somebody else's connection was closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_is_read_and_deletions_reach_it() {
    let redis = Redis::start().unwrap();
    let tiers = over(&redis.url());
    for key in 1..=3 {
        tiers.fill_with(now(key, key));
    }
    tiers.settled().await;
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    for _ in 0..10 {
        tiers.fill_with(now(9, 9));
        tiers.settled().await;
        assert_eq!(
            read(&tiers, &[1]).await,
            [Some(1)],
            "a full server's values are still good"
        );
    }
    assert_eq!(read(&tiers, &[9]).await, [None]);
    let stats = stats(&tiers);
    assert_eq!((stats.breaker, stats.puts), (BreakerState::Closed, 3));
    assert!(stats.errors >= 1 && stats.dropped >= 10);
    // The application's own value cannot be kept; the old one is gone all the same.
    tiers.insert_with(now(2, 22));
    drop(tiers.invalidate(3, By::This));
    tokio::time::timeout(SOON, tiers.settled()).await.unwrap();
    assert_eq!(redis.command(&["EXISTS", "test:2", "test:3"]).unwrap(), ":0\r\n");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    until_filled(&tiers, 9, 90).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_refused_garbled_or_stalled_is_made_anew() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let tiers = over(&format!("redis://{}/", proxy.address()));
    until_filled(&tiers, 1, 10).await;
    proxy.cut();
    until_read(&tiers, 1, 10).await;
    for behaviour in [Behaviour::Refuse, Behaviour::Garbage, Behaviour::Stall] {
        proxy.set(behaviour);
        until_open(&tiers, 1).await;
        proxy.set(Behaviour::Pass);
        until_read(&tiers, 1, 10).await;
    }
    assert_eq!(stats(&tiers).undecodable, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_fell_silent_is_given_up() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let tiers = over(&format!("redis://{}/", proxy.address()));
    until_filled(&tiers, 1, 10).await;
    let accepted = proxy.accepted();
    proxy.set(Behaviour::Stall);
    let until = Instant::now() + SOON;
    // The proxy takes connections all the while: a new one is tried though nobody closed the old one.
    while proxy.accepted() == accepted {
        read(&tiers, &[1]).await;
        assert!(Instant::now() < until, "the silent connection is kept");
        tokio::time::sleep(ms(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_connection_is_slow_and_nothing_else() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).unwrap();
    let tiers = over(&format!("redis://{}/", proxy.address()));
    until_filled(&tiers, 1, 10).await;
    proxy.set(Behaviour::Delay(ms(20)));
    assert_eq!(read(&tiers, &[1]).await, [Some(10)]);
    assert_eq!(stats(&tiers).timeouts, 0);
    // Over the timeout it is of no use.
    proxy.set(Behaviour::Delay(ms(200)));
    assert_eq!(read(&tiers, &[1]).await, [None]);
    assert_eq!(stats(&tiers).timeouts, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poisoned_and_truncated_values_are_misses_that_a_fill_mends() {
    let redis = Redis::start().unwrap();
    let tiers = over(&redis.url());
    for key in 1..=3 {
        tiers.fill_with(now(key, key));
    }
    tiers.settled().await;
    redis.command(&["SETRANGE", "test:1", "21", "x"]).unwrap();
    redis.command(&["SET", "test:2", "not ours"]).unwrap();
    redis.command(&["RENAME", "test:3", "test:4"]).unwrap();
    redis.command(&["LPUSH", "test:5", "a list"]).unwrap();
    assert_eq!(read(&tiers, &[1, 2, 3, 4, 5]).await, [None; 5]);
    let stats = stats(&tiers);
    assert_eq!((stats.undecodable, stats.errors, stats.misses), (3, 0, 5));
    tiers.fill_with(now(5, 50));
    until_filled(&tiers, 1, 11).await;
    assert_eq!(read(&tiers, &[5]).await, [Some(50)]);
}
