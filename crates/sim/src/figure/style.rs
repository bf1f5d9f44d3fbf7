//! Colours and fonts of all figures.

use std::sync::Once;

use plotters::{
    prelude::*,
    style::{FontStyle, register_font},
};

use super::Series;

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
const INK: RGBColor = RGBColor(34, 40, 49);
const SOFT_INK: RGBColor = RGBColor(96, 106, 120);
pub(super) const GRID: RGBColor = RGBColor(230, 233, 238);
pub(super) const AXIS: RGBColor = RGBColor(150, 158, 170);
const REFERENCE: RGBColor = RGBColor(140, 146, 156);

/// Colours that colour-blind readers can distinguish too (Okabe and Ito, darkened a little for lines).
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

/// A colour for each series; all reference series have the same grey.
pub(super) fn colours(series: &[Series]) -> Vec<RGBColor> {
    let mut palette = PALETTE.iter().cycle();
    let mut colours = Vec::with_capacity(series.len());
    for s in series {
        let colour = if s.reference { None } else { palette.next() };
        colours.push(colour.copied().unwrap_or(REFERENCE));
    }
    colours
}

/// A shade between nearly white (0) and dark blue (1).
pub(super) fn shade(value: f64) -> RGBColor {
    let mix = |light: u8, dark: u8| {
        (f64::from(light) + value.clamp(0.0, 1.0) * (f64::from(dark) - f64::from(light))) as u8
    };
    RGBColor(mix(244, 12), mix(246, 52), mix(250, 96))
}

const FAMILY: &str = "Roboto";
/// Fonts for SVG files, in order of preference. A machine that lacks Roboto uses another font of similar
/// width.
const FALLBACK: &str = "Roboto, Helvetica, Arial, 'Liberation Sans', sans-serif";

/// Returns the SVG with fallback fonts.
pub(super) fn with_fallback(svg: &str) -> String {
    let family = |names| format!("font-family=\"{names}\"");
    svg.replace(&family(FAMILY), &family(FALLBACK))
}

/// The built-in fonts: the weight as style sheets name it, and the font file.
pub(crate) const FACES: [(&str, &[u8]); 2] = [
    ("normal", include_bytes!("../../assets/Roboto-Regular.ttf")),
    ("bold", include_bytes!("../../assets/Roboto-Medium.ttf")),
];

/// Registers the built-in fonts once.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // If a font is refused, drawing the first text returns an error.
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

pub(super) fn legend() -> TextStyle<'static> {
    text(17, &INK)
}
