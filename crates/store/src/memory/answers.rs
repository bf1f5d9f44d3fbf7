//! Answers that hand out objects.

use std::sync::Arc;

use super::object::Object;
use crate::{Admission, ReadPlan};

/// Answer of [`crate::Reads::lookup`].
#[derive(Clone, Debug)]
#[must_use]
pub enum Lookup {
    /// The object is in memory.
    Memory(Arc<Object>),
    /// Probably on disk: carry out the read and give it to [`crate::Reads::finish_read`].
    Disk(ReadPlan),
    /// Not stored.
    Miss,
}

/// Result of [`crate::Engine::put`].
#[derive(Clone, Debug)]
pub struct Put {
    /// The object as stored (also when it was not admitted, for the requests at hand).
    pub object: Arc<Object>,
    /// The result of the admission.
    pub admitted: Admission,
}
