//! Cached objects in memory. They are immutable and shared. The memory budget counts for each object the
//! bytes that it really occupies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use foxy_base::{FieldBlock, KeyHash, WallTime, rule};
use foxy_format::{RULES_BYTES, RecordHead, RecordKind, RecordLayout, RecordPlace, RecordSections};

use super::hold::Hold;
use super::mark::PurgeMark;

/// The bytes that the engine needs per object in addition to its contents. They consist of the struct with
/// its counters, the object's slot in the RAM tier, its slot in the hash table of that tier, and a slot in
/// the tier's list of evicted keys. This list has about as many keys as the tier has objects. The RAM
/// tier and its hash table grow by doubling, so a part of their slots is empty.
const OVERHEAD: usize = good_size(size_of::<Object>() + 16) + TIER_SLOT + GHOST_SLOT;
const TIER_SLOT: usize = 112;
const GHOST_SLOT: usize = 96;
/// The size of the counter that `Bytes` allocates for a part of an object when the part is first shared.
const SHARE: usize = 32;

/// Facts about a stored response. The caller passes them when it stores the response, and gets them back
/// with every hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Status code.
    pub status: u16,
    /// The caller's flags; opaque here.
    pub flags: u16,
    /// Unique number of this version of the object; the engine sets it at `put`.
    pub version: u64,
    /// The time at which the request was sent to the origin.
    pub request_time: WallTime,
    /// The time at which the response was received.
    pub response_time: WallTime,
    /// The time after which no use is permitted, not even revalidation or stale use. Expired records
    /// are not kept when their segment is reused.
    pub expires: WallTime,
    /// Digest of the caching rules; opaque here.
    pub rules: [u8; RULES_BYTES],
    /// Random number from which the keys of variants are made; 0 without Vary.
    pub nonce: u64,
    /// Number of the newest purge that was known before the request was sent to the origin.
    pub purge_sequence: u64,
}

impl Default for ObjectMeta {
    fn default() -> Self {
        Self {
            status: 200,
            flags: 0,
            version: 0,
            request_time: WallTime(0),
            response_time: WallTime(0),
            expires: WallTime(i64::MAX),
            rules: [0; RULES_BYTES],
            nonce: 0,
            purge_sequence: 0,
        }
    }
}

/// A response that is stored as one object.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// The full key; at most [`MAX_KEY_BYTES`].
    pub key: Bytes,
    /// [`Keys::hash`](crate::Keys::hash) of the key.
    pub hash: KeyHash,
    /// Hash of the group (page or origin) whose objects are placed together.
    pub group: u64,
    /// The facts; the engine sets `version`.
    pub meta: ObjectMeta,
    /// The Vary list and the selecting values; opaque here.
    pub vary: Bytes,
    /// The purge tags; opaque here.
    pub tags: Bytes,
    /// Header fields.
    pub fields: FieldBlock,
    /// The body, in an allocation of its own length. A slice would keep a longer buffer allocated, whose
    /// other bytes are not counted.
    pub body: Bytes,
}

/// The maximum length of a key, of a Vary section and of a tag section, in bytes.
pub const MAX_KEY_BYTES: usize = 32 << 10;

/// A cached object, the head of a large object, or a fragment of a large object. It is immutable.
#[derive(Clone, Debug)]
pub struct Object {
    pub(crate) hash: KeyHash,
    pub(crate) kind: RecordKind,
    pub(crate) group: u64,
    pub(crate) meta: ObjectMeta,
    pub(crate) key: Bytes,
    pub(crate) vary: Bytes,
    pub(crate) tags: Bytes,
    pub(crate) fields: FieldBlock,
    pub(crate) body: Bytes,
    pub(crate) total_length: u64,
    pub(crate) fragment_size: u32,
    pub(crate) fragment: u32,
    /// The bytes of memory that this object keeps allocated, overhead included.
    pub(crate) charge: usize,
    /// The newest purge with which the object was compared, and whether a soft purge covers the object.
    pub(crate) mark: PurgeMark,
    /// States whether a longer read for another object returned this object too, and no request came for it
    /// yet.
    pub(crate) brought: Brought,
    /// For a head: keeps the fragments of the version readable.
    pub(crate) hold: Option<Arc<Hold>>,
    /// The mark of the place from which the object was read ([`place_mark`]); 0 if it was not read from
    /// a disk.
    pub(crate) read_from: u64,
}

/// The number, plus 1, of the store from which a longer read fetched the object. It is 0 if the object was
/// requested already, or did not come as the neighbour of another object.
#[derive(Debug, Default)]
pub(crate) struct Brought(pub(crate) AtomicU32);

impl Brought {
    /// True if a longer read fetched the object and it was not requested yet.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Clone for Brought {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Returns a number that is different for each place of a record. A place consists of the store, the sequence
/// number of the segment's incarnation (it changes whenever the segment is reused), and the address.
pub(crate) fn place_mark(place: &RecordPlace) -> u64 {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&place.uuid.0);
    bytes[16..24].copy_from_slice(&place.sequence.to_le_bytes());
    bytes[24..].copy_from_slice(&place.address_units.to_le_bytes());
    foxy_base::hash64(1, &bytes)
}

/// The number of consecutive fragments of a large object that go to one store. With the usual clusters
/// these fragments have about 16 MB together, so that reading ahead stays on one disk and the whole
/// object uses all disks.
const SPAN: u32 = 64;

impl Object {
    /// Hash of the key.
    #[must_use]
    pub const fn hash(&self) -> KeyHash {
        self.hash
    }
    /// Full key (for a fragment: the key of its head).
    #[must_use]
    pub const fn key(&self) -> &Bytes {
        &self.key
    }
    /// Facts.
    #[must_use]
    pub const fn meta(&self) -> &ObjectMeta {
        &self.meta
    }
    /// Vary list and selecting values, as the caller passed them when it stored the object.
    #[must_use]
    pub const fn vary(&self) -> &Bytes {
        &self.vary
    }
    /// Purge tags, as the caller passed them when it stored the object.
    #[must_use]
    pub const fn tags(&self) -> &Bytes {
        &self.tags
    }
    /// Header fields.
    #[must_use]
    pub const fn fields(&self) -> &FieldBlock {
        &self.fields
    }
    /// Body; empty for the head of a large object.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }
    /// Hash of the group with which the object is placed.
    #[must_use]
    pub const fn group(&self) -> u64 {
        self.group
    }
    /// True for the head of a large object, whose body is in fragments.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        matches!(self.kind, RecordKind::Head)
    }
    /// True for a fragment.
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        matches!(self.kind, RecordKind::Fragment)
    }
    /// Length of the whole body in bytes, fragments included.
    #[must_use]
    pub const fn total_length(&self) -> u64 {
        self.total_length
    }
    /// Bytes in every fragment but the last; 0 for an object that is stored whole.
    #[must_use]
    pub const fn fragment_size(&self) -> u32 {
        self.fragment_size
    }
    /// Number of fragments; 0 for an object that is stored whole.
    #[must_use]
    pub const fn fragment_count(&self) -> u32 {
        if self.fragment_size == 0 {
            0
        } else {
            self.total_length.div_ceil(self.fragment_size as u64) as u32
        }
    }
    /// Bytes of memory that the object occupies, overhead included.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.charge
    }

    pub(crate) fn from_new(new: NewObject, version: u64) -> Self {
        let total_length = new.body.len() as u64;
        let mut object = Self {
            hash: new.hash,
            kind: RecordKind::Object,
            group: new.group,
            meta: ObjectMeta {
                version,
                ..new.meta
            },
            key: new.key,
            vary: new.vary,
            tags: new.tags,
            fields: new.fields,
            body: new.body,
            total_length,
            fragment_size: 0,
            fragment: 0,
            charge: 0,
            mark: PurgeMark::new(new.meta.purge_sequence),
            brought: Brought::default(),
            hold: None,
            read_from: 0,
        };
        object.own_small_parts();
        object
    }

    /// Copies the key, the Vary section and the tags into memory of their own length, and sets the charge.
    /// Before that, these parts may be slices of large network buffers. The slices would keep the whole
    /// buffers allocated, and nothing counts those buffers.
    pub(crate) fn own_small_parts(&mut self) {
        for part in [&mut self.key, &mut self.vary, &mut self.tags] {
            *part = Bytes::copy_from_slice(part);
        }
        let sections = self.sections();
        let parts = [
            sections.key,
            sections.vary,
            sections.tags,
            sections.fields,
            sections.body,
        ];
        let parts = parts.iter().filter(|p| !p.is_empty());
        let held: usize = parts.map(|p| good_size(p.len()) + SHARE).sum();
        self.charge = OVERHEAD + held;
    }

    /// The hash that chooses one of several stores. It is made of the key, and for a fragment also of
    /// the number of its span ([`SPAN`] consecutive fragments). It never depends on the group: otherwise
    /// all objects of one site would go to one disk.
    pub(crate) fn route(&self) -> u64 {
        match self.kind {
            RecordKind::Fragment => {
                foxy_base::hash64(u64::from(self.fragment / SPAN) + 1, &self.key)
            }
            _ => self.hash.high(),
        }
    }

    /// The parts of variable length as a record contains them.
    pub(crate) fn sections(&self) -> RecordSections<'_> {
        RecordSections {
            key: &self.key,
            vary: &self.vary,
            tags: &self.tags,
            fields: self.fields.as_bytes(),
            body: &self.body,
        }
    }

    /// Length of the object's record on disk.
    pub(crate) fn record_bytes(&self) -> usize {
        RecordLayout::of(&self.record_head(), &self.sections()).disk_bytes()
    }

    /// The fixed part of the object's record; the writer sets the place.
    pub(crate) fn record_head(&self) -> RecordHead {
        RecordHead {
            kind: self.kind,
            hash: self.hash,
            group: self.group,
            version: self.meta.version,
            purge_sequence: self.meta.purge_sequence,
            request_time: self.meta.request_time,
            response_time: self.meta.response_time,
            expires: self.meta.expires,
            nonce: self.meta.nonce,
            total_length: self.total_length,
            fragment_size: self.fragment_size,
            fragment: self.fragment,
            status: self.meta.status,
            flags: self.meta.flags,
            rules: self.meta.rules,
            ..RecordHead::default()
        }
    }

    /// Makes the object of a parsed record. `record` contains the bytes of the record. The buffer of
    /// these bytes is the only memory that the object keeps allocated. `held` is the number of bytes that the
    /// allocator needs for this buffer.
    pub(crate) fn from_record(
        head: &RecordHead,
        layout: &RecordLayout,
        record: &Bytes,
        held: usize,
    ) -> Option<Self> {
        let part = |range: &std::ops::Range<usize>| record.slice(range.clone());
        let fields = FieldBlock::parse(part(&layout.fields)).ok()?;
        Some(Self {
            hash: head.hash,
            kind: head.kind,
            group: head.group,
            meta: ObjectMeta {
                status: head.status,
                flags: head.flags,
                version: head.version,
                request_time: head.request_time,
                response_time: head.response_time,
                expires: head.expires,
                rules: head.rules,
                nonce: head.nonce,
                purge_sequence: head.purge_sequence,
            },
            key: part(&layout.key),
            vary: part(&layout.vary),
            tags: part(&layout.tags),
            fields,
            body: part(&layout.body),
            total_length: head.total_length,
            fragment_size: head.fragment_size,
            fragment: head.fragment,
            charge: OVERHEAD + held + SHARE,
            mark: PurgeMark::new(head.purge_sequence),
            brought: Brought::default(),
            hold: None,
            read_from: place_mark(&head.place),
        })
    }
}

/// Returns whether an object is fragment `n` of `head`.
pub(crate) fn is_fragment_of(object: &Object, head: &Object, n: u32) -> bool {
    object.is_fragment()
        && object.fragment == n
        && rule!(
            "fragments: they are of the version of their head",
            object.meta().version == head.meta().version,
            true
        )
        && object.key() == head.key()
}

/// The bytes of memory that an allocator with size classes uses for an allocation of `bytes` bytes. Between
/// two powers of two there are four size classes, as in mimalloc and jemalloc.
pub(crate) const fn good_size(bytes: usize) -> usize {
    if bytes <= 64 {
        return bytes.next_multiple_of(16);
    }
    let step = 1 << ((bytes - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

/// The bytes that an aligned buffer of `capacity` bytes needs: up to 4096 bytes more are allocated to
/// reach the alignment.
pub(crate) const fn aligned_size(capacity: usize) -> usize {
    good_size(capacity + 4096)
}
