//! Draws the results that the store's example `ratio` printed. The vertical axis is the difference between
//! the store's hit ratio and the hit ratio of an exact LRU of the same size. The horizontal axis is the write
//! amplification.
//!
//! `cargo run --release -p foxy-store --example ratio > ratio.txt`, then
//! `cargo run --release -p foxy-bench --example curve -- ratio.txt docs/figures/store-ratio`

use std::path::Path;

use foxy_sim::figure::{Figure, Series};

/// Returns the number that follows `word` in `line`.
fn number(line: &str, word: &str) -> Option<f64> {
    let rest = line.split_once(word)?.1;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns one curve for each stream of requests that `ratio` ran.
fn curves(text: &str) -> Vec<Series> {
    let (mut all, mut lru): (Vec<Series>, f64) = (Vec::new(), 0.0);
    for line in text.lines() {
        if let Some((name, _)) = line.split_once(": ").filter(|_| line.contains("requests,")) {
            all.push(Series::new(name.to_uppercase(), Vec::new()));
        }
        let Some(hits) = number(line, "hits ") else {
            continue;
        };
        match (number(line, "  WA "), all.last_mut()) {
            (None, _) if line.contains("exact LRU  hits") => lru = hits,
            (Some(amplification), Some(series)) => {
                series.points.push((amplification, hits - lru));
            }
            _ => {}
        }
    }
    let ends = all.iter().flat_map(|s| &s.points).map(|p| p.0);
    let (low, high) = ends.fold((1.0, 1.0), |(l, h): (f64, f64), x| (l.min(x), h.max(x)));
    all.push(Series::new("exact LRU", vec![(low, 0.0), (high, 0.0)]).as_reference());
    all
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(text), Some(stem)) = (args.next(), args.next()) else {
        return Err(
            "wanted: what `ratio` printed, and the figure's name without its ending".into(),
        );
    };
    let figure = Figure {
        title: "Hits beside an exact LRU of the same bytes".into(),
        note: "128 segments, a tenth of the distinct bytes; each point is a budget for writing again: 0 to 60 %"
            .into(),
        x: "write amplification".into(),
        y: "points of hit ratio beside the exact LRU".into(),
        series: curves(&std::fs::read_to_string(text)?),
        y_most: Some(1.0),
        ..Figure::default()
    };
    for path in figure.save(Path::new(&stem))? {
        println!("{}", path.display());
    }
    Ok(())
}
