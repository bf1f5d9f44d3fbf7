//! Report of the measurements: aligned tables, JSON, figures. A row of a table contains one value with its
//! unit. It may also contain the value of a peer (another program) from the same run, and the goal.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use foxy_sim::figure::{Figure, Series};
use serde::Serialize;

/// Goal of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The value must not be above this limit.
    Most(f64),
    /// The value must not be below this limit.
    Least(f64),
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::Most(most) => value <= most,
            Self::Least(least) => value >= least,
        }
    }
}

/// One measured value.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the value.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// Another program that was measured in the same run, with its value in the same unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<(String, f64)>,
    /// Goal of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// True if the goal was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

/// The results of one measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Section {
    /// Short name, as on the command line.
    pub name: &'static str,
    /// Description of the measurement in one sentence.
    pub what: String,
    /// The measured values.
    pub rows: Vec<Row>,
    /// Descriptions of the results that are missing, with the reason or the way to get them.
    pub missing: Vec<String>,
    /// Curves of a drawing: name and points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Names of the curves' axes.
    #[serde(skip)]
    pub axes: (&'static str, &'static str),
}

impl Section {
    /// Creates an empty section.
    pub(super) fn new(name: &'static str, what: impl Into<String>) -> Self {
        Self {
            name,
            what: what.into(),
            ..Self::default()
        }
    }

    /// Adds a value. Later calls of `reference` and `goal` on the returned row apply to this value.
    pub(super) fn row(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) -> &mut Row {
        self.rows.push(Row {
            name: name.into(),
            value,
            unit,
            peer: None,
            goal: None,
            met: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Adds a reason why something could not be measured.
    pub(super) fn missing(&mut self, why: impl Into<String>) {
        self.missing.push(why.into());
    }

    /// The table as text.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("\n== {}: {}\n", self.name, self.what);
        let width = self.rows.iter().map(|r| r.name.chars().count()).max();
        let width = width.unwrap_or(0);
        for row in &self.rows {
            let value = number(row.value);
            let _ = write!(text, "  {:<width$}  {value:>9} {:<7}", row.name, row.unit);
            let peer = row.peer.as_ref();
            let peer = peer.map_or_else(String::new, |(n, v)| format!("{n} {}", number(*v)));
            let _ = write!(text, " {peer:<22}");
            let goal = match row.goal {
                Some(Goal::Most(most)) => format!("goal <= {}", number(most)),
                Some(Goal::Least(least)) => format!("goal >= {}", number(least)),
                None => String::new(),
            };
            let met = row.met.map_or("", |met| if met { "met" } else { "MISSED" });
            let _ = writeln!(text, " {goal:<16} {met}");
        }
        for why in &self.missing {
            let _ = writeln!(text, "  not measured: {why}");
        }
        text
    }

    /// The drawings of this section. One drawing shows its curves, and the other drawing shows its rows as
    /// percentages of the peers' values.
    fn figures(&self) -> Vec<(&'static str, Figure)> {
        let mut all = Vec::new();
        if !self.curves.is_empty() {
            let series = self.curves.iter();
            all.push((
                "curves",
                Figure {
                    title: format!("foxy bench store {}", self.name),
                    note: self.what.clone(),
                    x: self.axes.0.into(),
                    y: self.axes.1.into(),
                    series: series
                        .map(|(name, points)| Series::new(name.clone(), points.clone()))
                        .collect(),
                    ..Figure::default()
                },
            ));
        }
        let compared: Vec<_> = self.rows.iter().filter_map(share).collect();
        if !compared.is_empty() {
            all.push((
                "peers",
                Figure {
                    title: format!("foxy bench store {}: beside others, same run", self.name),
                    note: self.what.clone(),
                    y: format!("percent of {}", self.peer()),
                    labels: compared.iter().map(|(name, _)| name.clone()).collect(),
                    series: vec![Series::new(
                        "Foxy",
                        (0u32..)
                            .zip(&compared)
                            .map(|(n, (_, v))| (f64::from(n), *v))
                            .collect(),
                    )],
                    y_most: Some(100.0),
                    ..Figure::default()
                },
            ));
        }
        all
    }

    /// Name of the peer with which the values are compared. If there are several peers, it is a general name.
    fn peer(&self) -> &str {
        let mut peers = self.rows.iter().filter_map(|r| r.peer.as_ref());
        let first = peers.next().map_or("", |(name, _)| name.as_str());
        if peers.all(|(name, _)| name == first) {
            first
        } else {
            "the other's value"
        }
    }

    /// Draws this section into a folder.
    ///
    /// # Errors
    /// Returned if the folder or a file cannot be written.
    pub fn draw(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        for (kind, figure) in self.figures() {
            let stem = folder.join(format!("store-{}-{kind}", self.name));
            let drawn = figure
                .save(&stem)
                .map_err(|e| io::Error::other(e.to_string()))?;
            println!("  figure {}", drawn[0].display());
        }
        Ok(())
    }
}

/// Returns a table with the number of met goals of each section. For each missed goal, the table also
/// contains the measured value and the goal.
pub(super) fn summary(sections: &[Section]) -> String {
    let mut text = String::from("\n== goals\n");
    let width = sections.iter().map(|s| s.name.len()).max().unwrap_or(0);
    for section in sections {
        let aimed: Vec<&Row> = section.rows.iter().filter(|r| r.met.is_some()).collect();
        let met = aimed.iter().filter(|r| r.met == Some(true)).count();
        let _ = writeln!(
            text,
            "  {:<width$}  {met:>2} of {:>2} met{}",
            section.name,
            aimed.len(),
            match section.missing.len() {
                0 => String::new(),
                n => format!(", {n} not measured"),
            }
        );
        for row in aimed.iter().filter(|r| r.met == Some(false)) {
            let goal = match row.goal {
                Some(Goal::Most(most)) => format!("at most {}", number(most)),
                Some(Goal::Least(least)) => format!("at least {}", number(least)),
                None => continue,
            };
            let value = number(row.value);
            let _ = writeln!(
                text,
                "  {:<width$}     MISSED: {}: {value} {}, {goal} wanted",
                "", row.name, row.unit
            );
        }
    }
    text
}

/// A row's value as a percentage of its peer's value. Only rows with a goal and rows whose unit is a rate
/// or `%` have such a percentage.
fn share(row: &Row) -> Option<(String, f64)> {
    let (peer, other) = row.peer.as_ref()?;
    let rate = matches!(row.unit, "1/s" | "MB/s" | "%");
    let better = match row.goal {
        Some(Goal::Most(_)) => ", less is better",
        _ if rate => "",
        Some(Goal::Least(_)) => "",
        None => return None,
    };
    let name = row.name.replace(" under way", "");
    let name = name.split(", all threads").next().unwrap_or_default();
    let name = name.replace("opened and everything back", "recovery");
    let name = match peer.as_str() {
        // The axis already contains the name of this peer, so the row does not repeat it.
        "foyer" => format!("{name}{better}"),
        peer => format!("{name} / {peer}{better}"),
    };
    (*other > 0.0).then(|| (name, row.value / other * 100.0))
}

impl Row {
    /// Sets the value of a peer.
    pub(super) fn reference(&mut self, name: impl Into<String>, value: f64) -> &mut Self {
        self.peer = Some((name.into(), value));
        self
    }

    /// Sets the goal.
    pub(super) fn goal(&mut self, goal: Goal) -> &mut Self {
        self.met = Some(goal.is_met(self.value));
        self.goal = Some(goal);
        self
    }
}

/// Formats a number with about four digits, for any magnitude.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100_000.0 => format!("{:.0}k", value / 1000.0),
        v if v >= 100.0 || (v - v.round()).abs() < 1e-9 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.3}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_value_peer_goal_and_what_is_missing() {
        let mut section = Section::new("read", "hits");
        section
            .row("hits", 90_000.0, "1/s")
            .reference("fio", 100_000.0)
            .goal(Goal::Least(85_000.0));
        section.row("reads per hit", 1.2, "").goal(Goal::Most(1.1));
        section.missing("loop device: needs root");
        let text = section.table();
        for part in [
            "90000",
            "fio 100k",
            "goal >= 85000",
            "met",
            "MISSED",
            "needs root",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(section.figures().len(), 1);
        let goals = summary(&[section]);
        for part in [
            "1 of  2 met, 1 not measured",
            "reads per hit: 1.200",
            "at most 1.1",
        ] {
            assert!(goals.contains(part), "{part} in {goals}");
        }
        assert_eq!(number(0.000_01), "1.00e-5");
    }
}
