//! The body of a document on its way from the upstream: decoded, and rewritten.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use foxy_mirror::Rewriter;

use super::Mirrored;
use crate::upstream::UpstreamError;

/// Encoded bytes that are decoded at once: a thousand times as many can come of them.
const DECODE_AT_ONCE: usize = 1 << 10;

const CODING: UpstreamError = UpstreamError::BadResponse("document-coding");

/// The changes of the body of a document.
#[derive(Debug)]
pub(crate) struct Edit {
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    rewriter: Rewriter,
}

impl Edit {
    /// The changes for a document of this type. `coded`: it comes compressed by gzip.
    pub(crate) fn of(mirrored: &Mirrored, content_type: &[u8], coded: bool) -> Option<Self> {
        let (document, transform) = (mirrored.document()?, mirrored.class().rewrite?);
        let of = (Arc::clone(&mirrored.mirror), mirrored.place.server);
        Some(Self {
            decoder: coded.then(|| MultiGzDecoder::new(Vec::new())),
            rewriter: Rewriter::new(transform, content_type, of, &document.base),
        })
    }

    /// Takes a piece of the body, and gives each piece that comes of it to `send`.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        mut send: impl FnMut(Bytes),
    ) -> Result<(), UpstreamError> {
        let Some(decoder) = &mut self.decoder else {
            rewrite(&mut self.rewriter, piece, &mut send);
            return Ok(());
        };
        for part in piece.chunks(DECODE_AT_ONCE) {
            decoder.write_all(part).map_err(|_| CODING)?;
            let plain = std::mem::take(decoder.get_mut());
            rewrite(&mut self.rewriter, &plain, &mut send);
        }
        Ok(())
    }

    /// Ends the body.
    ///
    /// # Errors
    /// It is not whole.
    pub(crate) fn finish(&mut self, mut send: impl FnMut(Bytes)) -> Result<(), UpstreamError> {
        if let Some(decoder) = &mut self.decoder {
            decoder.try_finish().map_err(|_| CODING)?;
            let plain = std::mem::take(decoder.get_mut());
            rewrite(&mut self.rewriter, &plain, &mut send);
        }
        let mut out = Vec::new();
        self.rewriter.finish(&mut out);
        if !out.is_empty() {
            send(out.into());
        }
        Ok(())
    }
}

fn rewrite(rewriter: &mut Rewriter, plain: &[u8], send: &mut impl FnMut(Bytes)) {
    let mut out = Vec::with_capacity(plain.len() + 256);
    rewriter.push(plain, &mut out);
    if !out.is_empty() {
        send(out.into());
    }
}
