use super::*;

/// A crate of these files, each with the path of its module.
fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (name, text) in files {
        let name: Name = name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        tree.add(&name, &name, text.parse().expect("tokens"));
    }
    tree
}

fn rings(files: &[(&str, &str)]) -> Vec<String> {
    tree(files).rings().into_keys().collect()
}

#[test]
fn the_modules_of_each_crate_keep_an_order() {
    let metadata = crate::workspace::metadata().expect("cargo metadata");
    assert_eq!(check(&metadata).expect("sources are readable"), Vec::<String>::new());
}

#[test]
fn each_way_to_use_another_file_closes_a_ring() {
    let a = "use super::b::B; pub struct A; pub fn make() {} pub enum E { V }";
    let rows = [
        "use crate::a::A; pub struct B;",
        "use super::{a::{A as Other}, c}; pub struct B;",
        "use super::a::*; pub struct B;",
        "pub struct B; fn f() -> crate::a::A { todo() }",
        "pub struct B; impl B { fn f(&self) { super::a::make() } }",
        "use super::a; pub struct B; fn f(b: &str) { vec![a::E::V]; }",
        "pub struct B; mod inner { fn f() { super::super::a::make(); } }",
        "pub struct B; macro_rules! m { () => { $crate::a::make() } }",
        "use crate::A; pub struct B;",
        "use super::*; pub struct B; fn f() { A::new() }",
        "pub struct B; pub use super::a::make; fn f() { make() }",
    ];
    for row in rows {
        let files = [("", "mod a; mod b; mod c; pub use a::A;"), ("a", a), ("b", row), ("c", "")];
        assert_eq!(rings(&files), ["a b"], "{row}");
    }
}

#[test]
fn a_parent_is_part_of_a_ring_when_it_uses_what_its_child_has() {
    let child = "use super::Shared; pub fn work(_: Shared) {}";
    for parent in [
        "mod child; pub struct Shared; fn f() { child::work(Shared) }",
        "mod child; use child::work; pub struct Shared;",
    ] {
        assert_eq!(rings(&[("", parent), ("child", child)]), ["lib child"], "{parent}");
    }
    for parent in ["mod child; pub struct Shared;", "mod child; pub(crate) use child::work; pub struct Shared;"] {
        assert_eq!(rings(&[("", parent), ("child", child)]), [""; 0], "{parent}");
    }
}

#[test]
fn tests_comments_texts_and_other_crates_are_no_edges() {
    let rows = [
        "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        "pub struct B; #[cfg(test)] #[allow(unused)] fn f() { crate::a::make() }",
        "pub struct B; // crate::a::make()",
        "pub struct B; const T: &str = r#\"\" crate::a::make() \"#;",
        "use ::a::A; use other::a::A; pub struct B; fn f<'a>(x: &'a str) -> impl Iterator + use<'a> { x.make() }",
        "pub struct B; fn make() {} fn f() { make() }",
        "pub use crate::a::A; pub struct B;",
        "pub(in crate::a) struct B;",
    ];
    for row in rows {
        let files = [("", "mod a; mod b;"), ("a", "use super::b::B; pub struct A; pub fn make() {}"), ("b", row)];
        assert_eq!(rings(&files), [""; 0], "{row}");
    }
}

#[test]
fn a_long_ring_is_told_with_its_edges_and_nothing_else() {
    let files = [
        ("", "mod a; mod b; mod c; mod above; mod below;"),
        ("a", "use super::b::B; pub struct A;"),
        ("b", "use super::c::C; use super::below::X; pub struct B;"),
        ("c", "use super::a::A; pub struct C;"),
        ("above", "use super::a::A;"),
        ("below", "pub struct X;"),
    ];
    assert_eq!(
        tree(&files).rings().into_iter().collect::<Vec<_>>(),
        [("a b c".to_owned(), "\n  a -> b\n  b -> c\n  c -> a".to_owned())]
    );
}
