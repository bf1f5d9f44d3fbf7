//! Claims. A claim compares a published value with the value of this simulator (our value).

use serde::{Deserialize, Serialize};

use crate::report::{Align, Table};

/// Kind of comparison that is possible for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// The value follows from a rule or from arithmetic, so the values must be equal.
    Exact,
    /// The generator or model was made to meet the value, so the value proves nothing about the systems.
    Input,
    /// The values must agree within a band, because the drive is modelled and the stream is synthetic.
    Band,
    /// Only shape and order are compared: the published plot has no axes, or digits of the published value
    /// are lost.
    Shape,
    /// Only the order of the systems and the approximate factors are compared.
    Order,
}

impl Comparison {
    /// Name of the comparison in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Input => "calibration input",
            Self::Band => "band",
            Self::Shape => "shape",
            Self::Order => "order only",
        }
    }
}

/// A published value and our value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Place in the publication, such as `table 2`.
    pub source: String,
    /// Name of the value, with its unit.
    pub what: String,
    /// Published value.
    pub published: f64,
    /// Our value.
    pub ours: f64,
    /// Kind of comparison that the value allows.
    pub comparison: Comparison,
    /// Minimum and maximum of the published range, if a range was published.
    #[serde(default)]
    pub range: Option<(f64, f64)>,
    /// Heading of the note that explains why the claim is missed; none for a claim that is met.
    #[serde(default)]
    pub reason: Option<String>,
}

impl Claim {
    /// Creates a claim.
    pub fn new(
        source: impl Into<String>,
        what: impl Into<String>,
        published: f64,
        ours: f64,
        comparison: Comparison,
    ) -> Self {
        Self {
            source: source.into(),
            what: what.into(),
            published,
            ours,
            comparison,
            range: None,
            reason: None,
        }
    }

    /// Returns the claim with a published range: any value in the range meets the claim.
    #[must_use]
    pub fn within(self, least: f64, most: f64) -> Self {
        Self {
            range: Some((least, most)),
            ..self
        }
    }

    /// Returns the claim for a value of which only the lower bound was published.
    #[must_use]
    pub fn at_least(self) -> Self {
        let least = self.published;
        self.within(least, f64::MAX)
    }

    /// Returns the claim for a value of which only the upper bound was published.
    #[must_use]
    pub fn at_most(self) -> Self {
        let most = self.published;
        self.within(0.0, most)
    }

    /// Our value divided by the published value; NaN if nothing was published.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.published == 0.0 {
            f64::NAN
        } else {
            self.ours / self.published
        }
    }

    /// The published value; a dash if nothing was published.
    #[must_use]
    pub fn published_text(&self) -> String {
        if self.published == 0.0 {
            "-".into()
        } else {
            digits(self.published)
        }
    }

    /// The ratio; a dash if there is none.
    #[must_use]
    pub fn ratio_text(&self) -> String {
        if self.ratio().is_finite() {
            format!("{:.2}", self.ratio())
        } else {
            "-".into()
        }
    }

    /// Result of the comparison.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.published == 0.0 {
            return Verdict::Shown;
        }
        let in_range = |(least, most)| (least..=most).contains(&self.ours);
        if self.range.is_some_and(in_range) {
            return Verdict::Met;
        }
        let off = (self.nearest_ratio() - 1.0).abs();
        let within = |most: f64| {
            if off <= most {
                Verdict::Met
            } else {
                Verdict::Off
            }
        };
        match self.comparison {
            _ if off.is_nan() => Verdict::Off,
            Comparison::Exact => within(1e-9),
            Comparison::Input => within(0.1),
            Comparison::Band | Comparison::Shape | Comparison::Order => within(BAND),
        }
    }

    /// Our value divided by the published value, or by the nearer bound of the range.
    fn nearest_ratio(&self) -> f64 {
        match self.range {
            Some((least, _)) if self.ours < least => self.ours / least,
            Some((_, most)) if self.ours > most => self.ours / most,
            Some(_) => 1.0,
            None => self.ratio(),
        }
    }

    /// True if the claim is missed.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.verdict() == Verdict::Off
    }
}

/// Permitted relative difference between our value and the published value for [`Comparison::Band`],
/// [`Comparison::Shape`] and [`Comparison::Order`].
pub const BAND: f64 = 0.25;

/// Result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The claim is met: our value is in the published range, or near enough to that range or to the
    /// published value. The permitted relative difference is 0 for [`Comparison::Exact`], a tenth for
    /// [`Comparison::Input`], and [`BAND`] for the other comparisons.
    Met,
    /// The claim is missed.
    Off,
    /// Nothing was published, so the value is only shown.
    Shown,
}

impl Verdict {
    /// Name of the verdict in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Off => "missed",
            Self::Shown => "-",
        }
    }
}

/// All claims as a table.
#[must_use]
pub fn claims_table<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Table {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("value", Align::Left),
        ("published", Align::Right),
        ("ours", Align::Right),
        ("ratio", Align::Right),
        ("comparison", Align::Left),
        ("verdict", Align::Left),
    ]);
    for claim in claims {
        table.row([
            claim.source.clone(),
            claim.what.clone(),
            claim.published_text(),
            digits(claim.ours),
            claim.ratio_text(),
            claim.comparison.name().to_owned(),
            claim.verdict().name().to_owned(),
        ]);
    }
    table
}

/// A number with about four digits.
pub(crate) fn digits(value: f64) -> String {
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
            csv.contains("table 2,\"STREAM, ops/s\",295.0,290.5,0.98,band,met"),
            "{csv}"
        );
        assert!(csv.contains("x,y,-,1.00,-,shape,-") && !csv.contains("NaN"));
        let verdict = |ours, comparison| Claim::new("", "", 100.0, ours, comparison).verdict();
        assert_eq!(verdict(124.0, Comparison::Band), Verdict::Met);
        assert_eq!(verdict(74.0, Comparison::Band), Verdict::Off);
        assert_eq!(verdict(111.0, Comparison::Input), Verdict::Off);
        assert_eq!(verdict(100.5, Comparison::Exact), Verdict::Off);
        assert_eq!(verdict(80.0, Comparison::Shape), Verdict::Met);
        assert_eq!(verdict(9.0, Comparison::Order), Verdict::Off);
        let nothing = Claim::new("", "", 0.0, 1.0, Comparison::Band);
        assert_eq!(nothing.verdict(), Verdict::Shown);
        let ranged = |ours| {
            let claim = Claim::new("", "", 12.0, ours, Comparison::Order).within(8.0, 19.0);
            claim.verdict()
        };
        assert_eq!(
            [5.9, 6.1, 12.0, 19.0, 23.7, 23.8].map(ranged),
            [
                Verdict::Off,
                Verdict::Met,
                Verdict::Met,
                Verdict::Met,
                Verdict::Met,
                Verdict::Off
            ]
        );
        let bound = |ours| Claim::new("", "", 20.0, ours, Comparison::Input);
        assert_eq!(bound(90.0).at_least().verdict(), Verdict::Met);
        assert_eq!(bound(17.0).at_least().verdict(), Verdict::Off);
        assert_eq!(bound(1.0).at_most().verdict(), Verdict::Met);
    }
}
