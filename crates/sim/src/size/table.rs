//! The prediction as tables, with a row for each size and columns for each policy.

use super::{Curve, Point, SizeReport};
use crate::report::{Align, Table, readable};

/// Quantity in a column, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Share of requests that hit. If the shares are estimated from a sample, a second column shows their
    /// bounds.
    Hits,
    /// Share of requested bytes that hit.
    Bytes,
    /// Bytes written to the disk, as a percentage of the requested bytes.
    Written,
}

impl Share {
    const ALL: [Self; 3] = [Self::Hits, Self::Bytes, Self::Written];

    const fn name(self) -> &'static str {
        match self {
            Self::Hits => "hits %",
            Self::Bytes => "bytes %",
            Self::Written => "written %",
        }
    }

    const fn of(self, point: &Point) -> f64 {
        match self {
            Self::Hits => point.hit_ratio,
            Self::Bytes => point.byte_hit_ratio,
            Self::Written => point.written,
        }
    }

    fn shows_bounds_of(self, curve: &Curve) -> bool {
        let unsure = |p: &Point| p.between.1 - p.between.0 >= 1e-4;
        self == Self::Hits && curve.points.iter().any(unsure)
    }
}

impl SizeReport {
    /// A table with all quantities in columns side by side, for programs.
    #[must_use]
    pub fn table(&self) -> Table {
        self.columns(&Share::ALL)
    }

    /// A table with only one quantity, which is narrow enough for a terminal.
    #[must_use]
    pub fn narrow(&self, share: Share) -> Table {
        self.columns(&[share])
    }

    fn columns(&self, shares: &[Share]) -> Table {
        let mut names = vec!["size".to_owned()];
        for curve in &self.curves {
            for share in shares {
                names.push(match shares.len() {
                    1 => curve.policy.clone(),
                    _ => format!("{} {}", curve.policy, share.name()),
                });
                if share.shows_bounds_of(curve) {
                    names.push("between".to_owned());
                }
            }
        }
        let columns: Vec<_> = names.iter().map(|n| (n.as_str(), Align::Right)).collect();
        let mut table = Table::new(&columns);
        let sizes = self.curves.first().map_or(&[][..], |c| c.points.as_slice());
        for (row, size) in sizes.iter().enumerate() {
            table.row(self.row(row, size.bytes, shares));
        }
        table
    }

    fn row(&self, row: usize, size: u64, shares: &[Share]) -> Vec<String> {
        let mut cells = vec![readable(size)];
        for (curve, point) in self
            .curves
            .iter()
            .filter_map(|c| Some((c, c.points.get(row)?)))
        {
            for share in shares {
                cells.push(format!("{:.2}", 100.0 * share.of(point)));
                if share.shows_bounds_of(curve) {
                    let (low, high) = point.between;
                    cells.push(format!("{:.1} to {:.1}", 100.0 * low, 100.0 * high));
                }
            }
        }
        cells
    }
}
