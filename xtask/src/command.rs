//! A command as one would type it: shown before it runs, its output streamed, its failure told in one line, and with the lines of
//! its output that tell why where that is asked for.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, PipeReader},
    path::{Path, PathBuf},
    process::{Command as System, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::Duration,
};

use crate::{reasons::Reasons, workspace};

/// How long the end of the output is waited for behind the program's end: a program that it left behind may hold it open.
const OUTPUT_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// A program with arguments, run at the workspace's root unless told otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

/// The cargo that runs this chore, so that all is built by one compiler.
pub(crate) fn cargo(arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
    // Set by cargo for what it runs; it is the file of one toolchain, which no RUSTUP_TOOLCHAIN redirects.
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).arguments(arguments)
}

impl Command {
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        let folder = workspace::root().to_path_buf();
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder,
        }
    }

    pub(crate) fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn set(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().into()));
        self
    }

    pub(crate) fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = folder.to_path_buf();
        self
    }

    /// How a person would type it.
    pub(crate) fn line(&self) -> String {
        let settings = self
            .environment
            .iter()
            .map(|(name, value)| format!("{}={} ", text(name), quoted(value)));
        let arguments = self.arguments.iter().map(|argument| format!(" {}", quoted(argument)));
        format!(
            "{}{}{}",
            settings.collect::<String>(),
            self.name(),
            arguments.collect::<String>()
        )
    }

    /// The program, without the path where that says nothing to a reader.
    fn name(&self) -> String {
        let stem = Path::new(&self.program).file_stem();
        text(stem.filter(|stem| *stem == "cargo").unwrap_or(&self.program))
    }

    /// Shows it, runs it, and says in one line how it failed.
    pub(crate) fn run(&self) -> Result<(), String> {
        println!("$ {}", self.line());
        self.ended(self.system().stdin(Stdio::null()).status())
    }

    /// The same, but below the line that says how it failed are those of its output that tell why.
    pub(crate) fn run_explained(&self) -> Result<(), String> {
        println!("$ {}", self.line());
        let reasons = Arc::default();
        self.ended(self.run_watched(&reasons)).map_err(|mut how| {
            for line in reasons.lock().unwrap_or_else(PoisonError::into_inner).take() {
                how.push('\n');
                how.push_str(&line);
            }
            how
        })
    }

    /// Runs it with its output and its errors in one stream, so that their order is kept.
    fn run_watched(&self, reasons: &Arc<Mutex<Reasons>>) -> io::Result<ExitStatus> {
        let (output, end) = io::pipe()?;
        // The command holds ends of the pipe too, and is gone with this line: else the output would not end with the program.
        let mut program = (self.system().stdin(Stdio::null()))
            .stdout(end.try_clone()?)
            .stderr(end)
            .spawn()?;
        let (ended, end) = mpsc::channel();
        let reasons = Arc::clone(reasons);
        thread::spawn(move || {
            show(output, &reasons);
            // Nobody waits any more if it took too long.
            let _ = ended.send(());
        });
        let status = program.wait()?;
        let _ = end.recv_timeout(OUTPUT_ENDS_WITHIN);
        Ok(status)
    }

    fn ended(&self, status: io::Result<ExitStatus>) -> Result<(), String> {
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{} ended with {status}", self.name())),
            Err(error) => Err(format!("could not run {}: {error}", self.name())),
        }
    }

    /// Runs it out of sight and returns what it printed, if it succeeded.
    pub(crate) fn told(&self) -> Option<String> {
        let told = self.system().stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        told.status
            .success()
            .then(|| String::from_utf8_lossy(&told.stdout).into_owned())
    }

    fn system(&self) -> System {
        let mut command = System::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(&self.folder);
        command
    }
}

/// Shows the output line by line, and picks what tells of a failure.
fn show(output: PipeReader, reasons: &Mutex<Reasons>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        reasons.lock().unwrap_or_else(PoisonError::into_inner).see(&line);
    }
}

/// Whether a program of this name can be run.
pub(crate) fn is_installed(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

fn text(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn quoted(word: &OsStr) -> String {
    let word = text(word);
    if word.is_empty() || word.contains([' ', '*', '\'']) {
        format!("{word:?}")
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let command = Command::new("/a/b/cargo")
            .arguments(["test", "a b"])
            .set("RUSTFLAGS", "--cfg x");
        assert_eq!(command.line(), "RUSTFLAGS=\"--cfg x\" cargo test \"a b\"");
    }

    #[test]
    fn a_failure_is_told() {
        assert!(
            Command::new("/bin/sh")
                .arguments(["-c", "exit 3"])
                .run()
                .unwrap_err()
                .contains('3')
        );
        assert!(
            Command::new("/no/such/program")
                .run()
                .unwrap_err()
                .contains("could not run")
        );
        assert_eq!(
            Command::new("/bin/sh").arguments(["-c", "echo a"]).told().as_deref(),
            Some("a\n")
        );
        assert_eq!(Command::new("/bin/sh").arguments(["-c", "echo a; exit 1"]).told(), None);
    }

    #[test]
    fn a_failure_is_explained_by_output_and_errors_in_their_order() {
        let script = |script: &str| Command::new("/bin/sh").arguments(["-c", script]).run_explained();
        assert_eq!(script("echo a"), Ok(()));
        let told = script("echo a; echo b >&2; echo c; exit 3").unwrap_err();
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].contains('3'), "{told}");
        assert_eq!(lines[1..], ["a", "b", "c"]);
        let missing = Command::new("/no/such/program").run_explained().unwrap_err();
        assert!(missing.contains("could not run"), "{missing}");
    }

    #[test]
    fn a_program_left_behind_does_not_keep_the_command_from_ending() {
        let fifo = env::temp_dir().join(format!("forebay-left-behind.{}", std::process::id()));
        let script = format!("mkfifo {0}; cat {0} & echo a; exit 3", fifo.display());
        let told = Command::new("/bin/sh").arguments(["-c", &script]).run_explained();
        assert!(told.unwrap_err().ends_with("\na"));
        // Only now does it see the end of what it reads, and ends too.
        drop(fs::File::options().write(true).open(&fifo).unwrap());
        fs::remove_file(&fifo).unwrap();
    }

    #[test]
    fn a_program_is_looked_for_on_the_path() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no such program"));
    }
}
