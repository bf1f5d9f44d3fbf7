//! Failing leaders. The leader is the first request of a crowd, and the other requests (the followers) wait
//! for its answer. The origin fails only the leader's request and would answer the followers' requests. So
//! the followers must not fail.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::object::Behaviour;
use super::{Fixture, Row, sent};
use crate::kit::{AfterResponse, Answer, BufferedConn, ClientRequest};

/// Number of followers of each leader.
const FOLLOWERS: usize = 5;
/// Time limit for the followers' answers.
const LIMIT: Duration = Duration::from_secs(5);
/// Time limit of a client. It is longer than `LIMIT`, so that late answers can be distinguished from
/// missing answers.
const TIMEOUT: Duration = Duration::from_secs(10);
const SIZE: usize = 200_000;
/// After this wait, the requests of the followers have reached the proxy.
const SETTLE: Duration = Duration::from_millis(200);

/// The way in which the first answer fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    ResetBeforeHead,
    CloseBeforeHead,
    Silent,
    HalfAHead,
    Garbage,
    Error500,
    Unavailable503,
    InterimForEver,
    HeadThenReset,
    CutByLength,
    CutChunked,
    Stall,
    Redirect,
}

/// All failures.
const BAD: [Bad; 13] = [
    Bad::ResetBeforeHead,
    Bad::CloseBeforeHead,
    Bad::Silent,
    Bad::HalfAHead,
    Bad::Garbage,
    Bad::Error500,
    Bad::Unavailable503,
    Bad::InterimForEver,
    Bad::HeadThenReset,
    Bad::CutByLength,
    Bad::CutChunked,
    Bad::Stall,
    Bad::Redirect,
];

/// Text of the page in a failing answer. Only the leader may get this page.
const PAGE: &str = "the page of the error";

impl Bad {
    const fn name(self) -> &'static str {
        match self {
            Self::ResetBeforeHead => "reset before the head",
            Self::CloseBeforeHead => "closed before the head",
            Self::Silent => "silent",
            Self::HalfAHead => "half a head, then silent",
            Self::Garbage => "garbage in place of a head",
            Self::Error500 => "500",
            Self::Unavailable503 => "503 with Retry-After",
            Self::InterimForEver => "103 every 200 ms, for ever",
            Self::HeadThenReset => "reset after the head",
            Self::CutByLength => "half of Content-Length, closed",
            Self::CutChunked => "chunked, closed before the end",
            Self::Stall => "half of the body, then silent",
            Self::Redirect => "302 with no-store to itself",
        }
    }

    /// True if followers may get the proxy's own error in place of an answer. Followers may never get the
    /// page of the failing answer.
    const fn permits_own_error(self) -> bool {
        matches!(self, Self::Error500 | Self::Unavailable503)
    }

    /// Sends the failing answer.
    pub(super) async fn respond(self, body: &[u8], conn: &mut BufferedConn) -> AfterResponse {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        let length = body.len();
        let counted = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n");
        let half = &body[..length / 2];
        let chunk = |part: &[u8]| {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
            let size = format!("{head}{:x}\r\n", part.len());
            [size.as_bytes(), part, b"\r\n"].concat()
        };
        let page = PAGE.len();
        let (bytes, after) = match self {
            Self::ResetBeforeHead => (Vec::new(), AfterResponse::Reset),
            Self::CloseBeforeHead => (Vec::new(), AfterResponse::Close),
            Self::Silent => (Vec::new(), AfterResponse::Keep),
            Self::HalfAHead => (
                b"HTTP/1.1 200 OK\r\nContent-Ty".to_vec(),
                AfterResponse::Keep,
            ),
            Self::Garbage => (
                b"\x01\x02 no head at all\r\n\r\n".to_vec(),
                AfterResponse::Close,
            ),
            Self::Error500 => (
                format!("HTTP/1.1 500 Error\r\nContent-Length: {page}\r\n\r\n{PAGE}").into_bytes(),
                AfterResponse::Close,
            ),
            Self::Unavailable503 => (
                format!(
                    "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: {page}\r\n\r\n{PAGE}"
                )
                .into_bytes(),
                AfterResponse::Close,
            ),
            Self::InterimForEver => return interim_for_ever(conn).await,
            Self::HeadThenReset => (counted.into_bytes(), AfterResponse::Reset),
            Self::CutByLength => ([counted.as_bytes(), half].concat(), AfterResponse::Close),
            Self::CutChunked => (chunk(half), AfterResponse::Close),
            Self::Stall => ([counted.as_bytes(), half].concat(), AfterResponse::Keep),
            Self::Redirect => (
                b"HTTP/1.1 302 Found\r\nLocation: ?\r\nCache-Control: no-store\r\nContent-Length: \
                  0\r\n\r\n"
                    .to_vec(),
                AfterResponse::Close,
            ),
        };
        if conn.write(&bytes).await.is_err() {
            return AfterResponse::Close;
        }
        // The bytes get time to arrive at the proxy before the connection ends.
        sleep(Duration::from_millis(50)).await;
        if after == AfterResponse::Keep {
            conn.until_gone().await;
            return AfterResponse::Close;
        }
        after
    }
}

async fn interim_for_ever(conn: &mut BufferedConn) -> AfterResponse {
    let early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    while conn.write(early).await.is_ok() {
        sleep(Duration::from_millis(200)).await;
    }
    AfterResponse::Close
}

/// Results of the five followers of one failing leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Got {
    /// Number of followers that got the whole object in time.
    whole: usize,
    /// Number of followers that got the proxy's own error in time, if the kind of failure permits this.
    own_errors: usize,
    slowest: Duration,
}

impl Got {
    fn take(&mut self, bad: Bad, answer: &Result<Answer, String>, took: Duration, body: &[u8]) {
        self.slowest = self.slowest.max(took);
        let Ok(answer) = answer else { return };
        if !answer.whole || took > LIMIT {
            return;
        }
        let page = answer
            .body
            .windows(PAGE.len())
            .any(|part| part == PAGE.as_bytes());
        match answer.head.status() {
            200 if answer.body == body => self.whole += 1,
            500..=599 if bad.permits_own_error() && !page => self.own_errors += 1,
            _ => {}
        }
    }
}

/// Runs all kinds of failure in parallel.
pub(super) async fn run(fixture: &Arc<Fixture>) -> Vec<Row> {
    let mut tasks = Vec::new();
    for bad in BAD {
        let fixture = Arc::clone(fixture);
        tasks.push(tokio::spawn(async move { (bad, one(&fixture, bad).await) }));
    }
    let mut rows = Vec::new();
    for task in tasks {
        let Ok((bad, got)) = task.await else { continue };
        let answers = match got.own_errors {
            0 => format!("{} of {FOLLOWERS} whole", got.whole),
            own => format!("{} whole, {own} own errors", got.whole),
        };
        rows.push(Row {
            name: format!("leader: {}", bad.name()),
            measured: format!("{answers}, {:.1} s", got.slowest.as_secs_f64()),
            wanted: format!("{FOLLOWERS} in {} s", LIMIT.as_secs()),
            met: got.whole + got.own_errors == FOLLOWERS,
        });
    }
    rows
}

async fn one(fixture: &Arc<Fixture>, bad: Bad) -> Got {
    let path = format!("/leader/{}", bad as u8);
    let object = fixture
        .origin
        .add(&path, Behaviour::Leader(bad), SIZE, false);
    let (_, leader) = sent(fixture, ClientRequest::get(path.clone()), TIMEOUT);
    object.first_asked().await;
    let begun = Instant::now();
    let mut followers = Vec::new();
    for _ in 0..FOLLOWERS {
        let (target, request) = (fixture.target.clone(), ClientRequest::get(path.clone()));
        followers.push(tokio::spawn(async move {
            let answer = request.send(&target, TIMEOUT, None).await;
            (answer, begun.elapsed())
        }));
    }
    sleep(SETTLE).await;
    object.released.send_replace(true);
    let mut got = Got::default();
    for follower in followers {
        if let Ok((answer, took)) = follower.await {
            got.take(bad, &answer, took, &object.body);
        }
    }
    leader.abort();
    got
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Head;

    #[test]
    fn an_own_error_counts_after_an_error_only_and_never_with_its_page() {
        let answer = |body: &str| {
            Ok(Answer {
                head: Head::parse("HTTP/1.1 502 Bad Gateway"),
                body: body.as_bytes().to_vec(),
                whole: true,
                ..Answer::default()
            })
        };
        let mut got = Got::default();
        got.take(Bad::Error500, &answer("sorry"), Duration::ZERO, b"x");
        assert_eq!(got.own_errors, 1);
        got.take(Bad::Silent, &answer("sorry"), Duration::ZERO, b"x");
        got.take(Bad::Error500, &answer(PAGE), Duration::ZERO, b"x");
        got.take(Bad::Error500, &answer("sorry"), LIMIT * 2, b"x");
        assert_eq!((got.own_errors, got.whole), (1, 0));
    }
}
