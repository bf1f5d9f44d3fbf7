//! A workload's operations, made on a thread of their own beside the layout that does them.
//!
//! Generating requests and passing them through the levels costs about as much as the modelled
//! drive does, and needs nothing from it: with two processors a long run takes a third less time.
//! The operations and their order are those of one thread.

use std::{
    mem,
    panic::resume_unwind,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use super::{LOOK_EVERY, RunConfig, RunError, go_on};
use crate::levels::{DiskOp, LevelCounts, Levels};

/// Operations in one batch: as many as lie between two checks whether to stop.
const BATCH: usize = LOOK_EVERY;
/// Batches that may wait; more would only take memory.
const AHEAD: usize = 4;

/// Gives every operation of the workload to `each`, and then the counts of the levels.
///
/// # Errors
/// The workload cannot be read, `each` failed, or somebody asked to end.
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
        // Dropping the receiver ends the maker thread after an error.
        drop(take);
        let made = maker.join().unwrap_or_else(|panic| resume_unwind(panic));
        done.and(made)
    })
}

/// Makes operations until the workload ends, or nobody takes them.
fn make(config: &RunConfig, give: &SyncSender<Vec<DiskOp>>) -> Result<LevelCounts, RunError> {
    let mut levels = Levels::new(config.levels);
    let mut ops = Vec::with_capacity(BATCH);
    for (number, request) in config.workload.open(config.seed)?.enumerate() {
        if number.is_multiple_of(LOOK_EVERY) {
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
    // A receiver that stopped reports its own error.
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
        // The workload has no end.
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
