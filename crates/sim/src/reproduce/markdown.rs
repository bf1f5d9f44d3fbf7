//! Writes the results of a reproduction as a page of the documentation.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use super::{Reproduction, Section, claims_table, html::is_heavy, save::output};
use crate::run::RunError;

const TITLE: &str = "# The papers, done again\n\n";

const HEAD: &str = "
This page is written by `foxy sim reproduce --write-docs`; its figures are in `reproduction/`.
All times are simulated: the same command gives the same results on every machine. Decisions
[10](decisions/0010-frozen-model-constants.md), 11 and
[130](decisions/0130-calls-that-write-shared-files.md) to 134 explain how the models were made. No constant
was fitted to a result. Two choices were made when results were already known; their decisions say so (130
and [133](decisions/0133-isp-stream.md)).

There are five kinds of comparison:

- *Exact*: the value follows from a rule or from arithmetic, so ours must be equal to the published value.
- *Calibration input*: the generator or the model was made to meet the published value. The value is met if
  ours differs from it by at most a tenth.
- *Band*: our value comes from a modelled drive with a generated stream.
- *Shape*: the published value comes from a plot without axes, or some of its digits are lost.
- *Order only*: only the order of the systems and their approximate factors are compared.

Values of the last three kinds are met if ours differ by at most a quarter from the published value or range.

Figures 18 to 20 of the Foxy paper are not simulated but measured, with the real proxies; they are
[beside the other results of Foxy](performance.md#the-figures-18-to-20-of-the-foxy-paper).
";

impl Reproduction {
    /// Writes `reproduction.md` and its figures into a documentation folder. Returns the paths of the files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or a figure cannot be drawn.
    pub fn write_docs(&self, docs: &Path) -> Result<Vec<PathBuf>, RunError> {
        let folder = docs.join("reproduction");
        std::fs::create_dir_all(&folder).map_err(|source| output(&folder, source))?;
        let mut text = format!(
            "{TITLE}{}\n\n{}{HEAD}",
            self.summary(),
            self.verdicts().markdown()
        );
        let mut files = Vec::new();
        for section in &self.sections {
            text += &section_text(section);
            for drawn in &section.figures {
                let (kind, other) = if is_heavy(drawn) {
                    ("png", "svg")
                } else {
                    ("svg", "png")
                };
                let stem = folder.join(&drawn.stem);
                drawn.figure.save(&stem)?;
                let unused = stem.with_extension(other);
                std::fs::remove_file(&unused).map_err(|source| output(&unused, source))?;
                files.push(stem.with_extension(kind));
                let _ = writeln!(
                    text,
                    "\n![{}](reproduction/{}.{kind})\n\n{}",
                    drawn.figure.title, drawn.stem, drawn.caption
                );
            }
        }
        let path = docs.join("reproduction.md");
        std::fs::write(&path, text).map_err(|source| output(&path, source))?;
        files.push(path);
        Ok(files)
    }
}

fn section_text(section: &Section) -> String {
    let mut text = format!("\n## {}\n{}\n", section.title, wrapped(&section.about));
    if !section.claims.is_empty() {
        let _ = write!(text, "\n{}", claims_table(&section.claims).markdown());
    }
    for (heading, table) in &section.tables {
        let _ = write!(text, "\n{heading}:\n\n{}", table.markdown());
    }
    if !section.notes.is_empty() {
        text += "\n### Differences\n";
    }
    for (heading, note) in &section.notes {
        let _ = writeln!(text, "\n{}", wrapped(&format!("**{heading}.** {note}")));
    }
    text
}

/// Wraps a text into lines of at most 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.len() + word.len() < 100 => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
