//! A real Redis, as Debian packages it, or the program that `FOREBAY_TEST_REDIS` names: another version, or Valkey.
//!
//! Promises: it keeps its port and its folder from start to start, so that clients find it again; nothing is written to disk
//! unless [`RedisBuilder::durable`] is asked for, and then all that was acknowledged is there after a kill. Paused, it still has
//! its connections and takes new ones as far as the kernel does, and answers none. A full one refuses to write (`noeviction`).

use std::{
    env,
    ffi::OsString,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    Ended, Error, Folder, Process, Program,
    start::{self, start_on_a_free_port},
};

const READY_WITHIN: Duration = Duration::from_secs(30);
/// Names the program to run instead of the system's.
const PROGRAM_VARIABLE: &str = "FOREBAY_TEST_REDIS";
const PROGRAM: &str = "redis-server";
const INSTALL: &str = "apt-get install redis-server";

/// What to change before a Redis is started.
#[derive(Debug, Clone, Default)]
pub struct RedisBuilder {
    settings: Vec<(String, String)>,
    is_durable: bool,
}

impl RedisBuilder {
    /// Sets a configuration parameter, such as `maxclients`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Full at so many bytes, and then refuses to write.
    #[must_use]
    pub fn full_at(self, bytes: u64) -> Self {
        self.setting("maxmemory", &bytes.to_string())
            .setting("maxmemory-policy", "noeviction")
    }

    /// What it acknowledged is there again after it was killed and restarted.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// When Redis is not installed, or does not start; the error shows its log.
    pub fn start(self) -> Result<Redis, Error> {
        let folder = Folder::new("redis", None)?;
        let mut program = Program::new(find_program()?, ["--bind", "127.0.0.1", "--save", ""]);
        program
            .arguments
            .extend(["--dir".into(), folder.path().as_os_str().to_owned()]);
        program
            .arguments
            .extend(["--appendonly", yes_or_no(self.is_durable)].map(OsString::from));
        for (name, value) in self.settings {
            program.arguments.extend([format!("--{name}").into(), value.into()]);
        }
        program.folder = Some(folder.path().to_path_buf());
        // The one signal that also ends a paused process; the data is thrown away.
        program.stop_signal = libc::SIGKILL;
        let on_port = |port: u16| {
            let mut on_port = program.clone();
            on_port.arguments.extend(["--port".into(), port.to_string().into()]);
            on_port
        };
        let (port, process) = start_on_a_free_port(
            |port| launch(&on_port(port), port),
            |output| output.contains("Address already in use"),
        )?;
        Ok(Redis {
            process,
            program: on_port(port),
            port,
            folder,
        })
    }
}

/// A running Redis; dropping it stops it and removes its folder.
#[derive(Debug)]
pub struct Redis {
    // Stopped before the folder is removed: fields are dropped in this order.
    process: Process,
    program: Program,
    port: u16,
    folder: Folder,
}

impl Redis {
    /// Starts one that keeps everything in memory only.
    ///
    /// # Errors
    /// As [`RedisBuilder::start`].
    pub fn start() -> Result<Self, Error> {
        RedisBuilder::default().start()
    }

    /// To change something first.
    #[must_use]
    pub fn builder() -> RedisBuilder {
        RedisBuilder::default()
    }

    /// Where it listens, always.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// How a client reaches it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its log so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.process.output()
    }

    /// Its process id.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill9(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGKILL)
    }

    /// Asks it to end in order (SIGTERM), its data saved where it is durable.
    ///
    /// # Errors
    /// When it is not running, or does not end in time.
    pub fn terminate(&mut self) -> Result<Ended, Error> {
        self.process.stop(libc::SIGTERM)
    }

    /// Starts it again on the same port and folder, ending it first if it still runs.
    ///
    /// # Errors
    /// As [`RedisBuilder::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        if self.process.ended()?.is_none() {
            self.terminate()?;
        }
        self.process = launch(&self.program, self.port)?;
        Ok(())
    }

    /// Stops it in its tracks (SIGSTOP).
    ///
    /// # Errors
    /// When it is not running.
    pub fn pause(&mut self) -> Result<(), Error> {
        self.process.signal(libc::SIGSTOP)
    }

    /// Lets it go on (SIGCONT).
    ///
    /// # Errors
    /// When it is not running.
    pub fn resume(&mut self) -> Result<(), Error> {
        self.process.signal(libc::SIGCONT)
    }

    /// Sends one command, such as `["SET", "key", "value"]`, and returns the first bytes of the answer as the server wrote them:
    /// enough for a status, a number or a short text.
    ///
    /// # Errors
    /// When it does not answer within some seconds.
    pub fn command(&self, words: &[&str]) -> Result<String, Error> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        command(self.address(), &words).map_err(Error::system(format!("send a command to Redis at {}", self.address())))
    }

    /// As [`Redis::command`], for words that are no text.
    ///
    /// # Errors
    /// As there.
    pub fn command_of_bytes(&self, words: &[&[u8]]) -> Result<String, Error> {
        command(self.address(), words).map_err(Error::system(format!("send a command to Redis at {}", self.address())))
    }
}

fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn find_program() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(PROGRAM_VARIABLE) {
        return Ok(named.into());
    }
    start::find_program(PROGRAM, &[]).ok_or_else(|| Error::NotInstalled {
        program: format!("Redis ({PROGRAM})"),
        looked_in: format!("PATH; {PROGRAM_VARIABLE} may name it"),
        install: INSTALL.into(),
    })
}

fn launch(program: &Program, port: u16) -> Result<Process, Error> {
    let mut process = program.start()?;
    let address = (Ipv4Addr::LOCALHOST, port).into();
    // "LOADING" is an answer too, of one that is not ready yet.
    process.wait_until(READY_WITHIN, || {
        command(address, &[b"PING"]).is_ok_and(|answer| answer.starts_with("+PONG"))
    })?;
    Ok(process)
}

/// Spoken by hand, so that this crate needs no client library.
fn command(address: SocketAddr, words: &[&[u8]]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend(format!("${}\r\n", word.len()).as_bytes());
        request.extend(*word);
        request.extend(b"\r\n");
    }
    stream.write_all(&request)?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}
