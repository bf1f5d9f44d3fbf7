//! The way of a body into the store while it streams by, within the memory budget of all fills.

use bytes::{Bytes, BytesMut};
use foxy_store::{LargePut, Lookup, NewLarge, NewObject, Put};

use super::FillHead;
use super::judge::Place;
use super::part::Piece;
use crate::fill::Fill;
use crate::fill::budget::Reservation;
use crate::local::Local;
use crate::upstream::UpstreamError;

/// A window when the budget is spent.
const SMALL_WINDOW: usize = 64 << 10;

/// Keeps what is to be stored.
#[derive(Debug)]
pub(crate) struct Keeper {
    kept: Kept,
    memory: Option<Reservation>,
    window: usize,
    length: Option<u64>,
    /// Bytes so far, and how many the operator's rules want stored at least and at most.
    done: u64,
    sizes: (u64, u64),
}

#[derive(Debug)]
enum Kept {
    /// Not stored.
    Nothing,
    /// All pieces so far; the object is stored whole.
    Small(Box<Small>),
    /// Goes into the store piece by piece.
    Large(Box<LargePut>),
}

#[derive(Debug)]
struct Small {
    place: Place,
    pieces: Vec<Bytes>,
    len: usize,
    length: Option<u64>,
}

impl Keeper {
    pub(crate) fn new(local: &Local, place: Option<Place>, length: Option<u64>) -> Self {
        let mut keeper = Self {
            kept: Kept::Nothing,
            memory: local.proxy.fill_memory.reserve(0),
            window: 0,
            length,
            done: 0,
            sizes: sizes(local, place.as_ref()),
        };
        let limit = u64::from(local.proxy.engine.fragment_bytes());
        match place {
            Some(place) if length.is_none_or(|length| length <= limit) => {
                keeper.window = usize::MAX;
                keeper.kept = Kept::Small(Box::new(Small {
                    place,
                    pieces: Vec::new(),
                    len: 0,
                    length,
                }));
            }
            Some(place) => {
                let large = local.proxy.engine.put_large(new_large(place, length));
                keeper.kept = Kept::Large(Box::new(large));
                keeper.open_window(local);
            }
            None => keeper.open_window(local),
        }
        keeper
    }

    /// Bytes that the fill keeps for its followers; `usize::MAX` while all are kept anyway.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// From now on only a window is in memory.
    fn open_window(&mut self, local: &Local) {
        let want = local.proxy.config.fill.window;
        let held = self.memory.as_ref().map_or(0, Reservation::bytes);
        if let Some(memory) = &mut self.memory {
            memory.shrink_to(want);
            if held >= want || memory.grow(want - held) {
                self.window = want;
                return;
            }
            memory.shrink_to(0);
        }
        self.window = SMALL_WINDOW.min(want);
    }

    /// Takes a piece of the body; true if [`window`](Self::window) has changed.
    pub(crate) fn push(&mut self, local: &Local, bytes: &Bytes) -> bool {
        self.done = self.done.saturating_add(bytes.len() as u64);
        if self.done > self.sizes.1 && !matches!(self.kept, Kept::Nothing) {
            // Longer than the operator wants stored; its length was not announced.
            self.kept = Kept::Nothing;
            self.open_window(local);
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
            Kept::Small(small) => {
                let limit = local.proxy.engine.fragment_bytes() as usize;
                let fits = small.len + bytes.len() <= limit;
                let paid = self.memory.as_mut().is_some_and(|m| m.grow(bytes.len()));
                if fits && paid {
                    small.len += bytes.len();
                    small.pieces.push(bytes.clone());
                    return false;
                }
                self.outgrow(local, bytes);
                true
            }
        }
    }

    /// More than fits in memory: goes on piece by piece.
    fn outgrow(&mut self, local: &Local, bytes: &Bytes) {
        // A part has no form as a large object.
        if let Kept::Small(small) = std::mem::replace(&mut self.kept, Kept::Nothing)
            && small.place.piece.is_none()
        {
            let Small {
                place,
                pieces,
                length,
                ..
            } = *small;
            let mut large = local.proxy.engine.put_large(new_large(place, length));
            let taken = pieces
                .iter()
                .chain([bytes])
                .all(|piece| large.append(piece));
            if taken {
                self.kept = Kept::Large(Box::new(large));
            }
        }
        self.open_window(local);
    }

    /// Whether a fill without followers goes on.
    ///
    /// # Errors
    /// [`UpstreamError::GivenUp`] if it does not.
    pub(super) fn worth_finishing(&self, local: &Local, done: u64) -> Result<(), UpstreamError> {
        let config = &local.proxy.config.fill;
        let near_end = self.length.is_some_and(|length| {
            let enough =
                done.saturating_mul(100) / length.max(1) >= u64::from(config.finish_percent);
            length.saturating_sub(done) <= config.finish_remaining || enough
        });
        if near_end && !matches!(self.kept, Kept::Nothing) {
            Ok(())
        } else {
            Err(UpstreamError::GivenUp)
        }
    }

    /// The body is complete: stores it, unless that was forbidden meanwhile. True if it is stored.
    pub(crate) fn finish(self, local: &Local, fill: &Fill<FillHead>) -> bool {
        let visible = |put: Option<Put>| put.is_some_and(|put| put.admitted.is_visible());
        match self.kept {
            Kept::Nothing => false,
            _ if self.done < self.sizes.0 => false,
            Kept::Large(large) => visible(fill.if_storable(|| large.finish())),
            Kept::Small(small) => small.put(local, fill),
        }
    }

    /// The body ended early: its beginning is stored if it can be completed later.
    pub(super) fn cut(self, local: &Local, fill: &Fill<FillHead>) {
        let Kept::Small(mut small) = self.kept else {
            return;
        };
        if !small.place.beginning || small.len == 0 {
            return;
        }
        if small.place.piece.is_none() {
            let piece = self.length.and_then(|n| Piece::beginning(small.len, n));
            let Some(piece) = piece else { return };
            small.place.piece = Some(piece);
        }
        small.put(local, fill);
    }
}

/// The sizes that are stored; a part is judged by the size of its whole, at header time.
fn sizes(local: &Local, place: Option<&Place>) -> (u64, u64) {
    match place {
        Some(place) if place.piece.is_none() => {
            let rules = local.proxy.rules(place.rule);
            (rules.store_bytes_min, rules.store_bytes_max)
        }
        _ => (0, u64::MAX),
    }
}

fn new_large(place: Place, length: Option<u64>) -> NewLarge {
    NewLarge {
        key: place.key,
        hash: place.hash,
        group: place.group,
        meta: place.meta,
        vary: place.vary,
        tags: Bytes::new(),
        fields: place.fields,
        length,
    }
}

impl Small {
    /// Stores it; true if it is stored.
    fn put(self, local: &Local, fill: &Fill<FillHead>) -> bool {
        let Self {
            mut place,
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
        let part = place.piece.take();
        let is_part = part.is_some();
        if let Some(piece) = part {
            let Some((range, all)) = piece.assemble(body) else {
                return false;
            };
            let Ok(changed) = place.for_part(local, range) else {
                return false;
            };
            (place, body) = (changed, all);
        }
        let engine = &local.proxy.engine;
        let put = fill.if_storable(|| {
            // What was stored since this part's head arrived is at least as good as a part.
            let taken = is_part && !matches!(engine.lookup(place.hash, &place.key), Lookup::Miss);
            (!taken).then(|| engine.put(new_object(place, body)))
        });
        put.flatten().is_some_and(|put| put.admitted.is_visible())
    }
}

fn new_object(place: Place, body: Bytes) -> NewObject {
    NewObject {
        key: place.key,
        hash: place.hash,
        group: place.group,
        meta: place.meta,
        vary: place.vary,
        tags: Bytes::new(),
        fields: place.fields,
        body,
    }
}
