//! Figures of lines, with linear or logarithmic axes.

use plotters::{
    coord::{
        Shift,
        ranged1d::{AsRangedCoord, Ranged, ValueFormatter},
    },
    prelude::*,
};

use super::{Figure, Scale, Series, bytes, failed, log_axis::LogAxis, number, style};
use crate::run::RunError;

pub(super) fn draw<B: DrawingBackend>(
    figure: &Figure,
    area: &DrawingArea<B, Shift>,
) -> Result<(), RunError> {
    let (left, right) = figure.range(figure.x_scale, |p| p.0);
    let x = widened(figure.x_scale, left, right);
    let (low, high) = figure.range(figure.y_scale, |p| p.1);
    let high = figure.y_most.map_or(high, |most| most.max(high));
    let y = match figure.y_scale {
        Scale::Linear => 0f64.min(low)..if high > 0.0 { high * 1.06 } else { 1.0 },
        Scale::Log => low / 1.3..high * 1.3,
    };
    let log_y = |y| LogAxis::new(y, false);
    match (figure.x_scale, figure.y_scale) {
        (Scale::Linear, Scale::Linear) => chart(figure, area, x, y),
        (Scale::Linear, Scale::Log) => chart(figure, area, x, log_y(y)),
        (Scale::Log, Scale::Linear) => chart(figure, area, LogAxis::new(x, figure.x_bytes), y),
        (Scale::Log, Scale::Log) => chart(figure, area, LogAxis::new(x, figure.x_bytes), log_y(y)),
    }
}

fn widened(scale: Scale, low: f64, high: f64) -> std::ops::Range<f64> {
    match scale {
        _ if low < high && scale == Scale::Log => low / 1.1..high * 1.1,
        Scale::Log => low / 2.0..high * 2.0,
        Scale::Linear => {
            let margin = if low < high { (high - low) * 0.02 } else { 1.0 };
            low - margin..high + margin
        }
    }
}

fn chart<B, X, Y>(figure: &Figure, area: &DrawingArea<B, Shift>, x: X, y: Y) -> Result<(), RunError>
where
    B: DrawingBackend,
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
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
    chart
        .configure_mesh()
        .bold_line_style(style::GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(style::AXIS)
        .x_labels(9)
        .y_labels(8)
        .x_desc(figure.x.as_str())
        .y_desc(figure.y.as_str())
        .x_label_formatter(&|v| {
            if figure.x_bytes {
                bytes(*v)
            } else {
                number(*v)
            }
        })
        .y_label_formatter(&|v| number(*v))
        .label_style(style::label())
        .axis_desc_style(style::axis_name())
        .draw()
        .map_err(failed)?;
    lines(figure, &mut chart)
}

fn lines<'a, B, X, Y>(
    figure: &Figure,
    chart: &mut ChartContext<'a, B, Cartesian2d<X, Y>>,
) -> Result<(), RunError>
where
    B: DrawingBackend + 'a,
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let colours = style::colours(&figure.series);
    for (series, colour) in figure.series.iter().zip(colours) {
        let points = drawable(figure, series);
        if series.reference {
            let line = DashedLineSeries::new(points, 8, 6, colour.stroke_width(2));
            chart.draw_series(line).map_err(failed)?;
            continue;
        }
        if series.dots {
            let at = |p| Circle::new(p, 2, colour.filled());
            let dots = points.into_iter().map(at);
            chart.draw_series(dots).map_err(failed)?;
            continue;
        }
        // Points that cannot be drawn were removed from `points`. If any were removed, the error bars do not
        // match the remaining points and are left out.
        if points.len() == series.errors.len() {
            let bar = |((x, _), (low, high)): (&(f64, f64), &(f64, f64))| {
                PathElement::new([(*x, *low), (*x, *high)], colour.mix(0.55).stroke_width(7))
            };
            chart
                .draw_series(points.iter().zip(&series.errors).map(bar))
                .map_err(failed)?;
        }
        let dots = if points.len() <= 40 {
            points.clone()
        } else {
            Vec::new()
        };
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(3)))
            .map_err(failed)?;
        chart
            .draw_series(dots.into_iter().map(|p| Circle::new(p, 4, colour.filled())))
            .map_err(failed)?;
    }
    Ok(())
}

fn drawable(figure: &Figure, series: &Series) -> Vec<(f64, f64)> {
    let fits = |scale: Scale, v: f64| v.is_finite() && (scale == Scale::Linear || v > 0.0);
    let points = series.points.iter().copied();
    points
        .filter(|(x, y)| fits(figure.x_scale, *x) && fits(figure.y_scale, *y))
        .collect()
}
