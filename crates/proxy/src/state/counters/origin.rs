//! Figures about origins: response times, status classes and failures.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::class::{CLASSES, class};
use super::histogram::{Histogram, Latency};
use super::{add_all, bump};

/// A kind of failure of an origin. Each kind has its own label in the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trouble {
    /// The name does not exist, or no name server answers.
    Name,
    /// No address accepts a connection.
    Connect,
    /// No address accepts a connection in time.
    ConnectTimeout,
    /// The TLS handshake or the check of the certificate fails.
    Tls,
    /// No answer comes in time.
    AnswerTimeout,
    /// The connection ends before or inside an answer.
    Closed,
    /// No byte of a body arrives for too long.
    Stalled,
    /// The answer is not HTTP, or is ambiguous.
    BadResponse,
    /// Too many requests wait for the origin.
    Busy,
}

impl Trouble {
    /// Every kind, in the order of the counters.
    pub const ALL: [Self; 9] = [
        Self::Name,
        Self::Connect,
        Self::ConnectTimeout,
        Self::Tls,
        Self::AnswerTimeout,
        Self::Closed,
        Self::Stalled,
        Self::BadResponse,
        Self::Busy,
    ];

    /// Returns the label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect-timeout",
            Self::Tls => "tls",
            Self::AnswerTimeout => "answer-timeout",
            Self::Closed => "closed",
            Self::Stalled => "stalled",
            Self::BadResponse => "bad-response",
            Self::Busy => "busy",
        }
    }
}

/// One worker's figures about origins. Only the owning worker's thread writes them.
#[derive(Debug, Default)]
pub(crate) struct OriginCounters {
    connects: Histogram,
    answers: Histogram,
    classes: [AtomicU64; CLASSES.len()],
    troubles: [AtomicU64; Trouble::ALL.len()],
}

impl OriginCounters {
    /// Counts a new connection. `after` is the time until the connection was ready, TLS handshake included.
    pub(crate) fn connected(&self, after: Duration) {
        self.connects.note(after);
    }

    /// Counts the head of an answer. `after` is the time from the sent request to this head.
    pub(crate) fn answered(&self, status: u16, after: Duration) {
        self.answers.note(after);
        bump(&self.classes[class(status)], 1);
    }

    /// Counts a failure.
    pub(crate) fn failed(&self, trouble: Trouble) {
        bump(&self.troubles[trouble as usize], 1);
    }
}

/// The sum over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginTotals {
    /// Time to connect, TLS handshake included.
    pub connects: Latency,
    /// Time from a request to the head of its answer.
    pub answers: Latency,
    /// Answers by class of their status, in the order of [`CLASSES`].
    pub classes: [u64; CLASSES.len()],
    /// Failures, in the order of [`Trouble::ALL`].
    pub troubles: [u64; Trouble::ALL.len()],
}

impl OriginTotals {
    pub(super) fn add(&mut self, counters: &OriginCounters) {
        self.connects.add(&counters.connects);
        self.answers.add(&counters.answers);
        add_all(&mut self.classes, &counters.classes);
        add_all(&mut self.troubles, &counters.troubles);
    }

    /// Returns the number of failures of this kind.
    #[must_use]
    pub fn trouble(&self, trouble: Trouble) -> u64 {
        self.troubles[trouble as usize]
    }
}
