//! Squid's native format: `time elapsed client code/status bytes method URL user hierarchy type`.

use foxy_base::WallTime;
use foxy_proxy::{LogRecord, Outcome};

use super::redaction::ShownClient;
use super::text::{self, number, or_dash, url};

/// Appends one line.
pub(super) fn write((record, client): (&LogRecord<'_>, ShownClient), out: &mut Vec<u8>) {
    time(record.at, out);
    out.push(b' ');
    elapsed(record.duration.as_millis(), out);
    out.push(b' ');
    client.address(out);
    out.push(b' ');
    out.extend_from_slice(code(record.outcome).as_bytes());
    out.push(b'/');
    text::digits::<3>(record.status.into(), out);
    out.push(b' ');
    number(record.bytes_out, out);
    out.push(b' ');
    escaped(or_dash(record.method), out);
    out.push(b' ');
    match url(record) {
        [b"", b"", b""] => out.push(b'-'),
        pieces => pieces.iter().for_each(|piece| escaped(piece, out)),
    }
    out.push(b' ');
    escaped(or_dash(record.user.as_bytes()), out);
    match record.origin {
        Some(origin) => {
            out.extend_from_slice(b" HIER_DIRECT/");
            text::address(origin.ip(), out);
            out.push(b' ');
        }
        None => out.extend_from_slice(b" HIER_NONE/- "),
    }
    // Only the media type is written, because parameters may contain blanks.
    let kind = record
        .content_type
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default();
    escaped(or_dash(kind.trim_ascii()), out);
    out.push(b'\n');
}

/// Appends seconds since 1970, with three decimals.
pub(super) fn time(at: WallTime, out: &mut Vec<u8>) {
    number(at.secs(), out);
    out.push(b'.');
    text::digits::<3>(at.millis().rem_euclid(1000) as u32, out);
}

/// Appends milliseconds, right-aligned in six columns.
fn elapsed(millis: u128, out: &mut Vec<u8>) {
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    let columns = millis.checked_ilog10().unwrap_or(0) as usize + 1;
    out.extend_from_slice(&b"      "[columns.min(6)..]);
    number(millis, out);
}

/// Returns Squid's result word for an outcome. Programs that analyse Squid's logs know these words.
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

/// Appends a text. Bytes that are not printable ASCII become `%XX`, because blanks separate the fields.
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    text::escaped(
        text,
        out,
        |byte| byte.is_ascii_graphic(),
        |byte, out| text::display(format_args!("%{byte:02X}"), out),
    );
}
