//! The gate: every answer needs a [`Grant`].
//!
//! A grant is the permission to give one answer to one request at one moment. There are two ways to obtain a
//! grant. [`Grant::own`] is for an answer that was fetched for this request. It needs a proof ([`Own`]). Only
//! the request that started the fetch has this proof. [`Grant::shared`] and the related functions are for all
//! other answers: they apply the caching rules ([`decide`] or [`stale_on_failure`]) to this request. The
//! fields of a grant are private. Every function that sends stored or shared bytes takes a [`Shown`] or a
//! [`Hit`], both of which contain a grant.

use foxy_base::{Fields, WallTime, rule};
use foxy_http_rules::{
    CacheStatus, CachingFacts, Config, Decision, Failure, Flags, Fwd, LifetimeSource, RequestFacts,
    RuleId, StaleUse, decide, freshness, stale_on_failure,
};
use foxy_http1::RequestHead;

use crate::cache::serve::find::Tier;
use crate::fill::Own;
use crate::http::reply::{Mode, OwnFields};
use crate::http::rewriting::ResponseContext;
use crate::{Outcome, Proxy};

/// The permission to answer one request at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    age: u32,
    ttl: i64,
    basis: Basis,
}

/// Reason for a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// The answer comes from the request's own fetch.
    Own,
    /// The answer is fresh for this request.
    Fresh,
    /// The answer is stale, and a stale answer is permitted for this request.
    Stale(StaleUse),
}

impl Grant {
    /// Makes a grant for an answer that other requests get too: a stored answer, or a response that the fetch
    /// of another request is receiving.
    ///
    /// # Errors
    /// Returns the decision of the caching rules if it does not permit the answer.
    #[inline]
    pub(crate) fn shared(
        request: &RequestFacts,
        stored: &CachingFacts,
        now: WallTime,
        rules: &Config,
    ) -> Result<Self, Decision> {
        let decision = decide(request, stored, now, rules);
        Self::of(&decision).ok_or(decision)
    }

    /// Makes a grant as [`shared`](Self::shared) does, for a stored answer that is sent because the origin
    /// failed.
    pub(crate) fn on_failure(
        request: &RequestFacts,
        stored: &CachingFacts,
        now: WallTime,
        failure: Failure,
        rules: &Config,
    ) -> Option<Self> {
        Self::of(&stale_on_failure(request, stored, now, failure, rules)?)
    }

    /// Makes a grant for a request that waited for the head of a running fetch, at a site with the setting
    /// `collapse = "arrived"`. Unlike [`shared`](Self::shared), this function judges freshness as of the time
    /// `arrived`, at which the request arrived. The answer must have an explicit lifetime and no directive
    /// that requires validation. The caller ensures that the request has neither credentials nor cache
    /// directives.
    pub(crate) fn arrived(
        request: &RequestFacts,
        stored: &CachingFacts,
        (arrived, now): (WallTime, WallTime),
        rules: &Config,
    ) -> Option<Self> {
        let explicit = !matches!(
            stored.source,
            LifetimeSource::Heuristic
                | LifetimeSource::None
                | LifetimeSource::Default
                | LifetimeSource::Negative
        );
        let heuristic = !explicit || stored.flags.has(Flags::HEURISTIC) || stored.lifetime_s == 0;
        let strict = stored.flags.any(Flags::FORBID_STALE);
        if rule!(
            "collapse: judged at its arrival is only a lifetime of the origin's own",
            heuristic,
            false
        ) || rule!(
            "collapse: what must be validated is, whenever a request arrived",
            strict,
            false
        ) {
            return None;
        }
        // The time that the origin took to respond is part of the age that the answer states. It is not part
        // of the age by which freshness is judged here.
        let delay = stored.response_time.0.saturating_sub(stored.request_time.0);
        let since_asked = CachingFacts {
            initial_age_ms: stored.initial_age_ms.saturating_sub(delay.max(0)).max(0),
            response_time: stored.request_time,
            ..*stored
        };
        let at = arrived.max(stored.request_time);
        let grant = Self::of(&decide(request, &since_asked, at, rules))?;
        Some(Self {
            age: freshness::age(stored, now),
            ttl: freshness::ttl_ms(stored, now).div_euclid(1000),
            ..grant
        })
    }

    /// Makes a grant for the answer to the request's own fetch. `stored` contains the caching facts of the
    /// answer if the answer may be stored.
    pub(crate) fn own(_proof: Own, stored: Option<&CachingFacts>, now: WallTime) -> Self {
        Self {
            age: stored.map_or(0, |stored| freshness::age(stored, now)),
            ttl: stored.map_or(0, |stored| freshness::ttl_ms(stored, now).div_euclid(1000)),
            basis: Basis::Own,
        }
    }

    #[inline]
    fn of(decision: &Decision) -> Option<Self> {
        let (age, ttl, basis) = match *decision {
            Decision::Fresh { age, ttl } => (age, ttl, Basis::Fresh),
            Decision::Stale { age, ttl, why } => (age, ttl, Basis::Stale(why)),
            _ => return None,
        };
        Some(Self { age, ttl, basis })
    }

    /// Returns true if the answer is sent although it is stale.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.basis, Basis::Stale(_))
    }

    /// Returns true if the answer is stale and must be revalidated in the background.
    pub(crate) fn asks_in_background(&self) -> bool {
        self.basis == Basis::Stale(StaleUse::WhileRevalidate)
    }

    /// Returns the outcome (the word for log and metrics) of an answer from the cache.
    fn outcome(&self, tier: Tier) -> Outcome {
        match (self.basis, tier) {
            (Basis::Stale(StaleUse::MaxStale), _) => Outcome::HitMaxStale,
            (Basis::Stale(StaleUse::WhileRevalidate), _) => Outcome::HitWhileRevalidate,
            (Basis::Stale(StaleUse::OnError), _) => Outcome::HitOnError,
            (_, Tier::Memory) => Outcome::MemoryHit,
            (_, Tier::Disk) => Outcome::DiskHit,
        }
    }
}

/// A grant, and the data that describe the answer to the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    grant: Grant,
    pub(crate) outcome: Outcome,
    /// The operator's rule that applies to the request.
    pub(crate) rule: RuleId,
    /// The request to the origin, if the origin was asked.
    fetched: Option<Fetched>,
}

/// The request to the origin that led to an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// Reason for the request.
    pub(crate) reason: Fwd,
    /// Status of the origin's answer, if it differs from the status that is sent.
    pub(crate) status: Option<u16>,
    /// True if the origin was asked for another client's request, and this request shares the answer.
    pub(crate) collapsed: bool,
}

impl Shown {
    /// Describes an answer from the cache.
    pub(crate) fn hit_in(grant: Grant, tier: Tier, rule: RuleId) -> Self {
        Self {
            outcome: grant.outcome(tier),
            grant,
            rule,
            fetched: None,
        }
    }

    /// Describes an answer for which the origin was asked. The answer is stored by now, or is still arriving.
    pub(crate) fn fetched(grant: Grant, outcome: Outcome, rule: RuleId, fetched: Fetched) -> Self {
        Self {
            grant,
            outcome,
            rule,
            fetched: Some(fetched),
        }
    }

    /// Adds to this description that some bytes of the answer had to be fetched, because they were not
    /// stored.
    pub(crate) fn partly(self, outcome: Outcome, collapsed: bool) -> Self {
        let fetched = Fetched {
            reason: Fwd::Partial,
            status: None,
            collapsed,
        };
        Self {
            outcome,
            fetched: Some(fetched),
            ..self
        }
    }

    /// Returns true if the origin was asked.
    pub(crate) const fn is_fetched(&self) -> bool {
        self.fetched.is_some()
    }

    /// Returns true if the answer is stale and must be revalidated in the background.
    pub(crate) fn asks_in_background(&self) -> bool {
        self.grant.asks_in_background()
    }

    /// Returns the data for the head of the answer.
    #[inline]
    pub(crate) fn hit<'a>(&self, proxy: &'a Proxy, to: ResponseContext<'a>, keep: bool) -> Hit<'a> {
        let none = CacheStatus {
            cache: &proxy.config.headers.name,
            ttl: Some(self.grant.ttl),
            rule: proxy.rule_name(self.rule),
            ..CacheStatus::default()
        };
        let cache = match self.fetched {
            None => CacheStatus {
                hit: true,
                detail: Some(self.outcome.as_str()),
                ..none
            },
            Some(fetched) => CacheStatus {
                fwd: Some(fetched.reason),
                fwd_status: fetched.status,
                stored: true,
                collapsed: fetched.collapsed,
                ..none
            },
        };
        Hit {
            age: self.grant.age,
            cache,
            keep,
            to,
            _grant: self.grant,
        }
    }
}

/// The data for the head of a stored or shared answer. Only [`Shown::hit`] makes this value, and a [`Shown`]
/// contains a grant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit<'a> {
    /// Age in seconds.
    pub(crate) age: u32,
    pub(crate) cache: CacheStatus<'a>,
    /// True if the connection can carry another request.
    pub(crate) keep: bool,
    pub(crate) to: ResponseContext<'a>,
    _grant: Grant,
}

impl<'a> Hit<'a> {
    /// Returns the fields that Foxy adds to the answer to the request `head`. `fields` are the fields of the
    /// stored answer.
    #[inline]
    pub(crate) fn own_fields<F: Fields + ?Sized>(
        &'a self,
        mode: Mode,
        head: &'a RequestHead<'a>,
        fields: &F,
    ) -> OwnFields<'a> {
        OwnFields {
            mode,
            age: Some(self.age),
            cache: Some(&self.cache),
            keep: self.keep,
            varies: self.to.varies(fields),
            head: Some(head),
            to: Some(self.to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::FieldBlockBuilder;

    fn request(fields: &[(&str, &str)]) -> RequestFacts {
        let mut block = FieldBlockBuilder::default();
        for (name, value) in fields {
            block.push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        RequestFacts::new(b"GET", &block.finish())
    }

    fn facts(lifetime_s: u32, source: LifetimeSource) -> CachingFacts {
        CachingFacts {
            status: 200,
            flags: Flags::default(),
            request_time: WallTime::from_secs(100),
            response_time: WallTime::from_secs(102),
            initial_age_ms: 2000,
            lifetime_s,
            source,
            stale_while_revalidate_s: None,
            stale_if_error_s: None,
            date: None,
            last_modified: None,
        }
    }

    #[test]
    fn an_answer_that_needs_validation_is_granted_to_no_other_request() {
        let rules = Config::default();
        let stored = facts(0, LifetimeSource::None);
        let granted = Grant::shared(&request(&[]), &stored, WallTime::from_secs(102), &rules);
        assert!(granted.is_err());
    }

    #[test]
    fn a_waiting_request_is_judged_as_of_its_arrival() {
        let rules = Config::default();
        let (arrived, now) = (WallTime::from_secs(100), WallTime::from_secs(102));
        let judge = |facts: &CachingFacts, arrived| {
            Grant::arrived(&request(&[]), facts, (arrived, now), &rules).map(|g| (g.age, g.ttl))
        };
        let short = facts(1, LifetimeSource::MaxAge);
        assert_eq!(judge(&short, arrived), Some((2, -1)));
        assert_eq!(
            judge(&short, WallTime::from_secs(90)),
            Some((2, -1)),
            "before it was asked"
        );
        assert_eq!(
            judge(&short, WallTime::from_secs(101)),
            None,
            "past its lifetime by then"
        );
        let mut old = facts(60, LifetimeSource::MaxAge);
        old.initial_age_ms = 62_000;
        assert_eq!(
            judge(&old, arrived),
            None,
            "it was old when the origin sent it"
        );
        assert_eq!(judge(&facts(0, LifetimeSource::MaxAge), arrived), None);
        assert_eq!(judge(&facts(9, LifetimeSource::Heuristic), arrived), None);
        for flag in [
            Flags::NO_CACHE,
            Flags::MUST_REVALIDATE,
            Flags::PROXY_REVALIDATE,
        ] {
            let mut strict = short;
            strict.flags = flag;
            assert_eq!(judge(&strict, arrived), None);
        }
    }
}
