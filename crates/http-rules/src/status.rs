//! Status codes: which of them are understood, and which may have a heuristic lifetime.

/// True if Foxy knows the caching requirements of a final status code (RFC 9111 section 3, for
/// must-understand). These are the codes of RFC 9110 section 15 and some related registered codes.
#[must_use]
pub const fn is_understood(status: u16) -> bool {
    matches!(
        status,
        200..=206 | 300..=305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 428 | 429 | 431 | 451
            | 500..=505 | 511
    )
}

/// True if a status is heuristically cacheable (RFC 9110 section 15.1). A 206 counts only as part of a 200
/// and is judged like a 200.
#[must_use]
pub const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(
        status,
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// True if a status depends on a property of one request that is not part of the cache key: credentials,
/// conditions, ranges, expectations, size, early data, or frequency of requests. Another request for the same
/// URI must not get that answer. RFC 6585 forbids storing 428, 429, 431 and 511. After a 425, the client
/// repeats the request without early data (RFC 8470 section 5.2).
#[must_use]
pub const fn is_about_request(status: u16) -> bool {
    matches!(
        status,
        401 | 407 | 408 | 412 | 413 | 416 | 417 | 421 | 425 | 426 | 428 | 429 | 431 | 511
    )
}

/// Errors to which the negative lifetime applies.
#[must_use]
pub const fn is_negative(status: u16) -> bool {
    matches!(status, 404 | 405 | 410 | 414 | 501)
}

/// Server errors that stale-if-error covers (RFC 5861 section 4).
#[must_use]
pub const fn is_server_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}
