//! The pages of the simulated origin: their caching directives, and their bodies. A body names the user for
//! whom it was made.

use foxy_base::hash64;

use super::spot::Spot;

/// The credentials on which a page depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Personal {
    /// All users get the same body.
    No,
    /// The body names the user in `Cookie`.
    Cookie,
    /// The body names the user in `Authorization`.
    Login,
    /// The body names the user in `Cookie` or `Authorization`.
    Both,
}

/// Permission to use a page after its lifetime (stale use).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// Stale use is never permitted.
    Never,
    /// For this time in milliseconds, stale use is permitted while the origin fails.
    OnFailure(u64),
    /// For this time in milliseconds, stale use is permitted while the origin fails, and while the origin is
    /// asked in the background.
    Meanwhile(u64),
}

/// A page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) name: &'static str,
    pub(super) control: &'static str,
    /// Additional fields of the answers with this page. `{user}` stands for the user who sends the request.
    pub(super) fields: &'static str,
    pub(super) personal: Personal,
    /// Lifetime in milliseconds. `None` means that each use needs the origin: a validation or a new answer.
    pub(super) lifetime: Option<u64>,
    pub(super) stale: Stale,
    /// True if no other request may have the answer, not even another request of the same user.
    pub(super) alone: bool,
    /// True if other users may have the answer to a request with Authorization.
    pub(super) open: bool,
    /// True if the field `X-Variant` of requests selects a variant of the page.
    pub(super) varies: bool,
    /// True if `X-Variant` selects a variant, but the page does not name this field in `Vary`.
    pub(super) silent: bool,
    pub(super) tag: Tag,
    /// Largest length of a body in bytes, without the text at its beginning ([`Made::identity`]).
    pub(super) size: u64,
}

impl Page {
    /// Returns true if bodies of the page are stored in several fragments.
    pub(super) const fn is_long(&self) -> bool {
        self.size > 10_000
    }
}

/// Validators of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    No,
    Strong,
    Weak,
    /// The page has `Last-Modified`, but no entity tag. It states no lifetime, so Foxy uses a heuristic
    /// lifetime.
    Modified,
}

/// Returns a page that all users may share for some time.
const fn shared(name: &'static str, control: &'static str, lifetime: u64) -> Page {
    Page {
        name,
        control,
        fields: "",
        personal: Personal::No,
        lifetime: Some(lifetime),
        stale: Stale::OnFailure(super::ON_FAILURE),
        alone: false,
        open: false,
        varies: false,
        silent: false,
        tag: Tag::Strong,
        size: 3000,
    }
}

/// Returns a page for which each use needs the origin: a validation or a new answer.
const fn checked(name: &'static str, control: &'static str, personal: Personal) -> Page {
    Page {
        personal,
        lifetime: None,
        stale: Stale::Never,
        ..shared(name, control, 0)
    }
}

/// All pages.
pub(super) const PAGES: &[Page] = &[
    Page {
        fields: "Surrogate-Key: news\r\n",
        ..shared("fresh", "max-age=20", 20_000)
    },
    shared("short", "max-age=2", 2000),
    Page {
        stale: Stale::Never,
        open: true,
        ..shared("strict", "max-age=3, must-revalidate", 3000)
    },
    checked("checked", "no-cache", Personal::No),
    Page {
        alone: true,
        ..checked("private", "private, max-age=30", Personal::Both)
    },
    Page {
        alone: true,
        ..checked("secret", "no-store, max-age=30", Personal::Both)
    },
    Page {
        personal: Personal::Both,
        tag: Tag::Modified,
        // The heuristic lifetime is a tenth of the time since the last change (see `World::say`).
        ..shared("guess", "", 0)
    },
    Page {
        personal: Personal::Login,
        ..shared("login", "max-age=30", 30_000)
    },
    Page {
        open: true,
        ..shared("open", "public, max-age=15", 15_000)
    },
    Page {
        fields: "Set-Cookie: session={user}\r\n",
        alone: true,
        ..shared("cookie", "max-age=30", 30_000)
    },
    Page {
        fields: "X-User: {user}\r\n",
        ..shared("listed", "max-age=20, private=\"x-user\"", 20_000)
    },
    Page {
        varies: true,
        fields: "Vary: X-Variant\r\nSurrogate-Key: news\r\n",
        ..shared("variant", "max-age=20", 20_000)
    },
    Page {
        varies: true,
        silent: true,
        ..shared("parted", "max-age=20", 20_000)
    },
    Page {
        personal: Personal::Cookie,
        fields: "Vary: Cookie\r\n",
        ..shared("by-cookie", "max-age=20", 20_000)
    },
    Page {
        stale: Stale::Meanwhile(10_000),
        ..shared("meanwhile", "max-age=2, stale-while-revalidate=10", 2000)
    },
    Page {
        stale: Stale::OnFailure(20_000),
        ..shared("if-error", "max-age=2, stale-if-error=20", 2000)
    },
    Page {
        size: 150_000,
        ..shared("large", "max-age=30", 30_000)
    },
    Page {
        size: 60_000,
        fields: "Surrogate-Key: news\r\n",
        ..shared("larger", "max-age=6", 6000)
    },
    Page {
        size: 20_000,
        tag: Tag::Weak,
        ..shared("weak", "max-age=10", 10_000)
    },
    Page {
        size: 20_000,
        tag: Tag::No,
        ..shared("untagged", "max-age=10", 10_000)
    },
    Page {
        stale: Stale::OnFailure(super::ON_FAILURE),
        ..checked("mine", "max-age=0", Personal::Cookie)
    },
    Page {
        stale: Stale::Never,
        open: true,
        ..shared("s-maxage", "s-maxage=5, max-age=60", 5000)
    },
    Page {
        size: 600_000,
        ..shared("huge", "max-age=20", 20_000)
    },
    Page {
        size: 400_000,
        fields: "Surrogate-Key: news\r\n",
        ..shared("flow", "max-age=3", 3000)
    },
];

/// Number of pages with long bodies, at the end of the list. They are for histories in which the windows of
/// fetches (the buffers for their readers) are small.
pub(super) const LONG_PAGES: usize = 2;

/// The facts in the field `X-Made` of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    pub(super) spot: Spot,
    pub(super) version: u64,
    /// The user for whom the answer was made. `-` means that all users get the same body, or that the request
    /// has no user in the field (`Cookie` or `Authorization`) on which the page depends.
    pub(super) user: String,
    pub(super) variant: String,
    /// Number of the answer among the answers of the origin.
    pub(super) serial: u64,
}

impl Made {
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.identity(), self.serial)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('|');
        let mut next = || parts.next();
        Some(Self {
            spot: Spot::of(next()?.parse().ok()?)?,
            version: next()?.parse().ok()?,
            user: next()?.to_owned(),
            variant: next()?.to_owned(),
            serial: next()?.parse().ok()?,
        })
    }

    /// Returns a text with all facts except the serial number. Answers with the same text have the same body.
    pub(super) fn identity(&self) -> String {
        let Self {
            spot,
            version,
            user,
            variant,
            ..
        } = self;
        let number = spot.number();
        format!("{number}|{version}|{user}|{variant}|")
    }

    pub(super) fn etag(&self) -> Option<String> {
        let weak = match self.spot.page().tag {
            Tag::No | Tag::Modified => return None,
            Tag::Strong => "",
            Tag::Weak => "W/",
        };
        let Self {
            version,
            user,
            variant,
            ..
        } = self;
        Some(format!("{weak}\"{version}.{user}.{variant}\""))
    }

    /// Returns the body, which begins with the identity.
    pub(super) fn body(&self) -> Vec<u8> {
        let mut body = self.identity().into_bytes();
        let mixed = hash64(17, &body);
        let most = self.spot.page().size;
        // The length is at least half of the maximum, so that long bodies have several fragments.
        let len = most / 2 + mixed % (most / 2);
        let (step, first) = ((mixed >> 20) % 250 + 1, mixed >> 40);
        let period: Vec<_> = (0..251).map(|i| ((first + i * step) % 251) as u8).collect();
        body.reserve(len as usize + period.len());
        let whole = body.len() + len as usize;
        while body.len() < whole {
            body.extend_from_slice(&period);
        }
        body.truncate(whole);
        body
    }
}
