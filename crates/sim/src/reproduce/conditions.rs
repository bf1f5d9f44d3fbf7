//! Conditions under which the published runs are repeated.

use std::path::PathBuf;

use crate::{
    layout::{Calls, LayoutSpec},
    levels::LevelsConfig,
    run::{Made, RunConfig, SweepOptions, Workload},
};

/// Settings of a reproduction, such as its seed, its scale, and the points that some figures show.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Seed of the generated stream.
    pub seed: u64,
    /// Divisor of memory, disk and numbers of operations. 1 keeps the published sizes; larger values are for
    /// a quick check and change hit ratios.
    pub scale: u64,
    /// Number of threads.
    pub threads: usize,
    /// Disk utilisations that figures 6 to 8 of the USITS'99 paper show, in ascending order, each a share
    /// above 0.
    pub utilisations: Vec<f64>,
    /// Thresholds of the layout BUDDY that figure 5 shows, in blocks.
    pub thresholds: Vec<u32>,
    /// Disk sizes that figure 2 shows, in GiB.
    pub disks: Vec<f64>,
    /// File in which the results of finished runs are kept, so that these runs are not repeated.
    pub resume: Option<PathBuf>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            seed: 1,
            scale: 1,
            threads: 1,
            utilisations: vec![0.65, 0.71, 0.76, 0.80, 0.85, 0.90, 0.95],
            thresholds: vec![1, 2, 4, 6, 10, 16, 32, 64, 128, 256, 512],
            disks: vec![0.5, 1.0, 2.0, 4.0, 8.0],
            resume: None,
        }
    }
}

/// Bytes of the memory level in the published experiments.
const RAM: u64 = 512 << 20;

impl Conditions {
    /// The settings that influence results. Kept results are used again only if these settings are the same.
    pub(super) fn key(&self) -> impl std::fmt::Debug + use<'_> {
        (
            self.seed,
            self.scale,
            &self.utilisations,
            &self.thresholds,
            &self.disks,
        )
    }

    /// Options of a sweep: threads, the file of finished runs, and the callback for progress.
    pub(super) fn options<'a>(
        &self,
        progress: &'a (dyn Fn(usize, usize) + Sync),
    ) -> SweepOptions<'a> {
        SweepOptions {
            threads: self.threads,
            resume: self.resume.clone(),
            progress: Some(progress),
        }
    }

    fn scaled(&self, n: u64) -> u64 {
        n / self.scale.max(1)
    }

    /// Cache levels with a disk of `disk_gib` GiB.
    #[must_use]
    pub fn levels(&self, disk_gib: f64) -> LevelsConfig {
        let disk = (disk_gib * f64::from(1u32 << 30)) as u64;
        LevelsConfig::lru(self.scaled(RAM), self.scaled(disk))
    }

    /// A run of `ops` operations on a disk of `disk_gib` GiB.
    #[must_use]
    pub fn config(&self, layout: LayoutSpec, disk_gib: f64, ops: u64) -> RunConfig {
        RunConfig {
            seed: self.seed,
            levels: self.levels(disk_gib),
            ops: self.scaled(ops),
            ..RunConfig::published(layout)
        }
    }

    /// A run with the second interpretation of the object sizes in table 2 of the USITS'99 paper: 10.5 KB on
    /// average. This size follows from two published values, the bytes moved and the number of reads and
    /// writes. (The first interpretation is 5.4 KB, which follows from the number of objects on the disk.)
    /// Objects are written by write().
    #[must_use]
    pub fn second(&self, layout: LayoutSpec, disk_gib: f64, ops: u64) -> RunConfig {
        let workload = Workload::Made(Made::DecLarge, u64::MAX);
        RunConfig {
            workload,
            calls: Calls::Write,
            ..self.config(layout, disk_gib, ops)
        }
    }

    /// The generated stream for the DEC proxy trace, cut after `requests` requests.
    #[must_use]
    pub fn dec(&self, requests: u64) -> Workload {
        Workload::dec(self.scaled(requests))
    }
}
