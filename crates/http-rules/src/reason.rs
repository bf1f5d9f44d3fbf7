//! Words for the reasons of caching decisions: the same in `Cache-Status`, in the log and in
//! `foxy why`. A word, once released, keeps its meaning.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every variant, in order of declaration (for metrics tables).
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable kebab-case word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Why a response is not stored (RFC 9111 section 3).
    NoStore {
        /// The method's responses are never reused.
        Method = "method-not-cacheable",
        /// A GET with content, which the cache key does not cover.
        RequestBody = "request-body",
        /// A POST response without explicit freshness and a Content-Location equal to the target.
        PostWithoutContentLocation = "post-without-content-location",
        /// An interim response (1xx).
        Interim = "interim-response",
        /// A 304: it updates stored responses and is never one itself.
        NotModified = "not-modified",
        /// An answer to something in this request that others do not have: credentials,
        /// conditions, ranges (401, 407, 412, 416, ...).
        StatusOfThisRequest = "status-of-this-request",
        /// A 206 without a usable Content-Range, or as multipart/byteranges.
        PartialUnusable = "partial-unusable",
        /// The request said no-store.
        RequestNoStore = "request-no-store",
        /// The response said no-store.
        ResponseNoStore = "response-no-store",
        /// The response said must-understand and its status is not understood.
        StatusNotUnderstood = "status-not-understood",
        /// The response is private.
        Private = "private",
        /// The request carried Authorization and the response does not allow sharing.
        Authorization = "authorization",
        /// Vary contains `*`.
        VaryStar = "vary-star",
        /// Vary lists more fields than the configuration allows.
        VaryTooWide = "vary-too-wide",
        /// No freshness information and a status that may not be given any by heuristics.
        StatusNeedsFreshness = "status-needs-freshness",
        /// Neither freshness nor a validator: nothing could ever be reused.
        NothingToReuse = "no-freshness-no-validator",
        /// Expired on arrival, no validator, no permission to serve stale.
        ExpiredOnArrival = "expired-on-arrival",
        /// Sets a cookie, and neither `public` nor `s-maxage` permits sharing it.
        SetCookie = "set-cookie",
        /// Sets a cookie without explicit freshness.
        SetCookieWithoutFreshness = "set-cookie-without-freshness",
        /// The configuration sets the time to live to zero.
        ConfiguredOff = "configured-off",
        /// Fields listed by private="..." or no-cache="..." and the configuration refuses those.
        ListedFields = "listed-fields",
        /// The body is smaller than the configuration wants stored.
        TooSmall = "below-minimum-size",
        /// The body is larger than the configuration wants stored.
        TooLarge = "above-maximum-size",
        /// The message ended before its length and cannot be stored as a part.
        Incomplete = "incomplete",
    }
}

impl NoStore {
    /// True if the reason lies in the request or its client, as a cookie does: a stored response
    /// that it validated stays unchanged.
    #[must_use]
    pub const fn is_about_request(self) -> bool {
        matches!(
            self,
            Self::Method
                | Self::RequestBody
                | Self::RequestNoStore
                | Self::Authorization
                | Self::SetCookie
        )
    }
}

words! {
    /// Why a request went to the origin: the `fwd` tokens of RFC 9211 section 2.2.
    Fwd {
        /// The cache was told not to handle the request.
        Bypass = "bypass",
        /// The method's semantics require forwarding.
        Method = "method",
        /// Nothing is stored under the URI.
        UriMiss = "uri-miss",
        /// Something is stored, but under other selecting values.
        VaryMiss = "vary-miss",
        /// Nothing is stored (when the cache cannot tell which).
        Miss = "miss",
        /// A fresh response is stored; the request's directives forbade it.
        Request = "request",
        /// The stored response is stale.
        Stale = "stale",
        /// Only a part of what was asked for is stored.
        Partial = "partial",
    }
}

words! {
    /// Source of a freshness lifetime.
    LifetimeSource {
        /// A targeted field (RFC 9213).
        Targeted = "targeted",
        /// Surrogate-Control.
        Surrogate = "surrogate-control",
        /// Cache-Control: s-maxage.
        SMaxage = "s-maxage",
        /// Cache-Control: max-age.
        MaxAge = "max-age",
        /// Expires minus Date.
        Expires = "expires",
        /// A share of the time since Last-Modified.
        Heuristic = "heuristic",
        /// Configured for errors without freshness (negative caching).
        Negative = "negative-ttl",
        /// Configured for responses without freshness.
        Default = "default-ttl",
        /// Raised to the configured minimum.
        Minimum = "ttl-minimum",
        /// Lowered to the configured maximum.
        Maximum = "ttl-maximum",
        /// No information: zero.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check_words(words: &[&str]) {
        let distinct: HashSet<_> = words.iter().collect();
        assert_eq!(distinct.len(), words.len(), "two reasons share a word");
        for word in words {
            let kebab = |b: u8| b.is_ascii_lowercase() || b == b'-' || b.is_ascii_digit();
            assert!(!word.is_empty() && word.bytes().all(kebab), "{word}");
        }
    }

    #[test]
    fn reason_words_are_distinct_kebab_case() {
        check_words(&NoStore::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>());
        check_words(&Fwd::ALL.iter().map(|r| r.as_str()).collect::<Vec<_>>());
        check_words(
            &LifetimeSource::ALL
                .iter()
                .map(|r| r.as_str())
                .collect::<Vec<_>>(),
        );
    }

    #[test]
    fn fwd_words_are_those_of_rfc_9211() {
        let words: Vec<_> = Fwd::ALL.iter().map(|r| r.as_str()).collect();
        assert_eq!(
            words,
            [
                "bypass",
                "method",
                "uri-miss",
                "vary-miss",
                "miss",
                "request",
                "stale",
                "partial"
            ]
        );
    }
}
