//! The table of races. Each entry has the configuration before the change, the configuration after it, and
//! the answer that a later request must get.

use super::super::fixture::target;
use crate::kit::Target;

/// Ports, and the store's file.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) admin: u16,
    pub(super) site: u16,
    pub(super) forward: u16,
    pub(super) one: u16,
    pub(super) two: u16,
    pub(super) store: String,
}

/// The answer that a request after the change must get.
#[derive(Clone, Copy, Debug)]
pub(super) enum Late {
    /// The request is refused.
    Refused,
    /// The answer differs from the answer under the old rules, and its text contains this part.
    Has(&'static str),
}

/// A change of the configuration while a request is answered, or after its answer was stored.
pub(super) struct Race {
    pub(super) name: &'static str,
    /// A segment of the request's path.
    pub(super) path: &'static str,
    pub(super) before: fn(&Places) -> String,
    pub(super) after: fn(&Places) -> String,
    pub(super) late: Late,
    /// True if the change also applies to stored answers. Two kinds of changes apply only to new answers
    /// (docs/operating.md, "Reload"): a change of a site's origin, and a change of the request that the
    /// origin gets.
    pub(super) stored: bool,
    /// True if the request goes through the forward proxy.
    forward: bool,
}

impl Race {
    pub(super) fn target(&self, places: &Places) -> Target {
        match self.forward {
            true => Target {
                scheme: Some("http"),
                ..target(places.forward, &format!("127.0.0.1:{}", places.one))
            },
            false => target(places.site, "x.test"),
        }
    }
}

const fn race(
    name: &'static str,
    before: fn(&Places) -> String,
    after: fn(&Places) -> String,
    late: Late,
) -> Race {
    Race {
        name,
        path: "page",
        before,
        after,
        late,
        stored: true,
        forward: false,
    }
}

pub(super) const RACES: [Race; 12] = [
    race(
        "site renamed",
        plain,
        |p| all(p, &site(p, "b", p.one, "")),
        Late::Has("one "),
    ),
    race(
        "another site takes the listener",
        plain,
        |p| all(p, &site(p, "b", p.two, "")),
        Late::Has("two "),
    ),
    Race {
        stored: false,
        ..race(
            "origin changed",
            plain,
            |p| all(p, &site(p, "a", p.two, "")),
            Late::Has("two "),
        )
    },
    race(
        "clients of the site withdrawn",
        plain,
        |p| {
            all(
                p,
                &site(p, "a", p.one, "allow_clients = [\"192.0.2.0/24\"]\n"),
            )
        },
        Late::Refused,
    ),
    race(
        "refused by a rule",
        plain,
        |p| with(p, "[[access_rule]]\naction = \"deny\"\npath = \"/*\"\n"),
        Late::Refused,
    ),
    Race {
        forward: true,
        ..race(
            "clients of the forward proxy withdrawn",
            plain,
            |p| with(p, "[access]\nallow_clients = [\"192.0.2.0/24\"]\n"),
            Late::Refused,
        )
    },
    race(
        "bypass",
        plain,
        |p| with(p, "[[rule]]\nbypass = true\n"),
        Late::Has("kind=b"),
    ),
    race(
        "another field in the key",
        plain,
        |p| with(p, "[[rule]]\nkey_headers = [\"X-Kind\"]\n"),
        Late::Has("kind=b"),
    ),
    Race {
        path: "cookie",
        ..race(
            "cookies no longer shared",
            |p| with(p, "[[rule]]\nstore_set_cookie = true\n"),
            plain,
            Late::Has("kind=b"),
        )
    },
    race(
        "a host moves to another site",
        |p| hosts(p, "x.test", "y.test"),
        |p| hosts(p, "z.test", "x.test"),
        Late::Has("two "),
    ),
    Race {
        stored: false,
        ..race(
            "another path at the origin",
            |p| all(p, &site(p, "a", p.one, "rewrite = [\"prefix / /old\"]\n")),
            |p| all(p, &site(p, "a", p.one, "rewrite = [\"prefix / /new\"]\n")),
            Late::Has("one /new/"),
        )
    },
    Race {
        stored: false,
        ..race(
            "another field for the origin",
            |p| {
                all(
                    p,
                    &site(p, "a", p.one, "request_headers = [\"set X-Tenant: old\"]\n"),
                )
            },
            |p| {
                all(
                    p,
                    &site(p, "a", p.one, "request_headers = [\"set X-Tenant: new\"]\n"),
                )
            },
            Late::Has("tenant=new"),
        )
    },
];

fn all(places: &Places, rest: &str) -> String {
    let Places {
        admin,
        forward,
        store,
        ..
    } = places;
    format!(
        "admin = \"127.0.0.1:{admin}\"\nworkers = 2\nmemory = \"64MiB\"\nlisten = \"127.0.0.1:{forward}\"\n\
         [[store]]\npath = \"{store}\"\nsize = \"64MiB\"\n{rest}"
    )
}

fn site(places: &Places, name: &str, origin: u16, more: &str) -> String {
    let port = places.site;
    format!(
        "[[site]]\nname = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\n\
         origin = \"http://127.0.0.1:{origin}\"\n{more}"
    )
}

fn plain(places: &Places) -> String {
    all(places, &site(places, "a", places.one, ""))
}

fn with(places: &Places, more: &str) -> String {
    plain(places) + more
}

/// Configuration of two sites on one listener.
fn hosts(places: &Places, a: &str, b: &str) -> String {
    let first = site(places, "a", places.one, &format!("hosts = [\"{a}\"]\n"));
    let second = site(places, "b", places.two, &format!("hosts = [\"{b}\"]\n"));
    all(places, &(first + &second))
}
