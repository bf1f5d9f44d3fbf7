//! Introductions to the sections of the configuration.

/// Introductions to the sections, for the reference.
pub const SECTIONS: &[(&str, &str)] = &[
    ("", "Top of the file, before any section."),
    (
        "store",
        "One `[[store]]` per disk. Without any, Foxy makes one; `foxy serve --store off` runs from memory alone.",
    ),
    (
        "tls",
        "Certificates for `listen_tls`, for the forward proxy and for sites that have none of their own. TLS 1.2 and 1.3 are spoken.",
    ),
    (
        "admission",
        "Which of the objects that may be kept go to disks. All of them do, unless there is a write budget; what does not is kept in memory for as long as there is room.",
    ),
    (
        "scrub",
        "All that is stored is read again every now and then: what has gone bad is dropped before somebody asks for it, and regions that cannot be read are put in quarantine.",
    ),
    (
        "site",
        "One `[[site]]` per reverse proxy, beside or instead of the forward proxy.",
    ),
    ("log", "What is written down."),
    ("access", "Who may do what."),
    (
        "access_rule",
        "One `[[access_rule]]` for each decision about who may ask for what. The first rule whose conditions all fit decides; without one the request goes on. Requests are judged before the cache is asked, so that a denial precedes a hit. What `[access]` refuses stays refused.",
    ),
    (
        "login",
        "Users of the proxy, and of sites. Without this section nobody logs in. Names in verified certificates of clients are users too.",
    ),
    (
        "parent",
        "One `[[parent]]` for each group of other proxies that the forward proxy asks in place of origins. They resolve names: the guard of private addresses judges only destinations that are addresses.",
    ),
    (
        "mirror",
        "One `[[mirror]]` for each registry of packages that is mirrored: clients ask Foxy in place of the registry. See [mirrors.md](mirrors.md).",
    ),
    (
        "rate",
        "One `[[rate]]` for each limit. Every limit that is for a request counts it; the first that it exceeds refuses it. A reload begins all counts anew.",
    ),
    ("limits", "Bounds on what one client can use."),
    (
        "timeouts",
        "How long Foxy waits for others. Each is exact to about a quarter of a second.",
    ),
    ("upstream", "Connections to origins."),
    ("fill", "Fetches that serve many clients at once."),
    ("headers", "Fields that Foxy adds."),
    ("cache", "Where the caching rules leave a choice."),
    (
        "rule",
        "One `[[rule]]` per group of hosts and paths that is treated otherwise. The first rule that fits a request decides alone; what it does not say is as in `[cache]`. Lifetimes count from when an answer is stored or validated: what is stored already keeps its own. In patterns `*` stands for anything.",
    ),
];
