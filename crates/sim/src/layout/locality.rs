//! Locality buffers: objects from one server are written together.
//!
//! Rule (USITS'99 section 3, LAZY-READS-LOC): there are B buffers; each is bound to one origin server. A
//! written object enters the buffer of its server. If the server has no buffer, the contents of a victim
//! buffer are written contiguously, and then this buffer is bound to the server. (The victim is the least
//! recently used buffer; the papers do not specify it.) A full buffer is written.
//! [`foxy_policy::LocalityBuffers`] chooses the buffers; this module stores which objects are in them.

use std::time::Duration;

use foxy_base::MonoTime;
use foxy_policy::{BufferId, GroupId, LocalityBuffers, LocalityConfig};

/// Parameters of the locality buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocConfig {
    /// Number of buffers (8 to 128 in the papers).
    pub buffers: u32,
    /// Size of each buffer in bytes (64 KB in the papers).
    pub bytes: u64,
}

impl LocConfig {
    /// Parameters for `buffers` buffers of 64 KiB.
    #[must_use]
    pub const fn of(buffers: u32) -> Self {
        Self {
            buffers,
            bytes: 64 << 10,
        }
    }
}

/// The buffers and the objects in them.
#[derive(Debug)]
pub struct Locality {
    choice: LocalityBuffers,
    contents: Vec<Vec<u64>>,
}

/// Objects that must be written when an object is added to a buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Objects that were in the chosen buffer before the addition, if the buffer must be emptied for the new
    /// object; otherwise empty.
    pub before: Vec<u64>,
    /// All objects of the buffer, including the new object, if the addition fills the buffer; otherwise
    /// empty.
    pub after: Vec<u64>,
}

impl Locality {
    /// Creates empty buffers.
    #[must_use]
    pub fn new(config: LocConfig) -> Self {
        let choice = LocalityBuffers::new(LocalityConfig {
            buffers: config.buffers,
            buffer_bytes: config.bytes,
            age_max: Duration::MAX,
        });
        Self {
            choice,
            contents: vec![Vec::new(); config.buffers.max(1) as usize],
        }
    }

    /// Adds an object that takes `bytes` bytes on disk. Returns the objects that must be written.
    pub fn add(&mut self, object: u64, bytes: u64, server: u32) -> Flush {
        let group = GroupId(u64::from(server));
        let placement = self.choice.place(group, bytes, MonoTime::default());
        let before = placement
            .flush_before
            .map(|id| self.empty(id))
            .unwrap_or_default();
        self.contents[placement.buffer.0 as usize].push(object);
        let after = if placement.flush_after {
            self.empty(placement.buffer)
        } else {
            Vec::new()
        };
        Flush { before, after }
    }

    fn empty(&mut self, id: BufferId) -> Vec<u64> {
        std::mem::take(&mut self.contents[id.0 as usize])
    }

    /// Removes an object. Its space in the buffer stays occupied until the buffer is written.
    pub fn remove(&mut self, object: u64) {
        for buffer in &mut self.contents {
            if let Some(at) = buffer.iter().position(|o| *o == object) {
                buffer.remove(at);
                return;
            }
        }
    }

    /// Empties a buffer that is not empty and returns its objects; `None` if all buffers are empty.
    pub fn flush_any(&mut self) -> Option<Vec<u64>> {
        let id = self.choice.flush_any()?;
        Some(self.empty(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_servers_objects_leave_together() {
        let mut locality = Locality::new(LocConfig {
            buffers: 2,
            bytes: 4096,
        });
        assert_eq!(locality.add(1, 1024, 10), Flush::default());
        assert_eq!(locality.add(2, 1024, 20), Flush::default());
        assert_eq!(locality.add(3, 1024, 10), Flush::default());
        locality.remove(3);
        // A third server takes the least recently used buffer, which belongs to server 20.
        assert_eq!(locality.add(4, 512, 30).before, [2]);
        // A full buffer is written together with its last object, but without the removed object.
        assert_eq!(locality.add(5, 2048, 10).after, [1, 5]);
        assert_eq!(locality.flush_any(), Some(vec![4]));
        assert_eq!(locality.flush_any(), None);
    }
}
