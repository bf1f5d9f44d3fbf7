//! Writes heads into a reusable `Vec<u8>`, without the slower code of `std::fmt`. When the `Vec` is large
//! enough, the functions do not allocate.
//!
//! The functions write their arguments unchanged. Names and values come from parsed heads or from
//! the proxy itself, so they contain no CR, LF or NUL. Debug builds check this.

use foxy_base::Fields;

use crate::Version;

/// Appends `METHOD target VERSION` and CRLF. The version is `HTTP/1.0` or `HTTP/1.1`.
pub fn request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8], version: Version) {
    debug_assert!(is_clean(method) && is_clean(target));
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.push(b' ');
    out.extend_from_slice(version.as_str().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends `HTTP/1.1 status reason` and CRLF, with the registered phrase. The version is always HTTP/1.1,
/// even if the client uses HTTP/1.0 (RFC 9110 section 6.2).
pub fn status_line(out: &mut Vec<u8>, status: u16) {
    if status == 200 {
        // Most answers have this status.
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    status_line_with(out, status, reason_phrase(status).as_bytes());
}

/// Does the same as [`status_line`], but with this phrase.
pub fn status_line_with(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    debug_assert!((100..=999).contains(&status) && is_clean(reason));
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// Appends one field line.
#[inline]
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    debug_assert!(is_clean(name) && is_clean(value) && !name.is_empty());
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a field line whose value is a number, such as Content-Length or Age.
#[inline]
pub fn number_field(out: &mut Vec<u8>, name: &[u8], value: u64) {
    field(out, name, itoa::Buffer::new().format(value).as_bytes());
}

/// Appends field lines, such as those of [`forward_fields`](crate::forward_fields).
pub fn fields<'a>(out: &mut Vec<u8>, lines: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) {
    for (name, value) in lines {
        field(out, name, value);
    }
}

/// Appends all of `fields`.
pub fn all_fields<F: Fields + ?Sized>(out: &mut Vec<u8>, fields: &F) {
    for i in 0..fields.count() {
        let (name, value) = fields.field(i);
        field(out, name, value);
    }
}

/// Appends the blank line that ends a head.
pub fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

fn is_clean(text: &[u8]) -> bool {
    !text.iter().any(|b| matches!(b, b'\r' | b'\n' | 0))
}

/// The phrase that is registered for a status. It is empty for other statuses, which is permitted
/// (RFC 9112 section 4).
#[must_use]
pub const fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        _ => error_phrase(status),
    }
}

const fn error_phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}
