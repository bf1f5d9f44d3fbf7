//! Requests of a log that no cache may answer, with the reasons.
//!
//! Rule: a cache may answer a request if its method is GET or HEAD, and if answers with its status (200, for
//! example) are stored. Exceptions are requests that the log marks as refused, and requests whose answers it
//! marks as not to be stored. A request is also left out if the log does not contain the object's size. A
//! query in the URL does not matter, because it does not matter to Foxy. Logs do not contain the headers of
//! responses, so headers cannot be considered.

use foxy_trace::{Flags, Method, Request};
use serde::Serialize;

/// Number of left-out requests, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// A method other than GET and HEAD.
    pub method: u64,
    /// A status that is not stored, such as an error.
    pub status: u64,
    /// The log marks the request as refused, or the answer as not to be stored.
    pub marked: u64,
    /// The log does not contain the object's size.
    pub size: u64,
}

/// True if no byte of the object is sent, because the client already has it or requests only the head.
pub(super) const fn is_bodiless(request: &Request) -> bool {
    request.status == 304 || matches!(request.method, Method::Head)
}

impl LeftOut {
    /// Returns true if the request is left out, and counts it.
    pub(super) const fn count(&mut self, request: &Request) -> bool {
        let marked = request.flags.has(Flags::UNCACHEABLE) || request.flags.has(Flags::DENIED);
        if !matches!(request.method, Method::Get | Method::Head) {
            self.method += 1;
        } else if !matches!(request.status, 0 | 200 | 203 | 206 | 300 | 301 | 304) {
            self.status += 1;
        } else if marked {
            self.marked += 1;
        } else if request.size == 0 && !is_bodiless(request) {
            self.size += 1;
        } else {
            return false;
        }
        true
    }

    /// Number of all left-out requests.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.method + self.status + self.marked + self.size
    }

    /// A text such as `12 left out: 10 with another method than GET, 2 of unknown size`.
    pub(crate) fn text(&self) -> String {
        let reasons = [
            (self.method, "with another method than GET"),
            (self.status, "with a status that is not stored"),
            (self.marked, "refused or private"),
            (self.size, "of unknown size"),
        ];
        let told = reasons.iter().filter(|(count, _)| *count > 0);
        let told: Vec<_> = told.map(|(count, why)| format!("{count} {why}")).collect();
        if told.is_empty() {
            return "none left out".to_owned();
        }
        format!("{} left out: {}", self.all(), told.join(", "))
    }
}
