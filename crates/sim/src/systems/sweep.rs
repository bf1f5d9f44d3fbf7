//! A sweep: runs of many cache systems with the same requests.

use foxy_trace::{Request, TraceError};

use super::{SystemConfig, SystemResult, run_system};
use crate::run::{Job, RunError};

/// Maximum length, in requests, of a stream that is kept in memory. All runs with the same stream share this
/// copy.
const KEEP: usize = 8_000_000;

impl Job for SystemConfig {
    /// The requests of the stream. If the stream has more than `KEEP` requests, this list contains only one
    /// request more than `KEEP`, and each run opens the stream itself.
    type Input = Vec<Request>;
    type Output = SystemResult;
    const FIELD: &'static str = "system";

    fn check(&self) -> Result<(), RunError> {
        Self::check(self)
    }

    fn key(&self) -> String {
        format!("{self:?}")
    }

    fn input_key(&self) -> String {
        format!("{} {} {}", self.workload, self.seed, self.largest)
    }

    fn input(&self) -> Result<Vec<Request>, RunError> {
        let requests = self.requests()?.take(KEEP + 1);
        requests.map(|r| r.map_err(RunError::from)).collect()
    }

    fn output(&self, input: &Vec<Request>) -> Result<SystemResult, RunError> {
        let mut system = self.build()?;
        if input.len() > KEEP {
            return run_system(&mut *system, self.requests()?, self.replay);
        }
        let requests = input.iter().map(|r| Ok::<_, TraceError>(*r));
        run_system(&mut *system, requests, self.replay)
    }
}
