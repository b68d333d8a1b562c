//! Very many clients, and clients that mean no good: others are served meanwhile, memory stays bounded, and nothing is left behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use testbed::{Folder, Forebay};

use crate::client::{Client, PATIENCE, message, query, startup};
use crate::login::log_in;
use crate::{PASSWORD, at, postgres, proxy, started, straight};

/// As many files as the system lets this process have; the proxy has the same.
fn files_max() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live struct of the type the call fills.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }, 0);
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to a live struct of the type the call reads.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    usize::try_from(limit.rlim_max).unwrap_or(usize::MAX)
}

/// What `/proc` says of the proxy's memory, in KiB.
fn memory_kib(proxy: &Forebay, line: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.process_id())).unwrap();
    let line = status.lines().find_map(|told| told.strip_prefix(line)).unwrap();
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

/// How many files the proxy has open.
fn files_of(proxy: &Forebay) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", proxy.process_id()))
        .unwrap()
        .count()
}

/// Waits until something is so, which it is soon.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
    }
}

/// Half of them come while all server connections are at work.
#[test]
fn ten_thousand_idle_clients_and_a_thousand_busy_ones_share_twenty_connections() {
    const CONNECTIONS: usize = 20;
    let busy = 1_000;
    // Other tests of this program have files open too.
    let idle = 10_000.min(files_max() - busy - 2_000);
    let server = started();
    let proxy = proxy(
        &server,
        &["--max-server-connections", "20", "--max-connections", "20000"],
    );
    let address = proxy.address();
    let mut at_work: Vec<Client> = (0..CONNECTIONS).map(|_| at(address)).collect();
    for client in &mut at_work {
        client.run("BEGIN");
    }
    let before = memory_kib(&proxy, "VmRSS");
    let mut clients: Vec<Client> = (0..idle / 2).map(|_| at(address)).collect();
    for client in &mut at_work {
        client.run("COMMIT");
    }
    clients.extend((idle / 2..idle).map(|_| at(address)));
    let each = (memory_kib(&proxy, "VmRSS") - before) as f64 / idle as f64;
    println!("{idle} idle clients take {each:.1} KiB each");
    assert!(each < 20.0, "{each} KiB");
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        // Each thread has some of the busy ones, and asks for all of them before it reads: they are busy at the same time.
        for thread in 0..10 {
            let answered = &answered;
            scope.spawn(move || {
                let mut mine: Vec<Client> = (0..busy / 10).map(|_| at(address)).collect();
                for round in 0..10 {
                    let value = |number: usize| (thread * 1_000_000 + number * 1_000 + round).to_string();
                    for (number, client) in mine.iter_mut().enumerate() {
                        let sql = format!("BEGIN; SELECT {}; COMMIT", value(number));
                        client.send(&query(&sql));
                    }
                    for (number, client) in mine.iter_mut().enumerate() {
                        assert_eq!(client.answer().value(), Some(value(number)), "its own");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut watching = straight(&server);
            let count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
            while answered.load(Ordering::Relaxed) < busy * 10 {
                let count: usize = watching.ask(count).parse().unwrap();
                assert!(count <= CONNECTIONS, "{count} connections");
            }
        });
    });
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("SELECT {number}")), number.to_string());
    }
    drop((clients, at_work));
    until("all have gone", || {
        proxy.metric("forebay_connections").unwrap() == Some(0.0)
    });
}

/// They send a byte now and then, and never what lets them in.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "bytes that come slowly: on a thread of the test's own"
)]
fn who_trickles_is_hung_up_on_in_time_and_hinders_nobody() {
    let proxy = proxy(postgres(), &["--startup-timeout", "1s"]);
    let opening = startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
        ("application_name", &"x".repeat(500)),
    ]);
    let begun = Instant::now();
    let mut slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let stream = TcpStream::connect(proxy.address()).unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let mut client = at(proxy.address());
    let mut byte = opening.iter();
    while !slow.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{} are still there", slow.len());
        let next = byte.next().expect("hung up on long before the last");
        slow.retain_mut(|stream| {
            let _whether_it_is_taken = stream.write(&[*next]);
            let read = stream.read(&mut [0; 1024]);
            matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
        });
        let asked = Instant::now();
        assert_eq!(client.ask("SELECT 'served'"), "served");
        drop(at(proxy.address()));
        assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begun.elapsed() >= Duration::from_millis(900), "not before their time");
}

/// They come and go by thousands, without a word or in the middle of one.
#[test]
fn a_flood_of_connects_leaves_nothing_behind() {
    let proxy = proxy(postgres(), &["--startup-timeout", "2s"]);
    let address = proxy.address();
    let mut client = at(address);
    client.ask("SELECT 1");
    let files = files_of(&proxy);
    let is_over = AtomicBool::new(false);
    let came = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let flooding: Vec<_> = (0..4)
            .map(|thread| {
                let came = &came;
                scope.spawn(move || {
                    let opening = startup(&[("user", "postgres"), ("database", "postgres")]);
                    for number in 0..1_000 {
                        // The machine's own queue may be full for a moment.
                        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) else {
                            continue;
                        };
                        came.fetch_add(1, Ordering::Relaxed);
                        let said = match (number + thread) % 4 {
                            0 => &[][..],
                            1 => &opening[..5],
                            2 => &opening[..],
                            _ => b"GET / HTTP/1.1\r\n\r\n",
                        };
                        let _whether_it_is_taken = stream.write_all(said);
                        if number % 2 == 0 {
                            reset(&stream);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                assert_eq!(client.ask("SELECT 'served'"), "served");
                slowest = slowest.max(asked.elapsed());
            }
            assert!(slowest < Duration::from_secs(5), "{slowest:?}");
        });
        for flooding in flooding {
            flooding.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let came = came.into_inner();
    assert!(came > 2_000, "{came} came");
    until("all have gone", || {
        proxy.metric("forebay_connections").unwrap() == Some(1.0)
    });
    // Connections to the server, of which there were none but one, may stay.
    until("files are closed", || files_of(&proxy) <= files + 20);
}

/// It goes without a farewell: the other side is told by a reset.
fn reset(stream: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let length = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap();
    // SAFETY: the descriptor is open, and pointer and length are of a live struct of the type that the option takes.
    let set = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            length,
        )
    };
    assert_eq!(set, 0);
}

/// Passwords are tried at a rate, at the proxy's own users and at the database's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_passwords_at_a_rate_let_nobody_in_and_keep_nobody_out() {
    let server = postgres();
    let folder = Folder::new("users", None).unwrap();
    let verifier = straight(server).ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'scram'");
    std::fs::write(folder.file("users"), format!("scram:{verifier}\n")).unwrap();
    let file = folder.file("users");
    for arguments in [&["--users", file.to_str().unwrap()][..], &[]] {
        let proxy = proxy(server, arguments);
        let address = proxy.address();
        let guesses: Vec<_> = (0..8)
            .map(|guesser| {
                tokio::spawn(async move {
                    for number in 0..15 {
                        let guess = format!("guess {guesser} {number}");
                        let refused = log_in(address, "scram", "postgres", Some(&guess)).await.unwrap_err();
                        assert!(refused.contains("28P01"), "{refused}");
                    }
                })
            })
            .collect();
        // Who knows it is let in meanwhile.
        for _ in 0..5 {
            let whom = log_in(address, "scram", "postgres", Some(PASSWORD)).await;
            assert_eq!(whom.as_deref(), Ok("scram postgres"));
        }
        for guess in guesses {
            guess.await.unwrap();
        }
        // Who is refused is told so first, and counted right behind that.
        let counted = || proxy.metric("forebay_logins_failed_total").unwrap();
        until("all who were refused are counted", || counted() >= Some(120.0));
        assert_eq!(counted(), Some(120.0));
        let log = proxy.output();
        let told = log.matches("password authentication failed").count();
        assert!(
            (1..=60).contains(&told),
            "{told} lines of 120: the log is no place to flood\n{log}"
        );
    }
}

/// So many who come at once are asked about by few connections: others find room at the database.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "that nothing comes to be shows only in time: on a thread of the test's own"
)]
fn logins_take_few_connections_from_the_database() {
    const AT_ONCE: usize = 16;
    const COME: usize = 200;
    let server = crate::started_with_users();
    let proxy = proxy(&server, &["--startup-timeout", "1min"]);
    let before = files_of(&proxy);
    // Nobody is let in while this is locked.
    let mut locks = straight(&server);
    locks.run("BEGIN");
    locks.run("LOCK TABLE pg_database IN ACCESS EXCLUSIVE MODE");
    let mut coming: Vec<Client> = (0..COME).map(|_| Client::raw(proxy.address())).collect();
    for client in &mut coming {
        client.send(&startup(&[("user", "trusted"), ("database", "postgres")]));
    }
    // But for the one by which the start looks whether somebody listens there, which may have been open before.
    until("as many are asked about as may be", || {
        files_of(&proxy) >= before + COME + AT_ONCE - 1
    });
    // It would be more in a moment, if more were allowed.
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(10));
        let besides = files_of(&proxy) - before - COME;
        assert!(besides <= AT_ONCE + 4, "{besides} connections to the database");
    }
    locks.run("COMMIT");
    for client in &mut coming {
        assert_eq!(client.answer().status, 'I', "all are let in");
    }
}

/// Two gibibytes pass, and the proxy holds what is under way.
#[test]
fn two_gibibytes_of_a_client_pass_in_little_memory() {
    const PIECE: usize = 1 << 20;
    let proxy = proxy(postgres(), &[]);
    let mut client = at(proxy.address());
    client.run("CREATE TEMP TABLE taken (line text)");
    client.send(&query("COPY taken FROM STDIN WHERE false"));
    assert_eq!(client.read().unwrap().kind, b'G');
    let before = memory_kib(&proxy, "VmHWM");
    // Lines of a kibibyte.
    let line = [&[b'x'; 1023][..], b"\n"].concat();
    let piece = message(b'd', &line.repeat(PIECE / line.len()));
    let lines = 2 * 1024 * PIECE / line.len();
    for _ in 0..2 * 1024 {
        client.stream.write_all(&piece).expect("it is taken");
    }
    client.send(&message(b'c', &[]));
    let answer = client.answer().expect("copied");
    assert_eq!(answer.tags(), ["COPY 0"], "of {lines} lines");
    let grown = memory_kib(&proxy, "VmHWM") - before;
    assert!(grown < 16 * 1024, "{grown} KiB");
}

/// It asks for more and more, and reads nothing: it is not read from, and so is the server.
#[test]
fn who_asks_and_never_reads_is_waited_for_in_little_memory() {
    let proxy = proxy(postgres(), &[]);
    let mut client = at(proxy.address());
    client.ask("SELECT 1");
    let before = memory_kib(&proxy, "VmRSS");
    client.stream.set_nonblocking(true).unwrap();
    let text = query("SELECT repeat('x', 1000000), generate_series(1, 100)");
    let mut sent = 0;
    let mut other = at(proxy.address());
    // As much as sockets and bounds take.
    for _ in 0..200 {
        for _ in 0..1_000 {
            match client.stream.write(&text) {
                Ok(count) => sent += count,
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        assert_eq!(other.ask("SELECT 'served'"), "served");
    }
    assert!(sent > 100_000);
    let grown = memory_kib(&proxy, "VmRSS").saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB");
    drop(client);
    until("it has gone", || {
        proxy.metric("forebay_connections").unwrap() == Some(1.0)
    });
}
