//! Maps side by side. A map shows the use of a space as shades, column by column.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{Map, failed, style};
use crate::run::RunError;

/// Number of different shades. Adjacent cells of the same shade are drawn as one rectangle.
const SHADES: u8 = 8;
const EDGE: i32 = 32;
const HEAD: i32 = 34;

pub(super) fn draw<B: DrawingBackend>(
    maps: &[Map],
    area: &DrawingArea<B, Shift>,
) -> Result<(), RunError> {
    for (map, panel) in maps.iter().zip(area.split_evenly((1, maps.len()))) {
        one(map, &panel)?;
    }
    Ok(())
}

fn one<B: DrawingBackend>(map: &Map, panel: &DrawingArea<B, Shift>) -> Result<(), RunError> {
    let (width, height) = panel.dim_in_pixel();
    let (wide, high) = (width as i32 - 2 * EDGE, height as i32 - HEAD - EDGE);
    let rows = map.rows.max(1);
    let columns = map.cells.len().div_ceil(rows).max(1);
    let name = style::axis_name().pos(Pos::new(HPos::Left, VPos::Top));
    panel
        .draw(&Text::new(map.name.as_str(), (EDGE, 6), name))
        .map_err(failed)?;
    let x = |column: usize| EDGE + (wide as usize * column / columns) as i32;
    let y = |row: usize| HEAD + high - (high as usize * row / rows) as i32;
    for (column, cells) in map.cells.chunks(rows).enumerate() {
        let mut from = 0;
        for run in cells.chunk_by(|a, b| shade(*a) == shade(*b)) {
            let corners = [(x(column), y(from + run.len())), (x(column + 1), y(from))];
            let colour = style::shade(f64::from(shade(run[0])) / f64::from(SHADES - 1));
            panel
                .draw(&Rectangle::new(corners, colour.filled()))
                .map_err(failed)?;
            from += run.len();
        }
    }
    let frame = [(x(0), y(rows)), (x(columns), y(0))];
    panel
        .draw(&Rectangle::new(frame, style::AXIS.stroke_width(1)))
        .map_err(failed)
}

fn shade(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * f32::from(SHADES - 1)).round() as u8
}
