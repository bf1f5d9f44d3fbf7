//! The origin of the matrix. It makes each page for the user of the request, and marks every part of an
//! answer with that request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::timeout;

use super::mark::{self, LINE, LINES, Mark};
use super::table::Set;
use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond};

/// The field that contains a request's number. Proxies forward it.
pub(super) const ID: &str = "X-Lab-Id";
/// An answer that is held back continues after this time, even if nothing releases it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Point at which the origin waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Nothing,
    /// Before each head.
    Head,
    /// In the middle of each body.
    Body,
}

/// A page of the origin.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) set: Arc<Set>,
    /// Value of the field Age in all answers, in seconds. It replaces the Age of the set. If it is `None`,
    /// the fields of the set are unchanged.
    pub(super) age: Option<u32>,
    /// Delay of every answer.
    pub(super) delay: Duration,
    pub(super) hold: watch::Sender<Hold>,
    /// Number of requests that arrived.
    pub(super) asked: watch::Sender<u32>,
}

impl Page {
    pub(super) fn new(set: Arc<Set>, age: Option<u32>, hold: Hold, delay: Duration) -> Self {
        Self {
            set,
            age,
            delay,
            hold: watch::Sender::new(hold),
            asked: watch::Sender::new(0),
        }
    }

    /// Waits until this number of requests has arrived.
    pub(super) async fn asked(&self, times: u32) {
        let mut count = self.asked.subscribe();
        let _ = timeout(TIMEOUT, count.wait_for(|count| *count >= times)).await;
    }

    async fn released(&self, from: Hold) {
        let mut hold = self.hold.subscribe();
        let _ = timeout(TIMEOUT, hold.wait_for(|hold| *hold != from)).await;
    }
}

/// The origin.
#[derive(Debug)]
pub(super) struct Site {
    /// Time of the start in seconds since the Unix epoch. The dates of pages are computed from this time, so
    /// pages do not change during a run.
    epoch: u64,
    pages: Mutex<HashMap<String, Arc<Page>>>,
    /// Users of the requests that were answered with 304, by request number.
    confirmed: Mutex<HashMap<u64, String>>,
}

impl Site {
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            pages: Mutex::default(),
            confirmed: Mutex::default(),
        }
    }

    /// Adds a page at a path.
    pub(super) fn add(&self, path: &str, page: Page) -> Arc<Page> {
        let page = Arc::new(page);
        held(&self.pages).insert(path.to_owned(), Arc::clone(&page));
        page
    }

    /// If the origin answered this request with 304, returns the user whose version of the page was
    /// confirmed.
    pub(super) fn confirmed(&self, id: u64) -> Option<String> {
        held(&self.confirmed).get(&id).cloned()
    }

    /// The modification date of a page for a user. It differs between users.
    fn modified(&self, user: &str) -> String {
        let own: u64 = user.bytes().map(u64::from).sum();
        date(self.epoch - 1000 - own % 100)
    }

    /// True if the condition of the request (such as If-None-Match) matches the user's current version of the
    /// page.
    fn is_current(&self, request: &ReceivedRequest, page: &Page, user: &str) -> bool {
        let has = |name: &str| {
            let same = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
            page.set.fields.iter().any(|field| same(&field))
        };
        if !matches!(request.method.as_str(), "GET" | "HEAD") || page.set.status != 200 {
            return false;
        }
        if let Some(tags) = request.head.get("If-None-Match") {
            let own = mark::tag(user);
            return has("ETag") && tags.split(',').any(|tag| tag.trim() == own);
        }
        let since = request.head.get("If-Modified-Since");
        has("Last-Modified") && since == Some(self.modified(user).as_str())
    }

    /// Field lines of the page for a user. If `is_304` is true, only the fields that a 304 repeats are
    /// included.
    fn fields(&self, page: &Page, mark: &Mark, path: &str, is_304: bool) -> String {
        let mut text = format!("Date: {}\r\n", date(self.now()));
        for (name, value) in &page.set.fields {
            let aged = name == "Age" && page.age.is_some();
            if !aged {
                text += &format!("{name}: {}\r\n", self.filled(value, mark, path));
            }
        }
        if let Some(age) = page.age {
            text += &format!("Age: {age}\r\n");
        }
        if !is_304 {
            text += &format!("{}: {mark}\r\n", mark::FIELD);
            if let Some(kind) = &page.set.content_type {
                text += &format!("Content-Type: {kind}\r\n");
            }
        }
        text
    }

    fn filled(&self, value: &str, mark: &Mark, path: &str) -> String {
        value
            .replace("%e", &mark::tag(&mark.user))
            .replace("%m", &self.modified(&mark.user))
            .replace("%c", &format!("sid={mark}"))
            .replace("%s", &mark.to_string())
            .replace("%p", &date(self.epoch - 86_400))
            .replace("%f", &date(self.now() + 60))
            .replace("%u", path)
    }

    fn now(&self) -> u64 {
        use foxy_base::Clock;
        let now = foxy_base::SystemClock::default().wall().secs();
        u64::try_from(now).unwrap_or(self.epoch)
    }
}

/// An answer that is ready to be sent.
struct Reply {
    head: String,
    body: Vec<u8>,
}

impl Site {
    fn reply(&self, request: &ReceivedRequest, page: &Page, mark: &Mark) -> Reply {
        if self.is_current(request, page, &mark.user) {
            held(&self.confirmed).insert(mark.id, mark.user.clone());
            let fields = self.fields(page, mark, &request.path, true);
            let head = format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n");
            let body = Vec::new();
            return Reply { head, body };
        }
        let fields = self.fields(page, mark, &request.path, false);
        let body = mark::body(mark, &request.path);
        let whole = body.len();
        let range = part(request, page, &mark.user, whole);
        let (status, place, body) = match range {
            Some((from, to)) => (
                206,
                format!("Content-Range: bytes {from}-{}/{whole}\r\n", to - 1),
                body[from..to].to_vec(),
            ),
            None => (page.set.status, String::new(), body),
        };
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} Page\r\n{fields}{place}Content-Length: {length}\r\n\r\n");
        let body = if request.method == "HEAD" {
            Vec::new()
        } else {
            body
        };
        Reply { head, body }
    }
}

impl Respond for Site {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let page = held(&self.pages).get(&request.path).cloned();
        let id = request.head.get(ID).and_then(|id| id.parse().ok());
        let (Some(page), Some(id)) = (page, id) else {
            let nothing = b"HTTP/1.1 404 No Page\r\nContent-Length: 0\r\n\r\n";
            return after(&conn.write(nothing).await);
        };
        let user = user_of(request).unwrap_or(mark::ANYBODY).to_owned();
        let mark = Mark { user, id };
        page.asked.send_modify(|count| *count += 1);
        if page.set.interim {
            let early = format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </{mark}>; rel=preload\r\nSet-Cookie: \
                 early={mark}\r\n\r\n"
            );
            if conn.write(early.as_bytes()).await.is_err() {
                return AfterResponse::Close;
            }
        }
        if !page.delay.is_zero() {
            tokio::time::sleep(page.delay).await;
        }
        page.released(Hold::Head).await;
        let reply = self.reply(request, &page, &mark);
        let (first, second) = reply.body.split_at(reply.body.len() / 2);
        let begun = conn.write(&[reply.head.as_bytes(), first].concat()).await;
        if begun.is_err() || second.is_empty() {
            return after(&begun);
        }
        page.released(Hold::Body).await;
        after(&conn.write(second).await)
    }
}

fn after<E>(written: &Result<(), E>) -> AfterResponse {
    match written {
        Ok(()) => AfterResponse::Keep,
        Err(_) => AfterResponse::Close,
    }
}

/// The user that a request names.
fn user_of(request: &ReceivedRequest) -> Option<&str> {
    let bearer = request.head.get("Authorization");
    let token = bearer.and_then(|value| value.strip_prefix("Bearer "));
    token.or_else(|| request.head.get("Cookie")?.strip_prefix("session="))
}

/// Returns the requested part of a body: the positions of its beginning and its end, in bytes.
fn part(
    request: &ReceivedRequest,
    page: &Page,
    user: &str,
    whole: usize,
) -> Option<(usize, usize)> {
    if page.set.status != 200 || request.method != "GET" {
        return None;
    }
    let condition = request.head.get("If-Range");
    if condition.is_some_and(|tag| tag != mark::tag(user)) {
        return None;
    }
    let range = request.head.get("Range")?.strip_prefix("bytes=")?;
    let (from, to) = range.split_once('-')?;
    let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => (from, whole.min(to + 1)),
        (Ok(from), Err(_)) if to.is_empty() => (from, whole),
        (Err(_), Ok(last)) if from.is_empty() => (whole.saturating_sub(last), whole),
        _ => return None,
    };
    (from < to).then_some((from, to))
}

fn date(seconds: u64) -> String {
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(seconds);
    httpdate::fmt_http_date(time)
}

/// Locks the mutex, even if a thread panicked while it held the lock. Panics do not damage the data.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Length of every page, in bytes.
pub(super) const WHOLE: usize = LINE * LINES;
