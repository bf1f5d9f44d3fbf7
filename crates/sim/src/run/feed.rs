//! Produces a workload's operations on a separate thread. At the same time, the caller's thread executes them
//! on a layout (a simulated way to place objects on a disk).
//!
//! Generating requests and passing them through the simulated cache levels (memory and disk) takes about as
//! much time as the computations of the modelled drive. The requests do not depend on the results of these
//! computations. A long run takes a third less time on two processors than on one. The operations and their
//! order are the same as with one thread.

use std::{
    mem,
    panic::resume_unwind,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use super::{RunConfig, RunError, STOP_CHECK_INTERVAL, go_on};
use crate::levels::{DiskOp, LevelCounts, Levels};

/// Number of operations in one batch. It is equal to the number of operations between two checks for a stop.
const BATCH: usize = STOP_CHECK_INTERVAL;
/// Number of batches that may wait. More batches would only take memory.
const AHEAD: usize = 4;

/// Passes every operation of the workload to `each`. Returns the counts of the levels.
///
/// # Errors
/// Returns an error if the workload cannot be read, `each` fails, or the user asks to stop.
pub(super) fn feed(
    config: &RunConfig,
    mut each: impl FnMut(&DiskOp) -> Result<(), RunError>,
) -> Result<LevelCounts, RunError> {
    let (give, take) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let maker = scope.spawn(move || make(config, &give));
        let done = take.iter().try_for_each(|batch: Vec<DiskOp>| {
            go_on()?;
            batch.iter().try_for_each(&mut each)
        });
        // After an error in `each` or a stop, the other thread is still making operations. Dropping the
        // receiver ends that thread.
        drop(take);
        let made = maker.join().unwrap_or_else(|panic| resume_unwind(panic));
        done.and(made)
    })
}

/// Makes operations until the workload ends, or until the receiver is dropped.
fn make(config: &RunConfig, give: &SyncSender<Vec<DiskOp>>) -> Result<LevelCounts, RunError> {
    let mut levels = Levels::new(config.levels);
    let mut ops = Vec::with_capacity(BATCH);
    for (number, request) in config.workload.open(config.seed)?.enumerate() {
        if number.is_multiple_of(STOP_CHECK_INTERVAL) {
            go_on()?;
        }
        levels.request(&request?, &mut ops);
        if ops.len() < BATCH {
            continue;
        }
        let batch = mem::replace(&mut ops, Vec::with_capacity(BATCH));
        if give.send(batch).is_err() {
            break;
        }
    }
    // If the receiver was dropped, its owner reports the error.
    let _ended = give.send(ops);
    Ok(*levels.counts())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{layout::LayoutSpec, run::Workload};

    fn config(requests: u64) -> RunConfig {
        RunConfig {
            workload: Workload::dec(requests),
            ..RunConfig::published(LayoutSpec::Stream)
        }
    }

    #[test]
    fn an_error_of_the_taker_ends_the_maker() {
        // This workload is endless.
        let mut taken = 0;
        let error = feed(&config(u64::MAX), |_| {
            taken += 1;
            if taken == 3 * BATCH {
                Err(RunError::Nothing)
            } else {
                Ok(())
            }
        });
        assert!(matches!(error, Err(RunError::Nothing)), "{error:?}");
        assert_eq!(taken, 3 * BATCH);
    }

    #[test]
    fn an_error_of_the_workload_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("no log");
        let config = RunConfig {
            workload: Workload::Log(log),
            ..config(1)
        };
        let error = feed(&config, |_| Ok(()));
        assert!(matches!(error, Err(RunError::Trace(_))), "{error:?}");
    }
}
