//! Figures: lines over an axis, bars or maps. Each figure is written as SVG and as PNG, and both look the
//! same.
//!
//! The font is a built-in subset of Roboto (Apache-2.0), so that a figure looks the same on every machine. A
//! figure is a plain value; [`Figure::save`] writes both files.

mod bars;
mod legend;
mod letters;
mod lines;
mod log_axis;
mod maps;
mod style;

pub(crate) use style::FACES;

use std::path::{Path, PathBuf};

use plotters::{coord::Shift, prelude::*};
use serde::{Deserialize, Serialize};

use crate::run::RunError;

/// One line of points, or one set of bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the series in the legend.
    pub name: String,
    /// The points. In a figure of bars there is one point for each label, and x is not used.
    pub points: Vec<(f64, f64)>,
    /// True for a series with which other series are compared. It is drawn dashed and grey.
    pub reference: bool,
    /// True if only small points are drawn, without a line between them.
    pub dots: bool,
    /// Lower and upper bound of each point; empty if the bounds are not known.
    #[serde(default)]
    pub errors: Vec<(f64, f64)>,
}

impl Series {
    /// Creates a series of points.
    #[must_use]
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            ..Self::default()
        }
    }

    /// Returns the series with an error bar from low to high at each point.
    #[must_use]
    pub fn with_errors(self, errors: Vec<(f64, f64)>) -> Self {
        Self { errors, ..self }
    }

    /// Returns the series as points without lines.
    #[must_use]
    pub fn as_dots(self) -> Self {
        Self { dots: true, ..self }
    }

    /// Returns the series as a reference for comparison.
    #[must_use]
    pub fn as_reference(self) -> Self {
        Self {
            reference: true,
            ..self
        }
    }
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic. Values that are not above 0 are left out.
    Log,
}

/// A map of shades, column by column, starting at the lower left corner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Name of the map, which is shown above the map.
    pub name: String,
    /// Number of cells in a column.
    pub rows: usize,
    /// Shades of the cells, from 0 (light) to 1 (dark).
    pub cells: Vec<f32>,
}

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Title of the figure.
    pub title: String,
    /// A line of explanation below the title.
    pub note: String,
    /// Name and unit of the horizontal axis.
    pub x: String,
    /// Name and unit of the vertical axis.
    pub y: String,
    /// Scale of the horizontal axis (lines only).
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// Labels of the bars; empty for a figure of lines.
    pub labels: Vec<String>,
    /// Series of the figure.
    pub series: Vec<Series>,
    /// True if the horizontal axis shows sizes in bytes.
    pub x_bytes: bool,
    /// The vertical axis reaches at least this value.
    pub y_most: Option<f64>,
    /// Maps side by side. If there are maps, the series are not drawn.
    pub maps: Vec<Map>,
}

/// Width and height in pixels.
const SIZE: (u32, u32) = (1120, 640);

impl Figure {
    /// Draws `STEM.svg` and `STEM.png`; returns both paths.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or there is nothing to draw.
    pub fn save(&self, stem: &Path) -> Result<[PathBuf; 2], RunError> {
        let (svg, png) = (stem.with_extension("svg"), stem.with_extension("png"));
        let output = |path: &Path, source| RunError::Output {
            path: path.to_owned(),
            source,
        };
        std::fs::write(&svg, self.svg()?).map_err(|source| output(&svg, source))?;
        style::register();
        let picture = letters::Letters(BitMapBackend::new(&png, SIZE));
        let root = picture.into_drawing_area();
        self.draw(&root)?;
        root.present()
            .map_err(|error| output(&png, std::io::Error::other(cause(&error.to_string()))))?;
        drop(root);
        Ok([svg, png])
    }

    /// The figure as SVG text.
    ///
    /// # Errors
    /// Returns an error if there is nothing to draw.
    pub fn svg(&self) -> Result<String, RunError> {
        style::register();
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            self.draw(&root)?;
            root.present().map_err(failed)?;
        }
        Ok(style::with_fallback(&text))
    }

    fn draw<B: DrawingBackend>(&self, root: &DrawingArea<B, Shift>) -> Result<(), RunError> {
        if self.maps.is_empty() && self.series.iter().all(|s| s.points.is_empty()) {
            return Err(RunError::Figure("there is nothing to draw".into()));
        }
        root.fill(&style::PAPER).map_err(failed)?;
        let (head, body) = root.split_vertically(if self.note.is_empty() { 56 } else { 84 });
        let at = |y| (32, y);
        head.draw(&Text::new(self.title.as_str(), at(20), style::title()))
            .map_err(failed)?;
        if !self.note.is_empty() {
            head.draw(&Text::new(self.note.as_str(), at(54), style::note()))
                .map_err(failed)?;
        }
        let legend = legend::Legend::new(self, &body)?;
        let (names, body) = body.split_vertically(legend.height());
        legend.draw(&names)?;
        if !self.maps.is_empty() {
            maps::draw(&self.maps, &body)
        } else if self.labels.is_empty() {
            lines::draw(self, &body)
        } else {
            bars::draw(self, &body)
        }
    }

    /// Minimum and maximum of the drawable values of an axis.
    fn range(&self, scale: Scale, value: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let values = self.series.iter().flat_map(|s| &s.points).map(value);
        let usable = values.filter(|v| v.is_finite() && (scale == Scale::Linear || *v > 0.0));
        let (low, high) = usable.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        if low <= high { (low, high) } else { (1.0, 2.0) }
    }
}

/// The operating system's part of an error text, without the words that the drawing libraries add.
fn cause(text: &str) -> String {
    let inner = text.rsplit_once("error: \"").map(|(_, inner)| inner);
    let inner = inner.and_then(|inner| inner.split('"').next());
    inner.unwrap_or(text).to_owned()
}

fn failed(error: impl std::fmt::Display) -> RunError {
    RunError::Figure(error.to_string())
}

/// A number as an axis shows it: the number of decimals depends on the value.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 1e9 => format!("{} G", trimmed(value / 1e9)),
        v if v >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        v if v >= 1e4 => format!("{} k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A size as an axis shows it.
fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let rounded = (value * 10.0).round() / 10.0;
    format!("{} {}", trimmed(rounded), UNITS[unit])
}

#[cfg(test)]
mod tests;
