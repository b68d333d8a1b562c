//! A command as one would type it: shown before it runs, its output streamed, its failure told in one line.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command as System, Stdio},
};

use crate::workspace;

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
        match self.system().stdin(Stdio::null()).status() {
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
    fn a_program_is_looked_for_on_the_path() {
        assert!(is_installed("sh"));
        assert!(!is_installed("no such program"));
    }
}
