//! Safety rules with names. A special build can break one rule, to check that a test then fails.
//!
//! [`rule!`](crate::rule) marks the place that enforces a rule. In a usual build, `rule!` expands to the
//! right expression only. With the feature `mutants`, which only `cargo xtask mutants` turns on, the
//! environment variable `FOXY_MUTANT` names the one rule that is broken in this run.

/// `rule!("name of the rule", right, wrong)` is `right`. In a build with the feature `mutants` it is `wrong`
/// if `FOXY_MUTANT` names that rule.
#[cfg(not(feature = "mutants"))]
#[macro_export]
macro_rules! rule {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {
        $right
    };
}

/// `rule!("name of the rule", right, wrong)` is `wrong` if `FOXY_MUTANT` names that rule, else `right`.
#[cfg(feature = "mutants")]
#[macro_export]
macro_rules! rule {
    ($name:literal, $right:expr, $wrong:expr $(,)?) => {{
        static MUTANT: $crate::Mutant = $crate::Mutant::new($name);
        if MUTANT.is_chosen() { $wrong } else { $right }
    }};
}

/// A rule that can be broken.
#[cfg(feature = "mutants")]
#[derive(Debug)]
pub struct Mutant {
    name: &'static str,
    chosen: std::sync::OnceLock<bool>,
}

#[cfg(feature = "mutants")]
impl Mutant {
    /// The rule of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            chosen: std::sync::OnceLock::new(),
        }
    }

    /// True if `FOXY_MUTANT` names this rule. The environment is read once.
    #[must_use]
    pub fn is_chosen(&self) -> bool {
        let chosen = || std::env::var("FOXY_MUTANT").is_ok_and(|name| name == self.name);
        *self.chosen.get_or_init(chosen)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_rule_that_is_not_chosen_holds() {
        assert_eq!(
            crate::rule!("base: no rule of this name is ever chosen", 1, 2),
            1
        );
    }
}
