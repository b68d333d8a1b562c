//! Which file of a crate names what is defined in which other.
//!
//! Promises: a name is followed through imports and re-exports, globs too, to the file that defines it. What comes from another
//! crate is defined where this crate takes it up, for those who have it from there.
//!
//! Knows the rules of names, no syntax. Where a name means several things (a module and a function, or one thing a platform),
//! it means all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::sources::{Crate, Definition};

/// A file names what another defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: PathBuf,
    /// Of the first such name.
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) to: PathBuf,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize),
    /// Something that no file of the crate defines.
    Foreign,
}

/// Imports that are being followed: each at most once, so that following ends.
type Followed = BTreeSet<(usize, usize)>;

/// One for each pair of files.
pub(super) fn edges(krate: &Crate) -> Vec<Edge> {
    let mut first: BTreeMap<(usize, usize), (usize, String)> = BTreeMap::new();
    for (number, module) in krate.modules.iter().enumerate() {
        let imports = module
            .imports
            .iter()
            .map(|import| (&import.path, import.line, import.is_reexport));
        let mentions = module
            .mentions
            .iter()
            .map(|mention| (&mention.path, mention.line, false));
        for (path, line, is_reexport) in imports.chain(mentions) {
            for target in find(krate, number, path, &mut Followed::new()) {
                let Target::Item(definer) = target else { continue };
                let files = (module.file, krate.modules[definer].file);
                if files.0 == files.1 || is_reexport && krate.is_below(definer, number) {
                    continue;
                }
                let found = (line, path.join("::"));
                let known = first.entry(files).or_insert_with(|| found.clone());
                if found.0 < known.0 {
                    *known = found;
                }
            }
        }
    }
    let edge = |((from, to), (line, name)): ((usize, usize), _)| Edge {
        from: krate.files[from].clone(),
        line,
        name,
        to: krate.files[to].clone(),
    };
    first.into_iter().map(edge).collect()
}

/// What a path means that stands in this module.
fn find(krate: &Crate, module: usize, path: &[String], followed: &mut Followed) -> BTreeSet<Target> {
    let Some((first, mut rest)) = path.split_first() else {
        return BTreeSet::new();
    };
    let mut targets = match first.as_str() {
        "crate" => [Target::Module(0)].into(),
        "self" => [Target::Module(module)].into(),
        "super" => parent(krate, module),
        "Self" => return BTreeSet::new(),
        name => {
            let found = look_up(krate, module, name, followed);
            if found.is_empty() {
                return [Target::Foreign].into();
            }
            found
        }
    };
    while let Some((name, behind)) = rest.split_first() {
        rest = behind;
        // Beside a module only a function or a constant can have its name, and nothing is behind those.
        if targets.iter().any(|target| matches!(target, Target::Module(_))) {
            targets.retain(|target| matches!(target, Target::Module(_)));
        }
        targets = targets
            .into_iter()
            .flat_map(|target| match target {
                Target::Module(inner) if name == "super" => parent(krate, inner),
                Target::Module(inner) => look_up(krate, inner, name, followed),
                // What is behind an item's name is the item's: a variant, an associated function.
                Target::Item(_) | Target::Foreign => [target].into(),
            })
            .collect();
    }
    targets
}

fn parent(krate: &Crate, module: usize) -> BTreeSet<Target> {
    krate.modules[module].parent.map(Target::Module).into_iter().collect()
}

/// What a name means in a module.
fn look_up(krate: &Crate, module: usize, name: &str, followed: &mut Followed) -> BTreeSet<Target> {
    let imports = &krate.modules[module].imports;
    let mut targets = BTreeSet::new();
    for definition in krate.modules[module].names.get(name).into_iter().flatten() {
        match definition {
            Definition::Module(inner) => targets.extend([Target::Module(*inner)]),
            Definition::Item => targets.extend([Target::Item(module)]),
            Definition::Import(number) => {
                if followed.insert((module, *number)) {
                    let found = find(krate, module, &imports[*number].path, followed);
                    targets.extend(found.into_iter().map(|target| match target {
                        Target::Foreign => Target::Item(module),
                        own => own,
                    }));
                    followed.remove(&(module, *number));
                }
            }
        }
    }
    if !targets.is_empty() {
        return targets;
    }
    let globs = imports.iter().enumerate().filter(|(_, import)| import.is_glob);
    for (number, glob) in globs {
        if followed.insert((module, number)) {
            for target in find(krate, module, &glob.path, followed) {
                if let Target::Module(inner) = target {
                    targets.extend(look_up(krate, inner, name, followed));
                }
            }
            followed.remove(&(module, number));
        }
    }
    targets
}
