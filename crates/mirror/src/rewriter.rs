//! The rewriting of one document while it arrives from the upstream.

use std::sync::Arc;

use crate::html::Html;
use crate::json::{Json, Map};
use crate::release::Release;
use crate::{Found, Mirror, Transform};

/// Rewrites one document while it streams.
#[derive(Debug)]
pub struct Rewriter {
    form: Form,
    mirror: Arc<Mirror>,
    /// The server from which the document comes. `None` if the document was already rewritten and is only
    /// read.
    server: Option<usize>,
    base: Box<str>,
}

#[derive(Debug)]
enum Form {
    Json(Json),
    Html(Html),
    Release(Release),
}

impl Rewriter {
    /// Makes a rewriter for a document with this media type at this path of the mirror. `base` is the scheme
    /// and authority of the mirror.
    #[must_use]
    pub fn new(
        transform: Transform,
        (path, content_type): (&[u8], &[u8]),
        (mirror, server): (Arc<Mirror>, usize),
        base: &str,
    ) -> Self {
        let is_json = content_type
            .windows(4)
            .any(|part| part.eq_ignore_ascii_case(b"json"));
        let form = match transform {
            Transform::Pypi if !is_json => Form::Html(Html::default()),
            Transform::Release => Form::Release(Release::at(path)),
            _ => Form::Json(Json::new(transform)),
        };
        Self {
            form,
            mirror,
            server: Some(server),
            base: base.into(),
        }
    }

    /// Makes a rewriter for a document that was already rewritten. It is only used to find the artefacts
    /// (files of packages) in the document; its output is ignored.
    #[must_use]
    pub fn again(
        transform: Transform,
        document: (&[u8], &[u8]),
        mirror: Arc<Mirror>,
        base: &str,
    ) -> Self {
        Self {
            server: None,
            ..Self::new(transform, document, (mirror, 0), base)
        }
    }

    /// Takes a piece of the document and appends its rewritten form to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let (mirror, server, base) = (&self.mirror, self.server, &self.base);
        let path = |url: &[u8]| match server {
            Some(server) => mirror.path_of(server, url),
            None => {
                let path = url.strip_prefix(base.as_bytes())?;
                mirror.has(path).then(|| path.to_vec())
            }
        };
        let map: Map<'_> = (base.as_bytes(), &path);
        match &mut self.form {
            Form::Json(json) => json.push(piece, map, out),
            Form::Html(html) => html.push(piece, map, out),
            Form::Release(release) => release.push(piece, out),
        }
    }

    /// Takes the artefacts whose digests were found since the last call.
    pub fn found(&mut self) -> Vec<Found> {
        match &mut self.form {
            Form::Json(json) => json.found(&self.mirror),
            Form::Html(html) => html.found(),
            Form::Release(release) => release.found(),
        }
    }

    /// Ends the document.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.form {
            Form::Json(json) => json.finish(out),
            Form::Html(html) => html.finish(out),
            Form::Release(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
