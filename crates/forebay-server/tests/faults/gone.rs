//! The database file is deleted or replaced under the server's feet.

use std::path::Path;

use crate::client::{Client, query};
use crate::load::Load;
use crate::server;

type Harm = fn(&Path);

#[test]
fn what_nobody_will_find_is_not_acknowledged() {
    let harms: [(Harm, &str); 2] = [
        (|path| std::fs::remove_file(path).unwrap(), "deleted"),
        (
            |path| {
                let other = path.with_extension("other");
                std::fs::copy(path, &other).unwrap();
                std::fs::rename(&other, path).unwrap();
            },
            "replaced",
        ),
    ];
    for (harm, word) in harms {
        let server = server(&[]);
        let mut client = Client::connect(server.address());
        client.run("CREATE TABLE t (a INTEGER)");
        let mut load = Load::start(server.address(), 20, 1);
        load.wait_for_acknowledged(200);
        assert_eq!(server.http_get("/healthz").unwrap().status, 200);
        harm(server.database());
        // Asked behind the harm: none of these may be acknowledged.
        for _ in 0..20 {
            let answer = client.query("INSERT INTO t VALUES (-1)");
            let error = answer.error().expect("the file is gone");
            assert_eq!(error.sqlstate(), "58030", "{error:?}");
            assert!(
                error.message().contains(server.database().to_str().unwrap()),
                "{error:?}"
            );
            assert!(error.message().contains(word), "{error:?}");
            assert_eq!(answer.status, 'I');
        }
        client.run("BEGIN; INSERT INTO t VALUES (-2)");
        client.send(&query("COMMIT"));
        assert_eq!(client.answer().sqlstate(), "58030");
        let health = server.http_get("/healthz").unwrap();
        assert_eq!(health.status, 503);
        assert!(health.body.contains(word), "{}", health.body);
        drop(server);
        let wrong = load
            .finish()
            .into_iter()
            .find(|inserted| !["00000", "58030", "40003", "57P01", "57P03", ""].contains(&inserted.sqlstate.as_str()));
        assert!(wrong.is_none(), "{}", wrong.unwrap().sqlstate);
    }
}
