//! Copies bytes in both directions between two connections.

use std::cell::Cell;
use std::io::{self, IoSlice};

use super::{Io, ReadBuf, Ticks, Transport};
use crate::state::local::Local;

/// Largest number of bytes of one read.
const PIECE: usize = 64 << 10;

/// Copies bytes in both directions until both ends are closed, one end fails, or no bytes move for too long.
/// The bytes in the buffers are sent first.
pub(crate) async fn relay<A: Transport, B: Transport>(
    local: &Local,
    a: (&Io<A>, &mut ReadBuf),
    b: (&Io<B>, &mut ReadBuf),
) {
    let moved = Cell::new(local.sweep.now());
    let (a_io, a_buf) = a;
    let (b_io, b_buf) = b;
    let up = copy(local, a_io, a_buf, b_io, &moved);
    let down = copy(local, b_io, b_buf, a_io, &moved);
    // An error in one direction ends both directions. An end of stream ends only its own direction.
    let _ = tokio::try_join!(up, down);
}

async fn copy<A: Transport, B: Transport>(
    local: &Local,
    from: &Io<A>,
    buf: &mut ReadBuf,
    to: &Io<B>,
    moved: &Cell<Ticks>,
) -> io::Result<()> {
    let timeout = local.timeouts.tunnel;
    loop {
        if !buf.is_empty() {
            let len = buf.filled().len();
            to.write_all(&mut [IoSlice::new(buf.filled())], timeout)
                .await?;
            buf.consume(len);
            moved.set(local.sweep.now());
        }
        match buf.fill(from, PIECE, from.deadline(timeout)).await {
            Ok(0) => {
                to.transport().shutdown_write();
                return Ok(());
            }
            Ok(_) => moved.set(local.sweep.now()),
            // Silence in this direction is permitted while bytes move in the other direction.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                if local.sweep.now().since(moved.get()) >= timeout {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}
