//! Settings of caching decisions, as plain data. The default is the standard's own behaviour of a
//! shared cache, and the safe one where the standard leaves a choice.

/// Settings of the caching rules. Times are whole seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Targeted fields (RFC 9213), the most specific first. The first that is present and valid
    /// takes the place of Cache-Control and Expires.
    pub targeted: Vec<String>,
    /// True if the legacy Surrogate-Control field is obeyed (after the targeted fields).
    pub surrogate_control: bool,
    /// By which name directives of Surrogate-Control may address this cache; announced to
    /// origins in Surrogate-Capability.
    pub surrogate_token: String,
    /// Heuristic lifetime in percent of the time since Last-Modified; 0 turns heuristics off.
    pub heuristic_percent: u8,
    /// Upper bound of a heuristic lifetime.
    pub heuristic_max_s: u32,
    /// Lifetime of responses that carry no freshness information and get none by heuristics
    /// (only for statuses that are cacheable by default).
    pub default_ttl_s: Option<u32>,
    /// Lifetime of 404, 405, 410, 414 and 501 without freshness information.
    pub negative_ttl_s: Option<u32>,
    /// Lifetime of 500, 502, 503 and 504 without freshness information.
    pub server_error_ttl_s: Option<u32>,
    /// Lifetimes below this are raised to it; never makes a response storable that says no-store
    /// or private, nor gives life to one without any information; errors (4xx and 5xx) live as
    /// long as they say or is configured for them.
    pub ttl_min_s: Option<u32>,
    /// Lifetimes above this are lowered to it.
    pub ttl_max_s: Option<u32>,
    /// Time past its life for which a response may be served when the origin cannot be reached,
    /// unless the response forbids it (RFC 9111 section 4.2.4).
    pub stale_on_disconnect_s: u32,
    /// stale-if-error of responses that do not say (RFC 5861 section 4).
    pub stale_if_error_s: Option<u32>,
    /// stale-while-revalidate of responses that do not say (RFC 5861 section 3).
    pub stale_while_revalidate_s: Option<u32>,
    /// Treatment of responses with private="..." or no-cache="...".
    pub listed_fields: ListedFields,
    /// True if a POST response with a Content-Location equal to the target answers later GETs.
    pub post: bool,
    /// True if request directives (no-cache, max-age, ... and Pragma) are obeyed.
    pub obey_request: bool,
    /// Most field names in a Vary list.
    pub vary_fields_max: usize,
    /// Most ranges of one request that are answered singly; beyond it the whole is sent.
    pub ranges_max: usize,
    /// Selects among stored responses besides their own Vary: names of request fields in lower
    /// case, and `cookie:NAME`.
    pub key_parts: Vec<String>,
    /// Stores responses with Set-Cookie, cookie included, even without `public` or `s-maxage`.
    pub store_set_cookie: bool,
    /// Set-Cookie is taken off responses that are stored, for everybody. Never without being
    /// told: a shared cookie is a shared session.
    pub strip_set_cookie: bool,
    /// Bodies of fewer bytes are not stored.
    pub store_bytes_min: u64,
    /// Bodies of more bytes are not stored.
    pub store_bytes_max: u64,
}

/// The two ways to treat `private="field"` and `no-cache="field"` (RFC 9111 5.2.2.4, 5.2.2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedFields {
    /// Store without the listed fields.
    Strip,
    /// As if the directive had no list: private is not stored, no-cache is revalidated.
    Unqualified,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            targeted: vec!["Foxy-Cache-Control".into(), "CDN-Cache-Control".into()],
            surrogate_control: false,
            surrogate_token: "foxy".into(),
            heuristic_percent: 10,
            heuristic_max_s: 7 * 86_400,
            default_ttl_s: None,
            negative_ttl_s: None,
            server_error_ttl_s: None,
            ttl_min_s: None,
            ttl_max_s: None,
            stale_on_disconnect_s: 86_400,
            stale_if_error_s: None,
            stale_while_revalidate_s: None,
            listed_fields: ListedFields::Strip,
            post: false,
            obey_request: true,
            vary_fields_max: 16,
            ranges_max: 16,
            key_parts: Vec::new(),
            store_set_cookie: false,
            strip_set_cookie: false,
            store_bytes_min: 0,
            store_bytes_max: u64::MAX,
        }
    }
}
