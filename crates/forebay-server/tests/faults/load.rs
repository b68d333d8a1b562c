//! Clients that insert numbers of their own until the server goes, and what may be in the table then.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::client::{Client, PATIENCE, query};

/// What became of one insert.
pub(crate) struct Inserted {
    pub(crate) number: u64,
    /// `00000` if it was acknowledged; empty if nothing was said.
    pub(crate) sqlstate: String,
}

/// Clients at work.
pub(crate) struct Load {
    outcomes: Receiver<Inserted>,
    clients: Vec<JoinHandle<()>>,
    all: Vec<Inserted>,
}

impl Load {
    /// `count` clients that insert numbers from `first` on into `t (a)`, no number twice.
    pub(crate) fn start(address: SocketAddr, count: u64, first: u64) -> Self {
        let (told, outcomes) = channel();
        let clients = (0..count)
            .map(|client| {
                let told = told.clone();
                // Connected before the test goes on to end the server.
                let connected = Client::connect(address);
                std::thread::spawn(move || insert(connected, (first + client..).step_by(count as usize), &told))
            })
            .collect();
        Self {
            outcomes,
            clients,
            all: Vec::new(),
        }
    }

    /// Waits until that many more were acknowledged.
    pub(crate) fn wait_for_acknowledged(&mut self, mut count: usize) {
        while count > 0 {
            let inserted = self.outcomes.recv_timeout(PATIENCE).expect("the load goes on");
            count -= usize::from(inserted.sqlstate == "00000");
            self.all.push(inserted);
        }
    }

    /// Waits for the clients to find the server gone; all their inserts.
    pub(crate) fn finish(mut self) -> Vec<Inserted> {
        for client in self.clients {
            client.join().unwrap();
        }
        self.all.extend(self.outcomes.try_iter());
        self.all
    }
}

/// Until the connection ends. Errors do not end it.
fn insert(mut client: Client, numbers: impl Iterator<Item = u64>, told: &Sender<Inserted>) {
    for number in numbers {
        client.send(&query(&format!("INSERT INTO t (a) VALUES ({number})")));
        let (sqlstate, over) = match client.try_answer() {
            Ok(answer) => (answer.sqlstate(), false),
            Err((_, messages)) => {
                let error = messages
                    .iter()
                    .find(|message| message.kind == b'E')
                    .map(super::client::Message::failure);
                (
                    error.map_or_else(String::new, |error| error.sqlstate().to_owned()),
                    true,
                )
            }
        };
        // Nobody listens any more once the test has failed.
        let _ = told.send(Inserted { number, sqlstate });
        if over {
            return;
        }
    }
}

/// The numbers in the table; each once.
pub(crate) fn numbers(client: &mut Client) -> BTreeSet<u64> {
    let rows = client.run("SELECT a FROM t").rows();
    let numbers: BTreeSet<u64> = rows
        .iter()
        .map(|row| row[0].as_ref().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), rows.len(), "a number is there twice");
    numbers
}

/// What was acknowledged is there, what failed is not; of the rest nothing is known.
pub(crate) fn check(inserted: &[Inserted], there: &BTreeSet<u64>) {
    for Inserted { number, sqlstate } in inserted {
        match sqlstate.as_str() {
            "00000" => assert!(there.contains(number), "{number} was acknowledged and is lost"),
            "" => {}
            _ => assert!(!there.contains(number), "{number} failed with {sqlstate} and is there"),
        }
    }
    let known: BTreeSet<u64> = inserted.iter().map(|inserted| inserted.number).collect();
    assert!(there.is_subset(&known), "numbers that nobody inserted");
}
