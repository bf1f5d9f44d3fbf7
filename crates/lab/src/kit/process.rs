//! Memory and processor time of another process, from /proc.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident memory (VmRSS).
    pub resident: u64,
    /// Greatest resident memory since the last [`forget_peak`] (VmHWM).
    pub peak: u64,
    /// Resident memory that does not belong to a file.
    pub anonymous: u64,
    /// Resident pages of files. Most of them are program code.
    pub files: u64,
}

impl Memory {
    /// Reads /proc; `None` if the process has ended.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib << 10)
        };
        Some(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
            anonymous: field("RssAnon:")?,
            files: field("RssFile:")?,
        })
    }
}

/// Resets the kernel's value of the peak memory of a process. The next peak that is read then belongs to the
/// next load.
pub fn forget_peak(pid: u32) {
    // A kernel without this feature keeps the older peak. Then the reported peak is too high.
    let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
}

/// Processor time of a process and all its threads so far, in kernel mode and user mode. `None` if the
/// process has ended.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in brackets and may contain blanks. The fields are therefore counted from
    // the last bracket.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let sum = ticks()? + ticks()?;
    let second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(sum as f64 / second as f64))
}

/// Raises the limit on open files of this process to at least `files`. Child processes inherit the limit.
///
/// # Errors
/// An error if the limit is lower than `files`, and this process may not raise it.
pub fn raise_files(files: u64) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|most| most >= files);
    if enough(limit.current) {
        return Ok(());
    }
    // Only a privileged process may raise the maximum.
    let maximum = match enough(limit.maximum) {
        true => limit.maximum,
        false => Some(files),
    };
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        format!("{files} open files are needed: raise the limit (ulimit -n), or --quick")
    })
}

/// Makes this process's table of open files large enough for `files` files. If the kernel had to enlarge the
/// table later, while threads run, no thread could open a file for about ten milliseconds.
pub fn room_for_files(files: u64) {
    let last = i32::try_from(files.saturating_sub(1)).unwrap_or(i32::MAX);
    // The table keeps its size when this descriptor is closed.
    drop(rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), last));
}

/// Threads of a process, each with its name and its processor time so far. Empty if the process has ended.
#[must_use]
pub fn thread_times(pid: u32) -> Vec<(String, Duration)> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let time = |thread: fs::DirEntry| {
        let read = |file: &str| fs::read_to_string(thread.path().join(file)).ok();
        let name = read("comm")?.trim_end().to_owned();
        let nanoseconds = read("schedstat")?.split(' ').next()?.parse().ok()?;
        Some((name, Duration::from_nanos(nanoseconds)))
    };
    threads.flatten().filter_map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read() {
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(memory.resident > 100_000 && memory.peak >= memory.anonymous);
        assert!(Memory::parse("State:\tZ (zombie)\n").is_none());
    }

    #[test]
    fn own_processor_time_is_read() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        let mut sum = 0_u64;
        while cpu_time(pid).unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(cpu_time(0).is_none());
    }

    #[test]
    fn threads_have_names_and_times() {
        let busy = || {
            let own = || thread_times(std::process::id()).into_iter();
            let time = || own().find(|(name, _)| name == "lab-busy");
            let mut sum = 0_u64;
            while time().is_none_or(|(_, time)| time.is_zero()) {
                sum = std::hint::black_box(sum + 1);
            }
        };
        let thread = std::thread::Builder::new().name("lab-busy".to_owned());
        thread.spawn(busy).unwrap().join().unwrap();
        assert!(thread_times(0).is_empty());
    }
}
