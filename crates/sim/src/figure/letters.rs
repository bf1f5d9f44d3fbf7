//! Draws the letters of pictures, each at the position that the font defines.
//!
//! The drawing library puts the left edge of every letter's outline at a whole pixel, so that a `1` touches
//! the letter before it. In this module, a letter keeps the space before its outline (the side bearing) and a
//! position in fractions of a pixel.

use ab_glyph::{Font, FontRef, ScaleFont, point};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle,
    text_anchor::{HPos, VPos},
};

use super::style::FACES;

/// A pixel backend whose texts are drawn by this module.
pub(super) struct Letters<B>(pub(super) B);

type Done<B> = Result<(), DrawingErrorKind<<B as DrawingBackend>::ErrorType>>;

impl<B: DrawingBackend> DrawingBackend for Letters<B> {
    type ErrorType = B::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Done<B> {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Done<B> {
        self.0.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Done<B> {
        self.0.draw_pixel(point, color)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Done<B> {
        self.0.draw_line(from, to, style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Done<B> {
        self.0.draw_rect(upper_left, bottom_right, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Done<B> {
        self.0.draw_path(path, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Done<B> {
        self.0.draw_circle(center, radius, style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Done<B> {
        self.0.fill_polygon(corners, style)
    }

    fn draw_text<T: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &T,
        at: BackendCoord,
    ) -> Done<B> {
        let face = FACES[usize::from(matches!(style.style(), FontStyle::Bold))].1;
        let font = FontRef::try_from_slice(face)
            .map_err(|error| DrawingErrorKind::FontError(Box::new(error)))?;
        let size = style.size() as f32;
        let (width, pixels) = pixels(&font, size, text);
        // Height of the box with which the drawing library measures texts. In this box, the baseline of the
        // letters is at half of the font size.
        let height = (size / 1.24) as i32;
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -width / 2,
            HPos::Right => -width,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -height / 2,
            VPos::Bottom => -height,
        };
        let (wide, high) = self.0.get_size();
        for (x, y, share) in pixels {
            let (x, y) = style.transform().transform(x + left, y + top);
            let (x, y) = (x + at.0, y + at.1);
            if x < 0 || y < 0 || x >= wide as i32 || y >= high as i32 {
                continue;
            }
            let color = style.color();
            let alpha = color.alpha * f64::from(share);
            self.0.draw_pixel((x, y), BackendColor { alpha, ..color })?;
        }
        Ok(())
    }
}

/// Returns the width of a text and its pixels. Each pixel has its offset from the left edge of the text, its
/// offset from the top of the text's box, and the share of the pixel that is covered.
fn pixels(font: &FontRef<'_>, size: f32, text: &str) -> (i32, Vec<(i32, i32, f32)>) {
    let scaled = font.as_scaled(size);
    let (mut x, mut before) = (0.0, None);
    let mut pixels = Vec::new();
    for letter in text.chars() {
        let glyph = scaled.glyph_id(letter);
        if let Some(before) = before {
            x += scaled.kern(before, glyph);
        }
        before = Some(glyph);
        let placed = glyph.with_scale_and_position(size, point(x, (size / 2.0).floor()));
        x += scaled.h_advance(glyph);
        if let Some(outline) = scaled.outline_glyph(placed) {
            let bounds = outline.px_bounds();
            let (left, top) = (bounds.min.x as i32, bounds.min.y as i32);
            outline.draw(|x, y, share| {
                pixels.push((left + x as i32, top + y as i32, share.min(1.0)));
            });
        }
    }
    (x as i32, pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixel columns of a text in which at least one pixel is covered by more than 30 %.
    fn covered(text: &str) -> Vec<i32> {
        let font = FontRef::try_from_slice(FACES[0].1).unwrap();
        let (_, pixels) = pixels(&font, 40.0, text);
        let mut columns: Vec<i32> = pixels.iter().filter(|p| p.2 > 0.3).map(|p| p.0).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    #[test]
    fn letters_keep_their_side_bearings() {
        let font = FontRef::try_from_slice(FACES[0].1).unwrap();
        let scaled = font.as_scaled(40.0);
        let bearing = scaled.h_side_bearing(scaled.glyph_id('1'));
        assert!(bearing > 2.0, "{bearing}");
        assert!((covered("1")[0] - bearing as i32).abs() <= 1);
        // The distance between two adjacent digits is the advance width of the font.
        let advance = scaled.h_advance(scaled.glyph_id('1'));
        let (one, two) = (covered("1"), covered("11"));
        let (last, widest) = (one[one.len() - 1], two[two.len() - 1]);
        assert!((widest - last - advance.round() as i32).abs() <= 1);
    }
}
