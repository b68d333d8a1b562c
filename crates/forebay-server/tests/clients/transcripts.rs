//! What the documents' readers type: the sessions at psql, and the programs in Python, in the order of the pages.
//!
//! A reader begins with the README and goes on chapter by chapter, at one server. Every block that begins with `$ psql` is typed, prompts
//! left out, and what comes back must be what the block shows, letter for letter; every block of Python runs to its end. All of it
//! holds against a real PostgreSQL as well.

use std::{
    fs,
    path::{Path, PathBuf},
};

use testbed::Program;

use crate::{
    program::{python, run, with_input, with_one_stream},
    server::Server,
};

/// How every session begins: at the server as it is started without options.
const COMMAND: &str = "$ psql -h 127.0.0.1 -p 6432 forebay";
/// Where every program in Python connects, before it is told the server under test.
const ADDRESS: &str = "host=127.0.0.1 port=6432 dbname=forebay";
/// Documents that must have a session or a program, so that none is lost by a fence that is written otherwise.
const SURE: [&str; 4] = [
    "README.md",
    "guide/src/start.md",
    "guide/src/server.md",
    "guide/src/clients.md",
];

/// A block of a document.
enum Block {
    Session(Session),
    Python(String),
}

/// A session at psql.
struct Session {
    /// What is typed, a line each.
    typed: String,
    /// What is shown, what is typed included, without prompts.
    shown: String,
}

pub(crate) fn check() {
    let server = Server::start();
    // The documents' prompts end with `#`, as psql's do for a superuser.
    let superuser = with_one_stream("psql", &["-X", "-At", "-d", &server.url(), "-c", "SHOW is_superuser"]);
    assert_eq!(
        run(&server, &superuser).unwrap_or_else(|output| panic!("{output}")),
        "on\n"
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut typed = Vec::new();
    let mut wrong = Vec::new();
    for document in in_reading_order(&root) {
        for block in blocks_of(&document) {
            typed.push(document.clone());
            if let Err(difference) = follow(&server, &block) {
                wrong.push(format!("{}:\n{difference}", document.display()));
            }
        }
    }
    for document in SURE {
        assert!(
            typed.iter().any(|typed| typed.ends_with(document)),
            "{document} has no block that is typed"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The README, then the guide's chapters as its summary names them.
fn in_reading_order(root: &Path) -> Vec<PathBuf> {
    let guide = root.join("guide/src");
    let summary = fs::read_to_string(guide.join("SUMMARY.md")).unwrap();
    let chapters = summary.lines().filter_map(|line| {
        let (_, link) = line.split_once("](")?;
        Some(guide.join(link.split(')').next()?))
    });
    [root.join("README.md")].into_iter().chain(chapters).collect()
}

fn blocks_of(document: &Path) -> Vec<Block> {
    let text = fs::read_to_string(document).unwrap();
    let blocks = text.split("\n```").skip(1).step_by(2);
    blocks
        .filter_map(|block| match block.split_once('\n')? {
            ("console", block) => session_of(document, block).map(Block::Session),
            ("python", program) => Some(Block::Python(program.to_owned())),
            _ => None,
        })
        .collect()
}

/// The session that a block of a console shows, if it is one at psql.
fn session_of(document: &Path, block: &str) -> Option<Session> {
    let (first, lines) = block.split_once('\n')?;
    first.starts_with("$ psql").then_some(())?;
    assert_eq!(first, COMMAND, "{}: other sessions are not typed", document.display());
    let mut session = Session {
        typed: String::new(),
        shown: String::new(),
    };
    for line in lines.lines() {
        let line = match without_prompt(line) {
            Some(typed) => {
                session.typed += &format!("{typed}\n");
                typed
            }
            None => line,
        };
        session.shown += &format!("{line}\n");
    }
    Some(session)
}

/// What is typed behind `forebay=# `, `forebay=*# ` in a transaction, `forebay=!# ` in a failed one, `forebay-# ` in the middle of a
/// statement.
fn without_prompt(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("forebay")?.strip_prefix(['=', '-'])?;
    rest.trim_start_matches(['*', '!']).strip_prefix("# ")
}

/// Does what the block says, and tells what is otherwise than it shows.
fn follow(server: &Server, block: &Block) -> Result<(), String> {
    let folder = testbed::Folder::new("transcripts", None).unwrap();
    match block {
        Block::Session(session) => {
            let file = folder.file("typed.sql");
            fs::write(&file, &session.typed).unwrap();
            // With what is typed, as a terminal shows it.
            let mut psql = with_input(&file, "psql", &["-X", "-a", "-d", &server.url()]);
            psql.environment.push(("PAGER".into(), "".into()));
            let output = run(server, &psql)?;
            // psql ends a table with an empty line; a block need not.
            if output.trim_end() == session.shown.trim_end() {
                return Ok(());
            }
            Err(format!("shows:\n{}\nand psql:\n{output}", session.shown))
        }
        Block::Python(program) => {
            assert!(
                program.contains(ADDRESS),
                "a program does not connect to {ADDRESS}:\n{program}"
            );
            let file = folder.file("program.py");
            fs::write(&file, program.replace(ADDRESS, &server.url())).unwrap();
            run(server, &Program::new(python(), [file])).map(drop)
        }
    }
}
