//! Reports of the matrix, as text and JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::table::TIMINGS;
use super::{Findings, VISITS};

/// The names of at most this number of cells without the expected sharing are printed. Further such cells are
/// only counted.
const LOST_SHOWN: usize = 20;

/// Formats a table of counts, and the names of all cells with foreign answers.
#[must_use]
pub fn text(title: &str, findings: &Findings) -> String {
    let mut text = format!("{title}\n");
    let matrix = &findings.matrix;
    let _ = writeln!(
        text,
        "  {:<14}{:>7}{:>10}{:>9}{:>9}{:>15}{:>9}",
        "timing", "cells", "requests", "shared", "foreign", "lost sharing", "missing"
    );
    for timing in TIMINGS {
        let counts = matrix.timings.get(&timing).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "  {timing:<14}{:>7}{:>10}{:>9}{:>9}{:>15}{:>9}",
            counts.cells,
            counts.requests,
            counts.shared,
            counts.foreign,
            counts.lost,
            counts.missing
        );
    }
    for ((set, timing, users), foreign) in &matrix.foreign {
        let parts: Vec<_> = foreign.parts.iter().copied().collect();
        let _ = writeln!(
            text,
            "  FOREIGN {set}, {timing}, {users}: {} answers ({})",
            foreign.answers,
            parts.join(", ")
        );
    }
    for (set, timing, users) in matrix.lost.iter().take(LOST_SHOWN) {
        let _ = writeln!(text, "  lost sharing: {set}, {timing}, {users}");
    }
    if matrix.lost.len() > LOST_SHOWN {
        let more = matrix.lost.len() - LOST_SHOWN;
        let _ = writeln!(text, "  lost sharing: {more} more cells");
    }
    for (why, times) in &matrix.missing {
        let _ = writeln!(text, "  missing: {why}, {times} times");
    }
    if !findings.traffic.is_empty() {
        let _ = writeln!(
            text,
            "  30 users, 42 visits/s, origin 50 ms: foreign answers"
        );
    }
    for (set, visits) in &findings.traffic {
        let _ = write!(text, "  {set:<24}{:>5} of {VISITS}", visits.foreign);
        let _ = match visits.missing {
            0 => writeln!(text),
            missing => writeln!(text, ", {missing} missing"),
        };
    }
    text
}

/// Formats the results of [`text`] as JSON.
#[must_use]
pub fn json(title: &str, findings: &Findings) -> Value {
    let matrix = &findings.matrix;
    let timings: Vec<_> = matrix
        .timings
        .iter()
        .map(|(timing, counts)| {
            json!({
                "way": timing.name(), "cells": counts.cells, "requests": counts.requests,
                "shared": counts.shared, "foreign": counts.foreign, "lost": counts.lost,
                "missing": counts.missing,
            })
        })
        .collect();
    let foreign: Vec<_> = matrix
        .foreign
        .iter()
        .map(|((set, timing, users), foreign)| {
            json!({
                "set": set, "way": timing.name(), "users": users, "answers": foreign.answers,
                "parts": foreign.parts.iter().collect::<Vec<_>>(),
            })
        })
        .collect();
    let lost: Vec<_> = matrix
        .lost
        .iter()
        .map(|(set, timing, users)| json!({"set": set, "way": timing.name(), "users": users}))
        .collect();
    let traffic: Vec<_> = findings
        .traffic
        .iter()
        .map(|(set, visits)| {
            json!({
                "set": set, "visits": VISITS, "foreign": visits.foreign,
                "missing": visits.missing,
            })
        })
        .collect();
    json!({
        "proxy": title, "foreign_answers": findings.foreign(), "ways": timings, "foreign": foreign,
        "lost": lost, "missing": matrix.missing, "traffic": traffic,
    })
}
