//! What the documents promise one another: links that lead somewhere, examples that are tests.
//!
//! Promises: a link to a file or a heading that is not there is told, with the document it stands in; so is the name of a source file
//! that is not there, a chapter that the guide's summary does not name, and a Rust example that no compiler sees. Addresses on the network
//! are not asked for.
//!
//! Does not know how the guide is made into a book.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use mdbook_markdown::{
    MarkdownOptions, new_cmark_parser,
    pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd},
};

use crate::workspace;

/// Where the documents are: files, and folders with all that is below them.
const PLACES: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs",
    "guide/src",
];
/// Speaks of what is no more.
const HISTORY: &str = "CHANGELOG.md";
/// Where the sources are that documents name.
const SOURCES: [&str; 4] = ["crates", "examples", "lab", "xtask"];
/// The chapters of the guide, in their order.
const SUMMARY: &str = "guide/src/SUMMARY.md";
/// The folder of the chapters.
const CHAPTERS: &str = "guide/src";
/// Has a module for each document with Rust examples, so that they are tests of the documentation.
const TESTED: &str = "crates/forebay/src/documents.rs";

/// A Markdown file, as far as others depend on it.
#[derive(Debug)]
struct Document {
    /// From the workspace's root.
    path: PathBuf,
    links: Vec<String>,
    /// What a link may have behind `#`.
    anchors: BTreeSet<String>,
    /// The source files that it names.
    sources: Vec<String>,
    /// What stands behind the opening fence of each block of code.
    fences: Vec<String>,
}

/// All that is wrong with the documents, a line each.
pub(crate) fn faults() -> Result<Vec<String>, String> {
    let root = workspace::root();
    let documents = read_all(root)?;
    let mut sources = Vec::new();
    for place in SOURCES {
        files_below(root, Path::new(place), "rs", &mut sources)?;
    }
    let tested = read(&root.join(TESTED))?;
    let mut faults = broken_links(&documents, |path| root.join(path).exists());
    faults.extend(missing_sources(&documents, &sources));
    faults.extend(untested(&documents, &tested));
    faults.extend(forgotten(&documents));
    Ok(faults)
}

fn read_all(root: &Path) -> Result<Vec<Document>, String> {
    let mut paths = Vec::new();
    for place in PLACES {
        files_below(root, Path::new(place), "md", &mut paths)?;
    }
    paths.sort();
    paths
        .into_iter()
        .map(|path| Ok(parse(&path, &read(&root.join(&path))?)))
        .collect()
}

/// The place itself if it is a file that ends so, otherwise all such files below it that are not made by a build.
fn files_below(root: &Path, place: &Path, end: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let full = root.join(place);
    if !full.is_dir() {
        found.extend((full.extension().is_some_and(|is| is == end)).then(|| place.to_owned()));
        return Ok(());
    }
    let told = |error| format!("could not read {}: {error}", place.display());
    for entry in fs::read_dir(&full).map_err(told)? {
        let name = entry.map_err(told)?.file_name();
        if !["target", "node_modules"].iter().any(|made| name == *made) {
            files_below(root, &place.join(name), end, found)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("could not read {}: {error}", path.display()))
}

fn parse(path: &Path, text: &str) -> Document {
    let mut document = Document {
        path: path.to_owned(),
        links: Vec::new(),
        sources: Vec::new(),
        anchors: BTreeSet::new(),
        fences: Vec::new(),
    };
    // Punctuation as it is written: anchors are made of it.
    let mut options = MarkdownOptions::default();
    options.smart_punctuation = false;
    let mut heading: Option<String> = None;
    for event in new_cmark_parser(text, &options) {
        if let Event::Code(words) = &event
            && is_source(words)
        {
            document.sources.push(words.to_string());
        }
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                document.links.push(dest_url.into_string());
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(words))) => document.fences.push(words.into_string()),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(heading) = heading.take() {
                    let plain = anchor(&heading);
                    // A heading that is there again is numbered.
                    let numbered = (1..).map(|number| format!("{plain}-{number}"));
                    let all = [plain.clone()].into_iter().chain(numbered);
                    let free = all.into_iter().find(|name| !document.anchors.contains(name));
                    document.anchors.extend(free);
                }
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    document
}

/// Whether it is the name of one source file, with or without what it is in.
fn is_source(words: &str) -> bool {
    let is_of_a_path = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    words
        .strip_suffix(".rs")
        .is_some_and(|path| !path.is_empty() && path.chars().all(is_of_a_path))
}

/// Source files that documents name and nobody has.
fn missing_sources(documents: &[Document], sources: &[PathBuf]) -> Vec<String> {
    let is_there = |named: &str| sources.iter().any(|path| path.ends_with(named));
    let of_today = documents.iter().filter(|document| document.path != Path::new(HISTORY));
    of_today
        .flat_map(|document| {
            let missing = document.sources.iter().filter(|named| !is_there(named));
            missing.map(|named| format!("{}: {named}: no such source file", document.path.display()))
        })
        .collect()
}

/// The anchor of a heading, as the book and code hosts make it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().chars().filter_map(|letter| match letter {
        '-' | '_' => Some(letter),
        _ if letter.is_whitespace() => Some('-'),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    letters.flat_map(char::to_lowercase).collect()
}

fn broken_links(documents: &[Document], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for document in documents {
        for link in document.links.iter().filter(|link| !has_scheme(link)) {
            let (file, heading) = link
                .split_once('#')
                .map_or((&**link, None), |(file, heading)| (file, Some(heading)));
            let target = match (file, document.path.parent()) {
                ("", _) => Some(document.path.clone()),
                (_, Some(folder)) => straightened(&folder.join(file)),
                (_, None) => None,
            };
            let what = match target {
                None => Some("leads out of the workspace"),
                Some(target) if !exists(&target) => Some("no such file"),
                Some(target) => {
                    let aimed = documents.iter().find(|other| other.path == target);
                    let is_there = |heading: &str| aimed.is_none_or(|other| other.anchors.contains(heading));
                    (!heading.is_none_or(is_there)).then_some("no such heading")
                }
            };
            broken.extend(what.map(|what| format!("{}: {link}: {what}", document.path.display())));
        }
    }
    broken
}

fn has_scheme(link: &str) -> bool {
    link.split_once(':')
        .is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric()))
}

/// The path without `.` and `..`; none if it leads above where it begins.
fn straightened(path: &Path) -> Option<PathBuf> {
    let mut straight = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !straight.pop() {
                    return None;
                }
            }
            part => straight.push(part),
        }
    }
    Some(straight)
}

/// Rust examples of the README and the guide that are no tests.
fn untested(documents: &[Document], tested: &str) -> Vec<String> {
    let shown = documents
        .iter()
        .filter(|document| document.path == Path::new("README.md") || document.path.starts_with(CHAPTERS));
    let mut untested = Vec::new();
    for document in shown {
        let rust = || document.fences.iter().filter(|words| is_rust(words));
        let path = document.path.display();
        if rust().next().is_some() && !tested.contains(&format!("include_str!(\"../../../{path}\")")) {
            untested.push(format!("{path}: its Rust examples are not in {TESTED}"));
        }
        let unseen = rust().find(|words| words.split(',').any(|word| word.trim() == "ignore"));
        untested.extend(unseen.map(|words| format!("{path}: no compiler sees an example of {words:?}")));
        // A block without a language is taken for Rust by rustdoc, and for nothing by others.
        if document.fences.iter().any(|words| words.trim().is_empty()) {
            untested.push(format!("{path}: a block of code does not say what it is"));
        }
    }
    untested
}

fn is_rust(words: &str) -> bool {
    words
        .split(',')
        .next()
        .is_some_and(|language| language.trim() == "rust")
}

/// Chapters that the summary does not name.
fn forgotten(documents: &[Document]) -> Vec<String> {
    let summary = documents.iter().find(|document| document.path == Path::new(SUMMARY));
    let named: Vec<PathBuf> = summary
        .iter()
        .flat_map(|summary| &summary.links)
        .map(|link| Path::new(CHAPTERS).join(link))
        .collect();
    documents
        .iter()
        .map(|document| &document.path)
        .filter(|path| path.starts_with(CHAPTERS) && *path != Path::new(SUMMARY) && !named.contains(path))
        .map(|path| format!("{}: {SUMMARY} does not name it", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_are_without_fault() {
        assert_eq!(faults().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_link_leads_to_a_file_and_a_heading_that_are_there() {
        let here = parse(
            Path::new("guide/src/a.md"),
            "# A `b`, c!\n[1](b/c.md#d) [2](#a-b-c) [3](../../x.rs) [4](https://example.com/no.md#no)\n\
             [5](missing.md) [6](b/c.md#no) [7](#no) [8](../../../out.md)\n```text\n[9](no.md)\n```\n",
        );
        let there = parse(Path::new("guide/src/b/c.md"), "# D\n## D\n[1](../a.md) [2](#d-1)\n");
        let exists = |path: &Path| path.ends_with("a.md") || path.ends_with("b/c.md") || path == Path::new("x.rs");
        assert_eq!(
            broken_links(&[here, there], exists),
            [
                "guide/src/a.md: missing.md: no such file",
                "guide/src/a.md: b/c.md#no: no such heading",
                "guide/src/a.md: #no: no such heading",
                "guide/src/a.md: ../../../out.md: leads out of the workspace",
            ]
        );
    }

    #[test]
    fn a_source_file_that_is_named_is_there() {
        let text = "`crates/a/src/b.rs`, `b.rs`, `c.rs`, `src/c/b.rs`, `*.rs`, `x.b.rs(1)`\n```text\n`d.rs`\n```\n";
        let sources = [
            PathBuf::from("crates/a/src/b.rs"),
            PathBuf::from("crates/a/src/b/cc.rs"),
        ];
        assert_eq!(
            missing_sources(&[parse(Path::new("docs/a.md"), text)], &sources),
            [
                "docs/a.md: c.rs: no such source file",
                "docs/a.md: src/c/b.rs: no such source file",
            ]
        );
        assert_eq!(missing_sources(&[parse(Path::new(HISTORY), text)], &sources), [""; 0]);
    }

    #[test]
    fn an_example_that_no_compiler_sees_is_told() {
        let examples = "```rust\n```\n```rust,no_run\n```\n```console\n```\n";
        let document = || [parse(Path::new("guide/src/a.md"), examples)];
        let tested = "include_str!(\"../../../guide/src/a.md\")";
        assert_eq!(untested(&document(), tested), Vec::<String>::new());
        assert_eq!(untested(&document(), "").len(), 1);
        let ignored = [parse(Path::new("guide/src/a.md"), "```rust,ignore\n```\n")];
        assert_eq!(untested(&ignored, tested).len(), 1);
        let unnamed = [parse(Path::new("README.md"), "```\n```\n")];
        assert_eq!(untested(&unnamed, tested).len(), 1);
        let elsewhere = [parse(Path::new("docs/a.md"), examples)];
        assert_eq!(untested(&elsewhere, ""), Vec::<String>::new());
    }

    #[test]
    fn a_chapter_that_the_summary_forgets_is_told() {
        let summary = || parse(Path::new(SUMMARY), "- [A](a.md)\n  - [B](a/b.md)\n");
        let chapters = ["guide/src/a.md", "guide/src/a/b.md"].map(|path| parse(Path::new(path), ""));
        let [a, b] = chapters;
        assert_eq!(forgotten(&[summary(), a, b]), Vec::<String>::new());
        let other = parse(Path::new("guide/src/c.md"), "");
        assert_eq!(forgotten(&[summary(), other]).len(), 1);
    }
}
