//! Tests of included files, and of values that come from environment variables and from other files.

use std::fs;

use super::{expanded, with_included};
use crate::config::RawConfig;

fn written(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<RawConfig, String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let raw = with_included(&folder.path().join("foxy.toml"));
    let raw = raw.map_err(|problems| problems[0].to_string());
    (folder, raw)
}

fn problems(raw: &RawConfig) -> String {
    let texts: Vec<_> = raw.problems.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

#[test]
fn files_are_included_in_the_order_of_their_names() {
    let (_folder, raw) = written(&[
        (
            "foxy.toml",
            "include = \"conf.d/*.toml\"\nmemory = \"1GiB\"\n[[site]]\nname = \"first\"\n",
        ),
        ("conf.d/20.toml", "[[site]]\nname = \"third\"\n"),
        (
            "conf.d/10.toml",
            "[log]\nlevel = \"debug\"\n[[site]]\nname = \"second\"\n",
        ),
        ("conf.d/README", "not toml ["),
    ]);
    let raw = raw.unwrap();
    assert_eq!(problems(&raw), "");
    let names: Vec<_> = raw.repeated["site"]
        .iter()
        .map(|site| site["name"].texts[0].as_str())
        .collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert!(raw.single["log"]["level"].place.ends_with("10.toml:2"));
}

#[test]
fn mistakes_of_includes_are_told() {
    for (main, part, words) in [
        ("include = \"absent.toml\"", "", "there is no such file"),
        (
            "include = \"a.toml\"\nmemory = \"1GiB\"",
            "memory = \"2GiB\"",
            "memory is also set at",
        ),
        (
            "include = \"a.toml\"",
            "include = \"b.toml\"",
            "includes no others",
        ),
        (
            "include = \"a.toml\"",
            "nonsense = 1",
            "a.toml:1: `nonsense` is not a setting",
        ),
    ] {
        let (_folder, raw) = written(&[("foxy.toml", main), ("a.toml", part)]);
        let found = problems(&raw.unwrap());
        assert!(found.contains(words), "{main}: {found}");
    }
    let (_folder, raw) = written(&[("foxy.toml", "include = \"*.inc\""), ("a.inc", "[[[")]);
    assert!(raw.unwrap_err().contains("a.inc:1: not valid TOML"));
    let (_folder, raw) = written(&[("foxy.toml", "include = \"conf.d/*.toml\"")]);
    assert_eq!(problems(&raw.unwrap()), "", "an empty folder is no mistake");
}

#[test]
fn variables_and_files_are_put_into_values() {
    let elsewhere = |name: &str| match name {
        "HOST" => Ok("cache.example".to_owned()),
        "file:/run/secret" => Ok("word".to_owned()),
        _ => Err(format!("the variable {name} is not set")),
    };
    for (text, wanted) in [
        ("http://${HOST}:80/", "http://cache.example:80/"),
        ("${HOST}${HOST}", "cache.examplecache.example"),
        ("${file:/run/secret}", "word"),
        ("${1} $HOST ${host} ${", "${1} $HOST ${host} ${"),
        ("${HOST", "${HOST"),
    ] {
        assert_eq!(expanded(text, &elsewhere).unwrap(), wanted);
    }
    assert!(
        expanded("${ABSENT}", &elsewhere)
            .unwrap_err()
            .contains("ABSENT")
    );

    let secret = tempfile::NamedTempFile::new().unwrap();
    fs::write(secret.path(), "a-name\nsecond line\n").unwrap();
    let main = format!(
        "[[site]]\nname = \"${{file:{}}}\"\norigin = \"${{file:/absent}}\"\n",
        secret.path().display()
    );
    let (_folder, raw) = written(&[("foxy.toml", &main)]);
    let raw = raw.unwrap();
    assert_eq!(raw.repeated["site"][0]["name"].texts, ["a-name"]);
    assert!(problems(&raw).contains("foxy.toml:3: cannot read /absent"));
}
