//! The program, started and asked as a visitor would.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use testbed::{Process, Program, Response, http_get};

pub(crate) const READY_WITHIN: Duration = Duration::from_secs(20);

/// A running service; stopped when dropped.
pub(crate) struct Web {
    pub(crate) process: Mutex<Process>,
    address: SocketAddr,
}

impl Web {
    /// On that database.
    pub(crate) fn start(database: &str, arguments: &[&str]) -> Self {
        let own = [database, "--listen", "127.0.0.1:0"];
        let program = Program::new(env!("CARGO_BIN_EXE_web"), own.iter().chain(arguments));
        let mut process = program.start().unwrap();
        let address = process
            .wait_for_output(READY_WITHIN, |text| {
                let (_, rest) = text.split_once("http://")?;
                rest.split_once('/')?.0.parse().ok()
            })
            .unwrap();
        Self {
            process: Mutex::new(process),
            address,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        http_get(self.address, path).unwrap()
    }

    /// As a visitor who comes again for as long as there is no room: those who look whether there is take some too.
    pub(crate) fn get_in_the_end(&self, path: &str) -> Response {
        let until = Instant::now() + READY_WITHIN;
        loop {
            let answer = self.get(path);
            if answer.status != 503 || Instant::now() > until {
                return answer;
            }
        }
    }

    /// Waits until as many requests are inside as are let in.
    pub(crate) fn wait_until_full(&self) {
        let until = Instant::now() + READY_WITHIN;
        while self.get("/unwritten?id=0").status != 503 {
            assert!(Instant::now() < until, "the requests never came in");
        }
    }

    /// Lets many write at a time, by each of the routes. Gives the rows, by id and value, that they were told are theirs.
    pub(crate) fn write_by_all_routes(&self) -> BTreeSet<(i64, i64)> {
        let mut told = BTreeSet::new();
        for route in ["/batched", "/unbatched", "/unpooled"] {
            let answers: Vec<(i64, Response)> = thread::scope(|scope| {
                let visitors: Vec<_> = (0..40)
                    .map(|value| scope.spawn(move || (value, self.get(&format!("{route}?id={value}")))))
                    .collect();
                visitors.into_iter().map(|visitor| visitor.join().unwrap()).collect()
            });
            for (value, answer) in answers {
                assert_eq!(answer.status, 200, "{route}: {}", answer.body);
                assert_eq!(number(&answer.body, "value"), value);
                assert!(number(&answer.body, "created_at") > 1_700_000_000_000);
                let is_new = told.insert((number(&answer.body, "id"), value));
                assert!(is_new, "{route}: an id was told twice");
            }
        }
        told
    }
}

fn number(answer: &str, name: &str) -> i64 {
    let (_, rest) = answer.split_once(&format!("\"{name}\":")).unwrap();
    let number = rest.trim_start().split([',', '}']).next().unwrap();
    number.parse().unwrap()
}
