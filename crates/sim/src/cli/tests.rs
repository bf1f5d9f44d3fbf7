//! Tests of the command line as a user types it: results, files, and messages for bad input.

use clap::Parser;
use foxy_trace::{
    Request,
    compact::CompactWriter,
    generate::{ZipfWeb, ZipfWebConfig},
};

use super::*;

#[derive(Debug, clap::Parser)]
struct Cli {
    #[command(subcommand)]
    command: SimCommand,
}

fn call(line: &str) -> Result<String, RunError> {
    let words = std::iter::once("sim").chain(line.split_whitespace());
    Cli::try_parse_from(words)
        .expect("the line parses")
        .command
        .text()
}

const SMALL: &str = "--ram 1MiB --disk 8MiB --ops 2000";

#[test]
fn the_definition_is_sound() {
    <Cli as clap::CommandFactory>::command().debug_assert();
    assert!(Cli::try_parse_from(["sim", "run", "--layout", "steam"]).is_err());
    assert!(Cli::try_parse_from(["sim", "run", "--watermarks", "0.9"]).is_err());
}

#[test]
fn run_prints_each_form() {
    let table = call(&format!("run --layout squid {SMALL}")).unwrap();
    assert!(table.contains("squid") && table.contains("answered from memory"));
    let csv = call(&format!("run --layout stream {SMALL} --form csv")).unwrap();
    assert_eq!(csv.lines().count(), 2);
    let json = call(&format!("run {SMALL} --watermarks 0.8:0.9 --form json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["layout"], "stream-packetizer");
    assert_eq!(
        value["reads"].as_u64().unwrap()
            + value["writes"].as_u64().unwrap()
            + value["deletes"].as_u64().unwrap(),
        2000
    );
}

#[test]
fn wrong_use_is_told_apart_from_failure() {
    for line in [
        "run --utilisation 0.5,0.7",
        "run --utilisation 7",
        "run --drive floppy",
        "reproduce --scale 0",
    ] {
        assert!(matches!(call(line), Err(RunError::Config(_))), "{line}");
    }
    assert!(matches!(call("size no-such-log"), Err(RunError::Trace(_))));
}

#[test]
fn sweep_multiplies_lists_and_draws() {
    let folder = tempfile::tempdir().unwrap();
    let stem = folder.path().join("sweep");
    let line = format!(
        "sweep --layout stream,buddy --utilisation 0.7,0.9 {SMALL} --form csv --figure {}",
        stem.display()
    );
    let text = call(&line).unwrap();
    assert_eq!(
        text.lines()
            .filter(|l| l.starts_with("stream,") || l.starts_with("buddy,"))
            .count(),
        4
    );
    assert!(stem.with_extension("png").exists() && stem.with_extension("svg").exists());
}

#[test]
fn size_reads_a_log_and_advises() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.foxy");
    let mut writer = CompactWriter::new(std::fs::File::create(&path).unwrap()).unwrap();
    let config = ZipfWebConfig {
        requests: 20_000,
        objects: 20_000,
        ..Default::default()
    };
    let requests: Vec<Request> = ZipfWeb::new(config, 3).collect();
    requests.iter().for_each(|r| writer.write(r).unwrap());
    writer.finish().unwrap();
    let text = call(&format!(
        "size {} --sizes 16MiB,4MiB --policies lru,sieve",
        path.display()
    ))
    .unwrap();
    for part in [
        "20000 cacheable requests",
        "exact",
        "hits, % of requests\n  size    lru  sieve\n",
        "hits, % of bytes\n",
        "4 MiB",
        "With ",
        "no cache could",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let small = call(&format!("size {} --sizes 64KiB,4MiB", path.display())).unwrap();
    assert!(small.contains("no answer for 64 KiB: below "), "{small}");
    assert!(small.contains("4 MiB") && !small.contains("--sample"));
    let none = call(&format!(
        "size {} --sizes 64KiB --sample 2000",
        path.display()
    ))
    .unwrap();
    assert!(none.contains("a greater --sample can tell smaller ones"));
    assert!(none.contains("All sizes that were asked for are too small"));
    let stem = folder.path().join("curve");
    let text = call(&format!(
        "size {} --form json --figure {}",
        path.display(),
        stem.display()
    ))
    .unwrap();
    assert!(text.contains("\"byte_hit_ratio\""));
    assert!(folder.path().join("curve-bytes.png").exists());
}

#[test]
fn files_and_layouts_on_a_real_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display();
    let text = call(&format!(
        "files --dir {dir} --count 4 --rounds 2 --form csv"
    ))
    .unwrap();
    assert_eq!(text.lines().count(), 1 + 14);
    let text = call(&format!(
        "sweep --layout stream,squid {SMALL} --dir {dir} --form csv"
    ))
    .unwrap();
    assert!(text.contains("stream,real,") && text.contains("squid,real,"));
    assert!(matches!(
        call("files --dir no-such-folder"),
        Err(RunError::Output { .. })
    ));
    let modelled = call("files --count 8 --rounds 1 --form csv").unwrap();
    assert!(modelled.contains("ufs on st15150wc"));
}
