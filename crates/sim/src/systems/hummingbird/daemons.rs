//! Daemons: packing, freeing memory, freeing disk space, and writing the logs. In idle time, or after a fixed
//! number of calls, the next daemon runs (round robin). A call that needs memory or space also does the work
//! of a daemon.

use super::{Hummingbird, HummingbirdError, Placement};
use crate::model::SimTime;

/// Number of daemons: packing, freeing memory, freeing disk space, the logs.
const DAEMONS: u8 = 4;

impl Hummingbird {
    /// Counts one more event of the client. One daemon runs after each `daemon_every` events (published:
    /// 1,000).
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn tick(&mut self) -> Result<(), HummingbirdError> {
        self.calls += 1;
        if self.config.daemon_every > 0 && self.calls.is_multiple_of(self.config.daemon_every) {
            self.run_daemon()?;
        }
        Ok(())
    }

    /// Called when the client is idle until `until`. Rule of the 1999 draft: if all requests of one second of
    /// the request log were done in less than a second, one daemon runs; the daemons take turns. In a longer
    /// pause one daemon runs in each second, until each daemon has run twice. The scan after a crash uses all
    /// idle time.
    ///
    /// # Errors
    /// Returns the error of the partition.
    pub fn idle(&mut self, until: SimTime) -> Result<(), HummingbirdError> {
        while self.scan_at.is_some() && self.now() < until {
            self.scan_some()?;
        }
        for _ in 0..2 * DAEMONS {
            let second = self.now().as_secs() as u64;
            if self.now() >= until {
                return Ok(());
            }
            if self.idle_second != Some(second) {
                self.idle_second = Some(second);
                self.run_daemon()?;
            }
            let next = SimTime::from_secs((second + 1) as f64).min(until);
            if next > self.now() {
                self.advance(next - self.now());
            }
        }
        if until > self.now() {
            self.advance(until - self.now());
        }
        Ok(())
    }

    /// Runs the next daemon, round robin.
    fn run_daemon(&mut self) -> Result<(), HummingbirdError> {
        self.daemon = (self.daemon + 1) % DAEMONS;
        let done = match self.daemon {
            1 => self.pack_files(),
            2 => self.free_main_memory_data(),
            3 => {
                self.free_disk_space();
                Ok(())
            }
            _ => self.sync_logs(),
        };
        match done {
            // This is not an error for a daemon: the call that needs a cluster will report it.
            Err(HummingbirdError::NoCluster | HummingbirdError::Busy) => Ok(()),
            done => done,
        }
    }

    /// Packs the oldest files while unpacked files take more than their share of memory.
    ///
    /// # Errors
    /// Returns the first error of packing.
    pub fn pack_files(&mut self) -> Result<(), HummingbirdError> {
        let most = self.share(self.config.pack_at);
        while self.files.unpacked_bytes > most {
            self.pack()?;
        }
        Ok(())
    }

    /// If more than the share `pack_at` of memory is in use, frees memory down to the share `free_to`. The
    /// oldest files and clusters leave first.
    ///
    /// # Errors
    /// Returns the first error of packing.
    pub fn free_main_memory_data(&mut self) -> Result<(), HummingbirdError> {
        if self.memory_used() <= self.share(self.config.pack_at) {
            return Ok(());
        }
        self.shrink_to(self.share(self.config.free_to))
    }

    /// Deletes the files and frees the clusters that were not used during their lifetimes. With log placement
    /// this does nothing, because log placement overwrites clusters instead of freeing them.
    pub fn free_disk_space(&mut self) {
        if self.config.placement == Placement::Log {
            return;
        }
        if let Some(life) = self.config.file_life {
            self.delete_file_policy(life);
        }
        if let Some(life) = self.config.cluster_life {
            self.delete_cluster_policy(life);
        }
    }

    /// Deletes files that were not used for `life`.
    fn delete_file_policy(&mut self, life: SimTime) {
        let now = self.disk.now();
        let old = |n: &u32| {
            let file = self.files.get(*n);
            file.readers == 0 && now - file.used > life
        };
        let expired: Vec<_> = self.files.numbers().filter(old).collect();
        for file in expired {
            self.forget(file);
            self.counts.expired += 1;
        }
    }

    /// Frees clusters if none of their files was used for `life`.
    fn delete_cluster_policy(&mut self, life: SimTime) {
        let now = self.disk.now();
        for cluster in 0..self.clusters.count() {
            let entry = self.clusters.get(cluster);
            if entry.files.is_empty() || entry.pins > 0 || now - entry.used <= life {
                continue;
            }
            let used = |n: &u32| *n != super::files::NONE && now - self.files.get(*n).used <= life;
            if !entry.files.iter().any(used) {
                self.clear_cluster(cluster);
            }
        }
    }

    fn share(&self, share: f64) -> u64 {
        (self.config.memory as f64 * share) as u64
    }
}
