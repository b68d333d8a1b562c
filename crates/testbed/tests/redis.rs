//! What a user of the testbed sees of Redis: it starts, is killed, paused and filled, comes back where it was, and leaves nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpStream;

use testbed::Redis;

#[test]
fn a_server_comes_back_on_its_port_and_leaves_nothing() {
    let mut redis = Redis::start().unwrap();
    assert!(redis.address().ip().is_loopback());
    assert_eq!(redis.command(&["SET", "a", "1"]).unwrap(), "+OK\r\n");
    let address = redis.address();
    redis.kill9().unwrap();
    assert!(TcpStream::connect(address).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.address(), address);
    assert_eq!(
        redis.command(&["GET", "a"]).unwrap(),
        "$-1\r\n",
        "kept without being asked to"
    );
    let folder = redis.folder().to_path_buf();
    drop(redis);
    assert!(!folder.exists());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_durable_server_has_what_it_acknowledged_before_it_was_killed() {
    let mut redis = Redis::builder().durable().start().unwrap();
    redis.command(&["SET", "a", "1"]).unwrap();
    redis.kill9().unwrap();
    redis.restart().unwrap();
    assert_eq!(redis.command(&["GET", "a"]).unwrap(), "$1\r\n1\r\n");
}

#[test]
fn a_paused_server_does_not_answer_until_it_goes_on() {
    let mut redis = Redis::start().unwrap();
    redis.pause().unwrap();
    assert!(redis.command(&["PING"]).is_err(), "a paused server answered");
    redis.resume().unwrap();
    assert_eq!(redis.command(&["PING"]).unwrap(), "+PONG\r\n");
    redis.pause().unwrap();
    // Stopped as it is, dropping it must not take the time that a polite end is given.
    let begun = std::time::Instant::now();
    drop(redis);
    assert!(begun.elapsed().as_secs() < 5);
}

#[test]
fn a_full_server_refuses_to_write() {
    let redis = Redis::builder().full_at(1).start().unwrap();
    assert!(redis.command(&["SET", "a", "1"]).unwrap().starts_with("-OOM"));
}

#[test]
fn a_server_that_cannot_start_shows_its_own_words() {
    let error = Redis::builder().setting("no-such-setting", "1").start().unwrap_err();
    assert!(error.to_string().contains("no-such-setting"), "{error}");
}
