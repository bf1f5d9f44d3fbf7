//! Servers as child processes. The module starts a server, waits until it accepts connections, and kills it
//! at the end of the measurement.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

/// Number of attempts to connect to a server, 20 ms apart: 60 s in total.
const TRIES: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(20);

/// A program and its arguments.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables that the program gets in addition to the variables of this process.
    pub env: Vec<(&'static str, String)>,
}

impl Launch {
    /// A program with these arguments.
    #[must_use]
    pub fn new<S: Into<String>>(program: PathBuf, args: impl IntoIterator<Item = S>) -> Self {
        Self {
            program,
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> Self {
        self.env.push((name, value));
        self
    }
}

/// A running server. It is killed together with its own children when this value is dropped.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    port: u16,
}

impl Child {
    /// Starts a server in `folder` and waits until it accepts connections on `port`. The server's output
    /// goes to `output.log` in that folder.
    ///
    /// # Errors
    /// An error if the server does not start, ends before it listens, or does not listen within 60 s.
    pub fn start(launch: &Launch, folder: &Path, port: u16) -> Result<Self, String> {
        let name = launch.program.display();
        let log = folder.join("output.log");
        let problem = |error: std::io::Error| format!("{name} did not start: {error}");
        let output = File::create(&log).map_err(problem)?;
        let copy = output.try_clone().map_err(problem)?;
        let process = Command::new(&launch.program)
            .args(&launch.args)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(copy)
            // Some servers fork. The server's new process group contains all its processes, so that one
            // signal ends them.
            .process_group(0)
            .spawn()
            .map_err(problem)?;
        let mut child = Self { process, port };
        for _ in 0..TRIES {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(child);
            }
            if let Ok(Some(status)) = child.process.try_wait() {
                return Err(format!("{name} ended at once ({status}): {}", tail(&log)));
            }
            sleep(PAUSE);
        }
        Err(format!("{name} does not listen: {}", tail(&log)))
    }

    /// Address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Exit status of the server, if it ended.
    pub fn ended(&mut self) -> Option<process::ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// PID of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The last lines of a log, for an error message.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

/// Waits until a server accepts connections on this port of the loopback address.
///
/// # Errors
/// An error if the server does not accept connections within `timeout`.
pub fn wait_for(port: u16, timeout: Duration) -> Result<(), String> {
    let clock = SystemClock::default();
    let begun = clock.mono();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if clock.mono().since(begun) > timeout {
            let seconds = timeout.as_secs();
            return Err(format!("nothing listens on port {port} after {seconds} s"));
        }
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Ports that [`free_port`] returns. They are below the ports that Linux gives to outgoing connections.
/// Otherwise an outgoing connection could take the port of a server while the server restarts. Even the
/// connection of a client that tries to reach this server could take the port.
const PORTS: std::ops::Range<u32> = 12_000..32_000;

/// Returns a port that was free a moment ago. Each call in this process returns a different port.
///
/// # Errors
/// An error if no port is free.
pub fn free_port() -> Result<u16, String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    // Different processes begin the search at different ports.
    let begin = process::id().wrapping_mul(997);
    for _ in PORTS {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + begin.wrapping_add(call) % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).map_err(|error| error.to_string())?;
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("no port from {PORTS:?} is free"))
}
