//! Colours and letters of all figures.

use std::sync::Once;

use plotters::{
    coord::ranged1d::{Ranged, ValueFormatter},
    prelude::*,
    style::{FontStyle, register_font},
};

use super::failed;
use crate::run::RunError;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(34, 40, 49);
const SOFT_INK: RGBColor = RGBColor(96, 106, 120);
pub(super) const GRID: RGBColor = RGBColor(230, 233, 238);
pub(super) const AXIS: RGBColor = RGBColor(150, 158, 170);
pub(super) const REFERENCE: RGBColor = RGBColor(140, 146, 156);

/// Distinct for colour-blind readers too (Okabe and Ito, darkened a little for lines).
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 143, 105),
    RGBColor(190, 90, 150),
    RGBColor(204, 140, 0),
    RGBColor(60, 160, 215),
    RGBColor(110, 80, 60),
    RGBColor(60, 60, 60),
];

pub(super) const fn colour(number: usize) -> RGBColor {
    PALETTE[number % PALETTE.len()]
}

/// From nearly white (0) to a dark blue (1).
pub(super) fn shade(value: f64) -> RGBColor {
    let mix = |light: u8, dark: u8| {
        (f64::from(light) + value.clamp(0.0, 1.0) * (f64::from(dark) - f64::from(light))) as u8
    };
    RGBColor(mix(244, 12), mix(246, 52), mix(250, 96))
}

const FAMILY: &str = "Roboto";

/// The built-in letters: weight as style sheets name it, and file.
pub(crate) const FACES: [(&str, &[u8]); 2] = [
    ("normal", include_bytes!("../../assets/Roboto-Regular.ttf")),
    ("bold", include_bytes!("../../assets/Roboto-Medium.ttf")),
];

/// Makes the built-in letters known, once.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // A font that is refused shows as an error of the first text drawn.
        let _ = register_font(FAMILY, FontStyle::Normal, FACES[0].1);
        let _ = register_font(FAMILY, FontStyle::Bold, FACES[1].1);
    });
}

fn text(size: i32, colour: &'static RGBColor) -> TextStyle<'static> {
    TextStyle::from((FAMILY, size).into_font()).color(colour)
}

pub(super) fn title() -> TextStyle<'static> {
    TextStyle::from((FAMILY, 26, FontStyle::Bold).into_font()).color(&INK)
}

pub(super) fn note() -> TextStyle<'static> {
    text(17, &SOFT_INK)
}

pub(super) fn label() -> TextStyle<'static> {
    text(16, &SOFT_INK)
}

pub(super) fn axis_name() -> TextStyle<'static> {
    text(17, &INK)
}

fn legend() -> TextStyle<'static> {
    text(17, &INK)
}

/// The names of a chart's series, in a corner; `width` is the room for their samples.
pub(super) fn legend_box<'a, B, X, Y>(
    chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>,
    corner: SeriesLabelPosition,
    width: u32,
) -> Result<(), RunError>
where
    B: DrawingBackend + 'a,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_series_labels()
        .position(corner)
        .margin(14)
        .legend_area_size(width)
        .background_style(PAPER.mix(0.88))
        .border_style(GRID)
        .label_font(legend())
        .draw()
        .map_err(failed)
}
