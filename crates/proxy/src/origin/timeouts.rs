//! Timeouts of a connection to an origin. They come from the settings of the proxy or of the site.

use crate::OriginTimeouts;
use crate::http::net::Ticks;
use crate::state::local::Local;

/// Timeouts of one connection to an origin, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginTimeoutTicks {
    pub(crate) first_byte: Ticks,
    pub(crate) progress: Ticks,
    /// Silence in a body after which the rest of the body is requested on another connection.
    pub(crate) quiet: Ticks,
}

impl OriginTimeoutTicks {
    pub(crate) fn of(local: &Local, own: &OriginTimeouts) -> Self {
        let general = &local.timeouts;
        let progress = own.progress.map_or(general.upstream, Ticks::of);
        Self {
            first_byte: own.first_byte.map_or(general.first_byte, Ticks::of),
            progress,
            quiet: general.quiet.min(progress),
        }
    }
}
