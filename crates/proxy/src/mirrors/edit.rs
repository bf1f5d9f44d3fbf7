//! The body of a mirror's answer, as it arrives from the upstream. A document is decoded and rewritten. An
//! artefact is compared with its expected digests, which come from a document of the mirror, from the URL or
//! from the head of the answer.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use foxy_base::{FieldBlock, KeyHash, first, rule};
use foxy_mirror::{Mirror, Rewriter, digests_of_field};

use super::{Comparison, Mirrored};
use crate::cache::owned_request::OwnedRequest;
use crate::{Event, Proxy};

/// Number of encoded bytes that are decoded in one step. The number is small, because the decoded text can be
/// a thousand times as long.
const DECODE_AT_ONCE: usize = 1 << 10;

const CODING: BadBody = BadBody("document-coding");
const MISMATCH: BadBody = BadBody("digest-mismatch");

/// Reason why a body cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadBody(pub(crate) &'static str);

/// The change that is made to the body of a mirror's answer.
#[derive(Debug)]
pub(crate) enum Edit {
    /// The document is rewritten.
    Document(Box<Rewriting>),
    /// The artefact is compared with its digest.
    Artefact(Box<Comparing>),
}

#[derive(Debug)]
pub(crate) struct Rewriting {
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    rewriter: Rewriter,
    /// The proxy. Its table of digests gets the digests that the document contains.
    proxy: Arc<Proxy>,
    mirror: Arc<Mirror>,
    scope: Box<str>,
    /// Path of the document.
    path: Box<[u8]>,
    /// Key of the document.
    key: KeyHash,
}

#[derive(Debug)]
pub(crate) struct Comparing {
    /// One comparison for each digest that the artefact must have.
    comparisons: Vec<Comparison>,
    /// The last piece of the artefact that has arrived. If it is the end of the artefact, no client gets it
    /// before the comparison has shown that the digest is right.
    held: Bytes,
    /// The facts about the mirror to which the artefact belongs, and the path of the artefact.
    name: (Arc<Mirrored>, Box<[u8]>),
}

impl Edit {
    /// Returns the change that Foxy makes to the body of an answer with status 200. `coded` is true if the
    /// body is compressed by gzip although its head does not state this.
    pub(crate) fn of(
        proxy: &Arc<Proxy>,
        req: &OwnedRequest,
        fields: &FieldBlock,
        coded: bool,
    ) -> Option<Self> {
        let part = req.role.mirrored()?;
        if part.is_document() {
            let content_type = first(fields, "Content-Type").unwrap_or_default();
            return Self::document(proxy, (part, req), content_type, coded);
        }
        let said = |name| first(fields, name).and_then(|value| digests_of_field(value).next());
        let mut expected = match part.image() {
            Some(image) => vec![image.digest(first(fields, "Docker-Content-Digest"))],
            None if part.is_compared() => {
                let named = part.expected(&proxy.expected, req.target());
                // A document may have arrived after the head of this answer was read. This document may
                // contain a different digest for the artefact. So the artefact is compared with both digests.
                vec![
                    named,
                    said("Repr-Digest").or_else(|| said("Content-Digest")),
                ]
            }
            None => Vec::new(),
        };
        expected.dedup();
        let of: Vec<Comparison> = expected
            .into_iter()
            .flatten()
            .map(Comparison::with)
            .collect();
        if of.is_empty() {
            return None;
        }
        Some(Self::Artefact(Box::new(Comparing {
            comparisons: of,
            held: Bytes::new(),
            name: (Arc::clone(part), req.target().into()),
        })))
    }

    fn document(
        proxy: &Arc<Proxy>,
        (part, req): (&Mirrored, &OwnedRequest),
        content_type: &[u8],
        coded: bool,
    ) -> Option<Self> {
        let (document, transform) = (part.document()?, part.class().rewrite?);
        let of = (Arc::clone(&part.mirror), part.mirror_target.server);
        Some(Self::Document(Box::new(Rewriting {
            decoder: coded.then(|| MultiGzDecoder::new(Vec::new())),
            rewriter: Rewriter::new(transform, (req.target(), content_type), of, &document.base),
            proxy: Arc::clone(proxy),
            mirror: Arc::clone(&part.mirror),
            scope: part.scope().into(),
            path: req.target().into(),
            key: req.base_hash,
        })))
    }

    /// Takes the next piece of the upstream's body. Passes the resulting pieces to `send`.
    ///
    /// # Errors
    /// An error if the body cannot be decoded.
    pub(crate) fn push(
        &mut self,
        piece: &Bytes,
        mut send: impl FnMut(Bytes),
    ) -> Result<(), BadBody> {
        match self {
            Self::Document(document) => document.push(piece, &mut send),
            Self::Artefact(artefact) => {
                artefact.push(piece, send);
                Ok(())
            }
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    /// An error if the body is incomplete or does not have the expected digest. The last piece of the
    /// artefact is then not sent.
    pub(crate) fn finish(
        &mut self,
        proxy: &Proxy,
        worker: usize,
        mut send: impl FnMut(Bytes),
    ) -> Result<(), BadBody> {
        match self {
            Self::Document(document) => document.finish(&mut send),
            Self::Artefact(artefact) => {
                let right = artefact.comparisons.iter().all(Comparison::is_right);
                let (part, path) = &artefact.name;
                proxy.expected.doubt(part, path, !right);
                if rule!(
                    "mirror: an artefact with another digest is not whole",
                    !right,
                    false
                ) {
                    proxy.counters(worker).add(Event::MirrorMismatch, 1);
                    return Err(MISMATCH);
                }
                send(std::mem::take(&mut artefact.held));
                Ok(())
            }
        }
    }
}

impl Rewriting {
    fn push(&mut self, piece: &[u8], send: &mut impl FnMut(Bytes)) -> Result<(), BadBody> {
        if self.decoder.is_none() {
            self.rewrite(piece, send);
            return Ok(());
        }
        for part in piece.chunks(DECODE_AT_ONCE) {
            if let Some(decoder) = &mut self.decoder {
                decoder.write_all(part).map_err(|_| CODING)?;
                let plain = std::mem::take(decoder.get_mut());
                self.rewrite(&plain, send);
            }
        }
        Ok(())
    }

    fn finish(&mut self, send: &mut impl FnMut(Bytes)) -> Result<(), BadBody> {
        if let Some(decoder) = &mut self.decoder {
            decoder.try_finish().map_err(|_| CODING)?;
            let plain = std::mem::take(decoder.get_mut());
            self.rewrite(&plain, send);
        }
        let mut out = Vec::new();
        self.rewriter.finish(&mut out);
        self.proxy.expected.learn(self.key);
        if !out.is_empty() {
            send(out.into());
        }
        Ok(())
    }

    fn rewrite(&mut self, plain: &[u8], send: &mut impl FnMut(Bytes)) {
        let mut out = Vec::with_capacity(plain.len() + 256);
        self.rewriter.push(plain, &mut out);
        let mut found = self.rewriter.found();
        found.retain(|found| {
            rule!(
                "mirror: a document speaks for its own artefacts alone",
                self.mirror.speaks_for(&self.path, &found.path),
                true
            )
        });
        self.proxy.expected.note(&self.scope, found);
        if !out.is_empty() {
            send(out.into());
        }
    }
}

impl Comparing {
    /// Adds bytes to all comparisons. The caller uses this function for the bytes that arrived before this
    /// value was made.
    pub(crate) fn begins_with(&mut self, bytes: &[u8]) {
        for comparison in &mut self.comparisons {
            comparison.push(bytes);
        }
    }

    fn push(&mut self, piece: &Bytes, mut send: impl FnMut(Bytes)) {
        self.begins_with(piece);
        if !piece.is_empty() {
            let before = rule!(
                "mirror: the end of an artefact waits for its digest",
                std::mem::replace(&mut self.held, piece.clone()),
                piece.clone()
            );
            if !before.is_empty() {
                send(before);
            }
        }
    }
}
