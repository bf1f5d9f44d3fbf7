//! The report of one measurement. The measurement is one row in the complete report.

use std::fmt;

/// At most this number of faults are printed for a row.
const TOLD: usize = 5;

/// Results of a row.
#[derive(Clone, Debug)]
pub(super) struct Report {
    name: &'static str,
    lines: Vec<String>,
    faults: Vec<String>,
}

impl Report {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            lines: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Adds a line with results.
    pub(super) fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Adds a fault.
    pub(super) fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    pub(super) fn expect(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(text());
        }
    }

    /// True if there was no fault.
    pub(super) const fn is_good(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{:<12}{line}", self.name)?;
        }
        for fault in self.faults.iter().take(TOLD) {
            writeln!(f, "{:<12}BROKEN {fault}", self.name)?;
        }
        if self.faults.len() > TOLD {
            writeln!(f, "{:<12}BROKEN {} in all", self.name, self.faults.len())?;
        }
        Ok(())
    }
}
