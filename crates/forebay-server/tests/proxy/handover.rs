//! A server that starts takes the sockets of the one that runs.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use testbed::{Folder, Forebay};

use crate::client::{PATIENCE, query};
use crate::crowd::until;
use crate::{PROGRAM, at, postgres};

fn start(folder: &Folder, arguments: &[&str]) -> Result<Forebay, String> {
    let url = format!("postgresql://{}/postgres", postgres().address());
    let forebay = Forebay::builder(PROGRAM)
        .upstream(url)
        .argument("--handover-socket")
        .argument(folder.file("handover"))
        .argument("--socket-folder")
        .argument(folder.path())
        .arguments(arguments);
    forebay.start().map_err(|error| error.to_string())
}

fn psql_by_socket(folder: &Path, address: SocketAddr) -> String {
    let output = std::process::Command::new("psql")
        .args(["-XAtqc", "SELECT 7", "-U", "postgres", "-d", "postgres", "-h"])
        .arg(folder)
        .args(["-p", &address.port().to_string()])
        .output()
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat())
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn nobody_is_refused_and_who_is_there_stays() {
    let folder = Folder::new("handover", None).unwrap();
    let mut old = start(&folder, &["--trust-loopback"]).unwrap();
    let address = old.address();
    let mode = std::fs::metadata(folder.file("handover")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut stays = at(address);
    stays.run("SET application_name = 'stays'");
    stays.run("BEGIN");
    let mut runs = at(address);
    runs.send(&query("SELECT pg_sleep(600)"));
    let (is_over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut new = std::thread::scope(|scope| {
        let come_and_go = || {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(at(address).ask("SELECT 1"), "1");
                served.fetch_add(1, Ordering::Relaxed);
            }
        };
        let coming: Vec<_> = (0..4).map(|_| scope.spawn(come_and_go)).collect();
        let serve = |count: usize| {
            let before = served.load(Ordering::Relaxed);
            while served.load(Ordering::Relaxed) < before + count && coming.iter().all(|coming| !coming.is_finished()) {
                std::thread::yield_now();
            }
        };
        serve(20);
        let new = start(&folder, &["--trust-loopback"]).unwrap();
        serve(100);
        is_over.store(true, Ordering::Relaxed);
        new
    });
    assert_eq!(new.address(), address);
    assert_eq!(new.http_address(), old.http_address());
    assert_eq!(psql_by_socket(folder.path(), address), "7");
    let mut here = at(address);
    // Whoever comes is at the new one; those who came before have gone, as it notices in a moment.
    until("all others have gone", || {
        new.metric("forebay_connections").unwrap() == Some(1.0)
    });
    // Who was there goes on, and a cancel reaches him by way of the new one.
    assert_eq!(stays.ask("SHOW application_name"), "stays");
    stays.run("COMMIT");
    let secret = runs.secret.clone();
    runs.cancel(&secret);
    assert_eq!(runs.answer().sqlstate(), "57014");
    // Nobody else's key does.
    stays.send(&query("SELECT pg_sleep(0.2)"));
    stays.cancel(&secret);
    assert_eq!(stays.answer().sqlstate(), "00000");
    assert!(old.wait(std::time::Duration::ZERO).unwrap().is_none(), "it has clients");
    drop((stays, runs));
    let ended = old.wait(PATIENCE).unwrap().expect("it ends with its last client");
    assert!(ended.success());
    // What it leaves behind is the new one's.
    assert_eq!(psql_by_socket(folder.path(), address), "7");
    assert_eq!(here.ask("SELECT 1"), "1");
    let third = start(&folder, &["--trust-loopback"]).unwrap();
    assert_eq!(third.address(), address);
    assert_eq!(at(address).ask("SELECT 1"), "1");
    assert!(new.wait(std::time::Duration::ZERO).unwrap().is_none());
    // Once it is told to stop it drains.
    let ended = new.terminate().unwrap();
    assert!(ended.status.success());
    assert_eq!(here.last_words()[0].failure().sqlstate(), "57P01");
    drop(third);
    assert!(!folder.file("handover").exists(), "the last one takes its files away");
}

#[test]
fn one_that_cannot_start_takes_nothing() {
    let folder = Folder::new("handover", None).unwrap();
    let old = start(&folder, &[]).unwrap();
    let mut stays = at(old.address());
    let why = start(&folder, &["--http", "203.0.113.1:1", "--insecure"]).unwrap_err();
    assert!(why.contains("cannot listen on 203.0.113.1:1"), "{why}");
    // Somebody who asks, and goes.
    drop(std::os::unix::net::UnixStream::connect(folder.file("handover")).unwrap());
    assert_eq!(stays.ask("SELECT 1"), "1");
    assert_eq!(at(old.address()).ask("SELECT 1"), "1");
    assert_eq!(psql_by_socket(folder.path(), old.address()), "7");
    let new = start(&folder, &[]).unwrap();
    assert_eq!(new.address(), old.address());
    assert_eq!(at(new.address()).ask("SELECT 1"), "1");
}

/// By way of one that has no clients itself; and who asks for the sockets and says nothing keeps nobody from them.
#[test]
fn a_cancel_reaches_the_one_before_the_last() {
    let folder = Folder::new("handover", None).unwrap();
    let mut first = start(&folder, &[]).unwrap();
    let mut runs = at(first.address());
    runs.send(&query("SELECT pg_sleep(600)"));
    let says_nothing = || std::os::unix::net::UnixStream::connect(folder.file("handover")).unwrap();
    let mut silent = vec![says_nothing()];
    let mut second = start(&folder, &[]).unwrap();
    silent.push(says_nothing());
    let third = start(&folder, &[]).unwrap();
    assert_eq!(third.address(), first.address());
    let secret = runs.secret.clone();
    runs.cancel(&secret);
    assert_eq!(runs.answer().sqlstate(), "57014");
    drop(runs);
    for ended in [&mut first, &mut second] {
        assert!(
            ended
                .wait(PATIENCE)
                .unwrap()
                .expect("the last client has gone")
                .success()
        );
    }
    assert_eq!(at(third.address()).ask("SELECT 1"), "1");
}

#[test]
fn another_address_is_listened_on_anew() {
    let folder = Folder::new("handover", None).unwrap();
    let old = start(&folder, &[]).unwrap();
    let mut stays = at(old.address());
    let new = start(&folder, &["--listen", "127.0.0.2:0"]).unwrap();
    assert_ne!(new.address(), old.address());
    assert_eq!(at(new.address()).ask("SELECT 1"), "1");
    assert_eq!(stays.ask("SELECT 1"), "1");
    drop(stays);
    let mut old = old;
    assert!(old.wait(PATIENCE).unwrap().expect("its last client has gone").success());
    let refused = std::net::TcpStream::connect(old.address());
    assert!(refused.is_err(), "nobody listens there any more");
}

/// Whoever has no key of anybody cancels nothing, at neither.
#[test]
fn a_cancel_of_nobody_is_passed_on_to_nobody() {
    let folder = Folder::new("handover", None).unwrap();
    let old = start(&folder, &[]).unwrap();
    let stays = at(old.address());
    let new = start(&folder, &[]).unwrap();
    for secret in [&b"none"[..], &[0; 256]] {
        stays.cancel(secret);
    }
    assert_eq!(at(new.address()).ask("SELECT 1"), "1");
}
