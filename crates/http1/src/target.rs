//! The request target in its four forms, and the URL it stands for (RFC 9112 section 3.2).
//!
//! Scheme, authority and the escapes of the path have one normal form ([`Escapes`]). The query is
//! kept byte for byte: the request to the origin and the cache key must agree.

use crate::{Authority, Escapes, Method, Reject};

/// `http` or `https`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// In lower case, without `://`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// 80 or 443.
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
    /// `/path?query`: to an origin server or a reverse proxy.
    Origin,
    /// `http://host/path`: to a forward proxy.
    Absolute,
    /// `host:port`: CONNECT.
    Authority,
    /// `*`: OPTIONS for the server as a whole.
    Asterisk,
}

/// A parsed target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'b> {
    /// Its form.
    pub form: TargetForm,
    /// Given in absolute-form only.
    pub scheme: Option<Scheme>,
    /// Given in absolute-form and authority-form.
    pub authority: Option<Authority<'b>>,
    /// Path and query as received. May be empty or begin with `?` in absolute-form; empty in
    /// authority-form; `*` in asterisk-form.
    pub path: &'b [u8],
}

impl<'b> Target<'b> {
    /// Reads a target, which must be of a form that `method` allows.
    ///
    /// # Errors
    /// No known form, or the wrong one for the method; a byte outside printable ASCII; a
    /// fragment; an unknown scheme; whatever [`Authority::parse`] refuses.
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

    /// Writes the target for the next server, if that is the origin: the path (`/` if it is empty),
    /// or `*` for an OPTIONS request about the server as a whole (RFC 9112 section 3.2.4).
    pub fn write_origin_form(&self, method: Method, escapes: Escapes, out: &mut Vec<u8>) {
        if method == Method::Options && self.path.is_empty() {
            out.push(b'*');
        } else {
            write_path(self.path, escapes, out);
        }
    }
}

/// Bytes looked at together; the compiler turns each group into vector instructions.
const GROUP: usize = 16;

fn check_bytes(text: &[u8]) -> Result<(), Reject> {
    // The last group overlaps the one before it, so that nothing is left over.
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

/// Two results: all bytes are printable; one of them is `#`. Without early exit, so that the
/// compiler uses vector instructions.
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

/// An empty path is `/` (RFC 9110 section 4.2.3).
fn write_path(path: &[u8], escapes: Escapes, out: &mut Vec<u8>) {
    if matches!(path, [] | [b'?', ..]) {
        out.push(b'/');
    }
    escapes.write(path, out);
}

/// An absolute URL, as requests name it after routing.
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
    /// As [`Target::parse`]; other forms are [`Reject::BAD_TARGET`].
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

    /// Appends `scheme://authority/path?query`; equal URLs are written alike. `OPTIONS *` is
    /// written with a path of `*`, which no other request can have.
    pub fn write_normalised(&self, out: &mut Vec<u8>) {
        self.write(Escapes::Normal, out);
    }

    /// As [`write_normalised`](Self::write_normalised), with this form of the path's escapes.
    pub fn write(&self, escapes: Escapes, out: &mut Vec<u8>) {
        out.extend_from_slice(self.scheme.as_str().as_bytes());
        out.extend_from_slice(b"://");
        self.authority.write_normalised(self.scheme, out);
        write_path(self.path, escapes, out);
    }
}
