//! Words for the reasons of caching decisions. They are the same in `Cache-Status`, in the log and in `foxy
//! why`. Once a word is in a release, later versions use it with the same meaning.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All variants in order of declaration (for tables of metrics).
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
    /// The reason why a response is not stored (RFC 9111 section 3).
    NoStore {
        /// Responses to this method are never reused.
        Method = "method-not-cacheable",
        /// A GET with content, which the cache key does not cover.
        RequestBody = "request-body",
        /// A POST response that does not meet all three conditions: its explicit lifetime is above zero, its
        /// Content-Location equals the target, and its status is 200.
        PostWithoutContentLocation = "post-without-content-location",
        /// An interim response (1xx).
        Interim = "interim-response",
        /// A 304. It updates stored responses and is never stored itself.
        NotModified = "not-modified",
        /// The status depends on a property that other requests for the same URI do not share: credentials,
        /// conditions, ranges (401, 407, 412, 416, ...).
        StatusOfThisRequest = "status-of-this-request",
        /// A 206 without a usable Content-Range, or with multipart/byteranges.
        PartialUnusable = "partial-unusable",
        /// The request has no-store.
        RequestNoStore = "request-no-store",
        /// The response has no-store.
        ResponseNoStore = "response-no-store",
        /// The response has must-understand, and its status is not understood.
        StatusNotUnderstood = "status-not-understood",
        /// The response has private.
        Private = "private",
        /// The request has Authorization, and the response does not permit sharing.
        Authorization = "authorization",
        /// Vary contains `*`.
        VaryStar = "vary-star",
        /// Vary lists more fields than the configuration permits.
        VaryTooWide = "vary-too-wide",
        /// The response has no freshness information, and its status permits no heuristic lifetime.
        StatusNeedsFreshness = "status-needs-freshness",
        /// The response has neither freshness information nor a validator, so it could never be
        /// reused.
        NothingToReuse = "no-freshness-no-validator",
        /// The response was expired on arrival, and has neither a validator nor a permission for
        /// stale use.
        ExpiredOnArrival = "expired-on-arrival",
        /// The response sets a cookie, and neither `public` nor `s-maxage` permits sharing it.
        SetCookie = "set-cookie",
        /// The response sets a cookie and has no explicit freshness.
        SetCookieWithoutFreshness = "set-cookie-without-freshness",
        /// The configuration sets the time to live to zero.
        ConfiguredOff = "configured-off",
        /// private="..." or no-cache="..." lists fields, and the configuration refuses such
        /// responses.
        ListedFields = "listed-fields",
        /// The body is smaller than the configured minimum.
        TooSmall = "below-minimum-size",
        /// The body is larger than the configured maximum.
        TooLarge = "above-maximum-size",
        /// The message ended before its stated length and cannot be stored as a part.
        Incomplete = "incomplete",
    }
}

impl NoStore {
    /// True if the reason concerns only this request or its client, for example a cookie that a 304 sets for
    /// this client. If only such a reason forbids storing a response that a 304 has updated, the stored
    /// response stays as it was before the update.
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
    /// The reason why a request was sent to the origin: the `fwd` tokens of RFC 9211 section 2.2.
    Fwd {
        /// The settings tell the cache not to handle the request.
        Bypass = "bypass",
        /// The method's semantics require forwarding.
        Method = "method",
        /// Nothing is stored under the URI.
        UriMiss = "uri-miss",
        /// A response is stored under the URI, but only for other selecting values (the values of the request
        /// fields that Vary lists, or of key parts that a rule adds).
        VaryMiss = "vary-miss",
        /// Nothing is stored (for a cache that cannot distinguish `uri-miss` and `vary-miss`).
        Miss = "miss",
        /// A fresh response is stored, but the request's directives forbid its use.
        Request = "request",
        /// The stored response is stale.
        Stale = "stale",
        /// Only a part of the requested bytes is stored.
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
        /// The configured lifetime for errors without freshness information (negative caching).
        Negative = "negative-ttl",
        /// The configured lifetime for responses without freshness information.
        Default = "default-ttl",
        /// The configured minimum; the lifetime was raised to it.
        Minimum = "ttl-minimum",
        /// The configured maximum; the lifetime was lowered to it.
        Maximum = "ttl-maximum",
        /// There is no information: the lifetime is zero.
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
