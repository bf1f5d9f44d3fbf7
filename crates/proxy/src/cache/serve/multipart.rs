//! Several parts of one object as multipart/byteranges (RFC 9110 section 14.6). This module makes the text
//! around the bytes.

use foxy_base::{Fields, eq_name, first};
use foxy_http_rules::range::{ContentRange, Span, is_of_content};
use foxy_http1::{RequestHead, write};
use foxy_store::Object;

use crate::cache::gate::Hit;
use crate::http::reply::{Mode, own_fields};
use crate::state::local::Local;

/// The framing of an answer with several parts.
#[derive(Debug)]
pub(crate) struct Multipart {
    boundary: String,
}

impl Multipart {
    pub(crate) fn new(local: &Local) -> Self {
        Self {
            boundary: format!("foxy-{:016x}", local.nonce()),
        }
    }

    /// Returns the text before the bytes of `span`.
    pub(crate) fn before(&self, object: &Object, span: Span, is_first: bool) -> Vec<u8> {
        let mut text = Vec::new();
        if !is_first {
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(format!("--{}\r\n", self.boundary).as_bytes());
        if let Some(kind) = first(object.fields(), "Content-Type") {
            write::field(&mut text, b"Content-Type", kind);
        }
        text.extend_from_slice(b"Content-Range: ");
        let range = ContentRange {
            span: Some(span),
            complete: Some(object.total_length()),
        };
        range.write(&mut text);
        text.extend_from_slice(b"\r\n\r\n");
        text
    }

    /// Returns the text after the last part.
    pub(crate) fn end(&self) -> Vec<u8> {
        format!("\r\n--{}--\r\n", self.boundary).into_bytes()
    }

    /// Returns the length of the multipart body in bytes.
    pub(crate) fn length(&self, object: &Object, spans: &[Span]) -> u64 {
        let parts = spans.iter().enumerate().map(|(i, span)| {
            let text = self.before(object, *span, i == 0).len();
            text as u64 + span.len()
        });
        parts.sum::<u64>() + self.end().len() as u64
    }

    /// Appends the status line and the fields of the answer to `out`.
    pub(crate) fn head(
        &self,
        local: &Local,
        out: &mut Vec<u8>,
        head: &RequestHead<'_>,
        object: &Object,
        spans: &[Span],
        hit: &Hit<'_>,
    ) {
        write::status_line(out, 206);
        let fields = object.fields();
        for i in 0..fields.count() {
            let (name, value) = fields.field(i);
            if !eq_name(name, b"content-type") && !is_of_content(name) {
                write::field(out, name, value);
            }
        }
        let kind = format!("multipart/byteranges; boundary={}", self.boundary);
        write::field(out, b"Content-Type", kind.as_bytes());
        let mode = Mode::Length(self.length(object, spans));
        let own = hit.own_fields(mode, head, object.fields());
        own_fields(out, local, &own);
    }
}
