//! `cargo xtask guide`: the guide as a book, in `target/guide`.
//!
//! Promises: the book is made of what stands in `guide/src` and nothing else; it is not made while a link or an example of the
//! documents is at fault. In it, a link to a document beside the guide leads to that document in the workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mdbook_driver::MDBook;

use crate::{documents, report::Outcome, workspace};

/// Makes the book and says where it is. Returns whether all is well.
pub(crate) fn run() -> bool {
    match build() {
        Ok(first_page) => {
            println!("{}", first_page.display());
            true
        }
        Err(why) => {
            eprintln!("{why}");
            false
        }
    }
}

/// The same as a step of the tests.
pub(crate) fn step() -> Outcome {
    build().map_or_else(Outcome::Failed, |_| Outcome::Passed)
}

/// Checks the documents, makes the book, and returns its first page.
fn build() -> Result<PathBuf, String> {
    let faults = documents::faults()?;
    if !faults.is_empty() {
        return Err(format!("faults in documents: {}\n{}", faults.len(), faults.join("\n")));
    }
    let book = MDBook::load(workspace::root().join("guide"))
        .and_then(|book| book.build().map(|()| book))
        .map_err(|error| format!("could not make the book: {error:#}"))?;
    let folder = book.root.join(&book.config.build.build_dir);
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("there is no book in {}: {error}", folder.display()))?;
    lead_outside(&folder, 0)?;
    let first_page = folder.join("index.html");
    if first_page.is_file() {
        Ok(first_page)
    } else {
        Err(format!("the book has no {}", first_page.display()))
    }
}

/// Mends the links of all pages in this folder, which is this deep in the book.
fn lead_outside(folder: &Path, depth: usize) -> Result<(), String> {
    let told = |error| format!("could not read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.is_dir() {
            lead_outside(&path, depth + 1)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let page = fs::read_to_string(&path).map_err(told)?;
            fs::write(&path, mended(&page, depth))
                .map_err(|error| format!("could not write {}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// The book's maker takes every link to a Markdown file for one to a page of the book. Those that lead above the book, from a
/// page this deep in it, lead to the file again.
fn mended(page: &str, depth: usize) -> String {
    const LINK: &str = "href=\"";
    let above = "../".repeat(depth + 1);
    let mut mended = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find(LINK) {
        let (before, link) = rest.split_at(at + LINK.len());
        let end = link.find('"').unwrap_or(link.len());
        let (link, after) = link.split_at(end);
        mended.push_str(before);
        if link.starts_with(&above) {
            mended.push_str(&link.replacen(".html", ".md", 1));
        } else {
            mended.push_str(link);
        }
        rest = after;
    }
    mended + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_book_lead_to_documents_and_others_stay() {
        let page =
            "<a href=\"a.html\"><a href=\"../b.html#c\"><a href=\"../../d.html#e\"><a href=\"../../f\"><p href=\"";
        let of_the_top =
            "<a href=\"a.html\"><a href=\"../b.md#c\"><a href=\"../../d.md#e\"><a href=\"../../f\"><p href=\"";
        assert_eq!(mended(page, 0), of_the_top);
        let of_a_folder =
            "<a href=\"a.html\"><a href=\"../b.html#c\"><a href=\"../../d.md#e\"><a href=\"../../f\"><p href=\"";
        assert_eq!(mended(page, 1), of_a_folder);
    }

    #[test]
    fn the_guide_becomes_a_book() {
        let first_page = build().unwrap();
        let guarantees = fs::read_to_string(first_page.with_file_name("guarantees.html")).unwrap();
        assert!(guarantees.contains("id=\"what-a-batch-changes\""));
    }
}
