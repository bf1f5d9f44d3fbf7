//! Reading and writing of bytes: a small transport trait, waits with deadlines, and a read buffer.

mod body;
mod buffer;
mod io;
mod relay;
mod sweep;
mod tls;
mod transport;

pub(crate) use body::{BodyError, Piece, next_piece};
pub(crate) use buffer::ReadBuf;
pub(crate) use io::Io;
pub(crate) use relay::relay;
pub(crate) use sweep::{Activity, Sweep, TICK, Ticks};
pub(crate) use tls::{OriginStream, TlsStream};
pub(crate) use transport::Transport;
