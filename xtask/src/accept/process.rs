//! Foxy, the origin and the load generator as child processes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use foxy_lab::kit::{self, free_port};
use serde_json::Value;

use crate::workspace::{Released, released, succeed, target_folder};

pub(crate) use foxy_lab::kit::report_of;

/// The programs, a running origin, and a folder for files, which all parts of `accept` use.
pub(crate) struct Bench {
    programs: Released,
    dir: tempfile::TempDir,
    origin_port: u16,
    origin: Child,
}

/// A running Foxy. It is killed when this value is dropped.
pub(crate) struct Foxy {
    child: Child,
    port: u16,
    admin: u16,
}

impl Bench {
    /// Starts an origin with the `foxy-lab` beside `program`, or with release programs that are built
    /// first.
    pub(crate) fn new(program: Option<&Path>, dir: Option<&Path>) -> Result<Self, String> {
        let programs = released(program)?;
        let place = dir.map_or_else(target_folder, |dir| Ok(dir.to_path_buf()))?;
        let dir = tempfile::tempdir_in(&place).map_err(|error| {
            format!(
                "{}: {error}; give another place with --dir",
                place.display()
            )
        })?;
        let origin_port = free_port()?;
        let origin = Command::new(&programs.lab)
            .args([
                "bench",
                "origin",
                "--listen",
                &format!("0.0.0.0:{origin_port}"),
            ])
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", programs.lab.display()))?;
        wait_for(origin_port)?;
        Ok(Self {
            programs,
            dir,
            origin_port,
            origin,
        })
    }

    /// A command of the product.
    pub(crate) fn program(&self) -> Command {
        Command::new(&self.programs.foxy)
    }

    /// A command of the laboratory.
    pub(crate) fn lab(&self) -> Command {
        Command::new(&self.programs.lab)
    }

    /// Path of the file `name` in the folder for files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts Foxy with these additional arguments and waits until it listens.
    pub(crate) fn foxy(&self, args: &[&str]) -> Result<Foxy, String> {
        self.foxy_on(free_port()?, args)
    }

    /// Starts Foxy on this port and waits until it listens.
    pub(crate) fn foxy_on(&self, port: u16, args: &[&str]) -> Result<Foxy, String> {
        let foxy = self.foxy_at(port, args)?;
        wait_for(port)?;
        Ok(foxy)
    }

    /// Starts the simplest possible server (`bench floor`) in Foxy's place.
    pub(crate) fn floor(&self, work: &str) -> Result<Foxy, String> {
        let port = free_port()?;
        let listen = format!("127.0.0.1:{port}");
        let child = self
            .lab()
            .args(["bench", "floor", "--listen", &listen, "--work", work])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.programs.lab.display()))?;
        let floor = Foxy {
            child,
            port,
            admin: 0,
        };
        wait_for(port)?;
        Ok(floor)
    }

    /// As [`Bench::foxy`], but Foxy's own output goes to the file `log`.
    pub(crate) fn foxy_logging(&self, log: &Path, args: &[&str]) -> Result<Foxy, String> {
        let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let foxy = self.spawn(free_port()?, args, file.into())?;
        wait_for(foxy.port)?;
        Ok(foxy)
    }

    /// Starts Foxy on this port without waiting.
    pub(crate) fn foxy_at(&self, port: u16, args: &[&str]) -> Result<Foxy, String> {
        self.spawn(port, args, Stdio::null())
    }

    fn spawn(&self, port: u16, args: &[&str], log: Stdio) -> Result<Foxy, String> {
        let admin = free_port()?;
        let logs = args.contains(&"--access-log");
        let silent: &[&str] = if logs { &[] } else { &["--access-log", "off"] };
        let child = self
            .program()
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--admin", &format!("127.0.0.1:{admin}")])
            .args(silent)
            .args(args)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.programs.foxy.display()))?;
        Ok(Foxy { child, port, admin })
    }

    /// A `foxy-lab bench` command that uses `foxy` as its target; JSON goes to standard output.
    pub(crate) fn tool(&self, tool: &str, foxy: &Foxy, args: &[&str]) -> Command {
        let mut command = self.lab();
        command
            .args(["bench", tool, "--json", "-"])
            .args(["--target", &format!("127.0.0.1:{}", foxy.port)])
            .args(["--origin", &format!("127.0.0.1:{}", self.origin_port)])
            .args(args)
            .stderr(Stdio::null());
        command
    }

    /// Runs a crowd of clients that request one object of the origin at the same moment.
    pub(crate) fn together(
        &self,
        foxy: &Foxy,
        object: &str,
        args: &[&str],
    ) -> Result<Value, String> {
        self.asks("together", foxy, object, args)
    }

    /// Runs a reader that reads at random positions of one object of the origin.
    pub(crate) fn ranges(&self, foxy: &Foxy, object: &str, args: &[&str]) -> Result<Value, String> {
        self.asks("ranges", foxy, object, args)
    }

    fn asks(&self, tool: &str, foxy: &Foxy, object: &str, args: &[&str]) -> Result<Value, String> {
        let mut command = self.lab();
        command
            .args(["bench", tool, "--object", object])
            .args(["--target", &format!("127.0.0.1:{}", foxy.port)])
            .args(["--origin", &format!("127.0.0.1:{}", self.origin_port)])
            .args(args);
        report_of(&mut command)
    }

    /// Runs a load to its end and returns its report.
    pub(crate) fn load(&self, foxy: &Foxy, args: &[&str]) -> Result<Value, String> {
        let pid = foxy.child.id().to_string();
        let mut command = self.tool("load", foxy, args);
        report_of(command.args(["--quiet", "--pid", &pid]))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.origin.kill();
        let _ = self.origin.wait();
    }
}

impl Foxy {
    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits until the process has ended.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let pid = self.pid().to_string();
        succeed(
            Command::new("kill").args(["-TERM", &pid]),
            "Foxy had ended by itself",
        )?;
        let ended = self.child.wait().map_err(|error| error.to_string())?;
        match ended.success() {
            true => Ok(()),
            false => Err(format!("after SIGTERM: {ended}")),
        }
    }

    /// Port of the proxy.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// PID of Foxy.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Address of the admin listener.
    pub(crate) fn admin(&self) -> String {
        format!("127.0.0.1:{}", self.admin)
    }

    /// JSON statistics of the admin listener.
    pub(crate) fn stats(&self) -> Result<Value, String> {
        let text = self.page("/stats")?;
        serde_json::from_str(&text).map_err(|error| format!("/stats: {error}"))
    }

    /// A page of the admin listener.
    pub(crate) fn page(&self, path: &str) -> Result<String, String> {
        let url = format!("http://{}{path}", self.admin());
        let output = Command::new("curl").args(["-sS", &url]).output();
        let output = output.map_err(|error| format!("curl: {error}; install it"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Greatest resident memory so far, in bytes.
    pub(crate) fn peak_resident(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, which: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(which));
        let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a server accepts connections on this port.
fn wait_for(port: u16) -> Result<(), String> {
    kit::wait_for(port, Duration::from_secs(10))
}

/// Returns the number at `path` in a report; 0 if the report has no such number.
pub(crate) fn number(report: &Value, path: &[&str]) -> f64 {
    kit::number(report, path).unwrap_or(0.0)
}
