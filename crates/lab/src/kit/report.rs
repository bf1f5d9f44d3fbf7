//! JSON reports of load tools. The functions of this module run a tool and read its report.

use std::process::Command;

use serde_json::Value;

/// Runs a tool that prints a JSON report, and returns the report. It returns the report even if the tool's
/// exit code is not 0, for example because answers were wrong or missing.
///
/// # Errors
/// An error if the tool does not start or prints no report.
pub fn report_of(command: &mut Command) -> Result<Value, String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{command:?}: {}: no report: {error}", output.status))
}

/// Returns a number in a report by its path; `None` if the report has no such number.
#[must_use]
pub fn number(report: &Value, path: &[&str]) -> Option<f64> {
    let mut at = report;
    for step in path {
        at = at.get(step)?;
    }
    at.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_whatever_the_exit_code_is() {
        let mut tool = Command::new("sh");
        tool.args(["-c", "echo '{\"hits\":{\"max\":1.5}}'; exit 1"]);
        let report = report_of(&mut tool).unwrap();
        assert_eq!(number(&report, &["hits", "max"]), Some(1.5));
        assert_eq!(number(&report, &["hits", "min"]), None);
        assert_eq!(number(&report, &["hits"]), None);
        let problem = report_of(&mut Command::new("true")).unwrap_err();
        assert!(problem.contains("no report"), "{problem}");
    }
}
