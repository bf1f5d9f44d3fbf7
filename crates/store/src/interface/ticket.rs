//! Tickets for callers that wait for durability. A caller awaits a ticket as a future, or checks it now
//! and then.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use foxy_base::rule;
use parking_lot::Mutex;

#[derive(Debug)]
struct Shared {
    remaining: AtomicU32,
    failed: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

/// A ticket that is done once earlier changes are durable on every store. The method that returns the
/// ticket states which changes: for example, only removals, or also puts. The ticket is also a future.
/// Dropping it cancels nothing.
#[derive(Clone, Debug)]
pub struct SyncTicket(Arc<Shared>);

/// The result of a [`SyncTicket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// Everything is on the device.
    Yes,
    /// A store could not write, or a missing store may bring removed objects back, because no disk records
    /// that it missed their removal. The changes took effect in memory, but may not survive a restart.
    Failed,
}

/// The writers' side of a ticket. A ticket has one part for each store whose removals or objects it waits
/// for, and one part for each purge journal that it waits for.
#[derive(Debug)]
pub(crate) struct TicketPart(Option<Arc<Shared>>);

impl SyncTicket {
    /// Makes a ticket with this number of parts. The ticket is done when all its parts have ended.
    pub(crate) fn new(parts: u32) -> (Self, Vec<TicketPart>) {
        let shared = Arc::new(Shared {
            remaining: AtomicU32::new(parts),
            failed: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
        });
        let parts = (0..parts)
            .map(|_| TicketPart(Some(shared.clone())))
            .collect();
        (Self(shared), parts)
    }

    /// Makes a ticket that has already failed.
    pub(crate) fn failed() -> Self {
        let (ticket, part) = Self::new(1);
        drop(part);
        ticket
    }

    /// Returns the outcome, or `None` while writers are still working.
    #[must_use]
    pub fn outcome(&self) -> Option<Durable> {
        if self.0.remaining.load(Ordering::Acquire) > 0 {
            return None;
        }
        let failed = self.0.failed.load(Ordering::Acquire);
        Some(if failed {
            Durable::Failed
        } else {
            Durable::Yes
        })
    }

    /// Returns whether all writers have ended their parts, with or without success.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.outcome().is_some()
    }
}

impl Future for SyncTicket {
    type Output = Durable;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Durable> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        self.0.wakers.lock().push(context.waker().clone());
        // If the ticket ended between the first check and the push, the waker may never be called, so the
        // outcome is checked again.
        self.outcome().map_or(Poll::Pending, Poll::Ready)
    }
}

impl TicketPart {
    /// Ends this part with `outcome`. A part that is dropped without this call counts as failed.
    pub(crate) fn finish(mut self, outcome: Durable) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Durable) {
        let Some(shared) = self.0.take() else { return };
        if outcome == Durable::Failed {
            shared.failed.store(true, Ordering::Release);
        }
        if shared.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            for waker in shared.wakers.lock().drain(..) {
                waker.wake();
            }
        }
    }
}

impl Drop for TicketPart {
    fn drop(&mut self) {
        self.end(rule!(
            "ticket: a part that is dropped counts as failed",
            Durable::Failed,
            Durable::Yes
        ));
    }
}
