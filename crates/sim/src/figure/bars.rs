//! Figures of bars. For each label there is one bar of each series, with its value on top.

use plotters::{
    coord::{
        Shift,
        ranged1d::{AsRangedCoord, ValueFormatter},
    },
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{Figure, Scale, failed, log_axis::LogAxis, number, style};
use crate::run::RunError;

/// Share of a label's width that its bars fill.
const FILLED: f64 = 0.74;

pub(super) fn draw<B: DrawingBackend>(
    figure: &Figure,
    area: &DrawingArea<B, Shift>,
) -> Result<(), RunError> {
    let (low, high) = figure.range(figure.y_scale, |p| p.1);
    let x = -0.5..figure.labels.len() as f64 - 0.5;
    match figure.y_scale {
        Scale::Linear => chart(figure, area, x, 0.0..high * 1.12, 0.0),
        Scale::Log => {
            let base = low / 2.5;
            chart(figure, area, x, LogAxis::new(base..high * 2.0, false), base)
        }
    }
}

fn chart<B, Y>(
    figure: &Figure,
    area: &DrawingArea<B, Shift>,
    x: std::ops::Range<f64>,
    y: Y,
    base: f64,
) -> Result<(), RunError>
where
    B: DrawingBackend,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin_right(36)
        .margin_left(14)
        .margin_bottom(12)
        .x_label_area_size(58)
        .y_label_area_size(84)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    let name = |v: &f64| {
        let whole = (v - v.round()).abs() < 1e-6 && *v > -0.4;
        let label = figure
            .labels
            .get(v.round().max(0.0) as usize)
            .filter(|_| whole);
        label.cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(style::GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(style::AXIS)
        .x_labels(figure.labels.len() * 2 + 1)
        .y_labels(8)
        .x_desc(figure.x.as_str())
        .y_desc(figure.y.as_str())
        .x_label_formatter(&name)
        .y_label_formatter(&|v| number(*v))
        .label_style(style::label())
        .axis_desc_style(style::axis_name())
        .draw()
        .map_err(failed)?;
    let count = figure.series.len().max(1) as f64;
    let width = FILLED / count;
    let colours = style::colours(&figure.series);
    for (n, (series, colour)) in figure.series.iter().zip(colours).enumerate() {
        let left = |label: usize| label as f64 - FILLED / 2.0 + n as f64 * width;
        let there = series.points.iter().enumerate().filter(|(_, p)| p.1 > 0.0);
        let bars = there.clone().map(|(label, p)| {
            let corners = [
                (left(label) + width * 0.04, base),
                (left(label) + width * 0.96, p.1),
            ];
            Rectangle::new(corners, colour.filled())
        });
        chart.draw_series(bars).map_err(failed)?;
        let above = style::label().pos(Pos::new(HPos::Center, VPos::Bottom));
        let values = there.map(|(label, p)| {
            EmptyElement::at((left(label) + width / 2.0, p.1))
                + Text::new(value(p.1), (0, -3), above.clone())
        });
        chart.draw_series(values).map_err(failed)?;
    }
    Ok(())
}

fn value(v: f64) -> String {
    if v >= 100.0 {
        format!("{v:.0}")
    } else if v >= 10.0 {
        format!("{v:.1}")
    } else {
        format!("{v:.2}")
    }
}
