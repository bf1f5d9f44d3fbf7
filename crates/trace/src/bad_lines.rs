//! Bad lines are counted. The first few are kept, with line number and reason.

/// Lines that could not be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadLines {
    /// Number of bad lines.
    pub count: u64,
    /// The first [`KEPT`] bad lines.
    pub first: Vec<BadLine>,
}

/// Number of bad lines that are kept for display.
pub const KEPT: usize = 5;

/// Maximum number of bytes of a bad line that are kept.
const SHOWN: usize = 120;

/// One bad line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: u64,
    /// The mistake in the line.
    pub reason: &'static str,
    /// The beginning of the line, in printable form.
    pub text: String,
}

impl BadLines {
    /// Counts one bad line.
    pub fn add(&mut self, line: u64, reason: &'static str, text: &[u8]) {
        self.count += 1;
        if self.first.len() < KEPT {
            let shown = &text[..text.len().min(SHOWN)];
            self.first.push(BadLine {
                line,
                reason,
                text: shown.escape_ascii().to_string(),
            });
        }
    }
}

impl std::fmt::Display for BadLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bad lines", self.count)?;
        for bad in &self.first {
            write!(f, "\n  line {}: {}: {}", bad.line, bad.reason, bad.text)?;
        }
        if self.count > self.first.len() as u64 {
            write!(
                f,
                "\n  ... and {} more",
                self.count - self.first.len() as u64
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_all_and_keeps_a_few() {
        let mut bad = BadLines::default();
        for line in 1..=9 {
            bad.add(line, "no size", &[0xff; 1000]);
        }
        assert_eq!((bad.count, bad.first.len()), (9, KEPT));
        let text = bad.to_string();
        assert!(text.contains("line 1: no size: \\xff") && text.ends_with("and 4 more"));
    }
}
