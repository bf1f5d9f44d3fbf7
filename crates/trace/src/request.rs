//! One request of a trace: a small plain value of the same type for every log format and generator.

/// A client's request and its answer, as far as the log or the generator provides them.
///
/// Ids are 64- and 32-bit hashes if the log has names, and the log's own numbers if it has numbers. They are
/// unique only within one trace. `Default` is a cacheable GET answered by 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Milliseconds since the Unix epoch, or since the start if the log has no dates; 0 if the log has no
    /// times at all.
    pub time_ms: i64,
    /// The object (URL without fragment).
    pub object: u64,
    /// Bytes of the answer, including the head if the log counts the head; 0 if not known.
    pub size: u64,
    /// Number of the client; 0 if not known.
    pub client: u32,
    /// The origin server (host and port); 0 if not known.
    pub server: u32,
    /// Version of the object. Generators count versions from 0. Readers leave it 0, so that a changed size is
    /// the only sign of a new version.
    pub version: u32,
    /// Status of the answer; 0 if the log has none.
    pub status: u16,
    /// Method of the request.
    pub method: Method,
    /// Kind of content, from the logged type, otherwise from the extension of the path.
    pub class: Class,
    /// Further facts about the request.
    pub flags: Flags,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            time_ms: 0,
            object: 0,
            size: 0,
            client: 0,
            server: 0,
            version: 0,
            status: 200,
            method: Method::Get,
            class: Class::Other,
            flags: Flags::default(),
        }
    }
}

/// Methods of requests that a cache must distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Method {
    /// GET
    #[default]
    Get,
    /// HEAD
    Head,
    /// POST
    Post,
    /// CONNECT
    Connect,
    /// Any other method, and ICP queries in cache logs.
    Other,
}

impl Method {
    /// Returns the method for a name in a log; case is ignored.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        const NAMES: [(&[u8], Method); 4] = [
            (b"GET", Method::Get),
            (b"HEAD", Method::Head),
            (b"POST", Method::Post),
            (b"CONNECT", Method::Connect),
        ];
        NAMES
            .iter()
            .find(|(text, _)| name.eq_ignore_ascii_case(text))
            .map_or(Self::Other, |(_, method)| *method)
    }

    /// Returns the method for its number in the compact form ([`crate::compact`]).
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Get,
            1 => Self::Head,
            2 => Self::Post,
            3 => Self::Connect,
            4 => Self::Other,
            _ => return None,
        })
    }
}

/// Content classes. The papers on Hummingbird and UCFS distinguish pages (HTML) from all other objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Unknown, or a class other than the two below.
    #[default]
    Other,
    /// A page: HTML, or a directory URL.
    Html,
    /// An image.
    Image,
}

impl Class {
    /// Returns the class for a media type such as `text/html; charset=utf-8`.
    #[must_use]
    pub fn from_type(media: &[u8]) -> Option<Self> {
        let essence = media.split(|b| *b == b';').next()?.trim_ascii();
        if essence.is_empty() || essence == b"-" {
            return None;
        }
        let starts = |prefix: &[u8]| {
            essence.len() >= prefix.len() && essence[..prefix.len()].eq_ignore_ascii_case(prefix)
        };
        Some(if starts(b"text/html") || starts(b"application/xhtml") {
            Self::Html
        } else if starts(b"image/") {
            Self::Image
        } else {
            Self::Other
        })
    }

    /// Returns the class for the path of a URL (the query is ignored): directories and `.html` are pages.
    #[must_use]
    pub fn from_path(url: &[u8]) -> Self {
        const HTML: [&[u8]; 4] = [b"html", b"htm", b"shtml", b"asp"];
        const IMAGE: [&[u8]; 8] = [
            b"gif", b"jpg", b"jpeg", b"png", b"xbm", b"webp", b"svg", b"ico",
        ];
        let path = url
            .split(|b| matches!(b, b'?' | b'#'))
            .next()
            .unwrap_or(url);
        let file = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        let Some(dot) = file.iter().rposition(|b| *b == b'.') else {
            return if path.ends_with(b"/") {
                Self::Html
            } else {
                Self::Other
            };
        };
        let ending = &file[dot + 1..];
        let is = |list: &[&[u8]]| list.iter().any(|e| ending.eq_ignore_ascii_case(e));
        if is(&HTML) {
            Self::Html
        } else if is(&IMAGE) {
            Self::Image
        } else {
            Self::Other
        }
    }

    /// Returns the class for its number in the compact form ([`crate::compact`]).
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Other,
            1 => Self::Html,
            2 => Self::Image,
            _ => return None,
        })
    }
}

/// A set of yes-or-no facts about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The URL contains a query or `cgi`: caches of the 1990s did not store such answers.
    pub const QUERY: Self = Self(1);
    /// According to the log or the generator, the answer must not be stored.
    pub const UNCACHEABLE: Self = Self(2);
    /// The client forced a reload (`no-cache`).
    pub const RELOAD: Self = Self(4);
    /// The logging proxy answered from its cache.
    pub const HIT: Self = Self(8);
    /// A conditional request, or an answer of 304.
    pub const CONDITIONAL: Self = Self(16);
    /// The logging proxy refused the request (denied, error).
    pub const DENIED: Self = Self(32);
    /// The transfer of the answer was aborted: its size is not the size of the object.
    pub const ABORTED: Self = Self(64);

    /// True if every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds `other` if `yes` is true.
    #[must_use]
    pub const fn with_if(self, other: Self, yes: bool) -> Self {
        if yes { self.with(other) } else { self }
    }
}

impl Request {
    /// True if a shared cache of the 1990s would store the answer: GET or HEAD, a cacheable status, no query,
    /// and not marked as uncacheable or refused (the rule of Cao and Irani, USITS'97).
    #[must_use]
    pub const fn is_cacheable(&self) -> bool {
        matches!(self.method, Method::Get | Method::Head)
            && matches!(self.status, 0 | 200 | 203 | 206 | 300 | 301 | 304)
            && !self.flags.has(Flags::QUERY)
            && !self.flags.has(Flags::UNCACHEABLE)
            && !self.flags.has(Flags::DENIED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_from_paths_and_types() {
        for (path, class) in [
            (&b"/a/"[..], Class::Html),
            (b"/a/b.HTML?x=/y.gif", Class::Html),
            (b"http://h/x.GIF", Class::Image),
            (b"/a.b/c", Class::Other),
            (b"", Class::Other),
        ] {
            assert_eq!(Class::from_path(path), class, "{path:?}");
        }
        assert_eq!(Class::from_type(b"Text/HTML;x"), Some(Class::Html));
        assert_eq!(Class::from_type(b"image/png"), Some(Class::Image));
        assert_eq!(Class::from_type(b"-"), None);
    }

    #[test]
    fn cacheable_needs_all_of_it() {
        let ok = Request::default();
        assert!(ok.is_cacheable());
        for flags in [Flags::QUERY, Flags::UNCACHEABLE, Flags::DENIED] {
            assert!(!Request { flags, ..ok }.is_cacheable());
        }
        assert!(
            !Request {
                method: Method::Post,
                ..ok
            }
            .is_cacheable()
        );
        assert!(!Request { status: 404, ..ok }.is_cacheable());
    }

    #[test]
    fn codes_round_trip() {
        for method in (0..=255).filter_map(Method::from_code) {
            assert_eq!(Method::from_code(method as u8), Some(method));
        }
        for class in (0..=255).filter_map(Class::from_code) {
            assert_eq!(Class::from_code(class as u8), Some(class));
        }
    }
}
