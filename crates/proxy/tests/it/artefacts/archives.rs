//! Mirrors of Debian archives. A release file contains the digests of a set of index files (lists). A client
//! must not get index files of different sets.

use std::sync::Arc;

use foxy_base::WallTime;
use foxy_proxy::Event;

use super::{Registry, SIZES, download, file, hex};
use crate::common::{Answer, Foxy, NOON, Origin, Stored, until};
use crate::mirrors::{config, get, mirror, start};

const RELEASE: &str = "/apt/debian/dists/stable/InRelease";
const LIST: &str = "/apt/debian/dists/stable/main/binary-amd64/Packages.xz";

/// State of an archive without validators. The archive may be in the middle of an update.
struct State {
    /// The list whose digest the release file contains.
    named: Vec<u8>,
    /// The list that the archive sends.
    sent: Vec<u8>,
    fails: bool,
    /// While this is true, the first answer with a list stops in the middle.
    held: bool,
    /// Numbers of requests for the release file and for the list.
    asked: (usize, usize),
}

type Archive = Registry<State>;

impl Archive {
    fn with(list: &[u8]) -> Self {
        Self::of(State {
            named: list.to_vec(),
            sent: list.to_vec(),
            fails: false,
            held: false,
            asked: (0, 0),
        })
    }

    fn update(&self, list: &[u8]) {
        self.set(|state| (state.named, state.sent) = (list.to_vec(), list.to_vec()));
    }

    fn requests(&self) -> (usize, usize) {
        self.0.lock().unwrap().asked
    }

    fn serve(&self) -> Origin {
        let shared = Arc::clone(&self.0);
        Origin::start(move |asked| {
            let mut state = shared.lock().unwrap();
            if state.fails {
                asked.reply("503 Service Unavailable", "", "");
            } else if asked.path().ends_with("/InRelease") {
                state.asked.0 += 1;
                asked.reply("200 OK", "", release(&state.named));
            } else {
                state.asked.1 += 1;
                let (list, held) = (state.sent.clone(), state.held && state.asked.1 == 1);
                drop(state);
                let half = if held { list.len() / 2 } else { list.len() };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", list.len());
                asked.raw([head.as_bytes(), &list[..half]].concat());
                until(|| !held || !shared.lock().unwrap().held);
                asked.raw(&list[half..]);
            }
            true
        })
    }
}

fn release(list: &[u8]) -> String {
    let (digest, size) = (hex(list), list.len());
    format!("Suite: stable\nSHA256:\n {digest} {size} main/binary-amd64/Packages.xz\n")
}

fn gets(foxy: &Foxy, path: &str, expected: &[u8]) -> Answer {
    let answer = get(foxy, path, "");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert!(answer.body == expected, "{path}: other bytes");
    answer
}

/// Checks that the client gets the release file and the list that belongs to it.
fn gets_set(foxy: &Foxy, list: &[u8]) {
    gets(foxy, RELEASE, release(list).as_bytes());
    gets(foxy, LIST, list);
}

#[test]
fn a_new_release_file_invalidates_the_lists_before_it() {
    let (old, new) = (file(1, 2000), file(2, 2000));
    let archive = Archive::with(&old);
    let origin = archive.serve();
    let foxy = start("apt", &origin);
    for _ in 0..2 {
        gets_set(&foxy, &old);
    }
    assert_eq!(
        archive.requests(),
        (2, 1),
        "the list is fresh, the release file is not"
    );
    archive.update(&new);
    // No time has passed, so the old list is still fresh. But Foxy must not send it, because it belongs to
    // the old release file.
    gets_set(&foxy, &new);
    foxy.counts(Event::MirrorReplaced, 1);
    foxy.counts(Event::MirrorMismatch, 0);
}

/// One client still receives its list when the archive changes and another client sends requests.
#[test]
fn clients_on_both_sides_of_an_update_get_the_list_of_their_own_release_file() {
    for size in SIZES {
        let (old, new) = (file(9, size), file(10, size));
        let archive = Archive::with(&old);
        archive.set(|state| state.held = true);
        let origin = archive.serve();
        let foxy = start("apt", &origin);
        std::thread::scope(|scope| {
            gets(&foxy, RELEASE, release(&old).as_bytes());
            let before = scope.spawn(|| download(&foxy, LIST));
            until(|| archive.requests().1 == 1);
            archive.update(&new);
            gets_set(&foxy, &new);
            archive.set(|state| state.held = false);
            assert!(before.join().unwrap() == (old.clone(), true), "{size}");
        });
        for _ in 0..2 {
            gets_set(&foxy, &new);
        }
        foxy.counts(Event::MirrorMismatch, 0);
    }
}

#[test]
fn a_list_that_the_release_file_does_not_name_reaches_nobody_whole() {
    let (old, new) = (file(3, 2000), file(4, 2000));
    let archive = Archive::with(&old);
    let origin = archive.serve();
    let foxy = start("apt", &origin);
    gets(&foxy, RELEASE, release(&old).as_bytes());
    archive.set(|state| state.sent.clone_from(&new));
    assert!(
        !download(&foxy, LIST).1,
        "the archive is in the middle of an update"
    );
    foxy.counts(Event::MirrorMismatch, 1);
    archive.set(|state| state.named.clone_from(&new));
    gets_set(&foxy, &new);
}

#[test]
fn without_the_archive_the_last_set_is_served() {
    let (old, new) = (file(5, 2000), file(6, 2000));
    let archive = Archive::with(&old);
    let origin = archive.serve();
    let started = || config(vec![mirror("apt", &origin)]);
    let first = Stored::start_as(started(), 2 << 20, 64 << 20, 1);
    gets_set(&first.foxy, &old);
    first.settle(0);
    let later = WallTime::from_secs(NOON + 3600);
    archive.set(|state| state.fails = true);
    first.foxy.clock.set_wall(later);
    gets_set(&first.foxy, &old);
    // A new process has not read a release file since its start. It too must not send a list that belongs to
    // another release file.
    let disk = Arc::clone(&first.disk);
    drop(first);
    let again = Stored::on(disk, started(), 2 << 20, 1);
    again.foxy.clock.set_wall(later);
    gets_set(&again.foxy, &old);
    archive.set(|state| {
        state.fails = false;
        state.sent.clone_from(&new);
    });
    assert!(!download(&again.foxy, LIST).1, "a list of another set");
    again.foxy.counts(Event::MirrorMismatch, 1);
}

#[test]
fn the_digest_in_a_name_is_compared() {
    let (right, wrong) = (file(7, 2000), file(8, 2000));
    let archive = Archive::with(&wrong);
    let origin = archive.serve();
    let foxy = start("apt", &origin);
    let digest = hex(&right);
    let path = format!("/apt/debian/dists/stable/main/binary-amd64/by-hash/SHA256/{digest}");
    assert!(
        !download(&foxy, &path).1,
        "no release file has named it, its name has"
    );
    foxy.counts(Event::MirrorMismatch, 1);
    archive.set(|state| state.sent.clone_from(&right));
    for _ in 0..2 {
        gets(&foxy, &path, &right);
    }
    assert_eq!(archive.requests(), (0, 2));
}
