//! `foxy why URL`: explains how Foxy would treat a request now, and why.

use std::fmt::Write;
use std::process::ExitCode;

use super::args::WhyArgs;
use super::say::say_all;
use super::{USAGE, client, encoded, failed};
use crate::admin::{WhyAnswer, WhyStored};
use crate::config::human;

/// Sends the question and prints the answer.
pub(super) fn run(args: &WhyArgs) -> ExitCode {
    let mut target = format!("/why?url={}", encoded(&args.url));
    let given = [
        ("site", args.site.as_deref()),
        ("method", args.method.as_deref()),
        ("from", args.from.as_deref()),
        ("user", args.user.as_deref()),
    ];
    let headers = args.header.iter().map(|line| ("h", Some(line.as_str())));
    for (name, value) in given.into_iter().chain(headers) {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(target, "&{name}={}", encoded(value));
        }
    }
    match client::ask(&args.admin, "GET", &target) {
        Ok((200, body)) if args.admin.json => {
            say_all!("{body}");
            ExitCode::SUCCESS
        }
        Ok((200, body)) => match serde_json::from_str::<WhyAnswer>(&body) {
            Ok(why) => {
                say_all!("{}", text(&why));
                ExitCode::SUCCESS
            }
            Err(error) => failed(format!("the answer is of another version of Foxy: {error}")),
        },
        Ok((400 | 404, body)) => {
            eprintln!("foxy: {}", body.trim());
            ExitCode::from(USAGE)
        }
        Ok((status, body)) => failed(format!("{status}: {}", body.trim())),
        Err(error) => failed(error),
    }
}

/// Returns the answer as text for people.
pub(super) fn text(why: &WhyAnswer) -> String {
    let mut page = String::new();
    let line = |page: &mut String, name: &str, value: &str| {
        let _ = writeln!(page, "{name:<10} {value}");
    };
    let what = match why.decision.as_str() {
        "hit" => "would be answered from the cache",
        "stale-hit" => "would be answered from the cache, stale",
        "revalidate" => "would be revalidated with the origin",
        "fetch" => "would be fetched from the origin",
        "only-if-cached" => "would be answered with 504",
        _ => "would pass by the cache",
    };
    let fwd = if why.fwd.is_empty() {
        String::new()
    } else {
        format!(" ({})", why.fwd)
    };
    let _ = writeln!(page, "{} {what}{fwd}", why.url);
    for sentence in &why.because {
        let _ = writeln!(page, "  - {sentence}");
    }
    line(&mut page, "key", &why.key);
    if let Some(rule) = &why.rule {
        line(&mut page, "rule", rule);
    }
    for (n, access) in why.access.iter().enumerate() {
        line(&mut page, if n == 0 { "access" } else { "" }, access);
    }
    match &why.stored {
        Some(stored) => push_stored(&mut page, stored),
        None => line(&mut page, "stored", "nothing"),
    }
    if let Some(last) = &why.last {
        let words = last.words.as_deref().unwrap_or(&last.reason);
        let colon = if words.is_empty() { "" } else { ": " };
        let value = format!(
            "{} with status {}, {} s ago{colon}{words}",
            last.outcome, last.status, last.seconds_ago
        );
        line(&mut page, "last fetch", &value);
    }
    page
}

fn push_stored(page: &mut String, stored: &WhyStored) {
    let part = if stored.partial { ", a part" } else { "" };
    let _ = writeln!(
        page,
        "stored     status {}, {}{part}, {}",
        stored.status,
        human(stored.length),
        if stored.tier == "disk" {
            "on disk"
        } else {
            "in memory"
        }
    );
    let _ = writeln!(
        page,
        "age        {} s of {} s ({}), {} s left",
        stored.age, stored.lifetime, stored.lifetime_from, stored.ttl
    );
    for (i, value) in stored.variant.lines().enumerate() {
        let name = if i == 0 { "variant" } else { "" };
        let _ = writeln!(page, "{name:<10} {value}");
    }
    if let Some(place) = &stored.disk {
        let expected = place.expected_seconds.map_or_else(
            || "the store was never full yet".to_owned(),
            |s| format!("reused in about {s} s at the average rate of writing"),
        );
        let _ = writeln!(
            page,
            "on disk    {}, {} of {} segments are reused before its own; {expected}",
            place.store, place.segments_before, place.segments
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_decision_reasons_and_place() {
        let json = serde_json::json!({
            "url": "http://a.test/x", "site": "forward", "decision": "revalidate", "fwd": "stale",
            "because": ["its lifetime is over"], "key": "forward GET http://a.test/x",
            "rule": "images",
            "access": ["office: not for this client", "rest: fits and decides: allow"],
            "stored": { "status": 200, "age": 70, "ttl": -10, "lifetime": 60,
                "lifetime_from": "max-age", "length": 2048, "partial": false,
                "variant": "accept=a\nx=b", "tier": "disk",
                "disk": { "store": "/d", "segments_before": 3, "segments": 10,
                    "expected_seconds": 90 } },
            "last": { "seconds_ago": 70, "outcome": "miss", "reason": "private",
                "words": "for one user alone", "status": 200, "origin_status": 200 }
        });
        let page = text(&serde_json::from_value(json).unwrap());
        let expected = "\
http://a.test/x would be revalidated with the origin (stale)
  - its lifetime is over
key        forward GET http://a.test/x
rule       images
access     office: not for this client
           rest: fits and decides: allow
stored     status 200, 2KiB, on disk
age        70 s of 60 s (max-age), -10 s left
variant    accept=a
           x=b
on disk    /d, 3 of 10 segments are reused before its own; reused in about 90 s at the average rate of writing
last fetch miss with status 200, 70 s ago: for one user alone
";
        assert_eq!(page, expected);
    }
}
