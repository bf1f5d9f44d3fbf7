//! A worker's end of the access log: a buffer that is handed over when full or a little old.

use foxy_proxy::{LogRecord, LogSink};

use super::{LogHandle, without_queries, write_line};
use crate::config::LogFormat;

/// A buffer is handed over when it holds this much.
const FULL_BYTES: usize = 32 << 10;

/// Writes lines into a buffer and hands it to the log thread.
#[derive(Debug)]
pub struct BufferedSink {
    format: LogFormat,
    query_strings: bool,
    handle: LogHandle,
    lines: Vec<u8>,
    count: u64,
}

impl BufferedSink {
    /// A sink for one worker; the queries of URLs are left out unless `query_strings`.
    #[must_use]
    pub fn new(format: LogFormat, query_strings: bool, handle: LogHandle) -> Self {
        let lines = handle.empty_buffer();
        Self {
            format,
            query_strings,
            handle,
            lines,
            count: 0,
        }
    }
}

impl LogSink for BufferedSink {
    fn record(&mut self, record: &LogRecord<'_>) {
        let cut = without_queries(record);
        let record = if self.query_strings { record } else { &cut };
        write_line(self.format, record, &mut self.lines);
        self.count += 1;
        if self.lines.len() >= FULL_BYTES {
            self.flush();
        }
    }

    fn wants_details(&self) -> bool {
        self.format == LogFormat::Json
    }

    fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        let empty = self.handle.empty_buffer();
        let full = std::mem::replace(&mut self.lines, empty);
        self.handle.hand_over(full, self.count);
        self.count = 0;
    }
}

impl Drop for BufferedSink {
    fn drop(&mut self) {
        self.flush();
    }
}
