//! The log record of a finished request. Each worker passes its records to a sink, without allocating memory.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use foxy_base::WallTime;

use crate::{Outcome, RequestId};

/// The log record of a finished request. Texts from the client are unchecked bytes, but contain no CR, LF or
/// NUL. The references are valid only during the call of the sink.
#[derive(Clone, Copy, Debug)]
pub struct LogRecord<'a> {
    /// The time when the answer was complete.
    pub at: WallTime,
    /// Time from the end of parsing the request head until the last byte of the answer was passed to the
    /// kernel.
    pub duration: Duration,
    /// The client.
    pub client: SocketAddr,
    /// The partition: `forward` or a site's name.
    pub partition: &'a str,
    /// The method, or empty if the head could not be read.
    pub method: &'a [u8],
    /// The request target as received, or empty if the head could not be read.
    pub target: &'a [u8],
    /// The `Host` field or the target's authority, as received.
    pub host: &'a [u8],
    /// True if the connection of the client uses TLS.
    pub secure: bool,
    /// Minor version of HTTP/1.
    pub minor: u8,
    /// Status sent to the client; 0 if no status was sent.
    pub status: u16,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The reason for the outcome, as a fixed word; may be empty.
    pub reason: &'static str,
    /// Bytes received for this request, head and body.
    pub bytes_in: u64,
    /// Bytes sent for this request, head and body.
    pub bytes_out: u64,
    /// Body bytes among `bytes_out`, chunk framing included.
    pub body_out: u64,
    /// Status of the origin's answer; 0 if there was no answer.
    pub origin_status: u16,
    /// Address of the origin, if it was asked.
    pub origin: Option<SocketAddr>,
    /// `Content-Type` of the answer.
    pub content_type: &'a [u8],
    /// `Referer` of the request.
    pub referer: &'a [u8],
    /// `User-Agent` of the request.
    pub user_agent: &'a [u8],
    /// Name of the user who is logged in, or empty.
    pub user: &'a str,
    /// Name of the access rule that decided about the request, or empty.
    pub access_rule: &'a str,
    /// Details that only some formats use. `None` if the sink does not want them.
    pub details: Option<Details<'a>>,
}

/// Facts about a request for a sink that wants details.
#[derive(Clone, Copy, Debug)]
pub struct Details<'a> {
    /// The id of the request.
    pub id: RequestId<'a>,
    /// Time from the end of parsing the request head until the first byte was passed to the kernel. This may
    /// be a byte of an interim answer. `None` if nothing was sent.
    pub first_byte: Option<Duration>,
    /// Remaining lifetime of the answer in seconds: below 0 if stale, `None` if it may not be stored.
    pub ttl: Option<i64>,
    /// Name of the operator's caching rule that applied to the request, or empty.
    pub rule: &'a str,
    /// `traceparent` of the request (W3C Trace Context), or empty.
    pub traceparent: &'a [u8],
}

/// The receiver of log records. Each worker owns one sink. The sink must not block, and should not allocate
/// memory for each record. It writes into a buffer, and writes this buffer out when the buffer is full or
/// when [`flush`](Self::flush) is called.
pub trait LogSink: Debug + Send {
    /// Takes one record.
    fn record(&mut self, record: &LogRecord<'_>);
    /// Returns true if the sink wants records. The worker calls this function when it starts and after
    /// [`renew`](Self::renew).
    fn wanted(&self) -> bool {
        true
    }
    /// Returns true if records shall have [`Details`]. Called at the same times as [`wanted`](Self::wanted).
    fn wants_details(&self) -> bool {
        false
    }
    /// Notifies the sink that the worker has new settings. The settings of the log may have changed too.
    fn renew(&mut self) {}
    /// Writes out the buffered records. Called a few times per second, and when the worker ends.
    fn flush(&mut self);
}

/// A sink that drops all records.
#[derive(Debug, Default)]
pub struct NoLog;

impl LogSink for NoLog {
    fn record(&mut self, _: &LogRecord<'_>) {}
    fn wanted(&self) -> bool {
        false
    }
    fn flush(&mut self) {}
}
