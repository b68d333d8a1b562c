//! A crate's modules as its files have them: what each defines, imports and mentions.
//!
//! Promises: all files that the crate's root leads to are read, but for what is compiled only for tests and models. Names in
//! macros are seen as far as they are written like paths.
//!
//! Knows syntax; nothing of what a name means.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{
    Attribute, Field, FieldValue, File, ImplItem, Item, ItemMod, ItemUse, Local, Macro, Meta, Token, TraitItem,
    UseTree, Variant, VisRestricted, Visibility,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use crate::workspace::LOOM_CFG;

/// The modules of a library or program. The first is its root.
#[derive(Debug, Default)]
pub(crate) struct Crate {
    pub(crate) files: Vec<PathBuf>,
    pub(super) modules: Vec<Module>,
}

#[derive(Debug, Default)]
pub(super) struct Module {
    /// Where among the crate's files.
    pub(super) file: usize,
    pub(super) parent: Option<usize>,
    pub(super) names: BTreeMap<String, Vec<Definition>>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
}

/// What a name stands for in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    Module(usize),
    Item,
    /// One of the module's imports.
    Import(usize),
}

/// One name of a `use`, or all of a module's.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) is_glob: bool,
    /// Whether others may have it from here.
    pub(super) is_reexport: bool,
}

/// A path in the code.
#[derive(Debug)]
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

impl Crate {
    /// The crate with this root; `read` returns the text of a file that is there.
    pub(crate) fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Result<Self, String> {
        let mut krate = Self::default();
        let folder = root.parent().unwrap_or(Path::new(""));
        let file = krate.parse(root, read)?;
        krate.add_file(root, folder, None, &file, read)?;
        Ok(krate)
    }

    /// Whether a module is inside another, at any depth.
    pub(super) fn is_below(&self, module: usize, above: usize) -> bool {
        std::iter::successors(self.modules[module].parent, |parent| self.modules[*parent].parent)
            .any(|parent| parent == above)
    }

    fn parse(&self, path: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Result<File, String> {
        let text = read(path).ok_or_else(|| format!("{} cannot be read", path.display()))?;
        syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Adds the module that is this file. Its children's files are in `folder`.
    fn add_file(
        &mut self,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
        file: &File,
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<usize, String> {
        self.files.push(path.to_owned());
        self.add_module(self.files.len() - 1, folder, parent, &file.items, read)
    }

    fn add_module(
        &mut self,
        file: usize,
        folder: &Path,
        parent: Option<usize>,
        items: &[Item],
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<usize, String> {
        let number = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            ..Module::default()
        });
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            match item {
                Item::Mod(child) => {
                    if let Some(child_number) = self.add_child(number, folder, child, read)? {
                        self.modules[number].define(&child.ident, Definition::Module(child_number));
                    }
                }
                item => {
                    let module = &mut self.modules[number];
                    if let Some(name) = name_of(item) {
                        module.define(name, Definition::Item);
                    }
                    module.visit_item(item);
                }
            }
        }
        Ok(number)
    }

    /// The module's number, unless it is for tests.
    fn add_child(
        &mut self,
        parent: usize,
        folder: &Path,
        child: &ItemMod,
        read: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<Option<usize>, String> {
        let name = text(&child.ident);
        let own_folder = folder.join(&name);
        let file = self.modules[parent].file;
        if let Some((_, items)) = &child.content {
            return self.add_module(file, &own_folder, Some(parent), items, read).map(Some);
        }
        let beside = self.files[file].parent().unwrap_or(Path::new(""));
        let (path, own_folder) = match path_attribute(&child.attrs) {
            Some(path) => (beside.join(path), beside.to_owned()),
            None => {
                let alone = folder.join(format!("{name}.rs"));
                let path = if read(&alone).is_some() {
                    alone
                } else {
                    own_folder.join("mod.rs")
                };
                (path, own_folder)
            }
        };
        let file = self.parse(&path, read)?;
        if is_for_tests(&file.attrs) {
            return Ok(None);
        }
        self.add_file(&path, &own_folder, Some(parent), &file, read).map(Some)
    }
}

impl Module {
    fn define(&mut self, name: &Ident, definition: Definition) {
        self.names.entry(text(name)).or_default().push(definition);
    }

    fn mention(&mut self, path: Vec<String>, line: usize) {
        self.mentions.push(Mention { path, line });
    }

    /// The names of a `use`, whose path so far is `before`.
    fn import(&mut self, mut before: Vec<String>, tree: &UseTree, is_reexport: bool) {
        let (last, known_as) = match tree {
            UseTree::Path(path) => {
                before.push(text(&path.ident));
                return self.import(before, &path.tree, is_reexport);
            }
            UseTree::Group(group) => {
                let import = |tree| self.import(before.clone(), tree, is_reexport);
                return group.items.iter().for_each(import);
            }
            UseTree::Glob(glob) => {
                return self.imports.push(Import {
                    path: before,
                    line: glob.star_token.span.start().line,
                    is_glob: true,
                    is_reexport,
                });
            }
            UseTree::Name(name) => (&name.ident, &name.ident),
            UseTree::Rename(renamed) => (&renamed.ident, &renamed.rename),
        };
        // `a::{self}` is `a`.
        if last != "self" {
            before.push(text(last));
        }
        let name = if known_as == "self" {
            before.last().cloned()
        } else {
            Some(text(known_as))
        };
        let number = Definition::Import(self.imports.len());
        self.names.entry(name.unwrap_or_default()).or_default().push(number);
        self.imports.push(Import {
            path: before,
            line: line(last),
            is_glob: false,
            is_reexport,
        });
    }

    /// What looks like a path among the tokens of a macro.
    fn mention_in(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        // The punctuation since the last token of another kind.
        let mut between = String::new();
        for token in tokens {
            match token {
                TokenTree::Punct(punctuation) => {
                    between.push(punctuation.as_char());
                    continue;
                }
                TokenTree::Ident(name) => {
                    let continues = between == "::" && !path.is_empty();
                    if !continues {
                        self.mention(std::mem::take(&mut path), line);
                        line = self::line(&name);
                    }
                    // A field, a method, a lifetime, a name of another crate; `$crate` is this one.
                    let is_other =
                        between.ends_with(['.', '\'']) && !between.ends_with("..") || between.ends_with("::");
                    if continues || !is_other {
                        path.push(text(&name));
                    }
                }
                TokenTree::Group(group) => {
                    let names = std::mem::take(&mut path);
                    if between != "!" || names.len() > 1 {
                        self.mention(names, line);
                    }
                    // Not into attributes.
                    if !between.ends_with(['#', '!']) || group.delimiter() != proc_macro2::Delimiter::Bracket {
                        self.mention_in(group.stream());
                    }
                }
                TokenTree::Literal(_) => self.mention(std::mem::take(&mut path), line),
            }
            between.clear();
        }
        self.mention(path, line);
    }
}

impl<'a> Visit<'a> for Module {
    fn visit_item(&mut self, item: &'a Item) {
        // A module inside a function would be new here; none has a use for it.
        if !is_for_tests(attributes(item)) && !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'a ItemUse) {
        if import.leading_colon.is_none() {
            self.import(Vec::new(), &import.tree, !matches!(import.vis, Visibility::Inherited));
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names = path.segments.iter().map(|segment| text(&segment.ident));
            self.mention(names.collect(), line(&first.ident));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        // The bare name of a macro is in scope by an import, which is seen itself, or is the standard library's.
        if call.path.segments.len() > 1 {
            self.visit_path(&call.path);
        }
        self.mention_in(call.tokens.clone());
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => return,
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if !matches!(item, TraitItem::Fn(item) if is_for_tests(&item.attrs)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'a Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'a FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'a Variant) {
        if !is_for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_local(&mut self, local: &'a Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_vis_restricted(&mut self, _: &'a VisRestricted) {}
}

pub(crate) fn text(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}

fn name_of(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Where `#[path = "…"]` says that the module's file is.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(path),
                ..
            }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// Whether something is compiled for tests or models alone.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args()
                    .is_ok_and(|condition| holds_in_tests_alone(&condition))
    })
}

fn holds_in_tests_alone(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) => ["test", "doctest", LOOM_CFG].iter().any(|tests| name.is_ident(tests)),
        Meta::List(list) => {
            let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
            let Ok(conditions) = list.parse_args_with(parse) else {
                return false;
            };
            let mut conditions = conditions.iter();
            if list.path.is_ident("all") {
                conditions.any(holds_in_tests_alone)
            } else {
                list.path.is_ident("any") && conditions.all(holds_in_tests_alone)
            }
        }
        Meta::NameValue(_) => false,
    }
}
