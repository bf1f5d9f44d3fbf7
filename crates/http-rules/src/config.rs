//! Settings of caching decisions, as plain data. The default is the standard's own behaviour of a
//! shared cache, and the safe one where the standard leaves a choice.

use foxy_base::settings::{Plain, Range};

const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

foxy_base::settings! {
    /// Settings of the caching rules.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Obey the legacy field `Surrogate-Control`.
        "surrogate_control" surrogate_control: bool = Plain::Flag(false), Range::Flag;
        /// Lifetime of answers without one, in percent of the time since `Last-Modified`; 0 turns this
        /// off. Never for requests with `Authorization`; for requests with `Cookie` only if the answer
        /// is an image, font, sound, video, style sheet or script.
        "heuristic_percent" heuristic_percent: u8 = Plain::Number(10), Range::Count(0, 100);
        /// Upper bound of such a lifetime.
        "heuristic_max" heuristic_max_s: u32 = Plain::seconds(7 * DAY), Range::Time(0, YEAR);
        /// Lifetime of cacheable answers without any freshness information. Unlike the guess by
        /// `heuristic_percent`, it applies to requests with cookies as well: set it only if such
        /// answers are the same for all users.
        "default_ttl" default_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Lifetime of 404, 405, 410, 414 and 501 that say nothing.
        "negative_ttl" negative_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Lifetime of 500, 502, 503 and 504 that say nothing.
        "server_error_ttl" server_error_ttl_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Shorter lifetimes are raised to this (never those of `no-store` or `private`, nor those of
        /// errors: 4xx and 5xx).
        "ttl_min" ttl_min_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Longer lifetimes are lowered to this.
        "ttl_max" ttl_max_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// How long past its life an answer may be served while its origin cannot be reached, unless
        /// it forbids that (RFC 9111 section 4.2.4).
        "stale_on_disconnect" stale_on_disconnect_s: u32 = Plain::seconds(DAY), Range::Time(0, YEAR);
        /// `stale-if-error` of answers that do not say (RFC 5861).
        "stale_if_error" stale_if_error_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// `stale-while-revalidate` of answers that do not say (RFC 5861).
        "stale_while_revalidate" stale_while_revalidate_s: Option<u32> = Plain::OFF, Range::TimeOrOff(0, YEAR);
        /// Store answers with `Set-Cookie`, and send the cookie to all clients, even if neither
        /// `public` nor `s-maxage` permits sharing.
        "store_set_cookie" store_set_cookie: bool = Plain::Flag(false), Range::Flag;
    }
    besides {
        /// Targeted fields (RFC 9213), the most specific first. The first that is present and valid
        /// takes the place of Cache-Control and Expires.
        targeted: Vec<String> = vec!["Foxy-Cache-Control".into(), "CDN-Cache-Control".into()];
        /// By which name directives of Surrogate-Control may address this cache; announced to
        /// origins in Surrogate-Capability.
        surrogate_token: String = "foxy".into();
        /// Treatment of responses with private="..." or no-cache="...".
        listed_fields: ListedFields = ListedFields::Strip;
        /// True if a POST response with a Content-Location equal to the target answers later GETs.
        post: bool = false;
        /// True if request directives (no-cache, max-age, ... and Pragma) are obeyed.
        obey_request: bool = true;
        /// Most field names in a Vary list.
        vary_fields_max: usize = 16;
        /// Most ranges of one request that are answered singly; beyond it the whole is sent.
        ranges_max: usize = 16;
        /// Selects among stored responses besides their own Vary: names of request fields in lower
        /// case, and `cookie:NAME`.
        key_parts: Vec<String> = Vec::new();
        /// Set-Cookie is taken off responses that are stored, for everybody. Never without being
        /// told: a shared cookie is a shared session.
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
    /// As if the directive had no list: private is not stored, no-cache is revalidated.
    Unqualified,
}
