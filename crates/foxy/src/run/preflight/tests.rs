//! Tests of the findings on a machine that does not meet the needs of a configuration.

use std::net::TcpListener;
use std::path::Path;

use super::*;
use crate::config::{ThisMachine, parse};

fn config(text: &str) -> Config {
    let raw = parse(text, "foxy.toml").unwrap();
    Config::build(&raw, &ThisMachine).unwrap()
}

/// A configuration that uses nothing in the state folder of this machine.
fn quiet(folder: &Path, more: &str) -> Config {
    let folder = folder.display();
    config(&format!(
        "listen = [\"127.0.0.1:0\"]\nadmin = \"off\"\nmemory = \"64MiB\"\n{more}\n[access]\nadmin_token_file = \"{folder}/token\"\n"
    ))
}

fn stopping(config: &Config) -> Vec<String> {
    let all = what_stops(config, &Passed::default());
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn a_machine_with_everything_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let config = quiet(
        folder.path(),
        &format!(
            "[[store]]\npath = \"{at}/store\"\nsize = \"64MiB\"\n[log]\naccess = \"{at}/access.log\""
        ),
    );
    assert_eq!(stopping(&config), [""; 0]);
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        0,
        "it only looks"
    );
}

#[test]
fn stores_of_one_file_system_share_its_space() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let stat = rustix::fs::statvfs(folder.path()).unwrap();
    let each = stat.f_bavail * stat.f_frsize / 3 * 2;
    let store = |n: u32| format!("[[store]]\npath = \"{at}/{n}\"\nsize = \"{each}\"\n");
    assert_eq!(stopping(&quiet(folder.path(), &store(1))), [""; 0]);
    let both = stopping(&quiet(folder.path(), &(store(1) + &store(2))));
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(both[0].contains("/2: no space"), "{both:?}");
}

#[test]
fn a_missing_folder_of_a_named_store_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let store = format!("[[store]]\npath = \"{at}/mnt/store\"\nsize = \"64MiB\"\n");
    let config = quiet(folder.path(), &store);
    assert_eq!(stopping(&config), [""; 0]);
    let warnings = warnings(&config, &ThisMachine);
    assert!(
        warnings
            .iter()
            .any(|w| w.contains("/mnt/store: its folder does not exist")),
        "{warnings:?}"
    );
}

#[test]
fn an_address_in_use_or_of_another_machine_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let site = format!(
        "[[site]]\nname = \"shop\"\nlisten = [\"{address}\", \"192.0.2.1:8080\"]\norigin = \"http://127.0.0.1:1\"\n"
    );
    let config = quiet(folder.path(), &site);
    let found = stopping(&config);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains("shop") && found[0].contains("another program"),
        "{found:?}"
    );
    assert!(
        found[1].contains("not an address of this machine"),
        "{found:?}"
    );
    let all = examine(&config, &ThisMachine);
    assert!(all[0].stops() && all[0].is_address_in_use() && !all[1].is_address_in_use());
    let passed = Passed::new(vec![taken]).unwrap();
    assert_eq!(
        what_stops(&config, &passed).len(),
        1,
        "a passed socket is there already"
    );
}

#[test]
fn a_log_whose_folder_is_missing_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let config = quiet(
        folder.path(),
        &format!("[log]\naccess = \"{at}/log/access.log\""),
    );
    let found = stopping(&config);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("access log") && found[0].contains("log.access"),
        "{found:?}"
    );
}

#[test]
fn more_memory_than_there_is_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        memory: ThisMachine.memory(),
        ..quiet(folder.path(), "")
    };
    let found = warnings(&config, &ThisMachine);
    assert!(found.iter().any(|w| w.starts_with("memory: ")), "{found:?}");
}
