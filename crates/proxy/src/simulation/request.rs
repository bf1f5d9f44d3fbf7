//! The requests of the simulated clients.

use std::fmt::Write as _;

use foxy_base::Rng;

use super::spot::{Part, Spot};
use super::world::{User, World};

/// Names of users. The name of a user is also the user's credential.
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
    /// The spot (partition, page and query) as the client requests it. Settings of Foxy may remove the query.
    pub(super) spot: Spot,
    pub(super) method: &'static str,
    /// The user whom the origin sees, by the field `Cookie` or `Authorization`.
    pub(super) user: User,
    /// The user who logs in to Foxy with this request.
    pub(super) login: Option<&'static str>,
    pub(super) variant: &'static str,
    pub(super) range: Option<(u64, u64)>,
    /// The entity tag in If-None-Match.
    pub(super) known: Option<String>,
    pub(super) control: Control,
    /// True if the client uses HTTP/1.0. Then the end of the connection may mark the end of the body.
    pub(super) old: bool,
    /// Time at which the request began, in milliseconds of the history.
    pub(super) started: u64,
    /// Number of the life of the process in which the request began.
    pub(super) life: u32,
    /// True if the client closes its connection, or its sending side, before the answer is complete. Such a
    /// client may get no complete answer.
    pub(super) rude: bool,
}

impl Asked {
    /// Makes a random request for this spot. `known` is the spot and the tag of an answer that the client
    /// has.
    pub(super) fn draw(
        world: &World,
        rng: &mut Rng,
        spot: Spot,
        known: Option<(Spot, String)>,
    ) -> Self {
        let part = spot.part;
        let method = match rng.below(25) {
            0 => "POST",
            1 | 2 => "HEAD",
            _ => "GET",
        };
        let name = USERS[rng.below(4) as usize];
        let mut user = match rng.below(5) {
            0 | 1 => User::Nobody,
            2 | 3 => User::Cookie(name),
            _ => User::Login(name),
        };
        let login = (part == Part::Users && rng.chance(0.85)).then_some(name);
        if part == Part::Users && matches!(user, User::Login(_)) {
            user = User::Nobody;
        }
        let page = spot.page();
        let range = (page.is_long() && method == "GET" && rng.chance(0.4)).then(|| {
            let from = rng.below(page.size);
            (from, from + rng.below(page.size.max(40_000)))
        });
        let control = match rng.below(30) {
            0 => Control::NoCache,
            1 => Control::Fresh,
            2 => Control::MaxStale,
            3 => Control::OnlyIfCached,
            4 => Control::NoStore,
            _ => Control::None,
        };
        let known = known.filter(|(of, _)| *of == spot && rng.chance(0.3));
        Self {
            number: world.next_request(),
            spot,
            method,
            user,
            login,
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

    /// Returns the cache directive, if the partition obeys it.
    pub(super) fn obeyed(&self) -> Control {
        match self.spot.part.obeys() {
            true => self.control,
            false => Control::None,
        }
    }

    /// Returns true if the client must log in to Foxy, and this request contains no login.
    pub(super) fn lacks_login(&self) -> bool {
        self.spot.part == Part::Users && self.login.is_none()
    }

    /// Returns the text of the request on the wire.
    pub(super) fn text(&self) -> String {
        let asked = self;
        let (part, number) = (asked.spot.part, asked.number);
        let (method, minor) = (asked.method, u8::from(!asked.old));
        let target = match part {
            Part::Forward => asked.spot.url(),
            _ => asked.spot.target(),
        };
        let (host, name) = (part.host(), part.name());
        let mut text = format!(
            "{method} {target} HTTP/1.{minor}\r\nHost: {host}\r\nX-Request: {number}\r\nX-Part: {name}\r\n"
        );
        if let Some(login) = asked.login {
            let _ = write!(text, "Authorization: Bearer {login}\r\n");
        }
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
