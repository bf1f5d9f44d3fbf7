//! The word for the result of a request. `Cache-Status`, log and counters use the same word.

/// The outcome of a request. The words for the outcomes must not change, because scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// Served from memory.
    MemoryHit,
    /// Served from disk.
    DiskHit,
    /// The stored answer was stale. The origin confirmed that it is still valid.
    Revalidated,
    /// The stored answer was stale, and was served because the request's max-stale allows it.
    HitMaxStale,
    /// The stored answer was stale, and was served while the origin is asked in the background
    /// (stale-while-revalidate).
    HitWhileRevalidate,
    /// The stored answer was stale, and was served because the origin failed or could not be reached.
    HitOnError,
    /// Served by a fetch that another request had started.
    Collapsed,
    /// No answer was stored, so the answer was fetched.
    Miss,
    /// The stored answer was not usable for this request: it was stale and had changed, or the request
    /// forbade its use. So a new answer was fetched.
    Refreshed,
    /// Sent to the origin without the cache (because of method, request fields or body).
    Bypass,
    /// A `CONNECT` tunnel.
    Tunnel,
    /// A protocol upgrade.
    Upgrade,
    /// A purge, whether it removed an object or found none.
    Purge,
    /// Answered by Foxy itself (landing page, `OPTIONS *`, `Max-Forwards: 0`).
    Local,
    /// Refused: forbidden by the configuration, or by the guard of destinations.
    Denied,
    /// Refused: the request is malformed or too large, or needs a feature that Foxy does not have.
    BadRequest,
    /// The origin could not be reached, or its answer was not valid.
    OriginError,
    /// The origin did not answer in time.
    OriginTimeout,
    /// The client was too slow, or left before the answer was complete.
    ClientGone,
}

impl Outcome {
    /// Every outcome, in the order of the counters.
    pub const ALL: [Self; 19] = [
        Self::MemoryHit,
        Self::DiskHit,
        Self::Revalidated,
        Self::HitMaxStale,
        Self::HitWhileRevalidate,
        Self::HitOnError,
        Self::Collapsed,
        Self::Miss,
        Self::Refreshed,
        Self::Bypass,
        Self::Tunnel,
        Self::Upgrade,
        Self::Purge,
        Self::Local,
        Self::Denied,
        Self::BadRequest,
        Self::OriginError,
        Self::OriginTimeout,
        Self::ClientGone,
    ];

    /// Returns the word for the outcome.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryHit => "memory-hit",
            Self::DiskHit => "disk-hit",
            Self::Revalidated => "revalidated",
            Self::HitMaxStale => "hit-max-stale",
            Self::HitWhileRevalidate => "hit-while-revalidate",
            Self::HitOnError => "hit-on-error",
            Self::Collapsed => "collapsed",
            Self::Miss => "miss",
            Self::Refreshed => "refreshed",
            Self::Bypass => "bypass",
            Self::Tunnel => "tunnel",
            Self::Upgrade => "upgrade",
            Self::Purge => "purge",
            Self::Local => "local",
            Self::Denied => "denied",
            Self::BadRequest => "bad-request",
            Self::OriginError => "origin-error",
            Self::OriginTimeout => "origin-timeout",
            Self::ClientGone => "client-gone",
        }
    }

    /// Returns true if the answer's body came from the cache.
    #[must_use]
    pub const fn is_hit(self) -> bool {
        matches!(
            self,
            Self::MemoryHit
                | Self::DiskHit
                | Self::Revalidated
                | Self::HitMaxStale
                | Self::HitWhileRevalidate
                | Self::HitOnError
        )
    }

    /// Returns true if the cache was asked. The hit ratio is the share of hits among these requests.
    #[must_use]
    pub const fn asks_cache(self) -> bool {
        self.is_hit()
            || matches!(
                self,
                Self::Collapsed | Self::Miss | Self::Refreshed | Self::Bypass
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_in_counter_order() {
        let mut words: Vec<_> = Outcome::ALL.iter().map(|o| o.as_str()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Outcome::ALL.len());
        for (at, outcome) in Outcome::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, at);
        }
    }
}
