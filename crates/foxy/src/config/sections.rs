//! Introductions to the sections of the configuration.

/// Introductions to the sections, for the reference (`docs/config.md`).
pub const SECTIONS: &[(&str, &str)] = &[
    (
        "",
        "These settings are at the top of the file, before any section.",
    ),
    (
        "store",
        "One `[[store]]` per disk. Without a `[[store]]`, Foxy makes a default store; `foxy serve --store off` uses only memory.",
    ),
    (
        "tls",
        "Certificates for `listen_tls` of the forward proxy, and of sites that have no certificates of their own. Foxy speaks TLS 1.2 and 1.3.",
    ),
    (
        "admission",
        "Choice of the storable objects that are written to disks. Without a write budget, all of them are written. Objects that are not written stay in memory while there is room.",
    ),
    (
        "scrub",
        "Foxy reads all stored contents again at intervals. It drops damaged records before a client requests them, and puts segments that cannot be read in quarantine.",
    ),
    (
        "site",
        "One `[[site]]` per reverse proxy, beside or instead of the forward proxy.",
    ),
    ("log", "Logs."),
    (
        "access",
        "Permissions of clients, and destinations that they may reach.",
    ),
    (
        "access_rule",
        "One `[[access_rule]]` for each decision about requests of clients. The first rule whose conditions all fit decides; if no rule fits, the request is permitted. Rules are applied before the cache is asked, so they also refuse requests for stored objects. Requests that `[access]` refuses stay refused.",
    ),
    (
        "login",
        "Users of the forward proxy and of sites. Without this section, no user can log in. Names in verified certificates of clients are users too.",
    ),
    (
        "parent",
        "One `[[parent]]` for each group of other proxies that the forward proxy asks in place of origins. These proxies resolve names. Foxy's guard against private addresses therefore checks only destinations that are given as addresses.",
    ),
    (
        "mirror",
        "One `[[mirror]]` for each registry of packages that is mirrored. Clients ask Foxy in place of the registry. See [mirrors.md](mirrors.md).",
    ),
    (
        "rate",
        "One `[[rate]]` for each limit. A request must be within every limit that applies to it. The first limit that it exceeds refuses it, and no limit counts a refused request. A reload sets all counts to zero.",
    ),
    ("limits", "Bounds on what one client can use."),
    (
        "timeouts",
        "Times for which Foxy waits for clients and origins. Each time is exact to about a quarter of a second.",
    ),
    ("upstream", "Connections to origins."),
    ("fill", "Fetches that serve many clients at once."),
    ("headers", "Fields that Foxy adds."),
    ("cache", "Choices that the caching rules leave open."),
    (
        "rule",
        "One `[[rule]]` per group of hosts and paths with settings of their own. Only the first rule that fits a request applies. Settings that the rule does not contain are as in `[cache]`. Lifetimes are set when an answer is stored or validated; objects that are stored already keep their lifetimes. In patterns `*` stands for any text.",
    ),
];
