//! One run of a server: started, watched, signalled, waited for with a bound.
//!
//! Promises: the process is signalled by its own id only, and only while it has not been waited for, so never a stranger
//! that got the same id; dropping it stops it.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{Account, Error, launcher, output::Output};

/// How long a server may take from a signal that asks it to stop until it has ended.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// How long the last words of an ended process may take through its pipes.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(2);

/// A program with its arguments, ready to be run any number of times.
#[derive(Debug, Clone)]
pub struct Program {
    /// The file to run.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder to run it in; this process's when none.
    pub folder: Option<PathBuf>,
    /// The account to run it as; this process's when none.
    pub account: Option<Account>,
    /// The signal that stops it for good and in order; sent when it is dropped and when this process ends.
    pub stop_signal: i32,
}

impl Program {
    /// This program with these arguments, run as we are, stopped by SIGTERM.
    pub fn new(path: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            path: path.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            folder: None,
            account: None,
            stop_signal: libc::SIGTERM,
        }
    }

    /// How a person would write it.
    #[must_use]
    pub fn line(&self) -> String {
        let words = self
            .arguments
            .iter()
            .map(|word| format!(" {}", Path::new(word).display()));
        format!("{}{}", self.path.display(), words.collect::<String>())
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn start(&self) -> Result<Process, Error> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(account) = self.account {
            command.uid(account.user).gid(account.group);
        }
        let mut child = launcher::spawn(command, self.stop_signal)
            .map_err(Error::system(format!("start {}", self.path.display())))?;
        let output = Output::default();
        output.follow(child.stdout.take().expect("stdout was asked to be a pipe"));
        output.follow(child.stderr.take().expect("stderr was asked to be a pipe"));
        Ok(Process {
            program: self.clone(),
            child,
            output,
            ended: None,
        })
    }

    /// Runs it to its end and returns what it printed.
    ///
    /// # Errors
    /// When it cannot be started, ends with a failure, or still runs after `within`.
    pub fn run(&self, within: Duration) -> Result<String, Error> {
        let mut process = self.start()?;
        match process.wait(within)? {
            Some(status) if status.success() => Ok(process.output()),
            Some(status) => Err(Error::Failed {
                command: self.line(),
                status,
                output: process.output(),
            }),
            None => Err(Error::NotReady {
                command: self.line(),
                waited: within,
                output: process.output(),
            }),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// From the signal to the end.
    pub took: Duration,
}

/// A running, or ended, program.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Child,
    output: Output,
    /// Set once the process was waited for: from then on its id may be somebody else's.
    ended: Option<ExitStatus>,
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed so far, both streams as they came; the middle of a very long output is dropped.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.kept()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            let what = format!("ask after {}", self.program.line());
            self.ended = self.child.try_wait().map_err(Error::system(what))?;
            if self.ended.is_some() {
                self.output.wait_for_end(LAST_WORDS_WITHIN);
            }
        }
        Ok(self.ended)
    }

    /// Waits until it has ended, or the time is over (`None`).
    ///
    /// # Errors
    /// When the system does not say.
    pub fn wait(&mut self, within: Duration) -> Result<Option<ExitStatus>, Error> {
        let until = Instant::now() + within;
        let mut pause = Duration::from_micros(200);
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            pause_polling(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&mut self, signal: i32) -> Result<(), Error> {
        if self.ended()?.is_some() {
            return Err(Error::NotRunning {
                command: self.program.line(),
            });
        }
        let id = libc::pid_t::try_from(self.child.id()).expect("process ids are positive and fit");
        // SAFETY: a plain system call; the child has not been waited for, so the id is still its own.
        match unsafe { libc::kill(id, signal) } {
            0 => Ok(()),
            _ => Err(Error::System {
                what: format!("send signal {signal} to {}", self.program.line()),
                cause: std::io::Error::last_os_error(),
            }),
        }
    }

    /// Sends a signal that should end it and waits until it has.
    ///
    /// # Errors
    /// When it has ended before, or does not end within 20 s (then it is killed).
    pub fn stop(&mut self, signal: i32) -> Result<Ended, Error> {
        let begun = Instant::now();
        self.signal(signal)?;
        if let Some(status) = self.wait(STOP_WITHIN)? {
            return Ok(Ended {
                status,
                took: begun.elapsed(),
            });
        }
        self.signal(libc::SIGKILL)?;
        self.wait(STOP_WITHIN)?;
        let output = self.output();
        Err(Error::DidNotStop {
            command: self.program.line(),
            signal,
            waited: begun.elapsed(),
            output,
        })
    }

    /// Waits until `found` finds something in what it printed.
    ///
    /// # Errors
    /// When it ends first, or the time is over; both show what it printed.
    pub fn wait_for_output<T>(&mut self, within: Duration, found: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
        if let Some(thing) = self.output.wait_for(within, found) {
            return Ok(thing);
        }
        let command = self.program.line();
        // The output also ends a moment before the process does.
        match self.wait(LAST_WORDS_WITHIN)? {
            Some(status) => Err(Error::EndedEarly {
                command,
                status,
                output: self.output(),
            }),
            None => Err(Error::NotReady {
                command,
                waited: within,
                output: self.output(),
            }),
        }
    }

    /// Asks `answers` again and again until it says yes.
    ///
    /// # Errors
    /// When the process ends first, or the time is over; both show what it printed.
    pub fn wait_until(&mut self, within: Duration, mut answers: impl FnMut() -> bool) -> Result<(), Error> {
        let until = Instant::now() + within;
        loop {
            if let Some(status) = self.ended()? {
                return Err(Error::EndedEarly {
                    command: self.program.line(),
                    status,
                    output: self.output(),
                });
            }
            if answers() {
                return Ok(());
            }
            if Instant::now() >= until {
                let output = self.output();
                return Err(Error::NotReady {
                    command: self.program.line(),
                    waited: within,
                    output,
                });
            }
            pause_polling(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(None)) {
            // Nobody is left to tell; a server that would not stop has been killed by `stop`.
            let _ = self.stop(self.program.stop_signal);
        }
    }
}

/// The state of another process cannot be awaited portably, so it is asked for at short intervals.
#[allow(
    clippy::disallowed_methods,
    reason = "blocking code without a runtime; every loop that calls this has a bound"
)]
fn pause_polling(pause: Duration) {
    thread::sleep(pause);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program::new("/bin/sh", ["-c", script])
    }

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn output_is_waited_for() {
        let mut process = shell("echo port 77; exec cat /dev/zero >/dev/null").start().unwrap();
        let port = process.wait_for_output(SOON, |text| {
            text.strip_prefix("port ").map(|port| port.trim().to_owned())
        });
        assert_eq!(port.unwrap(), "77");
    }

    #[test]
    fn a_server_that_ends_early_says_what_it_said() {
        let mut process = shell("echo no room >&2; exit 3").start().unwrap();
        let error = process.wait_for_output(SOON, |_| None::<()>).unwrap_err();
        assert!(
            matches!(&error, Error::EndedEarly { status, .. } if status.code() == Some(3)),
            "{error}"
        );
        assert!(error.to_string().contains("no room"), "{error}");
        let error = shell("echo bad >&2; exit 4").run(SOON).unwrap_err();
        assert!(
            matches!(&error, Error::Failed { output, .. } if output == "bad\n"),
            "{error}"
        );
    }

    #[test]
    fn a_server_that_never_answers_is_given_up() {
        let mut process = shell("echo still thinking; exec cat /dev/zero >/dev/null")
            .start()
            .unwrap();
        process
            .wait_for_output(SOON, |text| text.contains("thinking").then_some(()))
            .unwrap();
        let error = process.wait_until(Duration::from_millis(50), || false).unwrap_err();
        assert!(
            matches!(&error, Error::NotReady { output, .. } if output.contains("still thinking")),
            "{error}"
        );
    }

    #[test]
    fn dropping_stops_and_an_ended_process_is_not_signalled() {
        let mut process = shell("exec cat /dev/zero >/dev/null").start().unwrap();
        let ended = process.stop(libc::SIGKILL).unwrap();
        assert!(!ended.status.success());
        assert!(matches!(process.signal(libc::SIGKILL), Err(Error::NotRunning { .. })));

        let process = shell("exec cat /dev/zero >/dev/null").start().unwrap();
        let entry = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(!cfg!(target_os = "linux") || entry.exists());
        drop(process);
        assert!(!entry.exists());
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let asked = thread::spawn(|| shell("exec cat /dev/zero >/dev/null").start().unwrap());
        let mut process = asked.join().unwrap();
        // Were the child bound to that thread it would be dead or dying now.
        assert!(process.wait(Duration::from_millis(100)).unwrap().is_none());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_asks_to_die_with_its_parent() {
        // prctl(PR_GET_PDEATHSIG) of another process cannot be asked, so the child is one that can tell: this test binary
        // would do, but the wish is cleared by nothing except a change of account; see it through a child of a child.
        let mut middle = Command::new("/proc/self/exe");
        middle.args([
            "process::tests::parent_that_is_killed",
            "--exact",
            "--include-ignored",
            "--nocapture",
        ]);
        let mut middle = middle
            .env("TESTBED_PARENT", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = Output::default();
        output.follow(middle.stdout.take().unwrap());
        let child = output.wait_for(SOON, |text| {
            let (_, rest) = text.split_once("child ")?;
            rest.split_once('\n').map(|(id, _)| id.to_owned())
        });
        middle.kill().unwrap();
        middle.wait().unwrap();
        let entry = PathBuf::from(format!("/proc/{}/exe", child.expect("the parent names its child")));
        let until = Instant::now() + SOON;
        // A zombie whose new parent has not waited for it yet has an entry but no program any more.
        while entry.read_link().is_ok() {
            assert!(Instant::now() < until, "the child outlived its parent");
            pause_polling(Duration::from_millis(2));
        }
    }

    /// Not a test of its own: the parent in the test above.
    #[test]
    fn parent_that_is_killed() {
        if std::env::var_os("TESTBED_PARENT").is_none() {
            return;
        }
        let mut process = shell("exec cat /dev/zero >/dev/null").start().unwrap();
        println!("child {}", process.id());
        process.wait(SOON).unwrap();
    }
}
