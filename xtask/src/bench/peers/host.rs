//! The machine on which the measurement runs: cores, control groups, the disk, and a watcher. The watcher
//! cleans up after the run, even if the run is killed.
//!
//! Every process that this program starts joins a control group of the run. The watcher is a small shell that
//! waits on a pipe, whose other end belongs to this program. When this program ends, also by Ctrl-C or
//! SIGKILL, the shell kills all processes in that group and removes groups and scratch files.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

const GROUPS: &str = "/sys/fs/cgroup/memory";
const WATCHER: &str = r#"
trap "" INT TERM HUP
read _
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    procs=$(find "/sys/fs/cgroup/memory/$1" -name cgroup.procs -exec cat {} + 2>/dev/null)
    [ -z "$procs" ] && break
    kill -9 $procs 2>/dev/null
    sleep 0.1
done
if [ -f "$3/drive.number" ]; then
    for limit in read_iops write_iops read_bps write_bps; do
        echo "$(cat "$3/drive.number") 0" > "/sys/fs/cgroup/blkio/blkio.throttle.${limit}_device"
    done
fi 2>/dev/null
umount -l "$3/drive" 2>/dev/null
find "/sys/fs/cgroup/memory/$1" -depth -type d -exec rmdir {} \; 2>/dev/null
rm -f /dev/shm/"$1"*
[ -n "$2" ] && rm -rf "$2"
"#;
const ENTER: &str = r#"
group=$1; core=$2; shift 2
echo $$ > "/sys/fs/cgroup/memory/$group/cgroup.procs" || exit 97
ulimit -n 65536 2>/dev/null
exec taskset -c "$core" "$@"
"#;

/// Core of a process. A proxy has one core for itself. All other processes share the other core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Core {
    /// Core of the proxy.
    Proxy,
    /// Core of load and origin.
    Load,
}

impl Core {
    pub(super) const fn number(self) -> &'static str {
        match self {
            Self::Proxy => "0",
            Self::Load => "1",
        }
    }
}

/// Control groups, scratch folder and device of the run.
pub(super) struct Host {
    /// Name of the run's control groups, and prefix of its shared memory.
    pub(super) name: String,
    /// Folder for stores, configurations and logs.
    pub(super) scratch: PathBuf,
    device: Device,
    watcher: Child,
    pipe: Option<ChildStdin>,
}

impl Host {
    /// Creates the groups, and the scratch folder in `place`. If `keep` is true, the folder is not removed at
    /// the end.
    pub(super) fn new(place: &Path, keep: bool) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores < 2 {
            return Err("two cores are needed: one for the proxy, one for the load".into());
        }
        let name = format!("foxybench{}", std::process::id());
        make(&Path::new(GROUPS).join(&name))
            .map_err(|e| format!("{e}; needed: root and the memory control group of version 1"))?;
        let scratch = place.join(&name);
        let shown = scratch.display();
        fs::create_dir_all(&scratch).map_err(|e| format!("{shown}: {e}; use --dir"))?;
        let scratch = scratch
            .canonicalize()
            .map_err(|e| format!("{shown}: {e}"))?;
        open_to_all(&scratch)?;
        let removed = if keep { Path::new("") } else { &scratch };
        let mut watcher = Command::new("sh")
            .args(["-c", WATCHER, "watcher", &name])
            .args([removed, &scratch])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("sh: {e}"))?;
        let pipe = watcher.stdin.take();
        Ok(Self {
            device: Device::of(&scratch)?,
            name,
            scratch,
            watcher,
            pipe,
        })
    }

    /// Returns the control group of one server or tool, and creates it if it does not exist.
    pub(super) fn group(&self, name: &str) -> Result<Group, String> {
        let name = format!("{}/{name}", self.name);
        make(&Path::new(GROUPS).join(&name))?;
        Ok(Group { name })
    }

    /// Current counts of the device that contains the scratch folder, for all processes together.
    pub(super) fn device(&self) -> DeviceCounts {
        self.device.counts()
    }

    /// Name of the device.
    pub(super) fn device_name(&self) -> &str {
        &self.device.name
    }

    /// Writes dirty pages back, then drops the page cache.
    pub(super) fn drop_caches(&self) -> Result<(), String> {
        sync();
        fs::write("/proc/sys/vm/drop_caches", "3").map_err(|e| format!("drop_caches: {e}"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.watcher.wait();
    }
}

/// Writes all dirty pages to the device.
pub(super) fn sync() {
    let _ = Command::new("sync").status();
}

pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn make(folder: &Path) -> Result<(), String> {
    match fs::create_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(format!("{}: {e}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Permits all users to enter and read the folder, because servers that drop the rights of root must reach
/// their files.
fn open_to_all(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
        .map_err(|e| format!("{}: {e}", folder.display()))
}

/// The control group of one server or tool.
#[derive(Clone, Debug)]
pub(super) struct Group {
    name: String,
}

impl Group {
    /// A command that runs `program` in this group on this core.
    pub(super) fn command(&self, core: Core, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", ENTER, "enter", &self.name, core.number()])
            .arg(program)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    fn file(&self, file: &str) -> PathBuf {
        Path::new(GROUPS).join(&self.name).join(file)
    }

    /// PIDs in the group now.
    pub(super) fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.file("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Limits the memory of the group, including its page cache, to this number of bytes. `None` removes the
    /// limit.
    pub(super) fn limit(&self, bytes: Option<u64>) -> Result<(), String> {
        let path = self.file("memory.limit_in_bytes");
        let value = bytes.map_or_else(|| "-1".to_owned(), |b| b.to_string());
        // If the new limit is lower, the kernel may need several attempts until it has reclaimed enough
        // memory.
        let mut last = Ok(());
        for _ in 0..20 {
            last = fs::write(&path, &value);
            if last.is_ok() {
                break;
            }
            pause(Duration::from_millis(100));
        }
        last.map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Bytes that the current processes have read from the device (`read_bytes`, see proc(5)).
    pub(super) fn bytes_read(&self) -> u64 {
        let of = |pid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix("read_bytes: "));
            value.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
        };
        self.pids().into_iter().map(of).sum()
    }

    /// Sends SIGKILL to all processes until none is left.
    pub(super) fn kill(&self) {
        for _ in 0..100 {
            let pids = self.pids();
            if pids.is_empty() {
                return;
            }
            signal("KILL", &pids);
            pause(Duration::from_millis(10));
        }
    }
}

/// Sends a signal. A process that has already ended is not an error.
pub(super) fn signal(name: &str, pids: &[u32]) {
    let _ = Command::new("kill")
        .args(["-s", name])
        .args(pids.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status();
}

/// Totals of a device since the system started: see Documentation/admin-guide/iostats.rst of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceCounts {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) written: u64,
}

struct Device {
    name: String,
}

impl Device {
    /// Reads the counts of the block device that contains a folder.
    fn of(folder: &Path) -> Result<Self, String> {
        let output = Command::new("findmnt")
            .args(["-n", "-o", "SOURCE", "-T"])
            .arg(folder)
            .output()
            .map_err(|e| format!("findmnt: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let source = text.trim();
        if !source.starts_with("/dev/") {
            return Err(format!(
                "{}: on no block device; use --dir",
                folder.display()
            ));
        }
        let name = source.rsplit('/').next().unwrap_or(source).to_owned();
        Ok(Self { name })
    }

    fn counts(&self) -> DeviceCounts {
        let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(2) == Some(&self.name.as_str()) {
                let number = |at: usize| words.get(at).and_then(|w| w.parse().ok()).unwrap_or(0);
                return DeviceCounts {
                    reads: number(3),
                    writes: number(7),
                    written: number(9) * 512,
                };
            }
        }
        DeviceCounts::default()
    }
}
