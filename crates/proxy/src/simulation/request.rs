//! Requests of clients.

use std::fmt::Write as _;

use foxy_base::Rng;

use super::content::PAGES;
use super::world::{User, World};

/// Names of users, which are their credentials too.
pub(super) const USERS: [&str; 4] = ["alice", "bob", "carol", "dave"];

/// Cache directive of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    None,
    NoCache,
    Fresh,
    MaxStale,
    OnlyIfCached,
    NoStore,
}

impl Control {
    fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::NoCache => "Cache-Control: no-cache\r\n",
            Self::Fresh => "Cache-Control: max-age=0\r\n",
            Self::MaxStale => "Cache-Control: max-stale=5\r\n",
            Self::OnlyIfCached => "Cache-Control: only-if-cached\r\n",
            Self::NoStore => "Cache-Control: no-store\r\n",
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) page: usize,
    pub(super) method: &'static str,
    pub(super) user: User,
    pub(super) variant: &'static str,
    pub(super) range: Option<(u64, u64)>,
    /// The entity tag in If-None-Match.
    pub(super) known: Option<String>,
    pub(super) control: Control,
    /// Its client speaks HTTP/1.0: the end of the connection may be the end of the body.
    pub(super) old: bool,
    /// In milliseconds of the history.
    pub(super) started: u64,
    /// The process's life in which it began.
    pub(super) life: u32,
    /// The client does something that can cost it its answer.
    pub(super) rude: bool,
}

impl Asked {
    /// A request by chance; `known`: the page and tag of an answer that its client has.
    pub(super) fn draw(world: &World, rng: &mut Rng, known: Option<(usize, String)>) -> Self {
        let hot = rng.chance(0.5);
        let page = rng.below(if hot { 6 } else { PAGES.len() as u64 }) as usize;
        // Another part of the list is hot in each history.
        let page = (page + if hot { world.profile.hot } else { 0 }) % PAGES.len();
        let method = match rng.below(25) {
            0 => "POST",
            1 | 2 => "HEAD",
            _ => "GET",
        };
        let name = USERS[rng.below(4) as usize];
        let user = match rng.below(5) {
            0 | 1 => User::Nobody,
            2 | 3 => User::Cookie(name),
            _ => User::Login(name),
        };
        let long = PAGES[page].is_long();
        let range = (long && method == "GET" && rng.chance(0.4)).then(|| {
            let from = rng.below(PAGES[page].size);
            (from, from + rng.below(40_000))
        });
        let control = match rng.below(30) {
            0 => Control::NoCache,
            1 => Control::Fresh,
            2 => Control::MaxStale,
            3 => Control::OnlyIfCached,
            4 => Control::NoStore,
            _ => Control::None,
        };
        let known = known.filter(|(of, _)| *of == page && rng.chance(0.3));
        Self {
            number: world.next_request(),
            page,
            method,
            user,
            variant: ["none", "a", "b"][rng.below(3) as usize],
            range,
            known: known.map(|(_, tag)| tag).filter(|_| range.is_none()),
            control,
            old: rng.chance(0.08),
            started: world.trace.now(),
            life: world.life.get(),
            rude: rng.chance(0.08),
        }
    }

    /// The request on the wire.
    pub(super) fn text(&self) -> String {
        let asked = self;
        let (name, number) = (PAGES[asked.page].name, asked.number);
        let (method, minor) = (asked.method, u8::from(!asked.old));
        let mut text = format!(
            "{method} http://origin.sim/{name} HTTP/1.{minor}\r\nHost: origin.sim\r\nX-Request: {number}\r\n"
        );
        text.push_str(asked.control.text());
        match asked.user {
            User::Nobody => Ok(()),
            User::Cookie(user) => write!(text, "Cookie: {user}\r\n"),
            User::Login(user) => write!(text, "Authorization: {user}\r\n"),
        }
        .unwrap_or_default();
        if asked.variant != "none" {
            let _ = write!(text, "X-Variant: {}\r\n", asked.variant);
        }
        if let Some((from, to)) = asked.range {
            let _ = write!(text, "Range: bytes={from}-{to}\r\n");
        }
        if let Some(known) = &asked.known {
            let _ = write!(text, "If-None-Match: {known}\r\n");
        }
        text.push_str(match asked.method {
            "POST" => "Content-Length: 6\r\n\r\nchange",
            _ => "\r\n",
        });
        text
    }
}
