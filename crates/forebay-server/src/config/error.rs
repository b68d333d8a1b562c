//! Why the options cannot be used.
//!
//! Promises: each error names the option, as the file has it, or the place in the file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

/// Why the options cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The file cannot be read.
    #[error("configuration file {}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The file cannot be understood: the error shows the line.
    #[error("configuration file {}: {}", path.display(), with_the_nearest(&error.to_string()))]
    Parse {
        /// Which file.
        path: PathBuf,
        /// What stands in it.
        text: String,
        /// Why, and where.
        error: Box<toml::de::Error>,
    },
    /// An option has a value it may not have.
    #[error("{option}: {why}")]
    Value {
        /// Its name, as in the file.
        option: &'static str,
        /// Of which table it is, by kind and name, where it is not everybody's.
        table: Option<(&'static str, String)>,
        /// Why not.
        why: String,
    },
    /// One of the other reasons, for what stands there in the file.
    #[error("configuration file {}, line {line}: {error}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        #[source]
        error: Box<Self>,
    },
    /// Everyone who reaches the address could read and change everything.
    #[error(
        "{option} = {address} can be reached from other machines, and there are no users: everyone could read and change everything. \
         Make a user with `forebay user add NAME` and start with --users forebay.users, or say --insecure if that is what you want"
    )]
    OpenToEveryone {
        /// listen or http.
        option: &'static str,
        /// Its address.
        address: SocketAddr,
    },
}

impl OptionsError {
    /// As one line of a log has it.
    pub(crate) fn in_one_line(&self) -> String {
        let Self::Parse { path, text, error } = self else {
            return self.to_string();
        };
        let line = error.span().map(|span| line_at(text, span.start));
        let line = line.map_or_else(String::new, |line| format!(", line {line}"));
        let why = with_the_nearest(error.message());
        format!(
            "configuration file {}{line}: {}",
            path.display(),
            why.replace('\n', "; ")
        )
    }

    /// The same, with the line of the file, if it is one of an option that stands there.
    pub(super) fn in_file(self, path: &Path, text: &str) -> Self {
        let line = match &self {
            Self::Value { option, table, .. } => {
                let table = table.as_ref().map(|(kind, name)| (*kind, name.as_str()));
                line_of(text, option, table)
            }
            Self::OpenToEveryone { option, .. } => line_of(text, option, None),
            Self::File { .. } | Self::Parse { .. } | Self::Line { .. } => None,
        };
        match line {
            Some(line) => Self::Line {
                path: path.to_owned(),
                line,
                error: Box::new(self),
            },
            None => self,
        }
    }
}

/// What is said of an unknown key, with the one that may have been meant in place of all that there are: those stand in the guide.
fn with_the_nearest(why: &str) -> String {
    const ALIKE_MIN: f64 = 0.8;
    let of_key = why
        .split_once("unknown field `")
        .and_then(|(_, rest)| rest.split_once('`'));
    let all = why.split_once(", expected one of ");
    let (Some((key, _)), Some((before, names))) = (of_key, all) else {
        return why.to_owned();
    };
    let (names, behind) = names.split_once('\n').unwrap_or((names, ""));
    let alike = |name: &str| strsim::jaro_winkler(key, name);
    let nearest = names
        .split(", ")
        .map(|name| name.trim_matches('`'))
        .max_by(|one, other| alike(one).total_cmp(&alike(other)))
        .filter(|name| alike(name) >= ALIKE_MIN);
    let meant = nearest.map_or_else(String::new, |name| format!(": did you mean `{name}`?"));
    let behind = if behind.is_empty() {
        String::new()
    } else {
        format!("\n{behind}")
    };
    format!("{before}{meant}{behind}")
}

/// The line of an option: in the last table of this kind and name, if it is one's and stands there.
pub(super) fn line_of(text: &str, option: &str, table: Option<(&str, &str)>) -> Option<usize> {
    let file = DeTable::parse(text).ok()?;
    let at = |table: &DeTable<'_>| {
        let (key, _) = table.iter().find(|(key, _)| key.get_ref() == option)?;
        Some(key.span().start)
    };
    let of_table = table.and_then(|(kind, name)| {
        let tables = file.get_ref().get(kind)?.get_ref().as_array()?;
        let mut tables = tables.iter().filter_map(|table| table.get_ref().as_table());
        let own = tables.rfind(|table| {
            let own = table.get("name").and_then(|own| own.get_ref().as_str());
            own == Some(name)
        });
        at(own?)
    });
    let start = of_table.or_else(|| at(file.get_ref()))?;
    Some(line_at(text, start))
}

/// From 1.
fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// An option has a value it may not have.
pub(super) fn value(option: &'static str, why: &str) -> OptionsError {
    OptionsError::Value {
        option,
        table: None,
        why: why.to_owned(),
    }
}

/// The same of one database's option.
pub(super) fn value_of(option: &'static str, database: Option<&str>, why: &str) -> OptionsError {
    match database {
        Some(database) => value_in("database", database, option, why),
        None => value(option, why),
    }
}

/// The same of an option in a table of this kind and name.
pub(super) fn value_in(kind: &'static str, name: &str, option: &'static str, why: &str) -> OptionsError {
    OptionsError::Value {
        option,
        table: Some((kind, name.to_owned())),
        why: format!("of {kind} \"{name}\" {why}"),
    }
}
