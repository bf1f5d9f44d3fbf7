//! Large objects: stored as fragments while they stream in, visible once the head is put.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use foxy_base::{FieldBlock, KeyHash};
use foxy_format::{RecordKind, fragment_hash};

use crate::stats::add;
use crate::{Admission, DropReason, Engine, NewObject, Object, ObjectMeta, Put};

/// A response to be stored while its body streams in.
#[derive(Clone, Debug)]
pub struct NewLarge {
    /// Full key.
    pub key: Bytes,
    /// `key_hash(key)`.
    pub hash: KeyHash,
    /// Hash of what it is placed together with.
    pub group: u64,
    /// Facts; `version` is set by the engine.
    pub meta: ObjectMeta,
    /// Vary list and selecting values; opaque.
    pub vary: Bytes,
    /// Purge tags; opaque.
    pub tags: Bytes,
    /// Header fields.
    pub fields: FieldBlock,
    /// Length of the body, if known; one that turns out otherwise is not stored.
    pub length: Option<u64>,
}

/// A large object that is streaming in, in bounded memory: one fragment here, the others on their
/// way to disk. When disks do not keep up it is dropped, never slowed. Dropping it aborts.
#[derive(Debug)]
pub struct LargePut {
    engine: Arc<Engine>,
    new: NewLarge,
    version: u64,
    fragment_size: u32,
    filling: BytesMut,
    fragments: u32,
    length: u64,
    dropped: Option<DropReason>,
    finished: bool,
}

impl Engine {
    /// Begins to store a large object. The key's present entry stays as it is until `finish`;
    /// call [`Engine::supersede`] at header time.
    pub fn put_large(self: &Arc<Self>, new: NewLarge) -> LargePut {
        let mut put = LargePut {
            engine: self.clone(),
            version: self.next_version(),
            fragment_size: self.fragment_bytes(),
            filling: BytesMut::new(),
            fragments: 0,
            length: 0,
            dropped: None,
            finished: false,
            new,
        };
        if let Some(length) = put.new.length {
            put.check_length(length);
        }
        put
    }

    /// The longest object that may be stored: a quarter of the smallest store, or without one
    /// what the RAM tier keeps of large objects.
    #[must_use]
    pub fn object_bytes_max(&self) -> u64 {
        let room = |s: &crate::shared::StoreShared| {
            u64::from(s.geometry.segments) * u64::from(s.geometry.segment_bytes) / 4
        };
        let stores = self
            .stores()
            .filter(|s| s.takes_writes())
            .map(|s| room(s))
            .min();
        stores.unwrap_or_else(|| self.large_in_ram())
    }
}

impl LargePut {
    /// Adds bytes. Cheap once the object was dropped. The answer is whether it is still being stored.
    pub fn append(&mut self, mut data: &[u8]) -> bool {
        self.length += data.len() as u64;
        if self.dropped.is_none() {
            self.check_length(self.length);
        }
        while self.dropped.is_none() && !data.is_empty() {
            // A fragment is put when more follows: a body that fits into one is stored whole.
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

    /// Why it is not being stored any more.
    #[must_use]
    pub const fn dropped(&self) -> Option<DropReason> {
        self.dropped
    }

    /// Ends the body: the object replaces what its key holds and becomes visible, if all of it
    /// was stored. If not, the fragments are forgotten and the key is left as it is.
    pub fn finish(mut self) -> Put {
        if self.dropped.is_none() && self.new.length.is_some_and(|l| l != self.length) {
            self.drop_it(DropReason::Incomplete);
        }
        if self.dropped.is_none() && self.fragments == 0 {
            return self.finish_whole();
        }
        if self.dropped.is_none() && !self.filling.is_empty() {
            self.put_fragment();
        }
        let head = Arc::new(self.head());
        if let Some(reason) = self.dropped {
            // What it was to replace is out of date all the same.
            self.engine.supersede(head.hash(), head.key());
            return Put {
                object: head,
                admitted: Admission::Refused(reason),
            };
        }
        self.finished = true;
        let admitted = self.engine.store_object(&head);
        if !admitted.is_visible() {
            self.forget_fragments();
        }
        Put {
            object: head,
            admitted,
        }
    }

    /// Ends without storing anything; the key is left as it is. As dropping it.
    pub fn abort(self) {}

    fn finish_whole(mut self) -> Put {
        self.finished = true;
        let new = NewObject {
            key: self.new.key.clone(),
            hash: self.new.hash,
            group: self.new.group,
            meta: self.new.meta,
            vary: self.new.vary.clone(),
            tags: self.new.tags.clone(),
            fields: self.new.fields.clone(),
            body: exact(std::mem::take(&mut self.filling)),
        };
        self.engine.put(new)
    }

    fn check_length(&mut self, length: u64) {
        if length > self.engine.object_bytes_max() {
            self.drop_it(DropReason::TooLarge);
            add(&self.engine.counters.drop_too_large, 1);
        }
    }

    fn object(&self, kind: RecordKind, hash: KeyHash, body: Bytes) -> Object {
        let new = NewObject {
            key: self.new.key.clone(),
            hash,
            group: self.new.group,
            meta: self.new.meta,
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: FieldBlock::empty(),
            body,
        };
        Object {
            kind,
            total_length: self.new.length.unwrap_or(self.length),
            fragment_size: self.fragment_size,
            ..Object::from_new(new, self.version)
        }
    }

    fn head(&self) -> Object {
        let mut head = self.object(RecordKind::Head, self.new.hash, Bytes::new());
        head.vary = self.new.vary.clone();
        head.tags = self.new.tags.clone();
        head.fields = self.new.fields.clone();
        head.total_length = self.length;
        head.own_small_parts();
        head
    }

    fn put_fragment(&mut self) {
        let hash = fragment_hash(self.new.hash, self.version, self.fragments);
        let body = exact(std::mem::take(&mut self.filling));
        let mut object = self.object(RecordKind::Fragment, hash, body);
        object.fragment = self.fragments;
        self.fragments += 1;
        add(&self.engine.counters.fragments, 1);
        add(&self.engine.counters.put_bytes, object.body.len() as u64);
        let in_ram = self
            .new
            .length
            .is_some_and(|l| l <= self.engine.large_in_ram())
            || self.engine.route(self.new.group).is_none();
        match self.engine.admit(&Arc::new(object), in_ram) {
            Admission::Refused(reason) => self.drop_it(reason),
            // In RAM only it would soon have holes, unless RAM is all there is.
            Admission::Memory(reason) if reason != DropReason::NoStore => self.drop_it(reason),
            _ => {}
        }
    }

    fn drop_it(&mut self, reason: DropReason) {
        self.dropped = Some(reason);
        self.filling = BytesMut::new();
        self.forget_fragments();
    }

    /// Nothing can ask for these fragments any more: only the place they take is at stake.
    fn forget_fragments(&mut self) {
        for n in 0..std::mem::take(&mut self.fragments) {
            let hash = fragment_hash(self.new.hash, self.version, n);
            self.engine.supersede(hash, &self.new.key);
        }
    }
}

impl Drop for LargePut {
    fn drop(&mut self) {
        if !self.finished {
            self.forget_fragments();
        }
    }
}

/// The bytes in memory of their own length.
fn exact(filling: BytesMut) -> Bytes {
    if filling.capacity() > filling.len() + filling.len() / 8 + 64 {
        Bytes::copy_from_slice(&filling)
    } else {
        filling.freeze()
    }
}
