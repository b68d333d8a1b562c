//! pgbench: eight clients at once, in each of its three ways to send a statement; no transaction fails, none is lost.

use crate::{
    program::{run, with_one_stream},
    psql::value,
    server::Server,
};

/// One statement, which is its own transaction.
const INSERT: &str = "\\set value random(1, 1000000)\nINSERT INTO hits (value, at) VALUES (:value, now());\n";
/// Several statements between BEGIN and COMMIT.
const TRANSACTION: &str = "\\set value random(1, 1000000)\nBEGIN;\nINSERT INTO hits (value, at) VALUES (:value, now());\n\
                           SELECT count(*) FROM hits WHERE value = :value;\nCOMMIT;\n";

pub(crate) fn check(server: &Server) {
    for mode in ["simple", "extended", "prepared"] {
        processed_are_there(server, mode, INSERT, "2");
    }
    processed_are_there(server, "prepared", TRANSACTION, "1");
}

/// Runs a script that inserts one row a transaction, and counts the rows.
fn processed_are_there(server: &Server, mode: &str, script: &str, seconds: &str) {
    value(server, "DROP TABLE IF EXISTS hits");
    value(
        server,
        "CREATE TABLE hits (id bigserial PRIMARY KEY, value bigint, at timestamptz)",
    );
    let folder = testbed::Folder::new("pgbench", None).unwrap();
    let file = folder.file("script.sql");
    std::fs::write(&file, script).unwrap();
    let (file, url) = (file.display().to_string(), server.url());
    let arguments = ["-n", "-c", "8", "-j", "2", "-T", seconds, "-M", mode, "-f", &file, &url];
    let output = run(server, &with_one_stream("pgbench", &arguments)).unwrap_or_else(|output| panic!("{output}"));
    let number_after = |label: &str| -> u64 {
        let line = output.lines().find_map(|line| line.strip_prefix(label));
        let number = line.and_then(|rest| rest.trim().split([' ', '/']).next()?.parse().ok());
        number.unwrap_or_else(|| panic!("pgbench did not say \"{label}\":\n{output}"))
    };
    assert_eq!(
        number_after("number of failed transactions:"),
        0,
        "{mode}:\n{output}\n{}",
        server.output()
    );
    let processed = number_after("number of transactions actually processed:");
    assert!(processed > 0, "{mode}: nothing was processed:\n{output}");
    assert_eq!(
        value(server, "SELECT count(*) FROM hits"),
        processed.to_string(),
        "{mode}:\n{output}"
    );
}
