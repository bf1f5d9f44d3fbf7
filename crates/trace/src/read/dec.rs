//! The DEC proxy trace of 1996, in two forms: binary records and text columns. The trace was published as
//! binary records. A tool that was published with the trace prints the records as text columns.
//!
//! Binary (version 1.2): a header of 8192 bytes, then records of 60 bytes, little-endian: eleven u32 (event
//! duration, server duration, last modified, seconds, microseconds, client, server, port, path, query, size),
//! u32 url, u16 status, u8 type, u8 flags, u32 method, u32 protocol. Text: the same fields, but the time is
//! one number of seconds with six digits of microseconds.

use std::io::Read;

use super::Bad;
use super::words::{number, words};
use crate::{Class, Flags, Method, Request};

const HEADER: usize = 8192;
const RECORD: usize = 60;
/// The trace's flag bits for a query and for `cgi-bin` in the path.
const QUERY_BITS: u64 = 8 | 32;
const CGI_TYPE: u64 = 3;

/// True if `start` looks like the binary file: the first record after the header is plausible.
pub(crate) fn looks_binary(start: &[u8]) -> bool {
    let Some(record) = start.get(HEADER..HEADER + RECORD) else {
        return false;
    };
    let u32_at = |at: usize| u32_le(record, at);
    let plausible_time = (800_000_000..900_000_000).contains(&u32_at(12)); // 1995 to 1998
    plausible_time && u32_at(16) < 1_000_000 && record[52..56] != [0; 4] && u32_at(52) <= 4
}

fn u32_le(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

/// Reads the binary form.
#[derive(Debug)]
pub(crate) struct Binary<R> {
    input: R,
    records: u64,
}

impl<R: Read> Binary<R> {
    pub(crate) fn new(mut input: R) -> Result<Self, Bad> {
        let mut header = [0; HEADER];
        input
            .read_exact(&mut header)
            .map_err(|_| "shorter than its header")?;
        Ok(Self { input, records: 0 })
    }

    /// Offset of the next record.
    pub(crate) const fn offset(&self) -> u64 {
        HEADER as u64 + self.records * RECORD as u64
    }

    pub(crate) fn next(&mut self) -> Result<Option<Request>, Bad> {
        let mut record = [0; RECORD];
        let mut have = 0;
        while have < RECORD {
            match self.input.read(&mut record[have..]) {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => return Err("ends within a record"),
                Ok(n) => have += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err("cannot be read"),
            }
        }
        self.records += 1;
        Ok(Some(from_record(&record)))
    }
}

fn from_record(record: &[u8; RECORD]) -> Request {
    let at = |n: usize| u64::from(u32_le(record, n));
    Columns {
        seconds: at(12),
        micros: at(16),
        client: at(20),
        server: at(24),
        path: at(32),
        query: at(36),
        size: at(40),
        url: Some(at(44)),
        status: u64::from(u16::from_le_bytes([record[48], record[49]])),
        kind: u64::from(record[50]),
        flags: u64::from(record[51]),
        method: match at(52) {
            1 => Method::Get,
            2 => Method::Post,
            3 => Method::Head,
            4 => Method::Connect,
            _ => Method::Other,
        },
    }
    .request()
}

struct Columns {
    seconds: u64,
    micros: u64,
    client: u64,
    server: u64,
    path: u64,
    query: u64,
    size: u64,
    url: Option<u64>,
    status: u64,
    kind: u64,
    flags: u64,
    method: Method,
}

impl Columns {
    fn request(&self) -> Request {
        let dynamic = self.flags & QUERY_BITS != 0 || self.query != 0 || self.kind == CGI_TYPE;
        let parts = [self.server, self.path, self.query]
            .map(u64::to_le_bytes)
            .concat();
        Request {
            time_ms: (self.seconds * 1000 + self.micros / 1000) as i64,
            object: self.url.unwrap_or_else(|| foxy_base::hash64(0, &parts)),
            size: self.size,
            client: self.client as u32,
            server: self.server as u32,
            version: 0,
            status: self.status as u16,
            method: self.method,
            class: match self.kind {
                1 => Class::Html,
                2 | 7 => Class::Image,
                _ => Class::Other,
            },
            flags: Flags::default()
                .with_if(Flags::QUERY, dynamic)
                .with_if(Flags::CONDITIONAL, self.status == 304),
        }
    }
}

/// Parses a line of 15 or 16 columns (the heading has 18 words): time event server client size last-mod
/// status method protocol server port type flags path query \[url\]. The heading line is skipped.
pub(super) fn parse_text(line: &[u8]) -> Result<Option<Request>, Bad> {
    let mut columns: [&[u8]; 18] = [b""; 18];
    let mut count = 0;
    for word in words(line) {
        *columns.get_mut(count).ok_or("more than 18 columns")? = word;
        count += 1;
    }
    if columns[0] == b"time" && columns[1] == b"event" {
        return Ok(None);
    }
    if count < 15 {
        return Err("fewer than 15 columns");
    }
    // The last column, the URL number, is optional: version 1.0 of the trace does not have it.
    let n = |at: usize| number(columns[at]).ok_or("a column is not a number");
    let time = n(0)?;
    let kind = match columns[11].to_ascii_lowercase().as_slice() {
        b"html" => 1,
        b"gif" => 2,
        b"cgi" => CGI_TYPE,
        b"jpeg" => 7,
        _ => 0,
    };
    let columns = Columns {
        seconds: time / 1_000_000,
        micros: time % 1_000_000,
        client: n(3)?,
        size: n(4)?,
        status: n(6)?,
        method: Method::from_name(columns[7]),
        server: n(9)?,
        kind,
        flags: n(12)?,
        path: n(13)?,
        query: n(14)?,
        url: if count > 15 { Some(n(15)?) } else { None },
    };
    if columns.status > 999 || columns.seconds > 1 << 32 {
        return Err("status or time out of range");
    }
    Ok(Some(columns.request()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: u32, size: u32, url: u32) -> Vec<u8> {
        let head = [10, 20, 0, seconds, 250_000, 7, 8, 80, 9, 0, size, url];
        let mut bytes: Vec<u8> = head.iter().flat_map(|n: &u32| n.to_le_bytes()).collect();
        bytes.extend(200u16.to_le_bytes());
        bytes.extend([1, 0]);
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        assert_eq!(bytes.len(), RECORD);
        bytes
    }

    #[test]
    fn binary_records() {
        let mut file = vec![0; HEADER];
        file.extend(record(841_284_000, 5000, 77));
        assert!(looks_binary(&file) && !looks_binary(&file[..HEADER]));
        let mut reader = Binary::new(&file[..]).unwrap();
        let r = reader.next().unwrap().unwrap();
        assert_eq!((r.time_ms, r.size, r.object), (841_284_000_250, 5000, 77));
        assert_eq!(
            (r.client, r.server, r.status, r.class),
            (7, 8, 200, Class::Html)
        );
        assert_eq!(reader.next(), Ok(None));
        let mut cut = Binary::new(&file[..file.len() - 1]).unwrap();
        assert_eq!(cut.next(), Err("ends within a record"));
    }

    #[test]
    fn text_columns() {
        let heading = b"           time   event    server client    size last mod status  meth. \
            prot.   server  port   type  flags   path  query  url #";
        assert_eq!(parse_text(heading), Ok(None));
        let line = b"841284000250000       10       20     7    5000         0    200    GET   \
            http      8     80   html      8      9      3     77";
        let r = parse_text(line).unwrap().unwrap();
        assert_eq!((r.time_ms, r.size, r.object), (841_284_000_250, 5000, 77));
        assert!(r.flags.has(Flags::QUERY));
        assert_eq!(parse_text(b"1 2 3"), Err("fewer than 15 columns"));
    }
}
