//! Tests that command-line arguments become the configuration that users expect.

use std::net::SocketAddr;

use clap::{CommandFactory, Parser};

use super::*;
use crate::config::{Config, ThisMachine};

fn config(args: &[&str]) -> Result<Config, Vec<String>> {
    let cli = Cli::parse_from([&["foxy"], args].concat());
    let args = match cli.command {
        Some(Command::Serve(args)) => args,
        _ => cli.serve,
    };
    args.configuration(&ThisMachine)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn serve_may_be_left_out() {
    for args in [
        &["--listen", ":1", "--store", "off"][..],
        &["serve", "--listen", ":1", "--store", "off"],
    ] {
        let config = config(args).unwrap();
        assert_eq!(config.listen, [address("0.0.0.0:1")]);
        assert!(config.stores.is_empty());
    }
}

#[test]
fn an_origin_turns_the_listener_into_a_site() {
    let config = config(&[
        "--listen",
        ":8080",
        "--origin",
        "http://127.0.0.1:9000",
        "--store",
        "off",
    ])
    .unwrap();
    assert!(config.listen.is_empty());
    assert_eq!(config.sites[0].listen, [address("0.0.0.0:8080")]);
    assert_eq!(config.sites[0].origin.to_string(), "http://127.0.0.1:9000");
}

#[test]
fn stores_and_sizes_go_together_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (a, b) = (path("a"), path("b"));
    let stores = config(&[
        "--store",
        &a,
        "--store-size",
        "64MiB",
        "--store",
        &b,
        "--store-size",
        "1GiB",
    ])
    .unwrap()
    .stores;
    assert_eq!(
        stores.iter().map(|s| s.size).collect::<Vec<_>>(),
        [64 << 20, 1 << 30]
    );
    let problems = config(&[
        "--store",
        &a,
        "--store-size",
        "1GiB",
        "--store-size",
        "2GiB",
    ])
    .unwrap_err();
    assert!(problems[0].contains("more sizes than stores"));
}

#[test]
fn arguments_replace_the_file_and_mistakes_name_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foxy.toml");
    std::fs::write(
        &path,
        "memory = \"1GiB\"\nworkers = 3\n[[store]]\npath = \"off\"\n",
    )
    .unwrap();
    let file = path.display().to_string();
    let merged = config(&["--config", &file, "--memory", "64MiB"]).unwrap();
    assert_eq!((merged.memory, merged.workers), (64 << 20, 3));
    let problems = config(&["--config", &file, "--memory", "lots"]).unwrap_err();
    assert!(
        problems[0].starts_with("--memory: memory = \"lots\""),
        "{problems:?}"
    );
    let problems = config(&["--config", "/no/such/file"]).unwrap_err();
    assert!(problems[0].contains("cannot read /no/such/file"));
}
