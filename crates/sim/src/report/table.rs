//! A table of text cells: aligned for people, CSV for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// For words.
    #[default]
    Left,
    /// For numbers.
    Right,
}

/// Named columns and rows of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns
            .iter()
            .map(|(name, align)| ((*name).to_owned(), *align))
            .collect();
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Missing cells are empty; surplus cells are dropped.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Names of the columns and the alignment of their cells.
    #[must_use]
    pub fn columns(&self) -> &[(String, Align)] {
        &self.columns
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The table as comma-separated values with a line of names. Cells are quoted if necessary (RFC 4180).
    #[must_use]
    pub fn csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let line = |cells: &Vec<String>| {
            cells
                .iter()
                .map(|c| quoted(c))
                .collect::<Vec<_>>()
                .join(",")
                + "\n"
        };
        std::iter::once(&names)
            .chain(&self.rows)
            .map(line)
            .collect()
    }

    /// The table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|(name, _)| name.as_str()).collect());
        text += &line(
            self.columns
                .iter()
                .map(|(_, align)| if *align == Align::Left { "---" } else { "---:" })
                .collect(),
        );
        for row in &self.rows {
            text += &line(row.iter().map(String::as_str).collect());
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |n: usize, name: &str| {
            let cells = self.rows.iter().map(|row| row[n].chars().count());
            cells.chain([name.chars().count()]).max().unwrap_or(0)
        };
        self.columns
            .iter()
            .enumerate()
            .map(|(n, (name, _))| width(n, name))
            .collect()
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        for (number, row) in std::iter::once(&names).chain(&self.rows).enumerate() {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let gap = " ".repeat(width - cell.chars().count());
                line += &match align {
                    Align::Left => format!("{cell}{gap}  "),
                    Align::Right => format!("{gap}{cell}  "),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
            if number == 0 {
                let rules: Vec<_> = widths.iter().map(|w| "-".repeat(*w)).collect();
                writeln!(f, "{}", rules.join("  "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["stream", "7"]);
        table.row(["a,\"b\"", "1234"]);
        table.row(["short"]);
        table
    }

    #[test]
    fn columns_line_up() {
        let text = table().to_string();
        assert_eq!(
            text,
            "name       n\n------  ----\nstream     7\na,\"b\"   1234\nshort\n"
        );
    }

    #[test]
    fn csv_and_markdown() {
        assert_eq!(
            table().csv(),
            "name,n\nstream,7\n\"a,\"\"b\"\"\",1234\nshort,\n"
        );
        assert!(
            table()
                .markdown()
                .starts_with("| name | n |\n| --- | ---: |\n| stream | 7 |\n")
        );
    }
}
