//! Reloads of the program: by command and by signal, with valid and with invalid files.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// An origin whose answers are not stored.
fn origin(body: &'static str) -> String {
    crate::common::origin("Cache-Control: no-store\r\n", body).0
}

fn free() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

struct Foxy {
    child: Child,
    messages: BufReader<ChildStderr>,
    folder: tempfile::TempDir,
    admin: SocketAddr,
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command
        .env_clear()
        .env("XDG_CACHE_HOME", folder.path())
        .env("FOXY_LOG", "info");
    command
}

impl Foxy {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let admin = free();
        std::fs::write(folder.path().join("foxy.toml"), with_admin(config, admin)).unwrap();
        let mut command = program(&folder);
        command.arg("--config").arg(folder.path().join("foxy.toml"));
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let messages = BufReader::new(child.stderr.take().unwrap());
        let mut foxy = Self {
            child,
            messages,
            folder,
            admin,
        };
        foxy.until("foxy 0.");
        foxy
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("foxy.toml")
    }

    /// Reads messages until a message contains `text`.
    fn until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.messages.read_line(&mut line).unwrap() > 0, "no {text}");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Replaces the file and runs `foxy reload`. Returns true if it succeeded, and its output.
    fn reload(&self, config: &str) -> (bool, String) {
        std::fs::write(self.file(), with_admin(config, self.admin)).unwrap();
        let mut command = program(&self.folder);
        let output = command
            .args(["reload", "--admin", &self.admin.to_string()])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }
}

fn with_admin(config: &str, admin: SocketAddr) -> String {
    let memory = match config.contains("memory =") {
        true => "",
        false => "memory = \"64MiB\"\n",
    };
    format!("admin = \"{admin}\"\nworkers = 2\n{memory}{config}")
}

fn site(name: &str, listen: SocketAddr, origin: &str, more: &str) -> String {
    format!("[[site]]\nname = \"{name}\"\nlisten = \"{listen}\"\norigin = \"{origin}\"\n{more}\n")
}

/// Returns the body of the answer to a GET, or the status if it is not 200; `None` without a connection.
fn get(to: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let request = format!("GET /page HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    Some(if status == "200" { body } else { status }.to_owned())
}

#[test]
fn a_listener_that_was_just_closed_comes_back() {
    let origin = origin("a");
    let (one, two) = (free(), free());
    let alone = site("one", one, &origin, "");
    let both = format!("{alone}{}", site("two", two, &origin, ""));
    let foxy = Foxy::start(&both);
    // The first reload removes the site `two`. After this, a worker may still accept the connections in the
    // queue of the closed listener. Nevertheless, the second reload must be able to use the address of this
    // listener again.
    for _ in 0..5 {
        let (done, text) = foxy.reload(&alone);
        assert!(done, "{text}");
        let (done, text) = foxy.reload(&both);
        assert!(done, "{text}");
        assert_eq!(get(two).as_deref(), Some("a"));
    }
}

#[test]
fn another_memory_budget_holds_at_once() {
    let foxy = Foxy::start("");
    let budget = || {
        let stats = program(&foxy.folder)
            .args(["stats", "--json", "--admin", &foxy.admin.to_string()])
            .output()
            .unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
        ["budget_bytes", "ram_capacity_bytes"].map(|name| stats["memory"][name].as_u64().unwrap())
    };
    let before = budget();
    assert_eq!(before[0], 64 << 20);
    let (done, words) = foxy.reload("memory = \"256MiB\"\n");
    assert!(done && words.contains("memory"), "{words}");
    let more = budget();
    assert_eq!(more[0], 256 << 20);
    assert!(more[1] > 4 * before[1], "{before:?} {more:?}");
    let (done, words) = foxy.reload("");
    assert!(done, "{words}");
    assert_eq!(budget()[0], before[0]);
    assert!(budget()[1] <= before[1]);
}

#[test]
fn sites_come_change_and_go() {
    let (one, two) = (origin("one"), origin("two"));
    let (first, second) = (free(), free());
    let foxy = Foxy::start(&site("a", first, &one, ""));
    assert_eq!(get(first).as_deref(), Some("one"));

    // The reload changes the origin and adds a site.
    let both = format!(
        "{}{}",
        site("a", first, &two, ""),
        site("b", second, &one, "")
    );
    let (done, words) = foxy.reload(&both);
    assert!(
        done && words.contains("site a") && words.contains("site b"),
        "{words}"
    );
    assert_eq!(get(first).as_deref(), Some("two"));
    assert_eq!(get(second).as_deref(), Some("one"));

    let (done, words) = foxy.reload(&both);
    assert!(done && words.contains("nothing changed"), "{words}");

    // The reload withdraws access.
    let closed = "allow_clients = [\"192.0.2.1/32\"]";
    let (done, words) = foxy.reload(&format!(
        "{}{}",
        site("a", first, &two, closed),
        site("b", second, &one, "")
    ));
    assert!(done, "{words}");
    assert_eq!(get(first).as_deref(), Some("403"));

    // The reload removes the first site and its listener.
    let (done, words) = foxy.reload(&site("b", second, &one, ""));
    assert!(done && words.contains("site a"), "{words}");
    assert_eq!(get(second).as_deref(), Some("one"));
    let gone = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        TcpStream::connect(first).is_err()
    });
    assert!(gone, "the listener is still there");
}

#[test]
fn the_access_log_begins_changes_and_ends() {
    let one = origin("one");
    let first = free();
    let foxy = Foxy::start(&site("a", first, &one, ""));
    let path = |name: &str| foxy.folder.path().join(name);
    let config = |log: &str| format!("{}[log]\n{log}", site("a", first, &one, ""));
    let to =
        |name: &str, more: &str| config(&format!("access = \"{}\"\n{more}", path(name).display()));
    assert!(get(first).is_some());
    for text in [
        to("a.log", "format = \"json\"\nclients = \"network\""),
        to("b.log", ""),
        config("access = \"off\""),
    ] {
        let (done, words) = foxy.reload(&text);
        assert!(done && words.contains("access log"), "{words}");
        assert!(get(first).is_some());
    }
    let (done, words) = foxy.reload(&to("no/folder.log", ""));
    assert!(!done && words.contains("log.access"), "{words}");
    // A reload waits until all earlier lines of the log are written.
    let lines = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let (json, squid) = (lines("a.log"), lines("b.log"));
    assert!(
        json.contains("\"client\":\"127.0.0.0\"") && json.lines().count() == 1,
        "{json}"
    );
    assert!(
        squid.contains("TCP_") && squid.lines().count() == 1,
        "{squid}"
    );
}

#[test]
fn a_wrong_file_changes_nothing_and_is_explained() {
    let one = origin("one");
    let first = free();
    let foxy = Foxy::start(&site("a", first, &one, ""));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    for (wrong, word) in [
        ("nonsense = 1".to_owned(), "nonsense"),
        ("[[site]]\nname = \"x\"".to_owned(), "origin"),
        ("not toml at all [".to_owned(), "foxy.toml"),
        (site("a", foxy.admin, &one, ""), "in use"),
        (site("a", first, "gopher://x", ""), "gopher"),
        (
            format!("{}[timeouts]\nidle = \"never\"", site("a", first, &one, "")),
            "idle",
        ),
    ] {
        let (done, words) = foxy.reload(&wrong);
        assert!(!done, "{wrong}: {words}");
        assert!(words.contains(word), "{wrong}: {words}");
        assert!(words.contains("old one stays in use"), "{words}");
        assert_eq!(get(first).as_deref(), Some("one"), "{wrong}");
    }
    let _ = taken;
}

#[test]
fn a_signal_reloads_and_names_what_needs_a_restart() {
    let (one, two) = (origin("one"), origin("two"));
    let first = free();
    let mut foxy = Foxy::start(&site("a", first, &one, ""));
    let new = format!(
        "[scrub]\nrate = \"1MiB\"\n{}[timeouts]\nidle = \"9s\"\n",
        site("a", first, &two, "")
    );
    std::fs::write(foxy.file(), with_admin(&new, foxy.admin)).unwrap();
    let id = rustix::process::Pid::from_child(&foxy.child);
    rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    let line = foxy.until("reloaded");
    assert!(
        line.contains("site a") && line.contains("timeouts"),
        "{line}"
    );
    assert!(line.contains("restart: scrub"), "{line}");
    assert_eq!(get(first).as_deref(), Some("two"));
}
