//! `foxy purge`: removes a URL, or many objects, from a running Foxy.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use super::args::PurgeArgs;
use super::say::{say, say_all};
use super::{USAGE, client, encoded, failed};
use crate::admin::{Operation, Removed, Started};

/// Time between two requests of `--wait` for the progress of the purge.
const ASK: Duration = Duration::from_millis(200);

/// Sends the purge to the running Foxy. Returns when the purge is durable, or with `--wait` when all objects
/// are counted.
pub(super) fn run(args: &PurgeArgs) -> ExitCode {
    match client::ask(&args.admin, "POST", &target(args)) {
        Ok((200, body)) => match serde_json::from_str::<Started>(&body) {
            Ok(started) => many(args, &started, &body),
            Err(_) => one(args, &body),
        },
        Ok((400 | 404, body)) => {
            eprintln!("foxy: {}", body.trim());
            ExitCode::from(USAGE)
        }
        Ok((status, body)) => failed(format!("{status}: {}", body.trim())),
        Err(error) => failed(error),
    }
}

fn target(args: &PurgeArgs) -> String {
    let mut target = "/purge?".to_owned();
    let what = &args.what;
    for (name, value) in [
        ("url", &what.url),
        ("prefix", &what.prefix),
        ("host", &what.host),
        ("regex", &what.regex),
        ("tag", &what.tag),
        ("site", &args.site),
    ] {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(target, "{name}={}&", encoded(value));
        }
    }
    let _ = write!(
        target,
        "all={}&soft={}",
        u8::from(what.all),
        u8::from(args.soft)
    );
    target
}

const NOT_DURABLE: &str = "it holds for the running Foxy, but a store could not write it down";

/// Reports the purge of one URL, with the number of objects that were removed.
fn one(args: &PurgeArgs, body: &str) -> ExitCode {
    let Ok(removed) = serde_json::from_str::<Removed>(body) else {
        return failed("the answer is of another version of Foxy");
    };
    if args.admin.json {
        say_all!("{body}");
    } else if removed.objects == 0 {
        say!("purged {}: nothing was stored", removed.url);
    } else {
        say!("purged {}: {} removed", removed.url, removed.objects);
        for number in &removed.variants_counted_by {
            say!("its variants are gone too; purge {number} counts them");
        }
    }
    end(removed.durable)
}

fn many(args: &PurgeArgs, started: &Started, body: &str) -> ExitCode {
    if !args.wait {
        if args.admin.json {
            say_all!("{body}");
        } else {
            say!("purge {} holds; its count follows (--wait)", started.purge);
        }
        return end(started.durable);
    }
    match wait_for_all(args, started) {
        Ok(operations) => {
            report(args, started, &operations);
            end(started.durable)
        }
        Err(problem) => failed(problem),
    }
}

/// Prints the number of objects that all purges of the request have removed. With `--json`, prints the last
/// answer about each purge.
fn report(args: &PurgeArgs, started: &Started, operations: &[(Operation, String)]) {
    if args.admin.json {
        operations.iter().for_each(|(_, text)| say_all!("{text}"));
        return;
    }
    let soft = operations.iter().any(|(operation, _)| operation.soft);
    let verb = if soft { "made stale" } else { "removed" };
    let objects: u64 = operations.iter().map(|(op, _)| op.objects).sum();
    say!("purge {}: {objects} {verb}", started.purge);
}

fn end(durable: bool) -> ExitCode {
    if durable {
        ExitCode::SUCCESS
    } else {
        failed(NOT_DURABLE)
    }
}

/// Waits for all purges that the request has started. Returns the last answer about each of them. Purges that
/// were merged into one later purge have one answer, because the later purge counts the objects of all.
fn wait_for_all(args: &PurgeArgs, started: &Started) -> Result<Vec<(Operation, String)>, String> {
    let mut operations: Vec<(Operation, String)> = Vec::new();
    for number in started.also.iter().chain([&started.purge]) {
        let (operation, text) = wait(args, *number)?;
        if operations.iter().all(|(op, _)| op.purge != operation.purge) {
            operations.push((operation, text));
        }
    }
    Ok(operations)
}

/// Asks for the progress of the purge again and again, until all stored contents were searched. Returns the
/// last answer, as a value and as the received text.
fn wait(args: &PurgeArgs, mut number: u64) -> Result<(Operation, String), String> {
    loop {
        let target = format!("/purges/{number}");
        let (status, body) = client::ask(&args.admin, "GET", &target)?;
        if status != 200 {
            return Err(format!("{status}: {}", body.trim()));
        }
        let operation: Operation = serde_json::from_str(&body)
            .map_err(|error| format!("the answer is of another version of Foxy: {error}"))?;
        if let Some(later) = operation.merged_into {
            number = later;
        } else if operation.done {
            return Ok((operation, body));
        } else {
            std::thread::sleep(ASK);
        }
    }
}
