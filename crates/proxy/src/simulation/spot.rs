//! A spot is the target of a simulated request: a page of a partition, with or without a query.

use foxy_base::Rng;

use super::content::{PAGES, Page};
use super::profile::Profile;

/// A partition of the cache: the forward proxy or a site. Some partitions use the same URLs at the origin.
/// Then only the name of the partition distinguishes the keys of their objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Forward,
    /// A site with the same caching rules as the forward proxy.
    Plain,
    /// A site whose users log in at Foxy. It ignores queries, and cache directives of requests.
    Users,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Forward, Self::Plain, Self::Users];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Plain => "plain",
            Self::Users => "users",
        }
    }

    /// Returns the host in the requests of the partition's clients.
    pub(super) const fn host(self) -> &'static str {
        match self {
            Self::Forward => "origin.sim",
            Self::Plain => "plain.sim",
            Self::Users => "users.sim",
        }
    }

    /// Returns the host that the keys of the partition's objects contain, and that the origin receives.
    pub(super) const fn origin(self) -> &'static str {
        match self {
            Self::Plain => Self::Forward.host(),
            own => own.host(),
        }
    }

    /// Returns the index of the partition's listener among the listeners of a worker.
    pub(super) const fn listener(self) -> usize {
        match self {
            Self::Forward => 0,
            Self::Plain | Self::Users => 1,
        }
    }

    /// Returns true if the partition obeys cache directives of requests.
    pub(super) const fn obeys(self) -> bool {
        !matches!(self, Self::Users)
    }
}

/// Number of values of a spot's `query`. The value 0 means no query.
const QUERIES: u8 = 3;

/// A page of one partition, with its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) part: Part,
    pub(super) page: usize,
    pub(super) query: u8,
}

impl Spot {
    /// The number of spots.
    pub(super) const ALL: usize = Part::ALL.len() * PAGES.len() * QUERIES as usize;

    /// Chooses a random page of this partition. Few of the chosen pages have a query.
    pub(super) fn draw(profile: &Profile, part: Part, rng: &mut Rng) -> Self {
        let page = profile.page(rng);
        let query = match rng.below(10) {
            0 => 1 + rng.below(2) as u8,
            _ => 0,
        };
        Self { part, page, query }
    }

    /// Returns the spot with this number.
    pub(super) fn of(number: usize) -> Option<Self> {
        let (rest, query) = (number / usize::from(QUERIES), number % usize::from(QUERIES));
        Some(Self {
            part: *Part::ALL.get(rest / PAGES.len())?,
            page: rest % PAGES.len(),
            query: query as u8,
        })
    }

    pub(super) fn number(self) -> usize {
        let part = Part::ALL.iter().position(|part| *part == self.part);
        let page = part.unwrap_or_default() * PAGES.len() + self.page;
        page * usize::from(QUERIES) + usize::from(self.query)
    }

    pub(super) fn page(self) -> &'static Page {
        &PAGES[self.page]
    }

    /// Returns the same page without its query.
    pub(super) const fn plain(self) -> Self {
        Self { query: 0, ..self }
    }

    /// Returns the spot with this path and query.
    pub(super) fn at(part: Part, target: &str) -> Option<Self> {
        let (path, query) = match target.split_once("?tag=") {
            Some((path, query)) => (path, query.parse().ok()?),
            None => (target, 0),
        };
        let name = path.strip_prefix('/')?;
        let page = PAGES.iter().position(|page| page.name == name)?;
        (query < QUERIES).then_some(Self { part, page, query })
    }

    /// Returns path and query.
    pub(super) fn target(self) -> String {
        let name = self.page().name;
        match self.query {
            0 => format!("/{name}"),
            query => format!("/{name}?tag={query}"),
        }
    }

    /// Returns the URL that the keys of the spot's objects contain.
    pub(super) fn url(self) -> String {
        format!("http://{}{}", self.part.origin(), self.target())
    }
}
