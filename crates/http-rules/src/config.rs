//! Settings of caching decisions, as plain data. The default is the standard behaviour of a shared cache.
//! Where the standard leaves a choice, the default is the safe choice.

use foxy_base::settings::{Plain, Range};

const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

foxy_base::settings! {
    /// Settings of the caching rules.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Obey the legacy field `Surrogate-Control`.
        "surrogate_control" surrogate_control: bool = Plain::Flag(false), Range::Flag;
        /// Lifetime of answers that state no lifetime, in percent of the time since `Last-Modified`; 0
        /// turns this off. Such a lifetime does not apply to requests with `Authorization`. It applies to
        /// requests with `Cookie` only if the answer is an image, font, sound, video, style sheet or script.
        "heuristic_percent" heuristic_percent: u8 = Plain::Number(10), Range::Count(0, 100);
        /// Longest lifetime that an answer can get by `heuristic_percent`.
        "heuristic_max" heuristic_max_s: u32 = Plain::seconds(7 * DAY), Range::Time(0, YEAR);
        /// Lifetime of cacheable answers without any freshness information. Unlike
        /// `heuristic_percent`, this lifetime applies to requests with cookies as well. Set it only if such
        /// answers are the same for all users.
        "default_ttl" default_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Lifetime of answers with status 404, 405, 410, 414 or 501 that state no lifetime.
        "negative_ttl" negative_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Lifetime of answers with status 500, 502, 503 or 504 that state no lifetime.
        "server_error_ttl" server_error_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Shorter lifetimes are raised to this value. Lifetimes of answers with `no-store` or `private`,
        /// and of errors (4xx and 5xx), are never raised.
        "ttl_min" ttl_min_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Longer lifetimes are lowered to this value.
        "ttl_max" ttl_max_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Time for which a stale answer may be served while its origin cannot be reached. The time begins at
        /// the end of the answer's lifetime. An answer can forbid this (RFC 9111 section 4.2.4).
        "stale_on_disconnect" stale_on_disconnect_s: u32 = Plain::seconds(DAY), Range::Time(0, YEAR);
        /// Value of `stale-if-error` for answers without this directive (RFC 5861).
        "stale_if_error" stale_if_error_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Value of `stale-while-revalidate` for answers without this directive (RFC 5861).
        "stale_while_revalidate" stale_while_revalidate_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Store answers with `Set-Cookie`, and send the cookie to all clients, even if neither
        /// `public` nor `s-maxage` permits sharing.
        "store_set_cookie" store_set_cookie: bool = Plain::Flag(false), Range::Flag;
    }
    besides {
        /// Targeted fields (RFC 9213), the most specific field first. The first field that is present and
        /// valid takes the place of Cache-Control and Expires.
        targeted: Vec<String> = vec!["Foxy-Cache-Control".into(), "CDN-Cache-Control".into()];
        /// The name by which directives of Surrogate-Control may address this cache. Surrogate-Capability
        /// announces it to origins.
        surrogate_token: String = "foxy".into();
        /// Treatment of responses with `private="..."` or `no-cache="..."`.
        listed_fields: ListedFields = ListedFields::Strip;
        /// True if a POST response may answer later GETs. Its Content-Location must equal the target.
        post: bool = false;
        /// True if request directives (no-cache, max-age, ... and Pragma) are obeyed.
        obey_request: bool = true;
        /// Largest number of field names in a Vary list.
        vary_fields_max: usize = 16;
        /// Largest number of ranges of one request that are answered as ranges. If a request has more ranges,
        /// the whole body is sent.
        ranges_max: usize = 16;
        /// Key parts that select among stored responses, in addition to the fields in the Vary of a response.
        /// Each is the name of a request field in lower case, or `cookie:NAME`.
        key_parts: Vec<String> = Vec::new();
        /// True if Set-Cookie is removed from responses that are stored, so that no client gets it. This
        /// happens only if the operator requests it. A stored cookie would be sent to all clients, and
        /// clients that share a cookie share a session.
        strip_set_cookie: bool = false;
        /// Bodies of fewer bytes are not stored.
        store_bytes_min: u64 = 0;
        /// Bodies of more bytes are not stored.
        store_bytes_max: u64 = u64::MAX;
    }
}

/// The two ways to treat `private="field"` and `no-cache="field"` (RFC 9111 5.2.2.4, 5.2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedFields {
    /// Store without the listed fields.
    Strip,
    /// Treat the directive as if it had no list: a private response is not stored, and a no-cache response is
    /// revalidated.
    Unqualified,
}
