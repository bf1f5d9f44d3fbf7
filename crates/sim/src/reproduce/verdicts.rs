//! All verdicts (met or missed) in one table, with a row for each published table or figure.

use super::{Claim, Comparison, Reproduction, Section, Verdict};
use crate::report::{Align, Table};

impl Reproduction {
    /// For one kind of comparison: the number of values that are met, and the number of values that are met
    /// or missed.
    #[must_use]
    pub fn met(&self, comparison: Comparison) -> (usize, usize) {
        let judged = self
            .claims()
            .filter(|c| c.comparison == comparison && c.verdict() != Verdict::Shown);
        let met = judged.clone().filter(|c| c.verdict() == Verdict::Met);
        (met.count(), judged.count())
    }

    /// A summary of all values in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let kinds = [
            Comparison::Exact,
            Comparison::Band,
            Comparison::Shape,
            Comparison::Order,
            Comparison::Input,
        ];
        let said = kinds.into_iter().filter_map(|kind| {
            let (met, all) = self.met(kind);
            (all > 0).then(|| format!("{} {met} of {all}", kind.name()))
        });
        format!("Met: {}.", said.collect::<Vec<_>>().join("; "))
    }

    /// The verdicts. For each published table or figure, the row contains the number of values that are met,
    /// and the reasons for the missed values.
    #[must_use]
    pub fn verdicts(&self) -> Table {
        let mut table = Table::new(&[
            ("published in", Align::Left),
            ("met", Align::Right),
            (
                "missed (ours over published), and the note that tells why",
                Align::Left,
            ),
        ]);
        for section in &self.sections {
            for source in sources(section) {
                let judged = of(section, source).filter(|c| c.verdict() != Verdict::Shown);
                let met = judged.clone().filter(|c| c.verdict() == Verdict::Met);
                let all = judged.clone().count();
                if all > 0 {
                    let count = format!("{} of {all}", met.count());
                    table.row([source.to_owned(), count, misses(section, source)]);
                }
            }
        }
        table
    }
}

/// Sources of the claims (published tables and figures), in the order of their first claim.
fn sources(section: &Section) -> Vec<&str> {
    let mut sources: Vec<&str> = Vec::new();
    for claim in &section.claims {
        if !sources.contains(&claim.source.as_str()) {
            sources.push(&claim.source);
        }
    }
    sources
}

fn of<'a>(section: &'a Section, source: &'a str) -> impl Iterator<Item = &'a Claim> + Clone {
    section.claims.iter().filter(move |c| c.source == source)
}

/// The missed values with their reasons, as text.
fn misses(section: &Section, source: &str) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for claim in of(section, source).filter(|c| c.is_missed()) {
        let reason = claim.reason.as_deref().unwrap_or("not explained");
        let name = claim.what.split(" (").next().unwrap_or_default();
        let what = format!("{name} {}", claim.ratio_text());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, all)) => all.push(what),
            None => reasons.push((reason, vec![what])),
        }
    }
    let said = reasons
        .iter()
        .map(|(reason, all)| format!("{}: *{reason}*", all.join("; ")));
    said.collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_what_is_met_and_names_the_reason_of_the_rest() {
        let claim = |what: &str, ours| Claim::new("table 9", what, 100.0, ours, Comparison::Band);
        let mut section = Section {
            claims: vec![
                claim("A, ops/s (derived)", 110.0),
                claim("B, ops/s (derived)", 150.0),
                claim("C", 20.0),
                Claim::new("table 9", "D", 0.0, 1.0, Comparison::Band),
            ],
            ..Section::default()
        };
        section.because("table 9", &["A,", "B,"], "Why B is fast");
        assert_eq!(section.claims[0].reason, None);
        let all = Reproduction {
            scale: 1,
            sections: vec![section],
        };
        assert_eq!(
            all.verdicts().rows(),
            [[
                "table 9",
                "1 of 3",
                "B, ops/s 1.50: *Why B is fast*. C 0.20: *not explained*"
            ]]
        );
        assert_eq!(all.summary(), "Met: band 1 of 3.");
    }
}
