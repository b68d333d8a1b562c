//! The documents' sessions at psql: what they show is what a reader gets who types the same.
//!
//! Every block of the README and of the guide that begins with `$ psql` is typed, prompts left out, at a server of its own, and what
//! comes back must be what the block shows, letter for letter. The sessions hold against a real PostgreSQL as well.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    program::{run, with_input},
    server::Server,
};

/// How every session begins: at the server as it is started without options.
const COMMAND: &str = "$ psql -h 127.0.0.1 -p 6432 forebay";
/// Documents that must have a session, so that none is lost by a fence that is written otherwise.
const SURE: [&str; 3] = ["README.md", "guide/src/start.md", "guide/src/server.md"];

/// A block of a document.
struct Session {
    document: PathBuf,
    /// What is typed, a line each.
    typed: String,
    /// What is shown, what is typed included, without prompts.
    shown: String,
}

pub(crate) fn check() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![root.join("README.md")];
    markdown_below(&root.join("guide/src"), &mut documents);
    documents.sort();
    let sessions: Vec<Session> = documents.iter().flat_map(|document| sessions_of(document)).collect();
    for document in SURE {
        assert!(
            sessions.iter().any(|session| session.document.ends_with(document)),
            "{document} has no block that begins with `$ psql`"
        );
    }
    let wrong: Vec<String> = sessions.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn markdown_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

fn sessions_of(document: &Path) -> Vec<Session> {
    let text = fs::read_to_string(document).unwrap();
    let blocks = text.split("\n```console\n").skip(1);
    blocks
        .filter_map(|rest| {
            let block = rest.split("\n```").next()?;
            let (first, lines) = block.split_once('\n')?;
            first.starts_with("$ psql").then_some(())?;
            assert_eq!(first, COMMAND, "{}: other sessions are not typed", document.display());
            let mut session = Session {
                document: document.to_owned(),
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
        })
        .collect()
}

/// What is typed behind `forebay=> `, `forebay=*> ` in a transaction, `forebay=!> ` in a failed one, `forebay-> ` in the middle of a
/// statement.
fn without_prompt(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("forebay")?.strip_prefix(['=', '-'])?;
    rest.trim_start_matches(['*', '!']).strip_prefix("> ")
}

/// What differs when the session is typed, if anything does.
fn difference(session: &Session) -> Option<String> {
    let server = Server::start();
    let folder = testbed::Folder::new("transcripts", None).unwrap();
    let file = folder.file("typed.sql");
    fs::write(&file, &session.typed).unwrap();
    // With what is typed, as a terminal shows it.
    let mut psql = with_input(&file, "psql", &["-X", "-a", "-d", &server.url()]);
    psql.environment.push(("PAGER".into(), "".into()));
    let output = run(&server, &psql).unwrap_or_else(|output| panic!("{output}"));
    // psql ends a table with an empty line; a block need not.
    (output.trim_end() != session.shown.trim_end()).then(|| {
        let document = session.document.display();
        format!("{document} shows:\n{}\nand psql:\n{output}", session.shown)
    })
}
