//! Repeats the published experiments. Shows the published value, our value, their ratio, and the kind of
//! comparison that is possible.
//!
//! A reproduction consists of parts ([`PARTS`]). The result of a part is a [`Section`] with claims, figures
//! and notes on the differences. No constant of the models was fitted to these results (decision 0010).

mod claim;
mod conditions;
mod html;
mod markdown;
mod part;
mod save;
mod section;
mod systems;
mod usits;
mod verdicts;

pub use claim::{BAND, Claim, Comparison, Verdict, claims_table};
pub use conditions::Conditions;
pub use part::{Part, Progress, fingerprint, run_parts};
pub use section::{Drawn, Section};

use serde::Serialize;

use crate::report::Table;

/// All parts, in the order in which they are run and shown.
pub const PARTS: &[Part] = &[
    usits::WORKLOAD,
    usits::FILES,
    usits::STREAM,
    usits::CALLS,
    usits::SECOND,
    usits::DISK,
    systems::HUMMINGBIRD,
    systems::SETS,
    systems::UCFS,
    systems::EQUAL,
    systems::CRASH,
];

/// Result of a reproduction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reproduction {
    /// Divisor of memory, disks and numbers of operations; 1 keeps the published sizes.
    pub scale: u64,
    /// Results of the parts.
    pub sections: Vec<Section>,
}

impl Reproduction {
    /// All claims.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> + Clone {
        self.sections.iter().flat_map(|s| &s.claims)
    }

    /// All results as text: the comparison, then tables of our own results.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n{}", self.table(), self.verdicts(), self.summary());
        for (heading, table) in self.sections.iter().flat_map(|s| &s.tables) {
            text += &format!("\n{heading}\n\n{table}");
        }
        text
    }

    /// The comparison as a table.
    #[must_use]
    pub fn table(&self) -> Table {
        claims_table(self.claims())
    }
}

#[cfg(test)]
mod tests;
