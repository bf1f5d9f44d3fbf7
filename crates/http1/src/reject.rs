//! Every refusal of this crate, with its status and its stable reason word.

/// The reason why a message is refused. The connection cannot be used any further, because the start of the
/// next message is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} {reason}")]
pub struct Reject {
    /// The status to answer with. For a request it is 400, 414, 417, 431, 501 or 505. For a response it is
    /// always 502.
    pub status: u16,
    /// A stable word in kebab case for logs, metrics and error pages.
    pub reason: &'static str,
}

/// Declares the refusals as associated constants, and lists all of them for the tests.
macro_rules! rejects {
    ($($(#[$doc:meta])* $name:ident = $status:literal $reason:literal;)*) => {
        impl Reject {
            $($(#[$doc])* pub const $name: Self = Self { status: $status, reason: $reason };)*
            /// All refusals, with the statuses for requests.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

rejects! {
    // Refusals because of the form of a head.
    /// A line of a head, a trailer section or chunked coding that ends with LF without CR. RFC 9112 section
    /// 2.2 permits a recipient to accept such a line. So some parsers accept such a line and other parsers do
    /// not, and an attacker can use this difference.
    BARE_LF = 400 "bare-lf";
    /// A CR without an LF after it.
    BARE_CR = 400 "bare-cr";
    /// A NUL byte in a head.
    NUL_BYTE = 400 "nul-byte";
    /// A control byte other than NUL in a head.
    CONTROL_BYTE = 400 "control-byte";
    /// White space or a second empty line before the first line.
    LEADING_WHITESPACE = 400 "leading-whitespace";
    /// A continued field line (RFC 9112 section 5.2), or white space before the first field.
    OBS_FOLD = 400 "obs-fold";
    /// White space between field name and colon (RFC 9112 section 5.1).
    SPACE_BEFORE_COLON = 400 "space-before-colon";
    /// A field line without colon, with an empty name or with a byte that names cannot have.
    BAD_FIELD = 400 "bad-field";
    /// A first line that does not consist of three parts with single spaces between them.
    BAD_REQUEST_LINE = 400 "bad-request-line";
    /// A method that is not a token.
    BAD_METHOD = 400 "bad-method";
    /// A version that is not `HTTP/digit.digit`.
    BAD_VERSION = 400 "bad-version";
    /// A version that is neither 1.0 nor 1.1.
    UNSUPPORTED_VERSION = 505 "unsupported-version";
    /// A status line that cannot be read, or a status below 100.
    BAD_STATUS_LINE = 502 "bad-status-line";
    /// A head longer than [`Limits::head_bytes`](crate::Limits::head_bytes).
    HEAD_TOO_LARGE = 431 "head-too-large";
    /// More field lines than [`Limits::fields`](crate::Limits::fields).
    TOO_MANY_FIELDS = 431 "too-many-fields";
    /// A target longer than [`Limits::target_bytes`](crate::Limits::target_bytes).
    TARGET_TOO_LONG = 414 "target-too-long";

    // Refusals because of the target or Host.
    /// A target that has no known form, has a form that the method does not permit, or contains a byte
    /// outside printable ASCII.
    BAD_TARGET = 400 "bad-target";
    /// A target with a fragment.
    FRAGMENT_IN_TARGET = 400 "fragment-in-target";
    /// An absolute target whose scheme is neither `http` nor `https`.
    UNSUPPORTED_SCHEME = 400 "unsupported-scheme";
    /// `user@` or `user:password@` before the host (RFC 9110 section 4.2.4).
    USERINFO = 400 "userinfo";
    /// A missing host where a host is required.
    EMPTY_HOST = 400 "empty-host";
    /// A host that is neither a name nor an IPv4 address nor a bracketed IPv6 address.
    BAD_HOST = 400 "bad-host";
    /// A port that is not a number from 1 to 65535.
    BAD_PORT = 400 "bad-port";
    /// `CONNECT` without a port.
    MISSING_PORT = 400 "missing-port";
    /// An HTTP/1.1 request without Host (RFC 9112 section 3.2).
    MISSING_HOST = 400 "missing-host";
    /// Two Host fields (RFC 9112 section 3.2).
    REPEATED_HOST = 400 "repeated-host";

    // Refusals because of framing.
    /// Content-Length and Transfer-Encoding together (RFC 9112 section 6.3).
    LENGTH_AND_CODING = 400 "length-and-coding";
    /// A Content-Length that contains other characters than digits, or is over 2^63 - 1.
    BAD_CONTENT_LENGTH = 400 "bad-content-length";
    /// A list of lengths in one Content-Length field, whether they are equal or not.
    LIST_CONTENT_LENGTH = 400 "list-content-length";
    /// Two Content-Length fields, whether they are equal or not.
    REPEATED_CONTENT_LENGTH = 400 "repeated-content-length";
    /// A Transfer-Encoding that is empty, or has empty members or parameters.
    BAD_TRANSFER_CODING = 400 "bad-transfer-coding";
    /// A transfer coding other than chunked.
    UNKNOWN_TRANSFER_CODING = 501 "unknown-transfer-coding";
    /// A Transfer-Encoding that contains chunked more than once.
    REPEATED_CHUNKED = 400 "repeated-chunked";
    /// A Transfer-Encoding with another coding after chunked.
    CHUNKED_NOT_LAST = 400 "chunked-not-last";
    /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 section 6.1).
    CODING_IN_HTTP10 = 400 "transfer-coding-in-http10";
    /// Content in a request whose method has none: CONNECT, TRACE (RFC 9110 sections 9.3.6 and 9.3.8).
    UNEXPECTED_BODY = 400 "unexpected-body";
    /// More members in Connection than [`Limits::connection_options`](crate::Limits::connection_options).
    TOO_MANY_CONNECTION_OPTIONS = 400 "too-many-connection-options";
    /// An Expect other than `100-continue` (RFC 9110 section 10.1.1).
    UNKNOWN_EXPECTATION = 417 "unknown-expectation";

    // Refusals because of bodies.
    /// A chunk size that is over 2^63 - 1, or does not consist of 1 to 16 hexadecimal digits.
    BAD_CHUNK_SIZE = 400 "bad-chunk-size";
    /// Other bytes than CRLF after a chunk's data.
    BAD_CHUNK_END = 400 "bad-chunk-end";
    /// A control byte in a chunk extension.
    BAD_CHUNK_EXTENSION = 400 "bad-chunk-extension";
    /// A chunk line that is over its limit, or chunk extensions that are together over their limit.
    CHUNK_LINE_TOO_LONG = 400 "chunk-line-too-long";
    /// A trailer section over its limits.
    TRAILERS_TOO_LARGE = 431 "trailers-too-large";
    /// The connection ended inside a body.
    TRUNCATED_BODY = 400 "truncated-body";
}

impl Reject {
    /// The same refusal for a response: the proxy answers 502 (RFC 9110 section 15.6.3).
    #[must_use]
    pub const fn of_response(self) -> Self {
        Self {
            status: 502,
            reason: self.reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reject;

    #[test]
    fn reasons_are_distinct_kebab_words_with_a_known_status() {
        let mut seen = std::collections::BTreeSet::new();
        for reject in Reject::ALL {
            assert!(seen.insert(reject.reason), "{reject} twice");
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            assert!(reject.reason.bytes().all(plain), "{reject}");
            assert!([400, 414, 417, 431, 501, 502, 505].contains(&reject.status));
            assert_eq!(reject.of_response().status, 502);
        }
    }
}
