//! Tests of the rooms. The code that reads paths is tested with texts, and the comparison of tables with code
//! is tested with small crates.

use super::*;

const TABLE: CrateLayers = CrateLayers {
    name: "h",
    layers: &["top", "middle", "low"],
    exceptions: &[],
};

/// The complaints about a crate with these files.
fn complaints(table: &CrateLayers, files: &[(&str, &str)]) -> Vec<String> {
    let read = |file: &str| {
        let found = files.iter().find(|(name, _)| *name == file);
        found.map(|(_, text)| (*text).to_owned())
    };
    judge(table, &rooms("crates/h/src", &read)).complaints
}

/// The complaints about a crate whose room `middle` has this code. This room is between two other rooms.
fn about(middle: &str) -> Vec<String> {
    let lib = "mod low; mod middle; mod top; pub use top::{Peak, deep::{self, Deep as Deeper}}; pub use low::*;\n\
               pub struct Own;";
    let files = [
        ("lib.rs", lib),
        ("top.rs", ""),
        ("low.rs", ""),
        ("middle.rs", middle),
    ];
    complaints(&TABLE, &files)
}

fn paths_of(text: &str, module: &[&str]) -> Vec<String> {
    let module: Vec<_> = module.iter().map(|part| (*part).to_owned()).collect();
    let named = paths::named(&paths::code(text).unwrap(), &module);
    let line = |named: &Named| format!("{} {}", named.line, named.path.join("::"));
    named.iter().map(line).collect()
}

#[test]
fn paths_are_read_from_trees_and_expressions() {
    let text = "use crate::{a::B, c::{self, D as E},\n    f::*};\nfn g() -> crate::h::I { super::j::k::<u8>() }\n\
                use self::own::L; use foxy_base::crate_like; pub(crate) struct M(x::super_like::N);";
    let expected = [
        "1 a::B",
        "1 c",
        "1 c::D",
        "2 f::*",
        "3 h::I",
        "3 room::j::k",
        "4 room::file::own::L",
    ];
    assert_eq!(paths_of(text, &["room", "file"]), expected);
    assert_eq!(paths_of("use super::super::x::Y;", &["a", "b"]), ["1 x::Y"]);
}

#[test]
fn comments_strings_and_tests_are_not_code() {
    let text = "// crate::a\n/* crate::b */ const C: &str = \"crate::d \\\" crate::e\";\n\
                const F: &str = r#\"crate::g \" crate::h\"#; const I: char = '\"'; use crate::j::K;\n\
                #[cfg(test)]\nmod tests { use crate::l::M; }\n#[cfg(test)]\npub(crate) fn n<O, P>(x: crate::q::R) {}\n\
                struct S { #[cfg(test)] t: crate::u::V, w: crate::x::Y<'a> }";
    assert_eq!(paths_of(text, &["room"]), ["3 j::K", "8 x::Y"]);
}

#[test]
fn an_arrow_may_run_down_and_not_up() {
    assert!(
        about("use crate::low::Stone; use super::low; fn f() { crate::middle::g(); }").is_empty()
    );
    for up in [
        "use crate::top::Tree;",
        "use crate::{low::Stone, top::Tree};",
        "fn f() { crate::top::g() }",
        "use super::top::Tree;",
        "use crate::Peak;",
        "use crate::deep;",
        "use crate::Deeper;",
    ] {
        let complaints = about(up);
        assert_eq!(complaints.len(), 1, "{up}: {complaints:?}");
        let begin = "crates/h/src/middle.rs:1: room middle uses top (crate::";
        assert!(complaints[0].starts_with(begin), "{complaints:?}");
    }
    assert!(about("use crate::Own;").is_empty());
    assert!(about("use crate::Unknown;")[0].contains("of no room"));
    assert!(about("use crate::*;")[0].contains("names everything"));
    assert!(about("fn f() {").iter().any(|c| c.contains("middle.rs: ")));
}

#[test]
fn files_of_a_room_are_read_and_those_of_tests_are_not() {
    let lib = "mod low; mod middle; mod top; #[cfg(test)] mod testing;";
    let up = "use crate::top::Tree;";
    let files = [
        ("lib.rs", lib),
        ("testing.rs", up),
        ("low.rs", ""),
        ("top.rs", ""),
        ("middle/mod.rs", "mod part; #[cfg(test)] mod tests;"),
        ("middle/tests.rs", up),
        ("middle/part/mod.rs", "pub(super) mod inner;"),
        (
            "middle/part/inner.rs",
            "\n\nuse super::super::super::top::Tree;",
        ),
    ];
    let complaints = complaints(&TABLE, &files);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(
        complaints[0].contains("middle/part/inner.rs:3: "),
        "{complaints:?}"
    );
}

#[test]
fn an_exception_is_used_and_has_a_reason() {
    let up = [
        ("lib.rs", "mod low; mod middle; mod top;"),
        ("low.rs", ""),
        ("top.rs", ""),
        ("middle.rs", "use crate::top::Tree;"),
    ];
    let down = [up[0], up[1], up[2], ("middle.rs", "")];
    const WITH: CrateLayers = CrateLayers {
        exceptions: &[Exception {
            from: "middle",
            to: "top",
            reason: "it stands on a mountain",
        }],
        ..TABLE
    };
    const WITHOUT: CrateLayers = CrateLayers {
        exceptions: &[Exception {
            from: "middle",
            to: "top",
            reason: "",
        }],
        ..TABLE
    };
    assert!(complaints(&WITH, &up).is_empty());
    assert!(complaints(&WITH, &down)[0].contains("nobody uses"));
    assert!(complaints(&WITHOUT, &up)[0].contains("without reason"));
}

#[test]
fn the_table_and_the_modules_are_the_same() {
    let files = [
        ("lib.rs", "mod low; mod new; mod top;"),
        ("low.rs", ""),
        ("new.rs", ""),
        ("top.rs", ""),
    ];
    let complaints = complaints(&TABLE, &files);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(
        complaints[0].contains("has a room new that is not"),
        "{complaints:?}"
    );
    assert!(
        complaints[1].contains("has a room middle of h"),
        "{complaints:?}"
    );
}

#[test]
fn every_house_is_in_order() {
    let outcome = run();
    assert_eq!(outcome.complaints, Vec::<String>::new());
    assert!(outcome.passed > 40, "{}", outcome.passed);
}
