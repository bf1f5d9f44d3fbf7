//! Methods and versions.

/// A request method. Upper and lower case differ (RFC 9110 section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`
    Connect,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH` (RFC 5789)
    Patch,
    /// `PURGE`: it is not standardised, but common among caches.
    Purge,
    /// Any other token; its text is [`RequestHead::method_text`](crate::RequestHead::method_text).
    Other,
}

impl Method {
    /// The method with this text; [`Method::Other`] if this type has no variant for it.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Self {
        match text {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"POST" => Self::Post,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"CONNECT" => Self::Connect,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PATCH" => Self::Patch,
            b"PURGE" => Self::Purge,
            _ => Self::Other,
        }
    }

    /// True if the method changes nothing at the origin (RFC 9110 section 9.2.1). Unknown methods
    /// count as unsafe.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// True if the request may be sent again after a lost connection (RFC 9110 section 9.2.2).
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

/// The protocol version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// The text of this version in a message.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }

    pub(crate) const fn from_minor(minor: u8) -> Self {
        if minor == 0 {
            Self::Http10
        } else {
            Self::Http11
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn only_what_rfc_9110_names_is_safe_or_idempotent() {
        let all = "GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH PURGE X";
        let which = |is: fn(Method) -> bool| {
            let names = all
                .split(' ')
                .filter(|n| is(Method::from_text(n.as_bytes())));
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(which(Method::is_safe), "GET HEAD OPTIONS TRACE");
        assert_eq!(
            which(Method::is_idempotent),
            "GET HEAD PUT DELETE OPTIONS TRACE"
        );
    }
}
