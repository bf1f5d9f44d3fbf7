//! The answers as a client received them, with the checks that scenarios make.

/// An answer. Each check returns the answer again, so that checks can be chained.
#[derive(Clone)]
pub struct Answer {
    /// Heads of the interim answers (1xx) that came before this answer.
    pub interim: Vec<String>,
    /// Status code; 0 if the connection ended without an answer.
    pub status: u16,
    /// Status line and fields. Trailers are appended.
    pub head: String,
    /// The body, decoded if it was chunked.
    pub body: Vec<u8>,
    /// True if the body ended as announced, and not because the connection was lost.
    pub whole: bool,
}

/// Value of the first field with this name in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The beginning of a body, for error messages.
fn beginning(body: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    if body.len() > 200 {
        format!("{shown}... ({} bytes)", body.len())
    } else {
        shown
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let whole = if self.whole { "whole" } else { "broken off" };
        write!(f, "{}{} [{whole}]", self.head, beginning(&self.body))
    }
}

impl Answer {
    /// Value of the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }

    fn cache_status(&self) -> &str {
        self.field("Cache-Status").unwrap_or_default()
    }

    /// Checks that the answer came from the cache.
    #[track_caller]
    pub fn hit(&self) -> &Self {
        assert!(
            self.cache_status().contains("; hit"),
            "expected a hit: {self:?}"
        );
        self
    }

    /// Checks that the answer came from the origin.
    #[track_caller]
    pub fn miss(&self) -> &Self {
        assert!(
            self.cache_status().contains("; fwd="),
            "expected a miss: {self:?}"
        );
        self
    }

    /// Checks that `Cache-Status` contains this text.
    #[track_caller]
    pub fn cache_says(&self, text: &str) -> &Self {
        assert!(
            self.cache_status().contains(text),
            "expected `{text}`: {self:?}"
        );
        self
    }

    /// Checks that the answer has this status.
    #[track_caller]
    pub fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Checks that the answer has this body, and that the body is complete.
    #[track_caller]
    pub fn says(&self, body: impl AsRef<[u8]>) -> &Self {
        let shown = String::from_utf8_lossy(&self.body);
        assert!(
            self.body == body.as_ref() && self.whole,
            "another body: {shown} of {}",
            self.head
        );
        self
    }

    /// Checks that the body contains this text (error pages contain a word for the reason).
    #[track_caller]
    pub fn mentions(&self, text: &str) -> &Self {
        let shown = String::from_utf8_lossy(&self.body);
        assert!(shown.contains(text), "no `{text}` in {}{shown}", self.head);
        self
    }

    /// Checks that the answer has a field with this value.
    #[track_caller]
    pub fn has(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.field(name), Some(value), "{name} of {}", self.head);
        self
    }

    /// Checks that the answer has no field with this name.
    #[track_caller]
    pub fn lacks(&self, name: &str) -> &Self {
        assert_eq!(self.field(name), None, "{name} of {}", self.head);
        self
    }

    /// Checks that the body is truncated, and that the client can detect this.
    #[track_caller]
    pub fn broke_off(&self) -> &Self {
        assert!(!self.whole, "presented as whole: {self:?}");
        self
    }
}
