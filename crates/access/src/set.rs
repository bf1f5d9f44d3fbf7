//! The rules in their order, and the judgement about a request.

use std::net::IpAddr;

use crate::index::Index;
use crate::{ApplicableRules, Principal, Request, Requester, Rule};

/// Largest number of rules in a set.
pub const RULES_MAX: usize = 4096;

/// The judgement about a request. The numbers are positions in the order of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No rule fits.
    None,
    /// This rule decides.
    Rule(usize),
    /// This rule decides if it applies to the user, who is unknown.
    NeedsUser(usize),
    /// This rule decides if it applies to the address, which is unknown.
    NeedsAddress(usize),
}

/// The compiled rules.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    index: Index,
}

impl RuleSet {
    /// Returns the set of these rules. Rules beyond [`RULES_MAX`] are left out.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.truncate(RULES_MAX);
        let index = Index::new(&rules);
        Self { rules, index }
    }

    /// Returns all rules of the set.
    #[must_use]
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the principal for a user who is logged in.
    #[must_use]
    pub fn principal(&self, name: &str, groups: &[&str]) -> Principal {
        let mut principal = Principal {
            name: name.into(),
            groups: groups.iter().map(|group| (*group).into()).collect(),
            rules: Box::default(),
            token: 0,
        };
        let mut bits = self.index.no_rules();
        for (i, rule) in self.rules.iter().enumerate() {
            if !rule.names_users() || rule.is_for(&principal) {
                bits[i / crate::index::BITS].set(i % crate::index::BITS);
            }
        }
        principal.rules = bits;
        principal
    }

    /// Returns the rules that apply to a requester. [`judge`](Self::judge) starts from them.
    #[must_use]
    pub fn applicable(&self, who: &Requester<'_>) -> ApplicableRules {
        self.index.applicable(who)
    }

    /// Judges a request. `applicable` is the result of [`applicable`](Self::applicable) for the requester of
    /// this request.
    #[must_use]
    pub fn judge(&self, applicable: &mut ApplicableRules, request: &Request<'_>) -> Judgement {
        self.index.judge(&self.rules, applicable, request)
    }

    /// Returns true if some rules apply only to some clients, users or times, and a rule names this address.
    /// In this case, only some clients may be permitted to get answers from this address.
    #[must_use]
    pub fn keeps_apart(&self, address: IpAddr) -> bool {
        self.index.keeps_apart(address)
    }

    /// Returns true if a rule has a condition on addresses.
    #[must_use]
    pub fn names_addresses(&self) -> bool {
        self.rules.iter().any(|rule| !rule.addresses.is_empty())
    }

    /// Returns true if a rule has a condition on paths.
    #[must_use]
    pub fn names_paths(&self) -> bool {
        self.rules.iter().any(|rule| !rule.paths.is_empty())
    }

    /// Returns true if a rule has a condition on times.
    #[must_use]
    pub fn names_times(&self) -> bool {
        self.rules.iter().any(|rule| !rule.times.is_empty())
    }

    /// Returns true if a rule has a condition on users.
    #[must_use]
    pub fn names_users(&self) -> bool {
        self.rules.iter().any(Rule::names_users)
    }
}
