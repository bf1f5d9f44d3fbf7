//! Fragments of large objects while they are sent to the clients of one worker.
//!
//! Requests that send the same fragment at the same time share one copy in memory, one read, and one entry in
//! the ledger (the count of the memory for requests). Therefore many clients that read one object together
//! need little more memory than a single client.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use foxy_base::KeyHash;
use foxy_store::Object;
use hashbrown::HashMap;
use tokio::sync::Notify;

use crate::state::ledger::{Entry, Ledger, Use};
use crate::state::local::Local;

/// A request that waits for memory for its fragment checks at least once in this time whether memory is free.
/// When a request of the same worker frees the memory of a fragment, it wakes the requests that wait for the
/// first fragment in the queue. Other workers and other uses of memory wake no request when they free memory,
/// so the checks are needed too.
const PAUSE: Duration = Duration::from_millis(50);

/// Identifies a fragment of one version of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FragmentId {
    hash: KeyHash,
    version: u64,
    number: u32,
}

impl FragmentId {
    /// Returns the id of fragment `number` of the object with this head.
    pub(crate) fn of(head: &Object, number: u32) -> Self {
        Self {
            hash: head.hash(),
            version: head.meta().version,
            number,
        }
    }
}

/// All fragments that requests of one worker hold in memory.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    register: Rc<RefCell<Register>>,
}

#[derive(Debug, Default)]
struct Register {
    open: HashMap<FragmentId, Weak<HeldFragment>>,
    /// The fragments that requests wait for. The longest wait comes first.
    waiting: VecDeque<(FragmentId, Rc<Notify>)>,
}

/// The memory that is reserved for one fragment, and the fragment itself as soon as it was read. When the
/// last request drops its copy of this value, the memory is free again.
#[derive(Debug)]
pub(crate) struct HeldFragment {
    id: FragmentId,
    object: OnceCell<Arc<Object>>,
    register: Rc<RefCell<Register>>,
    memory: Entry,
}

impl HeldFragment {
    /// Returns the fragment, if a request has read it.
    pub(crate) fn object(&self) -> Option<&Arc<Object>> {
        self.object.get()
    }

    /// Sets the fragment after it was read.
    pub(crate) fn set(&self, object: &Arc<Object>) {
        // Another request may have set it first, with the same bytes.
        let _ = self.object.set(Arc::clone(object));
    }

    /// Returns the id of the fragment.
    pub(crate) fn id(&self) -> FragmentId {
        self.id
    }
}

impl Drop for HeldFragment {
    fn drop(&mut self) {
        self.memory.shrink_to(0);
        let mut register = self.register.borrow_mut();
        register.open.remove(&self.id);
        register.wake_next();
    }
}

impl Register {
    /// Wakes all requests that wait for the first fragment in the queue. A fragment for which no request
    /// waits any more is skipped.
    fn wake_next(&mut self) {
        while let Some((_, requests)) = self.waiting.pop_front() {
            // A reference count of one means that all of these requests have given up.
            if Rc::strong_count(&requests) > 1 {
                requests.notify_waiters();
                return;
            }
        }
    }

    /// Wakes all requests that wait for this fragment.
    fn wake(&mut self, id: FragmentId) {
        if let Some(at) = self.waiting.iter().position(|(other, _)| *other == id)
            && let Some((_, requests)) = self.waiting.remove(at)
        {
            requests.notify_waiters();
        }
    }

    /// Adds a request to the queue of this fragment.
    fn queue(&mut self, id: FragmentId) -> Rc<Notify> {
        if let Some((_, requests)) = self.waiting.iter().find(|(other, _)| *other == id) {
            return Rc::clone(requests);
        }
        let requests = Rc::new(Notify::new());
        self.waiting.push_back((id, Rc::clone(&requests)));
        requests
    }
}

impl Fragments {
    /// Reserves memory for a fragment of `bytes` bytes. If another request has already reserved it, shares
    /// that memory. Returns `None` if there is no memory now.
    pub(crate) fn try_hold(
        &self,
        ledger: &Arc<Ledger>,
        id: FragmentId,
        bytes: u32,
    ) -> Option<Rc<HeldFragment>> {
        let known = self.register.borrow().open.get(&id).and_then(Weak::upgrade);
        if known.is_some() {
            return known;
        }
        // A fragment that is larger than the limit for all fragments reserves only as many bytes as the
        // limit. So a single fragment never exceeds the limit.
        let bytes = (bytes as usize).min(ledger.limit(Use::Fragments));
        let held = Rc::new(HeldFragment {
            id,
            object: OnceCell::new(),
            register: Rc::clone(&self.register),
            memory: ledger.reserve(Use::Fragments, bytes)?,
        });
        let mut register = self.register.borrow_mut();
        register.open.insert(id, Rc::downgrade(&held));
        register.wake(id);
        Some(held)
    }

    /// Does the same as [`try_hold`](Self::try_hold), but waits for memory until other requests have sent
    /// their fragments. To free memory, clients that do not read are disconnected. Returns `None` if no
    /// memory becomes free within the time limit for progress. Cancel safe.
    pub(crate) async fn hold(
        &self,
        local: &Local,
        id: FragmentId,
        bytes: u32,
    ) -> Option<Rc<HeldFragment>> {
        let now = || local.sweep.now();
        let began = now();
        loop {
            let held = self.try_hold(&local.proxy.ledger, id, bytes);
            if held.is_some() || now().since(began) > local.timeouts.progress {
                return held;
            }
            local.shed_stalled();
            let requests = self.register.borrow_mut().queue(id);
            let _ = tokio::time::timeout(PAUSE, requests.notified()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use foxy_base::key_hash;
    use tokio::task::spawn_local;

    use super::*;
    use crate::testing::with_worker;

    /// Size of a fragment in bytes. The memory for requests has room for one such fragment, but not for two.
    const BYTES: u32 = 200 << 10;
    const MEMORY: usize = 1 << 20;

    fn id(number: u32) -> FragmentId {
        FragmentId {
            hash: key_hash(b"k"),
            version: 1,
            number,
        }
    }

    #[test]
    fn a_fragment_that_several_requests_send_is_entered_once() {
        with_worker(MEMORY, |local| async move {
            let ledger = &local.proxy.ledger;
            let hold = |n| local.fragments.try_hold(ledger, id(n), BYTES);
            let used = || ledger.used(Use::Fragments);
            let (one, other) = (hold(1).unwrap(), hold(1).unwrap());
            assert_eq!(used(), BYTES as usize);
            assert!(hold(2).is_none(), "no room for another fragment");
            drop(one);
            assert_eq!(used(), BYTES as usize);
            drop(other);
            assert_eq!(used(), 0);
            assert!(hold(2).is_some());
        });
    }

    #[test]
    fn one_fragment_goes_out_whatever_the_memory_is() {
        with_worker(1000, |local| async move {
            let ledger = &local.proxy.ledger;
            let hold = |n| local.fragments.try_hold(ledger, id(n), BYTES);
            let _one = hold(1).unwrap();
            assert!(hold(2).is_none());
        });
    }

    #[test]
    fn requests_that_wait_for_the_same_fragment_get_it_together() {
        with_worker(MEMORY, |local| async move {
            let first = local.fragments.hold(&local, id(1), BYTES).await.unwrap();
            let order = Rc::new(RefCell::new(Vec::new()));
            let waits: Vec<_> = [2, 3, 2]
                .into_iter()
                .map(|n| {
                    let (local, order) = (Rc::clone(&local), Rc::clone(&order));
                    spawn_local(async move {
                        let held = local.fragments.hold(&local, id(n), BYTES).await;
                        order.borrow_mut().push(n);
                        // The pause is long enough for all other requests to check for free memory.
                        tokio::time::sleep(2 * PAUSE).await;
                        held.is_some()
                    })
                })
                .collect();
            tokio::time::sleep(2 * PAUSE).await;
            assert_eq!(*order.borrow(), [0; 0]);
            drop(first);
            for wait in waits {
                assert!(wait.await.unwrap());
            }
            assert_eq!(*order.borrow(), [2, 2, 3]);
        });
    }
}
