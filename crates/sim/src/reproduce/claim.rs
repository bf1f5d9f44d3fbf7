//! One published figure beside ours.

use serde::Serialize;

use crate::report::{Align, Table};

/// What kind of comparison a figure allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// A rule or arithmetic: must be equal.
    Exact,
    /// The generator or model was made to meet it: says nothing about the systems.
    Input,
    /// Within a band: the drive is modelled and the stream synthetic.
    Band,
    /// Only shape and order: the published plot has no axes, or the digits are lost.
    Shape,
}

impl Comparison {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Input => "input",
            Self::Band => "band",
            Self::Shape => "shape",
        }
    }
}

/// A published figure and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Where it was published: `table 2`.
    pub source: &'static str,
    /// What it is, with its unit.
    pub what: String,
    /// As published.
    pub published: f64,
    /// Ours.
    pub ours: f64,
    /// What the comparison is worth.
    pub comparison: Comparison,
}

impl Claim {
    pub(crate) fn new(
        source: &'static str,
        what: impl Into<String>,
        published: f64,
        ours: f64,
        comparison: Comparison,
    ) -> Self {
        Self {
            source,
            what: what.into(),
            published,
            ours,
            comparison,
        }
    }

    /// Ours over published; not a number where nothing was published.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.published == 0.0 {
            f64::NAN
        } else {
            self.ours / self.published
        }
    }
}

/// All claims as a table.
#[must_use]
pub fn claims_table(claims: &[Claim]) -> Table {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("figure", Align::Left),
        ("published", Align::Right),
        ("ours", Align::Right),
        ("ratio", Align::Right),
        ("comparison", Align::Left),
    ]);
    for claim in claims {
        table.row([
            claim.source.to_owned(),
            claim.what.clone(),
            digits(claim.published),
            digits(claim.ours),
            format!("{:.2}", claim.ratio()),
            claim.comparison.name().to_owned(),
        ]);
    }
    table
}

/// About four digits.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_claim() {
        let claims = [
            Claim::new("table 2", "STREAM, ops/s", 295.0, 290.5, Comparison::Band),
            Claim::new("x", "y", 0.0, 1.0, Comparison::Shape),
        ];
        let csv = claims_table(&claims).csv();
        assert!(
            csv.contains("table 2,\"STREAM, ops/s\",295.0,290.5,0.98,band"),
            "{csv}"
        );
        assert!(csv.contains("NaN"));
    }
}
