//! Squid's native format: `time elapsed client code/status bytes method URL user hierarchy type`.

use std::io::Write;

use foxy_base::WallTime;
use foxy_proxy::{LogRecord, Outcome};

use super::redaction::ShownClient;
use super::{or_dash, url};

/// Appends one line.
pub(super) fn write((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    time(record.at, out);
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        " {:>6} {} {}/{:03} {} ",
        record.duration.as_millis(),
        client.address(),
        code(record.outcome),
        record.status,
        record.bytes_out
    );
    escaped(or_dash(record.method), out);
    out.push(b' ');
    escaped(or_dash(&url(record)), out);
    out.push(b' ');
    escaped(or_dash(record.user.as_bytes()), out);
    match record.origin {
        Some(origin) => {
            let _ = write!(out, " HIER_DIRECT/{} ", origin.ip());
        }
        None => out.extend_from_slice(b" HIER_NONE/- "),
    }
    // Only the media type itself: parameters may hold blanks.
    let kind = record
        .content_type
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default();
    escaped(or_dash(kind.trim_ascii()), out);
    out.push(b'\n');
}

/// Seconds since 1970, with three decimals.
pub(super) fn time(at: WallTime, out: &mut Vec<u8>) {
    let _ = write!(out, "{}.{:03}", at.secs(), at.millis().rem_euclid(1000));
}

/// The result words that log analysers know.
pub(super) fn code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::MemoryHit => "TCP_MEM_HIT",
        Outcome::DiskHit => "TCP_HIT",
        Outcome::Revalidated => "TCP_REFRESH_UNMODIFIED",
        Outcome::HitMaxStale | Outcome::HitWhileRevalidate => "TCP_HIT",
        Outcome::HitOnError => "TCP_REFRESH_FAIL_OLD",
        Outcome::Collapsed => "TCP_CF_HIT",
        Outcome::Refreshed => "TCP_REFRESH_MODIFIED",
        Outcome::Miss | Outcome::Bypass | Outcome::Purge | Outcome::Upgrade => "TCP_MISS",
        Outcome::Tunnel => "TCP_TUNNEL",
        Outcome::Denied => "TCP_DENIED",
        Outcome::OriginError => "TCP_MISS",
        Outcome::OriginTimeout => "TCP_MISS_TIMEDOUT",
        Outcome::ClientGone => "TCP_MISS_ABORTED",
        Outcome::Local | Outcome::BadRequest => "NONE_NONE",
    }
}

/// Fields are separated by blanks: what is not printable ASCII goes out as `%XX`.
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if byte.is_ascii_graphic() {
            out.push(*byte);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}
