//! `foxy stats`: prints the statistics of a running Foxy for people, or as JSON for scripts.

use std::fmt::Write;
use std::process::ExitCode;

use super::args::StatsArgs;
use super::say::say_all;
use super::{client, failed};
use crate::admin::{Durations, Memory, OriginLine, Stats, Store};
use crate::config::human;

/// Requests the statistics and prints them.
pub(super) fn run(args: &StatsArgs) -> ExitCode {
    match client::ask(&args.admin, "GET", "/stats") {
        Ok((200, body)) if args.admin.json => {
            say_all!("{body}");
            ExitCode::SUCCESS
        }
        Ok((200, body)) => match serde_json::from_str::<Stats>(&body) {
            Ok(stats) => {
                say_all!("{}", text(&stats));
                ExitCode::SUCCESS
            }
            Err(error) => failed(format!("the answer is of another version of Foxy: {error}")),
        },
        Ok((status, body)) => failed(format!("{status}: {}", body.trim())),
        Err(error) => failed(error),
    }
}

/// Writes the lines about the origins of the sites.
fn origins(page: &mut String, origins: &[OriginLine]) {
    for of in origins {
        let _ = writeln!(
            page,
            "  {}: {} {}, {} of {} requests failed, {} under way",
            of.site, of.origin, of.standing, of.failures, of.requests, of.outstanding
        );
    }
}

/// Writes the lines about status classes, bytes, and origins.
fn traffic(page: &mut String, stats: &Stats) {
    let counted = |counts: &std::collections::BTreeMap<String, u64>| {
        let some = counts.iter().filter(|(_, count)| **count > 0);
        let words: Vec<_> = some
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        match words.is_empty() {
            true => "none".to_owned(),
            false => words.join(", "),
        }
    };
    let answers = &stats.answers;
    let bytes: u64 = answers.body_bytes.values().sum();
    let ratio = answers.byte_hit_ratio.map_or(String::new(), |ratio| {
        format!(" ({:.1} % from the cache)", ratio * 100.0)
    });
    let _ = writeln!(page, "answers      {}", counted(&answers.classes));
    let _ = writeln!(page, "bodies       {}{ratio}", human(bytes));
    let origin = &stats.origin;
    let _ = writeln!(page, "origins      {}", counted(&origin.classes));
    let _ = writeln!(page, "  errors     {}", counted(&origin.errors));
    let _ = writeln!(page, "  connect    {}", durations(&origin.connect));
    let _ = writeln!(page, "  first byte {}", durations(&origin.first_byte));
}

/// Returns an aligned page. Writing to a string cannot fail.
pub(super) fn text(stats: &Stats) -> String {
    let mut page = String::new();
    let state = if stats.ready { "ready" } else { "draining" };
    let _ = writeln!(
        page,
        "foxy {}  {state}, up {:.0} s, {}",
        stats.version,
        stats.uptime_seconds,
        stats.listen.join(", ")
    );
    let ratio = stats
        .hit_ratio
        .map_or("no requests yet".to_owned(), |ratio| {
            format!("{:.1} % hits", ratio * 100.0)
        });
    let _ = writeln!(
        page,
        "requests     {} ({ratio}), {} connections open",
        stats.requests, stats.connections
    );
    for (outcome, count) in stats.outcomes.iter().filter(|(_, count)| **count > 0) {
        let _ = writeln!(page, "  {outcome:<16} {count:>12}");
    }
    let _ = writeln!(page, "hits         {}", durations(&stats.hits));
    let _ = writeln!(page, "others       {}", durations(&stats.misses));
    traffic(&mut page, stats);
    memory(&mut page, &stats.memory);
    let _ = writeln!(page, "disk         {} objects", stats.disk_objects);
    origins(&mut page, &stats.origins);
    for absent in &stats.absent_stores {
        let _ = writeln!(page, "  WITHOUT    {}", absent.reason);
    }
    for store in &stats.stores {
        let loading = if store.loading { ", loading" } else { "" };
        let duty = duty(store);
        let _ = writeln!(
            page,
            "  {}: {} of {}, {}{duty}{loading}",
            store.disk,
            human(store.used_bytes),
            human(store.capacity_bytes),
            store.health
        );
        if store.quarantined_segments > 0 {
            let segments = store.quarantined_segments;
            let _ = writeln!(page, "    {segments} segments in quarantine");
        }
        let count = |name: &str| store.counts.get(name).copied().unwrap_or(0);
        if count("scrubbed_bytes") > 0 {
            let _ = writeln!(
                page,
                "    scrub: {} read, {} passes, {} bad, {} dropped",
                human(count("scrubbed_bytes")),
                count("scrub_passes"),
                count("scrub_errors"),
                count("scrub_dropped")
            );
        }
        if let Some(reason) = store.reason.as_ref().filter(|_| store.health != "good") {
            let _ = writeln!(page, "    {reason}");
        }
    }
    page
}

fn memory(page: &mut String, memory: &Memory) {
    let _ = writeln!(
        page,
        "memory       {} of {}: {} objects in {}, index {}, {} on the way to disk",
        human(memory.resident_bytes),
        human(memory.budget_bytes),
        memory.ram_objects,
        human(memory.ram_bytes),
        human(memory.index_bytes),
        human(memory.pending_bytes)
    );
    let parts = memory.requests.iter();
    let parts: Vec<_> = parts
        .map(|(name, bytes)| format!("{name} {}", human(*bytes)))
        .collect();
    let _ = writeln!(page, "  requests   {}", parts.join(", "));
}

/// Returns a text about the duty of a store, such as a drain; empty for the normal duty.
fn duty(store: &Store) -> String {
    match &store.duty[..] {
        "draining" => format!(", draining, {} % left", store.left_percent),
        "drained" | "leaving" => format!(", {}", store.duty),
        _ => String::new(),
    }
}

fn durations(d: &Durations) -> String {
    if d.count == 0 {
        return "none".to_owned();
    }
    format!(
        "mean {:.0} us, half below {} us, 99 % below {} us",
        d.mean_us, d.p50_us, d.p99_us
    )
}
