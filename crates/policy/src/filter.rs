//! The admission rules that are chosen by name, in the store's configuration and in the simulator.
//!
//! To add a rule, add a variant to [`AdmissionRule`] with its name and its explanation, and a variant
//! to [`Filter`] that decides. No other code lists the rules.

use std::{fmt, str::FromStr};

use foxy_base::MonoTime;

use crate::cache::Key;
use crate::{Admission, Admit, Frequency, SecondUse};

/// A rule that decides which objects may enter a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AdmissionRule {
    /// Admits objects that were requested before, as far as the rule remembers.
    #[default]
    SecondUse,
    /// Admits objects that were requested three times lately.
    Frequency,
    /// Admits every object.
    Anything,
}

impl AdmissionRule {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::SecondUse, Self::Frequency, Self::Anything];

    /// The names of all rules, in the order of [`Self::ALL`].
    pub const NAMES: &'static [&'static str] = &["second-use", "frequency", "anything"];

    /// Explanation for people who choose this rule. The rule decides about objects while the write budget is
    /// exhausted.
    pub const ABOUT: &'static str = "Objects that are still written when the budget is spent. A quarter of the budget is kept for them. `second-use`: objects that were requested before. `frequency`: objects that were requested three times lately. `anything`: all objects, until this quarter is spent too.";

    /// The rule's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl fmt::Display for AdmissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AdmissionRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|rule| rule.name() == text);
        found.ok_or_else(|| {
            let names = Self::NAMES.join(", ");
            format!("there is no admission rule `{text}`; there are {names}")
        })
    }
}

/// Memory for use counters in bytes if the caller sets no limit. This is enough for a million keys. Only
/// simulations of access logs set no limit, and their samples usually have fewer requests than that.
const PLENTY: u64 = 4 << 20;

/// An [`AdmissionRule`] with its state.
#[derive(Debug)]
pub enum Filter<K> {
    /// See [`AdmissionRule::SecondUse`].
    SecondUse(SecondUse<K>),
    /// See [`AdmissionRule::Frequency`].
    Frequency(Frequency),
    /// See [`AdmissionRule::Anything`].
    Anything,
}

impl<K: Key> Filter<K> {
    /// Creates a filter that remembers uses in `memory` bytes. With `None`, it remembers all keys (second
    /// use), or has counters for a million keys (frequency).
    #[must_use]
    pub fn new(rule: AdmissionRule, memory: Option<u64>) -> Self {
        match rule {
            AdmissionRule::SecondUse => {
                let all = || SecondUse::new(usize::MAX);
                Self::SecondUse(memory.map_or_else(all, SecondUse::within))
            }
            AdmissionRule::Frequency => {
                Self::Frequency(Frequency::often_within(memory.unwrap_or(PLENTY)))
            }
            AdmissionRule::Anything => Self::Anything,
        }
    }

    /// Counts a use of `key`, but decides nothing. Callers use this when a stored object is replaced or
    /// deleted. The next version of the object then counts as used before.
    pub fn used(&mut self, key: K) {
        match self {
            Self::SecondUse(rule) => rule.used(key),
            Self::Frequency(rule) => rule.used(key),
            Self::Anything => {}
        }
    }
}

impl<K: Key> Admission<K> for Filter<K> {
    fn admit(&mut self, key: K, size: u64, now: MonoTime) -> Admit {
        match self {
            Self::SecondUse(rule) => rule.admit(key, size, now),
            Self::Frequency(rule) => rule.admit(key, size, now),
            Self::Anything => Admit::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_each_is_explained() {
        assert_eq!(AdmissionRule::ALL.len(), AdmissionRule::NAMES.len());
        for rule in AdmissionRule::ALL {
            assert_eq!(rule.to_string().parse(), Ok(rule));
            assert!(
                AdmissionRule::ABOUT.contains(&format!("`{rule}`: ")),
                "{rule}"
            );
        }
        let error = "third-use".parse::<AdmissionRule>().unwrap_err();
        assert!(
            error.contains("third-use") && error.contains("second-use, frequency"),
            "{error}"
        );
    }

    #[test]
    fn each_rule_lets_in_what_it_says() {
        let asked = |rule, memory| {
            let mut filter = Filter::new(rule, memory);
            let mut ask = |key: u64| filter.admit(key, 1, MonoTime(0)).is_yes();
            let times = [ask(1), ask(1), ask(1)];
            filter.used(2);
            (times, filter.admit(2, 1, MonoTime(0)).is_yes())
        };
        for memory in [None, Some(1 << 20)] {
            assert_eq!(
                asked(AdmissionRule::SecondUse, memory),
                ([false, true, false], true)
            );
            assert_eq!(
                asked(AdmissionRule::Frequency, memory),
                ([false, false, true], false)
            );
            assert_eq!(asked(AdmissionRule::Anything, memory), ([true; 3], true));
        }
    }
}
