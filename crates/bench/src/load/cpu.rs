//! CPU time of a process with its threads and descendants, and of the calling thread.

use std::collections::HashMap;
use std::time::Duration;

/// CPU time, divided into user time and system time as the system accounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in the program.
    pub user: Duration,
    /// Time in the kernel on behalf of the program.
    pub system: Duration,
}

impl CpuTime {
    /// Sum of user time and system time.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// Time since an earlier snapshot.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// CPU time used so far by `pid`, its threads, its descendants, and child processes that were waited for.
/// The resolution is a clock tick (10 ms). `None` if there is no such process or no `/proc`.
#[must_use]
pub fn of_process_tree(pid: u32) -> Option<CpuTime> {
    let all = read_all();
    let mut sum = all.get(&pid)?.ticks;
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (child, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            sum.0 += stat.ticks.0;
            sum.1 += stat.ticks.1;
            parents.push(*child);
        }
    }
    let tick = 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64;
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 * tick);
    Some(CpuTime {
        user: time(sum.0),
        system: time(sum.1),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// User time and system time in clock ticks, including child processes that were waited for.
    ticks: (u64, u64),
}

fn read_all() -> HashMap<u32, Stat> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            // Processes may begin and end during this loop.
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, parse_stat(&stat)?))
        })
        .collect()
}

/// Parses `/proc/<pid>/stat`, see proc(5). The name in parentheses may contain any characters.
fn parse_stat(text: &str) -> Option<Stat> {
    let rest = &text[text.rfind(')')? + 1..];
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        ticks: (number(11)? + number(13)?, number(12)? + number(14)?),
    })
}

/// CPU time of the calling thread.
#[must_use]
pub fn of_this_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_with_odd_names() {
        let text = "42 (a) b (c) S 7 1 1 0 -1 0 1 2 3 4 100 50 10 5 20 0 1 0";
        assert_eq!(
            parse_stat(text),
            Some(Stat {
                parent: 7,
                ticks: (110, 55)
            })
        );
        assert_eq!(parse_stat("42 no"), None);
    }

    #[test]
    fn our_own_time_is_seen() {
        let mut x = 1u64;
        while of_this_thread() < Duration::from_millis(1) {
            x = x.wrapping_mul(3);
        }
        assert!(x != 0);
        if cfg!(target_os = "linux") {
            assert!(of_process_tree(std::process::id()).is_some());
            assert_eq!(of_process_tree(u32::MAX), None);
        }
    }
}
