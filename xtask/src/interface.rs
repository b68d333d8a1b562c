//! What users see of the facade's crates names nothing of other crates, but for what is listed here: a new version of a dependency
//! must not be a new version of Forebay.
//!
//! Promises: every public item that the facade shows is looked at, with its fields, variants, signatures and bounds, and with the
//! traits that are implemented for it; a name that comes from a dependency and is not listed fails, and so does one that is
//! listed and no longer shown.
//!
//! Goes by what `pub` says, since the lint `unreachable_pub` sees to it that this is true. Does not see what macros make, nor a
//! dependency's type behind an alias that is not public.

mod surface;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::{circles::sources::Crate, report::Outcome, workspace};
use surface::{Shown, Surface};

const FACADE: &str = "forebay";

/// The dependencies' names that users see, and why.
const ALLOWED: &[(&str, &str)] = &[
    // Options of TLS are rustls', whole: a copy of them would always lack one.
    ("forebay-postgres", "forebay_pg_link::rustls"),
    ("forebay-postgres", "forebay_pg_link::rustls::ClientConfig"),
    // What all of it stands on; who has several runtimes says which.
    ("forebay-batch", "tokio::runtime::Handle"),
    ("forebay-cache", "tokio::runtime::Handle"),
    // A row becomes a type of the user's.
    ("forebay-write", "serde::de::DeserializeOwned"),
    ("forebay-mysql", "serde::de::DeserializeOwned"),
    ("forebay-postgres", "serde::de::DeserializeOwned"),
    ("forebay-sqlite", "serde::de::DeserializeOwned"),
    // An alias of types of the standard library's, and no type.
    ("forebay-cache", "futures_util::future::BoxFuture"),
    // A client of the user's making, for example one that speaks TLS.
    ("forebay-cache", "redis::Client"),
    // How a user's own type becomes bytes.
    ("forebay-cache", "serde::Serialize"),
    ("forebay-cache", "serde::de::DeserializeOwned"),
    // A view is handed on to HTTP without a copy.
    ("forebay-pages", "bytes::Bytes"),
];

/// Fails on every name that is not listed, and on every listed one that is not there.
pub(crate) fn step() -> Outcome {
    let shown = match shown() {
        Ok(shown) => shown,
        Err(error) => return Outcome::Failed(error),
    };
    let allowed = |room: &str, name: &str| ALLOWED.contains(&(room, name));
    let mut faults: Vec<String> = shown
        .iter()
        .filter(|((room, name), _)| !allowed(room, name))
        .map(|((room, name), place)| format!("{room} shows {name} at {place}"))
        .collect();
    let gone = ALLOWED
        .iter()
        .filter(|(room, name)| !shown.contains_key(&((*room).to_owned(), (*name).to_owned())));
    faults.extend(gone.map(|(room, name)| format!("{room} is allowed to show {name}, and does not")));
    if faults.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("names of other crates in the facade:\n{}", faults.join("\n")))
    }
}

/// The crates that the facade shows something of, with which of their modules and items; none if all.
pub(crate) fn rooms() -> Result<BTreeMap<String, Option<BTreeSet<String>>>, String> {
    let packages = workspace::packages()?;
    let facade = packages.get(FACADE).ok_or("there is no facade")?.join("src/lib.rs");
    let text = fs::read_to_string(&facade).map_err(|error| format!("{}: {error}", facade.display()))?;
    let parts = surface::parts(&text).map_err(|error| format!("{}: {error}", facade.display()))?;
    let parts = parts.into_iter().map(|(room, part)| match part {
        Shown::All => (room, None),
        Shown::Names(names) => (room, Some(names)),
    });
    Ok(parts.collect())
}

/// A crate and a dependency's name that it shows, with the first place.
fn shown() -> Result<BTreeMap<(String, String), String>, String> {
    let packages = workspace::packages()?;
    let read = |path: &Path| fs::read_to_string(path).ok();
    let facade = packages.get(FACADE).ok_or("there is no facade")?.join("src/lib.rs");
    let text = read(&facade).ok_or("the facade cannot be read")?;
    let parts = surface::parts(&text).map_err(|error| format!("{}: {error}", facade.display()))?;
    let mut found = BTreeMap::new();
    for (room, part) in &parts {
        let folder = packages.get(room).ok_or_else(|| format!("no crate is called {room}"))?;
        let krate = Crate::read(&folder.join("src/lib.rs"), &read)?;
        let foreign = foreign_to(folder, &packages)?;
        for file in &krate.files {
            let text = read(file).ok_or_else(|| format!("{} cannot be read", file.display()))?;
            let inside = file.strip_prefix(folder.join("src")).unwrap_or(file);
            let names = surface_of(&text, inside, part, &foreign);
            for (name, line) in names.map_err(|error| format!("{}: {error}", file.display()))? {
                let place = format!("{}:{line}", inside.display());
                found.entry((room.clone(), name)).or_insert(place);
            }
        }
    }
    Ok(found)
}

/// What is not of the workspace: a package's dependencies, and what other packages of the workspace have from theirs and hand on.
fn foreign_to(package: &Path, packages: &BTreeMap<String, PathBuf>) -> Result<BTreeSet<String>, String> {
    let mut foreign = BTreeSet::new();
    for name in workspace::dependencies(package)? {
        let Some(own) = packages.get(&name.replace('_', "-")) else {
            foreign.insert(name);
            continue;
        };
        let theirs = workspace::dependencies(own)?;
        let root = own.join("src/lib.rs");
        let text = fs::read_to_string(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        let handed_on = surface::handed_on(&text).map_err(|error| format!("{}: {error}", root.display()))?;
        let of_others = handed_on
            .into_iter()
            .filter(|(path, _)| path.first().is_some_and(|first| theirs.contains(first)));
        foreign.extend(of_others.map(|(_, known_as)| format!("{name}::{known_as}")));
    }
    Ok(foreign)
}

/// The names of other crates that a file shows, with their lines.
fn surface_of(
    text: &str,
    file: &Path,
    part: &Shown,
    foreign: &BTreeSet<String>,
) -> syn::Result<BTreeMap<String, usize>> {
    let mut surface = Surface::new(part, file, foreign);
    surface.look_at(&syn::parse_file(text)?);
    Ok(surface.found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, part: &Shown) -> Vec<String> {
        let foreign = ["serde", "redis", "bytes", "forebay_link::rustls"]
            .map(str::to_owned)
            .into();
        let found = surface_of(text, Path::new("tier/mod.rs"), part, &foreign).unwrap();
        found.into_keys().collect()
    }

    #[test]
    fn what_is_public_is_seen_and_what_is_not_is_not() {
        for (text, names) in [
            ("pub fn over(client: redis::Client) {}", &["redis::Client"][..]),
            (
                "use redis::Client as C; pub struct S { pub client: Vec<C> }",
                &["redis::Client"],
            ),
            ("use redis::Client; pub struct S { client: Client }", &[]),
            ("use redis::Client; pub enum E { A(Client) }", &["redis::Client"]),
            ("use redis::Client; pub(crate) fn f(client: Client) {}", &[]),
            ("use redis::Client; fn f(client: Client) {}", &[]),
            ("pub use redis::aio as io;", &["redis::aio"]),
            ("pub trait T { fn f(&self) -> redis::Client; }", &["redis::Client"]),
            ("pub fn f<T: serde::Serialize>(t: T) {}", &["serde::Serialize"]),
            ("pub fn f<T>(t: T) where T: serde::Serialize {}", &["serde::Serialize"]),
            (
                "pub struct S; impl S { pub fn f() -> redis::Client { g() } fn h(c: bytes::Bytes) {} }",
                &["redis::Client"],
            ),
            (
                "pub struct S; impl From<S> for bytes::Bytes { fn from(s: S) -> Self { s } }",
                &["bytes::Bytes"],
            ),
            (
                "struct S; impl From<redis::Client> for S { fn from(c: redis::Client) -> Self { S } }",
                &[],
            ),
            ("pub struct S; impl S { pub fn f() -> u8 { redis::f() } }", &[]),
            ("#[cfg(test)] pub fn f(client: redis::Client) {}", &[]),
            ("pub use forebay_link::rustls;", &["forebay_link::rustls"]),
            (
                "use forebay_link::rustls; pub fn f(c: rustls::C) {}",
                &["forebay_link::rustls::C"],
            ),
            ("use forebay_link::Link; pub fn f(link: Link) {}", &[]),
            ("pub fn f() -> std::io::Result<()> { Ok(()) }", &[]),
        ] {
            assert_eq!(of(text, &Shown::All), names, "{text}");
        }
    }

    #[test]
    fn only_what_the_facade_names_is_looked_at() {
        let part = Shown::Names(["S".to_owned(), "tier".to_owned()].into());
        let text = "pub struct S(pub redis::Client);";
        assert_eq!(of(text, &part), ["redis::Client"]);
        let other = Shown::Names(["T".to_owned()].into());
        assert!(of(text, &other).is_empty());
        let module = Shown::Names(["tier".to_owned()].into());
        assert_eq!(of(text, &module), ["redis::Client"]);
    }

    #[test]
    fn the_facade_says_what_it_shows() {
        let parts = surface::parts(
            "pub use forebay_cache as cache; pub use forebay_batch::{batch, load}; \
             pub mod sqlite { pub use forebay_sqlite::{Sqlite, Read}; }",
        );
        let names = |names: [&str; 2]| Shown::Names(names.map(str::to_owned).into());
        let expected = [
            ("forebay-batch".to_owned(), names(["batch", "load"])),
            ("forebay-cache".to_owned(), Shown::All),
            ("forebay-sqlite".to_owned(), names(["Read", "Sqlite"])),
        ];
        assert_eq!(parts.unwrap(), expected.into());
    }
}
