//! The classes of status codes, such as 2xx, that metrics distinguish.

/// Labels of the classes. The class `none` is for requests without an answer: their clients left before an
/// answer began.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Returns the index in [`CLASSES`]. A status above 599 counts as 5xx (RFC 9110 section 15).
#[inline]
pub(super) fn class(status: u16) -> usize {
    usize::from(status / 100).min(CLASSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        for (status, label) in [
            (0, "none"),
            (103, "1xx"),
            (206, "2xx"),
            (304, "3xx"),
            (451, "4xx"),
            (599, "5xx"),
            (u16::MAX, "5xx"),
        ] {
            assert_eq!(CLASSES[class(status)], label);
        }
    }
}
