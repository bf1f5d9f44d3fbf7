//! Places of answers in the send queues of the kernel, and turns with them.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_http_rules::range::Span;

use super::Link;
use super::room::ROOM_PAUSE;
use crate::Event;
use crate::http::net::{Doing, Io, Ticks, Transport};
use crate::state::ledger::{Entry, Place, Pressure, Use};
use crate::state::local::Local;

/// Longest body that goes out without a place.
const SHORT: u64 = 64 << 10;
/// Bytes after which an answer may give its place to another, and the time after which it may do so with
/// fewer.
const TURN: (u64, Duration) = (256 << 10, Duration::from_secs(1));
/// Longest wait for a place after which others give theirs up.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// Memory in the send queues of the kernel for one answer; given back when dropped.
#[derive(Debug)]
pub(crate) struct Queued {
    /// For all of a short body.
    _whole: Option<Entry>,
    /// For a part of a longer one.
    turn: Option<Turn>,
}

/// A place, and when and after how many bytes of the connection the answer got it.
#[derive(Debug)]
struct Turn {
    _place: Rc<Place>,
    began: MonoTime,
    from: u64,
}

/// Why an answer does not go on after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnLost {
    /// The client has not taken what was sent.
    Client,
    /// No place became free, or the connection is closed in favour of others.
    Memory,
}

impl<T: Transport> Link<T> {
    /// A place for a body of `bytes` bytes in the send queues of the kernel. Short bodies do not wait for
    /// a place; they are entered only when memory is short. A longer body waits until other clients have
    /// read their answers; clients that have not read for long are closed. `None` after the patience for
    /// progress, or if this connection is closed in favour of others.
    pub(crate) async fn queue(&self, local: &Local, bytes: u64) -> Option<Queued> {
        let ledger = self.io().ledger();
        if bytes <= SHORT {
            // A slow client may leave the whole body in the kernel. The body is entered as memory of
            // the connection: then new connections wait, and answers that are ready do not.
            let whole = match ledger.pressure() {
                Pressure::Low => ledger.empty(Use::Queues),
                _ => self.take(bytes as usize),
            };
            return Some(Queued {
                _whole: Some(whole),
                turn: None,
            });
        }
        let io = self.io();
        let turn = begin_turn(local, io, local.patience.progress, Doing::Queued).await;
        turn.map(|turn| Queued {
            _whole: None,
            turn: Some(turn),
        })
    }

    /// As [`queue`](Self::queue), for these parts of a body.
    pub(crate) async fn queue_for(&self, local: &Local, spans: &[Span]) -> Option<Queued> {
        let bytes = spans.iter().map(|span| span.len()).sum();
        self.queue(local, bytes).await
    }
}

impl Queued {
    /// True if another answer has waited for long, and this one has sent enough with its place. So each
    /// client of a crowd has a part of its answer in time. While no wait is long, an answer keeps its place
    /// to its end: the sooner it ends, the sooner its connection and its memory are free.
    pub(crate) fn is_over<T: Transport>(&self, local: &Local, io: &Io<T>) -> bool {
        let Some(turn) = &self.turn else {
            return false;
        };
        let now = local.proxy.clock.mono();
        let over = io.sent().saturating_sub(turn.from) >= TURN.0 || now.since(turn.began) >= TURN.1;
        over && io.ledger().longest_wait(now) >= LONG_WAIT
    }

    /// Gives the place to others, and waits for the next turn. The client must take before that what it
    /// was sent: those that wait have nothing in the kernel. The wait may be twice as long as that for the
    /// first turn, so that those are refused that have nothing yet.
    ///
    /// # Errors
    /// The answer cannot go on.
    pub(crate) async fn next_turn<T: Transport>(
        &mut self,
        local: &Local,
        io: &Io<T>,
    ) -> Result<(), TurnLost> {
        let patience = local.patience.progress;
        let drained = io.drained(patience).await;
        drained.map_err(|_| TurnLost::Client)?;
        self.turn = None;
        // An answer that has begun is not ended for others.
        let turn = begin_turn(local, io, patience.twice(), Doing::Work).await;
        self.turn = Some(turn.ok_or(TurnLost::Memory)?);
        Ok(())
    }
}

/// Waits for a place.
async fn begin_turn<T: Transport>(
    local: &Local,
    io: &Io<T>,
    patience: Ticks,
    doing: Doing,
) -> Option<Turn> {
    let place = match io.ledger().place() {
        Some(place) => place,
        None => wait_for_place(local, io, patience, doing).await?,
    };
    io.limit_to(&place);
    Some(Turn {
        _place: place,
        began: local.proxy.clock.mono(),
        from: io.sent(),
    })
}

async fn wait_for_place<T: Transport>(
    local: &Local,
    io: &Io<T>,
    patience: Ticks,
    doing: Doing,
) -> Option<Rc<Place>> {
    let waiting = io.ledger().wait_for_place(local.proxy.clock.mono());
    let deadline = io.deadline(patience);
    io.set_doing(doing);
    let place = loop {
        local.shed_stalled();
        // Memory of other uses comes back without a sign.
        let next = poll_fn(|cx| waiting.poll_place(cx));
        if let Ok(place) = tokio::time::timeout(ROOM_PAUSE, next).await {
            break Some(place);
        }
        if io.is_doomed() || local.sweep.now() >= deadline {
            break None;
        }
    };
    io.set_doing(Doing::Work);
    if place.is_none() {
        local.count(Event::MemoryRefused);
    }
    place
}
