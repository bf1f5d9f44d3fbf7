//! Compares Foxy's LRU, FIFO, SIEVE and S3-FIFO with those of libCacheSim on published traces
//! (`foxy_trace::files::Known`), request by request. The capacity of a cache is a number of objects or a
//! number of bytes. Each object keeps the size of its first request, because a hit in libCacheSim does not
//! change the size of the stored object. As in libCacheSim, S3-FIFO refuses objects that the small queue
//! cannot hold. The exit code is 1 if an answer differs, and 2 if libCacheSim is missing or if all traces are
//! missing.
//!
//! `pip install libcachesim`, then `cargo run --release -p foxy-sim --example referee` (the environment
//! variable `PYTHON` may name an interpreter other than `python3`).

use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

use foxy_policy::{CachePolicy, Fifo, Lru, S3Fifo, Sieve, SizeLimited};
use foxy_trace::{Method, Options, files::Known, open};

const SCRIPT: &str = include_str!("referee.py");
const RULES: [&str; 4] = ["lru", "fifo", "sieve", "s3-fifo"];

type Asked = Vec<(u64, u64)>;

fn main() -> ExitCode {
    match compare_all() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(different) => {
            eprintln!("error: {different} runs differ");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Compares all runs. Returns the number of runs whose answers differ.
fn compare_all() -> Result<usize, String> {
    let (mut runs, mut different) = (0, 0);
    println!("trace                        capacity      rule     requests   hits  libCacheSim");
    for known in Known::ALL {
        let asked = match requests(known) {
            Ok(asked) => asked,
            Err(sentence) => {
                eprintln!("not compared: {sentence}");
                continue;
            }
        };
        let counted: Asked = asked.iter().map(|(key, _)| (*key, 1)).collect();
        let kinds = [
            (counted, [100, 1_000, 10_000].as_slice(), "objects"),
            (asked, [4 << 20, 32 << 20, 128 << 20].as_slice(), "bytes"),
        ];
        for (asked, capacities, unit) in kinds {
            let jobs: Vec<(&str, u64)> = capacities
                .iter()
                .flat_map(|capacity| RULES.map(|rule| (rule, *capacity)))
                .collect();
            let theirs = referee(&asked, &jobs)?;
            for ((rule, capacity), theirs) in jobs.into_iter().zip(theirs) {
                runs += 1;
                let ours = answers(rule, capacity, unit, &asked);
                let sum = |answers: &[bool]| answers.iter().filter(|hit| **hit).count();
                println!(
                    "{:28} {capacity:>9} {unit:7} {rule:8} {:6} {:6}  {:6}",
                    known.file_name(),
                    asked.len(),
                    sum(&ours),
                    sum(&theirs)
                );
                if let Some(at) = (0..asked.len()).find(|at| ours[*at] != theirs[*at]) {
                    different += 1;
                    println!("    first difference: request {}", at + 1);
                }
            }
        }
    }
    if runs == 0 {
        return Err("none of the traces is there".into());
    }
    println!("{runs} runs, {different} differ");
    Ok(different)
}

/// Object and size of each GET whose status is 200, 206 or 304, or whose status is not in the log.
fn requests(known: Known) -> Result<Asked, String> {
    let reader = open(&known.path()?, Options::default()).map_err(|error| error.to_string())?;
    let (mut sizes, mut asked) = (HashMap::new(), Vec::new());
    for request in reader {
        let request = request.map_err(|error| error.to_string())?;
        if request.method == Method::Get && matches!(request.status, 0 | 200 | 206 | 304) {
            let size = *sizes.entry(request.object).or_insert(request.size.max(1));
            asked.push((request.object, size));
        }
    }
    // Objects are renumbered from 1. The ids in a log can be too large for libCacheSim, whose object numbers
    // are signed.
    let mut numbers = HashMap::new();
    for (object, _) in &mut asked {
        let next = numbers.len() as u64 + 1;
        *object = *numbers.entry(*object).or_insert(next);
    }
    Ok(asked)
}

/// The answers of Foxy's cache: for each request, true if it is a hit.
fn answers(rule: &str, capacity: u64, unit: &str, asked: &Asked) -> Vec<bool> {
    let small = capacity / 10;
    let limit = if unit == "objects" {
        capacity
    } else {
        small.saturating_sub(1)
    };
    let mut cache: Box<dyn CachePolicy<u64, ()>> = match rule {
        "lru" => Box::new(Lru::new(capacity)),
        "fifo" => Box::new(Fifo::new(capacity)),
        "sieve" => Box::new(Sieve::new(capacity)),
        _ => Box::new(SizeLimited::with_cache(
            S3Fifo::new(capacity),
            limit,
            "s3-fifo",
        )),
    };
    let mut evicted = Vec::new();
    let answer = |(key, size): &(u64, u64)| {
        let hit = cache.get(key).is_some();
        if !hit {
            evicted.clear();
            let _ = cache.insert(*key, (), *size, &mut evicted);
        }
        hit
    };
    asked.iter().map(answer).collect()
}

/// The answers of libCacheSim for each job (a rule and a capacity).
fn referee(asked: &Asked, jobs: &[(&str, u64)]) -> Result<Vec<Vec<bool>>, String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child = Command::new(&python)
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{python}: {error}"))?;
    let mut input = format!("{}\n{}\n", asked.len(), jobs.len());
    for (object, size) in asked {
        input += &format!("{object} {size}\n");
    }
    for (rule, capacity) in jobs {
        input += &format!("{rule} {capacity}\n");
    }
    // All input is written before any output is read. This cannot block, because the script prints nothing
    // before it has read all requests. The jobs after the requests are short lines, so they fit into the
    // pipe.
    let written = child
        .stdin
        .take()
        .map(|mut pipe| pipe.write_all(input.as_bytes()));
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last = words.lines().last().unwrap_or_default();
        return Err(format!(
            "{python} cannot run libCacheSim ({last}); install it by `pip install libcachesim`"
        ));
    }
    if let Some(Err(error)) = written {
        return Err(format!("{python}: {error}"));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<Vec<bool>> = lines
        .lines()
        .filter(|line| line.len() == asked.len())
        .map(|line| line.bytes().map(|digit| digit == b'1').collect())
        .collect();
    if answers.len() == jobs.len() {
        Ok(answers)
    } else {
        Err("libCacheSim did not answer every job".into())
    }
}
