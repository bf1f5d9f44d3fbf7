//! A cell of the privacy matrix is one combination of a header set (the fields of an answer), a timing (the
//! relation between the requests of two users) and a kind of users. This module sends the requests of a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::mark;
use super::site::{Hold, ID, Page, Site, WHOLE};
use super::table::{Pair, Set, Timing};
use crate::kit::{Answer, ClientRequest, Progress, Target};

/// After this time, an answer counts as missing.
const TIMEOUT: Duration = Duration::from_secs(20);
/// After this wait, a remaining lifetime of one second has expired.
const EXPIRY: Duration = Duration::from_millis(2200);

/// The kind of the users in a cell. It states which users send credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// No user sends credentials.
    Plain,
    /// Each user sends a Cookie.
    Cookie,
    /// Each user sends Authorization.
    Authorization,
    /// The first user sends no Cookie, the other users send a Cookie.
    GuestFirst,
    /// The first user sends a Cookie, the other users send no Cookie.
    GuestLast,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Cookie => "cookie",
            Self::Authorization => "authorization",
            Self::GuestFirst => "guest-first",
            Self::GuestLast => "guest-last",
        }
    }

    /// Returns the row of letters in `table.txt` that applies if an answer was fetched for the first user and
    /// is sent to another user.
    pub(super) const fn pair(self) -> Pair {
        match self {
            Self::Plain => Pair::Plain,
            Self::Authorization => Pair::Authorization,
            _ => Pair::Cookie,
        }
    }
}

/// Credentials of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    Nothing,
    Cookie,
    Authorization,
}

/// The user of one request.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) id: u64,
    pub(super) user: String,
    pub(super) shows: Shows,
}

impl Person {
    /// Returns the row of letters in `table.txt` that applies if an answer was fetched for this person and is
    /// sent to `other`.
    pub(super) fn pair(&self, other: &Self) -> Pair {
        match (self.shows, other.shows) {
            (Shows::Authorization, _) => Pair::Authorization,
            (Shows::Cookie, _) | (_, Shows::Cookie) => Pair::Cookie,
            _ => Pair::Plain,
        }
    }

    /// A request of this person.
    pub(super) fn request(&self, method: &'static str, path: &str) -> ClientRequest {
        let mut request = ClientRequest::get(path.to_owned()).with(ID, self.id.to_string());
        request.method = method;
        match self.shows {
            Shows::Nothing => request,
            Shows::Cookie => request.with("Cookie", format!("session={}", self.user)),
            Shows::Authorization => request.with("Authorization", format!("Bearer {}", self.user)),
        }
    }
}

/// A request and its result.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) person: Person,
    pub(super) answer: Result<Answer, String>,
}

/// Shared state of all cells of a run.
#[derive(Debug)]
pub(super) struct RunState {
    pub(super) target: Target,
    pub(super) site: Arc<Site>,
    /// Number of the next request.
    pub(super) ids: AtomicU64,
    /// Time for which the origin still holds back an answer after the other users have sent their requests.
    pub(super) settle: Duration,
    /// Number of users in a cell besides the first.
    pub(super) others: usize,
}

impl RunState {
    /// A person with a new request number.
    pub(super) fn person(&self, shows: Shows, number: usize) -> Person {
        let user = match shows {
            Shows::Nothing => mark::ANYBODY.to_owned(),
            _ => format!("u{number}"),
        };
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        Person { id, user, shows }
    }
}

/// A cell of the privacy matrix: one combination of a header set, a timing and a kind of users.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) set: Arc<Set>,
    pub(super) timing: Timing,
    pub(super) kind: Kind,
    pub(super) round: u32,
}

impl Cell {
    pub(super) fn path(&self) -> String {
        let (set, timing, kind) = (&self.set.name, self.timing, self.kind.name());
        format!("/p/{set}/{timing}/{kind}/{}", self.round)
    }

    /// Sends all requests of the cell.
    pub(super) async fn run(&self, state: &Arc<RunState>) -> Vec<Exchange> {
        let path = self.path();
        let (age, hold) = match self.timing {
            Timing::Revalidation if self.set.life > 0 => (Some(self.set.life - 1), Hold::Nothing),
            Timing::Revalidation | Timing::Sequential => (None, Hold::Nothing),
            Timing::Late => (None, Hold::Body),
            _ => (None, Hold::Head),
        };
        let page = Page::new(Arc::clone(&self.set), age, hold, Duration::ZERO);
        let page = state.site.add(&path, page);
        let run = CellRun {
            cell: self,
            state,
            page: &page,
            path: &path,
        };
        match self.timing {
            Timing::Sequential => run.sequential().await,
            Timing::Revalidation => run.revalidation().await,
            Timing::Concurrent | Timing::Late => run.together().await,
            Timing::Head => run.parts(&HEADS).await,
            Timing::Range => run.parts(&RANGES).await,
        }
    }
}

/// Method and Range of a request that another user sends after the first user's request. If a value is
/// `None`, the request keeps its usual method, or has no Range.
type Wish = (Option<&'static str>, Option<&'static str>);

/// The other users' requests in the timing [`Timing::Head`]. The first of these requests is sent before the
/// origin has answered the first user. The others are sent after this answer.
const HEADS: [Wish; 3] = [(Some("HEAD"), None), (Some("HEAD"), None), (None, None)];
/// The other users' requests in the timing [`Timing::Range`]. As in `HEADS`, only the first of them is sent
/// before the origin has answered the first user.
const RANGES: [Wish; 3] = [
    (None, Some("bytes=0-255")),
    (None, Some("bytes=1024-2047")),
    (None, Some("bytes=-256")),
];
const _: () = assert!(WHOLE > 2048, "the ranges are inside every page");

struct CellRun<'a> {
    cell: &'a Cell,
    state: &'a Arc<RunState>,
    page: &'a Page,
    path: &'a str,
}

/// A running request.
struct Running {
    person: Person,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<Result<Answer, String>>,
}

impl Running {
    /// Waits until the request has made this progress or has ended.
    async fn reaches(&mut self, wanted: Progress) {
        let _ = self.progress.wait_for(|at| *at >= wanted).await;
    }

    async fn end(self) -> Exchange {
        let lost = |error| Err(format!("the client was lost: {error}"));
        Exchange {
            person: self.person,
            answer: self.task.await.unwrap_or_else(lost),
        }
    }
}

impl CellRun<'_> {
    fn person(&self, number: usize) -> Person {
        let shows = match (self.cell.kind, number) {
            (Kind::Plain, _) | (Kind::GuestFirst, 0) => Shows::Nothing,
            (Kind::Authorization, _) => Shows::Authorization,
            (Kind::GuestLast, number) if number > 0 => Shows::Nothing,
            _ => Shows::Cookie,
        };
        self.state.person(shows, number)
    }

    fn start(
        &self,
        number: usize,
        change: impl FnOnce(ClientRequest, &Person) -> ClientRequest,
    ) -> Running {
        let set = &self.cell.set;
        let method = if number == 0 { set.method } else { set.then };
        let person = self.person(number);
        let request = change(person.request(method, self.path), &person);
        let (sender, progress) = watch::channel(Progress::Before);
        let target = self.state.target.clone();
        let task = tokio::spawn(async move { request.send(&target, TIMEOUT, Some(sender)).await });
        Running {
            person,
            progress,
            task,
        }
    }

    fn plain(&self, number: usize) -> Running {
        self.start(number, |request, _| request)
    }

    /// Sends the requests of these users, and gives the requests time to reach the proxy.
    async fn others(&self, from: usize, to: usize) -> Vec<Running> {
        let mut others: Vec<_> = (from..to).map(|number| self.plain(number)).collect();
        for other in &mut others {
            other.reaches(Progress::Sent).await;
        }
        tokio::time::sleep(self.state.settle).await;
        others
    }

    fn release(&self) {
        self.page.hold.send_replace(Hold::Nothing);
    }

    async fn sequential(&self) -> Vec<Exchange> {
        let mut exchanges = Vec::new();
        for number in 0..=self.state.others {
            exchanges.push(self.plain(number).end().await);
        }
        exchanges
    }

    /// Lets the other users send their requests while the origin holds back the head, or holds the body in
    /// the middle.
    async fn together(&self) -> Vec<Exchange> {
        let mut first = self.plain(0);
        match self.cell.timing {
            Timing::Late => first.reaches(Progress::Head).await,
            _ => self.page.asked(1).await,
        }
        let others = self.others(1, self.state.others + 1).await;
        self.release();
        ends([vec![first], others]).await
    }

    async fn parts(&self, wishes: &[Wish; 3]) -> Vec<Exchange> {
        let first = self.plain(0);
        self.page.asked(1).await;
        let wish = |number: usize| {
            let (method, range) = wishes[number - 1];
            self.start(number, |mut request, _| {
                request.method = method.unwrap_or(request.method);
                match range {
                    Some(range) => request.with("Range", range),
                    None => request,
                }
            })
        };
        let mut second = wish(1);
        second.reaches(Progress::Sent).await;
        tokio::time::sleep(self.state.settle).await;
        self.release();
        let mut exchanges = ends([vec![first], vec![second]]).await;
        for number in 2..=wishes.len() {
            exchanges.push(wish(number).end().await);
        }
        exchanges
    }

    /// Lets a stored answer expire. Then several users request the page at the same time. After that, a user
    /// who already has a version of the page requests it.
    async fn revalidation(&self) -> Vec<Exchange> {
        let mut exchanges = vec![self.plain(0).end().await];
        if self.cell.set.life > 0 {
            tokio::time::sleep(EXPIRY).await;
        }
        self.page.hold.send_replace(Hold::Head);
        let mut second = self.plain(1);
        tokio::select! {
            () = self.page.asked(2) => {}
            () = second.reaches(Progress::Head) => {}
        }
        let others = self.others(2, self.state.others + 1).await;
        self.release();
        exchanges.extend(ends([vec![second], others]).await);
        let has = |request: ClientRequest, person: &Person| match request.method {
            "GET" => request.with("If-None-Match", mark::tag(&person.user)),
            _ => request,
        };
        let last = self.start(self.state.others + 1, has);
        exchanges.push(last.end().await);
        exchanges
    }
}

async fn ends(running: [Vec<Running>; 2]) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    for one in running.into_iter().flatten() {
        exchanges.push(one.end().await);
    }
    exchanges
}
