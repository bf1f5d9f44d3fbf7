//! Lifetime, age and remaining lifetime (RFC 9111 sections 4.2.1 to 4.2.3). All arithmetic saturates. Times
//! inside this module are in milliseconds; values of fields are in whole seconds.

use foxy_base::{Fields, WallTime, first, rule, values};

use crate::cache_control::{ControlSource, ResponseControl};
use crate::config::Config;
use crate::date;
use crate::facts::{CachingFacts, Flags};
use crate::heuristics;
use crate::reason::LifetimeSource;
use crate::request::RequestFacts;
use crate::status;
use crate::text::{DELTA_MAX, delta_seconds, members};

/// Tolerance in milliseconds for a clock that shows a time before the receipt of a response. If the clock is
/// earlier by more than this tolerance, even a fresh response counts as stale. The clock readings of
/// different threads differ by less than this tolerance.
pub const CLOCK_SLACK_MS: i64 = 1000;

/// A lifetime and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The lifetime in seconds.
    pub seconds: u32,
    /// The source of the lifetime.
    pub source: LifetimeSource,
    /// True if the lifetime follows from a heuristic, even if the operator's bounds limit it.
    pub heuristic: bool,
}

impl Lifetime {
    const fn new(seconds: u32, source: LifetimeSource) -> Self {
        Self {
            seconds,
            source,
            heuristic: matches!(source, LifetimeSource::Heuristic),
        }
    }
}

/// The times of a response from which its age and lifetime follow.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Time at which the request was sent.
    pub request_time: WallTime,
    /// Time at which the head of the response arrived.
    pub response_time: WallTime,
    /// The Date field, if it is valid.
    pub date: Option<WallTime>,
    /// The Last-Modified field, if it is valid.
    pub last_modified: Option<WallTime>,
}

impl Times {
    /// Reads Date and Last-Modified.
    pub fn of<F: Fields + ?Sized>(
        fields: &F,
        request_time: WallTime,
        response_time: WallTime,
    ) -> Self {
        let read = |name| first(fields, name).and_then(|text| date::parse(text, response_time));
        Self {
            request_time,
            response_time,
            date: read("Date"),
            last_modified: read("Last-Modified"),
        }
    }
}

/// corrected_initial_age in milliseconds (RFC 9111 section 4.2.3).
pub fn initial_age_ms<F: Fields + ?Sized>(fields: &F, times: &Times) -> i64 {
    // Date is in whole seconds. If it were compared with a time in milliseconds, the response would seem up
    // to a second older.
    let apparent_s = times.date.map_or(0, |date| {
        times
            .response_time
            .secs()
            .saturating_sub(date.secs())
            .max(0)
    });
    let delay = times
        .response_time
        .0
        .saturating_sub(times.request_time.0)
        .max(0);
    let age = rule!(
        "freshness: the age in other caches counts",
        age_value(fields),
        0
    );
    let corrected = i64::from(age).saturating_mul(1000).saturating_add(delay);
    apparent_s.saturating_mul(1000).max(corrected)
}

/// The value of the Age field: its first member if that is a number, else 0 (RFC 9111 section 5.1).
pub fn age_value<F: Fields + ?Sized>(fields: &F) -> u32 {
    let member = values(fields, "Age").flat_map(members).next();
    member.and_then(delta_seconds).unwrap_or(0)
}

/// The freshness lifetime of a response in a shared cache (RFC 9111 section 4.2.1), with the operator's
/// overrides. The response answers `request`, which may forbid a heuristic lifetime.
pub fn lifetime<F: Fields + ?Sized>(
    request: &RequestFacts,
    status: u16,
    fields: &F,
    control: &ResponseControl,
    times: &Times,
    config: &Config,
) -> Lifetime {
    let found = explicit(fields, control, times)
        .or_else(|| {
            heuristic(status, control, times, config)
                .filter(|_| heuristics::is_allowed(request, fields))
        })
        .or_else(|| configured(status, config))
        .unwrap_or(Lifetime::new(0, LifetimeSource::None));
    overridden(found, status, config)
}

/// The explicit lifetime. The first field or directive that is present decides: s-maxage, max-age, Expires.
pub fn explicit<F: Fields + ?Sized>(
    fields: &F,
    control: &ResponseControl,
    times: &Times,
) -> Option<Lifetime> {
    let from = |plain| match control.source {
        ControlSource::CacheControl => plain,
        ControlSource::Targeted => LifetimeSource::Targeted,
        ControlSource::Surrogate => LifetimeSource::Surrogate,
    };
    if let Some(seconds) = control.s_maxage {
        return Some(Lifetime::new(seconds, from(LifetimeSource::SMaxage)));
    }
    if let Some(seconds) = control.max_age {
        return Some(Lifetime::new(seconds, from(LifetimeSource::MaxAge)));
    }
    if control.source != ControlSource::CacheControl {
        return None;
    }
    let seconds = expires_lifetime(fields, times)?;
    Some(Lifetime::new(seconds, LifetimeSource::Expires))
}

/// The lifetime by Expires minus Date. Invalid Expires lines, or lines that differ, mean that the response
/// has expired (RFC 9111 section 5.3). If Date is missing or invalid, the time of receipt is used instead.
fn expires_lifetime<F: Fields + ?Sized>(fields: &F, times: &Times) -> Option<u32> {
    let mut lines = values(fields, "Expires");
    let text = lines.next()?;
    let alone = lines.all(|other| other == text);
    let Some(expires) = date::parse(text, times.response_time).filter(|_| alone) else {
        return Some(0);
    };
    let date = times.date.unwrap_or(times.response_time);
    let seconds = expires.secs().saturating_sub(date.secs()).max(0);
    Some(u32::try_from(seconds).map_or(DELTA_MAX, |s| s.min(DELTA_MAX)))
}

/// The heuristic lifetime: a share of the time since the last modification (RFC 9111 section 4.2.2). `None`
/// if neither the status nor `public` permits a heuristic, or if the response has no Last-Modified.
fn heuristic(
    status: u16,
    control: &ResponseControl,
    times: &Times,
    config: &Config,
) -> Option<Lifetime> {
    let allowed = control.public || status::is_heuristically_cacheable(status);
    let modified = times
        .last_modified
        .filter(|_| allowed && config.heuristic_percent > 0)?;
    let date = times.date.unwrap_or(times.response_time);
    let unchanged_s = date.secs().saturating_sub(modified.secs()).max(0);
    let share = unchanged_s.saturating_mul(i64::from(config.heuristic_percent)) / 100;
    let seconds = u32::try_from(share)
        .unwrap_or(u32::MAX)
        .min(config.heuristic_max_s);
    Some(Lifetime::new(seconds, LifetimeSource::Heuristic))
}

/// The operator's lifetime for a response without freshness information.
fn configured(status: u16, config: &Config) -> Option<Lifetime> {
    let negative = |seconds| Lifetime::new(seconds, LifetimeSource::Negative);
    if status::is_server_error(status) {
        return config.server_error_ttl_s.map(negative);
    }
    if status::is_negative(status)
        && let Some(seconds) = config.negative_ttl_s
    {
        return Some(negative(seconds));
    }
    let default = config
        .default_ttl_s
        .filter(|_| status::is_heuristically_cacheable(status))?;
    Some(Lifetime::new(default, LifetimeSource::Default))
}

fn overridden(found: Lifetime, status: u16, config: &Config) -> Lifetime {
    // The cause of an error may end within a second, so the lifetime of an error is not raised.
    let error = status >= 400 || found.source == LifetimeSource::Negative;
    if let Some(least) = config.ttl_min_s
        && !error
        && found.source != LifetimeSource::None
        && found.seconds < least
    {
        return Lifetime {
            seconds: least,
            source: LifetimeSource::Minimum,
            ..found
        };
    }
    if let Some(most) = config.ttl_max_s
        && found.seconds > most
    {
        return Lifetime {
            seconds: most,
            source: LifetimeSource::Maximum,
            ..found
        };
    }
    found
}

/// current_age in milliseconds (RFC 9111 section 4.2.3). It is never below the age on arrival.
#[must_use]
pub fn age_ms(stored: &CachingFacts, now: WallTime) -> i64 {
    let resident = now.0.saturating_sub(stored.response_time.0).max(0);
    stored.initial_age_ms.saturating_add(resident)
}

/// The value of the Age field in seconds, at most 2^31.
#[must_use]
pub fn age(stored: &CachingFacts, now: WallTime) -> u32 {
    u32::try_from(age_ms(stored, now) / 1000).map_or(DELTA_MAX, |s| s.min(DELTA_MAX))
}

/// The remaining lifetime in milliseconds; a response with 0 or less is stale. If the clock is more than
/// [`CLOCK_SLACK_MS`] before the time of receipt, the age is unknown, and the response counts as stale.
#[must_use]
pub fn ttl_ms(stored: &CachingFacts, now: WallTime) -> i64 {
    let lifetime_ms = i64::from(stored.lifetime_s) * 1000;
    let ttl = lifetime_ms.saturating_sub(age_ms(stored, now));
    let backwards = rule!(
        "freshness: what comes from the future is stale",
        stored.response_time.0.saturating_sub(now.0) > CLOCK_SLACK_MS,
        false
    );
    let purged = rule!(
        "freshness: what was purged softly is stale",
        stored
            .flags
            .any(Flags::INVALIDATED.with(Flags::SOFT_PURGED)),
        false
    );
    if backwards || purged { ttl.min(0) } else { ttl }
}

/// The time at which the stored response stops being fresh.
#[must_use]
pub fn expires_at(stored: &CachingFacts) -> WallTime {
    let lifetime_ms = i64::from(stored.lifetime_s) * 1000;
    let left = lifetime_ms.saturating_sub(stored.initial_age_ms);
    WallTime(stored.response_time.0.saturating_add(left))
}

/// The time after which the stored response may be used only if it is validated: the end of its lifetime plus
/// the longest permitted stale time. Directives of requests, such as `max-stale`, are not taken into account.
#[must_use]
pub fn useless_at(stored: &CachingFacts, config: &Config) -> WallTime {
    let stale = stored
        .stale_while_revalidate_s
        .max(stored.stale_if_error_s)
        .max(Some(config.stale_on_disconnect_s))
        .unwrap_or(0);
    WallTime(expires_at(stored).0.saturating_add(i64::from(stale) * 1000))
}

#[cfg(test)]
mod tests;
