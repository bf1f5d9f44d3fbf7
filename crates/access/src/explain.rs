//! The reasons of a judgement: each rule up to the one that decides, and the condition that does not fit.

use crate::rule::Fit;
use crate::{Judgement, Request, Rule, RuleSet};

/// A condition of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The client's network.
    Client,
    /// The user, or a group.
    User,
    /// The destination's host.
    Host,
    /// The destination's address.
    Address,
    /// The destination's port.
    Port,
    /// The way to the destination.
    Scheme,
    /// The method.
    Method,
    /// The path.
    Path,
    /// The site.
    Site,
    /// The time.
    Time,
}

impl Condition {
    /// Its name in rules.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Host => "host",
            Self::Address => "address",
            Self::Port => "port",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Path => "path",
            Self::Site => "site",
            Self::Time => "time",
        }
    }
}

/// The relation of a rule to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Every condition fits.
    Fits,
    /// This condition does not.
    Not(Condition),
    /// The others fit; this one depends on what is not known: the user, or the address.
    Depends(Condition),
}

/// A rule, and how it relates to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place in the order.
    pub rule: usize,
    /// Its relation to the request.
    pub why: Why,
}

type Check = fn(&Rule, &Request<'_>) -> Fit;

/// Conditions that can depend on unknown facts come last.
const CHECKS: [(Condition, Check); 10] = [
    (Condition::Client, Rule::client),
    (Condition::Host, Rule::host),
    (Condition::Port, Rule::port),
    (Condition::Scheme, Rule::scheme),
    (Condition::Method, Rule::method),
    (Condition::Path, Rule::path),
    (Condition::Site, Rule::site),
    (Condition::Time, Rule::time),
    (Condition::User, Rule::user),
    (Condition::Address, Rule::address),
];

impl Rule {
    /// Its relation to a request.
    #[must_use]
    pub fn why(&self, request: &Request<'_>) -> Why {
        let mut depends = None;
        for (condition, check) in CHECKS {
            match check(self, request) {
                Fit::Yes => {}
                Fit::No => return Why::Not(condition),
                Fit::User | Fit::Address => depends = depends.or(Some(condition)),
            }
        }
        depends.map_or(Why::Fits, Why::Depends)
    }
}

impl RuleSet {
    /// Each rule up to the one that decides. Scans the rules one by one: this is the
    /// definition with which [`judge`](Self::judge) must agree.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (rule, why) in self.all().iter().map(|rule| rule.why(request)).enumerate() {
            steps.push(Step { rule, why });
            if !matches!(why, Why::Not(_)) {
                break;
            }
        }
        steps
    }

    /// As [`judge`](Self::judge), by scanning.
    #[must_use]
    pub fn judge_slowly(&self, request: &Request<'_>) -> Judgement {
        let steps = self.explain(request);
        match steps.last().map(|step| (step.rule, step.why)) {
            None | Some((_, Why::Not(_))) => Judgement::None,
            Some((rule, Why::Fits)) => Judgement::Rule(rule),
            Some((rule, Why::Depends(Condition::User))) => Judgement::NeedsUser(rule),
            Some((rule, Why::Depends(_))) => Judgement::NeedsAddress(rule),
        }
    }
}
