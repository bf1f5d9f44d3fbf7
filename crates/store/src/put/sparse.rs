//! Large objects of known length. The head is stored first, fragments follow in any order, and each
//! fragment can be read as soon as it is put. An object that lacks fragments is a sparse object. The index
//! shows which fragments are present, also after a restart. So no other bookkeeping is needed to complete
//! an object.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::Puts;
use super::large::exact;
use crate::Object;

/// Stores a *run* of a large object: consecutive bytes of its body, which arrive in order. Each fragment is
/// put into the store when all of its bytes have arrived.
#[derive(Debug)]
pub struct FragmentPut {
    puts: Arc<Puts>,
    head: Arc<Object>,
    /// The offset of the next byte in the object.
    at: u64,
    skip: u64,
    filling: BytesMut,
    /// All complete fragments from the start of the run up to this offset are stored; `None` once a fragment
    /// was refused.
    reliable: Option<u64>,
    started: u64,
}

impl FragmentPut {
    /// Begins to store consecutive bytes from offset `start` on, for an object whose head is stored.
    pub(super) fn begin(puts: &Arc<Puts>, head: &Arc<Object>, start: u64) -> Self {
        let size = u64::from(head.fragment_size().max(1));
        Self {
            puts: Arc::clone(puts),
            head: Arc::clone(head),
            at: start,
            // Bytes before the first complete fragment belong to no record.
            skip: start.next_multiple_of(size) - start,
            filling: BytesMut::new(),
            reliable: Some(start.next_multiple_of(size)),
            started: start,
        }
    }

    /// The head of the object.
    #[must_use]
    pub const fn head(&self) -> &Arc<Object> {
        &self.head
    }

    /// The offset of the next byte in the object.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// The offset up to which all bytes since the start of the run can be read back. `None` once a fragment
    /// was refused, or if the run did not start at the beginning of a fragment.
    #[must_use]
    pub fn readable(&self) -> Option<u64> {
        let whole = self.started.is_multiple_of(self.size());
        self.reliable.filter(|_| whole)
    }

    /// The offset at which the fragment that is being filled ends. If the run stops before this offset,
    /// the bytes of this fragment that have arrived are not stored.
    #[must_use]
    pub fn fragment_end(&self) -> u64 {
        let end = (self.at + self.skip).next_multiple_of(self.size());
        end.min(self.head.total_length())
    }

    fn size(&self) -> u64 {
        u64::from(self.head.fragment_size().max(1))
    }

    /// Appends bytes. Bytes beyond the object's length are ignored.
    pub fn append(&mut self, mut data: &[u8]) {
        let over = self.at.saturating_add(data.len() as u64);
        let over = over.saturating_sub(self.head.total_length());
        data = &data[..data
            .len()
            .saturating_sub(usize::try_from(over).unwrap_or(usize::MAX))];
        let skipped = data.len().min(usize::try_from(self.skip).unwrap_or(0));
        self.skip -= skipped as u64;
        self.at += skipped as u64;
        data = &data[skipped..];
        while !data.is_empty() {
            let room =
                (self.size() - self.at % self.size()).min(self.head.total_length() - self.at);
            let take = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            self.filling.extend_from_slice(&data[..take]);
            self.at += take as u64;
            data = &data[take..];
            if take as u64 == room {
                self.put();
            }
        }
    }

    /// Puts the fragment whose last byte has just arrived.
    fn put(&mut self) {
        let n = u32::try_from((self.at - 1) / self.size()).unwrap_or(u32::MAX);
        let body: Bytes = exact(std::mem::take(&mut self.filling));
        let length = self.head.total_length();
        // A fragment of a purged object is not written, so no caller may rely on it.
        let purged = self.puts.purges.has_removed(&self.head);
        let put = |body| self.puts.put_piece(&self.head, n, length, body, true);
        if !purged && put(body).is_ok() {
            self.reliable = self.reliable.map(|_| self.at);
        } else {
            self.reliable = None;
        }
    }
}
