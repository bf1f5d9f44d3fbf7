//! STREAM-PACKETIZER: small writes are collected in a page.
//!
//! Rule (USITS'99 section 3): there is one buffer, which is one page long and aligned to a page. URL-writes
//! accumulate in it while each write is contiguous with the previous write. The buffer is written when it is
//! full, or when the next write is not contiguous. Data in the buffer is read from the buffer, not from the
//! file.

use super::{Area, LayoutError};

/// The buffer. It contains the bytes from `start` to `end` of one page.
#[derive(Clone, Debug)]
pub struct Packetizer {
    page: u64,
    start: u64,
    end: u64,
}

impl Packetizer {
    /// Creates an empty buffer of `page` bytes (at least 512).
    #[must_use]
    pub fn new(page: u64) -> Self {
        Self {
            page: page.max(super::BLOCK),
            start: 0,
            end: 0,
        }
    }

    /// Adds bytes. Calls `write` for each page, or part of a page, that must be written now.
    ///
    /// # Errors
    /// Returns the first error of `write`.
    pub fn add(
        &mut self,
        at: u64,
        len: u64,
        mut write: impl FnMut(u64, u64) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        if at != self.end {
            self.flush(&mut write)?;
        }
        let (mut at, end) = (at, at + len);
        while at < end {
            if self.is_empty() {
                self.start = at;
            }
            let page_end = (at / self.page + 1) * self.page;
            self.end = page_end.min(end);
            at = self.end;
            if at == page_end {
                self.flush(&mut write)?;
            }
        }
        Ok(())
    }

    /// Writes the contents of the buffer.
    ///
    /// # Errors
    /// Returns the error of `write`. The buffer is empty afterwards, also after an error.
    pub fn flush(
        &mut self,
        mut write: impl FnMut(u64, u64) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        let (start, end) = (self.start, self.end);
        self.start = end;
        if start == end {
            Ok(())
        } else {
            write(start, end - start)
        }
    }

    /// True if the buffer is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The part of a range that is not in the buffer. The buffer contains the bytes written last, so it
    /// contains either the end of the range or no byte of it.
    #[must_use]
    pub fn outside(&self, at: u64, len: u64) -> Option<(u64, u64)> {
        let end = at + len;
        if self.is_empty() || end <= self.start || self.end <= at {
            return Some((at, len));
        }
        (at < self.start).then(|| (at, self.start - at))
    }
}

/// Writes `range` (start and length) to `area`, through `packetizer` if there is one. Calls `counted` with
/// the length of each write to `area`.
///
/// # Errors
/// Returns the first error of the area.
pub fn write_through<A: Area>(
    packetizer: Option<&mut Packetizer>,
    area: &mut A,
    range: (u64, u64),
    mut counted: impl FnMut(u64),
) -> Result<(), LayoutError> {
    let mut write = |at, len| {
        counted(len);
        area.write(at, len)
    };
    match packetizer {
        Some(packetizer) => packetizer.add(range.0, range.1, write),
        None => write(range.0, range.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(steps: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let (mut packetizer, mut out) = (Packetizer::new(4096), Vec::new());
        for (at, len) in steps {
            let push = |at, len| {
                out.push((at, len));
                Ok(())
            };
            packetizer.add(*at, *len, push).unwrap();
        }
        packetizer
            .flush(|at, len| {
                out.push((at, len));
                Ok(())
            })
            .unwrap();
        out
    }

    #[test]
    fn contiguous_writes_leave_by_pages() {
        assert_eq!(
            collect(&[(0, 1024), (1024, 2048), (3072, 2048)]),
            [(0, 4096), (4096, 1024)]
        );
        assert_eq!(
            collect(&[(0, 10_240)]),
            [(0, 4096), (4096, 4096), (8192, 2048)]
        );
    }

    #[test]
    fn a_gap_writes_what_waits() {
        assert_eq!(
            collect(&[(512, 512), (2048, 512), (2560, 512)]),
            [(512, 512), (2048, 1024)]
        );
    }

    #[test]
    fn a_write_at_byte_0_of_an_empty_buffer_is_no_gap() {
        assert_eq!(collect(&[(0, 512)]), [(0, 512)]);
        assert_eq!(collect(&[(4096, 512), (0, 512)]), [(4096, 512), (0, 512)]);
    }

    #[test]
    fn what_waits_is_not_read_from_the_file() {
        let mut packetizer = Packetizer::new(4096);
        packetizer.add(3584, 1024, |_, _| Ok(())).unwrap();
        assert_eq!(packetizer.outside(3584, 1024), Some((3584, 512)));
        assert_eq!(packetizer.outside(4096, 512), None);
        assert_eq!(packetizer.outside(0, 512), Some((0, 512)));
        assert_eq!(packetizer.outside(8192, 512), Some((8192, 512)));
    }
}
