//! The legend of a figure: the names of the series. They are in one or more rows above the chart, so that
//! they cover no data.

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{Figure, Series, failed, style};
use crate::run::RunError;

/// Height of a row of the legend. `SAMPLE` is the width of the coloured sample before a name, and `SPACE` is
/// the space after a name. All values are in pixels.
const ROW: i32 = 26;
const SAMPLE: i32 = 26;
const SPACE: i32 = 30;
/// Left edge of the chart.
const LEFT: i32 = 98;
const RIGHT: i32 = 1_084;

/// The names of the series and their places, in rows.
pub(super) struct Legend<'a> {
    places: Vec<(&'a Series, RGBColor, (i32, i32))>,
    bars: bool,
}

impl<'a> Legend<'a> {
    /// Computes the places of the names of a figure's series. There are no names if there is only one series.
    pub(super) fn new<B: DrawingBackend>(
        figure: &'a Figure,
        area: &DrawingArea<B, Shift>,
    ) -> Result<Self, RunError> {
        let (mut x, mut y) = (LEFT, ROW / 2);
        let mut places = Vec::new();
        let series = figure.series.iter().zip(style::colours(&figure.series));
        for (series, colour) in series.filter(|_| figure.series.len() > 1) {
            let text = area.estimate_text_size(&series.name, &style::legend());
            let width = text.map_err(failed)?.0 as i32 + SAMPLE + 8;
            if x > LEFT && x + width > RIGHT {
                (x, y) = (LEFT, y + ROW);
            }
            places.push((series, colour, (x, y)));
            x += width + SPACE;
        }
        let bars = !figure.labels.is_empty();
        Ok(Self { places, bars })
    }

    /// Height of the legend in pixels.
    pub(super) fn height(&self) -> u32 {
        let rows = self.places.last();
        rows.map_or(0, |(_, _, (_, y))| (y + ROW / 2 + 4) as u32)
    }

    pub(super) fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), RunError> {
        for (series, colour, (x, y)) in &self.places {
            let (x, y, end) = (*x, *y, *x + SAMPLE);
            let wide = colour.stroke_width(3);
            let path = |from, to, line| PathElement::new(vec![(from, y), (to, y)], line);
            if self.bars {
                let corners = [(x + 4, y - 7), (end - 2, y + 7)];
                area.draw(&Rectangle::new(corners, colour.filled()))
            } else if series.dots {
                area.draw(&Circle::new((x + SAMPLE / 2, y), 4, colour.filled()))
            } else if series.reference {
                let dashes = [(x, x + 7), (x + 10, x + 17), (x + 20, end)];
                let line = colour.stroke_width(2);
                let mut dashes = dashes.into_iter().map(|(from, to)| path(from, to, line));
                dashes.try_for_each(|dash| area.draw(&dash))
            } else {
                area.draw(&path(x, end, wide))
            }
            .map_err(failed)?;
            let name = style::legend().pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(series.name.as_str(), (end + 8, y), name))
                .map_err(failed)?;
        }
        Ok(())
    }
}
