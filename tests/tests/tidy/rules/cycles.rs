//! Rule: no two files import each other, directly or through others.

use super::assert_none;
use crate::graph::{Edges, build, cycles, describe, graph};
use crate::workspace::test_workspace;

fn violations(edges: &Edges<'_>) -> Vec<String> {
    cycles(edges).iter().map(|cycle| format!("cycle of\n  {cycle:?}\n{}", describe(cycle, edges))).collect()
}

#[test]
fn files_have_no_import_cycles() {
    assert_none(&violations(&graph().edges()));
}

/// Returns the cycles of a crate with these files, by their edges.
fn described(files: &[(&str, &str)]) -> Vec<String> {
    let graph = build(&test_workspace(files));
    assert_eq!(graph.unresolved, Vec::<String>::new());
    let edges = graph.edges();
    cycles(&edges).iter().map(|cycle| describe(cycle, &edges)).collect()
}

#[test]
fn cycle_through_re_export_is_reported() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a.rs", "use crate::b::helper; pub(crate) struct A;"),
        ("b.rs", "pub(crate) fn helper() -> crate::A { crate::A }"),
    ];
    assert_eq!(described(&files), ["  a.rs -> b.rs: helper\n  b.rs -> a.rs: A"]);
}

#[test]
fn cycle_through_glob_re_export_is_reported() {
    let files = [
        ("lib.rs", "mod a; mod b; pub mod prelude { pub use crate::a::*; }"),
        ("a.rs", "use crate::b::helper; pub(crate) struct A;"),
        ("b.rs", "use crate::prelude::*; pub(crate) fn helper() -> A { A }"),
    ];
    assert_eq!(described(&files), ["  a.rs -> b.rs: helper\n  b.rs -> a.rs: A"]);
}

#[test]
fn cycle_through_super_is_reported() {
    let files = [
        ("lib.rs", "mod outer;"),
        ("outer/mod.rs", "mod inner; pub(crate) struct Outer; fn f() { inner::g(); }"),
        ("outer/inner.rs", "pub(crate) fn g() -> super::Outer { super::Outer }"),
    ];
    assert_eq!(described(&files), ["  outer/inner.rs -> outer/mod.rs: Outer\n  outer/mod.rs -> outer/inner.rs: g"]);
}

#[test]
fn cycle_of_three_files_is_reported_once() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub(crate) struct A(B);"),
        ("b.rs", "use crate::c::C; pub(crate) struct B(C);"),
        ("c.rs", "use crate::a::A; pub(crate) struct C(Box<A>);"),
        ("d.rs", "use crate::a::A; pub(crate) struct D(A);"),
    ];
    assert_eq!(described(&files), ["  a.rs -> b.rs: B\n  b.rs -> c.rs: C\n  c.rs -> a.rs: A"]);
}

#[test]
fn code_after_inline_tests_is_read() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "#[cfg(test)] mod tests { use crate::b::Other; } pub(crate) struct A; fn f() -> crate::b::B { crate::b::B }",
        ),
        ("b.rs", "use crate::a::A; pub(crate) struct B; pub struct Other(A);"),
    ];
    assert_eq!(described(&files), ["  a.rs -> b.rs: B\n  b.rs -> a.rs: A"]);
}

#[test]
fn imports_of_tests_are_ignored() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "pub(crate) struct A; #[cfg(test)] mod tests; impl A { #[cfg(test)] fn f() -> crate::b::B { panic!() } }",
        ),
        ("a/tests.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::A; pub(crate) struct B(A);"),
    ];
    assert_eq!(described(&files), [""; 0]);
}

#[test]
fn declaration_and_re_export_of_child_are_not_imports() {
    let files = [
        ("lib.rs", "mod outer; pub use outer::Inner;"),
        ("outer/mod.rs", "mod inner; pub use inner::Inner; pub(crate) struct Outer;"),
        ("outer/inner.rs", "use super::Outer; pub(crate) struct Inner(Outer);"),
    ];
    assert_eq!(described(&files), [""; 0]);
}

#[test]
fn paths_in_all_positions_are_read() {
    let places = [
        "fn f(b: crate::b::B) {}",
        "fn f(b: Option<&crate::b::B>) {}",
        "fn f<T: Into<crate::b::B>>(b: T) {}",
        "struct S { b: crate::b::B }",
        "fn f() { let b = crate::b::B; }",
        "fn f() { if let Some(crate::b::B) = None {} }",
        "fn f() { use crate::b::B; let b = B; }",
        "fn f() { println!(\"{:?}\", crate::b::B); }",
        "fn f() { matches!(1, _ if crate::b::B == crate::b::B); }",
        "fn f() { unheard_of! { from <- crate::b::B; } }",
        "macro_rules! m { () => { $crate::b::B } }",
        "#[derive(Deserialize)] struct S { #[serde(with = \"crate::b::B\")] s: u8 }",
        "use crate::b; fn f() { b::B; }",
        "use crate::b as other; fn f() -> other::B { panic!() }",
        "use super::*; fn f() -> b::B { panic!() }",
        "use crate::b::*; fn f() -> B { panic!() }",
        "mod inner { fn f() -> super::super::b::B { panic!() } }",
    ];
    for place in places {
        let a = format!("pub(crate) struct A; {place}");
        let files =
            [("lib.rs", "mod a; mod b;"), ("a.rs", a.as_str()), ("b.rs", "use crate::a::A; pub(crate) struct B;")];
        assert_eq!(described(&files), ["  a.rs -> b.rs: B\n  b.rs -> a.rs: A"], "{place}");
    }
}

#[test]
fn trait_from_glob_is_an_import() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::*; pub(crate) struct A;"),
        ("b.rs", "pub trait Extension { fn f(_: crate::a::A) {} }"),
    ];
    assert_eq!(described(&files), ["  a.rs -> b.rs: Extension\n  b.rs -> a.rs: A"]);
}

#[test]
fn variable_is_not_an_import() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::*; pub(crate) struct A; fn f(step: u8) { println!(\"{}\", step); }"),
        ("b.rs", "use crate::a::A; pub(crate) fn step(_: A) {}"),
    ];
    assert_eq!(described(&files), [""; 0]);
}

#[test]
fn cycle_is_reported_with_its_edges() {
    let edges = Edges::from([(("a", "b"), ["B"].into()), (("b", "a"), ["A"].into()), (("b", "c"), ["C"].into())]);
    assert_eq!(violations(&edges), ["cycle of\n  [\"a\", \"b\"]\n  a -> b: B\n  b -> a: A"]);
}
