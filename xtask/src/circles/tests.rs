//! Which names make an edge between files, and which edges make a circle: a circle is seen, also behind a re-export; a tree is passed.

use super::*;

type Files<'a> = &'a [(&'a str, &'a str)];

/// A crate of these files: their names and texts.
fn krate(files: Files<'_>) -> Crate {
    let text = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned())
    };
    Crate::read(Path::new("lib.rs"), &text).unwrap()
}

/// Each edge as `from:line to`.
fn edges_of(files: Files<'_>) -> Vec<String> {
    let edge = |edge: Edge| format!("{}:{} {}", edge.from.display(), edge.line, edge.to.display());
    edges(&krate(files)).into_iter().map(edge).collect()
}

/// The edges of a file `a.rs` with this text beside `b.rs`, which defines `Thing` and `make`.
fn edges_of_a(text: &str) -> Vec<String> {
    let b = "pub struct Thing; pub fn make() {} pub mod inner { pub enum Kind { One } }";
    edges_of(&[("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", b)])
}

fn circles_of(files: Files<'_>) -> Vec<String> {
    let names = |circle: Circle| {
        let files: Vec<_> = circle.files.iter().map(|file| file.display().to_string()).collect();
        files.join(" ")
    };
    circles_in(&krate(files)).into_iter().map(names).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_circle_of_two_files_is_seen_and_told_with_its_lines() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "//! Text.\n\nuse crate::b::Thing;\npub struct Other(Thing);"),
        (
            "b.rs",
            "pub struct Thing;\n\nimpl Thing {\n    fn f(_: &super::a::Other) {}\n}",
        ),
    ];
    assert_eq!(circles_of(&files), ["a.rs b.rs"]);
    assert_eq!(
        text(&circles_in(&krate(&files))[0]),
        "2 files need one another\n  a.rs:3 needs b.rs: crate::b::Thing\n  b.rs:4 needs a.rs: super::a::Other\n"
    );
}

#[test]
fn a_circle_is_seen_through_a_re_export() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use b::Thing;"),
        ("a.rs", "use crate::Thing;\npub struct Other(Thing);"),
        ("b.rs", "use crate::a::Other;\npub struct Thing(Box<Other>);"),
    ];
    assert_eq!(circles_of(&files), ["a.rs b.rs"]);
}

#[test]
fn a_circle_is_seen_through_re_exports_of_folders_and_globs() {
    let files = [
        ("lib.rs", "pub mod room;\nmod other;\npub use room::*;"),
        ("room/mod.rs", "mod deep;\npub use deep::Thing as Named;"),
        ("room/deep.rs", "use crate::other;\npub struct Thing(other::Other);"),
        ("other.rs", "use super::Named;\npub struct Other(Box<Named>);"),
    ];
    assert_eq!(circles_of(&files), ["other.rs room/deep.rs"]);
}

#[test]
fn a_tree_is_passed() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;"),
        ("a.rs", "use crate::b::B;\nuse super::c::C;\npub struct A(B, C);"),
        ("b.rs", "use super::c::C;\npub struct B(C);"),
        ("c.rs", "pub struct C;"),
    ];
    assert_eq!(circles_of(&files), NONE);
    assert_eq!(edges_of(&files), ["a.rs:1 b.rs", "a.rs:2 c.rs", "b.rs:1 c.rs"]);
}

#[test]
fn a_parent_that_needs_its_child_must_not_be_needed_by_it() {
    let lists = "mod child;\npub use child::Child;\npub struct Parent;";
    let needs = "mod child;\npub use child::Child;\npub struct Parent(Option<Child>);";
    let child = "use super::Parent;\npub struct Child(Parent);";
    assert_eq!(circles_of(&[("lib.rs", lists), ("child.rs", child)]), NONE);
    assert_eq!(
        circles_of(&[("lib.rs", needs), ("child.rs", child)]),
        ["child.rs lib.rs"]
    );
}

#[test]
fn a_name_is_seen_wherever_it_stands() {
    for text in [
        "use crate::b::Thing;",
        "use crate::b::{self, Thing as T};",
        "use super::b; fn f() { b::make(); }",
        "use super::b::inner; fn f(kind: inner::Kind) { let inner::Kind::One = kind; }",
        "use super::*; fn f() { b::make(); }",
        "use super::b::inner::Kind::*;",
        "pub use crate::b::Thing;",
        "fn f() { use crate::b::make; make(); }",
        "fn f() { println!(\"{:?}\", [crate::b::make()]); }",
        "fn f() { assert!(!vec![1].is_empty(), x.y(..super::b::make())); }",
        "macro_rules! m { ($x:expr) => { $crate::b::make($x) }; }",
        "impl Clone for crate::b::Thing { fn clone(&self) -> Self { Thing } }",
        "mod plain { pub fn f() { super::super::b::make(); } }",
        "fn f<T: Into<Vec<crate::b::Thing>>>() {}",
        "#[cfg(not(test))] use crate::b::Thing;",
        "#[cfg(any(test, unix))] use crate::b::Thing;",
    ] {
        assert_eq!(edges_of_a(text), ["a.rs:1 b.rs"], "{text}");
    }
}

#[test]
fn what_is_no_name_of_another_file_is_not_taken_for_one() {
    for text in [
        "// use crate::b::Thing;",
        "/// See [`Thing`](crate::b::Thing).\nfn f() {}",
        "use super::b;",
        "struct Thing; fn f() -> Thing { Thing }",
        "use other::b::Thing;",
        "use ::b::Thing;",
        "fn f() { x.make(); ::b::make(); m!(x.b::make, ::b::make) }",
        "pub(in crate::b::inner) fn f() {}",
        "const T: &str = \"crate::b::make\";",
    ] {
        assert_eq!(edges_of_a(text), NONE, "{text}");
    }
}

#[test]
fn a_macro_is_not_the_function_of_its_name() {
    let files = [
        (
            "lib.rs",
            "mod b;\npub use b::write;\nfn f() { write!(x); assert!(write!(y)); }",
        ),
        ("b.rs", "pub fn write() {}"),
    ];
    assert_eq!(edges_of(&files), NONE);
}

#[test]
fn tests_and_models_may_know_everything() {
    for text in [
        "#[cfg(test)] use crate::b::Thing;",
        "#[cfg(test)] mod tests { use crate::b::Thing; }",
        "#[cfg(all(test, not(forebay_loom)))] mod tests { use crate::b::Thing; }",
        "#[cfg(forebay_loom)] mod model { use crate::b::Thing; }",
        "#[cfg(any(test, forebay_loom))] fn f() { crate::b::make() }",
        "#[cfg(test)] mod not_there;",
        "struct S; impl S { #[cfg(test)] fn f() { crate::b::make() } }",
        "struct S { #[cfg(test)] thing: crate::b::Thing }",
        "fn f() { #[cfg(test)] let x = crate::b::make(); }",
        "#[test] fn f() { crate::b::make() }",
    ] {
        assert_eq!(edges_of_a(text), NONE, "{text}");
    }
}

#[test]
fn what_another_crate_defines_is_had_from_the_file_that_takes_it_up() {
    let files = [
        ("lib.rs", "mod a;\nmod shim;"),
        ("a.rs", "use crate::shim::Mutex;\nuse std::sync::Arc;"),
        ("shim.rs", "pub use parking_lot::Mutex;"),
    ];
    assert_eq!(edges_of(&files), ["a.rs:1 shim.rs"]);
}

#[test]
fn a_module_and_a_function_of_one_name_are_both_found() {
    let files = [
        ("lib.rs", "mod a;\nmod work;\nuse work::work;"),
        ("a.rs", "fn f() { super::work(); }"),
        ("work.rs", "pub fn work() {}"),
    ];
    assert_eq!(edges_of(&files), ["lib.rs:3 work.rs", "a.rs:1 work.rs"]);
}

#[test]
fn of_a_module_and_a_function_only_the_module_has_something_behind_it() {
    let files = [
        ("lib.rs", "mod a;\nmod work;\nfn work() {}"),
        ("a.rs", "use super::work::Thing;"),
        ("work.rs", "pub struct Thing;"),
    ];
    assert_eq!(edges_of(&files), ["a.rs:1 work.rs"]);
}

#[test]
fn imports_that_lead_in_a_ring_come_to_an_end() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub use super::b::*;\nuse super::b::Nothing;"),
        ("b.rs", "pub use super::a::*;\npub use super::a::Nothing;"),
    ];
    assert_eq!(circles_of(&files), NONE);
}

#[test]
fn files_are_found_where_rust_looks_for_them() {
    let files = [
        ("lib.rs", "mod a;\n#[path = \"elsewhere.rs\"]\nmod c;\npub struct Root;"),
        ("a.rs", "mod b;\nmod inline { mod deep; }"),
        ("a/b.rs", "use crate::Root;"),
        ("a/inline/deep/mod.rs", "mod deeper;"),
        ("a/inline/deep/deeper.rs", "use crate::Root;"),
        ("elsewhere.rs", "use crate::Root;"),
    ];
    let found = [
        "a/b.rs:1 lib.rs",
        "a/inline/deep/deeper.rs:1 lib.rs",
        "elsewhere.rs:1 lib.rs",
    ];
    assert_eq!(edges_of(&files), found);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let read = |path: &Path| (path == Path::new("lib.rs")).then(|| "mod gone;".to_owned());
    let error = Crate::read(Path::new("lib.rs"), &read).unwrap_err();
    assert!(error.contains("gone"), "{error}");
    assert!(Crate::read(Path::new("lib.rs"), &|_| Some("mod {".to_owned())).is_err());
}
