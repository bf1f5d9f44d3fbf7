//! Prepared replies of the origin. A reply consists of steps such as bytes, pauses, and the end of the
//! connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One step of a reply.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The head of an ordinary answer. The origin adds Date. If the request's validator matches, it sends a
    /// 304 instead.
    Head,
    /// Bytes that are sent unchanged.
    Raw(Vec<u8>),
    /// The origin sends nothing for this time.
    Pause(Duration),
    /// The origin sends nothing until the lock is free.
    Gate(Arc<Mutex<()>>),
    /// The origin closes the connection.
    Close,
    /// The origin reads this number of bytes from the client and sends them back.
    Echo(usize),
}

/// A reply of the origin.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) steps: Vec<Step>,
}

impl Reply {
    /// A reply with `200 OK` and this body.
    #[must_use]
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new("200 OK", body)
    }

    /// A reply with a body. `status` is the status code and the reason.
    #[must_use]
    pub fn new(status: &str, body: impl AsRef<[u8]>) -> Self {
        Self {
            status: status.to_owned(),
            fields: Vec::new(),
            body: body.as_ref().to_vec(),
            steps: vec![Step::Head],
        }
    }

    /// A reply of bytes that are sent unchanged. Nothing is added.
    #[must_use]
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            steps: vec![Step::Raw(bytes.as_ref().to_vec())],
            ..Self::new("", "")
        }
    }

    /// Adds a field to the head.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Makes the reply fresh for this many seconds.
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.field("Cache-Control", &format!("max-age={seconds}"))
    }

    /// Adds further bytes after the reply so far.
    #[must_use]
    pub fn then(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Raw(bytes.as_ref().to_vec()));
        self
    }

    /// Adds a pause before the following steps.
    #[must_use]
    pub fn pause(mut self, millis: u64) -> Self {
        self.steps.push(Step::Pause(Duration::from_millis(millis)));
        self
    }

    /// Delays the complete reply until the lock is free.
    #[must_use]
    pub fn behind(mut self, gate: &Arc<Mutex<()>>) -> Self {
        self.steps.insert(0, Step::Gate(Arc::clone(gate)));
        self
    }

    /// Makes the origin close the connection.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }

    /// Makes the origin send back the next bytes that it receives.
    #[must_use]
    pub fn echo(mut self, bytes: usize) -> Self {
        self.steps.push(Step::Echo(bytes));
        self
    }

    /// The value of a field of the reply.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}
