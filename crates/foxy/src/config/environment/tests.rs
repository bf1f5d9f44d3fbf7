//! Tests that every setting can be given by an environment variable, and that mistakes are reported as for a
//! file.

use std::ffi::OsString;

use crate::config::table::{REPEATED, SETTINGS};
use crate::config::{RawConfig, parse};

fn raw(file: &str, variables: &[(&str, &str)]) -> RawConfig {
    let mut raw = parse(file, "foxy.toml").unwrap();
    let os = |text: &str| OsString::from(text);
    raw.overlay_environment(variables.iter().map(|(name, value)| (os(name), os(value))));
    raw
}

fn problems(variables: &[(&str, &str)]) -> String {
    let found = raw("", variables).problems;
    let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

#[test]
fn every_setting_has_a_variable() {
    for setting in SETTINGS.iter().filter(|setting| setting.name != "include") {
        let parts = match setting.section {
            "" => vec!["FOXY", setting.name],
            section if REPEATED.contains(&section) => vec!["FOXY", section, "1", setting.name],
            section => vec!["FOXY", section, setting.name],
        };
        let variable = parts.join("__").to_ascii_uppercase();
        let raw = raw("", &[(&variable, "some text")]);
        assert!(raw.problems.is_empty(), "{variable}: {:?}", raw.problems);
        let section = match REPEATED.contains(&setting.section) {
            true => &raw.repeated[setting.section][0],
            false => &raw.single[setting.section],
        };
        assert_eq!(section[setting.name].texts, ["some text"], "{variable}");
        assert_eq!(section[setting.name].place, variable);
    }
}

#[test]
fn variables_replace_the_file_and_begin_sections() {
    let file = "memory = \"1GiB\"\n[[site]]\nname = \"a\"\norigin = \"http://a\"\n";
    let raw = raw(
        file,
        &[
            ("FOXY__SITE__2__NAME", "b"),
            ("FOXY__SITE__1__ORIGIN", "http://c"),
            ("FOXY__MEMORY", "2GiB"),
            (
                "FOXY__ACCESS__ALLOW_CLIENTS",
                "[\"10.0.0.0/8\", \"192.0.2.1\"]",
            ),
            ("FOXY_PORT", "tcp://10.0.0.1:80"),
            ("FOXY_SERVICE_HOST", "10.0.0.1"),
            ("OTHER", "x"),
        ],
    );
    assert!(raw.problems.is_empty(), "{:?}", raw.problems);
    assert_eq!(raw.single[""]["memory"].texts, ["2GiB"]);
    assert_eq!(raw.repeated["site"][0]["origin"].texts, ["http://c"]);
    assert_eq!(raw.repeated["site"][0]["name"].texts, ["a"]);
    assert_eq!(raw.repeated["site"][1]["name"].texts, ["b"]);
    let clients = &raw.single["access"]["allow_clients"];
    assert_eq!((clients.list, clients.texts.len()), (true, 2));
}

#[test]
fn mistakes_name_the_variable_and_the_remedy() {
    for (name, value, words) in [
        ("FOXY__MEMROY", "1GiB", "did you mean `memory`"),
        (
            "FOXY__CACHE__NONSENSE",
            "1",
            "`cache.nonsense` is not a setting",
        ),
        ("FOXY__SITE__ORIGIN", "http://a", "FOXY__SITE__1__NAME"),
        ("FOXY__SITE__0__ORIGIN", "http://a", "FOXY__SITE__1__NAME"),
        (
            "FOXY__SITE__3__ORIGIN",
            "http://a",
            "the next one is number 1",
        ),
        ("FOXY__INCLUDE", "x", "by the configuration file alone"),
        ("FOXY__LISTEN", "[\"unclosed", "a list such as"),
        ("FOXY__", "x", "is not a setting"),
    ] {
        let found = problems(&[(name, value)]);
        assert!(
            found.starts_with(name) && found.contains(words),
            "{name}: {found}"
        );
    }
}
