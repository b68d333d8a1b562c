//! What the compiler says of mistakes: which words stand in its message, not how it is set.
//!
//! The compiler is asked as cargo would ask it, with the library that these tests are linked to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each program uses.
const USED: &str = "#![allow(unused)]
    #![deny(unused_must_use)]
    use forebay::{cache::*, load::*, sqlite::Sqlite, write::*};
    fn main() {}";

/// The library as cargo has just built it, and the folder with all that it stands on.
fn library() -> (PathBuf, PathBuf) {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap());
    let built = files.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        name.starts_with("libforebay-") && name.ends_with(".rlib")
    });
    // Others are of before, or with other features, and may be newer.
    let mut built: Vec<_> = built.collect();
    built.sort_by_key(|file| file.metadata().unwrap().modified().unwrap());
    let newest_first = built.into_iter().rev().map(|file| file.path());
    let with_all = newest_first
        .into_iter()
        .find(|library| compile(library, &folder, USED).is_empty());
    (with_all.expect("the one that these tests are linked to"), folder)
}

/// What the compiler says of a program that uses this library.
fn compile(library: &Path, folder: &Path, text: &str) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("main.rs");
    fs::write(&source, text).unwrap();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = Command::new(compiler)
        .args(["--edition=2024", "--emit=metadata", "--color=never"])
        .arg("--out-dir")
        .arg(scratch.path())
        .arg(format!("--extern=forebay={}", library.display()))
        .arg(format!("-Ldependency={}", folder.display()))
        .arg(&source)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.success(), said.is_empty(), "{said}");
    said
}

/// What it says of a function with this body.
fn said_of(body: &str) -> String {
    let (library, folder) = library();
    let text = format!(
        "{USED}
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        struct Mine;
        async fn newcomer(database: Sqlite, writer: Writer, cache: Cache<u32, u32>) {{ {body} }}"
    );
    compile(&library, &folder, &text)
}

#[test]
fn what_is_right_compiles() {
    let said = said_of(
        r#"writer.execute("", 5).await.unwrap();
        writer.execute("", &String::new()).await.unwrap();
        writer.execute(&format!("DELETE FROM {}", "hits"), ()).await.unwrap();
        writer.execute("", ("a", [0_u8; 16], None::<u64>)).await.unwrap();
        drop(cache.invalidate(&1));
        cache.invalidate(&1).await;"#,
    );
    assert_eq!(said, "");
}

#[test]
fn a_mistake_is_told_with_what_to_write() {
    for (body, words) in [
        (
            r#"writer.execute("", Mine).await;"#,
            &[
                "`Mine` cannot be among the parameters of a statement, nor a key",
                "impl IntoValue for",
                "impl IntoParameters for",
            ][..],
        ),
        (
            r#"writer.execute("", (1, Mine)).await;"#,
            &[
                "`({integer}, Mine)` cannot be among the parameters",
                "impl IntoValue for",
            ],
        ),
        (
            r#"writer.execute("", (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)).await;"#,
            &["more as a", "`Vec<Value>`"],
        ),
        (
            "Write::new(\"\", std::time::Duration::ZERO);",
            &["`Duration` cannot be among the parameters", "`SystemTime`"],
        ),
        (
            r#"let names: Loader<Mine, String, ReadError> = database.loader("");"#,
            &["`Mine` cannot be a key of a query", "impl IntoValue for Mine"],
        ),
        (
            "Writer::new(Mine);",
            &["`Mine` is no database that a `Writer` can write to", "`Sqlite`"],
        ),
        (
            "cache.invalidate(&1);",
            &["unused", "await it before the write is acknowledged"],
        ),
        (
            "let loader = Loader::new(async |keys: Vec<u32>| Ok::<_, ()>(5));",
            &["a fetch cannot answer with `{integer}`", "HashMap"],
        ),
    ] {
        let said = said_of(body);
        for word in words {
            assert!(said.contains(word), "{body}\nlacks {word}:\n{said}");
        }
    }
}
