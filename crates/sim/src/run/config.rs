//! The configuration of one run.

use serde::Serialize;

use super::{Backend, RunError, Workload};
use crate::{
    layout::{Calls, Layout, LayoutSpec, lazy_reads::LazyConfig, spec::LayoutSizes},
    levels::{DiskOp, LevelsConfig},
    model::SimTime,
};

/// All parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunConfig {
    /// Source of the requests.
    pub workload: Workload,
    /// Seed of generated requests.
    pub seed: u64,
    /// Cache levels.
    pub levels: LevelsConfig,
    /// Number of disk operations after which the run stops. If it is 0, the run stops at the end of the
    /// workload.
    pub ops: u64,
    /// The layout.
    pub layout: LayoutSpec,
    /// Share of the file of the STREAM family (STREAM and the layouts that are built on it) that the disk
    /// level may fill. The size of the file is the capacity of the disk level divided by this share.
    pub utilisation: f64,
    /// Page size of the packetizer, bytes.
    pub page: u64,
    /// Bytes of a locality buffer.
    pub buffer: u64,
    /// Longest wait of a lazy read, milliseconds.
    pub timeout_ms: f64,
    /// True if the files that objects share exist at full size before the first operation.
    pub file_exists: bool,
    /// The calls with which the layout writes into files that objects share.
    pub calls: Calls,
    /// Drive and file system.
    pub backend: Backend,
}

impl RunConfig {
    /// The published conditions of the STREAM family: DEC stream, 512 MB of memory, 2 GB of disk, a million
    /// operations, 71 % of the file in use. The file exists beforehand and is written through a mapping.
    /// BUDDY's class files grow and are written by write() (decision 130).
    #[must_use]
    pub fn published(layout: LayoutSpec) -> Self {
        Self {
            workload: Workload::dec(u64::MAX),
            seed: 1,
            levels: LevelsConfig::lru(512 << 20, 2 << 30),
            ops: 1_000_000,
            layout,
            utilisation: 0.71,
            page: 8 << 10,
            buffer: 64 << 10,
            timeout_ms: LazyConfig::default().timeout.as_millis(),
            file_exists: layout.is_stream(),
            calls: Self::calls(layout),
            backend: Backend::default(),
        }
    }

    /// The call by which a layout writes in a run under published conditions. Decision 130 gives the reasons.
    #[must_use]
    pub const fn calls(layout: LayoutSpec) -> Calls {
        if layout.is_stream() {
            Calls::Mmap
        } else {
            Calls::Write
        }
    }

    /// Finds mistakes in the parameters that can be found without a run.
    ///
    /// # Errors
    /// Returns a sentence that names the impossible parameter.
    pub fn check(&self) -> Result<(), RunError> {
        let bad = |text: &str| Err(RunError::Config(text.to_owned()));
        if self.levels.disk < 1 << 16 {
            return bad("the disk level needs at least 64 KiB");
        }
        if !(self.utilisation > 0.0 && self.utilisation <= 1.0) {
            return bad("utilisation must be above 0 and at most 1");
        }
        if !self.page.is_power_of_two() || self.page < 512 {
            return bad("the page must be a power of two from 512 on");
        }
        if !(self.timeout_ms.is_finite() && self.timeout_ms >= 0.0) {
            return bad("the timeout of lazy reads must be a number of milliseconds from 0 on");
        }
        if self.calls == Calls::Mmap && self.backend.dir.is_some() {
            return bad("real files are written by write(); --calls mmap is for modelled ones");
        }
        if self.file_exists && self.ops == 0 && matches!(self.layout, LayoutSpec::Buddy(_)) {
            return bad(
                "how long BUDDY's class files must be is not known before the workload ends; give \
                 a number of operations by --ops, or let the files grow",
            );
        }
        if self.buffer < 512 {
            return bad("a locality buffer needs at least 512 bytes");
        }
        Ok(())
    }

    /// Size of the STREAM family's file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        (self.levels.disk as f64 / self.utilisation) as u64 / 512 * 512
    }

    /// Creates the layout. `coming` are the operations that the layout will get; empty if they are not known
    /// beforehand.
    pub(crate) fn build(&self, coming: &[DiskOp]) -> Result<Box<dyn Layout>, RunError> {
        self.check()?;
        self.backend.layout(self.layout, self.sizes(), coming)
    }

    pub(crate) fn sizes(&self) -> LayoutSizes {
        LayoutSizes {
            bytes: self.file_bytes(),
            page: self.page,
            buffer: self.buffer,
            timeout: SimTime::from_millis(self.timeout_ms),
            exists: self.file_exists,
            calls: self.calls,
        }
    }
}
