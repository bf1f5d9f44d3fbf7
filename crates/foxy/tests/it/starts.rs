//! Tests of starts with a failing disk. Foxy must run without the disk and report the failure. Objects that
//! are purged while the disk is missing must stay purged when the disk returns.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::common::origin;

/// A folder with all files that the runs of one configuration share.
struct Place {
    folder: tempfile::TempDir,
    origin: String,
}

struct Foxy {
    child: Child,
    proxy: String,
    admin: String,
    headline: String,
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            origin: origin("Cache-Control: max-age=3600\r\n", "body").0,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, stores: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
        command
            .env_clear()
            .env("XDG_CACHE_HOME", self.path("state"));
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--origin", &self.origin, "--workers", "1"]);
        for store in stores {
            command.arg("--store").arg(self.path(store));
            command.args(["--store-size", "32MiB"]);
        }
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        command
    }

    fn start(&self, stores: &[&str]) -> Foxy {
        let mut child = self.command(stores).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut headline = String::new();
        for line in lines.by_ref() {
            headline = line.unwrap();
            if headline.starts_with("foxy ") {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        let address = |before: &str| {
            let rest = headline.split(before).nth(1);
            let rest = rest.unwrap_or_else(|| panic!("{before} in {headline}"));
            rest.split([' ', '/', ',']).next().unwrap().to_owned()
        };
        Foxy {
            child,
            proxy: address(" on "),
            admin: address("status on http://"),
            headline,
        }
    }

    /// Runs a start that must fail, and returns its messages.
    fn refused(&self, stores: &[&str], more: &str) -> String {
        let output = self.command(stores).arg(more).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Foxy {
    /// Returns the `Cache-Status` for a path.
    fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        let answer = ask(&self.proxy, &request);
        assert!(answer.ends_with("\r\n\r\nbody"), "{answer}");
        let status = answer
            .lines()
            .find(|l| l.to_lowercase().starts_with("cache-status"));
        status.unwrap().to_owned()
    }

    fn is_hit(&self, path: &str) -> bool {
        self.get(path).contains("hit")
    }

    fn admin(&self, path: &str) -> String {
        let host = &self.admin;
        ask(
            host,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        )
    }

    /// Returns the answer to a client's purge of a path.
    fn purge(&self, path: &str) -> String {
        let request = format!("PURGE {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        ask(&self.proxy, &request)
    }

    /// Ends Foxy in an orderly way, so that all contents are on its disk.
    fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

fn spoil(path: &Path, from: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, from).unwrap();
}

const STORES: [&str; 2] = ["a/store", "b/store"];
const KEYS: usize = 40;

/// Prepares two stores in separate folders, with contents on both. `break_it` gets the path of the second
/// store.
fn two(break_it: impl Fn(&Path)) -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("a")).unwrap();
    std::fs::create_dir(place.path("b")).unwrap();
    let foxy = place.start(&STORES);
    for n in 0..KEYS {
        foxy.get(&format!("/{n}"));
    }
    foxy.end();
    break_it(&place.path(STORES[1]));
    place
}

fn cut(path: &Path, len: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

/// Checks that Foxy serves the contents of the first store, and reports that the second store is absent.
fn costs_its_contents(what: &str, place: &Place) {
    let refused = place.refused(&STORES, "--strict");
    assert!(refused.contains("b/store"), "{what}: {refused}");
    let foxy = place.start(&STORES);
    let headline = &foxy.headline;
    assert!(headline.contains("WITHOUT"), "{what}: {headline}");
    let hits = (0..KEYS).filter(|n| foxy.is_hit(&format!("/{n}"))).count();
    assert!((5..KEYS).contains(&hits), "{what}: {hits} hits");
    assert!(foxy.is_hit("/3"), "{what}: it stores");
    let ready = foxy.admin("/readyz");
    assert!(ready.starts_with("HTTP/1.1 200"), "{what}: {ready}");
    let why = ready.contains("without") && ready.contains("b/store");
    assert!(why, "{what}: {ready}");
    let metrics = foxy.admin("/metrics");
    assert!(metrics.contains("\nfoxy_stores_absent 1\n"), "{what}");
    let stats = foxy.admin("/stats");
    assert!(!stats.contains("\"absent_stores\": []"), "{what}: {stats}");
    let list = foxy.admin("/stores");
    let (_, lines) = list.split_once("\r\n\r\n").unwrap();
    let lines: serde_json::Value = serde_json::from_str(lines).unwrap();
    let of = |name: &str| {
        let mut lines = lines.as_array().unwrap().iter();
        let found = lines.find(|line| line["path"].as_str().unwrap().ends_with(name));
        found.unwrap_or_else(|| panic!("{what}: {name} in {list}"))
    };
    let (good, bad) = (of(STORES[0]), of(STORES[1]));
    assert!(good["store"].is_number(), "{what}: {list}");
    assert_ne!(good["health"], "absent", "{what}: {list}");
    assert_eq!(
        (&bad["health"], &bad["store"]),
        (&json!("absent"), &json!(null))
    );
    assert!(
        bad["reason"].as_str().unwrap().contains(STORES[1]),
        "{what}: {list}"
    );
    assert!(foxy.purge("/3").starts_with("HTTP/1.1 200"), "{what}");
}

/// By default, the allocator requests huge pages when it maps memory for the first time. Foxy turns this
/// default off before `main` runs.
#[cfg(target_os = "linux")]
#[test]
fn no_memory_asks_for_huge_pages_after_a_start() {
    let place = Place::new();
    let foxy = place.start(&["store"]);
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", foxy.child.id())).unwrap();
    let flags = maps
        .lines()
        .filter_map(|line| line.strip_prefix("VmFlags:"));
    let mappings: Vec<_> = flags.collect();
    assert!(mappings.len() > 10);
    assert!(
        !mappings
            .iter()
            .any(|flags| flags.split(' ').any(|flag| flag == "hg"))
    );
}

#[test]
fn one_bad_store_of_two_costs_its_contents_and_not_the_service() {
    costs_its_contents("cut short", &two(|path| cut(path, 1 << 20)));
    costs_its_contents("wiped", &two(|path| spoil(path, 0, &[0; 8192])));
    let damaged = two(|path| {
        spoil(path, 30, &[0x5a; 64]);
        spoil(path, 4096 + 30, &[0x5a; 64]);
    });
    costs_its_contents("damaged", &damaged);
    let gone = two(|path| {
        let folder = path.parent().unwrap();
        std::fs::rename(folder, folder.with_extension("away")).unwrap();
    });
    costs_its_contents("its folder is gone", &gone);
    assert!(!gone.path("b").exists(), "no folder is made");
}

#[test]
fn another_programs_data_is_for_the_operator_to_decide() {
    let place = two(|path| spoil(path, 0, &[7; 1 << 20]));
    let refused = place.refused(&STORES, "--access-log=off");
    assert!(refused.contains("another program"), "{refused}");
}

/// In this test, the disk of the only store is not mounted. Its folder is empty, or does not exist.
#[test]
fn what_is_purged_while_a_disk_is_not_mounted_stays_purged() {
    for folder_stays in [false, true] {
        let place = Place::new();
        let (disk, away) = (place.path("disk"), place.path("away"));
        std::fs::create_dir(&disk).unwrap();
        let stores = ["disk/store"];
        let foxy = place.start(&stores);
        foxy.get("/a");
        foxy.get("/b");
        foxy.end();
        let foxy = place.start(&stores);
        assert!(foxy.is_hit("/a"), "it is on disk");
        foxy.end();
        std::fs::rename(&disk, &away).unwrap();
        if folder_stays {
            std::fs::create_dir(&disk).unwrap();
        }
        let foxy = place.start(&stores);
        assert_eq!(
            foxy.headline.contains("WITHOUT"),
            !folder_stays,
            "{}",
            foxy.headline
        );
        assert!(!foxy.is_hit("/a"));
        assert!(foxy.purge("/a").starts_with("HTTP/1.1 200"));
        foxy.end();
        if folder_stays {
            std::fs::remove_dir_all(&disk).unwrap();
        }
        assert!(!disk.exists());
        std::fs::rename(&away, &disk).unwrap();
        let foxy = place.start(&stores);
        assert!(!foxy.is_hit("/a"), "it was purged");
        assert!(!foxy.is_hit("/b"), "nobody knows");
        foxy.end();
        let foxy = place.start(&stores);
        assert!(foxy.is_hit("/b"), "from now on it is believed");
    }
}

/// In this test, a store is taken out, but its disk keeps its old contents. The only other store, which has
/// noted that the first store was taken out, is absent at the next start.
#[test]
fn a_store_that_was_taken_out_is_not_believed_without_the_store_that_noted_it() {
    let place = Place::new();
    let stores = ["one", "disk/other"];
    std::fs::create_dir(place.path("disk")).unwrap();
    let paths: Vec<_> = (0..40).map(|n| format!("/{n}")).collect();
    let hits = |foxy: &Foxy| paths.iter().filter(|path| foxy.is_hit(path)).count();
    let foxy = place.start(&stores);
    hits(&foxy);
    foxy.end();
    let before = std::fs::read(place.path("one")).unwrap();
    let foxy = place.start(&stores);
    assert_eq!(hits(&foxy), paths.len(), "both are on disk");
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.args(["store", "remove", "--now", "--admin", &foxy.admin]);
    let removed = command.arg(place.path("one")).output().unwrap();
    assert!(removed.status.success(), "{removed:?}");
    for path in &paths {
        assert!(foxy.purge(path).starts_with("HTTP/1.1 "));
    }
    foxy.end();
    std::fs::write(place.path("one"), before).unwrap();
    std::fs::rename(place.path("disk"), place.path("away")).unwrap();
    let foxy = place.start(&stores);
    assert!(foxy.headline.contains("WITHOUT"), "{}", foxy.headline);
    assert_eq!(hits(&foxy), 0, "all were purged");
}

/// In this test, neither the disk nor the state folder can record the purge. So Foxy must not answer that the
/// purge is durable.
#[test]
fn without_disk_and_state_folder_purges_are_not_acknowledged() {
    let place = Place::new();
    std::fs::write(place.path("state"), "a file in place of the folder").unwrap();
    let foxy = place.start(&["gone/store"]);
    foxy.get("/a");
    let answer = foxy.purge("/a");
    assert!(answer.starts_with("HTTP/1.1 5"), "{answer}");
    assert!(!foxy.is_hit("/a"));
}

/// A store that is longer than the system's limit on the length of files (`ulimit -f`) is refused with a
/// message. The signal for such a file must not end Foxy.
#[test]
fn a_limit_on_the_length_of_files_is_an_error_and_no_kill() {
    let place = Place::new();
    let direct = place.command(&["store"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 4096; exec \"$0\" \"$@\""]);
    limited.arg(direct.get_program()).args(direct.get_args());
    limited.env("XDG_CACHE_HOME", place.path("state"));
    let output = limited.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("more than it can hold"), "{said}");
}

/// If a size is not a multiple of the block size, Foxy accepts the size without a message. If the configured
/// size is larger than the store, a message names the command `foxy store grow`.
#[test]
fn the_size_of_a_store_is_spoken_of_only_when_it_is_another() {
    let place = Place::new();
    let starts = |size: &str| {
        let mut command = place.command(&[]);
        command.arg("--store").arg(place.path("store"));
        command.args(["--store-size", size]);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        for line in lines {
            let line = line.unwrap();
            let headline = line.starts_with("foxy ");
            said += &line;
            if headline {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        said
    };
    starts("20000001B");
    let same = starts("20000001B");
    assert!(!same.contains("keeps the size"), "{same}");
    let longer = starts("30000001B");
    assert!(longer.contains("foxy store grow"), "{longer}");
}
