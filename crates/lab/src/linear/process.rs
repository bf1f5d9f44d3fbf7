//! Foxy as a process that is killed and restarted on the same store.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use super::buffered_conn::{BufferedConn, exchange};
use super::world::lock;
use crate::kit::free_port;

/// After a start, at most this number of attempts are made to get an answer from Foxy. All attempts together
/// take 30 s.
const TRIES: u32 = 1500;
/// Interval between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A Foxy process.
#[derive(Debug)]
pub(super) struct Foxy {
    program: PathBuf,
    folder: PathBuf,
    /// Port of the forward proxy.
    pub(super) port: u16,
    /// Port of the admin address.
    pub(super) admin: u16,
    child: Mutex<Option<Child>>,
}

impl Foxy {
    /// Starts Foxy with a store in `folder`.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let foxy = Self {
            program: program.to_path_buf(),
            folder: folder.to_path_buf(),
            port: free_port()?,
            admin: free_port()?,
            child: Mutex::new(None),
        };
        foxy.launch()?;
        Ok(foxy)
    }

    fn launch(&self) -> Result<(), String> {
        let problem = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let log = self.folder.join("output.log");
        let output = File::options().create(true).append(true).open(log);
        let output = output.map_err(problem)?;
        let copy = output.try_clone().map_err(problem)?;
        let child = Command::new(&self.program)
            .args(["serve", "--access-log", "off", "--memory", "192MiB"])
            .args(["--workers", "2", "--store-size", "192MiB"])
            .arg("--store")
            .arg(self.folder.join("store"))
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .args(["--admin", &format!("127.0.0.1:{}", self.admin)])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(copy)
            .spawn()
            .map_err(problem)?;
        *lock(&self.child) = Some(child);
        for _ in 0..TRIES {
            let ready = BufferedConn::to(self.port).is_ok()
                && exchange(
                    self.admin,
                    "GET",
                    b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                )
                .is_ok();
            if ready {
                return Ok(());
            }
            if let Some(child) = lock(&self.child).as_mut()
                && let Ok(Some(status)) = child.try_wait()
            {
                return Err(format!("foxy ended ({status}): {}", self.tail()));
            }
            sleep(PAUSE);
        }
        Err(format!("foxy does not listen: {}", self.tail()))
    }

    /// The last lines of Foxy's output.
    fn tail(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("output.log")).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(6)..].join(" | ")
    }

    /// Returns a description if Foxy ended by itself.
    pub(super) fn has_ended(&self) -> Option<String> {
        let mut child = lock(&self.child);
        let status = child.as_mut()?.try_wait().ok().flatten()?;
        Some(format!("foxy ended ({status}): {}", self.tail()))
    }

    /// Sends SIGKILL.
    pub(super) fn kill(&self) {
        if let Some(mut child) = lock(&self.child).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends SIGKILL and restarts Foxy.
    pub(super) fn kill_and_start(&self) -> Result<(), String> {
        self.kill();
        self.launch()
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        self.kill();
    }
}
