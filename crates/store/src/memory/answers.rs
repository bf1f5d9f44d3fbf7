//! Results that contain objects.

use std::sync::Arc;

use super::object::Object;
use crate::{Admission, ReadPlan};

/// Result of [`crate::Reads::lookup`].
#[derive(Clone, Debug)]
#[must_use]
pub enum Lookup {
    /// The object is in memory.
    Memory(Arc<Object>),
    /// The object is probably on disk: carry out the read and pass the bytes to
    /// [`crate::Reads::finish_read`].
    Disk(ReadPlan),
    /// The object is not stored.
    Miss,
}

/// Result of [`crate::Engine::put`].
#[derive(Clone, Debug)]
pub struct Put {
    /// The object as stored. It is returned even if it was not admitted, so that the requests that wait
    /// for it can be answered.
    pub object: Arc<Object>,
    /// The result of the admission.
    pub admitted: Admission,
}
