//! Memory in the kernel's send buffers that answers reserve. An answer with a long body keeps its
//! reservation during one time slice. After that, it may have to give the reservation to another answer.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_http_rules::range::Span;

use super::Link;
use super::reader::Reader;
use super::room::ROOM_PAUSE;
use crate::Event;
use crate::http::net::{Activity, Io, TICK, Ticks, Transport};
use crate::state::ledger::{Entry, Pressure, SendReservation, Use};
use crate::state::local::Local;

/// Longest body, in bytes, that is sent without a reservation.
const SHORT: u64 = 64 << 10;
/// The limits of a time slice: the bytes that the answer sends, and the time for which it has its
/// reservation. When one of the limits is reached, the answer may give its reservation to another answer.
const SLICE: (u64, Duration) = (256 << 10, Duration::from_secs(1));
/// Usual time slice of an answer that follows a running fill (the fetch of its object). It applies only if
/// range requests cannot fetch the rest of the body.
const LONG_SLICE: Duration = Duration::from_secs(3);
/// If another answer has waited for this time, a time slice of [`LONG_SLICE`] ends as early as other time
/// slices. Otherwise the last of a thousand answers could wait for so long that its client gives up.
const URGENT: Duration = Duration::from_secs(4);
/// An answer whose client reads gives up its reservation only if another answer has waited for at least this
/// time.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// Time after which a client whose TCP window stays small gets a time slice that uses up this window.
const UNCLEAR: Duration = Duration::from_secs(1);

/// The memory in the kernel's send buffers for one answer. It is freed on drop.
#[derive(Debug)]
pub(crate) struct Queued {
    /// The memory for all of a short body.
    _whole: Option<Entry>,
    /// The time slice of a longer body, which has memory for a part of the body.
    slice: Option<TimeSlice>,
    reader: Reader,
}

/// A reservation, the time at which the answer got the reservation, and the bytes that the connection had
/// sent by then.
#[derive(Debug)]
struct TimeSlice {
    _reservation: Rc<SendReservation>,
    began: MonoTime,
    from: u64,
    /// Number of bytes after which this time slice ends if other answers wait for a reservation. `None` if
    /// earlier time slices have shown that the client reads.
    trial: Option<u64>,
}

/// Reason why an answer gets no time slice, or no further time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceLost {
    /// The client has not read the bytes that were sent, or has reset the connection.
    Client,
    /// There was no memory for a reservation, or the connection is closed to make room for other connections.
    Memory,
}

impl<T: Transport> Link<T> {
    /// Waits for a reservation in the kernel's send buffers, for a body of `bytes` bytes. A short body does
    /// not wait for a reservation. It is entered in the ledger (the count of the memory for requests) only if
    /// memory is short. A longer body waits until other clients have read their answers. Clients that have
    /// not read for a long time are disconnected.
    ///
    /// # Errors
    /// Returned if no memory for a reservation becomes free within the time limit for progress, if this
    /// connection is closed to make room for other connections, or if the client resets the connection.
    pub(crate) async fn queue(&self, local: &Local, bytes: u64) -> Result<Queued, SliceLost> {
        let ledger = self.io().ledger();
        if bytes <= SHORT {
            // A slow client may leave the whole body in the kernel. If memory is short, the ledger counts the
            // body as memory of the connection. Then new connections wait, but answers that are ready do not.
            let whole = match ledger.pressure() {
                Pressure::Low => ledger.empty(Use::Queues),
                _ => self.take(bytes as usize),
            };
            return Ok(Queued {
                _whole: Some(whole),
                slice: None,
                reader: Reader::default(),
            });
        }
        let io = self.io();
        let mut reader = Reader::of(io);
        let timeout = local.timeouts.progress;
        let slice = begin_slice(local, io, (timeout, Activity::Queued), &mut reader).await?;
        Ok(Queued {
            _whole: None,
            slice: Some(slice),
            reader,
        })
    }

    /// Does the same as [`queue`](Self::queue), for several parts of a body.
    pub(crate) async fn queue_for(
        &self,
        local: &Local,
        spans: &[Span],
    ) -> Result<Queued, SliceLost> {
        let bytes = spans.iter().map(|span| span.len()).sum();
        self.queue(local, bytes).await
    }
}

impl Queued {
    /// Returns true if another answer waits, and this answer has used its reservation for long enough.
    ///
    /// Until Foxy knows that a client reads, the client gets only a part of its TCP window in a time slice.
    /// The client's kernel takes these bytes even if the client's program never reads them. So the memory of
    /// the reservation is free again after a round trip.
    ///
    /// The time slice of a client that reads ends only if another answer has waited for a long time. So each
    /// of many clients receives a part of its answer in time. While no answer has waited for long, an answer
    /// keeps its reservation until the answer is complete. An answer without interruptions ends earlier, and
    /// then frees its connection and its memory.
    pub(crate) fn is_over<T: Transport>(&self, local: &Local, io: &Io<T>) -> bool {
        let Some(slice) = &self.slice else {
            return false;
        };
        if slice.left_in_trial(io) == Some(0) && io.ledger().has_line() {
            return true;
        }
        let now = local.proxy.clock.mono();
        let over = slice.sent(io) >= SLICE.0 || now.since(slice.began) >= SLICE.1;
        over && io.ledger().longest_wait(now) >= LONG_WAIT
    }

    /// True if this time slice has lasted for at least [`LONG_SLICE`], or for the usual time if another
    /// answer has waited for at least [`URGENT`].
    pub(crate) fn has_lasted(&self, local: &Local) -> bool {
        let Some(slice) = &self.slice else {
            return false;
        };
        let now = local.proxy.clock.mono();
        let least = match local.proxy.ledger.longest_wait(now) >= URGENT {
            true => SLICE.1,
            false => LONG_SLICE,
        };
        now.since(slice.began) >= least
    }

    /// Returns the number of bytes that this time slice may still send. `None` if there is no such limit: no
    /// other answer waits, or the client reads.
    pub(crate) fn left_in_trial<T: Transport>(&self, io: &Io<T>) -> Option<u64> {
        let left = self.slice.as_ref()?.left_in_trial(io)?;
        io.ledger().has_line().then_some(left)
    }

    /// Waits until the client has acknowledged all bytes that were sent, because a waiting answer must have
    /// no bytes in the kernel. Then gives the reservation to another answer, and waits for the next time
    /// slice. If the client does not read the sent bytes, its answer does not enter the line of waiting
    /// answers. The wait for the next time slice may be twice as long as the wait for a first time slice. So
    /// if there is too little memory, answers that have not begun are refused first.
    ///
    /// # Errors
    /// Returns the reason why the answer cannot continue.
    pub(crate) async fn next_slice<T: Transport>(
        &mut self,
        local: &Local,
        io: &Io<T>,
    ) -> Result<(), SliceLost> {
        let timeout = local.timeouts.progress;
        let drained = io.drained(timeout).await;
        drained.map_err(|_| SliceLost::Client)?;
        let slice = self.slice.take();
        if slice.is_some_and(|slice| slice.trial.is_some()) {
            self.until_read(local, io).await?;
        }
        // An answer that has begun is not ended to make room for other answers.
        let timeout = (timeout.twice(), Activity::Work);
        let slice = begin_slice(local, io, timeout, &mut self.reader).await?;
        self.slice = Some(slice);
        Ok(())
    }

    /// Waits until the client has read most of the bytes that were sent to it. Until then the client gets no
    /// reservation, even if memory is free, because the bytes of its next time slice would stay in the
    /// kernel. After [`UNCLEAR`] the client gets one time slice that uses up its window. If the client
    /// announces no more bytes after this time slice, it does not read. No such time slice is given while
    /// other connections wait to be served, or if the memory for requests is small.
    async fn until_read<T: Transport>(
        &mut self,
        local: &Local,
        io: &Io<T>,
    ) -> Result<(), SliceLost> {
        let deadline = io.deadline(local.timeouts.progress);
        let began = local.proxy.clock.mono();
        let mut reset = pin!(io.until_reset());
        while !self.reader.has_read(io) {
            let waited = local.proxy.clock.mono().since(began);
            let can_try = local.entrance.waiting() == 0 && !io.ledger().is_small();
            if waited >= UNCLEAR && can_try && self.reader.use_up(io) {
                break;
            }
            io.set_activity(Activity::Unread);
            let leaves = tokio::time::timeout(ROOM_PAUSE, &mut reset).await.is_ok();
            if leaves || io.is_doomed() || local.sweep.now() >= deadline {
                return Err(SliceLost::Client);
            }
        }
        io.set_activity(Activity::Work);
        Ok(())
    }
}

impl TimeSlice {
    /// Returns the number of bytes that were sent in this time slice.
    fn sent<T: Transport>(&self, io: &Io<T>) -> u64 {
        io.sent().saturating_sub(self.from)
    }

    /// Returns the number of bytes that are left of [`trial`](Self::trial).
    fn left_in_trial<T: Transport>(&self, io: &Io<T>) -> Option<u64> {
        Some(self.trial?.saturating_sub(self.sent(io)))
    }
}

/// Waits for a reservation.
async fn begin_slice<T: Transport>(
    local: &Local,
    io: &Io<T>,
    (timeout, activity): (Ticks, Activity),
    reader: &mut Reader,
) -> Result<TimeSlice, SliceLost> {
    let reservation = match io.ledger().send_reservation() {
        Some(reservation) => reservation,
        None => wait_for_reservation(local, io, timeout, activity).await?,
    };
    io.limit_to(&reservation);
    Ok(TimeSlice {
        _reservation: reservation,
        began: local.proxy.clock.mono(),
        from: io.sent(),
        trial: reader.trial(io),
    })
}

async fn wait_for_reservation<T: Transport>(
    local: &Local,
    io: &Io<T>,
    timeout: Ticks,
    activity: Activity,
) -> Result<Rc<SendReservation>, SliceLost> {
    let waiting = io.ledger().wait_for_reservation(local.proxy.clock.mono());
    let deadline = io.deadline(timeout);
    let mut reset = pin!(io.until_reset());
    io.set_activity(activity);
    let reservation = loop {
        local.shed_stalled();
        // No event reports that memory of other uses was released, so the first answer in the line checks
        // this at short intervals. The other answers check less often, because a thousand waiting answers
        // would otherwise use much CPU time.
        let pause = match waiting.is_first() {
            true => ROOM_PAUSE,
            false => TICK,
        };
        tokio::select! {
            biased;
            reservation = poll_fn(|cx| waiting.poll_reservation(cx)) => break Ok(reservation),
            () = &mut reset => break Err(SliceLost::Client),
            () = poll_fn(|cx| io.poll_doomed(cx)) => {}
            () = tokio::time::sleep(pause) => {}
        }
        if io.is_doomed() || local.sweep.now() >= deadline {
            local.count(Event::MemoryRefused);
            break Err(SliceLost::Memory);
        }
    };
    io.set_activity(Activity::Work);
    reservation
}
