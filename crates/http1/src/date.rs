//! The Date field, formatted once per second.

use foxy_base::WallTime;

/// Length of an IMF-fixdate in bytes (RFC 9110 section 5.6.7).
const LEN: usize = 29;

/// A cache of the text of the last date. Each network thread has its own cache.
#[derive(Clone, Debug)]
pub struct DateCache {
    secs: i64,
    text: [u8; LEN],
}

impl Default for DateCache {
    fn default() -> Self {
        Self::new()
    }
}

impl DateCache {
    /// A cache that contains the text of the Unix epoch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            secs: 0,
            text: *b"Thu, 01 Jan 1970 00:00:00 GMT",
        }
    }

    /// Returns `now` as an IMF-fixdate. Times before 1970 and after 9999 are clamped to that range.
    pub fn get(&mut self, now: WallTime) -> &[u8; LEN] {
        let secs = now.secs().clamp(0, LAST_SECOND);
        if secs != self.secs {
            self.format(secs);
        }
        &self.text
    }

    fn format(&mut self, secs: i64) {
        use std::io::Write as _;
        let since = std::time::Duration::from_secs(secs.unsigned_abs());
        let date = httpdate::HttpDate::from(std::time::UNIX_EPOCH + since);
        // The text is always 29 bytes long for these years.
        if write!(&mut self.text[..], "{date}").is_ok() {
            self.secs = secs;
        }
    }
}

/// 9999-12-31 23:59:59, in seconds since 1970.
const LAST_SECOND: i64 = 253_402_300_799;
