//! The writer's side of the inbox.

use std::sync::Arc;

use foxy_base::rule;

use crate::shared::{Inbox, StoreShared};

/// Takes objects, removals and requests out of the inbox.
#[derive(Debug)]
pub(super) struct Intake {
    store: Arc<StoreShared>,
    /// True if this turn of the writer found something in the inbox.
    fed: bool,
    /// True if the writer ends and another writer continues with the store.
    has_heir: bool,
}

impl Intake {
    pub(super) const fn new(store: Arc<StoreShared>) -> Self {
        Self {
            store,
            fed: false,
            has_heir: false,
        }
    }

    /// Sets whether another writer continues with the store. If so, removals and the requests that wait
    /// for them stay in the inbox for the other writer.
    pub(super) const fn set_heir(&mut self, has_heir: bool) {
        self.has_heir = has_heir;
    }

    /// Returns whether the last turn of the writer found something in the inbox.
    pub(super) const fn is_fed(&self) -> bool {
        self.fed
    }

    /// Returns whether the inbox is empty.
    pub(super) fn is_empty(&self) -> bool {
        let inbox = self.store.inbox.lock();
        inbox.items.is_empty() && inbox.removals.is_empty() && inbox.requests.is_empty()
    }

    /// Takes everything that is for this writer.
    pub(super) fn take(&mut self) -> Inbox {
        let mut inbox = self.store.inbox.lock();
        let taken = std::mem::take(&mut *inbox);
        let taken = match rule!(
            "grow: what is removed while the writer ends is left to the one that goes on",
            self.has_heir,
            false
        ) {
            true => inbox.keep_removals(taken),
            false => taken,
        };
        drop(inbox);
        self.fed = !taken.items.is_empty() || !taken.removals.is_empty();
        taken
    }
}

#[cfg(test)]
mod tests {
    use foxy_format::LogPosition;

    use super::*;
    use crate::shared::Removal;
    use crate::writer::stand::{Stand, item};

    #[test]
    fn removals_stay_for_the_heir() {
        let stand = Stand::new();
        let mut intake = Intake::new(stand.store.clone());
        let fill = || {
            stand.store.push(item(100));
            stand.store.remove(Removal::Place(LogPosition(1)));
        };
        fill();
        intake.set_heir(true);
        let taken = intake.take();
        assert_eq!((taken.items.len(), taken.removals.len()), (1, 0));
        assert!(intake.is_fed() && !intake.is_empty());
        intake.set_heir(false);
        let taken = intake.take();
        assert_eq!((taken.items.len(), taken.removals.len()), (0, 1));
        assert!(intake.is_empty());
        intake.take();
        assert!(!intake.is_fed());
    }
}
