//! The gatekeeper decides whether a request is permitted. It applies the operator's access rules about the
//! client, the destination and the time.
//!
//! The gatekeeper judges a request before the lookup in the cache, so that a denied request gets no stored
//! answer. If a rule depends on the destination's address, the name is resolved first. Each address is judged
//! again right before the connection is opened. So a client cannot evade a rule by a name whose addresses
//! change.

mod explain;
mod limits;
mod pass;
mod path;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_access::{Action, RuleSet, Scheme};
use foxy_base::WallTime;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::access::logins::{Logins, LoginsConfig};
use crate::access::parents::{ParentGroup, Parents};

pub use explain::AccessQuestion;
pub(crate) use limits::{Counted, Exceeded, Limits, Subject};
pub use limits::{Limit, Per};
pub(crate) use pass::{Pass, Reach, Reachable};
pub(crate) use path::literal;
pub use path::plain_path;

/// Rules, users and limits of requests. A gatekeeper is made at the start and at each reload.
#[derive(Debug)]
pub struct Gatekeeper {
    rules: RuleSet,
    logins: Option<Logins>,
    limits: Option<Limits>,
    parents: Vec<Arc<Parents>>,
    zone: TimeZone,
    /// The minute (since 1970) of the last call of [`Self::minute()`], and the minute of the week that this
    /// call returned. Both are packed into one number.
    minute: AtomicU64,
    addresses: bool,
    paths: bool,
    times: bool,
}

impl Gatekeeper {
    /// Makes a gatekeeper. The times of rules are in the time zone `zone`.
    #[must_use]
    pub fn new(rules: RuleSet, zone: TimeZone) -> Self {
        Self {
            addresses: rules.names_addresses(),
            paths: rules.names_paths(),
            times: rules.names_times(),
            rules,
            logins: None,
            limits: None,
            parents: Vec::new(),
            zone,
            minute: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds users who can log in.
    #[must_use]
    pub fn with_logins(mut self, logins: Option<LoginsConfig>) -> Self {
        self.logins = logins.map(Logins::new);
        self
    }

    /// Adds limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Vec<Limit>) -> Self {
        self.limits = (!limits.is_empty()).then(|| Limits::new(limits));
        self
    }

    /// Adds groups of parents.
    #[must_use]
    pub fn with_parents(mut self, groups: Vec<ParentGroup>) -> Self {
        let groups = groups
            .into_iter()
            .map(|group| Arc::new(Parents::new(group)));
        self.parents = groups.collect();
        self
    }

    /// Returns the group of parents (other proxies) for a request to the forward proxy. If `rule`, the access
    /// rule that decided, names a group, the result is that group. Otherwise the result is the first group
    /// with `always` that is for this scheme and has no exception for this host.
    pub(crate) fn parents(
        &self,
        rule: Option<usize>,
        host: &[u8],
        scheme: Scheme,
    ) -> Option<Arc<Parents>> {
        let rule = rule.and_then(|rule| self.rules.all().get(rule));
        let mut groups = self.parents.iter();
        let found = match rule.map(|rule| &rule.action) {
            Some(Action::Parent(name)) => groups.find(|group| group.group().name == *name),
            _ => groups.find(|group| group.takes(host, scheme)),
        };
        found.cloned()
    }

    pub(crate) const fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    pub(crate) const fn logins(&self) -> Option<&Logins> {
        self.logins.as_ref()
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Returns the groups of a user.
    #[must_use]
    pub fn groups_of(&self, user: &str) -> Vec<String> {
        let groups = self.logins.as_ref().map(|logins| &logins.config().groups);
        let own = groups.and_then(|groups| groups.get(user));
        own.cloned().unwrap_or_default()
    }

    /// Returns the settings of the gatekeeper as a text. Two gatekeepers with equal texts decide in the same
    /// way.
    #[must_use]
    pub fn settings(&self) -> String {
        let logins = self.logins.as_ref().map(Logins::config);
        let limits = self.limits.as_ref().map(Limits::all);
        let (rules, zone) = (self.rules.all(), &self.zone);
        let parents: Vec<_> = self.parents.iter().map(|parents| parents.group()).collect();
        format!("{rules:?} {zone:?} {logins:?} {limits:?} {parents:?}")
    }

    pub(crate) const fn names_addresses(&self) -> bool {
        self.addresses
    }

    pub(crate) const fn names_paths(&self) -> bool {
        self.paths
    }

    /// Returns the current minute of the week. Returns 0 if no rule has a time.
    pub(crate) fn minute(&self, now: WallTime) -> u16 {
        if !self.times {
            return 0;
        }
        let minute = now.secs().div_euclid(60) as u64 & 0xffff_ffff;
        let last = self.minute.load(Ordering::Relaxed);
        if last >> 16 == minute {
            return last as u16;
        }
        let found = self.minute_of_week(now);
        self.minute
            .store(minute << 16 | u64::from(found), Ordering::Relaxed);
        found
    }

    /// Returns the minute of the week that a time has in the time zone of the rules. The week begins on
    /// Monday.
    #[must_use]
    pub fn minute_of_week(&self, at: WallTime) -> u16 {
        let Ok(at) = Timestamp::from_second(at.secs()) else {
            return 0;
        };
        let local = self.zone.to_datetime(at);
        let day = local.weekday().to_monday_zero_offset() as u16;
        day * 1440 + local.hour() as u16 * 60 + local.minute() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_access::{Rule, Span};

    #[test]
    fn minutes_are_those_of_the_zone() {
        let timed = Rule {
            times: vec![Span::parse("sat").unwrap()],
            ..Rule::default()
        };
        let gate = |zone| Gatekeeper::new(RuleSet::new(vec![timed.clone()]), zone);
        // The time 0 is Thursday, 1 January 1970.
        let at = |hours: i64| WallTime::from_secs(hours * 3600);
        let utc = gate(TimeZone::UTC);
        assert_eq!(utc.minute(at(0)), 3 * 1440);
        assert_eq!(utc.minute(at(0)), 3 * 1440);
        assert_eq!(utc.minute(at(96)), 0);
        let east = gate(TimeZone::fixed(jiff::tz::offset(2)));
        assert_eq!(east.minute(at(23)), 4 * 1440 + 60);
        assert_eq!(
            Gatekeeper::new(RuleSet::new(Vec::new()), TimeZone::UTC).minute(at(50)),
            0
        );
    }
}
