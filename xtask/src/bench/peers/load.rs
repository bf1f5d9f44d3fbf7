//! The origin and the load, on the core that the proxy does not have.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::super::free_port;
use super::host::{Core, Host, pause};
use super::lengths::Lengths;
use super::servers::Server;

/// What all measurements of a run share.
pub(super) struct Run {
    pub(super) host: Host,
    pub(super) foxy: PathBuf,
    pub(super) lengths: Lengths,
    pub(super) origin: Origin,
}

/// The origin; killed with the run.
pub(super) struct Origin {
    pub(super) port: u16,
    child: Child,
}

impl Origin {
    /// Starts it on the load's core. It never sleeps while it is asked, as the load.
    pub(super) fn start(host: &Host, foxy: &Path) -> Result<Self, String> {
        Self::start_at(free_port(), host, foxy, &[])
    }

    /// The same at a known port, with more options.
    pub(super) fn start_at(
        port: u16,
        host: &Host,
        foxy: &Path,
        options: &[&str],
    ) -> Result<Self, String> {
        let child = host
            .group("tools")?
            .command(Core::Load, foxy)
            .args(["bench", "origin", "--poll"])
            .args(["--listen", &format!("0.0.0.0:{port}")])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", foxy.display()))?;
        for _ in 0..300 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(Self { port, child });
            }
            pause(Duration::from_millis(10));
        }
        Err("the origin does not listen".into())
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// A load or check against `server`, to be run.
    pub(super) fn tool(&self, tool: &str, server: &Server) -> Result<Command, String> {
        let mut command = self.host.group("tools")?.command(Core::Load, &self.foxy);
        command
            .args(["bench", tool, "--json", "-"])
            .args(["--target", &format!("127.0.0.1:{}", server.port)])
            .args(["--origin", &format!("127.0.0.1:{}", server.origin)])
            .stderr(Stdio::null());
        if server.kind.is_reverse() {
            command.args(["--reverse", "bench"]);
        }
        Ok(command)
    }

    /// Runs a load to its end: one thread that never sleeps, some bodies compared byte by byte,
    /// heads and lengths of all.
    pub(super) fn load(&self, server: &Server, args: &[&str]) -> Result<Value, String> {
        server.pin()?;
        let mut command = self.tool("load", server)?;
        command
            .args(["--poll", "--quiet", "--check", "0.02", "--timeout", "20s"])
            .args(["--pid", &server.pid().to_string()])
            .args(args);
        report_of(&mut command)
    }
}

/// Runs a tool that prints JSON. Exit code 1 means wrong or missing answers: the report tells.
pub(super) fn report_of(command: &mut Command) -> Result<Value, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{command:?}: {}: no report: {e}", output.status))
}

/// A number of a report, by path; `None` if it is not there.
pub(super) fn number(report: &Value, path: &[&str]) -> Option<f64> {
    let mut at = report;
    for step in path {
        at = at.get(step)?;
    }
    at.as_f64()
}
