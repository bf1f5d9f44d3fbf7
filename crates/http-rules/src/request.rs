//! The facts of a request that decisions need, collected in one pass over its fields.

use foxy_base::{Fields, FieldsIter};

use crate::config::Config;
use crate::method::Method;
use crate::text::directives;

/// The facts about a request that matter to caching. They are a plain value; making it allocates no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestFacts {
    /// Class of the method.
    pub method: Method,
    /// `no-cache` (RFC 9111 section 5.2.1.4), or Pragma: no-cache if Cache-Control is absent.
    pub no_cache: bool,
    /// `no-store` (section 5.2.1.5).
    pub no_store: bool,
    /// `only-if-cached` (section 5.2.1.7).
    pub only_if_cached: bool,
    /// `max-age` (section 5.2.1.1) in seconds; the smallest value if repeated.
    pub max_age: Option<u32>,
    /// `min-fresh` (section 5.2.1.3) in seconds; the largest value if repeated.
    pub min_fresh: Option<u32>,
    /// `max-stale` (section 5.2.1.2) in seconds; `u32::MAX` without an argument.
    pub max_stale: Option<u32>,
    /// `stale-if-error` (RFC 5861 section 4) in seconds.
    pub stale_if_error: Option<u32>,
    /// True if Authorization is present.
    pub authorization: bool,
    /// True if Cookie is present.
    pub cookie: bool,
    /// True if the request has content. No cache key covers content, so such a request is not answered from
    /// the cache, and its response is not stored.
    pub body: bool,
    /// True if Range is present.
    pub range: bool,
    /// True if If-Range is present.
    pub if_range: bool,
    /// True if If-None-Match or If-Modified-Since is present.
    pub conditional: bool,
    /// True if If-Match or If-Unmodified-Since is present.
    pub precondition: bool,
}

impl RequestFacts {
    /// True if the request has credentials (Cookie or Authorization): the answer may be for one user only.
    #[must_use]
    pub const fn has_credentials(&self) -> bool {
        self.cookie || self.authorization
    }

    /// The facts in the form that decisions under `config` use. If `config.obey_request` is false, they
    /// contain no directives of the request. Every decision about a request uses this form.
    #[must_use]
    pub const fn under(mut self, config: &Config) -> Self {
        if !config.obey_request {
            self.no_cache = false;
            self.no_store = false;
            self.only_if_cached = false;
            self.max_age = None;
            self.min_fresh = None;
            self.max_stale = None;
            self.stale_if_error = None;
        }
        self
    }

    /// Reads the facts of a request.
    pub fn new<F: Fields + ?Sized>(method: &[u8], fields: &F) -> Self {
        let mut facts = Self::empty(Method::of(method));
        let (mut cache_control, mut pragma_no_cache) = (false, false);
        for (name, value) in FieldsIter::new(fields) {
            match name.len() {
                5 if is(name, "range") => facts.range = true,
                6 if is(name, "cookie") => facts.cookie = true,
                6 if is(name, "pragma") => {
                    pragma_no_cache |= directives(value).any(|d| d.is("no-cache"));
                }
                8 if is(name, "if-match") => facts.precondition = true,
                8 if is(name, "if-range") => facts.if_range = true,
                13 if is(name, "cache-control") => {
                    cache_control |= facts.read_control(value);
                }
                13 if is(name, "if-none-match") => facts.conditional = true,
                13 if is(name, "authorization") => facts.authorization = true,
                14 if is(name, "content-length") => facts.body |= value != b"0",
                17 if is(name, "if-modified-since") => facts.conditional = true,
                17 if is(name, "transfer-encoding") => facts.body = true,
                19 if is(name, "if-unmodified-since") => facts.precondition = true,
                _ => {}
            }
        }
        facts.no_cache |= pragma_no_cache && !cache_control;
        facts
    }

    const fn empty(method: Method) -> Self {
        Self {
            method,
            no_cache: false,
            no_store: false,
            only_if_cached: false,
            max_age: None,
            min_fresh: None,
            max_stale: None,
            stale_if_error: None,
            authorization: false,
            cookie: false,
            body: false,
            range: false,
            if_range: false,
            conditional: false,
            precondition: false,
        }
    }

    /// Reads one Cache-Control line; true if it contains any directive. Directives with malformed
    /// arguments are ignored, because their meaning is not known.
    fn read_control(&mut self, line: &[u8]) -> bool {
        let mut any = false;
        for d in directives(line) {
            any = true;
            let seconds = d.argument.seconds();
            if d.is("no-cache") {
                self.no_cache = true;
            } else if d.is("no-store") {
                self.no_store = true;
            } else if d.is("only-if-cached") {
                self.only_if_cached = true;
            } else if d.is("max-age") {
                self.max_age = lowest(self.max_age, seconds);
            } else if d.is("min-fresh") {
                self.min_fresh = self.min_fresh.max(seconds);
            } else if d.is("max-stale") {
                let bare = d.argument == crate::text::Argument::None;
                let limit = if bare { Some(u32::MAX) } else { seconds };
                self.max_stale = lowest(self.max_stale, limit);
            } else if d.is("stale-if-error") {
                self.stale_if_error = lowest(self.stale_if_error, seconds);
            }
        }
        any
    }
}

fn is(name: &[u8], lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower.as_bytes())
}

/// The smaller of two values, or the only value that is present.
pub(crate) fn lowest(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
