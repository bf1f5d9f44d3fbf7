//! A worker's end of the access log: a buffer of lines. The worker hands the buffer to the log thread when
//! the buffer is full, and when `flush` is called (a few times per second).

use std::sync::Arc;

use foxy_proxy::{LogRecord, LogSink};

use super::redaction::Scratch;
use super::switch::{Active, Log, Switch};
use super::write_shown;
use crate::config::LogFormat;

/// Number of bytes at which a buffer is full and is handed to the log thread.
const FULL_BYTES: usize = 32 << 10;

/// Writes lines into a buffer, and hands the buffer to the log thread.
#[derive(Debug)]
pub struct BufferedSink {
    switch: Arc<Switch>,
    seen: u64,
    active: Option<Active>,
    scratch: Scratch,
    lines: Vec<u8>,
    count: u64,
}

impl BufferedSink {
    /// Creates a sink for one worker.
    #[must_use]
    pub fn new(log: &Log) -> Self {
        let switch = log.switch();
        let seen = switch.generation();
        let active = switch.active();
        Self {
            seen,
            active,
            switch,
            scratch: Scratch::default(),
            lines: Vec::new(),
            count: 0,
        }
    }
}

impl LogSink for BufferedSink {
    fn record(&mut self, record: &LogRecord<'_>) {
        let Some(active) = &self.active else { return };
        let client = active.redaction.client(record);
        let shown = active.redaction.apply(record, &mut self.scratch);
        write_shown(&active.format, (&shown, client), &mut self.lines);
        self.count += 1;
        if self.lines.len() >= FULL_BYTES {
            self.flush();
        }
    }

    fn wanted(&self) -> bool {
        self.active.is_some()
    }

    fn wants_details(&self) -> bool {
        match self.active.as_ref().map(|active| &active.format) {
            Some(LogFormat::Json) => true,
            Some(LogFormat::Template(template)) => template.has_details(),
            _ => false,
        }
    }

    fn renew(&mut self) {
        let now = self.switch.generation();
        if now != self.seen {
            // Lines that were recorded before the settings changed go to the old target.
            self.flush();
            self.active = self.switch.active();
            self.seen = now;
        }
    }

    fn flush(&mut self) {
        let Some(active) = self.active.as_ref().filter(|_| self.count > 0) else {
            return;
        };
        let empty = active.handle.empty_buffer();
        let full = std::mem::replace(&mut self.lines, empty);
        active.handle.hand_over(full, self.count);
        self.count = 0;
    }
}

impl Drop for BufferedSink {
    fn drop(&mut self) {
        self.flush();
    }
}
