//! A simulation of the complete system in one process and on one thread: clients, connections, decisions,
//! store, disk and origin, in simulated time. One run of the simulation is called a history. Its seed
//! determines everything that happens in it.
//!
//! The code between a client's bytes and the bytes on the disk is the code of the product. Only the sockets,
//! the disks and the threads are replaced. Connections to clients and to the origin are pipes in memory
//! ([`wire`]). A disk is a `MemDisk`. Tasks replace the threads of workers ([`workers`]), of the writers of
//! stores ([`stores`]) and of the sweeper, which completes purges ([`sweeper`]). The runtime's clock advances
//! only when no task is ready. Proxy, store and disk use this clock too. Six clients request pages with every
//! usual caching directive ([`content`]), through the forward proxy and from two sites ([`spot`]). Sometimes
//! they use HTTP/1.0. Meanwhile contents change, and an operator purges and reloads ([`operator`],
//! [`settings`]). Stores are added and removed ([`keeper`]). Connections break and the origin fails
//! ([`network`], [`origin`]). Operations of the disks fail, and the process is killed or loses power
//! ([`history`]). The seed decides which of these faults a history has ([`profile`]).
//!
//! Each answer has a field `X-Made` with five facts: the partition and URL, the version, the user, the
//! variant, and the number of the answer among the origin's answers. A 304 renews this number. The first four
//! facts determine the body. The module [`oracle`] checks that all answers obey these rules:
//!
//! **Owner.** No client gets an answer that was made for another user, partition, URL or variant. No client
//! gets a field that names another user. If a site requires a login, no client gets an answer without the
//! login. A login for Foxy itself does not reach the origin. An answer that is `private`, `no-store` or sets
//! a cookie goes only to the request that it was fetched for. Even another request of the same user does not
//! get this answer. An answer to a request with Authorization goes to other users only if this is permitted
//! (RFC 9111 section 3.5). Some pages have a different body for each user, and another body for requests
//! without a user. If such a page needs validation, has a heuristic lifetime or varies by cookie, no user
//! gets the body for requests without a user.
//!
//! **Freshness.** A request may get an answer that the origin gave before the request began. Such an answer
//! is younger than its lifetime, or its use after the lifetime is permitted. The page, the request or a
//! failure of the origin can permit this use. If an answer needs validation, or if the request does not
//! accept answers from a cache, the origin has confirmed the answer after the request began.
//!
//! **Removed.** After a purge is acknowledged, or a request that changes a page has succeeded, no later
//! request gets an answer that the origin gave before the purge or the change. After a client has received a
//! complete version, no later request gets an earlier version. The rule about versions does not apply if the
//! received answer is only for one logged-in user. Acknowledged purges remain effective after kills and power
//! failures. On disks without faults, other removals remain effective after kills. They also remain effective
//! after a power failure, if it occurs more than [`SYNCED`] after the removal. All rules also apply to
//! objects of a store that was absent for a while, or for a complete life of the process.
//!
//! **Settings.** If a request begins after every worker has new settings, only the new settings apply to its
//! answer. Reloads change three settings that affect answers: the removal of queries, a rule that makes a
//! field select variants, and a rule by which answers with cookies are shared.
//!
//! **Bytes.** A complete body or a part of a body has the bytes that its head announces. A body is complete,
//! or the client can notice that the body is truncated. A body is truncated only for one of these reasons: a
//! component failed, the missing bytes belong to a version that no longer exists, the client misbehaved, or
//! the client read a body of unknown length too slowly.
//!
//! **Liveness.** Every request ends. If network and origin work, the request gets its answer, even if the
//! disk fails. The only exception is a request whose process has ended meanwhile.
//!
//! **Leaks.** At the end no fetch runs, no request waits for a fetch, and the ledger (the account of memory)
//! is at zero.
//!
//! For some faults, the oracle must permit exceptions from its rules. [`profile`] excludes these faults from
//! some histories, and there the rules are checked without exceptions. The simulation does not cover:
//!
//! - TLS: a handshake uses random keys from the system, and the lengths of its messages depend on these keys.
//!   So a seed would not determine one history. The tests in `tests/it` cover TLS.
//! - Parent proxies, mirrors, build caches, compression, and passwords (passwords are checked on other
//!   threads).
//! - Workers that work at the same moment. Tests with threads cover this case.
//! - A random choice: if several branches of a `select!` without `biased` are ready at the same time, the
//!   runtime chooses one of them at random. The proxy has such a `select!` at the beginning of an upload and
//!   at the removal of a store, for example. The choice does not change an answer.
//!
//! `FOXY_SEED=N` runs one history. `FOXY_SEED=A..B` runs the histories from A to before B. `FOXY_TRACE=1`
//! prints the events. `FOXY_LONG=1` runs many more histories.

mod batch;
mod client;
mod clock;
mod content;
mod history;
mod keeper;
mod life;
mod message;
mod network;
mod operator;
mod oracle;
mod origin;
mod pipe;
mod profile;
mod request;
mod settings;
mod spot;
mod stores;
mod sweeper;
mod trace;
mod wire;
mod workers;
mod world;

pub(crate) use network::{dial, is_running};
pub(crate) use wire::Wire;

/// Age that the page without a lifetime has at the beginning of a history, in milliseconds.
const MODIFIED: u64 = 100_000;
/// Time for which stale answers are used while the origin fails, in milliseconds.
const ON_FAILURE: u64 = 20_000;
/// Time in milliseconds after which a power failure cannot undo a removal any more. It includes the sync
/// interval and the flushes.
const SYNCED: u64 = 6000;

use batch::Batch;
use history::History;

fn is_long() -> bool {
    std::env::var_os("FOXY_LONG").is_some()
}

/// Parses a text `N` or `A..B` to a range of seeds.
fn parsed(seeds: &str) -> Option<std::ops::Range<u64>> {
    if let Some((first, end)) = seeds.split_once("..") {
        return Some(first.parse().ok()?..end.parse().ok()?);
    }
    let seed: u64 = seeds.parse().ok()?;
    Some(seed..seed + 1)
}

/// Number of histories of the ordinary run.
const HISTORIES: u64 = 240;

/// Events that must happen in these histories, so that they test enough. The number is the smallest permitted
/// count of the event in all histories together.
const EVENTS: &[(&str, u64)] = &[
    ("own", HISTORIES),
    ("shared", HISTORIES),
    ("purges", HISTORIES),
    ("purges of many", HISTORIES),
    ("sweeps", 100),
    ("shared between workers", 500),
    ("joined between workers", 50),
    ("stores taken out", 50),
    ("stores drained", 10),
    ("stores put in", 50),
    ("stores back with contents", 20),
    ("stores grown", 10),
    ("stores not there", 10),
    ("disks dead", 10),
    ("reloads", 100),
    ("reloads that decide nothing", 20),
    ("shared cookies", 20),
    ("shared at a site", 100),
    ("shared by users", 100),
    ("without a login", 50),
    ("released from windows", 50),
];

#[test]
fn every_answer_of_every_history_is_right() {
    let seeds = match std::env::var("FOXY_SEED") {
        Ok(seeds) => parsed(&seeds).expect("FOXY_SEED is N or A..B"),
        Err(_) if is_long() => 0..20_000,
        Err(_) => 0..HISTORIES,
    };
    let many = seeds.end - seeds.start >= HISTORIES;
    let Batch { wrong, counts } = Batch::run(seeds);
    println!("{counts:?}");
    assert!(wrong.is_empty(), "wrong answers in histories {wrong:?}");
    if many {
        for (name, least) in EVENTS {
            let count = counts.get(name).copied().unwrap_or(0);
            assert!(count >= *least, "{name}: {count} times of {counts:?}");
        }
    }
}

#[test]
fn a_seed_gives_one_history() {
    for seed in 0..16 {
        let (first, second) = (History::run(seed), History::run(seed));
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
}
