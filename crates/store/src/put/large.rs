//! Large objects that are received from the first byte to the last, usually because their length is not known
//! before the end. They are stored as fragments while the body arrives, and become visible once the head is
//! put. `sparse` handles large objects whose head is stored first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::{Bytes, BytesMut};
use foxy_base::{FieldBlock, KeyHash};
use foxy_format::{RecordKind, fragment_hash};

use super::Puts;
use crate::interface::add;
use crate::removal::Catalogue;
use crate::{Admission, DropReason, NewObject, Object, ObjectMeta, Put};

/// A response that is to be stored while its body arrives.
#[derive(Clone, Debug)]
pub struct NewLarge {
    /// The full key.
    pub key: Bytes,
    /// [`Keys::hash`](crate::Keys::hash) of the key.
    pub hash: KeyHash,
    /// Hash of the group whose objects are placed together.
    pub group: u64,
    /// The facts about the object; the engine sets `version`.
    pub meta: ObjectMeta,
    /// The Vary list and the selecting values; opaque to the store.
    pub vary: Bytes,
    /// The purge tags; opaque to the store.
    pub tags: Bytes,
    /// The header fields.
    pub fields: FieldBlock,
    /// The length of the body, if known; a body of another length is not stored.
    pub length: Option<u64>,
}

impl NewLarge {
    /// Makes a large object with the key and the head of `new`, without its body. `length` is the length of
    /// the body, if known.
    #[must_use]
    pub fn of(new: &NewObject, length: Option<u64>) -> Self {
        Self {
            key: new.key.clone(),
            hash: new.hash,
            group: new.group,
            meta: new.meta,
            vary: new.vary.clone(),
            tags: new.tags.clone(),
            fields: new.fields.clone(),
            length,
        }
    }
}

/// A large object that is being received, in bounded memory. This value contains the fragment that is being
/// filled. The other fragments are on their way to disk. When disks are too slow, the object is dropped;
/// the sender is never slowed down. Dropping this value aborts the storing.
#[derive(Debug)]
pub struct LargePut {
    puts: Arc<Puts>,
    new: NewLarge,
    version: u64,
    fragment_size: u32,
    filling: BytesMut,
    stored: Arc<Stored>,
    length: u64,
    dropped: Option<DropReason>,
    /// True if the RAM tier may take the fragments of the object.
    ram: bool,
}

/// The fragments of an object that has no head yet. They can be read as long as this value exists. If the
/// head was not stored when the last reference to this value is dropped, the fragments are forgotten.
#[derive(Debug)]
pub struct Stored {
    catalogue: Arc<Catalogue>,
    head: Arc<Object>,
    fragments: AtomicU32,
    keep: AtomicBool,
}

impl Stored {
    /// Returns a provisional head, with which readers find the fragments before the real head exists. Its
    /// length is unknown.
    #[must_use]
    pub const fn head(&self) -> &Arc<Object> {
        &self.head
    }

    /// The number of bytes at the beginning of the body that are already in fragments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.fragments.load(Ordering::Acquire)) * u64::from(self.head.fragment_size)
    }
}

impl Drop for Stored {
    /// Removes the fragments if the head was not stored: no request can find them any more.
    fn drop(&mut self) {
        if self.keep.load(Ordering::Acquire) {
            return;
        }
        for n in 0..self.fragments.load(Ordering::Acquire) {
            let hash = fragment_hash(self.head.hash(), self.head.meta().version, n);
            self.catalogue.supersede(hash);
        }
    }
}

impl LargePut {
    /// Begins to store the object: sets the version and the fragment length, and does not change the
    /// contents of the key yet.
    pub(super) fn begin(puts: &Arc<Puts>, new: NewLarge, version: u64, fragment_size: u32) -> Self {
        let head = Arc::new(head_of(&new, version, fragment_size, u64::MAX));
        let stored = Stored {
            catalogue: Arc::clone(&puts.catalogue),
            head,
            fragments: AtomicU32::new(0),
            keep: AtomicBool::new(false),
        };
        let mut put = Self {
            puts: Arc::clone(puts),
            version,
            fragment_size,
            filling: BytesMut::new(),
            stored: Arc::new(stored),
            length: 0,
            dropped: None,
            ram: true,
            new,
        };
        if let Some(length) = put.new.length {
            put.check_length(length);
        }
        put
    }

    /// Makes the object bypass the RAM tier. None of its fragments is kept there, even if the object is
    /// short.
    #[must_use]
    pub const fn past_memory(mut self) -> Self {
        self.ram = false;
        self
    }

    /// Appends bytes. This is cheap once the object was dropped. Returns whether the object is still
    /// being stored.
    pub fn append(&mut self, mut data: &[u8]) -> bool {
        self.length += data.len() as u64;
        if self.dropped.is_none() {
            self.check_length(self.length);
        }
        while self.dropped.is_none() && !data.is_empty() {
            // A full fragment is put only when more bytes follow, because a body that fits into one
            // fragment is stored whole.
            let room = self.fragment_size as usize - self.filling.len();
            if room == 0 {
                self.put_fragment();
                continue;
            }
            let (part, rest) = data.split_at(room.min(data.len()));
            self.filling.extend_from_slice(part);
            data = rest;
        }
        self.dropped.is_none()
    }

    /// The reason why the object is not being stored any more.
    #[must_use]
    pub const fn dropped(&self) -> Option<DropReason> {
        self.dropped
    }

    /// Returns the fragments stored so far, so that they can be read while the rest arrives.
    #[must_use]
    pub const fn stored(&self) -> &Arc<Stored> {
        &self.stored
    }

    /// Ends the body. If all of it was stored, the object becomes visible and replaces the present object
    /// of its key. Otherwise the fragments are forgotten, and the present object is removed, because it is
    /// outdated.
    pub fn finish(mut self) -> Put {
        if self.dropped.is_none() && self.new.length.is_some_and(|l| l != self.length) {
            self.dropped = Some(DropReason::Incomplete);
        }
        if self.dropped.is_none() && self.stored.bytes() == 0 {
            return self.finish_whole();
        }
        if self.dropped.is_none() && !self.filling.is_empty() {
            self.put_fragment();
        }
        let head = head_of(&self.new, self.version, self.fragment_size, self.length);
        let head = Arc::new(self.puts.holds.hold(head));
        if let Some(reason) = self.dropped {
            // The present object of the key is outdated, although the new object does not replace it.
            self.puts.catalogue.supersede(head.hash());
            return Put {
                object: head,
                admitted: Admission::Refused(reason),
            };
        }
        let admitted = self.puts.store(&head, true);
        self.stored
            .keep
            .store(admitted.is_visible(), Ordering::Release);
        Put {
            object: head,
            admitted,
        }
    }

    /// Ends without storing anything and leaves the contents of the key unchanged. Dropping this value
    /// has the same effect.
    pub fn abort(self) {}

    fn finish_whole(self) -> Put {
        let new = NewObject {
            key: self.new.key,
            hash: self.new.hash,
            group: self.new.group,
            meta: self.new.meta,
            vary: self.new.vary,
            tags: self.new.tags,
            fields: self.new.fields,
            body: exact(self.filling),
        };
        match self.ram {
            true => self.puts.put(new),
            false => self.puts.put_past_memory(new),
        }
    }

    fn check_length(&mut self, length: u64) {
        if length > self.puts.object_bytes_max() {
            self.drop_it(DropReason::TooLarge);
            add(&self.puts.counters.drop_too_large, 1);
        }
    }

    fn put_fragment(&mut self) {
        let first = self.stored.fragments.load(Ordering::Relaxed) == 0;
        let bytes = self.new.length.unwrap_or(u64::from(self.fragment_size));
        if first && !self.puts.admitter.pays(self.new.hash, bytes) {
            self.drop_it(DropReason::NotAdmitted);
            return;
        }
        let body = exact(std::mem::take(&mut self.filling));
        let n = self.stored.fragments.load(Ordering::Relaxed);
        let length = self.new.length.unwrap_or(self.length);
        match self
            .puts
            .put_piece(&self.stored.head, n, length, body, self.ram)
        {
            Ok(()) => self.stored.fragments.store(n + 1, Ordering::Release),
            Err(reason) => self.drop_it(reason),
        }
    }

    fn drop_it(&mut self, reason: DropReason) {
        self.dropped = Some(reason);
        self.filling = BytesMut::new();
    }
}

/// Makes the head of a large object of `length` bytes.
pub(super) fn head_of(new: &NewLarge, version: u64, fragment_size: u32, length: u64) -> Object {
    let small = NewObject {
        key: new.key.clone(),
        hash: new.hash,
        group: new.group,
        meta: new.meta,
        vary: new.vary.clone(),
        tags: new.tags.clone(),
        fields: new.fields.clone(),
        body: Bytes::new(),
    };
    Object {
        kind: RecordKind::Head,
        total_length: length,
        fragment_size,
        ..Object::from_new(small, version)
    }
}

/// Returns the bytes without much unused memory. If their buffer is much longer than they are, they are
/// copied into an allocation of their length.
pub(super) fn exact(filling: BytesMut) -> Bytes {
    if filling.capacity() > filling.len() + filling.len() / 8 + 64 {
        Bytes::copy_from_slice(&filling)
    } else {
        filling.freeze()
    }
}
