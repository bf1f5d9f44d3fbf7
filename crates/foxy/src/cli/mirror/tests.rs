//! Tests of the settings of all tools, and of the files after the settings are applied and undone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use tools::{Step, TOOLS};

fn args(tool: &str, url: &str) -> SetupArgs {
    SetupArgs {
        tool: tool.to_owned(),
        url: url.to_owned(),
        prefix: None,
        write: false,
        undo: false,
    }
}

fn settings(tool: &str, url: &str) -> Settings {
    Settings::new(&args(tool, url)).unwrap()
}

fn places(folder: &Path) -> Places {
    Places {
        home: folder.join("home"),
        root: folder.to_owned(),
        variable: |_| None,
    }
}

/// Returns all files below the folder, with their contents.
fn files(folder: &Path) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => {
                let text = fs::read_to_string(&path).unwrap();
                all.insert((path.display().to_string(), text));
            }
        }
    }
    all
}

fn changed(tool: &str, url: &str, folder: &Path, action: Action) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    let settings = settings(tool, url);
    apply(&settings, &places(folder), action, |line| lines.push(line)).map(|()| lines)
}

/// Returns the tools whose settings are files, not commands.
fn tools_with_files() -> impl Iterator<Item = &'static str> {
    let files = |tool: &&tools::Tool| matches!(tool.steps, [Step::File { .. }]);
    TOOLS.iter().filter(files).map(|tool| tool.name)
}

#[test]
fn every_tool_has_a_preset_and_both_ways() {
    let folder = places(Path::new("/"));
    for tool in TOOLS {
        for scheme in ["http", "https"] {
            let settings = settings(tool.name, &format!("{scheme}://[::1]:3128/"));
            let text = settings.printed(&folder);
            // The URLs of images do not contain the path of the mirror. So these settings contain only the
            // host and port of the mirror.
            let url = match tool.preset {
                "oci" => "[::1]:3128".to_owned(),
                other => format!("{scheme}://[::1]:3128/{other}"),
            };
            assert!(text.contains(&url) && text.contains("\nUndo:\n"), "{text}");
            let left = ["MIRROR", "HOST", "BASE", "PLACE", "PLAIN"];
            assert!(!left.iter().any(|word| text.contains(word)), "{text}");
            let insecure = ["nsecure", "trusted-host", "unsafeHttp", "blocked"];
            let insecure = insecure.iter().any(|word| text.contains(word));
            assert!(!insecure || scheme == "http", "{text}");
        }
    }
    for preset in presets() {
        assert!(TOOLS.iter().any(|tool| tool.preset == preset.name));
        assert!(list().contains(&preset.upstream.to_string()));
    }
}

#[test]
fn urls_that_would_break_settings_are_refused() {
    for url in [
        "",
        "cache:3128",
        "ftp://cache",
        "http://",
        "http://cache:3128/path",
        "http://user@cache",
        "http://a b",
        "http://a\"b",
        "http://a\nb",
        "http://$(id)",
        "http://a?b",
        "http://a#b",
    ] {
        let wrong = Settings::new(&args("pip", url)).err().expect(url);
        assert!(wrong.contains("is not a URL like"), "{wrong}");
    }
    let mut wrong = args("cargo", "http://cache:3128");
    wrong.prefix = Some("own\"\n[net]".to_owned());
    assert!(Settings::new(&wrong).is_err());
    let unknown = Settings::new(&args("pipp", "http://cache:3128"))
        .err()
        .unwrap();
    assert!(unknown.contains("`pipp`; there are pip, uv"), "{unknown}");
}

#[test]
fn files_are_written_once_and_undone() {
    assert!(tools_with_files().count() >= 8);
    for tool in tools_with_files() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["http://one:3128", "https://two"];
        let lines = changed(tool, first, folder.path(), Action::Apply).unwrap();
        assert!(lines[0].starts_with("wrote "), "{tool}: {lines:?}");
        let written = files(folder.path());
        assert_eq!(written.len(), 1);
        assert!(
            written.first().unwrap().1.contains("one:3128"),
            "{written:?}"
        );
        let lines = changed(tool, first, folder.path(), Action::Apply).unwrap();
        assert!(
            lines[0].ends_with(" is as it should be"),
            "{tool}: {lines:?}"
        );
        // A second URL replaces the first. Only docker's file is refused, because JSON has no comments that
        // could show that Foxy wrote the file.
        let again = changed(tool, second, folder.path(), Action::Apply);
        let last = match tool {
            "docker" => {
                assert!(
                    again
                        .unwrap_err()
                        .contains("has settings already; add these lines by hand:")
                );
                first
            }
            _ => {
                let text = files(folder.path()).pop_first().unwrap().1;
                assert!(
                    again.is_ok() && text.contains("two") && !text.contains("one:3128"),
                    "{text}"
                );
                second
            }
        };
        changed(tool, last, folder.path(), Action::Undo).unwrap();
        assert_eq!(files(folder.path()), BTreeSet::new(), "{tool}");
        let lines = changed(tool, last, folder.path(), Action::Undo).unwrap();
        assert!(
            lines[0].ends_with(" is as it should be"),
            "{tool}: {lines:?}"
        );
    }
}

#[test]
fn a_file_of_the_user_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (own, at) = ("[net]\nretry = 3\n", folder.path().join("home/.cargo"));
    fs::create_dir_all(&at).unwrap();
    // The settings file is a link to another file. Users who keep their settings in a repository have such
    // links.
    let [real, link] = [folder.path().join("real.toml"), at.join("config.toml")];
    fs::write(&real, own).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    changed("cargo", "http://one:3128", folder.path(), Action::Apply).unwrap();
    let text = fs::read_to_string(&link).unwrap();
    assert!(
        text.starts_with(own) && text.contains("sparse+http://one:3128/cargo/"),
        "{text}"
    );
    changed("cargo", "http://one:3128", folder.path(), Action::Undo).unwrap();
    assert_eq!(fs::read_to_string(&link).unwrap(), own);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Now the file contains another mirror, which the user has configured.
    let other = "[source.crates-io]\nreplace-with = \"own\"\n";
    fs::write(&real, other).unwrap();
    let wrong = changed("cargo", "http://one:3128", folder.path(), Action::Apply).unwrap_err();
    assert!(
        wrong.contains("it has `source` already; add these lines by hand:"),
        "{wrong}"
    );
    assert_eq!(fs::read_to_string(&real).unwrap(), other);
}

#[test]
fn sources_of_apt_are_replaced_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("etc/apt/sources.list.d");
    let there = |way| changed("apt", "http://one:3128", folder.path(), way);
    assert!(
        there(Action::Apply)
            .unwrap_err()
            .contains("no source below ")
    );
    fs::create_dir_all(&below).unwrap();
    let debian = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: stable\n";
    let other = "deb [arch=amd64] https://packages.example.com/linux stable main\n";
    fs::write(below.join("debian.sources"), debian).unwrap();
    fs::write(below.join("other.list"), other).unwrap();
    fs::write(below.join("debian.sources.save"), debian).unwrap();
    let before = files(folder.path());
    let lines = there(Action::Apply).unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let text = fs::read_to_string(below.join("debian.sources")).unwrap();
    assert!(
        text.contains("URIs: http://one:3128/apt/debian\n"),
        "{text}"
    );
    // Applying the settings twice is not a mistake.
    assert_eq!(there(Action::Apply), Ok(Vec::new()));
    there(Action::Undo).unwrap();
    assert_eq!(files(folder.path()), before);
    assert!(there(Action::Undo).is_err());
}

/// In this test, the value of a setting is the contents of a file. Shell commands set, show and remove the
/// value.
#[test]
fn a_value_of_the_user_is_named_and_not_undone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    let path = path.to_str().unwrap();
    let words = |script: &str, value: &str| {
        ["sh", "-c", script, path, value]
            .map(str::to_owned)
            .to_vec()
    };
    let there = words("printf %s \"$1\" > \"$0\"", "http://one");
    let undo = words("rm \"$0\"", "");
    let shows = words("cat \"$0\"", "");
    let set = |action| {
        let mut lines = Vec::new();
        apply::set(&there, &undo, &shows, action, |line| lines.push(line)).unwrap();
        lines
    };
    // No value is set yet.
    assert_eq!(set(Action::Apply).len(), 1);
    assert_eq!(fs::read_to_string(path).unwrap(), "http://one");
    assert_eq!(set(Action::Apply).len(), 1);
    assert!(set(Action::Undo)[0].starts_with("ran sh ") && !fs::exists(path).unwrap());
    assert!(set(Action::Undo)[0].ends_with("says nothing, and not http://one: left as it is"));
    // Now the user has set another value.
    fs::write(path, "https://own\n").unwrap();
    assert!(set(Action::Undo)[0].contains(" says https://own, and not "));
    assert_eq!(fs::read_to_string(path).unwrap(), "https://own\n");
    assert_eq!(set(Action::Apply)[1], "the value before was https://own");
}

#[test]
fn a_command_that_fails_says_why() {
    let run = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        apply::run(&words)
    };
    assert_eq!(run(&["printf", "%s", "1.22"]), Ok("1.22".to_owned()));
    let wrong = run(&["ls", "/nothing/here"]).unwrap_err();
    assert!(
        wrong.starts_with("`ls /nothing/here` failed:\n") && wrong.len() > 30,
        "{wrong}"
    );
    let wrong = run(&["no-such-program"]).unwrap_err();
    assert_eq!(wrong, "no-such-program is not installed, or not in PATH");
    assert!(!is_reached("127.0.0.1:1", true) && !is_reached("[::1]", true));
}
