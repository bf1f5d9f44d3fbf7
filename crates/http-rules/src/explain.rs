//! Explains decisions in words, for `foxy why`. There is one sentence for each fact that contributed to the
//! decision. The decisive facts come first. The age and the lifetime of the response come last.

use foxy_base::WallTime;

use crate::config::Config;
use crate::decide::{Decision, StaleUse};
use crate::facts::{CachingFacts, Flags};
use crate::freshness::{CLOCK_SLACK_MS, age};
use crate::reason::{Fwd, LifetimeSource, NoStore};
use crate::request::RequestFacts;

/// Explains a decision about a request for which a response is stored.
#[must_use]
pub fn decision(
    decision: &Decision,
    request: &RequestFacts,
    stored: &CachingFacts,
    now: WallTime,
    config: &Config,
) -> Vec<String> {
    let mut words = Vec::new();
    match decision {
        Decision::Fresh { ttl, .. } => words.push(format!("it is fresh for {ttl} s more")),
        Decision::Stale { why, ttl, .. } => words.push(stale(*why, *ttl, stored)),
        Decision::Revalidate { reason, .. } | Decision::Forward { reason } => {
            words.extend(not_used(*reason, request, stored, now, config));
            words.push(validation(decision).to_owned());
        }
        Decision::OnlyIfCached504 => {
            words.push("the request says only-if-cached, and what is stored may not be used without asking the origin".to_owned());
            words.extend(not_used(Fwd::Stale, request, stored, now, config));
        }
    }
    words.push(lifetime(stored, now));
    words
}

fn stale(why: StaleUse, ttl: i64, stored: &CachingFacts) -> String {
    let past = ttl.saturating_neg();
    match why {
        StaleUse::MaxStale => {
            format!("it is stale for {past} s, which the request's max-stale allows")
        }
        StaleUse::WhileRevalidate => format!(
            "it is stale for {past} s, within the {} s of stale-while-revalidate: it is sent, and the origin is asked in the background",
            stored.stale_while_revalidate_s.unwrap_or(0)
        ),
        StaleUse::OnError => format!("it is stale for {past} s, and the origin failed"),
    }
}

fn validation(decision: &Decision) -> &'static str {
    match decision {
        Decision::Revalidate {
            if_none_match: true,
            ..
        } => "the origin is asked whether its ETag still holds (If-None-Match)",
        Decision::Revalidate { .. } => {
            "the origin is asked whether it changed since its Last-Modified (If-Modified-Since)"
        }
        _ => "it has no validator, so the whole is fetched again",
    }
}

/// The reason why a stored response is not used.
fn not_used(
    reason: Fwd,
    request: &RequestFacts,
    stored: &CachingFacts,
    now: WallTime,
    config: &Config,
) -> Vec<String> {
    let mut words = Vec::new();
    let flag = |flag| stored.flags.has(flag);
    let mut say = |on: bool, text: &str| {
        if on {
            words.push(text.to_owned());
        }
    };
    if reason == Fwd::Request {
        say(request.no_cache, "the request says no-cache (a reload)");
        let old = request.max_age.filter(|limit| age(stored, now) >= *limit);
        say(old.is_some(), "the request's max-age is below its age");
        say(
            request.min_fresh.is_some(),
            "the request's min-fresh asks for more life than it has left",
        );
        return words;
    }
    say(
        flag(Flags::INVALIDATED),
        "an unsafe request (such as POST) to the same URL invalidated it",
    );
    say(
        flag(Flags::SOFT_PURGED),
        "it was purged softly: stale from then on",
    );
    say(
        flag(Flags::NO_CACHE),
        "the response says no-cache: it is validated before each use",
    );
    let backwards = stored.response_time.0.saturating_sub(now.0) > CLOCK_SLACK_MS;
    say(
        backwards,
        "the clock stands before the time of its receipt: how old it is cannot be known",
    );
    let past = crate::freshness::ttl_ms(stored, now) <= 0;
    say(
        crate::heuristics::is_all_for(request, stored),
        "the request has Cookie or Authorization, and only a guess lets others have it",
    );
    say(past, "its lifetime is over");
    say(
        past && flag(Flags::MUST_REVALIDATE),
        "must-revalidate forbids to use it stale",
    );
    say(
        past && flag(Flags::PROXY_REVALIDATE),
        "proxy-revalidate or s-maxage forbids to use it stale",
    );
    say(
        past && request.under(config).no_cache,
        "the request says no-cache besides",
    );
    words
}

/// Returns a text with the age, the lifetime, and the source of the lifetime.
#[must_use]
pub fn lifetime(stored: &CachingFacts, now: WallTime) -> String {
    let (age, life) = (age(stored, now), stored.lifetime_s);
    let source = match stored.source {
        LifetimeSource::Targeted => "by a targeted field such as CDN-Cache-Control",
        LifetimeSource::Surrogate => "by Surrogate-Control",
        LifetimeSource::SMaxage => "by s-maxage",
        LifetimeSource::MaxAge => "by max-age",
        LifetimeSource::Expires => "by Expires",
        LifetimeSource::Heuristic => "guessed from Last-Modified",
        LifetimeSource::Negative => "by the configured negative_ttl or server_error_ttl",
        LifetimeSource::Default => "by the configured default_ttl",
        LifetimeSource::Minimum => "raised to the configured ttl_min",
        LifetimeSource::Maximum => "lowered to the configured ttl_max",
        LifetimeSource::None => "nothing says how long",
    };
    format!("its age is {age} s of a lifetime of {life} s ({source})")
}

/// Explains a reason word of [`NoStore`] or of the rules. `None` for other words.
#[must_use]
pub fn reason(word: &str) -> Option<&'static str> {
    let no_store = NoStore::ALL.iter().find(|reason| reason.as_str() == word);
    no_store.map(|reason| not_stored(*reason)).or(match word {
        "part-contradicts-itself" => {
            Some("the part's Content-Range and Content-Length contradict each other")
        }
        "whole-is-better" => Some("a part does not replace the whole that is stored"),
        "field-too-large" => Some("a field is longer than a record can hold (65,535 bytes)"),
        "part-too-large" => Some("a part of this size has no place in the store"),
        "newer-answer" => Some("an answer to a later question had arrived before"),
        "no-room" => Some(
            "it is longer than the store takes, the store did not admit it, or memory to store it is used up",
        ),
        "stale-is-better" => Some("an error does not replace what may be served stale instead"),
        "rule-bypass" => Some("a rule sends all such requests past the cache"),
        "rule-bypass-header" => Some("a rule sends requests with this header past the cache"),
        "rule-bypass-cookie" => Some("a rule sends requests with this cookie past the cache"),
        _ => None,
    })
}

/// The reason why a response is not stored, as a sentence.
#[must_use]
pub const fn not_stored(reason: NoStore) -> &'static str {
    match reason {
        NoStore::Method => "answers to this method are never reused",
        NoStore::RequestBody => "the request had content, which no cache key covers",
        NoStore::PostWithoutContentLocation => {
            "answers to POST are kept only with explicit freshness and a Content-Location of the same URL"
        }
        NoStore::Interim => "interim responses (1xx) are never stored",
        NoStore::NotModified => "a 304 updates what is stored and is never stored itself",
        NoStore::StatusOfThisRequest => {
            "this status answers something that only this request had (credentials, conditions, ranges)"
        }
        NoStore::PartialUnusable => "the 206 has no usable Content-Range",
        NoStore::RequestNoStore => "the request said no-store",
        NoStore::ResponseNoStore => "the response said no-store",
        NoStore::StatusNotUnderstood => {
            "the response said must-understand, and its status is not understood"
        }
        NoStore::Private => "the response is private: for one user alone",
        NoStore::Authorization => {
            "the request had Authorization, and the response says neither public, s-maxage nor must-revalidate"
        }
        NoStore::VaryStar => "the response said Vary: *, which no later request matches",
        NoStore::VaryTooWide => "the response's Vary names too many fields",
        NoStore::StatusNeedsFreshness => {
            "the response says nothing about freshness, and its status may not be guessed about"
        }
        NoStore::NothingToReuse => {
            "the response has neither freshness nor a validator: nothing could ever be reused"
        }
        NoStore::ExpiredOnArrival => {
            "the response had expired on arrival, and has no validator to be renewed by"
        }
        NoStore::SetCookie => {
            "the response sets a cookie and says neither public nor s-maxage (store_set_cookie stores it all the same)"
        }
        NoStore::SetCookieWithoutFreshness => {
            "the response sets a cookie and does not say that it is fresh"
        }
        NoStore::ConfiguredOff => "the configuration sets ttl_max to zero",
        NoStore::ListedFields => {
            "private or no-cache lists fields, and the configuration refuses those"
        }
        NoStore::TooSmall => "it is smaller than the rule's min_size",
        NoStore::TooLarge => "it is larger than the rule's max_size",
        NoStore::Incomplete => "the body broke off, and nothing allows to complete it later",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{T0, after, fields, stored};
    use crate::{Decision, decide};

    fn words(response: &str, request: &str, secs: i64) -> String {
        let config = Config::default();
        let request = RequestFacts::new(b"GET", &fields(request));
        let stored = stored(response);
        let now = after(secs);
        let made = decide(&request, &stored, now, &config);
        decision(&made, &request, &stored, now, &config).join("; ")
    }

    /// Each entry has the response, the request, the seconds since the response, and a part of the
    /// explanation.
    const SAID: &[(&str, &str, i64, &str)] = &[
        ("Cache-Control: max-age=60", "", 5, "fresh for 55 s more"),
        (
            "Cache-Control: max-age=60",
            "Cache-Control: no-cache",
            5,
            "a reload",
        ),
        (
            "Cache-Control: max-age=60",
            "Cache-Control: max-age=3",
            5,
            "max-age is below",
        ),
        (
            "Cache-Control: max-age=60",
            "Cache-Control: min-fresh=58",
            5,
            "min-fresh asks",
        ),
        (
            "Cache-Control: max-age=60 | ETag: \"a\"",
            "",
            61,
            "If-None-Match",
        ),
        (
            "Cache-Control: max-age=60 | Last-Modified: @-9",
            "",
            61,
            "If-Modified-Since",
        ),
        ("Cache-Control: max-age=60", "", 61, "no validator"),
        (
            "Cache-Control: max-age=60, must-revalidate",
            "",
            61,
            "must-revalidate forbids",
        ),
        ("Cache-Control: s-maxage=60", "", 61, "s-maxage forbids"),
        (
            "Cache-Control: no-cache | ETag: \"a\"",
            "",
            1,
            "before each use",
        ),
        (
            "Cache-Control: max-age=60",
            "",
            -9,
            "the clock stands before",
        ),
        (
            "Cache-Control: max-age=60",
            "Cache-Control: max-stale",
            61,
            "max-stale allows",
        ),
        (
            "Cache-Control: max-age=60, stale-while-revalidate=9",
            "",
            62,
            "within the 9 s",
        ),
        (
            "Cache-Control: max-age=60",
            "Cache-Control: only-if-cached",
            61,
            "only-if-cached",
        ),
        ("Last-Modified: @-1000", "", 5, "guessed from Last-Modified"),
        (
            "Last-Modified: @-1000",
            "Cookie: a=b",
            5,
            "only a guess lets others have it",
        ),
    ];

    #[test]
    fn what_decided_is_said() {
        for &(response, request, secs, said) in SAID {
            let words = words(response, request, secs);
            assert!(words.contains(said), "{response} | {request}: {words}");
            assert!(words.contains("its age is"), "{words}");
        }
    }

    #[test]
    fn every_reason_has_a_sentence_of_its_own() {
        let mut sentences: Vec<&str> = NoStore::ALL
            .iter()
            .map(|reason| self::reason(reason.as_str()).unwrap())
            .collect();
        sentences.sort_unstable();
        sentences.dedup();
        assert_eq!(sentences.len(), NoStore::ALL.len());
        assert_eq!(reason("no such word"), None);
    }

    #[test]
    fn flags_set_after_storing_are_told() {
        let mut stored = stored("Cache-Control: max-age=60");
        let request = RequestFacts::new(b"GET", &fields(""));
        stored.flags.set(Flags::INVALIDATED, true);
        stored.flags.set(Flags::SOFT_PURGED, true);
        let forward = Decision::Forward { reason: Fwd::Stale };
        let words = decision(&forward, &request, &stored, T0, &Config::default()).join("; ");
        assert!(
            words.contains("unsafe request") && words.contains("softly"),
            "{words}"
        );
    }
}
