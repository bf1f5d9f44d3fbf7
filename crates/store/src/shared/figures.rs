//! The figures of one store, for operators and metrics.

use std::time::Duration;

use foxy_base::Clock;

use super::StoreShared;
use crate::interface::OneStoreStats;

/// Returns the present figures of a store.
pub(crate) fn of_store(store: &StoreShared, clock: &dyn Clock) -> OneStoreStats {
    let geometry = store.space.geometry();
    let counts = store.counters.read();
    let used = store.space.used_segments() as u64;
    let room = u64::from(geometry.segments) * u64::from(geometry.segment_bytes);
    let written = u128::from(counts.cluster_bytes.max(1));
    let nanos = u128::from(clock.mono().nanos()) * u128::from(room) / written;
    OneStoreStats {
        store: store.id,
        uuid: store.space.uuid().0,
        disk: store.disk.describe(),
        health: store.seen_health(|| clock.mono()),
        full: store.condition.is_full(),
        duty: store.member.duty(),
        left: store.member.left(geometry.segments),
        share: store.load.share(),
        reason: store.condition.reason(),
        device: store.reads.device(),
        reads_sorted: store.reads.sorts(),
        quarantined: store.condition.quarantined(),
        loading: store.loading.seems_on(),
        segments: geometry.segments,
        segment_bytes: geometry.segment_bytes,
        used_bytes: used * u64::from(geometry.segment_bytes),
        residency: (counts.reused > 0)
            .then(|| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))),
        counts,
    }
}
