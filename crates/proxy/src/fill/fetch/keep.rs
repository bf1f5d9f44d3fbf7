//! Stores a body while it streams to the followers (the requests that share the fetch), within the memory
//! budget of all fetches.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use foxy_base::rule;
use foxy_http_rules::range::{ContentRange, Span};
use foxy_store::{FragmentPut, LargePut, Lookup, NewLarge, NewObject, Object, Put};

use super::judge::{StoreTarget, strong_etag};
use super::memory::FillMemory;
use super::part::Piece;
use super::{FillHead, ReadableBody};
use crate::fill::{Cover, Fill};
use crate::origin::UpstreamError;
use crate::state::local::Local;

/// Stores the body of one fill, if it may be stored.
#[derive(Debug)]
pub(crate) struct Keeper {
    kept: Kept,
    memory: FillMemory,
    length: Option<u64>,
    /// `done` is the number of body bytes that have arrived. `sizes` contains the smallest and the largest
    /// length of a body that the operator's rules allow to be stored.
    done: u64,
    sizes: (u64, u64),
    /// Offset up to which the fill continues without followers: the end of the fragment that was being
    /// written when the last follower left.
    goal: Option<u64>,
    /// True if the stored bytes stay long enough for followers to read them back.
    lasting: bool,
}

/// Smallest size in bytes of fragments that followers of a complete answer may read back from the store.
/// Smaller fragments may be overwritten before a follower has read them. So if fragments are smaller, these
/// followers read only from the window (the bytes in memory), and lookups find a large object only when it is
/// complete. This does not apply to the answer to a range request.
const LASTING: u64 = 64 << 10;

#[derive(Debug)]
enum Kept {
    /// The body is not stored.
    Nothing,
    /// All pieces so far are in memory. The object is stored in one piece at the end.
    Small(Box<Small>),
    /// A body of unknown length. It is stored piece by piece, and lookups find it when it is complete.
    Large(Box<LargePut>),
    /// A body of known length. Lookups find the object from the beginning of the transfer. Requests can read
    /// the bytes that are already stored.
    Sparse(Box<Sparse>),
}

#[derive(Debug)]
struct Sparse {
    put: FragmentPut,
    /// True if range requests can fetch the missing bytes later.
    divisible: bool,
}

#[derive(Debug)]
struct Small {
    target: StoreTarget,
    pieces: Vec<Bytes>,
    len: usize,
    length: Option<u64>,
}

impl Keeper {
    pub(crate) fn new(
        local: &Local,
        fill: &Fill<FillHead>,
        target: Option<StoreTarget>,
        length: Option<u64>,
    ) -> Self {
        let mut keeper = Self {
            kept: Kept::Nothing,
            memory: FillMemory::none(local),
            length,
            done: 0,
            sizes: sizes(local, target.as_ref()),
            goal: None,
            lasting: true,
        };
        let engine = &local.proxy.engine;
        let limit = u64::from(engine.fragment_bytes());
        keeper.lasting = limit >= LASTING;
        let late = !keeper.lasting && length.is_some_and(|n| n <= engine.object_bytes_max());
        match (target, length) {
            (Some(target), _) if target.sparse.is_some() => keeper.sparse(local, fill, target),
            (Some(target), length) if late || length.is_none_or(|length| length <= limit) => {
                keeper.memory.keep_all();
                keeper.kept = Kept::Small(Box::new(Small {
                    target,
                    pieces: Vec::new(),
                    len: 0,
                    length,
                }));
            }
            (Some(mut target), Some(length)) if length <= engine.object_bytes_max() => {
                let span = Span::new(0, length);
                target.sparse = Some(ContentRange {
                    span,
                    complete: Some(length),
                });
                keeper.sparse(local, fill, target);
            }
            _ => keeper.memory.open_window(local),
        }
        keeper
    }

    /// Stores the head (fields and length) of the object now, and its bytes when they arrive.
    fn sparse(&mut self, local: &Local, fill: &Fill<FillHead>, target: StoreTarget) {
        let range = target
            .sparse
            .and_then(|range| range.span.zip(range.complete));
        let (Some((span, complete)), true) = (range, self.memory.open_stored(local, fill)) else {
            return;
        };
        let engine = &local.proxy.engine;
        let divisible = target.has_usable_prefix;
        let new = new_large(target, None);
        let put = fill.if_storable(|| {
            let known = match engine.reads().lookup(new.hash, &new.key) {
                Lookup::Memory(object) => Some(object),
                _ => None,
            };
            // A fetch of another range may already have stored the head of the same version.
            let same = known.filter(|object| {
                let tag = strong_etag(object.fields());
                object.is_large()
                    && object.total_length() == complete
                    && tag.is_some()
                    && tag == strong_etag(&new.fields)
                    && object.vary() == &new.vary
            });
            same.or_else(|| {
                let put = engine.put_sparse(&new, complete);
                put.admitted.is_visible().then_some(put.object)
            })
        });
        if let Some(head) = put.flatten() {
            let put = engine.put_fragments(&head, span.start);
            self.kept = Kept::Sparse(Box::new(Sparse { put, divisible }));
        }
    }

    /// Creates a keeper that stores nothing, and has only a window for the followers.
    pub(super) fn nothing(local: &Local) -> Self {
        let mut keeper = Self::closed(local);
        keeper.memory.open_window(local);
        keeper
    }

    /// Creates a keeper that stores nothing yet and has no memory.
    fn closed(local: &Local) -> Self {
        Self {
            kept: Kept::Nothing,
            memory: FillMemory::none(local),
            length: None,
            done: 0,
            sizes: (0, u64::MAX),
            goal: None,
            lasting: true,
        }
    }

    /// Creates a keeper that stores the bytes of `span` of a large object whose head is already stored.
    pub(super) fn resume(
        local: &Local,
        fill: &Fill<FillHead>,
        (head, span): (&Arc<Object>, Span),
    ) -> Self {
        let mut keeper = Self::closed(local);
        keeper.length = Some(span.len());
        if keeper.memory.open_stored(local, fill) {
            let put = local.proxy.engine.put_fragments(head, span.start);
            let divisible = true;
            keeper.kept = Kept::Sparse(Box::new(Sparse { put, divisible }));
        }
        keeper
    }

    /// Returns the object that followers can read back while the fill continues.
    pub(super) fn readable_body(&self) -> Option<ReadableBody> {
        match &self.kept {
            Kept::Sparse(sparse) => Some(ReadableBody {
                head: Arc::clone(sparse.put.head()),
                _stored: None,
            }),
            Kept::Large(large) if self.lasting => Some(ReadableBody {
                head: Arc::clone(large.stored().head()),
                _stored: Some(Arc::clone(large.stored())),
            }),
            _ => None,
        }
    }

    /// Returns the range of bytes that this fill fetches for an object whose head is already stored. Returns
    /// `None` if no head is stored before the body.
    pub(super) fn cover(&self, end: Option<u64>) -> Option<Cover> {
        let Kept::Sparse(sparse) = &self.kept else {
            return None;
        };
        let head = sparse.put.head();
        Some(Cover {
            hash: head.hash(),
            version: head.meta().version,
            start: sparse.put.position(),
            end: end.unwrap_or_else(|| head.total_length()),
            continues: false,
            divisible: sparse.divisible,
        })
    }

    /// Returns the offset up to which the body can be read back; `None` if followers must read it from the
    /// window.
    pub(super) fn readable(&self) -> Option<u64> {
        match &self.kept {
            Kept::Sparse(sparse) => sparse.put.readable(),
            Kept::Large(large) if self.lasting && large.dropped().is_none() => {
                Some(large.stored().bytes())
            }
            _ => None,
        }
    }

    /// Returns the number of bytes that the fill keeps for its followers; `usize::MAX` while it keeps all
    /// bytes.
    pub(super) fn window(&self) -> usize {
        self.memory.window()
    }

    /// Adds a piece of the body. Returns true if the number of bytes that the fill keeps
    /// ([`window`](Self::window)) has changed.
    pub(crate) fn push(&mut self, local: &Local, fill: &Fill<FillHead>, bytes: &Bytes) -> bool {
        self.done = self.done.saturating_add(bytes.len() as u64);
        let long = self.done > self.sizes.1 && !matches!(self.kept, Kept::Nothing);
        if rule!(
            "fetch: a body longer than the operator allows is not stored",
            long,
            false
        ) {
            // The body is longer than the operator allows to be stored. Its length was not announced.
            self.kept = Kept::Nothing;
            self.memory.open_window(local);
            return true;
        }
        match &mut self.kept {
            Kept::Nothing => false,
            Kept::Large(large) => {
                if !large.append(bytes) {
                    self.kept = Kept::Nothing;
                }
                false
            }
            Kept::Sparse(sparse) => {
                if fill.if_storable(|| sparse.put.append(bytes)).is_none() {
                    self.kept = Kept::Nothing;
                }
                false
            }
            Kept::Small(small) => {
                let limit = local.proxy.engine.fragment_bytes() as usize;
                let fits = small.len + bytes.len() <= limit;
                let paid = self.memory.grow(bytes.len());
                if fits && paid {
                    small.len += bytes.len();
                    small.pieces.push(bytes.clone());
                    return false;
                }
                self.outgrow(local, fill, bytes);
                true
            }
        }
    }

    /// Called when the body does not fit into memory: from now on it is stored piece by piece.
    fn outgrow(&mut self, local: &Local, fill: &Fill<FillHead>, bytes: &Bytes) {
        let kept = std::mem::replace(&mut self.kept, Kept::Nothing);
        let room = self.memory.open_stored(local, fill);
        // The body of a 206 that is stored as a part must fit into memory, so a longer one is not stored.
        if let Kept::Small(small) = kept
            && small.target.piece.is_none()
            && room
        {
            let Small {
                target,
                pieces,
                length,
                ..
            } = *small;
            let mut large = local.proxy.engine.put_large(new_large(target, length));
            let taken = pieces
                .iter()
                .chain([bytes])
                .all(|piece| large.append(piece));
            if taken {
                self.kept = Kept::Large(Box::new(large));
            }
        }
    }

    /// True if the body will be stored.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.kept, Kept::Nothing)
    }

    /// True if the body is stored while it arrives.
    pub(crate) fn streams(&self) -> bool {
        matches!(self.kept, Kept::Sparse(_) | Kept::Large(_))
    }

    /// Notes that at least one request follows the fill.
    pub(super) fn followed(&mut self) {
        self.goal = None;
    }

    /// Checks that a fill is worth continuing after its last follower has left.
    ///
    /// # Errors
    /// [`UpstreamError::GivenUp`] if the fill is not worth continuing.
    pub(super) fn worth_finishing(
        &mut self,
        local: &Local,
        done: u64,
    ) -> Result<(), UpstreamError> {
        let config = &local.proxy.config.fill;
        let near_end = self.length.is_some_and(|length| {
            let enough =
                done.saturating_mul(100) / length.max(1) >= u64::from(config.finish_percent);
            length.saturating_sub(done) <= config.finish_remaining || enough
        });
        // A fill that ends within a fragment loses the bytes of this fragment. They would have to be fetched
        // again.
        let in_fragment = match &self.kept {
            Kept::Sparse(sparse) if sparse.divisible => {
                let put = &sparse.put;
                put.position() < *self.goal.get_or_insert_with(|| put.fragment_end())
            }
            _ => false,
        };
        if in_fragment || near_end && !matches!(self.kept, Kept::Nothing) {
            Ok(())
        } else {
            Err(UpstreamError::GivenUp)
        }
    }

    /// Called when the body is complete. Stores it, unless storing was forbidden meanwhile. Returns true if
    /// it is stored.
    pub(crate) fn finish(self, local: &Local, fill: &Fill<FillHead>) -> bool {
        let visible = |put: Option<Put>| put.is_some_and(|put| put.admitted.is_visible());
        match self.kept {
            Kept::Nothing => false,
            Kept::Small(_) | Kept::Large(_) if self.done < self.sizes.0 => false,
            Kept::Large(large) => visible(fill.if_storable(|| large.finish())),
            Kept::Sparse(sparse) => {
                let end = sparse.put.head().total_length();
                let whole = sparse.put.readable() == Some(end);
                if !whole && !sparse.divisible {
                    sparse.forget(local);
                }
                whole
            }
            Kept::Small(small) => small.put(local, fill),
        }
    }

    /// Called when the body ended early. Stores the received prefix if the rest can be fetched later.
    pub(crate) fn truncated(self, local: &Local, fill: &Fill<FillHead>) {
        let mut small = match self.kept {
            Kept::Small(small) => small,
            Kept::Sparse(sparse) if !sparse.divisible => return sparse.forget(local),
            _ => return,
        };
        let useless = !small.target.has_usable_prefix || small.len == 0;
        if rule!(
            "fetch: a truncated body that nothing identifies is not stored",
            useless,
            false
        ) {
            return;
        }
        if small.target.piece.is_none() {
            let piece = self.length.and_then(|n| Piece::prefix(small.len, n));
            let Some(piece) = piece else { return };
            small.target.piece = Some(piece);
        }
        small.put(local, fill);
    }
}

/// Returns the smallest and the largest size of a body that may be stored, in bytes. There are no limits here
/// for the part in a 206: the size of the complete object was checked when the head of the 206 arrived.
fn sizes(local: &Local, target: Option<&StoreTarget>) -> (u64, u64) {
    match target {
        Some(target) if target.piece.is_none() => {
            let rules = local.proxy.rules(target.rule);
            (rules.store_bytes_min, rules.store_bytes_max)
        }
        _ => (0, u64::MAX),
    }
}

fn new_large(target: StoreTarget, length: Option<u64>) -> NewLarge {
    NewLarge {
        key: target.key,
        hash: target.hash,
        group: target.group,
        meta: target.meta,
        vary: target.vary,
        tags: Bytes::new(),
        fields: target.fields,
        length,
    }
}

impl Sparse {
    /// Removes the object, which can never become complete.
    fn forget(&self, local: &Local) {
        let (engine, head) = (&local.proxy.engine, self.put.head());
        if engine.is_current_version(head) {
            engine.supersede(head.hash(), head.key());
        }
    }
}

impl Small {
    /// Stores the body. Returns true if it is stored.
    fn put(self, local: &Local, fill: &Fill<FillHead>) -> bool {
        let Self {
            mut target,
            mut pieces,
            len,
            ..
        } = self;
        let mut body = if pieces.len() == 1 {
            pieces.remove(0)
        } else {
            let mut body = BytesMut::with_capacity(len);
            pieces
                .iter()
                .for_each(|piece| body.extend_from_slice(piece));
            body.freeze()
        };
        let part = target.piece.take();
        let is_part = part.is_some();
        if let Some(piece) = part {
            let Some((range, all)) = piece.assemble(body) else {
                return false;
            };
            let Ok(changed) = target.for_part(local, range) else {
                return false;
            };
            (target, body) = (changed, all);
        }
        let engine = &local.proxy.engine;
        #[cfg(feature = "stand-in")]
        let (hash, group, bytes) = (target.hash, target.group, body.len() as u64);
        let put = fill.if_storable(|| {
            // A part does not replace an object that was stored after the head of the part's answer had
            // arrived.
            let taken = is_part
                && !matches!(
                    engine.reads().lookup(target.hash, &target.key),
                    Lookup::Miss
                );
            (!taken).then(|| engine.put(new_object(target, body)))
        });
        let kept = put.flatten().is_some_and(|put| put.admitted.is_visible());
        #[cfg(feature = "stand-in")]
        if let Some(stand_in) = local.proxy.stand_in.get().filter(|_| kept) {
            stand_in.keep(hash, group, bytes);
        }
        kept
    }
}

fn new_object(target: StoreTarget, body: Bytes) -> NewObject {
    NewObject {
        key: target.key,
        hash: target.hash,
        group: target.group,
        meta: target.meta,
        vary: target.vary,
        tags: Bytes::new(),
        fields: target.fields,
        body,
    }
}
