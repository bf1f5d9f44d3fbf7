//! The access log: the thread that writes it, and the settings of its lines. A reload can replace both. A
//! worker uses the old thread and settings until it calls `renew` on its sink.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::redaction::{Redaction, Secret};
use super::writer::{LogHandle, LogThread, Shared, start_with};
use crate::config::{LogConfig, LogFormat, LogTarget};

/// The settings of log lines, and the handle of the thread that writes them.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) format: LogFormat,
    pub(super) redaction: Redaction,
    pub(super) handle: LogHandle,
}

/// The state that workers read and that reloads replace.
#[derive(Debug)]
pub(super) struct Switch {
    generation: AtomicU64,
    active: Mutex<Option<Active>>,
}

impl Switch {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn active(&self) -> Option<Active> {
        self.active.lock().clone()
    }

    fn set(&self, active: Option<Active>) {
        *self.active.lock() = active;
        self.generation.fetch_add(1, Ordering::Release);
    }
}

/// The access log.
#[derive(Debug)]
pub struct Log {
    switch: Arc<Switch>,
    thread: Mutex<Option<(LogTarget, LogThread)>>,
    counts: Arc<Shared>,
    secret: Secret,
}

/// The outcome of [`Log::prepare`]: a new target that is open, but not in use yet. `None`: the current target
/// stays in use. `Some(None)`: the new settings turn the log off.
#[derive(Debug)]
pub struct Prepared(Option<Option<LogThread>>);

impl Log {
    /// Opens the target and starts the thread, unless the log is off.
    ///
    /// # Errors
    /// An error if the target cannot be opened or the thread cannot be started.
    pub fn start(config: &LogConfig) -> io::Result<Self> {
        let log = Self {
            switch: Arc::new(Switch {
                generation: AtomicU64::new(0),
                active: Mutex::new(None),
            }),
            thread: Mutex::new(None),
            counts: Arc::default(),
            secret: Secret::drawn()?,
        };
        let prepared = log.prepare(config)?;
        let _ = log.apply(config, prepared);
        Ok(log)
    }

    /// Opens the target of new settings. The settings in use stay unchanged until [`apply`](Self::apply) is
    /// called.
    ///
    /// # Errors
    /// The same errors as those of [`start`](Self::start).
    pub fn prepare(&self, config: &LogConfig) -> io::Result<Prepared> {
        let thread = self.thread.lock();
        let used = thread.as_ref().map(|(target, _)| target);
        let wanted = (config.access != LogTarget::Off).then_some(&config.access);
        if used == wanted {
            return Ok(Prepared(None));
        }
        let new = start_with(&config.access, &self.counts)?;
        Ok(Prepared(Some(new)))
    }

    /// Applies new settings. Returns the thread of the old target, if the target has changed. The caller must
    /// end this thread when all workers use the new settings.
    pub fn apply(&self, config: &LogConfig, prepared: Prepared) -> Option<LogThread> {
        let mut thread = self.thread.lock();
        let mut old = None;
        if let Prepared(Some(new)) = prepared {
            old = thread.take().map(|(_, thread)| thread);
            *thread = new.map(|new| (config.access.clone(), new));
        }
        let active = thread.as_ref().map(|(_, thread)| Active {
            format: config.format.clone(),
            redaction: Redaction {
                clients: config.clients,
                queries: config.queries,
                secret: self.secret,
            },
            handle: thread.handle(),
        });
        drop(thread);
        self.switch.set(active);
        old
    }

    pub(super) fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.switch)
    }

    /// Returns the handle of the current thread; `None` if the log is off.
    #[must_use]
    pub fn handle(&self) -> Option<LogHandle> {
        let thread = self.thread.lock();
        thread.as_ref().map(|(_, thread)| thread.handle())
    }

    /// Writes all lines that were handed over, and ends the thread.
    pub fn finish(&self) {
        let thread = self.thread.lock().take();
        if let Some((_, thread)) = thread {
            thread.finish();
        }
    }
}
