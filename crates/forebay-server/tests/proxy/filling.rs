//! What is asked for memory where few connections lead to a database: keys that nobody has asked for go together where the way is long, and alone where the
//! work is; each client gets what the database says of his own.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use testbed::{Behaviour, Postgres, Proxy};

use crate::client::{Answer, Client, bind, execute, parse};
use crate::memory::until_remembered;
use crate::reload::Reloadable;
use crate::{at, started, straight};

const CLIENTS: usize = 40;
const CONNECTIONS: usize = 4;

struct Stage {
    server: Postgres,
    way: Proxy,
    reloadable: Reloadable,
}

/// A database that few connections lead to, with a table of keys from 0 on, each with its square.
fn stage(lines: &str) -> Stage {
    let server = started();
    let way = Proxy::start(server.address()).unwrap();
    let text = format!(
        "upstream = \"postgresql://{}/postgres\"\nadmin_users = [\"postgres\"]\ncache_memory = \"8MiB\"\n\
         max_server_connections = {CONNECTIONS}\n{lines}\n[[rule]]\nname = \"all\"\nfresh = \"1h\"\n",
        way.address()
    );
    let reloadable = Reloadable::start(&text, &[]);
    straight(&server).run("CREATE TABLE cold AS SELECT id, id * id AS n FROM generate_series(0, 999) id");
    straight(&server).run("ALTER TABLE cold ADD PRIMARY KEY (id)");
    Stage {
        server,
        way,
        reloadable,
    }
}

impl Stage {
    fn address(&self) -> SocketAddr {
        self.reloadable.proxy.address()
    }

    /// How many were shared, on how many trips, alone, and as one with others, of what begins like this.
    fn counted(&self, begins: &str) -> [u64; 4] {
        let shown = at(self.address()).query("SHOW FOREBAY SHARING").expect("shown").rows();
        let of = |row: &&Vec<Option<String>>| row[2].as_deref().is_some_and(|text| text.starts_with(begins));
        let number = |text: &Option<String>| text.as_deref().unwrap().parse::<u64>().unwrap();
        let columns = [3, 4, 5, 7];
        columns.map(|column| shown.iter().filter(of).map(|row| number(&row[column])).sum())
    }

    /// All clients ask for keys of their own at once, prepared or not, one behind the other; each answer is the server's own.
    fn ask(&self, text: &str, is_prepared: bool, keys: std::ops::Range<usize>) {
        let mut judge = straight(&self.server);
        let told = self.told(text, is_prepared, keys);
        assert!(!told.is_empty());
        for (key, answer) in told {
            let straight = judge.query(&text.replace("$1", &key.to_string()));
            let said = |answer: &Answer| (answer.rows(), answer.error().map(|error| error.sqlstate().to_owned()));
            assert_eq!(said(&answer), said(&straight), "{key}");
        }
    }

    fn told(&self, text: &str, is_prepared: bool, keys: std::ops::Range<usize>) -> Vec<(usize, Answer)> {
        let clients: Vec<Client> = (0..CLIENTS).map(|_| at(self.address())).collect();
        let barrier = Barrier::new(CLIENTS);
        thread::scope(|scope| {
            let of = |number: usize, mut client: Client| {
                let own: Vec<usize> = keys.clone().skip(number).step_by(CLIENTS).collect();
                let barrier = &barrier;
                scope.spawn(move || {
                    if is_prepared {
                        client.pipeline(&[parse("cold", text)]);
                    }
                    barrier.wait();
                    let ask = |key: usize| match is_prepared {
                        true => client.pipeline(&[bind("", "cold", &[&*key.to_string()]), execute("", 0)]),
                        false => client.query(&text.replace("$1", &key.to_string())),
                    };
                    let told: Vec<Answer> = own.iter().copied().map(ask).collect();
                    own.into_iter().zip(told).collect::<Vec<_>>()
                })
            };
            let all: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|(number, client)| of(number, client))
                .collect();
            all.into_iter().flat_map(|one| one.join().unwrap()).collect()
        })
    }

    /// It is known of this statement that it may be remembered, and how long it takes.
    fn known(&self, text: &str, begins: &str) {
        let mut client = at(self.address());
        until_remembered(&mut client, &mut at(self.address()), &text.replace("$1", "0"), begins);
        for key in 1..9 {
            client.run(&text.replace("$1", &key.to_string()));
        }
    }
}

#[test]
fn cold_keys_that_wait_for_connections_go_together_where_the_way_is_long() {
    let stage = stage("");
    stage.way.set(Behaviour::Delay(Duration::from_millis(25)));
    let text = "SELECT id, n FROM cold WHERE id = $1";
    stage.known(text, "SELECT id, n FROM cold");
    for (is_prepared, keys) in [(false, 100..400), (true, 400..700)] {
        let before = stage.counted("SELECT id, n FROM cold");
        stage.ask(text, is_prepared, keys.clone());
        let after = stage.counted("SELECT id, n FROM cold");
        let [shared, trips, alone] = [0, 1, 2].map(|at| after[at] - before[at]);
        println!("{shared} on {trips} trips, {alone} alone");
        assert_eq!(shared + alone, keys.len() as u64, "each is asked once");
        assert!(shared > 150 && trips * 3 < shared, "{shared} on {trips} trips");
    }
}

/// That a view can be asked for many of its rows at once is nowhere proven.
#[test]
fn what_is_read_through_a_view_goes_together_and_not_as_one() {
    let stage = stage("");
    straight(&stage.server).run("CREATE VIEW cold_view AS SELECT id, n + 1 AS n FROM cold");
    stage.way.set(Behaviour::Delay(Duration::from_millis(10)));
    for (name, is_as_one) in [("cold", true), ("cold_view", false)] {
        let (text, begins) = (
            format!("SELECT n FROM {name} WHERE id = $1"),
            format!("SELECT n FROM {name} "),
        );
        stage.known(&text, &begins);
        stage.ask(&text, false, 100..300);
        stage.ask(&text, true, 300..500);
        let [shared, _, _, as_one] = stage.counted(&begins);
        assert!(
            shared > 50 && (as_one > 0) == is_as_one,
            "{name}: {shared}, {as_one} as one"
        );
    }
}

#[test]
fn who_fails_among_them_is_told_so_and_nobody_else() {
    let stage = stage("");
    stage.way.set(Behaviour::Delay(Duration::from_millis(10)));
    let text = "SELECT 1000 / (id % 10 - 3) FROM cold WHERE id = $1";
    stage.known(&text.replace("- 3", "+ 3"), "SELECT ?");
    stage.known(text.replace("$1", "$1 + 4").as_str(), "SELECT ?");
    stage.ask(text, false, 100..300);
    stage.ask(text, true, 300..500);
}

#[test]
fn they_go_alone_where_the_work_takes_long() {
    let stage = stage("");
    let text = "SELECT count(*) FROM cold a, generate_series(1, 60000) WHERE a.id = $1";
    stage.known(text, "SELECT count");
    let before = stage.counted("SELECT count");
    stage.ask(text, false, 100..260);
    let after = stage.counted("SELECT count");
    let [shared, _, alone] = [0, 1, 2].map(|at| after[at] - before[at]);
    assert!(shared < alone, "{shared} together, {alone} alone");
}

#[test]
fn nobody_waits_for_a_key_that_takes_long() {
    let stage = stage("");
    stage.way.set(Behaviour::Delay(Duration::from_millis(10)));
    // The key 500 has far more to do than all others.
    straight(&stage.server).run("UPDATE cold SET n = CASE id WHEN 500 THEN 20000000 ELSE 1 END");
    let text = "SELECT count(*) FROM cold a, LATERAL generate_series(1, a.n) WHERE a.id = $1";
    stage.known(text, "SELECT count");
    // So that many go together.
    stage.ask(text, false, 100..400);
    let clients: Vec<Client> = (0..CLIENTS).map(|_| at(stage.address())).collect();
    let barrier = Barrier::new(CLIENTS);
    let told: Vec<(usize, Instant)> = thread::scope(|scope| {
        let all: Vec<_> = (480..)
            .zip(clients)
            .map(|(key, mut client)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    client.run(&text.replace("$1", &key.to_string()));
                    (key, Instant::now())
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let slow = told.iter().find(|(key, _)| *key == 500).unwrap().1;
    let behind: Vec<usize> = told.iter().filter(|(_, at)| *at > slow).map(|(key, _)| *key).collect();
    assert!(behind.is_empty(), "behind the slow one: {behind:?}");
}

#[test]
fn who_shares_nothing_fills_alone() {
    let stage = stage("sharing = false\n");
    stage.way.set(Behaviour::Delay(Duration::from_millis(10)));
    let text = "SELECT id, n FROM cold WHERE id = $1";
    stage.known(text, "SELECT id, n FROM cold");
    stage.ask(text, false, 100..200);
    assert_eq!(stage.counted("SELECT id, n FROM cold")[0], 0);
}
