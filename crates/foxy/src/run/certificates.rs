//! Checks certificate files for changes.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, MonoTime};
use foxy_tls::ServerTls;
use parking_lot::Mutex;

/// Time between two checks.
const EVERY: Duration = Duration::from_secs(10);

/// The certificates of all listeners. A reload changes them.
#[derive(Clone, Debug)]
pub(super) struct InUse(Arc<Mutex<Vec<ServerTls>>>);

impl InUse {
    /// Stores these certificates as the certificates in use. Also logs the problems of their files.
    pub(super) fn new(all: Vec<ServerTls>, clock: &dyn Clock) -> Self {
        let new = Self(Arc::default());
        new.set(all, clock);
        new
    }

    /// Replaces the certificates, and logs like [`new`](Self::new).
    pub(super) fn set(&self, all: Vec<ServerTls>, clock: &dyn Clock) {
        for warning in all.iter().flat_map(|tls| tls.warnings(seconds(clock))) {
            tracing::warn!("{warning}");
        }
        *self.0.lock() = all;
    }
}

/// The regular checks of the certificate files.
#[derive(Debug)]
pub(super) struct Certificates {
    all: InUse,
    next: Option<MonoTime>,
}

impl Certificates {
    pub(super) fn new(all: InUse) -> Self {
        Self { all, next: None }
    }

    /// Checks the files again if the interval has passed.
    pub(super) fn step(&mut self, clock: &dyn Clock) {
        let now = clock.mono();
        if now < *self.next.get_or_insert(now + EVERY) {
            return;
        }
        self.next = Some(now + EVERY);
        let wall = seconds(clock);
        let all = self.all.0.lock().clone();
        for tls in &all {
            let renewed = tls.renew(wall);
            for served in renewed.changed {
                let certificate = served.certificate();
                let names = certificate.names.join(", ");
                let days = certificate.days_left(wall);
                tracing::info!(file = %served.path().display(), names, days, "a new certificate is used");
            }
            for problem in renewed.problems {
                tracing::warn!("a certificate stays as it was: {problem}");
            }
        }
    }
}

fn seconds(clock: &dyn Clock) -> i64 {
    clock.wall().0.div_euclid(1000)
}
