//! The compared servers, and the code that configures, starts, pins, stops and measures each server.
//!
//! All servers get one core, 256 MB of memory for contents, 8 GB of disk and no log. The other settings are
//! the best configuration of each server for small objects.

mod foxy;

use std::fmt;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use foxy_lab::kit::peers::{self, Place, SquidDisk};
use foxy_lab::kit::{Launch, free_port};

use super::host::{Core, Group, Host, pause, signal};
use super::load::Run;
use crate::workspace::Released;

/// Memory for contents in MiB, unless the scenario sets another value.
const MEMORY_MIB: u64 = 256;
/// Disk space in GiB.
const DISK_GIB: u64 = 8;

/// The compared servers, and the references for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The simplest possible server.
    Floor,
    /// The raw device, measured by fio.
    Device,
    /// Foxy as a forward proxy.
    Foxy,
    /// Foxy as a reverse proxy, as nginx and Varnish are.
    FoxyReverse,
    Ats,
    Nginx,
    SquidRock,
    SquidAufs,
    Varnish,
    /// The proxy with a process for each request and a file for each URL. It has its own table (`bench
    /// fork`).
    Fork,
    /// The proxy with a process for each request, without a cache. It is in the same table as `Fork`.
    ForkBare,
    /// Foxy's front end with the disk layout of the published Foxy.
    FoxyPublished,
    /// Foxy's front end with one file for each URL.
    FoxyFiles,
}

/// All kinds in the order of the tables.
pub(super) const KINDS: [Kind; 9] = [
    Kind::Floor,
    Kind::Device,
    Kind::Foxy,
    Kind::FoxyReverse,
    Kind::Ats,
    Kind::Nginx,
    Kind::SquidRock,
    Kind::SquidAufs,
    Kind::Varnish,
];

/// Kinds that are measured only if the user names them with `--proxies`.
pub(super) const LAYOUTS: [Kind; 2] = [Kind::FoxyPublished, Kind::FoxyFiles];

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Device => "device",
            Self::Foxy => "foxy",
            Self::FoxyReverse => "foxy-reverse",
            Self::Ats => "ats",
            Self::Nginx => "nginx",
            Self::SquidRock => "squid-rock",
            Self::SquidAufs => "squid-aufs",
            Self::Varnish => "varnish",
            Self::Fork => "fork-proxy",
            Self::ForkBare => "fork-proxy-bare",
            Self::FoxyPublished => "foxy-published",
            Self::FoxyFiles => "foxy-files",
        }
    }

    /// True if requests contain a path and a fixed Host, in place of an absolute URL.
    pub(super) const fn is_reverse(self) -> bool {
        matches!(
            self,
            Self::Floor | Self::FoxyReverse | Self::Nginx | Self::Varnish
        )
    }

    /// True for Foxy's front end with a published layout. The layout reads and writes as many bytes as the
    /// objects have, but it does not store their contents. So the contents are in additional memory.
    pub(super) const fn is_layout(self) -> bool {
        matches!(self, Self::FoxyPublished | Self::FoxyFiles)
    }

    /// True for proxies. The other kinds show limits that no proxy can exceed.
    pub(super) const fn is_proxy(self) -> bool {
        !matches!(self, Self::Floor | Self::Device)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = KINDS.into_iter().chain(LAYOUTS);
        let found = all.find(|kind| kind.name() == text);
        found.ok_or_else(|| {
            let names: Vec<_> = KINDS.into_iter().chain(LAYOUTS).map(Self::name).collect();
            format!("`{text}` is none of {}", names.join(", "))
        })
    }
}

/// Parameters of a server in a scenario.
pub(super) struct Shape<'a> {
    /// Name of the server's folder and control group.
    pub(super) label: &'a str,
    /// Folder that contains the server's folder.
    pub(super) place: &'a Path,
    /// Memory for contents in MiB.
    pub(super) memory_mib: u64,
    /// Port of the origin.
    pub(super) origin: u16,
    /// True if hits are read from the disk. Then the server is configured so that these reads do not block
    /// its only worker.
    pub(super) disk: bool,
}

impl<'a> Shape<'a> {
    /// The usual parameters: contents in the run's scratch folder, and the run's origin.
    pub(super) fn new(run: &'a Run, label: &'a str) -> Self {
        Self {
            label,
            place: &run.host.scratch,
            memory_mib: MEMORY_MIB,
            origin: run.origin.port,
            disk: false,
        }
    }

    /// The usual parameters for hits that are read from the disk.
    pub(super) fn on_disk(run: &'a Run, label: &'a str) -> Self {
        Self {
            disk: true,
            ..Self::new(run, label)
        }
    }
}

/// The values that a server's configuration needs.
pub(super) struct Site<'a> {
    pub(super) host: &'a Host,
    /// The server's own folder.
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    /// A second port, for servers with an admin address.
    pub(super) admin: u16,
    pub(super) origin: u16,
    /// See [`Shape`].
    pub(super) memory_mib: u64,
    pub(super) disk: bool,
    pub(super) programs: &'a Released,
}

impl Site<'_> {
    /// The values for the functions of the laboratory that write the configurations of other caches.
    fn peer<'a>(&'a self, name: &'a str) -> Place<'a> {
        Place {
            folder: &self.folder,
            name,
            port: self.port,
            origin: self.origin,
            memory_mib: self.memory_mib,
            disk_gib: DISK_GIB,
            disk_hits: self.disk,
            collapse: false,
        }
    }

    /// Prepares the store of Squid and returns the command that starts Squid.
    fn squid(&self, disk: SquidDisk) -> Result<Launch, String> {
        // The run's watcher recognises the shared memory by this name and removes it.
        let name = format!("{}x{}", self.host.name, self.port);
        let launch = peers::squid(&self.peer(&name), disk)?;
        let output = self
            .host
            .group("tools")?
            .command(Core::Load, &launch.program)
            .args(&launch.args)
            .arg("-z")
            .stdout(Stdio::null())
            .output()
            .map_err(|e| format!("squid -z: {e}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let last = text.lines().last().unwrap_or_default();
            return Err(format!("squid -z: {last}"));
        }
        let _ = fs::remove_file(self.folder.join("squid.pid"));
        Ok(launch)
    }
}

/// A configured server with its contents. It can be started and stopped repeatedly.
pub(super) struct Server {
    pub(super) kind: Kind,
    pub(super) group: Group,
    pub(super) port: u16,
    pub(super) admin: u16,
    /// Port of the server's origin.
    pub(super) origin: u16,
    folder: PathBuf,
    start: Launch,
    child: Option<Child>,
}

impl Server {
    /// Writes the configuration of a server with an empty store. The server is not started.
    pub(super) fn new(run: &Run, kind: Kind, shape: &Shape<'_>) -> Result<Self, String> {
        let (host, name) = (&run.host, format!("{}-{kind}", shape.label));
        let folder = shape.place.join(&name);
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let (port, admin) = (free_port()?, free_port()?);
        let site = Site {
            host,
            folder: folder.clone(),
            port,
            admin,
            origin: shape.origin,
            memory_mib: shape.memory_mib,
            disk: shape.disk,
            programs: &run.programs,
        };
        let start = match kind {
            Kind::Floor => foxy::floor(&site),
            Kind::Foxy | Kind::FoxyReverse => foxy::start(&site, kind == Kind::FoxyReverse),
            Kind::Ats => peers::ats(&site.peer(&name))?,
            Kind::Nginx => peers::nginx(&site.peer(&name))?,
            Kind::SquidRock => site.squid(SquidDisk::Rock)?,
            Kind::SquidAufs => site.squid(SquidDisk::Aufs)?,
            Kind::Varnish => peers::varnish(&site.peer(&name))?,
            Kind::Fork => foxy::fork(&site, true),
            Kind::ForkBare => foxy::fork(&site, false),
            Kind::FoxyPublished => foxy::layout(&site, "stream-packetizer"),
            Kind::FoxyFiles => foxy::layout(&site, "squid"),
            Kind::Device => return Err("the device is no server".into()),
        };
        Ok(Self {
            kind,
            group: host.group(&name)?,
            port,
            admin,
            origin: shape.origin,
            folder,
            start,
            child: None,
        })
    }

    /// Starts the server and waits until it accepts connections, then pins its threads.
    pub(super) fn start(&mut self) -> Result<(), String> {
        self.spawn()?;
        let clock = SystemClock::default();
        let begun = clock.mono();
        while clock.mono().since(begun) < Duration::from_secs(60) {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                // Some servers open their store after they begin to listen.
                pause(Duration::from_secs(1));
                return self.pin();
            }
            if let Some(status) = self
                .child
                .as_mut()
                .and_then(|c| c.try_wait().ok().flatten())
            {
                return Err(format!(
                    "{} ended ({status}): {}",
                    self.kind,
                    self.log_tail()
                ));
            }
            pause(Duration::from_millis(10));
        }
        Err(format!(
            "{} does not listen: {}",
            self.kind,
            self.log_tail()
        ))
    }

    /// Starts the server without waiting.
    pub(super) fn spawn(&mut self) -> Result<(), String> {
        let log = self.folder.join("output.log");
        let problem = |e: std::io::Error| format!("{}: {e}", self.kind);
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(problem)?;
        let copy = file.try_clone().map_err(problem)?;
        let mut command = self.group.command(Core::Proxy, &self.start.program);
        command
            .args(&self.start.args)
            .current_dir(&self.folder)
            .stdout(file)
            .stderr(copy);
        self.child = Some(command.spawn().map_err(problem)?);
        Ok(())
    }

    /// Pins every thread to the proxy's core. Some servers set their own affinity when they start.
    pub(super) fn pin(&self) -> Result<(), String> {
        let core = Core::Proxy.number();
        for _ in 0..3 {
            for pid in self.group.pids() {
                let _ = Command::new("taskset")
                    .args(["-a", "-c", "-p", core, &pid.to_string()])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .status();
            }
            if self
                .group
                .pids()
                .into_iter()
                .all(|pid| is_pinned(pid, core))
            {
                return Ok(());
            }
        }
        Err(format!(
            "{}: not all threads stay on core {core}",
            self.kind
        ))
    }

    /// Root of the server's process tree.
    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Asks the server to stop. Returns the seconds until its last process has ended.
    pub(super) fn stop(&mut self) -> Result<f64, String> {
        let clock = SystemClock::default();
        let begun = clock.mono();
        signal("TERM", &[self.pid()]);
        let mut left = true;
        while left && clock.mono().since(begun) < Duration::from_secs(60) {
            self.reap();
            left = !self.group.pids().is_empty();
            pause(Duration::from_millis(2));
        }
        let took = clock.mono().since(begun).as_secs_f64();
        if left {
            self.kill();
            return Err(format!("{}: SIGTERM had no effect in 60 s", self.kind));
        }
        Ok(took)
    }

    /// Sends SIGKILL to all processes of the server.
    pub(super) fn kill(&mut self) {
        self.group.kill();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_file(self.folder.join("squid.pid"));
    }

    fn reap(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
    }

    /// Anonymous and shared memory of all processes of the server, in bytes. Pages mapped from files are not
    /// included.
    pub(super) fn memory(&self) -> u64 {
        self.group
            .pids()
            .into_iter()
            .map(anonymous_and_shared)
            .sum()
    }

    /// Resident memory of all processes of the server in bytes. Shared pages count once.
    pub(super) fn resident(&self) -> u64 {
        self.group
            .pids()
            .into_iter()
            .map(|pid| rollup(pid, &["Pss:"]))
            .sum()
    }

    fn log_tail(&self) -> String {
        let text = fs::read_to_string(self.folder.join("output.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(6).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// Ends the server and frees its disk space. Stores of many files stay until the end of the run,
    /// because deleting them slows ext4 down for minutes.
    pub(super) fn discard(mut self) {
        self.kill();
        if !matches!(self.kind, Kind::Nginx | Kind::SquidAufs | Kind::FoxyFiles) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_pinned(pid: u32, core: &str) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    tasks.flatten().all(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let allowed = status
            .lines()
            .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        allowed.is_none_or(|list| list.trim() == core)
    })
}

fn anonymous_and_shared(pid: u32) -> u64 {
    rollup(pid, &["Pss_Anon:", "Pss_Shmem:"])
}

/// Sum of fields of `/proc/<pid>/smaps_rollup`, in bytes.
fn rollup(pid: u32, fields: &[&str]) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kib = |line: &str| {
        let (name, rest) = line.split_once(char::is_whitespace)?;
        fields
            .contains(&name)
            .then(|| rest.split_whitespace().next()?.parse::<u64>().ok())?
    };
    text.lines().filter_map(kib).sum::<u64>() * 1024
}

/// Bytes of Foxy's index, according to Foxy's own statistics.
pub(super) fn foxy_index_bytes(server: &Server) -> Option<f64> {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(("127.0.0.1", server.admin)).ok()?;
    stream.write_all(b"GET /stats HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let stats: serde_json::Value = serde_json::from_str(body).ok()?;
    stats["memory"]["index_bytes"].as_f64()
}
