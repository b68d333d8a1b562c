//! The program `forebay`, as a user runs it: from its file, with arguments, on ports of its own choosing.
//!
//! Promises: `start` returns once it has printed its banner, and the addresses are those the banner names; a database path
//! of the caller's survives the server, else the database is in a folder that goes with it.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Ended, Error, Folder, Process, Program, Response, http_get};

const READY_WITHIN: Duration = Duration::from_secs(30);
/// Under the schemes the banner names its addresses by.
const POSTGRESQL_SCHEME: &str = "postgresql://";
const HTTP_SCHEME: &str = "http://";

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct ForebayBuilder {
    program: PathBuf,
    database: Option<PathBuf>,
    is_proxy: bool,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl ForebayBuilder {
    /// Serves this database file instead of a temporary one; it stays when the server goes.
    #[must_use]
    pub fn database(mut self, path: impl Into<PathBuf>) -> Self {
        self.database = Some(path.into());
        self
    }

    /// Is a proxy of this PostgreSQL instead, and has no database file.
    #[must_use]
    pub fn upstream(mut self, url: impl Into<OsString>) -> Self {
        self.is_proxy = true;
        self.argument("--upstream").argument(url)
    }

    /// Is a proxy of the databases that this file names instead.
    #[must_use]
    pub fn databases_of(mut self, config: impl Into<OsString>) -> Self {
        self.is_proxy = true;
        self.argument("--config").argument(config)
    }

    /// A further argument, as after `forebay serve`; `--listen` or `--http` given here win over the testbed's own.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Further arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// An environment variable, such as `RUST_LOG`.
    #[must_use]
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it and waits for its banner.
    ///
    /// # Errors
    /// When it is not built, or ends or hangs before its banner; the error shows its output.
    pub fn start(self) -> Result<Forebay, Error> {
        if !self.program.is_file() {
            let build = "cargo build -p forebay-server (or name another program in FOREBAY_BIN)".into();
            return Err(Error::NotBuilt {
                path: self.program,
                build,
            });
        }
        // Absolute, because the server runs in a folder of its own.
        let path =
            std::path::absolute(&self.program).map_err(Error::system(format!("find {}", self.program.display())))?;
        let folder = Folder::new("forebay", None)?;
        let database = match self.database {
            Some(path) => std::path::absolute(&path).map_err(Error::system(format!("find {}", path.display())))?,
            None => folder.file("forebay.db"),
        };
        let mut program = Program::new(path, ["serve"]);
        if !self.is_proxy {
            program
                .arguments
                .extend(["--database".into(), database.clone().into_os_string()]);
        }
        for (option, own) in [("--listen", "127.0.0.1:0"), ("--http", "127.0.0.1:0")] {
            if !self.arguments.iter().any(|argument| is_option(argument, option)) {
                program.arguments.extend([option.into(), own.into()]);
            }
        }
        program.arguments.extend(self.arguments);
        program.environment = self.environment;
        program.folder = Some(folder.path().to_path_buf());
        let (process, addresses) = launch(&program)?;
        Ok(Forebay {
            process,
            program,
            addresses,
            database,
            _folder: folder,
        })
    }
}

/// Where a running server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Addresses {
    postgresql: SocketAddr,
    /// None with `--http off`.
    http: Option<SocketAddr>,
}

/// A `forebay` that was started; dropping it stops it.
#[derive(Debug)]
pub struct Forebay {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    program: Program,
    addresses: Addresses,
    database: PathBuf,
    _folder: Folder,
}

impl Forebay {
    /// Starts this program with a database of its own. Tests of `forebay-server` pass `env!("CARGO_BIN_EXE_forebay")`.
    ///
    /// # Errors
    /// As [`ForebayBuilder::start`].
    pub fn start(program: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::builder(program).start()
    }

    /// To say more first. The environment variable `FOREBAY_BIN`, when set, names another program to run instead.
    #[must_use]
    pub fn builder(program: impl Into<PathBuf>) -> ForebayBuilder {
        let program = std::env::var_os("FOREBAY_BIN").map_or_else(|| program.into(), PathBuf::from);
        ForebayBuilder {
            program,
            database: None,
            is_proxy: false,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Where it speaks the PostgreSQL protocol.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses.postgresql
    }

    /// How a PostgreSQL client reaches it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{POSTGRESQL_SCHEME}forebay@{}/forebay", self.address())
    }

    /// Where it speaks HTTP, unless that is off.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.addresses.http
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// What it printed so far: banner and log.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Its process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it for a path by HTTP.
    ///
    /// # Errors
    /// When it does not answer, or its HTTP is off.
    pub fn http_get(&self, path: &str) -> Result<Response, Error> {
        let address = self.addresses.http.ok_or_else(|| Error::Unexpected {
            command: self.program.line(),
            expected: "HTTP address".into(),
            output: self.output(),
        })?;
        http_get(address, path)
    }

    /// The metrics as text.
    ///
    /// # Errors
    /// When it does not answer with them.
    pub fn metrics(&self) -> Result<String, Error> {
        let answer = self.http_get("/metrics")?;
        match (answer.status, self.addresses.http) {
            (200, _) | (_, None) => Ok(answer.body),
            (status, Some(address)) => Err(Error::Http {
                address: address.to_string(),
                path: "/metrics".into(),
                problem: format!("status {status}: {}", answer.body),
            }),
        }
    }

    /// The sum of a metric over all its labels; none when it is not there.
    ///
    /// # Errors
    /// As [`Forebay::metrics`].
    pub fn metric(&self, name: &str) -> Result<Option<f64>, Error> {
        Ok(sum_of_metric(&self.metrics()?, name))
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill9(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGKILL)
    }

    /// Asks it to end in order (SIGTERM) and says how it ended and how long that took.
    ///
    /// # Errors
    /// When it is not running, or does not end in time.
    pub fn terminate(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGTERM)
    }

    /// Sends it a signal and does not wait.
    ///
    /// # Errors
    /// When it is not running.
    pub fn signal(&mut self, signal: i32) -> Result<(), Error> {
        self.process.signal(signal)
    }

    /// Waits until it has ended, or the time is over (`None`).
    ///
    /// # Errors
    /// When the system does not say.
    pub fn wait(&mut self, within: Duration) -> Result<Option<std::process::ExitStatus>, Error> {
        self.process.wait(within)
    }

    /// Waits until `found` finds something in what it printed.
    ///
    /// # Errors
    /// When it ends first, or the time is over; both show what it printed.
    pub fn wait_for_output<T>(&mut self, within: Duration, found: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
        self.process.wait_for_output(within, found)
    }

    /// Starts it on the same database with the same arguments again, terminating it first if it still runs. Its ports change.
    ///
    /// # Errors
    /// As [`ForebayBuilder::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        if self.process.ended()?.is_none() {
            self.terminate()?;
        }
        (self.process, self.addresses) = launch(&self.program)?;
        Ok(())
    }
}

fn is_option(argument: &OsString, option: &str) -> bool {
    let argument = argument.to_string_lossy();
    argument == option || argument.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
}

fn launch(program: &Program) -> Result<(Process, Addresses), Error> {
    let mut process = program.start()?;
    let addresses = process.wait_for_output(READY_WITHIN, read_banner)?;
    Ok((process, addresses))
}

/// The addresses in a banner, once it is complete: its last line tells what to try.
fn read_banner(output: &str) -> Option<Addresses> {
    let complete = output.lines().any(|line| line.trim_start().starts_with("try ")) && output.ends_with('\n');
    let postgresql = complete.then(|| address_after(output, POSTGRESQL_SCHEME)).flatten()?;
    Some(Addresses {
        postgresql,
        http: address_after(output, HTTP_SCHEME),
    })
}

fn address_after(output: &str, scheme: &str) -> Option<SocketAddr> {
    let rest = &output[output.find(scheme)? + scheme.len()..];
    let end = rest
        .find(|letter: char| letter.is_whitespace() || letter == '/')
        .unwrap_or(rest.len());
    let address = &rest[..end];
    address.rsplit('@').next()?.parse().ok()
}

/// A line of metrics is `name{labels} value` or `name value`.
fn sum_of_metric(metrics: &str, name: &str) -> Option<f64> {
    metrics
        .lines()
        .filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let rest = if rest.starts_with('{') {
                &rest[rest.rfind('}')? + 1..]
            } else {
                rest
            };
            rest.strip_prefix(' ')?.split(' ').next()?.parse().ok()
        })
        .reduce(|sum: f64, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANNER: &str = "forebay 0.1.0 · embedded SQLite ./forebay.db (WAL, synchronous=FULL)\n  \
        PostgreSQL  postgresql://127.0.0.1:40123/forebay\n  \
        HTTP        http://127.0.0.1:40124  (/metrics, /healthz, /readyz)\n  \
        try         psql -h 127.0.0.1 -p 40123 forebay\n";

    #[test]
    fn the_banner_names_the_addresses() {
        let expected = Addresses {
            postgresql: "127.0.0.1:40123".parse().unwrap(),
            http: Some("127.0.0.1:40124".parse().unwrap()),
        };
        assert_eq!(read_banner(BANNER), Some(expected));
        let without_http = BANNER.replace("http://127.0.0.1:40124  (/metrics, /healthz, /readyz)", "off");
        assert_eq!(read_banner(&without_http), Some(Addresses { http: None, ..expected }));
        for end in 0..BANNER.len() {
            if BANNER.is_char_boundary(end) {
                assert_eq!(read_banner(&BANNER[..end]), None, "read from an unfinished banner");
            }
        }
    }

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let metrics = "# TYPE a counter\na{kind=\"x y}\"} 2\na{kind=\"z\"} 3.5\na_total 7\nab 1\n";
        assert_eq!(sum_of_metric(metrics, "a"), Some(5.5));
        assert_eq!(sum_of_metric(metrics, "a_total"), Some(7.0));
        assert_eq!(sum_of_metric(metrics, "b"), None);
    }

    /// A stand-in with the interface of the real one as far as the testbed sees it.
    fn stand_in(folder: &Folder) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.file("forebay");
        let script = format!("#!/bin/sh\ntrap 'exit 7' TERM\ncat <<END\n{BANNER}END\nwhile :; do sleep 0.01; done\n");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_server_is_started_with_a_database_and_free_ports_and_stopped() {
        let folder = Folder::new("stand-in", None).unwrap();
        let mut forebay = Forebay::builder(stand_in(&folder))
            .arguments(["--http", "off"])
            .start()
            .unwrap();
        assert_eq!(forebay.url(), "postgresql://forebay@127.0.0.1:40123/forebay");
        let line = forebay.program.line();
        assert!(line.contains("serve --database"), "{line}");
        assert!(line.contains("--listen 127.0.0.1:0 --http off"), "{line}");
        let ended = forebay.terminate().unwrap();
        assert_eq!(ended.status.code(), Some(7));
        assert!(matches!(forebay.kill9(), Err(Error::NotRunning { .. })));
        forebay.restart().unwrap();
        assert!(forebay.wait(Duration::ZERO).unwrap().is_none());
        assert!(!forebay.kill9().unwrap().status.success());
    }

    #[test]
    fn what_is_not_built_is_said_with_the_command_that_builds_it() {
        let error = Forebay::start("/no/such/forebay").unwrap_err();
        assert!(error.to_string().contains("cargo build -p forebay-server"), "{error}");
    }
}
