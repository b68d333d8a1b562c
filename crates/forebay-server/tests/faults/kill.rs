//! Killed in full flight: everything acknowledged is there afterwards, once.

use crate::client::Client;
use crate::load::{self, Inserted, Load};
use crate::server;

#[test]
fn what_was_acknowledged_survives_kill_after_kill() {
    let mut server = server(&[]);
    Client::connect(server.address()).run("CREATE TABLE t (a INTEGER)");
    let mut inserted: Vec<Inserted> = Vec::new();
    for round in 0..20_u64 {
        let mut load = Load::start(server.address(), 8, round * 1_000_000);
        // At another moment each time: of a commit, a checkpoint, the first write behind a recovery.
        load.wait_for_acknowledged(1 + (round as usize * 37) % 150);
        assert!(!server.kill9().unwrap().status.success());
        inserted.extend(load.finish());
        server.restart().unwrap();
        let mut client = Client::connect(server.address());
        load::check(&inserted, &load::numbers(&mut client));
        assert_eq!(client.ask("PRAGMA integrity_check"), "ok");
    }
}
