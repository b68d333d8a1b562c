//! No files of a crate import one another in circles: a type that two of them need lives in a third.
//!
//! Promises: a file that names something defined in another (imported, or by its path) is seen to need that file, also where
//! the name is re-exported on its way; files that need one another, directly or through others, are told with the line of one
//! name for each step of the circle. Tests may know everything and are left out; so is a module file's list of its children,
//! and what it re-exports of them.
//!
//! Does not see what has no name: a method of a type that is implemented in another file than the type, a derived trait.

mod graph;
mod names;
pub(crate) mod sources;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{report::Outcome, workspace};
use names::{Edge, edges};
use sources::Crate;

/// Files that need one another, with the names that make it so.
struct Circle {
    files: Vec<PathBuf>,
    edges: Vec<Edge>,
}

/// Fails on every circle.
pub(crate) fn step() -> Outcome {
    let packages = match workspace::packages() {
        Ok(packages) => packages,
        Err(error) => return Outcome::Failed(error),
    };
    let (mut faulty, mut told) = (Vec::new(), Vec::new());
    for (name, folder) in &packages {
        let circles = match circles_of(folder) {
            Ok(circles) => circles,
            Err(error) => return Outcome::Failed(error),
        };
        if !circles.is_empty() {
            for circle in &circles {
                let text = format!("{name}: {}", text(circle).trim_end());
                println!("{text}");
                told.push(format!("\n{text}"));
            }
            faulty.push(name.as_str());
        }
    }
    if faulty.is_empty() {
        Outcome::Passed
    } else {
        Outcome::Failed(format!(
            "files that import one another in circles: {}{}",
            faulty.join(", "),
            told.concat()
        ))
    }
}

/// Shows the circles of these crates, or of all. Returns whether there is none.
pub(crate) fn show(names: &[String]) -> Result<bool, String> {
    let packages = workspace::packages()?;
    if let Some(unknown) = names.iter().find(|name| !packages.contains_key(*name)) {
        return Err(format!("no crate of the workspace is called {unknown}"));
    }
    let mut found = false;
    for (name, folder) in packages {
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        for circle in circles_of(&folder)? {
            found = true;
            print!("{name}: {}", text(&circle));
        }
    }
    Ok(!found)
}

/// The circles of a package's library and of each of its programs.
fn circles_of(package: &Path) -> Result<Vec<Circle>, String> {
    let source = package.join("src");
    let mut roots = vec![source.join("lib.rs"), source.join("main.rs")];
    if let Ok(programs) = fs::read_dir(source.join("bin")) {
        roots.extend(programs.flatten().map(|program| program.path()));
    }
    let mut circles = Vec::new();
    for root in roots.iter().filter(|root| root.is_file()) {
        let read = |path: &Path| fs::read_to_string(path).ok();
        circles.extend(circles_in(&Crate::read(root, &read)?));
    }
    for circle in &mut circles {
        let files = circle.files.iter_mut();
        let ends = circle.edges.iter_mut().flat_map(|edge| [&mut edge.from, &mut edge.to]);
        for file in files.chain(ends) {
            *file = file.strip_prefix(&source).unwrap_or(file).to_owned();
        }
    }
    Ok(circles)
}

fn circles_in(krate: &Crate) -> Vec<Circle> {
    let edges = edges(krate);
    let mut needs: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for edge in &edges {
        needs.entry(&edge.from).or_default().push(&edge.to);
    }
    let circle = |files: Vec<&Path>| Circle {
        edges: edges
            .iter()
            .filter(|edge| files.contains(&&*edge.from) && files.contains(&&*edge.to))
            .cloned()
            .collect(),
        files: files.into_iter().map(Path::to_owned).collect(),
    };
    graph::circles(&needs).into_iter().map(circle).collect()
}

fn text(circle: &Circle) -> String {
    let mut text = format!("{} files need one another\n", circle.files.len());
    for Edge { from, line, name, to } in &circle.edges {
        text.push_str(&format!("  {}:{line} needs {}: {name}\n", from.display(), to.display()));
    }
    text
}

#[cfg(test)]
mod tests;
