//! Additional fetches for a crowd (the requests that wait for the same answer). These fetches are started if
//! the head of the answer is overdue. After three seconds one waiting request also asks the origin. After six
//! seconds two more requests ask the origin, and after nine seconds four more requests. The first head that
//! is not a server error answers all waiting requests that may have it, including the request that started
//! the first fetch.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::rule;
use tokio::time::Instant;

use super::{Fill, FillMap, FillWriter, Follower, wake_all};

/// Time between two rounds. In each round, waiting requests start additional fetches.
const ROUND: Duration = Duration::from_secs(3);
/// Number of rounds. The rounds start one, two and four additional fetches.
const ROUNDS: u32 = 3;

/// Returns the total number of additional fetches that are permitted when the crowd has waited for `waited`.
fn seconds_allowed(waited: Duration) -> u32 {
    let rounds = u32::try_from(waited.as_millis() / ROUND.as_millis()).unwrap_or(u32::MAX);
    (1 << rounds.min(ROUNDS)) - 1
}

impl<H> Follower<H> {
    /// Returns the time when the next request of the crowd may also ask the origin; `None` if no further
    /// request may ask.
    pub(crate) fn next_round(&self, now: Instant) -> Option<Instant> {
        let waited = now.saturating_duration_since(self.fill.started);
        let rounds = u32::try_from(waited.as_millis() / ROUND.as_millis()).unwrap_or(u32::MAX);
        (rounds < ROUNDS).then(|| self.fill.started + ROUND * (rounds + 1))
    }

    /// Takes the right to start one of the additional fetches that are allowed at `now`. Returns false if all
    /// of these fetches were started already, or if the head has arrived.
    pub(crate) fn take_turn(&self, now: Instant) -> bool {
        let waited = now.saturating_duration_since(self.fill.started);
        let mut state = self.fill.state.lock();
        let free = state.head.is_none() && state.seconds < seconds_allowed(waited);
        state.seconds += u32::from(free);
        free
    }
}

impl<H> FillMap<H> {
    /// Starts an additional fetch for the key of `follower`, because the head of the first fetch is overdue.
    /// Requests join the fetch that receives its head first.
    pub(crate) fn second(&self, follower: &Follower<H>) -> (FillWriter<H>, Follower<H>) {
        let first = &follower.fill;
        let fill = Fill {
            second: true,
            ..Fill::new(first.slot, first.hash, first.key.clone(), first.base)
        };
        let (writer, follower) = fill.started();
        self.register(writer.fill());
        (writer, follower)
    }

    /// Called when `fill` has received its head before the other fetches for the same key. Requests that wait
    /// for the other fetches then repeat their lookup. If requests other than the leader (the request that
    /// started the fill) may have the answer (`joinable`), they join this fill, and so do later requests.
    pub(crate) fn prefer(&self, fill: &Arc<Fill<H>>, joinable: bool) {
        if rule!(
            "fill: the first of several answers is offered only if it may be shared",
            joinable,
            true
        ) {
            self.offer(fill);
        } else {
            self.shard(fill.slot).lock().open.remove(&fill.slot);
        }
        for other in self.of(fill.base) {
            if other.slot == fill.slot && !Arc::ptr_eq(&other, fill) {
                other.send_elsewhere();
            }
        }
    }
}

impl<H> Fill<H> {
    fn send_elsewhere(&self) {
        let mut state = self.state.lock();
        if state.head.is_some() || state.end.is_some() {
            return;
        }
        state.elsewhere = true;
        let wakers = state.take_wakers();
        drop(state);
        wake_all(wakers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_then_two_then_four_more_ask() {
        let after = |secs| seconds_allowed(Duration::from_secs(secs));
        assert_eq!(
            [0, 2, 3, 5, 6, 9, 12, 3600].map(after),
            [0, 0, 1, 1, 3, 7, 7, 7]
        );
    }
}
