//! The classes of methods that the cache distinguishes (RFC 9110 section 9.2, RFC 9111 sections 3, 4.4).

/// The class of a method for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET: it is answered from the cache, and its responses are stored.
    Get,
    /// HEAD: it is answered from stored responses to GET, and updates them.
    Head,
    /// POST: it is forwarded, and invalidates the responses stored for its target. Its response may be stored
    /// for later GETs.
    Post,
    /// Safe methods that are not cached: OPTIONS, TRACE, PROPFIND, REPORT, SEARCH, QUERY.
    Safe,
    /// All other methods, including unknown methods. They are forwarded, and invalidate the responses stored
    /// for their target.
    Unsafe,
}

impl Method {
    /// Classifies a method as it is spelt in the message (methods are case-sensitive).
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"OPTIONS" | b"TRACE" | b"PROPFIND" | b"REPORT" | b"SEARCH" | b"QUERY" => Self::Safe,
            _ => Self::Unsafe,
        }
    }

    /// True if a stored response may answer requests with this method.
    #[must_use]
    pub const fn reads_cache(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// True if a successful request with this method invalidates the responses stored for its
    /// target. RFC 9111 section 4.4 includes methods whose safety is unknown.
    #[must_use]
    pub const fn invalidates(self) -> bool {
        matches!(self, Self::Post | Self::Unsafe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_are_unsafe_and_case_matters() {
        assert_eq!(Method::of(b"M-SEARCH"), Method::Unsafe);
        assert_eq!(Method::of(b"get"), Method::Unsafe);
        assert!(Method::of(b"DELETE").invalidates() && Method::of(b"POST").invalidates());
        assert!(!Method::of(b"OPTIONS").invalidates() && !Method::of(b"OPTIONS").reads_cache());
        assert!(Method::of(b"HEAD").reads_cache() && !Method::of(b"HEAD").invalidates());
    }
}
