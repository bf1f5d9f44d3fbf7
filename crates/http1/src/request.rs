//! Request heads. They are parsed once and checked completely.
//!
//! This module promises that an accepted head is unambiguous. There is only one way to understand its end,
//! the end of its body, and the server to which the request is addressed. All other heads are refused with a
//! [`Reject`].

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use foxy_base::Fields;

use crate::connection::{ForwardFields, forward_fields};
use crate::diagnose;
use crate::facts::{Facts, Upgrade};
use crate::framing::{self, BodyFraming};
use crate::limits::MAX_FIELDS;
use crate::scan::{HeadScanner, Kind};
use crate::slots::{FieldSlots, FieldView, Span};
use crate::target::{Scheme, Target, TargetForm, Url};
use crate::{Authority, Host, Limits, Method, Reject, Version};

/// A parsed request as offsets: it is `Copy` and borrows nothing. [`head`](Self::head) makes a view of the
/// request from these offsets, the same buffer and the same slots.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts {
    len: usize,
    method: Method,
    method_text: Span,
    version: Version,
    target: Span,
    form: TargetForm,
    scheme: Option<Scheme>,
    /// The authority in the target.
    authority: Option<Named>,
    /// The authority in the Host field.
    host: Option<Named>,
    path: Span,
    framing: BodyFraming,
    upgrade: Upgrade,
    facts: Facts,
}

impl RequestParts {
    /// The view of the head from which these parts were taken. `bytes` must begin with the bytes that were
    /// parsed. `slots` must not have been used for another head or trailer section since then.
    ///
    /// # Panics
    /// The view's accessors may panic if `bytes` is shorter than [`len`](Self::len).
    #[must_use]
    pub fn head<'b>(&self, bytes: &'b [u8], slots: &'b FieldSlots) -> RequestHead<'b> {
        RequestHead {
            parts: *self,
            fields: FieldView {
                bytes,
                spans: slots.spans(),
            },
        }
    }

    /// Number of bytes of the head in the buffer, including the blank line and an empty line before
    /// the head.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Always false: a head has at least a first line.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The framing of the body: None, Length or Chunked.
    #[must_use]
    pub const fn framing(&self) -> BodyFraming {
        self.framing
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The version.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// True if the client wants to keep the connection open (RFC 9112 section 9.3). In HTTP/1.0, the option
    /// `keep-alive` counts only if the target is in origin-form. A request with another target may come
    /// through an older proxy that has forwarded this option without knowing it. Such a proxy would wait
    /// forever for the end of the connection.
    #[must_use]
    pub fn persistent(&self) -> bool {
        let reusable = match self.version {
            Version::Http11 => true,
            Version::Http10 => self.facts.keep_alive && self.form == TargetForm::Origin,
        };
        reusable && !self.facts.close && self.method != Method::Connect
    }

    /// The change of protocol that the request requires.
    #[must_use]
    pub const fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    /// True if the client waits for the interim response 100 before it sends the body (RFC 9110 section
    /// 10.1.1). It is false for a request without a body, and for HTTP/1.0, where Expect is ignored.
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.facts.expect_continue && self.version == Version::Http11 && !self.framing.is_empty()
    }

    /// True if Connection names fields. These fields are not forwarded ([`goes_on`](crate::goes_on)).
    #[must_use]
    pub const fn lists_names(&self) -> bool {
        self.facts.lists_names
    }

    /// True if there is a Via field: the request has passed through a proxy (RFC 9110 section 7.6.3).
    #[must_use]
    pub const fn has_via(&self) -> bool {
        self.facts.via
    }

    /// True for `TE: trailers`: the client wants trailer fields (RFC 9110 section 10.1.4).
    #[must_use]
    pub const fn wants_trailers(&self) -> bool {
        self.facts.te_trailers
    }
}

/// A request head: a view of the buffer in which it arrived.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'b> {
    parts: RequestParts,
    fields: FieldView<'b>,
}

impl<'b> RequestHead<'b> {
    /// Parses the head at the start of `bytes`. Returns `None` if the head is incomplete. In this case, call
    /// this function again with the same scanner and the longer buffer. Only new bytes are examined. The
    /// body, or the next request, begins at [`len`](RequestParts::len).
    ///
    /// # Errors
    /// A [`Reject`] with status 400, 414, 417, 431, 501 or 505.
    pub fn parse(
        bytes: &'b [u8],
        scanner: &mut HeadScanner,
        slots: &'b mut FieldSlots,
        limits: &Limits,
    ) -> Result<Option<Self>, Reject> {
        let Some(len) = scanner.advance(bytes, limits, Kind::Request)? else {
            return Ok(None);
        };
        let head = &bytes[..len];
        let parts = parse(head, slots, limits)?;
        Ok(Some(parts.head(head, slots)))
    }

    /// The offsets of this view.
    #[must_use]
    pub const fn parts(&self) -> RequestParts {
        self.parts
    }

    /// The method as received.
    #[must_use]
    pub fn method_text(&self) -> &'b [u8] {
        self.parts.method_text.get(self.fields.bytes)
    }

    /// The target as received.
    #[must_use]
    pub fn target_text(&self) -> &'b [u8] {
        self.parts.target.get(self.fields.bytes)
    }

    /// The target's form.
    #[must_use]
    pub const fn form(&self) -> TargetForm {
        self.parts.form
    }

    /// The parsed target.
    #[must_use]
    pub fn target(&self) -> Target<'b> {
        let authority = self.parts.authority.as_ref();
        Target {
            form: self.parts.form,
            scheme: self.parts.scheme,
            authority: authority.map(|named| named.get(self.fields.bytes)),
            path: self.parts.path.get(self.fields.bytes),
        }
    }

    /// The Host field. It is `None` only in HTTP/1.0, or if the field was empty and the target has
    /// an authority.
    #[must_use]
    pub fn host(&self) -> Option<Authority<'b>> {
        let host = self.parts.host.as_ref();
        host.map(|named| named.get(self.fields.bytes))
    }

    /// The requested URL. An authority in the target has precedence over Host (RFC 9112 section 3.2.2).
    /// `scheme` is the listener's scheme; it is used for targets without a scheme. The result is `None` for
    /// CONNECT, and for an HTTP/1.0 request without a host.
    #[must_use]
    pub fn url(&self, scheme: Scheme) -> Option<Url<'b>> {
        let target = self.target();
        if target.form == TargetForm::Authority {
            return None;
        }
        Some(Url {
            scheme: target.scheme.unwrap_or(scheme),
            authority: target.authority.or_else(|| self.host())?,
            path: target.path,
        })
    }

    /// All fields as received.
    #[must_use]
    pub const fn fields(&self) -> FieldView<'b> {
        self.fields
    }

    /// The fields to forward. Host is left out, because the proxy writes it from the URL. For HTTP/1.0,
    /// Expect is also left out, because it has no meaning in HTTP/1.0.
    #[must_use]
    pub fn forward_fields(&self) -> ForwardFields<'b> {
        let fields = forward_fields(self.fields, self.parts.facts.lists_names).without_host();
        match self.parts.version {
            Version::Http10 => fields.without_expect(),
            Version::Http11 => fields,
        }
    }
}

/// Makes the accessors of [`RequestParts`] available on a head.
impl std::ops::Deref for RequestHead<'_> {
    type Target = RequestParts;
    fn deref(&self) -> &RequestParts {
        &self.parts
    }
}

impl Fields for RequestHead<'_> {
    fn count(&self) -> usize {
        self.fields.count()
    }
    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        self.fields.field(i)
    }
}

/// Parses a complete head.
fn parse(head: &[u8], slots: &mut FieldSlots, limits: &Limits) -> Result<RequestParts, Reject> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let outcome = request.parse_with_uninit_headers(head, &mut room[..limits.fields_max()]);
    let (Ok(httparse::Status::Complete(len)), Some(method_text), Some(target), Some(minor)) =
        (outcome, request.method, request.path, request.version)
    else {
        return Err(diagnose::request(head));
    };
    if len != head.len() {
        return Err(diagnose::request(head));
    }
    if target.len() > limits.target_bytes {
        return Err(Reject::TARGET_TOO_LONG);
    }
    let version = Version::from_minor(minor);
    let method = Method::from_text(method_text.as_bytes());
    let facts = note_fields(head, request.headers, slots, limits, version)?;
    let target_read = Target::parse(target.as_bytes(), method)?;
    let authority_text = authority_text(target.as_bytes(), &target_read);
    let host = host(head, &facts, &target_read, authority_text, version)?;
    Ok(RequestParts {
        len,
        method,
        method_text: Span::of(head, method_text.as_bytes()),
        version,
        target: Span::of(head, target.as_bytes()),
        form: target_read.form,
        scheme: target_read.scheme,
        authority: target_read.authority.map(|named| Named::of(head, &named)),
        host: host.map(|named| Named::of(head, &named)),
        path: Span::of(head, target_read.path),
        framing: framing::of_request(method, facts.length)?,
        upgrade: facts.upgrade_wanted(method, version),
        facts,
    })
}

/// Copies the fields into the slots and collects their meaning.
fn note_fields(
    head: &[u8],
    fields: &[httparse::Header<'_>],
    slots: &mut FieldSlots,
    limits: &Limits,
    version: Version,
) -> Result<Facts, Reject> {
    slots.clear();
    let mut facts = Facts::default();
    for field in fields {
        let name = field.name.as_bytes();
        facts.note_request(head, (name, field.value), limits)?;
        slots.push(head, name, field.value);
    }
    facts.finish(version)?;
    Ok(facts)
}

/// Checks Host. It must be present in HTTP/1.1, and must always be valid. It may be empty only if
/// the target contains the authority.
fn host<'b>(
    head: &'b [u8],
    facts: &Facts,
    target: &Target<'b>,
    authority_text: &[u8],
    version: Version,
) -> Result<Option<Authority<'b>>, Reject> {
    match facts.host.map(|span| span.get(head)) {
        // This is the usual case for a proxy. The same text need not be parsed again.
        Some(text) if target.authority.is_some() && text == authority_text => Ok(target.authority),
        None if version == Version::Http11 => Err(Reject::MISSING_HOST),
        None => Ok(None),
        Some(b"") if target.authority.is_some() => Ok(None),
        Some(text) => Authority::parse(text).map(Some),
    }
}

/// The authority of a target in absolute form, as the client wrote it. The result is empty for the other
/// forms.
fn authority_text<'b>(text: &'b [u8], target: &Target<'_>) -> &'b [u8] {
    let before = target.scheme.map_or(0, |scheme| scheme.as_str().len() + 3);
    text.get(before..text.len() - target.path.len())
        .filter(|_| before > 0)
        .unwrap_or_default()
}

/// An [`Authority`] as offsets.
#[derive(Clone, Copy, Debug)]
struct Named {
    host: HostAt,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum HostAt {
    Name(Span),
    V6(Ipv6Addr),
}

impl Named {
    fn of(whole: &[u8], authority: &Authority<'_>) -> Self {
        let host = match authority.host {
            Host::Name(name) => HostAt::Name(Span::of(whole, name)),
            Host::V6(address) => HostAt::V6(address),
        };
        Self {
            host,
            port: authority.port,
        }
    }

    fn get<'b>(&self, whole: &'b [u8]) -> Authority<'b> {
        let host = match self.host {
            HostAt::Name(span) => Host::Name(span.get(whole)),
            HostAt::V6(address) => Host::V6(address),
        };
        Authority {
            host,
            port: self.port,
        }
    }
}
