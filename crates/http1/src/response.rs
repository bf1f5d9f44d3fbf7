//! Response heads of origins.
//!
//! As in the module for request heads, an accepted head is unambiguous, and all other heads are refused.
//! Every refusal has status 502. An error of an origin is tolerated if the error cannot be used for
//! smuggling: a missing reason phrase, an unknown status, a length in a 204.

use std::mem::MaybeUninit;

use foxy_base::Fields;

use crate::connection::{ForwardFields, forward_fields};
use crate::facts::{Facts, Length};
use crate::framing::{self, BodyFraming};
use crate::limits::MAX_FIELDS;
use crate::scan::{HeadScanner, Kind};
use crate::slots::{FieldSlots, FieldView, Span};
use crate::{Limits, Method, Reject, Version, diagnose};

/// A parsed response as offsets: it is `Copy` and borrows nothing.
#[derive(Clone, Copy, Debug)]
pub struct ResponseParts {
    len: usize,
    status: u16,
    version: Version,
    reason: Span,
    facts: Facts,
}

impl ResponseParts {
    /// The view of the head from which these parts were taken. `bytes` must begin with the bytes that were
    /// parsed. `slots` must not have been used for another head or trailer section since then.
    ///
    /// # Panics
    /// The view's accessors may panic if `bytes` is shorter than [`len`](Self::len).
    #[must_use]
    pub fn head<'b>(&self, bytes: &'b [u8], slots: &'b FieldSlots) -> ResponseHead<'b> {
        ResponseHead {
            parts: *self,
            fields: FieldView {
                bytes,
                spans: slots.spans(),
            },
        }
    }

    /// Number of bytes of the head in the buffer, including the blank line.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Always false: a head has at least a first line.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Status code, 100 to 999.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// True for 1xx other than 101: another response to the same request follows.
    #[must_use]
    pub const fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// The framing of the body. `request` is the method of the request (RFC 9112 section 6.3).
    #[must_use]
    pub fn framing(&self, request: Method) -> BodyFraming {
        framing::of_response(self.status, self.facts.length, request)
    }

    /// True if the connection can carry another request once the body has been read. False if the fields of a
    /// 1xx or 204 declare a body. The status excludes a body, but the origin may send it nevertheless.
    #[must_use]
    pub fn persistent(&self, request: Method) -> bool {
        let reusable = match self.version {
            Version::Http11 => true,
            Version::Http10 => self.facts.keep_alive,
        };
        let delimited = match self.framing(request) {
            BodyFraming::UntilClose | BodyFraming::Tunnel => false,
            BodyFraming::None if self.status == 204 || self.status < 200 => {
                matches!(self.facts.length, Length::Unsaid | Length::Bytes(0))
            }
            _ => true,
        };
        reusable && delimited && !self.facts.close
    }
}

/// A response head: a view of the buffer in which it arrived.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'b> {
    parts: ResponseParts,
    fields: FieldView<'b>,
}

impl<'b> ResponseHead<'b> {
    /// Parses the head at the start of `bytes`. Returns `None` if the head is incomplete. See
    /// [`RequestHead::parse`](crate::RequestHead::parse).
    ///
    /// # Errors
    /// A [`Reject`] with status 502.
    pub fn parse(
        bytes: &'b [u8],
        scanner: &mut HeadScanner,
        slots: &'b mut FieldSlots,
        limits: &Limits,
    ) -> Result<Option<Self>, Reject> {
        let found = scanner
            .advance(bytes, limits, Kind::Response)
            .map_err(Reject::of_response)?;
        let Some(len) = found else {
            return Ok(None);
        };
        let head = &bytes[..len];
        let parts = parse(head, slots, limits).map_err(Reject::of_response)?;
        Ok(Some(parts.head(head, slots)))
    }

    /// The offsets of this view.
    #[must_use]
    pub const fn parts(&self) -> ResponseParts {
        self.parts
    }

    /// The reason phrase; empty if it was missing or contained bytes outside ASCII.
    #[must_use]
    pub fn reason(&self) -> &'b [u8] {
        self.parts.reason.get(self.fields.bytes)
    }

    /// All fields as received.
    #[must_use]
    pub const fn fields(&self) -> FieldView<'b> {
        self.fields
    }

    /// The fields to store and to forward. For 1xx and 204, Content-Length is left out, because such
    /// responses must not have this field (RFC 9110 section 8.6).
    #[must_use]
    pub fn forward_fields(&self) -> ForwardFields<'b> {
        let fields = forward_fields(self.fields, self.parts.facts.lists_names);
        match self.parts.status {
            100..=199 | 204 => fields.without_length(),
            _ => fields,
        }
    }
}

/// Makes the accessors of [`ResponseParts`] available on a head.
impl std::ops::Deref for ResponseHead<'_> {
    type Target = ResponseParts;
    fn deref(&self) -> &ResponseParts {
        &self.parts
    }
}

impl Fields for ResponseHead<'_> {
    fn count(&self) -> usize {
        self.fields.count()
    }
    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        self.fields.field(i)
    }
}

/// Parses a complete head.
fn parse(head: &[u8], slots: &mut FieldSlots, limits: &Limits) -> Result<ResponseParts, Reject> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let outcome = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        head,
        &mut room[..limits.fields_max()],
    );
    let (Ok(httparse::Status::Complete(len)), Some(status), Some(minor)) =
        (outcome, response.code, response.version)
    else {
        return Err(diagnose::response(head));
    };
    if len != head.len() || status < 100 {
        return Err(diagnose::response(head));
    }
    let version = Version::from_minor(minor);
    slots.clear();
    let mut facts = Facts::default();
    for field in response.headers.iter() {
        let name = field.name.as_bytes();
        facts.note_response((name, field.value), limits)?;
        slots.push(head, name, field.value);
    }
    facts.finish(version)?;
    let reason = response.reason.unwrap_or_default().as_bytes();
    Ok(ResponseParts {
        len,
        status,
        version,
        // If the phrase is absent, `reason` is an empty text outside of the head, and has no position in the
        // head.
        reason: if reason.is_empty() {
            Span::default()
        } else {
            Span::of(head, reason)
        },
        facts,
    })
}
