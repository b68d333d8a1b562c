//! The program `forebay`: reads the command line, and hands over to the library or changes the users file.
//!
//! Promises: exit status 0 when it did what it was asked, 1 with the reason on standard error when it could not, 2 for a command line it
//! does not understand. A password is never an argument, for arguments can be read by every process. Does not know how to serve.

use std::error::Error;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use forebay_pg_wire::verifier::Verifier;
use forebay_proxy::pool::Asks;
use forebay_server::check;
use forebay_server::config::{Command, CommandLine, Settings, UserAction};
use forebay_server::server;
use forebay_server::users::Users;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// More is no password but a mistake, such as a file piped in.
const PASSWORD_BYTES_MAX: u64 = 1024;

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let done = match line.command {
        None => server::serve(&line.serve).map_err(Into::into),
        Some(Command::Serve(settings)) => server::serve(&settings).map_err(Into::into),
        Some(Command::Check {
            config,
            statements,
            user,
            database,
            application,
        }) => {
            let asks = Asks {
                user: user.as_deref(),
                database: database.as_deref(),
                application: application.as_deref(),
            };
            say_what_would_be(config, &statements, asks, &mut io::stdout().lock())
        }
        Some(Command::User { action }) => change_users(&action, ask_password, &mut io::stdout().lock()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("forebay: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `forebay check …`.
fn say_what_would_be(
    config: PathBuf,
    statements: &[String],
    asks: Asks<'_>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let settings = Settings {
        config: Some(config),
        ..Settings::default()
    };
    let options = settings.resolve()?;
    let plan = check::plan(&options).map_err(|error| error.in_file_of(&settings))?;
    write!(out, "{plan}")?;
    for statement in statements {
        write!(out, "{}", check::met(&options, statement, asks))?;
    }
    Ok(())
}

/// `forebay user …`: `password` asks for the password of a name.
fn change_users(
    action: &UserAction,
    password: impl FnOnce(&str) -> Result<String, Box<dyn Error>>,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    match action {
        UserAction::Add { name, file } => {
            // Before the password is asked for: a broken file is said at once.
            let mut users = Users::load_or_empty(&file.users)?;
            let new = users.set(name, Verifier::from_password(&password(name)?))?;
            users.save(&file.users)?;
            let done = if new { "added" } else { "changed" };
            writeln!(
                out,
                "{name} {done} in {}; it holds from the server's next start, or SIGHUP, on",
                file.users.display()
            )?;
        }
        UserAction::Remove { name, file } => {
            let mut users = Users::load(&file.users)?;
            if !users.remove(name) {
                return Err(format!("there is no user {name:?} in {}", file.users.display()).into());
            }
            users.save(&file.users)?;
            writeln!(
                out,
                "{name} removed from {}; it holds from the server's next start, or SIGHUP, on",
                file.users.display()
            )?;
        }
        UserAction::List { file } => {
            for name in Users::load(&file.users)?.names() {
                writeln!(out, "{name}")?;
            }
        }
    }
    Ok(())
}

/// From the terminal, twice and without echo; from anything else, one line.
fn ask_password(name: &str) -> Result<String, Box<dyn Error>> {
    let mut input = io::stdin().lock();
    if !input.is_terminal() {
        return read_password(&mut input);
    }
    let shown = tcgetattr(&input)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    // Before the prompt: what is typed in answer to it must neither show nor be flushed away.
    tcsetattr(&input, OptionalActions::Flush, &hidden)?;
    let both = prompt(&mut input, &format!("Password for {name}: "))
        .and_then(|password| Ok((password, prompt(&mut input, "Again: ")?)));
    // Whatever was read: a terminal without echo is of no use to anyone.
    tcsetattr(&input, OptionalActions::Now, &shown)?;
    let (password, again) = both?;
    if password != again {
        return Err("the two passwords differ".into());
    }
    Ok(password)
}

fn prompt(input: &mut impl BufRead, text: &str) -> Result<String, Box<dyn Error>> {
    eprint!("{text}");
    io::stderr().flush()?;
    let password = read_password(input);
    eprintln!();
    password
}

fn read_password(input: &mut impl BufRead) -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    input.take(PASSWORD_BYTES_MAX + 2).read_line(&mut line)?;
    let password = line
        .strip_suffix('\n')
        .map_or(line.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if password.is_empty() {
        return Err("the password is empty".into());
    }
    if password.len() as u64 > PASSWORD_BYTES_MAX {
        return Err(format!("the password is longer than {PASSWORD_BYTES_MAX} bytes").into());
    }
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str], password: &str) -> Result<String, String> {
        let line = CommandLine::try_parse_from(["forebay", "user"].iter().chain(arguments)).expect("a command line");
        let Some(Command::User { action }) = line.command else {
            panic!("not about users")
        };
        let mut out = Vec::new();
        let ask = |_: &str| read_password(&mut password.as_bytes());
        change_users(&action, ask, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn users_are_added_changed_listed_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        let path = path.to_str().unwrap();
        assert!(
            run(&["add", "anna", "--users", path], "secret\n")
                .unwrap()
                .contains("anna added")
        );
        assert!(!std::fs::read_to_string(path).unwrap().contains("secret"));
        assert!(
            run(&["add", "bert", "--users", path], "other")
                .unwrap()
                .contains("bert added")
        );
        assert!(
            run(&["add", "anna", "--users", path], "third\r\n")
                .unwrap()
                .contains("anna changed")
        );
        assert_eq!(run(&["list", "--users", path], "").unwrap(), "anna\nbert\n");
        assert!(run(&["remove", "anna", "--users", path], "").is_ok());
        assert!(
            run(&["remove", "anna", "--users", path], "")
                .unwrap_err()
                .contains("no user \"anna\"")
        );
        assert_eq!(run(&["list", "--users", path], "").unwrap(), "bert\n");
    }

    #[test]
    fn what_is_no_password_or_no_name_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users");
        let text = path.to_str().unwrap();
        assert!(
            run(&["add", "anna", "--users", text], "\n")
                .unwrap_err()
                .contains("empty")
        );
        assert!(
            run(&["add", "anna", "--users", text], &"x".repeat(2000))
                .unwrap_err()
                .contains("longer")
        );
        assert!(
            run(&["add", "a:b", "--users", text], "x")
                .unwrap_err()
                .contains("colon")
        );
        assert!(run(&["list", "--users", text], "").is_err());
        assert!(!path.exists());
    }

    #[test]
    fn a_password_line_ends_at_its_line_end_only() {
        assert_eq!(read_password(&mut " a b \r\nnext".as_bytes()).unwrap(), " a b ");
        assert_eq!(read_password(&mut "x".repeat(1024).as_bytes()).unwrap().len(), 1024);
    }
}
