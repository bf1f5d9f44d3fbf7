//! Tests that figures are written and contain what they should show.

use super::*;

fn lines() -> Figure {
    Figure {
        title: "Completion time over utilisation".into(),
        note: "a million disk operations".into(),
        x: "utilisation, %".into(),
        y: "seconds".into(),
        series: vec![
            Series::new(
                "stream",
                (70..96)
                    .map(|u| (f64::from(u), 3000.0 + f64::from(u - 70).powi(2) * 6.0))
                    .collect(),
            ),
            Series::new("buddy", vec![(70.0, 6900.0), (95.0, 6900.0)]).as_reference(),
        ],
        ..Figure::default()
    }
}

#[test]
fn both_files_are_drawn_and_say_what_they_show() {
    let folder = tempfile::tempdir().unwrap();
    let [svg, png] = lines().save(&folder.path().join("figure")).unwrap();
    let text = std::fs::read_to_string(svg).unwrap();
    for word in [
        "Completion time",
        "a million disk",
        "utilisation, %",
        "seconds",
        "buddy",
    ] {
        assert!(text.contains(word), "{word}");
    }
    let png = std::fs::read(png).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
    // Width and height are in the first chunk of a PNG file.
    assert_eq!(png[16..24], [0, 0, 4, 96, 0, 0, 2, 128]);
}

#[test]
fn all_scales_and_bars() {
    for x_scale in [Scale::Linear, Scale::Log] {
        for y_scale in [Scale::Linear, Scale::Log] {
            let figure = Figure {
                x_scale,
                y_scale,
                x_bytes: true,
                ..lines()
            };
            assert!(figure.svg().unwrap().contains("polyline"));
        }
    }
    let bars = Figure {
        labels: vec!["one".into(), "two".into()],
        series: vec![Series::new("a", vec![(0.0, 14.0), (0.0, 495.0)])],
        y_scale: Scale::Log,
        ..Figure::default()
    };
    let svg = bars.svg().unwrap();
    assert!(svg.contains("two") && svg.contains("495"));
}

#[test]
fn odd_values_do_no_harm_and_nothing_is_an_error() {
    let series = Series::new("odd", vec![(0.0, f64::NAN), (1.0, 0.0), (1.0, -3.0)]);
    for scale in [Scale::Linear, Scale::Log] {
        let figure = Figure {
            series: vec![series.clone()],
            x_scale: scale,
            y_scale: scale,
            ..Figure::default()
        };
        assert!(figure.svg().is_ok());
    }
    assert!(Figure::default().svg().is_err());
}

#[test]
fn numbers_are_short() {
    assert_eq!(
        [0.0, 0.25, 7.0, 1234.0, 12_500.0, 2e6, 3.5e9].map(number),
        ["0", "0.25", "7", "1234", "12.5 k", "2 M", "3.5 G"]
    );
    assert_eq!(
        [512.0, 65_536.0, 3e9].map(bytes),
        ["512 B", "64 KiB", "2.8 GiB"]
    );
}
