//! The thread that does a layout's reads and writes.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread::{Builder, JoinHandle},
};

use super::Done;
use crate::{
    layout::{Layout, LayoutStats},
    levels::DiskOp,
    model::Op,
    run::{Course, RunConfig, RunError},
};

/// One operation, and the callback that is called when the operation is done.
pub(super) struct Work {
    pub(super) op: DiskOp,
    pub(super) done: Option<Done>,
}

/// The counts of the layout, of failed operations, and of the device.
pub(super) struct Disk {
    pub(super) stats: LayoutStats,
    pub(super) refused: u64,
    pub(super) missing: u64,
    pub(super) device: (u64, u64),
}

/// Starts the thread. Dropping the sender ends the thread after all sent operations are done.
///
/// # Errors
/// Returns an error if the thread cannot be started or the layout cannot be created.
#[expect(clippy::type_complexity, reason = "named nowhere else")]
pub(super) fn spawn(
    config: &RunConfig,
) -> Result<(Sender<Work>, JoinHandle<Result<Disk, RunError>>), RunError> {
    let (work, take) = channel();
    let (ready, begun) = channel();
    let config = config.clone();
    let thread = Builder::new().name("layout".into());
    let no_thread = |error: std::io::Error| RunError::Config(format!("no thread: {error}"));
    let disk = thread
        .spawn(move || {
            // The layout is created on this thread, because it cannot be sent to another thread.
            let layout = config.build(&[])?;
            // Sending fails only if the caller has ended.
            let _gone = ready.send(());
            serve(layout, &take)
        })
        .map_err(no_thread)?;
    if begun.recv().is_err() {
        let ended = disk
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        return Err(ended.err().unwrap_or(RunError::Stopped));
    }
    Ok((work, disk))
}

fn serve(mut layout: Box<dyn Layout>, take: &Receiver<Work>) -> Result<Disk, RunError> {
    let before = layout.counters();
    let (mut course, mut ended) = (Course::default(), Ok(()));
    for Work { op, done } in take {
        let result = layout.apply(&op);
        if let Some(done) = done {
            done(result.is_ok());
        }
        // Clients continue after an error; the first error is reported at the end.
        ended = ended.and(course.count(result));
    }
    layout.finish().map_err(RunError::Layout)?;
    let after = layout.counters();
    let requests = |op| after.all(op) - before.all(op);
    ended.map(|()| Disk {
        stats: layout.stats(),
        refused: course.refused,
        missing: course.missing,
        device: (requests(Op::Read), requests(Op::Write)),
    })
}
