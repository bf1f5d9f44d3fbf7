//! Decisions about a request for which a response is stored (RFC 9111 section 4, RFC 5861).

use foxy_base::{WallTime, rule};

use crate::config::Config;
use crate::facts::{CachingFacts, Flags};
use crate::freshness::{age, ttl_ms};
use crate::heuristics;
use crate::method::Method;
use crate::reason::Fwd;
use crate::request::RequestFacts;

/// Decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send the stored response.
    Fresh {
        /// Value of the Age field in seconds.
        age: u32,
        /// Remaining lifetime in whole seconds, 0 or more.
        ttl: i64,
    },
    /// Send the stored response although it is stale.
    Stale {
        /// Value of the Age field in seconds.
        age: u32,
        /// Remaining lifetime in whole seconds. It is negative, or 0 in the first second after the end of the
        /// lifetime.
        ttl: i64,
        /// The permission for the stale use. With [`StaleUse::WhileRevalidate`], start a revalidation in the
        /// background unless a revalidation is already under way.
        why: StaleUse,
    },
    /// Send the request to the origin. The stored response's validators ([`crate::conditional::validators`])
    /// replace the client's validators.
    Revalidate {
        /// The reason: [`Fwd::Stale`] or [`Fwd::Request`].
        reason: Fwd,
        /// True if the stored response has an ETag to send as If-None-Match.
        if_none_match: bool,
        /// True if the stored response has a Last-Modified to send as If-Modified-Since.
        if_modified_since: bool,
    },
    /// Send the request to the origin without using any stored response.
    Forward {
        /// The reason for forwarding.
        reason: Fwd,
    },
    /// Answer 504 (RFC 9111 section 5.2.1.7).
    OnlyIfCached504,
}

impl Decision {
    /// True if a request must be sent to the origin in the background, unless such a request is already under
    /// way.
    #[must_use]
    pub const fn asks_in_background(&self) -> bool {
        matches!(
            self,
            Self::Stale {
                why: StaleUse::WhileRevalidate,
                ..
            }
        )
    }
}

/// Permissions to send a stale response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleUse {
    /// The request has max-stale.
    MaxStale,
    /// The response has stale-while-revalidate.
    WhileRevalidate,
    /// The origin failed, and stale-if-error, or the setting for origins that cannot be reached, permits the
    /// use.
    OnError,
}

/// The reason why a lookup found no usable response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// Nothing is stored under the URI.
    Uri,
    /// Only other variants are stored.
    Vary,
    /// The settings make the request bypass the cache.
    Bypass,
    /// The stored parts do not cover the request.
    Partial,
}

/// The failure of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The origin sent no answer: its name was not resolvable, or the connection was refused, reset, timed
    /// out, or closed before a head.
    Unreachable,
    /// The origin answered with this status.
    Status(u16),
}

/// Decides about a request for which no usable response is stored.
#[must_use]
pub fn decide_miss(request: &RequestFacts, miss: Miss) -> Decision {
    let reason = match miss {
        _ if !request.method.reads_cache() => Fwd::Method,
        _ if request.body => Fwd::Bypass,
        Miss::Uri => Fwd::UriMiss,
        Miss::Vary => Fwd::VaryMiss,
        Miss::Bypass => Fwd::Bypass,
        Miss::Partial => Fwd::Partial,
    };
    forward(request, reason)
}

/// Decides about a request whose key and selecting values (Vary) match a stored response.
///
/// A stored part ([`Flags::PARTIAL`]) may be passed only for requests with Range. The caller checks that the
/// part's bytes cover the range, and reports [`Miss::Partial`] if they do not.
#[must_use]
pub fn decide(
    request: &RequestFacts,
    stored: &CachingFacts,
    now: WallTime,
    config: &Config,
) -> Decision {
    let obeyed;
    let request = if config.obey_request {
        request
    } else {
        obeyed = request.under(config);
        &obeyed
    };
    if rule!(
        "reuse: only GET and HEAD are answered from the cache",
        !request.method.reads_cache(),
        false
    ) {
        return forward(request, Fwd::Method);
    }
    if rule!(
        "reuse: a request with a body is not answered from the cache",
        request.body,
        false
    ) {
        return forward(request, Fwd::Bypass);
    }
    let partial = stored.flags.has(Flags::PARTIAL);
    let whole = !request.range && request.method == Method::Get;
    if rule!(
        "reuse: a part is no answer for the whole",
        partial && whole,
        false
    ) {
        return forward(request, Fwd::Partial);
    }
    let age = age(stored, now);
    let ttl_ms = ttl_ms(stored, now);
    let ttl = ttl_ms.div_euclid(1000);
    let heuristic = heuristics::is_all_for(request, stored);
    let unchecked = rule!(
        "reuse: no-cache is validated each time",
        !stored.flags.has(Flags::NO_CACHE),
        true
    );
    let open = rule!(
        "reuse: a heuristic lifetime is not for a request with credentials",
        !heuristic,
        true
    );
    let fresh = ttl_ms > 0 && unchecked && open;
    if fresh && request_content(request, age, ttl) {
        return Decision::Fresh { age, ttl };
    }
    if !fresh && let Some(why) = stale_use(request, stored, age, ttl_ms) {
        return Decision::Stale { age, ttl, why };
    }
    revalidate(
        request,
        stored,
        if fresh { Fwd::Request } else { Fwd::Stale },
    )
}

/// True if the request's directives accept this fresh response (RFC 9111 section 5.2.1).
fn request_content(request: &RequestFacts, age: u32, ttl: i64) -> bool {
    rule!(
        "reuse: the no-cache of a request is obeyed",
        !request.no_cache,
        true
    ) && request
        .max_age
        .is_none_or(|limit| age <= limit && limit > 0)
        && request
            .min_fresh
            .is_none_or(|least| ttl >= i64::from(least))
}

/// The permission to send a stale response without a request to the origin.
fn stale_use(
    request: &RequestFacts,
    stored: &CachingFacts,
    age: u32,
    ttl_ms: i64,
) -> Option<StaleUse> {
    if never_stale(request, stored) {
        return None;
    }
    let past_ms = ttl_ms.saturating_neg();
    let within = |limit: Option<u32>| {
        limit.is_some_and(|s| {
            rule!(
                "stale: its use ends with the time that is allowed",
                past_ms <= i64::from(s) * 1000,
                true
            )
        })
    };
    let young = request.max_age.is_none_or(|limit| age <= limit);
    let wanted = within(request.max_stale) && young && request.min_fresh.is_none();
    if wanted && !never_shared(request, stored) {
        return Some(StaleUse::MaxStale);
    }
    if request.max_age.is_some() || request.min_fresh.is_some() {
        return None;
    }
    within(stored.stale_while_revalidate_s).then_some(StaleUse::WhileRevalidate)
}

/// True if stale use is forbidden. The request or the response may forbid it (RFC 9111 sections 4.2.4 and
/// 5.2.1.4). An invalidated response must be validated first (section 4.4). A response that may be shared
/// only because of a heuristic lifetime must not be sent stale to a request with credentials.
fn never_stale(request: &RequestFacts, stored: &CachingFacts) -> bool {
    request.no_cache
        || rule!(
            "stale: an answer that forbids it is not used stale",
            stored.flags.any(Flags::FORBID_STALE),
            false
        )
        || rule!(
            "stale: a heuristic lifetime is not used stale for a request with credentials",
            heuristics::is_all_for(request, stored),
            false
        )
}

/// True if the response was never fresh (as with `max-age=0`), and this request or the request that fetched
/// the response has credentials. Such a response may be meant only for the user whose request fetched it. In
/// this case only stale-while-revalidate or stale-if-error permits sending it without validation.
fn never_shared(request: &RequestFacts, stored: &CachingFacts) -> bool {
    rule!(
        "stale: what was never fresh is not given to a request with credentials",
        stored.lifetime_s == 0 && request.has_credentials(),
        false
    ) || rule!(
        "stale: what was never fresh and is for one user is given to nobody else",
        stored.is_for_one_user(),
        false
    )
}

fn revalidate(request: &RequestFacts, stored: &CachingFacts, reason: Fwd) -> Decision {
    let if_none_match = stored.flags.has(Flags::HAS_ETAG);
    let if_modified_since = stored.is_validated_by_date();
    if request.only_if_cached {
        Decision::OnlyIfCached504
    } else if (if_none_match || if_modified_since) && !stored.flags.has(Flags::PARTIAL) {
        Decision::Revalidate {
            reason,
            if_none_match,
            if_modified_since,
        }
    } else {
        Decision::Forward { reason }
    }
}

fn forward(request: &RequestFacts, reason: Fwd) -> Decision {
    if request.only_if_cached && request.method.reads_cache() {
        Decision::OnlyIfCached504
    } else {
        Decision::Forward { reason }
    }
}

/// Permission to answer with a stale response because the origin failed. RFC 5861 section 4 permits it for
/// errors, and RFC 9111 section 4.2.4 permits it for an origin that cannot be reached. The decision is always
/// [`Decision::Stale`], even if the response is fresh and only the request required validation.
#[must_use]
pub fn stale_on_failure(
    request: &RequestFacts,
    stored: &CachingFacts,
    now: WallTime,
    failure: Failure,
    config: &Config,
) -> Option<Decision> {
    let server_error = matches!(failure, Failure::Status(500 | 502 | 503 | 504));
    if !server_error && failure != Failure::Unreachable || !request.method.reads_cache() {
        return None;
    }
    let request = request.under(config);
    if request.body || never_stale(&request, stored) {
        return None;
    }
    let ttl_ms = ttl_ms(stored, now);
    let (age, ttl) = (age(stored, now), ttl_ms.div_euclid(1000));
    let limit = error_limit(&request, stored, failure, config)?;
    let within = rule!(
        "stale: its use in place of an error ends with the time that is allowed",
        ttl_ms.saturating_neg() <= i64::from(limit) * 1000,
        true
    );
    within.then_some(Decision::Stale {
        age,
        ttl,
        why: StaleUse::OnError,
    })
}

/// Number of seconds after the end of the lifetime for which this stored response may be sent because of the
/// failure.
fn error_limit(
    request: &RequestFacts,
    stored: &CachingFacts,
    failure: Failure,
    config: &Config,
) -> Option<u32> {
    if never_shared(request, stored) {
        return stored.stale_if_error_s;
    }
    let said = stored.stale_if_error_s.max(request.stale_if_error);
    match failure {
        Failure::Unreachable => Some(config.stale_on_disconnect_s).max(said),
        Failure::Status(_) => said,
    }
}

#[cfg(test)]
mod tests;
