//! Choice of a store for a new object.

use std::sync::Arc;

use foxy_base::{Clock, hash64};

use crate::fleet::Fleet;
use crate::memory::{EngineCore, MemoryBudget};
use crate::shared::StoreShared;

/// Chooses the stores that take new objects.
#[derive(Debug)]
pub(crate) struct Routes {
    fleet: Arc<Fleet>,
    budget: Arc<MemoryBudget>,
    clock: Arc<dyn Clock>,
}

impl Routes {
    pub(crate) fn new(core: &EngineCore) -> Self {
        Self {
            fleet: Arc::clone(&core.fleet),
            budget: Arc::clone(&core.budget),
            clock: Arc::clone(&core.clock),
        }
    }

    /// Returns the store that takes objects with this [`crate::Object::route`], by weighted rendezvous
    /// hashing over the stores that take writes and have memory for pending objects. Lookups do not depend
    /// on this choice.
    pub(crate) fn route(&self, key: u64) -> Option<Arc<StoreShared>> {
        let stores = self.fleet.stores();
        let takes = |s: &&Arc<StoreShared>| s.takes_new(|| self.clock.mono());
        let able: Vec<_> = stores.iter().filter(takes).collect();
        if let [only] = able[..] {
            return Some(only.clone());
        }
        let has_room = |all: u64| {
            let stores = able.iter().copied();
            stores.filter(move |s| self.budget.has_room(s, all))
        };
        // The first choice lets each store use only its part of the memory for pending objects, in
        // proportion to its write speed. If every store has used up its part, the second choice lets a
        // store use the memory that is left.
        let best = best_of(key, has_room(sum_of_speeds(&able)));
        best.or_else(|| best_of(key, has_room(0))).cloned()
    }
}

/// Returns the store with the highest score for a key.
fn best_of<'a>(
    key: u64,
    stores: impl Iterator<Item = &'a Arc<StoreShared>>,
) -> Option<&'a Arc<StoreShared>> {
    let score = |s: &StoreShared| {
        let draw = hash64(key, &s.space.uuid().0) as f64 / u64::MAX as f64;
        -s.load.share() / draw.clamp(1e-18, 1.0 - 1e-15).ln()
    };
    stores.max_by(|a, b| score(a).total_cmp(&score(b)))
}

/// The sum of the stores' write speeds in bytes per second; 0 if the speed of a store is not known.
fn sum_of_speeds(stores: &[&Arc<StoreShared>]) -> u64 {
    let speeds = stores.iter().try_fold(0_u64, |all, s| {
        let speed = s.load.write_speed();
        (speed > 0).then(|| all.saturating_add(speed))
    });
    speeds.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duty;
    use crate::tests::rig::{bare_store, engine_core};

    #[test]
    fn a_key_keeps_its_store_while_that_takes_objects() {
        let core = engine_core(64 << 20);
        let (routes, fleet) = (Routes::new(&core), &core.fleet);
        assert!(routes.route(1).is_none());
        let stores = [bare_store(0), bare_store(1)];
        fleet.registry().add(&stores[0], None);
        let to = |key: u64| routes.route(key).unwrap().id;
        assert!((0..64).all(|key| to(key) == stores[0].id), "the only one");
        fleet.registry().add(&stores[1], None);
        let both: Vec<_> = (0..64).map(to).collect();
        assert!(stores.iter().all(|store| both.contains(&store.id)));
        assert!((0..64).all(|key| to(key) == both[key as usize]));
        stores[1].member.set_duty(Duty::Draining);
        assert!((0..64).all(|key| to(key) == stores[0].id));
    }
}
