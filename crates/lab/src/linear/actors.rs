//! The actors: threads that read, change and purge resources. Each actor has its own sequence of random
//! numbers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use foxy_base::Rng;

use super::buffered_conn::{Answer, exchange};
use super::process::Foxy;
use super::record::{Event, ResponseKind, Violation};
use super::world::{Resource, TAGS, World, lock};

/// Counters of a run.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) answers: AtomicU64,
    pub(super) hits: AtomicU64,
    pub(super) errors: AtomicU64,
    pub(super) cut: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) purges: AtomicU64,
    pub(super) refused: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Shared state of all actors.
#[derive(Debug)]
pub(super) struct RunState {
    pub(super) world: std::sync::Arc<World>,
    pub(super) foxy: Foxy,
    pub(super) counts: Counts,
    /// Violations that were found during the run.
    pub(super) wrong: Mutex<Vec<Violation>>,
    pub(super) over: AtomicBool,
}

impl RunState {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn wrong(&self, rule: &'static str, text: String) {
        lock(&self.wrong).push(Violation { rule, text });
    }

    fn ask(&self, resource: &Resource, method: &str, rest: &str) -> Option<Answer> {
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{rest}",
            resource.url(),
            resource.host
        );
        let answer = exchange(self.foxy.port, method, request.as_bytes());
        if answer.is_err() {
            // Foxy is being killed or started.
            thread::sleep(Duration::from_millis(20));
        }
        answer.ok()
    }
}

/// Chooses a resource. It often chooses one of a few popular resources, so that requests for one resource
/// overlap.
fn choose<'a>(rng: &mut Rng, resources: &'a [Resource]) -> &'a Resource {
    let few = resources.len().min(5) as u64;
    let number = match rng.below(5) {
        0 | 1 => rng.below(few),
        _ => rng.below(resources.len() as u64),
    };
    &resources[number as usize]
}

/// Sends requests that only read: plain GET, GET with ranges, GET with conditions, and HEAD.
pub(super) fn reader(state: &RunState, mut rng: Rng) {
    while !state.is_over() {
        let resource = match rng.below(10) {
            0 => choose(&mut rng, state.world.fillers()),
            _ => choose(&mut rng, state.world.changing()),
        };
        read(state, &mut rng, resource);
    }
}

fn read(state: &RunState, rng: &mut Rng, resource: &Resource) {
    let now = resource.now();
    let length = resource.length(now);
    let some = now.saturating_sub(rng.below(2)).max(1);
    let mut method = "GET";
    let mut fields = String::new();
    let from = rng.below(length);
    match rng.below(16) {
        0 => method = "HEAD",
        1 => fields = format!("If-None-Match: {}\r\n", resource.etag(some)),
        2 => fields = "Cache-Control: no-cache\r\n".to_owned(),
        3 => fields = "Cache-Control: max-age=0\r\n".to_owned(),
        4 => fields = format!("Range: bytes={from}-\r\n"),
        5 => fields = format!("Range: bytes=-{}\r\n", length - from),
        6 | 7 => {
            let to = from + rng.below(200_000);
            fields = format!("Range: bytes={from}-{to}\r\n");
        }
        8 => {
            let etag = resource.etag(some);
            fields = format!("Range: bytes={from}-\r\nIf-Range: {etag}\r\n");
        }
        _ => {}
    }
    let began = state.world.time();
    let Some(answer) = state.ask(resource, method, &format!("{fields}\r\n")) else {
        return;
    };
    let ended = state.world.time();
    Counts::add(&state.counts.answers);
    let cache = answer.field("Cache-Status").unwrap_or_default().to_owned();
    if cache.contains("hit") {
        Counts::add(&state.counts.hits);
    }
    let judged = judge(resource, method, &answer);
    let asked = fields.trim_end().replace("\r\n", "; ");
    let cache = format!("{method} {asked} -> {} {cache}", answer.status);
    match judged {
        Ok(Some((version, kind))) => resource.note(Event::Served {
            began,
            ended,
            version,
            kind,
            cache,
        }),
        Ok(None) if answer.whole => Counts::add(&state.counts.errors),
        Ok(None) => Counts::add(&state.counts.cut),
        Err(problem) => {
            let url = resource.url();
            state.wrong("wrong bytes", format!("{url}: {problem}: {cache}"));
        }
    }
}

/// Compares all bytes of an answer with the version that the ETag of the answer names. Returns this version
/// and the kind of the answer; `None` for an error status or a truncated answer.
fn judge(
    resource: &Resource,
    method: &str,
    answer: &Answer,
) -> Result<Option<(u64, ResponseKind)>, String> {
    if matches!(answer.status, 416 | 429) || answer.status >= 500 {
        return Ok(None);
    }
    let etag = answer.field("ETag").ok_or("no ETag")?;
    let version = resource.version_of(etag);
    let version = version.ok_or_else(|| format!("{etag} is of another URL"))?;
    let length = resource.length(version);
    let announced = answer.number("Content-Length");
    let (from, to, kind) = match answer.status {
        304 => return Ok(Some((version, ResponseKind::NotModified))),
        200 if method == "HEAD" => {
            return match announced == Some(length) {
                true => Ok(Some((version, ResponseKind::Head))),
                false => Err(format!("HEAD says {announced:?} of {length} bytes")),
            };
        }
        200 => (0, length, ResponseKind::Whole),
        206 => {
            let range = answer.field("Content-Range").unwrap_or_default();
            let parsed = content_range(range).filter(|(_, _, whole)| *whole == length);
            let (from, to, _) = parsed.ok_or_else(|| format!("{range:?} of {length} bytes"))?;
            (from, to, ResponseKind::Part(from, to))
        }
        status => return Err(format!("status {status}")),
    };
    if announced.is_some_and(|announced| announced != to - from) {
        return Err(format!("{announced:?} bytes announced of {from}-{to}"));
    }
    let end = from + answer.body.len() as u64;
    if end > to || answer.body != resource.bytes(version, from, end.min(to)) {
        return Err(format!(
            "{from}-{end} are not the bytes of version {version}"
        ));
    }
    if !answer.whole {
        return Ok(None);
    }
    match end == to {
        true => Ok(Some((version, kind))),
        false => Err(format!("ends at {end} of {from}-{to}, and looks whole")),
    }
}

/// Parses a Content-Range `bytes from-last/whole`. Returns `(from, last + 1, whole)`.
fn content_range(text: &str) -> Option<(u64, u64, u64)> {
    let (span, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (from, last) = span.split_once('-')?;
    let span = (from.parse().ok()?, last.parse::<u64>().ok()? + 1);
    (span.0 < span.1).then_some((span.0, span.1, whole.parse().ok()?))
}

/// Changes resources, either by requests with unsafe methods that go through the cache, or directly at the
/// origin.
pub(super) fn writer(state: &RunState, mut rng: Rng) {
    while !state.is_over() {
        thread::sleep(Duration::from_millis(rng.below(60)));
        let resource = choose(&mut rng, state.world.changing());
        let rest = match rng.below(6) {
            0 | 1 => {
                resource.publish(&state.world);
                continue;
            }
            2 => "POST \r\nContent-Length: 5\r\n\r\n12345",
            3 => "POST \r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
            4 => "PUT \r\nContent-Length: 5\r\n\r\n12345",
            _ => "DELETE \r\n\r\n",
        };
        let (method, rest) = rest.split_once(" \r\n").unwrap_or_default();
        let (before, began) = (resource.now(), state.world.time());
        let Some(answer) = state.ask(resource, method, rest) else {
            continue;
        };
        let ended = state.world.time();
        Counts::add(&state.counts.changes);
        // If a change was sent and got no answer, it is unknown whether the origin has made a new version.
        // Then later requests must get the version from before the change, or a newer version.
        let version = match answer.status {
            200 => answer.number("X-Version"),
            502 if !answer
                .field("Cache-Status")
                .is_some_and(|c| c.contains("unreachable")) =>
            {
                Some(before)
            }
            _ => None,
        };
        if let Some(version) = version {
            let what = format!("{method} ({})", answer.status);
            resource.note(Event::Acknowledged {
                began,
                ended,
                version,
                what,
            });
        }
    }
}

/// Sends purges of all kinds.
pub(super) fn purger(state: &RunState, mut rng: Rng) {
    while !state.is_over() {
        thread::sleep(Duration::from_millis(rng.below(300)));
        purge(state, &mut rng);
    }
}

fn purge(state: &RunState, rng: &mut Rng) {
    let resources = state.world.changing();
    let one = choose(rng, resources);
    let folder = one.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let tag = rng.below(TAGS);
    let prefix = format!("http://{}{folder}/", one.host);
    type Covers<'a> = Box<dyn Fn(&Resource) -> bool + 'a>;
    let (query, covers): (String, Covers<'_>) = match rng.below(100) {
        0 => ("all=1".into(), Box::new(|_| true)),
        1..=8 => (format!("tag=t{tag}"), Box::new(move |r| r.tag() == tag)),
        9..=14 => (
            format!("prefix={prefix}"),
            Box::new(|r| r.url().starts_with(&prefix)),
        ),
        15..=18 => (
            format!("host={}", one.host),
            Box::new(|r| r.host == one.host),
        ),
        19..=22 => {
            let regex = format!("{folder}/{}$", one.number);
            (
                format!("regex={regex}"),
                Box::new(|r| r.number == one.number),
            )
        }
        _ => (
            format!("url={}", one.url()),
            Box::new(|r| r.number == one.number),
        ),
    };
    let soft = rng.chance(0.3);
    let query = format!("{query}{}", if soft { "&soft=1" } else { "" });
    // After the purge, every request must get the version that was current when the purge began, or a newer
    // version.
    let covered: Vec<_> = resources.iter().filter(|r| covers(r)).collect();
    let least: Vec<_> = covered.iter().map(|r| r.now()).collect();
    let began = state.world.time();
    let listener = query.starts_with("url=") && !soft && rng.chance(0.5);
    let answer = match listener {
        true => state.ask(one, "PURGE", "\r\n"),
        false => {
            let request = format!(
                "POST /purge?{query} HTTP/1.1\r\nHost: localhost\r\nX-Foxy-Admin: 1\r\nContent-Length: 0\r\n\r\n"
            );
            exchange(state.foxy.admin, "POST", request.as_bytes()).ok()
        }
    };
    let ended = state.world.time();
    let Some(answer) = answer.filter(|answer| answer.whole) else {
        return;
    };
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    match answer.status {
        200 | 404 if !text.contains("\"durable\":false") => {}
        429 => return Counts::add(&state.counts.refused),
        status => return state.wrong("purge refused", format!("{query}: {status} {text}")),
    }
    Counts::add(&state.counts.purges);
    for (resource, version) in covered.into_iter().zip(least) {
        let what = format!("purge {query}");
        resource.note(Event::Acknowledged {
            began,
            ended,
            version,
            what,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(content_range("bytes 0-9/10"), Some((0, 10, 10)));
        assert_eq!(content_range("bytes 9-2/10"), None);
        assert_eq!(content_range("bytes */10"), None);
    }
}
