//! The sweeper. It does the work of the product's thread that sweeps after purges, and scrubs at other times.
//! A sweep completes a purge: it reads the disks and drops the records that the purge covers. A scrub reads
//! the disks and drops damaged records.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_store::{Engine, ScrubStep, SweepStep};
use tokio::time::sleep;

use super::world::World;

/// Sweeps and scrubs until the process ends.
pub(super) async fn run(world: Rc<World>, engine: Arc<Engine>, mut rng: Rng) {
    let (mut sweep, mut scrub) = (None, None);
    while !world.is_over.get() {
        let most = match (&sweep, &scrub) {
            (None, None) => 400,
            _ => 40,
        };
        sleep(Duration::from_millis(rng.below(most) + 5)).await;
        if sweep.is_none() {
            sweep = engine.purges().sweep();
        }
        if let Some(pass) = &mut sweep {
            if pass.step() == SweepStep::Done {
                sweep = None;
                world.trace.note("sweep done");
                world.counts.add("sweeps");
            }
            continue;
        }
        if scrub.is_none() && rng.chance(0.02) {
            scrub = engine.scrub();
        }
        if let Some(pass) = &mut scrub
            && pass.step() == ScrubStep::Done
        {
            scrub = None;
            world.counts.add("scrubs");
        }
    }
}
