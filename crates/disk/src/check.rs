//! Checks and error results that all queues share.

use crate::{AlignedBuf, Completion, Op, OpKind, QueueStats};
use std::io::{Error, ErrorKind, Result};

/// Checks the bounds of a transfer; `write` selects the error that a transfer past the end gets.
pub(crate) fn range(write: bool, at: u64, len: u64, disk: u64) -> Result<()> {
    match at.checked_add(len) {
        Some(end) if end <= disk => Ok(()),
        _ if write => Err(Error::new(
            ErrorKind::InvalidInput,
            "write past the end of the disk",
        )),
        _ => Err(Error::new(
            ErrorKind::UnexpectedEof,
            "read past the end of the disk",
        )),
    }
}

/// Checks a queue operation before it goes to the device.
pub(crate) fn op(op: &Op, disk: u64, block: u32) -> Result<()> {
    let (write, at, len, buf) = match &op.kind {
        OpKind::Flush => return Ok(()),
        OpKind::Read { at, buf, len } => (false, *at, *len, buf),
        OpKind::Write { at, buf, len } => (true, *at, *len, buf),
    };
    aligned(at, len as u64, block)?;
    let room = if write { buf.len() } else { buf.capacity() };
    if len == 0 || len > room {
        let why = "the length is zero or exceeds the buffer";
        return Err(Error::new(ErrorKind::InvalidInput, why));
    }
    range(write, at, len as u64, disk)
}

/// Checks that position and length are whole blocks.
pub(crate) fn aligned(at: u64, len: u64, block: u32) -> Result<()> {
    if at.is_multiple_of(block.into()) && len.is_multiple_of(block.into()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        "not a multiple of the disk's block",
    ))
}

/// Adds a submitted operation to the counters.
pub(crate) fn count(stats: &mut QueueStats, op: &Op) {
    match &op.kind {
        OpKind::Flush => stats.flushes += 1,
        OpKind::Read { len, .. } => {
            stats.reads += 1;
            stats.read_bytes += *len as u64;
        }
        OpKind::Write { len, .. } => {
            stats.writes += 1;
            stats.written_bytes += *len as u64;
        }
    }
}

/// The completion of `op`. The length of a read's buffer is set to the number of bytes read, or to 0 if the
/// read failed.
pub(crate) fn completion(op: Op, result: Result<()>) -> Completion {
    let buf: Option<AlignedBuf> = match op.kind {
        OpKind::Flush => None,
        OpKind::Write { buf, .. } => Some(buf),
        OpKind::Read { mut buf, len, .. } => {
            // `len` is used only after a success: the `len` of a refused read may exceed the capacity of its
            // buffer.
            buf.set_len(if result.is_ok() { len } else { 0 });
            Some(buf)
        }
    };
    Completion {
        token: op.token,
        result,
        buf,
    }
}
