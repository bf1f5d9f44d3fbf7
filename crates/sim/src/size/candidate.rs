//! What is compared: a replacement policy alone, or Foxy as it is.

use std::{fmt, str::FromStr};

use crate::levels::PolicyKind;

/// A policy over so many bytes of objects, or `foxy`: memory before the production store, with
/// what records, segments and reinsertion cost and gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Foxy: the size is that of its store.
    Foxy,
    /// A policy: the size is that of the bodies alone.
    Policy(PolicyKind),
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foxy => f.write_str("foxy"),
            Self::Policy(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Candidate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "foxy" {
            return Ok(Self::Foxy);
        }
        text.parse()
            .map(Self::Policy)
            .map_err(|error| format!("{error}; or foxy"))
    }
}
