//! A transport whose waits have deadlines.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use foxy_base::{Clock, MonoTime};

use super::sweep::{Activity, Side, Watch};
use super::{Sweep, Ticks, Transport};
use crate::access::gatekeeper::Counted;
use crate::state::ledger::{Ledger, Pressure, RESERVATION_MAX, SendReservation};
use crate::state::turns::Turn;

/// A transport and its deadlines. An error of kind `TimedOut` means that a deadline has passed.
#[derive(Debug)]
pub(crate) struct Io<T> {
    transport: T,
    watch: Rc<Watch>,
    received: Cell<u64>,
    sent: Cell<u64>,
    timing: Option<Box<Timing>>,
    /// The request whose answer is slowed by limits.
    slowed: RefCell<Option<Rc<Counted>>>,
    /// The memory in the kernel's send buffers that is reserved for the present answer.
    reservation: RefCell<Weak<SendReservation>>,
    /// Largest number of bytes that the kernel may keep for the peer.
    kept_max: Cell<usize>,
    turn: Turn,
}

/// The next event of a peer.
enum Arrival {
    Bytes,
    /// The peer has closed its side.
    End,
    Reset,
}

/// The time of an answer's first byte, for logs that need it.
#[derive(Debug)]
struct Timing {
    clock: Arc<dyn Clock>,
    first: Cell<Option<MonoTime>>,
}

impl<T: Transport> Io<T> {
    pub(crate) fn new(transport: T, sweep: &Sweep) -> Self {
        Self {
            transport,
            watch: sweep.watch(),
            received: Cell::new(0),
            sent: Cell::new(0),
            timing: None,
            slowed: RefCell::new(None),
            reservation: RefCell::default(),
            kept_max: Cell::new(RESERVATION_MAX),
            turn: Turn::default(),
        }
    }

    /// Makes the connection record the time at which the first byte of each answer is sent.
    pub(crate) fn time_answers(&mut self, clock: &Arc<dyn Clock>) {
        self.timing = Some(Box::new(Timing {
            clock: Arc::clone(clock),
            first: Cell::new(None),
        }));
    }

    /// Returns the time at which the first byte since the last call of this function was sent.
    pub(crate) fn take_first_byte(&self) -> Option<MonoTime> {
        self.timing.as_ref()?.first.take()
    }

    pub(crate) fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the number of bytes received since the connection began.
    pub(crate) fn received(&self) -> u64 {
        self.received.get()
    }

    /// Returns the number of bytes sent since the connection began.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Returns the deadline of a wait that begins now and lasts for `after`. Several waits can share one
    /// deadline.
    pub(crate) fn deadline(&self, after: Ticks) -> Ticks {
        self.watch.deadline(after)
    }

    /// Returns the activity of the connection.
    #[cfg(test)]
    pub(crate) fn activity(&self) -> Activity {
        self.watch.activity()
    }

    /// Sets the activity of the connection.
    pub(crate) fn set_activity(&self, activity: Activity) {
        self.watch.set_activity(activity);
    }

    /// Sets the number that distinguishes the client from other clients.
    pub(crate) fn set_client(&self, client: u64) {
        self.watch.set_client(client);
    }

    /// Sets the flag of the listener. The connection ends when it is idle and `closed` is true.
    pub(crate) fn set_closed(&self, closed: &Rc<Cell<bool>>) {
        self.watch.set_closed(closed);
    }

    /// Lets the kernel receive more bytes before Foxy reads them, because the peer sends a long body.
    pub(crate) fn widen_receive(&self) {
        self.transport.widen_receive();
    }

    /// Returns true if the connection must end to make room for other connections.
    pub(crate) fn is_doomed(&self) -> bool {
        self.watch.is_doomed()
    }

    /// Polls for the moment at which the connection must end to make room for other connections.
    pub(crate) fn poll_doomed(&self, cx: &Context<'_>) -> Poll<()> {
        self.watch.register(cx.waker());
        match self.watch.is_doomed() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Returns the ledger, which counts the memory that all connections share.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        self.watch.ledger()
    }

    /// Reads the bytes that have arrived. Returns `WouldBlock` if no bytes have arrived.
    #[inline]
    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.transport.try_read(into)?;
        self.received.set(self.received.get() + n as u64);
        Ok(n)
    }

    /// Waits until `deadline` for bytes and reads them. Returns 0 at the end of the stream. No bytes are lost
    /// when the future is dropped.
    pub(crate) async fn read(&self, into: &mut [u8], deadline: Ticks) -> io::Result<usize> {
        loop {
            match self.try_read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            self.readable(deadline).await?;
        }
    }

    /// Waits until bytes can be read, or until the end of the stream has arrived.
    pub(crate) async fn readable(&self, deadline: Ticks) -> io::Result<()> {
        let _armed = self.arm(Side::Read, deadline);
        poll_fn(|cx| self.poll_side(cx, Side::Read)).await
    }

    /// Waits until the peer has disconnected. After a reset, the wait ends immediately. If the peer has only
    /// closed its side, the wait continues for [`CLOSED`], because the peer may still want the answer. If the
    /// peer has sent bytes that are still unread, only a reset ends the wait. Cancel safe.
    pub(crate) async fn gone(&self) {
        match self.next_arrival().await {
            Arrival::Bytes => self.reset_behind_unread().await,
            Arrival::End => tokio::time::sleep(CLOSED).await,
            Arrival::Reset => {}
        }
    }

    /// Waits until the peer has reset the connection. A peer that has disconnected resets the connection as soon
    /// as it receives bytes. Cancel safe.
    pub(crate) async fn until_reset(&self) {
        match self.next_arrival().await {
            Arrival::Bytes | Arrival::End => self.reset_behind_unread().await,
            Arrival::Reset => {}
        }
    }

    /// Waits for a reset that follows unread bytes or the end of the stream. No event reports such a reset.
    async fn reset_behind_unread(&self) {
        while !self.transport.is_reset() {
            tokio::time::sleep(RESET_PAUSE).await;
        }
    }

    /// Waits for the next event of the peer. If bytes arrive, leaves them in the stream.
    async fn next_arrival(&self) -> Arrival {
        loop {
            let readable = poll_fn(|cx| self.transport.poll_readable(cx)).await;
            match readable.and_then(|()| self.transport.try_peek()) {
                Ok(0) => return Arrival::End,
                Ok(_) => return Arrival::Bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Arrival::Reset,
            }
        }
    }

    /// Limits the bytes that the kernel keeps for the peer to the bytes of this reservation, as long as the
    /// reservation exists.
    pub(crate) fn limit_to(&self, reservation: &Rc<SendReservation>) {
        *self.reservation.borrow_mut() = Rc::downgrade(reservation);
        self.fit();
    }

    /// Limits the socket to the bytes of the reservation. A change of less than a quarter is not worth a
    /// system call.
    fn fit(&self) {
        let Some(reservation) = self.reservation.borrow().upgrade() else {
            return;
        };
        let (bytes, before) = (reservation.fit(), self.kept_max.get());
        if bytes.abs_diff(before) > before / 4 {
            self.transport.limit_send(bytes);
            self.kept_max.set(bytes);
        }
    }

    /// Waits until bytes can be written to the peer.
    pub(crate) async fn writable(&self, deadline: Ticks) -> io::Result<()> {
        self.writable_or_silent(deadline, || {}).await
    }

    /// Does the same as [`writable`](Self::writable). If the peer becomes silent during the wait, the
    /// reservation of the answer is reduced to the memory that the kernel needs for unacknowledged bytes.
    /// `silent` is then called once.
    pub(crate) async fn writable_or_silent(
        &self,
        deadline: Ticks,
        mut silent: impl FnMut(),
    ) -> io::Result<()> {
        self.fit();
        let before = self.watch.activity();
        self.watch.set_activity(Activity::Stalled);
        let _armed = self.arm(Side::Write, deadline);
        let mut is_silent = false;
        let ready = poll_fn(|cx| {
            if !is_silent && self.watch.is_silent() {
                is_silent = true;
                self.keep(self.transport.unacknowledged());
                silent();
            }
            self.poll_side(cx, Side::Write)
        });
        let ready = ready.await;
        self.watch.set_activity(before);
        if is_silent && ready.is_ok() {
            self.fit();
        }
        ready
    }

    /// Reduces the reservation to the memory that `bytes` unacknowledged bytes need.
    fn keep(&self, bytes: usize) {
        if let Some(reservation) = self.reservation.borrow().upgrade() {
            reservation.keep(bytes);
        }
    }

    /// Waits until the peer has acknowledged all bytes that were written. Fails if the peer acknowledges no
    /// byte for `timeout`. Cancel safe.
    ///
    /// # Errors
    /// `TimedOut`, or `NotConnected` if the peer has reset the connection. After a reset, the remaining bytes
    /// are never acknowledged.
    pub(crate) async fn drained(&self, timeout: Ticks) -> io::Result<()> {
        let mut before = usize::MAX;
        let mut reset = pin!(self.until_reset());
        let _armed = self.arm(Side::Write, self.deadline(timeout));
        loop {
            let left = self.transport.unacknowledged();
            if left == 0 {
                self.watch.set_activity(Activity::Work);
                return Ok(());
            }
            if left < before {
                before = left;
                self.keep(left);
                // The activity is set again, so that the silence of this client is measured from now on.
                self.watch.set_activity(Activity::Work);
                self.watch.set_activity(Activity::Stalled);
                self.watch.arm(Side::Write, self.deadline(timeout));
            }
            if self.watch.expired(Side::Write) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if tokio::time::timeout(DRAIN_PAUSE, &mut reset).await.is_ok() {
                return Err(io::ErrorKind::NotConnected.into());
            }
        }
    }

    /// Returns the number of bytes that the peer is ready to receive, or `None` if the system does not report
    /// it.
    pub(crate) fn window(&self) -> Option<u64> {
        self.transport.window().map(u64::from)
    }

    fn arm(&self, side: Side, deadline: Ticks) -> Armed<'_> {
        self.watch.arm(side, deadline);
        Armed {
            watch: &self.watch,
            side,
        }
    }

    #[inline]
    fn poll_side(&self, cx: &mut Context<'_>, side: Side) -> Poll<io::Result<()>> {
        if self.watch.expired(side) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.watch.register(cx.waker());
        match side {
            Side::Read => self.transport.poll_readable(cx),
            Side::Write => self.transport.poll_writable(cx),
        }
    }

    /// True if the present answer has a long body, and so has a reservation.
    #[inline]
    fn is_long(&self) -> bool {
        self.reservation.borrow().strong_count() > 0
    }

    /// Waits until the present answer may send its next bytes. An answer with a reservation waits for its
    /// turn among the long answers of the worker. Other answers do not wait. Called before each
    /// [`try_write`](Self::try_write) of a body. Cancel safe.
    #[inline]
    pub(crate) async fn turn(&self) {
        if self.is_long() && self.turn.bytes() == 0 && !self.watch.turns().take(&self.turn) {
            // The future is boxed, because without the box it would enlarge the future of every write.
            Box::pin(self.watch.turns().wait(&self.turn)).await;
        }
    }

    /// Writes as many bytes as fit now. Returns `WouldBlock` if none fit.
    #[inline]
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let ledger = self.watch.ledger();
        let mut most = match ledger.pressure() {
            Pressure::Low => usize::MAX,
            _ => ledger.send_bytes(),
        };
        let granted = self.turn.bytes();
        debug_assert!(
            granted > 0 || !self.is_long() || self.is_slowed(),
            "a long answer waits for its turn before it sends"
        );
        if granted > 0 && self.is_long() {
            most = most.min(granted);
        }
        let n = match most {
            usize::MAX => self.transport.try_write(slices)?,
            most => self.transport.try_write(&clipped(slices, most))?,
        };
        self.turn.sent(n);
        self.sent.set(self.sent.get() + n as u64);
        if let Some(timing) = &self.timing
            && n > 0
            && timing.first.get().is_none()
        {
            timing.first.set(Some(timing.clock.mono()));
        }
        Ok(n)
    }

    /// Writes all slices. Fails if no byte can be written for `timeout`. If the future is dropped, the number
    /// of written bytes is unknown.
    pub(crate) async fn write_all(
        &self,
        mut slices: &mut [IoSlice<'_>],
        timeout: Ticks,
    ) -> io::Result<()> {
        // This drops empty slices at the front.
        IoSlice::advance_slices(&mut slices, 0);
        let slowed = self.slowed.borrow().clone();
        if let Some(by) = slowed {
            // The future is boxed, because without the box it would enlarge the future of every write.
            return Box::pin(self.write_slowly(by, slices, timeout)).await;
        }
        while !slices.is_empty() {
            self.turn().await;
            match self.try_write(slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => IoSlice::advance_slices(&mut slices, n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable(self.deadline(timeout)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Slows all later writes down to the rates that these limits permit.
    pub(crate) fn slow(&self, by: Option<Rc<Counted>>) {
        *self.slowed.borrow_mut() = by;
    }

    /// Returns true if answers are slowed. Only [`write_all`](Self::write_all) slows them.
    pub(crate) fn is_slowed(&self) -> bool {
        self.slowed.borrow().is_some()
    }

    /// Does the same as [`write_all`](Self::write_all), but in pieces and with pauses.
    async fn write_slowly(
        &self,
        by: Rc<Counted>,
        mut slices: &mut [IoSlice<'_>],
        timeout: Ticks,
    ) -> io::Result<()> {
        while !slices.is_empty() {
            match self.try_write(&clipped(slices, SLOW_BYTES)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    IoSlice::advance_slices(&mut slices, n);
                    let mut wait = by.sent(n);
                    // The pause has short steps, so that a connection that must make room for others ends
                    // soon.
                    while !wait.is_zero() && !self.is_doomed() {
                        let step = wait.min(SLOW_STEP);
                        tokio::time::sleep(step).await;
                        wait -= step;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable(self.deadline(timeout)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes one slice. See [`write_all`](Self::write_all).
    pub(crate) async fn write(&self, bytes: &[u8], timeout: Ticks) -> io::Result<()> {
        self.write_all(&mut [IoSlice::new(bytes)], timeout).await
    }
}

/// Longest wait for a peer that has closed its side, while Foxy has nothing to send to it yet. The peer may
/// have finished sending, or may have disconnected. Foxy cannot distinguish the two cases.
const CLOSED: Duration = Duration::from_secs(2);
/// Largest number of bytes of one write if answers are slowed.
const SLOW_BYTES: usize = 16 << 10;
/// Longest pause between two checks whether the connection must end to make room for others.
const SLOW_STEP: Duration = Duration::from_millis(500);

/// Time between two checks for a reset that follows unread bytes or the end of the stream.
const RESET_PAUSE: Duration = Duration::from_millis(50);
/// Time between two checks of the bytes that the peer has acknowledged. The checks are needed, because no
/// event reports that the kernel's send queue is empty.
const DRAIN_PAUSE: Duration = Duration::from_millis(2);

/// Returns the first `most` bytes of these slices.
fn clipped<'a>(slices: &'a [IoSlice<'_>], most: usize) -> Vec<IoSlice<'a>> {
    let mut left = most;
    let mut taken = Vec::with_capacity(slices.len());
    for slice in slices {
        let len = slice.len().min(left);
        taken.push(IoSlice::new(&slice[..len]));
        left -= len;
        if left == 0 {
            break;
        }
    }
    taken
}

/// Clears the deadline when the wait ends, even if its future is dropped.
struct Armed<'a> {
    watch: &'a Watch,
    side: Side,
}

impl Drop for Armed<'_> {
    fn drop(&mut self) {
        self.watch.disarm(self.side);
    }
}
