//! Methods, as the cache distinguishes them (RFC 9110 section 9.2, RFC 9111 sections 3, 4.4).

/// Class of a method for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Answered from the cache and stored.
    Get,
    /// Answered from what GET stored; updates it.
    Head,
    /// Forwarded and invalidating; its response may be stored for GET.
    Post,
    /// Safe, but not cached: OPTIONS, TRACE, PROPFIND, REPORT, SEARCH, QUERY.
    Safe,
    /// Everything else, unknown methods included: forwarded and invalidating.
    Unsafe,
}

impl Method {
    /// Classifies a method as spelt on the wire (methods are case-sensitive).
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

    /// True if a stored response may answer it.
    #[must_use]
    pub const fn reads_cache(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// True if its success invalidates what is stored under the target (RFC 9111 section 4.4:
    /// also when safety is unknown).
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
