//! Finds the error in a head that could not be parsed. This code runs rarely, so it is thorough and not fast.

use crate::Reject;
use crate::scan::is_token_byte;

/// The reason why a complete request head (every line ends with CRLF) was refused.
pub(crate) fn request(head: &[u8]) -> Reject {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    diagnose(head, request_line)
}

/// The reason why a complete response head was refused.
pub(crate) fn response(head: &[u8]) -> Reject {
    diagnose(head, status_line)
}

/// The reason why a trailer section was refused.
pub(crate) fn fields(section: &[u8]) -> Reject {
    section
        .split(|b| *b == b'\n')
        .find_map(|line| control(line).or_else(|| field_line(line)))
        .unwrap_or(Reject::BAD_FIELD)
}

fn diagnose(head: &[u8], first_line: fn(&[u8]) -> Reject) -> Reject {
    let mut lines = head.split(|b| *b == b'\n');
    let first = lines.next().unwrap_or_default();
    if let Some(reject) = control(first) {
        return reject;
    }
    for line in lines {
        if let Some(reject) = control(line).or_else(|| field_line(line)) {
            return reject;
        }
    }
    first_line(first.strip_suffix(b"\r").unwrap_or(first))
}

/// The reason to refuse `line` if it contains a byte that no line may contain. `line` still has its CR.
fn control(line: &[u8]) -> Option<Reject> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    text.iter().find_map(|byte| match byte {
        0 => Some(Reject::NUL_BYTE),
        b'\r' => Some(Reject::BARE_CR),
        b'\t' => None,
        byte if byte.is_ascii_control() => Some(Reject::CONTROL_BYTE),
        _ => None,
    })
}

fn field_line(line: &[u8]) -> Option<Reject> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if text.is_empty() {
        return None;
    }
    if matches!(text[0], b' ' | b'\t') {
        return Some(Reject::OBS_FOLD);
    }
    let name = text.iter().take_while(|b| is_token_byte(**b)).count();
    match &text[name..] {
        [b':', ..] if name > 0 => None,
        [b' ' | b'\t', rest @ ..] if name > 0 && rest.trim_ascii_start().starts_with(b":") => {
            Some(Reject::SPACE_BEFORE_COLON)
        }
        _ => Some(Reject::BAD_FIELD),
    }
}

fn request_line(line: &[u8]) -> Reject {
    let method = line.iter().take_while(|b| is_token_byte(**b)).count();
    let rest = &line[method..];
    if method == 0 || !rest.starts_with(b" ") {
        return if rest.is_empty() {
            Reject::BAD_REQUEST_LINE
        } else {
            Reject::BAD_METHOD
        };
    }
    let parts = rest[1..].split(|b| *b == b' ');
    let mut parts = parts.fuse();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(b""), ..) | (_, None | Some(b""), _) | (_, _, Some(_)) => Reject::BAD_REQUEST_LINE,
        (_, Some(word), None) => version(word).unwrap_or(Reject::BAD_TARGET),
    }
}

fn status_line(line: &[u8]) -> Reject {
    let word = line.split(|b| *b == b' ').next().unwrap_or_default();
    version(word).unwrap_or(Reject::BAD_STATUS_LINE)
}

/// The error in a version, if there is one.
fn version(word: &[u8]) -> Option<Reject> {
    match word {
        b"HTTP/1.0" | b"HTTP/1.1" => None,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Some(Reject::UNSUPPORTED_VERSION)
        }
        _ => Some(Reject::BAD_VERSION),
    }
}
