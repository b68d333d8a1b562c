//! The file of hot questions: what was asked for most of memory, to be asked anew behind the next start.
//!
//! Promises: the file is replaced as a whole, so that whoever is killed leaves the one before; nobody but its owner may read it, for values of parameters are
//! in it. A file of something else is neither read nor replaced. A line that cannot be understood costs that question and nothing else. No more is read than could have
//! been written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use forebay_proxy::HotQuestion;

/// The first line, by which such a file is told from others. What it says last is another number where lines are read otherwise.
const HEADER: &str = r#"{"forebay":"hot questions","version":1}"#;
/// What it begins with, of whatever version.
const OURS: &str = r#"{"forebay":"hot questions""#;
/// Longer lines are not read: what is remembered is asked by 16 KiB at the most, and has what was set beside.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Nor are further lines: ten times what memory watches.
const LINES_MAX: usize = 100_000;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WarmFileError {
    /// It cannot be read.
    #[error("cannot read {}: {cause} (--warm-file)", path.display())]
    Read {
        /// Its name.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It cannot be replaced.
    #[error("cannot write {}: {cause} (--warm-file)", path.display())]
    Write {
        /// Its name.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is of something else.
    #[error("{} is no file of hot questions, and is left as it is (--warm-file)", path.display())]
    Foreign {
        /// Its name.
        path: PathBuf,
    },
}

/// What the file says; nothing where there is none yet, or it is of another version.
///
/// # Errors
/// [`WarmFileError`].
pub(crate) fn read(path: &Path) -> Result<Vec<HotQuestion>, WarmFileError> {
    let of = |cause| WarmFileError::Read {
        path: path.to_owned(),
        cause,
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        // To open a pipe waits for who writes into it.
        Ok(metadata) if !metadata.is_file() => return Err(WarmFileError::Foreign { path: path.to_owned() }),
        Err(error) => return Err(of(error)),
        Ok(_) => {}
    }
    let file = File::open(path).map_err(of)?;
    let mut file = BufReader::new(file);
    let mut first = Vec::new();
    next_line(&mut file, &mut first).map_err(of)?;
    if first.is_empty() {
        return Ok(Vec::new());
    }
    if !first.starts_with(OURS.as_bytes()) {
        return Err(WarmFileError::Foreign { path: path.to_owned() });
    }
    if first != HEADER.as_bytes() {
        tracing::warn!(file = %path.display(), "hot questions are written as another version does, and are not read");
        return Ok(Vec::new());
    }
    let (mut questions, mut lost, mut line) = (Vec::new(), 0, Vec::new());
    for _ in 0..LINES_MAX {
        if !next_line(&mut file, &mut line).map_err(of)? {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(question) => questions.push(question),
            Err(_) => lost += 1,
        }
    }
    if lost > 0 {
        tracing::warn!(file = %path.display(), lines = lost, "hot questions cannot be understood");
    }
    Ok(questions)
}

/// The next line, without its end; of one that is too long the beginning, of which the rest is the next. False at the end.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(read > 0)
}

/// Replaces what the file says.
///
/// # Errors
/// [`WarmFileError`].
pub(crate) fn write(path: &Path, questions: &[HotQuestion]) -> Result<(), WarmFileError> {
    if is_foreign(path) {
        return Err(WarmFileError::Foreign { path: path.to_owned() });
    }
    replace(path, questions).map_err(|cause| WarmFileError::Write {
        path: path.to_owned(),
        cause,
    })
}

fn is_foreign(path: &Path) -> bool {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return true;
    }
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| next_line(&mut BufReader::new(file), &mut first));
    read.is_ok() && !first.is_empty() && !first.starts_with(OURS.as_bytes())
}

fn replace(path: &Path, questions: &[HotQuestion]) -> io::Result<()> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    let mut out = BufWriter::new(file);
    writeln!(out, "{HEADER}")?;
    for question in questions {
        serde_json::to_writer(&mut out, question)?;
        out.write_all(b"\n")?;
    }
    out.into_inner()?.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn question(text: &str, uses: f64) -> HotQuestion {
        let json = serde_json::json!({"uses": uses, "user": "ann", "database": "shop", "began": [["client_encoding", "UTF8"]], "set": [], "text": text});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_what_is_no_question_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hot");
        assert!(read(&path).unwrap().is_empty(), "there is none yet");
        let questions = [question("SELECT 1\n\"", 2.5), question("SELECT 2", 1e-9)];
        write(&path, &[]).unwrap();
        assert!(read(&path).unwrap().is_empty());
        write(&path, &questions).unwrap();
        assert_eq!(read(&path).unwrap(), questions);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut text = fs::read(&path).unwrap();
        text.splice(HEADER.len() + 1..HEADER.len() + 1, *b"\xff{}\n[1]\n{\"uses\":1}\n");
        text.truncate(text.len() - 5);
        fs::write(&path, &text).unwrap();
        assert_eq!(read(&path).unwrap(), questions[..1]);
        // What was left by whoever was killed.
        fs::write(folder.path().join("hot.new"), "{").unwrap();
        write(&path, &questions).unwrap();
        assert_eq!(read(&path).unwrap(), questions);
        fs::write(&path, HEADER.replace('1', "2") + "\n{\"other\":1}\n").unwrap();
        assert!(read(&path).unwrap().is_empty(), "another version");
        write(&path, &questions).unwrap();
        assert_eq!(read(&path).unwrap(), questions);
    }

    #[test]
    fn no_more_is_read_than_could_have_been_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hot");
        let question = question("SELECT 1", 1.0);
        let line = serde_json::to_string(&question).unwrap();
        let long = "x".repeat(3 * usize::try_from(LINE_BYTES_MAX).unwrap() + 1);
        fs::write(&path, [HEADER, &long, &line, ""].join("\n")).unwrap();
        assert_eq!(read(&path).unwrap(), [question]);
        let lines = format!("{line}\n").repeat(LINES_MAX + 5);
        fs::write(&path, format!("{HEADER}\n{lines}")).unwrap();
        assert_eq!(read(&path).unwrap().len(), LINES_MAX);
        fs::write(&path, &long).unwrap();
        assert!(matches!(read(&path), Err(WarmFileError::Foreign { .. })));
    }

    #[test]
    fn a_file_of_something_else_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forebay.toml");
        fs::write(&path, "listen = \"x\"\n").unwrap();
        assert!(matches!(read(&path), Err(WarmFileError::Foreign { .. })));
        assert!(matches!(write(&path, &[]), Err(WarmFileError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"listen = \"x\"\n");
        let nowhere = folder.path().join("none").join("hot");
        assert!(matches!(write(&nowhere, &[]), Err(WarmFileError::Write { .. })));
        // What is no file is not opened: a pipe would be waited for.
        assert!(matches!(read(folder.path()), Err(WarmFileError::Foreign { .. })));
        assert!(matches!(write(folder.path(), &[]), Err(WarmFileError::Foreign { .. })));
        fs::write(folder.path().join("file"), "").unwrap();
        let beneath = folder.path().join("file").join("hot");
        assert!(matches!(read(&beneath), Err(WarmFileError::Read { .. })));
    }
}
