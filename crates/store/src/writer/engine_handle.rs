//! The access of a writer to its engine. The writer uses it to record which stores are open, and to take its
//! store out of the engine.

use std::sync::Arc;

use foxy_base::MonoTime;
use foxy_format::{LogPosition, Membership};
use parking_lot::MutexGuard;

use crate::Durable;
use crate::engine::StoreContext;
use crate::interface::Duty;
use crate::shared::StoreShared;

/// A store, and the parts of the engine to which it belongs. A clone refers to the same store.
#[derive(Clone, Debug)]
pub(super) struct EngineHandle {
    context: StoreContext,
    store: Arc<StoreShared>,
}

impl EngineHandle {
    pub(super) fn new(context: &StoreContext, store: &Arc<StoreShared>) -> Self {
        Self {
            context: context.clone(),
            store: Arc::clone(store),
        }
    }

    /// The parts that another opening of the store needs.
    pub(super) const fn context(&self) -> &StoreContext {
        &self.context
    }

    pub(super) fn now(&self) -> MonoTime {
        self.context.core.clock.mono()
    }

    /// Epoch of the present membership; 0: the memberships of the stores were not compared.
    pub(super) fn epoch(&self) -> u64 {
        self.context.core.fleet.epoch()
    }

    /// The membership that the engine's stores record.
    pub(super) fn membership(&self) -> Option<Membership> {
        self.context.core.fleet.membership()
    }

    /// Returns whether the disks of all other stores record the membership of this epoch.
    pub(super) fn others_have_recorded(&self, epoch: u64) -> bool {
        self.context
            .core
            .fleet
            .others_have_recorded(epoch, self.store.id)
    }

    /// Sets the memory of the writer, in bytes. The RAM tier gets the remainder of the budget.
    pub(super) fn set_writer_bytes(&self, bytes: u64) {
        self.store.load.set_writer_bytes(bytes);
        self.context.memory.rebalance();
    }

    /// Makes the other stores note that this store records no removals from now on.
    pub(super) fn leave_behind(&self) {
        self.context.purges.leave_behind(self.store.id);
    }
}

/// Methods for leaving. Only one store at a time is added or taken out, so callers of these methods hold the
/// lock that `lock_membership` returns.
impl EngineHandle {
    pub(super) fn lock_membership(&self) -> MutexGuard<'_, ()> {
        self.context.core.fleet.lock_membership()
    }

    /// Stops sending anything new to the store; when this returns, no thread is about to send anything.
    /// Returns the duty that the store had.
    pub(super) fn begin_to_leave(&self) -> Duty {
        let duty = self.store.member.duty();
        self.store.member.set_duty(Duty::Leaving);
        self.barrier();
        duty
    }

    /// Begins to note removals for the store while it is detached.
    pub(super) fn note_removals(&self) {
        let most = self.context.core.budget.detached_keys_max();
        self.detached().begin(self.store.space.uuid(), most);
        self.barrier();
    }

    /// Notes that the contents from `floor` on are live if the store is attached again with this generation.
    pub(super) fn may_reattach(&self, generation: u64, floor: LogPosition) {
        self.detached()
            .left(self.store.space.uuid(), generation, floor);
    }

    /// Ends noting removals: the store is not detached, or will begin empty when it is attached again.
    pub(super) fn forget_removals(&self) {
        self.detached().take(self.store.space.uuid());
    }

    /// Handles a store whose disk does not record that the store's contents are dead. The other stores
    /// record it instead. If there are no other stores, nothing records it.
    pub(super) fn leave_unmarked(&self) {
        self.context.core.fleet.trust().leave_unmarked();
        self.leave_behind();
    }

    /// Takes the store out: no index entry and no list refers to it any more.
    pub(super) fn take_out(&self) {
        let outcome = match self.context.core.fleet.is_unnoted() {
            true => Durable::Failed,
            false => Durable::Yes,
        };
        self.context.catalogue.detach(&self.store, outcome);
        self.context.memory.rebalance();
    }

    fn detached(&self) -> &crate::fleet::DetachedStores {
        self.context.core.fleet.detached()
    }

    fn barrier(&self) {
        self.context.core.tables.shards().barrier();
    }
}
