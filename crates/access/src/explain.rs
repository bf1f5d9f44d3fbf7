//! Explains a judgement (the decision about a request). The explanation contains the rules up to the rule
//! that decides. For each rule before the deciding rule, the explanation names a condition that does not fit.

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
    /// The scheme of the request.
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
    /// Returns the name of the condition in rules.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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
    /// All conditions fit.
    Fits,
    /// This condition does not fit.
    Not(Condition),
    /// All other conditions fit. This condition depends on an unknown fact: the user, or the address.
    Depends(Condition),
}

/// A rule, and its relation to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the rule in the order of the rules.
    pub rule: usize,
    /// The relation of the rule to the request.
    pub why: Why,
}

type Check = fn(&Rule, &Request<'_>) -> Fit;

/// The checks of all conditions. Conditions that can depend on unknown facts come last.
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
    /// Returns the relation of this rule to a request.
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
    /// Returns the rules up to the rule that decides. This function checks the rules one by one, and so
    /// defines the correct judgement: [`judge`](Self::judge) must have the same result.
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

    /// Returns the result of [`judge`](Self::judge), computed by scanning.
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
