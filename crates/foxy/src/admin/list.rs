//! `GET /ls`: lists the stored objects as they are found, one line of JSON for each object.
//!
//! Objects in memory come first, then the objects on disks, segment by segment. A separate thread reads the
//! disks in large pieces at a bounded rate, so that hits are not delayed. The walk ends when the client
//! leaves.

use std::sync::Arc;
use std::time::Duration;

use foxy_proxy::Listed;
use foxy_store::{Place, Walked};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::State;
use super::connection::Answer;
use super::query::parameter;

/// Number of lines, unless the client requests another number.
const LIMIT: u64 = 1000;
/// Largest number of bytes that are read from disks per second.
const RATE: u64 = 128 << 20;
/// Largest number of pieces of the answer that wait to be sent to the client.
const AHEAD: usize = 8;

/// One stored object.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) url: String,
    pub(crate) partition: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) variant: String,
    pub(crate) status: u16,
    pub(crate) bytes: u64,
    pub(crate) age_seconds: u32,
    pub(crate) ttl_seconds: i64,
    #[serde(default)]
    pub(crate) soft_purged: bool,
    /// The place of the object: `memory`, `pending` (waits to be written to a store) or `store`.
    pub(crate) tier: String,
    /// Position on disk, and the number of segments that the store will overwrite before the object's
    /// segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<Position>,
}

/// Position of a record on a disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) store: u16,
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) segments_ahead: u32,
}

impl Line {
    fn of(walked: &Walked, listed: Listed) -> Self {
        let (tier, position) = match walked.place {
            Place::Memory => ("memory", None),
            Place::Pending => ("pending", None),
            Place::Store {
                store,
                segment,
                offset,
                segments_ahead,
            } => {
                let position = Position {
                    store: store.0,
                    segment,
                    offset,
                    segments_ahead,
                };
                ("store", Some(position))
            }
        };
        Self {
            url: listed.url,
            partition: listed.partition,
            variant: listed.variant,
            status: listed.status,
            bytes: listed.bytes,
            age_seconds: listed.age,
            ttl_seconds: listed.ttl,
            soft_purged: listed.soft_purged,
            tier: tier.to_owned(),
            position,
        }
    }
}

/// Answers `?pattern=TEXT` and `&limit=N`. A pattern without `*` matches every URL that contains it. A
/// pattern with `*` must match the complete URL.
pub(super) fn answer(query: &str, state: &State) -> Answer {
    let pattern = parameter(query, "pattern").unwrap_or_default();
    let limit = parameter(query, "limit").map_or(Some(LIMIT), |text| text.parse().ok());
    let Some(limit) = limit else {
        return Answer::text(400, "limit is a number of lines");
    };
    let (engine, clock) = (Arc::clone(&state.engine), Arc::clone(&state.clock));
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut walk = engine.walk(true);
        let mut left = limit;
        loop {
            let mut piece = Vec::new();
            let step = walk.step(|walked| {
                let other_place = matches!(walked.place, Place::Store { .. }) && walked.in_memory;
                if left == 0 || other_place {
                    return;
                }
                let listed = Listed::of(&walked.object, clock.wall());
                if matches(&pattern, &listed.url) {
                    left -= 1;
                    // Writing JSON to a Vec cannot fail.
                    let _ = serde_json::to_writer(&mut piece, &Line::of(&walked, listed));
                    piece.push(b'\n');
                }
            });
            let gone = !piece.is_empty() && send.blocking_send(piece).is_err();
            if gone || send.is_closed() || !step.more || left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(step.read * 1_000_000_000 / RATE));
        }
    });
    Answer {
        status: 200,
        content_type: "application/x-ndjson",
        body: Vec::new(),
        more: Some(receive),
    }
}

/// Returns whether a URL contains `pattern`. A pattern with stars must match the complete URL.
fn matches(pattern: &str, url: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return url.contains(first);
    };
    let Some(mut rest) = url.strip_prefix(first) else {
        return false;
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_parts_or_have_stars() {
        for (pattern, url, expected) in [
            ("", "http://a/", true),
            ("a.test", "http://a.test/x", true),
            ("b", "http://a.test/x", false),
            ("http://a*", "http://a.test/x", true),
            ("a*", "http://a.test/x", false),
            ("*.js", "http://a.test/x.js", true),
            ("*.js", "http://a.test/x.js?v", false),
            ("http://*/x/*.js", "http://a/x/x/y.js", true),
            ("*ab*ab", "ab", false),
            ("*ab*ab", "abab", true),
        ] {
            assert_eq!(matches(pattern, url), expected, "{pattern} {url}");
        }
    }
}
