//! One part of the reproduction: claims, runs, figures and remarks.

use serde::{Deserialize, Serialize};

use super::Claim;
use crate::{
    figure::{Figure, Series},
    report::Table,
    run::RunResult,
};

/// A figure of a section.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// File name of the figure without extension; unique in a reproduction.
    pub stem: String,
    /// Hint for the reader, in one or two sentences.
    pub caption: String,
    /// The figure.
    pub figure: Figure,
}

/// Results of a part. They are stored on disk and read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Heading of the section; set by [`super::run_parts`].
    pub title: String,
    /// The publication and its measurements; set by [`super::run_parts`].
    pub about: String,
    /// Values that are compared with published values. A value for which nothing was published is only shown.
    pub claims: Vec<Claim>,
    /// Tables of our own results, each with a heading.
    #[serde(default)]
    pub tables: Vec<(String, Table)>,
    /// Figures in the order in which they are shown.
    pub figures: Vec<Drawn>,
    /// Paragraphs on the differences from published values, each with a short heading.
    pub notes: Vec<(String, String)>,
    /// The runs of layouts on which the results are based, if any.
    pub runs: Vec<RunResult>,
}

impl Section {
    /// Adds a figure.
    pub fn draw(&mut self, stem: &str, caption: &str, figure: Figure) {
        self.figures.push(Drawn {
            stem: stem.into(),
            caption: caption.into(),
            figure,
        });
    }

    /// Sets `note`, the heading of a note, as the reason of all missed claims of `source` whose name contains
    /// one of `parts`. Claims that are met or already have a reason are not changed.
    pub fn because(&mut self, source: &str, parts: &[&str], note: &str) {
        for claim in &mut self.claims {
            let named = parts.iter().any(|part| claim.what.contains(part));
            if claim.source == source && named && claim.is_missed() && claim.reason.is_none() {
                claim.reason = Some(note.to_owned());
            }
        }
    }

    /// Adds a paragraph on a difference.
    pub fn note(&mut self, heading: &str, text: impl Into<String>) {
        self.notes.push((heading.into(), text.into()));
    }
}

/// Creates a figure of lines or bars with its title, note and axis names.
pub(super) fn figure(title: &str, note: &str, x: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure {
        title: title.into(),
        note: note.into(),
        x: x.into(),
        y: y.into(),
        series,
        ..Figure::default()
    }
}
