//! The CPU time of a thread that polls and never sleeps. Its core stays awake, so no other process uses CPU
//! time to wake it. The CPU time of polls that found nothing is counted separately from the thread's work.

use std::time::Duration;

use crate::load::cpu;

/// CPU time of polls that found nothing.
#[derive(Debug, Default)]
pub(crate) struct Spin {
    /// Thread CPU time at the beginning of the current series of unsuccessful polls.
    since: Option<Duration>,
    total: Duration,
}

impl Spin {
    /// Must be called after each poll. If the poll found nothing (`is_empty`), yields the core to other
    /// threads, such as the origin.
    pub(crate) fn polled(&mut self, is_empty: bool) {
        if is_empty {
            if self.since.is_none() {
                self.since = Some(cpu::of_this_thread());
            }
            std::thread::yield_now();
        } else if let Some(since) = self.since.take() {
            self.total += cpu::of_this_thread().saturating_sub(since);
        }
    }

    /// CPU time of unsuccessful polls so far. The first poll of each series of unsuccessful polls counts as
    /// work.
    pub(crate) fn empty_polls(&self) -> Duration {
        let open = self
            .since
            .map(|since| cpu::of_this_thread().saturating_sub(since));
        self.total + open.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_polls_are_told_apart_from_work() {
        let mut spin = Spin::default();
        let start = cpu::of_this_thread();
        while spin.empty_polls() < Duration::from_millis(2) {
            spin.polled(true);
        }
        spin.polled(false);
        let idle = spin.empty_polls();
        assert!(idle <= cpu::of_this_thread() - start);
        // The CPU time between two successful polls is work, so it is not counted.
        let mut x = 1u64;
        let work = cpu::of_this_thread();
        while cpu::of_this_thread() - work < Duration::from_millis(2) {
            x = x.wrapping_mul(3);
        }
        spin.polled(false);
        assert_eq!(spin.empty_polls(), idle, "{x}");
    }
}
