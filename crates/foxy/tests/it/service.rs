//! Foxy under a service manager: messages to the manager, passed sockets, signals, and no home folder.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// A separate folder, in which a Foxy keeps all its files.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, listen: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
        command.env_clear().env("STATE_DIRECTORY", self.0.path());
        command.args(["--listen", listen, "--admin", "127.0.0.1:0"]);
        command.args(["--workers", "2", "--store-size", "32MiB"]);
        command.arg("--access-log").arg(self.path("access.log"));
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        command
    }
}

/// A running Foxy and its messages.
struct Foxy {
    child: Child,
    said: std::io::Lines<BufReader<ChildStderr>>,
    proxy: SocketAddr,
    headline: String,
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Foxy {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let headline = until(&mut said, "foxy ");
        let proxy = headline.split("forward proxy on ").nth(1).unwrap();
        Self {
            proxy: proxy.split(',').next().unwrap().parse().unwrap(),
            child,
            said,
            headline,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads messages up to a line with this text.
    fn says(&mut self, text: &str) -> String {
        until(&mut self.said, text)
    }

    /// Returns the status of a request that Foxy answers without an origin.
    fn status(&self) -> String {
        let mut stream = TcpStream::connect(self.proxy).unwrap();
        let request =
            "GET http://127.0.0.1:25/ HTTP/1.1\r\nHost: 127.0.0.1:25\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }

    fn end(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

fn until(lines: &mut std::io::Lines<BufReader<ChildStderr>>, text: &str) -> String {
    let mut before = String::new();
    for line in lines {
        let line = line.unwrap();
        if line.contains(text) {
            return line;
        }
        before += &line;
        before.push('\n');
    }
    panic!("it ended without `{text}`; it said:\n{before}");
}

#[test]
fn the_service_manager_hears_of_the_start_and_of_the_end() {
    let place = Place::new();
    let manager = UnixDatagram::bind(place.path("notify")).unwrap();
    let mut command = place.command("127.0.0.1:0");
    command.env("NOTIFY_SOCKET", place.path("notify"));
    let hears = || {
        let mut text = [0; 100];
        let len = manager.recv(&mut text).unwrap();
        String::from_utf8(text[..len].to_vec()).unwrap()
    };
    let mut foxy = Foxy::start(command);
    assert_eq!(hears(), "READY=1");
    assert_eq!(foxy.status(), "403", "it serves when it says so");
    foxy.signal(Signal::TERM);
    assert_eq!(hears(), "STOPPING=1");
    assert!(foxy.child.wait().unwrap().success());
}

#[test]
fn it_serves_on_when_nobody_reads_its_messages() {
    let place = Place::new();
    let manager = UnixDatagram::bind(place.path("notify")).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut command = place.command("127.0.0.1:0");
    command.env("NOTIFY_SOCKET", place.path("notify"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = command.stderr(writer).spawn().unwrap();
    let mut text = [0; 100];
    let len = manager
        .recv(&mut text)
        .expect("it ended before it was ready");
    assert_eq!(&text[..len], b"READY=1");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Returns a command that starts Foxy with `socket` as its first passed file, as a service manager does.
fn with_passed(socket: OwnedFd, foxy: &Command) -> Command {
    let mut command = Command::new("sh");
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"";
    command.args(["-c", script]);
    command.arg(foxy.get_program()).args(foxy.get_args());
    for (name, value) in foxy.get_envs() {
        command.env(name, value.unwrap());
    }
    command.stdin(Stdio::from(socket));
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    command
}

#[test]
fn a_passed_socket_is_used_and_keeps_connections_over_a_restart() {
    let place = Place::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let command = place.command(&address.to_string());
    let start = || Foxy::start(with_passed(socket.try_clone().unwrap().into(), &command));
    let foxy = start();
    assert_eq!(foxy.proxy, address);
    // One socket was passed for two workers. Each connection is accepted by only one of them.
    for _ in 0..20 {
        assert_eq!(foxy.status(), "403");
    }
    foxy.end();
    // Foxy has ended. Only the service manager has the socket open now, so the connection waits in the queue.
    let mut early = TcpStream::connect(address).unwrap();
    early
        .write_all(b"GET http://127.0.0.1:25/ HTTP/1.0\r\n\r\n")
        .unwrap();
    let foxy = start();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 403 "), "{answer}");
    foxy.end();
}

#[test]
fn a_passed_socket_that_is_not_configured_is_an_error() {
    let place = Place::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let command = place.command("127.0.0.1:0");
    let refused = |socket: OwnedFd| {
        let output = with_passed(socket, &command).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(socket.into());
    assert!(
        said.contains(&address) && said.contains("ListenStream="),
        "{said}"
    );
    let said = refused(std::fs::File::open("/dev/null").unwrap().into());
    assert!(said.contains("socket of the service manager"), "{said}");
}

#[test]
fn sigterm_says_what_it_does() {
    let place = Place::new();
    let mut foxy = Foxy::start(place.command("127.0.0.1:0"));
    let idle = TcpStream::connect(foxy.proxy).unwrap();
    // Connections are accepted in order. So the idle connection is counted when the request on the second
    // connection is answered.
    foxy.status();
    foxy.signal(Signal::TERM);
    let said = foxy.says("SIGTERM");
    assert!(said.contains("open connections have 20s"), "{said}");
    foxy.says("everything is written");
    drop(idle);
    assert!(foxy.child.wait().unwrap().success());
}

#[test]
fn sigusr1_opens_the_log_anew() {
    let place = Place::new();
    let mut foxy = Foxy::start(place.command("127.0.0.1:0"));
    foxy.status();
    let (log, moved) = (place.path("access.log"), place.path("access.log.1"));
    std::fs::rename(&log, &moved).unwrap();
    foxy.signal(Signal::USR1);
    foxy.says("SIGUSR1: the access log is opened anew");
    foxy.status();
    foxy.end();
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
    assert_eq!(lines(&log) + lines(&moved), 2);
    assert!(lines(&log) >= 1, "the new file is in use");
}

#[test]
fn other_signals_do_no_harm() {
    let place = Place::new();
    let mut foxy = Foxy::start(place.command("127.0.0.1:0"));
    for (signal, words) in [
        (Signal::QUIT, "SIGQUIT has no meaning"),
        (Signal::USR2, "SIGUSR2 has no meaning"),
        (Signal::HUP, "reloaded"),
    ] {
        foxy.signal(signal);
        foxy.says(words);
        assert_eq!(foxy.status(), "403");
    }
    // SIGPIPE, the signal for a pipe without a reader, must not end the proxy.
    foxy.signal(Signal::PIPE);
    assert_eq!(foxy.status(), "403");
    foxy.end();
}

#[test]
fn the_folder_of_the_service_is_used_without_a_home() {
    let place = Place::new();
    let foxy = Foxy::start(place.command("127.0.0.1:0"));
    assert!(place.path("store").is_file(), "{}", foxy.headline);
    assert!(place.path("admin-token").is_file());
    foxy.end();
}
