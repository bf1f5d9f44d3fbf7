//! A sparse image of bytes. It uses memory only for pages that were written. Copies share unchanged pages.

use std::collections::HashMap;
use std::sync::Arc;

const PAGE: usize = 4096;

/// A sparse image. Bytes that were never written read as zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Image(HashMap<u64, Arc<[u8; PAGE]>>);

impl Image {
    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        pieces(at, into.len(), |page, within, part| {
            let len = part.len();
            match self.0.get(&page) {
                Some(bytes) => into[part].copy_from_slice(&bytes[within..within + len]),
                None => into[part].fill(0),
            }
        });
    }

    pub(super) fn write(&mut self, at: u64, data: &[u8]) {
        pieces(at, data.len(), |page, within, part| {
            let bytes = self.0.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            let len = part.len();
            Arc::make_mut(bytes)[within..within + len].copy_from_slice(&data[part]);
        });
    }
}

/// Cuts a range into pieces that lie in one page each. For each piece, `each` gets the page number, the
/// offset in the page, and the part of the range.
fn pieces(at: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let place = at + done as u64;
        // The remainder is below PAGE, so it fits into a `usize`.
        let within = (place % PAGE as u64) as usize;
        let step = (PAGE - within).min(len - done);
        each(place / PAGE as u64, within, done..done + step);
        done += step;
    }
}
