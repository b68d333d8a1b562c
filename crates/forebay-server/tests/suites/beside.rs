//! Clients beside a suite, who ask at the same place all the time, in company where there is any: the suite must not be able to tell, and nor
//! must they.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::client::{Client, query, sync, whole};

/// More than go alone.
const CLIENTS: usize = 20;
/// Between two rounds: the machine is the suite's.
const PAUSE: Duration = Duration::from_millis(30);
/// Their rows are below it.
const ROWS: usize = 50;

/// What they find, made before they come.
pub(crate) const SCHEMA: &str = "CREATE TABLE beside (id int PRIMARY KEY, n int)
INSERT INTO beside SELECT n, 0 FROM generate_series(0, 49) n
CREATE TABLE beside_said (who int, round int)";

/// They go when this is dropped, and fail then if one of them was told something else than it asked for.
pub(crate) struct Beside {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        Self {
            is_over,
            thread: Some(std::thread::spawn(move || ask_until(&until, address))),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "its clients are a thread's of their own")]
fn ask_until(is_over: &AtomicBool, address: SocketAddr) {
    let who = [("user", "postgres"), ("database", "postgres")];
    let connect = || Client::connect_with(address, &who).unwrap_or_else(|error| panic!("refused: {error:?}"));
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| connect()).collect();
    let (mut rounds, mut changed) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        for (number, client) in clients.iter_mut().enumerate() {
            let id = ((number * 7 + rounds) % ROWS).to_string();
            let (number, round) = (number.to_string(), rounds.to_string());
            let messages = |sql: &str, values: &[&str]| [whole(sql, values), sync()].concat();
            client.send(&match (rounds + number.len()) % 4 {
                0 => messages("SELECT id, n FROM beside WHERE id = $1 /* batch:3 */", &[&id]),
                1 => messages(
                    "UPDATE beside SET n = n + 1 WHERE id = $1 RETURNING id /* batch:3 */",
                    &[&id],
                ),
                2 => messages(
                    "INSERT INTO beside_said VALUES ($1, $2) /* batch:3 */",
                    &[&number, &round],
                ),
                _ => query(&format!("SELECT {number} AS who, count(*) FROM beside /* batch:3 */")),
            });
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let answer = client.answer();
            let id = ((number * 7 + rounds) % ROWS).to_string();
            match (rounds + number.to_string().len()) % 4 {
                2 => assert_eq!(answer.tags(), ["INSERT 0 1"]),
                3 => assert_eq!(answer.value(), Some(number.to_string()), "{answer:?}"),
                asked => {
                    changed += asked;
                    assert_eq!(answer.value(), Some(id), "{answer:?}");
                }
            }
        }
        rounds += 1;
        std::thread::sleep(PAUSE);
    }
    let client = &mut clients[0];
    assert_eq!(client.ask("SELECT sum(n) FROM beside"), changed.to_string());
    let said = "SELECT count(*) - count(DISTINCT (who, round)) FROM beside_said";
    assert_eq!(client.ask(said), "0");
}
