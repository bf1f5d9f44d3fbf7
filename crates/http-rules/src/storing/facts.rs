//! Collects the caching facts of a response.

use foxy_base::{Fields, rule, values};

use super::Response;
use crate::cache_control::{ControlSource, ResponseControl};
use crate::config::{Config, ListedFields};
use crate::etag::{self, ETag};
use crate::facts::{CachingFacts, Flags};
use crate::freshness::{self, Lifetime, Times};
use crate::heuristics;
use crate::reason::LifetimeSource;
use crate::text::directives;

/// The caching facts of a response that is about to be stored.
pub(super) fn facts_of<R: Fields + ?Sized>(
    response: &Response<'_, R>,
    control: &ResponseControl,
    times: &Times,
    lifetime: Lifetime,
    config: &Config,
) -> CachingFacts {
    let fields = response.fields;
    let tag = etag::of(fields);
    let mut flags = Flags::default();
    flags.set(Flags::MUST_REVALIDATE, control.must_revalidate);
    flags.set(
        Flags::PROXY_REVALIDATE,
        control.proxy_revalidate
            || rule!(
                "storing: s-maxage forbids stale use",
                control.s_maxage.is_some(),
                false
            ),
    );
    flags.set(
        Flags::NO_CACHE,
        is_no_cache(fields, control, lifetime, config),
    );
    flags.set(Flags::IMMUTABLE, control.immutable);
    flags.set(Flags::HEURISTIC, lifetime.heuristic);
    let unsaid = lifetime.heuristic || lifetime.source == LifetimeSource::None;
    flags.set(Flags::STATIC_TYPE, unsaid && heuristics::is_static(fields));
    flags.set(Flags::HAS_ETAG, tag.is_some());
    flags.set(
        Flags::STRONG_ETAG,
        tag.is_some_and(|tag| ETag::parse(tag).is_strong()),
    );
    flags.set(Flags::HAS_LAST_MODIFIED, times.last_modified.is_some());
    flags.set(Flags::PARTIAL, response.status == 206);
    CachingFacts {
        status: response.status,
        flags,
        request_time: response.request_time,
        response_time: response.response_time,
        initial_age_ms: freshness::initial_age_ms(fields, times),
        lifetime_s: lifetime.seconds,
        source: lifetime.source,
        stale_while_revalidate_s: control
            .stale_while_revalidate
            .or(config.stale_while_revalidate_s),
        stale_if_error_s: control.stale_if_error.or(config.stale_if_error_s),
        date: times.date,
        last_modified: times.last_modified,
    }
}

/// True if the response has no-cache. The list form of no-cache counts if the configuration requires this.
/// Pragma: no-cache counts only if the lifetime is heuristic or the configured default. It does not count if
/// a targeted field or Surrogate-Control takes the place of Cache-Control.
fn is_no_cache<R: Fields + ?Sized>(
    fields: &R,
    control: &ResponseControl,
    lifetime: Lifetime,
    config: &Config,
) -> bool {
    let listed = control.no_cache_listed && config.listed_fields == ListedFields::Unqualified;
    let heuristic = control.source == ControlSource::CacheControl
        && (lifetime.heuristic || lifetime.source == LifetimeSource::Default);
    let pragma = || {
        values(fields, "Pragma")
            .flat_map(directives)
            .any(|d| d.is("no-cache"))
    };
    rule!("storing: no-cache is remembered", control.no_cache, false)
        || listed
        || heuristic && pragma()
}
