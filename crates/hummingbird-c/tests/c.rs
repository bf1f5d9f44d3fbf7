//! Tests of the C header, of the shared and the static library, and of the installation, with programs in C.

#![expect(clippy::unwrap_used, reason = "tests may")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Makes a folder with links to the two libraries that were built with this test. The links have the names
/// that the libraries have after installation.
fn built(folder: &Path) -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let deps = deps.parent().unwrap();
    let named = folder.join("built");
    std::fs::create_dir(&named).unwrap();
    for library in ["libhummingbird.so", "libhummingbird.a"] {
        let from = deps.join(library);
        std::os::unix::fs::symlink(from, named.join(library)).unwrap();
    }
    named
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Installs the header and the libraries below `folder`. Returns the arguments that pkg-config prints.
fn install(folder: &Path, wanted: &[&str]) -> Vec<String> {
    let prefix = folder.join("usr");
    if !prefix.exists() {
        let script = Path::new(CRATE).join("install.sh");
        run(Command::new(script).arg(&prefix).arg(built(folder)));
    }
    let found = run(Command::new("pkg-config")
        .args(wanted)
        .arg("hummingbird")
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    found.split_whitespace().map(str::to_owned).collect()
}

/// Compiles a program with strict warnings, and runs it on its own disk.
fn compiled(folder: &Path, source: &str, link: &[String]) -> String {
    let program = folder.join("program");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .arg(Path::new(CRATE).join(source))
        .args(link)
        .arg("-o")
        .arg(&program));
    let disk = folder.join("disk");
    let _ = std::fs::remove_file(&disk);
    run(Command::new(&program)
        .arg(&disk)
        .env("LD_LIBRARY_PATH", folder.join("usr/lib")))
}

#[test]
fn the_example_runs_with_the_shared_library() {
    let folder = tempfile::tempdir().unwrap();
    let link = install(folder.path(), &["--cflags", "--libs"]);
    let printed = compiled(folder.path(), "examples/hummingbird.c", &link);
    assert!(printed.contains("visit 0: 0 of 500"), "{printed}");
    assert!(printed.contains("visit 1: 500 of 500"), "{printed}");
    assert!(printed.contains("hints 400"), "{printed}");
}

#[test]
fn every_function_keeps_what_the_header_says_in_both_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let link = install(folder.path(), &["--cflags", "--libs"]);
    assert_eq!(compiled(folder.path(), "tests/calls.c", &link), "ok\n");
    let link = install(folder.path(), &["--cflags", "--libs", "--static"]);
    let whole: Vec<_> = link
        .iter()
        .map(|word| match word.as_str() {
            "-lhummingbird" => "-l:libhummingbird.a".to_owned(),
            word => word.to_owned(),
        })
        .collect();
    assert_eq!(compiled(folder.path(), "tests/calls.c", &whole), "ok\n");
}

/// Every function of the library is in the header and in the test program `calls.c`.
#[test]
fn header_library_and_test_name_the_same_functions() {
    let read = |path: &str| std::fs::read_to_string(Path::new(CRATE).join(path)).unwrap();
    let (header, test) = (read("include/hummingbird.h"), read("tests/calls.c"));
    let code = read("src/calls.rs");
    let named = |text: &str, before: &str| -> Vec<String> {
        let calls = text
            .match_indices("hummingbird_")
            .filter(|(at, _)| before.is_empty() || text[..*at].ends_with(before));
        let word = |(at, _): (usize, &str)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        };
        let mut words: Vec<_> = calls.map(word).collect();
        words.sort();
        words.dedup();
        words
    };
    let exported = named(&code, "extern \"C\" fn ");
    assert_eq!(exported.len(), 17, "{exported:?}");
    let declared = header.lines().filter(|line| !line.starts_with([' ', '/']));
    let declared = declared.collect::<Vec<_>>().join("\n");
    for function in &exported {
        let call = format!("{function}(");
        assert!(declared.contains(&call), "{function} is not in the header");
        assert!(test.contains(&call), "{function} is not in the test");
    }
    let written: Vec<_> = named(&declared, "")
        .into_iter()
        .filter(|word| declared.contains(&format!("{word}(")))
        .collect();
    assert_eq!(written, exported);
    let has = |library: &OsStr| {
        let symbols = run(Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library));
        exported
            .iter()
            .all(|f| symbols.contains(&format!(" T {f}\n")))
    };
    let folder = tempfile::tempdir().unwrap();
    assert!(has(built(folder.path())
        .join("libhummingbird.so")
        .as_os_str()));
}
