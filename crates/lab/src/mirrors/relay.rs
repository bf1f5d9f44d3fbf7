//! A slow link to a distant server. Each direction delays all data, and all connections share the link's
//! rate.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// Delay of each direction.
pub(super) const DELAY: Duration = Duration::from_millis(25);
/// Bits per second of each direction.
pub(super) const RATE: u64 = 20_000_000;
/// Bytes that the link carries as one piece.
const PIECE: usize = 1460 * 4;
/// Greatest number of pieces of one connection that are on the link at the same time. At its full rate the
/// link carries fewer pieces at a time, so this limit does not reduce the rate.
const QUEUE: usize = 16;

/// One direction of the link. The value is the time at which this direction will have transmitted all data
/// that it has received so far.
#[derive(Clone, Debug, Default)]
struct Direction(Arc<Mutex<Option<Instant>>>);

impl Direction {
    /// Adds this number of bytes. Returns the time at which these bytes will be transmitted.
    fn carries(&self, bytes: usize) -> Instant {
        let takes = Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / RATE);
        let now = Instant::now();
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = free.map_or(now, |free| free.max(now)) + takes;
        *free = Some(done);
        done
    }
}

/// Forwards every connection to `to`, until the runtime ends.
pub(super) async fn relay(listener: TcpListener, to: SocketAddr) {
    let (there, back) = (Direction::default(), Direction::default());
    loop {
        let Ok((near, _)) = listener.accept().await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (there, back) = (there.clone(), back.clone());
        tokio::spawn(async move {
            // Opening the connection also takes a round trip on the link.
            sleep(DELAY * 2).await;
            let Ok(far) = TcpStream::connect(to).await else {
                return;
            };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let ((read, write), (far_read, far_write)) = (near.into_split(), far.into_split());
            tokio::spawn(carry(read, far_write, there));
            tokio::spawn(carry(far_read, write, back));
        });
    }
}

/// Forwards one direction of a connection until it ends.
async fn carry(read: OwnedReadHalf, write: OwnedWriteHalf, direction: Direction) {
    let (send, receive) = mpsc::channel(QUEUE);
    tokio::spawn(arrive(receive, write));
    let _ = depart(read, send, direction).await;
}

async fn depart(
    mut read: OwnedReadHalf,
    send: mpsc::Sender<(Instant, Vec<u8>)>,
    direction: Direction,
) -> io::Result<()> {
    loop {
        let mut piece = vec![0; PIECE];
        let length = read.read(&mut piece).await?;
        if length == 0 {
            return Ok(());
        }
        piece.truncate(length);
        let done = direction.carries(length);
        sleep_until(done).await;
        if send.send((done + DELAY, piece)).await.is_err() {
            return Ok(());
        }
    }
}

async fn arrive(mut receive: mpsc::Receiver<(Instant, Vec<u8>)>, mut write: OwnedWriteHalf) {
    while let Some((at, piece)) = receive.recv().await {
        sleep_until(at).await;
        if write.write_all(&piece).await.is_err() {
            return;
        }
    }
}
