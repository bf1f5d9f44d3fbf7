//! Processor time of the threads of a process.

use std::fs;
use std::time::Duration;

/// Processor time that was used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// Processor time of the threads that check passwords.
    pub(super) checks: Duration,
    /// Processor time of all threads.
    pub(super) all: Duration,
    /// Number of threads that check passwords.
    pub(super) threads: usize,
}

impl Cpu {
    /// Reads the times from /proc.
    ///
    /// # Errors
    /// An error if the process has ended, or if the kernel does not count these times.
    pub(super) fn of(pid: u32) -> Result<Self, String> {
        let folder = format!("/proc/{pid}/task");
        let problem = |error: std::io::Error| format!("{folder}: {error}");
        let mut found = Self::default();
        for thread in fs::read_dir(&folder).map_err(problem)? {
            let thread = thread.map_err(problem)?.path();
            let text = fs::read_to_string(thread.join("schedstat")).map_err(problem)?;
            let first = text.split_whitespace().next();
            let nanos = first.and_then(|nanos| nanos.parse().ok());
            let time = Duration::from_nanos(nanos.ok_or_else(|| format!("{folder}: {text}"))?);
            found.all += time;
            let name = fs::read_to_string(thread.join("comm")).map_err(problem)?;
            if name.starts_with("foxy-login") {
                found.checks += time;
                found.threads += 1;
            }
        }
        Ok(found)
    }

    /// The time that the process has used since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            checks: self.checks.saturating_sub(before.checks),
            all: self.all.saturating_sub(before.all),
            threads: self.threads,
        }
    }
}
