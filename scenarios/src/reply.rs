//! Replies of the origin: pieces of bytes, pauses, and the end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One step of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The head of an ordinary answer; the origin adds Date and, if the request's validator fits,
    /// turns it into a 304.
    Head,
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// Silence.
    Pause(Duration),
    /// Silence until nobody holds the lock.
    Gate(Arc<Mutex<()>>),
    /// The connection ends.
    Close,
    /// Reads this many bytes from the client and sends them back.
    Echo(usize),
}

/// An answer that the origin plays.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) steps: Vec<Step>,
}

impl Reply {
    /// `200 OK` with this body.
    #[must_use]
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new("200 OK", body)
    }

    /// A status line's end and a body.
    #[must_use]
    pub fn new(status: &str, body: impl AsRef<[u8]>) -> Self {
        Self {
            status: status.to_owned(),
            fields: Vec::new(),
            body: body.as_ref().to_vec(),
            steps: vec![Step::Head],
        }
    }

    /// Bytes sent as they are; nothing is added.
    #[must_use]
    pub fn raw(bytes: impl AsRef<[u8]>) -> Self {
        Self {
            steps: vec![Step::Raw(bytes.as_ref().to_vec())],
            ..Self::new("", "")
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Fresh for this many seconds.
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.field("Cache-Control", &format!("max-age={seconds}"))
    }

    /// Further bytes.
    #[must_use]
    pub fn then(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Raw(bytes.as_ref().to_vec()));
        self
    }

    /// A pause before what follows.
    #[must_use]
    pub fn pause(mut self, millis: u64) -> Self {
        self.steps.push(Step::Pause(Duration::from_millis(millis)));
        self
    }

    /// The whole reply comes only when nobody holds the lock.
    #[must_use]
    pub fn behind(mut self, gate: &Arc<Mutex<()>>) -> Self {
        self.steps.insert(0, Step::Gate(Arc::clone(gate)));
        self
    }

    /// The origin closes the connection.
    #[must_use]
    pub fn close(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }

    /// The origin sends back the next bytes it receives.
    #[must_use]
    pub fn echo(mut self, bytes: usize) -> Self {
        self.steps.push(Step::Echo(bytes));
        self
    }

    /// The value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}
