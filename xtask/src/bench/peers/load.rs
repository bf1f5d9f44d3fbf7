//! Starts the origin and the load generator, on the core that the proxy does not use.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use foxy_lab::kit::{free_port, wait_for};
pub(super) use foxy_lab::kit::{number, report_of};

use crate::workspace::Released;

use super::host::{Core, Host};
use super::lengths::Lengths;
use super::servers::Server;

/// State shared by all measurements of a run.
pub(super) struct Run {
    pub(super) host: Host,
    pub(super) programs: Released,
    pub(super) lengths: Lengths,
    pub(super) origin: Origin,
}

/// The origin. It is killed when this value is dropped.
pub(super) struct Origin {
    pub(super) port: u16,
    child: Child,
}

impl Origin {
    /// Starts the origin on the core of the load. Like the load, it never sleeps while requests arrive.
    pub(super) fn start(host: &Host, lab: &Path) -> Result<Self, String> {
        Self::start_at(free_port()?, host, lab, &[])
    }

    /// Starts the origin on the port `port`, with additional options.
    pub(super) fn start_at(
        port: u16,
        host: &Host,
        lab: &Path,
        options: &[&str],
    ) -> Result<Self, String> {
        let child = host
            .group("tools")?
            .command(Core::Load, lab)
            .args(["bench", "origin", "--poll"])
            .args(["--listen", &format!("0.0.0.0:{port}")])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("{}: {e}", lab.display()))?;
        let origin = Self { port, child };
        wait_for(port, Duration::from_secs(3))?;
        Ok(origin)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// Builds the command of a load tool (`load` or `expect`) with `server` as its target.
    pub(super) fn tool(&self, tool: &str, server: &Server) -> Result<Command, String> {
        let tools = self.host.group("tools")?;
        let mut command = tools.command(Core::Load, &self.programs.lab);
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

    /// Runs a load to its end. The load has one thread that never sleeps. It checks the head and length of
    /// every answer, and compares some bodies byte by byte.
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
