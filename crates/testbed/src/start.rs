//! What the starts of servers have in common: the program is found, an account stands in for root, a free port is tried.
//!
//! Does not know which server it is.

use std::{env, path::PathBuf};

use crate::{Account, Error, FreePort, Process};

/// A free port may be taken by another program before the server binds it.
const PORTS_TRIED_MAX: usize = 5;

/// The first of these programs in PATH, or in one of these folders, where daemons are kept that are in nobody's PATH.
pub(crate) fn find_program(name: &str, folders_besides: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(folders_besides.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Who to run a server as that refuses root: ourselves, unless that is root, else the first of these accounts.
pub(crate) fn account_unless_root(program: &str, accounts: &[&str]) -> Result<Option<Account>, Error> {
    if !Account::is_root() {
        return Ok(None);
    }
    Account::first_of(accounts).map(Some).ok_or_else(|| Error::NoAccount {
        program: program.into(),
        tried: accounts.join(", "),
    })
}

/// Launches on a free port, and on another one as long as the server ends with words that `may_pass` knows as those of a
/// failure that another try may not meet. `launch` returns once the server answers.
pub(crate) fn start_on_a_free_port(
    launch: impl Fn(u16) -> Result<Process, Error>,
    may_pass: impl Fn(&str) -> bool,
) -> Result<(u16, Process), Error> {
    let mut tries_left = PORTS_TRIED_MAX;
    loop {
        // Nobody else starts a server on it until this one has it.
        let port = FreePort::find()?;
        tries_left -= 1;
        match launch(port.number()) {
            Ok(process) => return Ok((port.number(), process)),
            Err(Error::EndedEarly { output, .. }) if tries_left > 0 && may_pass(&output) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use super::*;
    use crate::Program;

    fn ends_saying(words: &str) -> Error {
        let script = format!("echo {words}; exit 1");
        let mut process = Program::new("/bin/sh", ["-c", &script]).start().unwrap();
        process.wait_until(Duration::from_secs(10), || false).unwrap_err()
    }

    #[test]
    fn another_port_is_tried_for_a_failure_that_may_pass_and_only_so_often() {
        let tries = Cell::new(0);
        let count = |words: &'static str| {
            tries.set(0);
            let launch = |_| {
                tries.set(tries.get() + 1);
                Err(ends_saying(words))
            };
            let error = start_on_a_free_port(launch, |output| output.contains("in use")).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            tries.get()
        };
        assert_eq!(count("port in use"), PORTS_TRIED_MAX);
        assert_eq!(count("no such setting"), 1);
    }

    #[test]
    fn programs_are_found_outside_of_path_too() {
        assert!(find_program("sh", &[]).is_some());
        assert_eq!(find_program("no-such-program", &["/bin"]), None);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a-daemon"), "").unwrap();
        let place = folder.path().to_str().unwrap();
        assert_eq!(find_program("a-daemon", &[place]), Some(folder.path().join("a-daemon")));
    }
}
