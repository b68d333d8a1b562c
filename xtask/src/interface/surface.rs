//! The names of dependencies in what a file shows of itself.
//!
//! Knows syntax, and what the imports of the file say of a name; nothing of other files.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use syn::{
    File, ImplItem, Item, ItemImpl, ItemUse, Signature, Type, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::circles::sources::{attributes, is_for_tests, text};

/// What the facade shows of a crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All that is public.
    All,
    /// Modules, and single items.
    Names(BTreeSet<String>),
}

/// What this facade shows of which crate.
pub(super) fn parts(facade: &str) -> syn::Result<BTreeMap<String, Shown>> {
    let mut parts = BTreeMap::new();
    let mut imports = Vec::new();
    for item in syn::parse_file(facade)?.items {
        let inside = match item {
            Item::Mod(module) => module.content.map_or_else(Vec::new, |(_, items)| items),
            item => vec![item],
        };
        imports.extend(inside.into_iter().filter_map(|item| match item {
            Item::Use(import) if is_public(&import.vis) => Some(import),
            _ => None,
        }));
    }
    for import in &imports {
        for (path, _) in names_of(import) {
            let (Some(room), name) = (path.first(), path.get(1)) else {
                continue;
            };
            let part = parts
                .entry(room.replace('_', "-"))
                .or_insert_with(|| Shown::Names(BTreeSet::new()));
            match (part, name) {
                (part, None) => *part = Shown::All,
                (Shown::Names(names), Some(name)) => drop(names.insert(name.clone())),
                (Shown::All, Some(_)) => {}
            }
        }
    }
    Ok(parts)
}

/// The paths of what this root of a crate makes public of others, and what it is called there.
pub(super) fn handed_on(root: &str) -> syn::Result<Vec<(Vec<String>, String)>> {
    let file = syn::parse_file(root)?;
    let items = all_items(&file.items).into_iter();
    let imports = items.filter_map(|item| match item {
        Item::Use(import) if is_public(&import.vis) => Some(names_of(import)),
        _ => None,
    });
    Ok(imports.flatten().collect())
}

/// Looks at a file.
pub(super) struct Surface<'a> {
    part: &'a Shown,
    /// Whether the file is below a module that is shown.
    is_in_shown_module: bool,
    /// Crates, or names of a crate.
    foreign: &'a BTreeSet<String>,
    /// What the names of the file's imports stand for.
    imports: BTreeMap<String, Vec<String>>,
    /// The public types of the file.
    types: BTreeSet<String>,
    /// With the line of the first.
    pub(super) found: BTreeMap<String, usize>,
}

impl<'a> Surface<'a> {
    /// `file` begins at the crate's root.
    pub(super) fn new(part: &'a Shown, file: &Path, foreign: &'a BTreeSet<String>) -> Self {
        let first = file
            .iter()
            .next()
            .and_then(|first| Path::new(first).file_stem()?.to_str());
        Self {
            part,
            is_in_shown_module: match (part, first) {
                (Shown::All, _) => true,
                (Shown::Names(names), Some(first)) => names.contains(first),
                (Shown::Names(_), None) => false,
            },
            foreign,
            imports: BTreeMap::new(),
            types: BTreeSet::new(),
            found: BTreeMap::new(),
        }
    }

    pub(super) fn look_at(&mut self, file: &File) {
        let items: Vec<&Item> = all_items(&file.items);
        for item in &items {
            match item {
                Item::Use(import) => {
                    let names = names_of(import).into_iter();
                    self.imports.extend(names.map(|(path, name)| (name, path)));
                }
                Item::Struct(item) if is_public(&item.vis) => drop(self.types.insert(text(&item.ident))),
                Item::Enum(item) if is_public(&item.vis) => drop(self.types.insert(text(&item.ident))),
                _ => {}
            }
        }
        for item in items {
            self.look_at_item(item);
        }
    }

    fn shows(&self, name: &syn::Ident) -> bool {
        self.is_in_shown_module || matches!(self.part, Shown::Names(names) if names.contains(&text(name)))
    }

    fn look_at_item(&mut self, item: &Item) {
        match item {
            Item::Use(import) if is_public(&import.vis) => {
                for (path, _) in names_of(import) {
                    let is_shown = self.is_in_shown_module
                        || matches!((self.part, path.last()), (Shown::Names(names), Some(last)) if names.contains(last));
                    if is_shown && self.is_foreign(&path) {
                        self.found.entry(path.join("::")).or_insert(0);
                    }
                }
            }
            Item::Struct(item) if is_public(&item.vis) && self.shows(&item.ident) => {
                self.visit_generics(&item.generics);
                for field in item.fields.iter().filter(|field| is_public(&field.vis)) {
                    self.visit_type(&field.ty);
                }
            }
            Item::Enum(item) if is_public(&item.vis) && self.shows(&item.ident) => {
                self.visit_generics(&item.generics);
                for field in item.variants.iter().flat_map(|variant| &variant.fields) {
                    self.visit_type(&field.ty);
                }
            }
            Item::Trait(item) if is_public(&item.vis) && self.shows(&item.ident) => self.visit_item_trait(item),
            Item::Type(item) if is_public(&item.vis) && self.shows(&item.ident) => self.visit_item_type(item),
            Item::Fn(item) if is_public(&item.vis) && self.shows(&item.sig.ident) => self.visit_signature(&item.sig),
            Item::Const(item) if is_public(&item.vis) && self.shows(&item.ident) => self.visit_type(&item.ty),
            Item::Static(item) if is_public(&item.vis) && self.shows(&item.ident) => self.visit_type(&item.ty),
            Item::Impl(item) => self.look_at_impl(item),
            _ => {}
        }
    }

    fn look_at_impl(&mut self, item: &ItemImpl) {
        let Some((name, _)) = &item.trait_ else {
            if self.shows_type(&item.self_ty) {
                self.visit_generics(&item.generics);
                for method in &item.items {
                    match method {
                        ImplItem::Fn(method) if is_public(&method.vis) && !is_for_tests(&method.attrs) => {
                            self.visit_signature(&method.sig);
                        }
                        ImplItem::Const(item) if is_public(&item.vis) => self.visit_type(&item.ty),
                        _ => {}
                    }
                }
            }
            return;
        };
        // `From<View> for Bytes` is as much of the View as `From<Bytes> for View`.
        let mut own = OwnTypes(self, false);
        own.visit_path(name);
        own.visit_type(&item.self_ty);
        if own.1 {
            self.visit_generics(&item.generics);
            self.visit_path(name);
            self.visit_type(&item.self_ty);
        }
    }

    fn shows_type(&self, own: &Type) -> bool {
        matches!(own, Type::Path(path) if path.path.segments.last().is_some_and(|last| self.is_own(&last.ident)))
    }

    /// Whether it is a type that the file makes public, or has from where the crate does.
    fn is_own(&self, name: &syn::Ident) -> bool {
        let imported = self
            .imports
            .get(&text(name))
            .is_some_and(|path| matches!(path.first().map(String::as_str), Some("crate" | "super" | "self")));
        self.shows(name) && (imported || self.types.contains(&text(name)))
    }

    fn is_foreign(&self, path: &[String]) -> bool {
        let is_foreign = |path: &[String]| self.foreign.contains(&path.join("::"));
        path.get(..1).is_some_and(is_foreign) || path.get(..2).is_some_and(is_foreign)
    }
}

impl<'ast> Visit<'ast> for Surface<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            let mut names: Vec<String> = path.segments.iter().map(|segment| text(&segment.ident)).collect();
            if let Some(import) = self.imports.get(&names[0]) {
                names.splice(..1, import.iter().cloned());
            }
            if self.is_foreign(&names) {
                self.found
                    .entry(names.join("::"))
                    .or_insert(first.ident.span().start().line);
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        visit::visit_signature(self, signature);
    }

    // A trait's methods may have bodies, which show nothing.
    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Looks for a public type of the file.
struct OwnTypes<'a, 'b>(&'a Surface<'b>, bool);

impl<'ast> Visit<'ast> for OwnTypes<'_, '_> {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        self.1 |= self.0.is_own(&segment.ident);
        visit::visit_path_segment(self, segment);
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The items of a file and of the modules inside it, but for tests.
fn all_items(items: &[Item]) -> Vec<&Item> {
    let kept = items.iter().filter(|item| !is_for_tests(attributes(item)));
    kept.flat_map(|item| match item {
        Item::Mod(module) => module
            .content
            .as_ref()
            .map_or_else(Vec::new, |(_, items)| all_items(items)),
        item => vec![item],
    })
    .collect()
}

/// The paths of a `use`, and what they are called behind it.
fn names_of(import: &ItemUse) -> Vec<(Vec<String>, String)> {
    let mut names = Vec::new();
    collect(Vec::new(), &import.tree, &mut names);
    names
}

fn collect(mut before: Vec<String>, tree: &UseTree, names: &mut Vec<(Vec<String>, String)>) {
    let (last, known_as) = match tree {
        UseTree::Path(path) => {
            before.push(text(&path.ident));
            return collect(before, &path.tree, names);
        }
        UseTree::Group(group) => {
            return group.items.iter().for_each(|tree| collect(before.clone(), tree, names));
        }
        UseTree::Glob(_) => {
            before.push("*".to_owned());
            return names.push((before, "*".to_owned()));
        }
        UseTree::Name(name) => (&name.ident, &name.ident),
        UseTree::Rename(renamed) => (&renamed.ident, &renamed.rename),
    };
    if last != "self" {
        before.push(text(last));
    }
    let name = if known_as == "self" {
        before.last().cloned().unwrap_or_default()
    } else {
        text(known_as)
    };
    names.push((before, name));
}
