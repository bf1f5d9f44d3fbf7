//! The four forms of a request target, and the URL that a target means (RFC 9112 section 3.2).
//!
//! Scheme, authority and the escapes of the path have one normal form ([`Escapes`]). The query is not
//! changed. So the request to the origin and the cache key contain the same query.

use crate::{Authority, Escapes, Method, Reject};

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The scheme in lower case, without `://`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The default port: 80 or 443.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The four forms of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`: a request to an origin server or a reverse proxy.
    Origin,
    /// `http://host/path`: a request to a forward proxy.
    Absolute,
    /// `host:port`: a CONNECT request.
    Authority,
    /// `*`: an OPTIONS request about the complete server.
    Asterisk,
}

/// A parsed target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'b> {
    /// The form of the target.
    pub form: TargetForm,
    /// The scheme; present only in absolute-form.
    pub scheme: Option<Scheme>,
    /// The authority; present only in absolute-form and authority-form.
    pub authority: Option<Authority<'b>>,
    /// Path and query as received. In absolute-form the text may be empty or begin with `?`. In
    /// authority-form it is empty, and in asterisk-form it is `*`.
    pub path: &'b [u8],
}

impl<'b> Target<'b> {
    /// Reads a target, which must have a form that `method` permits.
    ///
    /// # Errors
    /// Returned if the form or the scheme is unknown, if the form is not permitted for the method, if a byte
    /// is outside printable ASCII, or if there is a fragment. Also returns the errors of
    /// [`Authority::parse`].
    pub fn parse(text: &'b [u8], method: Method) -> Result<Self, Reject> {
        check_bytes(text)?;
        match text {
            _ if method == Method::Connect => connect(text),
            b"*" if method == Method::Options => Ok(Self {
                form: TargetForm::Asterisk,
                scheme: None,
                authority: None,
                path: text,
            }),
            [b'/', ..] => Ok(Self {
                form: TargetForm::Origin,
                scheme: None,
                authority: None,
                path: text,
            }),
            _ => absolute(text),
        }
    }

    /// Writes the target of a request that goes directly to the origin (RFC 9112 section 3.2.4). It is the
    /// path (`/` if the path is empty), or `*` for an OPTIONS request about the complete server.
    pub fn write_origin_form(&self, method: Method, escapes: Escapes, out: &mut Vec<u8>) {
        if method == Method::Options && self.path.is_empty() {
            out.push(b'*');
        } else {
            write_path(self.path, escapes, out);
        }
    }
}

/// Number of bytes that are checked together. The compiler turns each group into vector
/// instructions.
const GROUP: usize = 16;

fn check_bytes(text: &[u8]) -> Result<(), Reject> {
    // `last` has the last 16 bytes of the text (or all bytes of a shorter text). It may overlap the last of
    // `groups`. So no byte remains unchecked.
    let groups = text.chunks_exact(GROUP);
    let last = match text.last_chunk::<GROUP>() {
        Some(last) => last,
        None => groups.remainder(),
    };
    let (mut graphic, mut fragment) = look(last);
    for group in groups {
        let (all, any) = look(group);
        graphic &= all;
        fragment |= any;
    }
    match (graphic, fragment) {
        (false, _) => Err(Reject::BAD_TARGET),
        (true, true) => Err(Reject::FRAGMENT_IN_TARGET),
        (true, false) => Ok(()),
    }
}

/// Returns two results: true if all bytes are printable, and true if one of them is `#`. The loop never ends
/// early, so the compiler can use vector instructions.
fn look(text: &[u8]) -> (bool, bool) {
    text.iter().fold((true, false), |(graphic, fragment), b| {
        (graphic & b.is_ascii_graphic(), fragment | (*b == b'#'))
    })
}

fn connect(text: &[u8]) -> Result<Target<'_>, Reject> {
    if text.contains(&b'/') || text.contains(&b'?') {
        return Err(Reject::BAD_TARGET);
    }
    let authority = Authority::parse(text)?;
    if authority.port.is_none() {
        return Err(Reject::MISSING_PORT);
    }
    Ok(Target {
        form: TargetForm::Authority,
        scheme: None,
        authority: Some(authority),
        path: b"",
    })
}

fn absolute(text: &[u8]) -> Result<Target<'_>, Reject> {
    let (scheme, rest) = match text.strip_prefix(b"http://") {
        Some(rest) => (Scheme::Http, rest),
        None => any_scheme(text)?,
    };
    let end = rest
        .iter()
        .position(|b| matches!(b, b'/' | b'?'))
        .unwrap_or(rest.len());
    Ok(Target {
        form: TargetForm::Absolute,
        scheme: Some(scheme),
        authority: Some(Authority::parse(&rest[..end])?),
        path: &rest[end..],
    })
}

/// The scheme, in upper or lower case, and the text behind `://`.
fn any_scheme(text: &[u8]) -> Result<(Scheme, &[u8]), Reject> {
    let colon = text
        .iter()
        .position(|b| *b == b':')
        .ok_or(Reject::BAD_TARGET)?;
    let (name, rest) = text.split_at(colon);
    let rest = rest.strip_prefix(b"://").ok_or(Reject::BAD_TARGET)?;
    if name.eq_ignore_ascii_case(b"http") {
        Ok((Scheme::Http, rest))
    } else if name.eq_ignore_ascii_case(b"https") {
        Ok((Scheme::Https, rest))
    } else {
        Err(Reject::UNSUPPORTED_SCHEME)
    }
}

/// Writes a path. An empty path is written as `/` (RFC 9110 section 4.2.3).
fn write_path(path: &[u8], escapes: Escapes, out: &mut Vec<u8>) {
    if matches!(path, [] | [b'?', ..]) {
        out.push(b'/');
    }
    escapes.write(path, out);
}

/// The absolute URL that a request means. It has a scheme and an authority even if the target has neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'b> {
    /// The scheme.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: Authority<'b>,
    /// Path and query as received.
    pub path: &'b [u8],
}

impl<'b> Url<'b> {
    /// Reads an absolute `http` or `https` URL, as in user input or a Location field. A fragment is
    /// dropped: it is never sent to a server.
    ///
    /// # Errors
    /// The same errors as [`Target::parse`]. Other forms are refused with [`Reject::BAD_TARGET`].
    pub fn parse(text: &'b [u8]) -> Result<Self, Reject> {
        let end = memchr::memchr(b'#', text).unwrap_or(text.len());
        let target = Target::parse(&text[..end], Method::Get)?;
        match (target.scheme, target.authority) {
            (Some(scheme), Some(authority)) => Ok(Self {
                scheme,
                authority,
                path: target.path,
            }),
            _ => Err(Reject::BAD_TARGET),
        }
    }

    /// Appends `scheme://authority/path?query`. Equal URLs get the same text. `OPTIONS *` gets the
    /// path `*`, which no other request can have.
    pub fn write_normalised(&self, out: &mut Vec<u8>) {
        self.write(Escapes::Normal, out);
    }

    /// Does the same as [`write_normalised`](Self::write_normalised), but with this form of the escapes in
    /// the path.
    pub fn write(&self, escapes: Escapes, out: &mut Vec<u8>) {
        out.extend_from_slice(self.scheme.as_str().as_bytes());
        out.extend_from_slice(b"://");
        self.authority.write_normalised(self.scheme, out);
        write_path(self.path, escapes, out);
    }
}
