//! Foxy's own compact form: variable-length numbers in a zstd stream with a checksum.
//!
//! After the 8 bytes of [`MAGIC`] there is one record per request. A record begins with a tag byte (method in
//! bits 0-2, class in bits 3-4, bit 5 "status is 200", bit 6 "has a version", bit 7 "object is 8 plain
//! bytes") and a flags byte. LEB128 numbers follow: time difference from the previous record (zigzag),
//! object, client, server, size. The status follows if bit 5 is not set, and the version if bit 6 is set. The
//! stream's checksum detects truncated and damaged files.

use std::io::{BufRead, Write};

use crate::{Class, Flags, Method, Request};

/// First bytes of the decompressed stream.
pub const MAGIC: &[u8] = b"FOXYTRC1";

const STATUS_200: u8 = 1 << 5;
const VERSION: u8 = 1 << 6;
const PLAIN: u8 = 1 << 7;

/// Writes a compact trace. Call [`finish`](Self::finish) at the end.
pub struct CompactWriter<W: Write> {
    output: zstd::Encoder<'static, W>,
    last_time: i64,
    record: Vec<u8>,
    count: u64,
}

impl<W: Write> std::fmt::Debug for CompactWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompactWriter")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<W: Write> CompactWriter<W> {
    /// Starts a compact trace.
    ///
    /// # Errors
    /// Returns the error of `output`.
    pub fn new(output: W) -> std::io::Result<Self> {
        let mut output = zstd::Encoder::new(output, 3)?;
        output.include_checksum(true)?;
        output.write_all(MAGIC)?;
        Ok(Self {
            output,
            last_time: 0,
            record: Vec::with_capacity(64),
            count: 0,
        })
    }

    /// Appends a request.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn write(&mut self, request: &Request) -> std::io::Result<()> {
        self.record.clear();
        let plain = request.object >= 1 << 56;
        let mut tag = request.method as u8 | (request.class as u8) << 3;
        tag |= if request.status == 200 { STATUS_200 } else { 0 };
        tag |= if request.version != 0 { VERSION } else { 0 };
        tag |= if plain { PLAIN } else { 0 };
        let step = request.time_ms.wrapping_sub(self.last_time);
        self.last_time = request.time_ms;
        let out = &mut self.record;
        out.extend([tag, request.flags.0]);
        put(out, ((step << 1) ^ (step >> 63)) as u64);
        if plain {
            out.extend(request.object.to_le_bytes());
        } else {
            put(out, request.object);
        }
        put(out, u64::from(request.client));
        put(out, u64::from(request.server));
        put(out, request.size);
        if tag & STATUS_200 == 0 {
            put(out, u64::from(request.status));
        }
        if tag & VERSION != 0 {
            put(out, u64::from(request.version));
        }
        self.count += 1;
        self.output.write_all(&self.record)
    }

    /// Writes the remaining data and returns the output.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn finish(self) -> std::io::Result<W> {
        self.output.finish()
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a compact trace that has already been decompressed ([`open`](crate::open) decompresses it).
#[derive(Debug)]
pub struct CompactReader<R> {
    input: R,
    last_time: i64,
    /// Number of bytes read.
    offset: u64,
    /// Offset of the record that was read last.
    record: u64,
}

const CUT: &str = "ends within a record";
const WRONG: &str = "a number is out of range";

impl<R: BufRead> CompactReader<R> {
    /// Creates a reader and checks the first bytes.
    ///
    /// # Errors
    /// Returns an error text if the input is not a compact trace.
    pub fn new(mut input: R) -> Result<Self, &'static str> {
        let mut magic = [0; MAGIC.len()];
        input
            .read_exact(&mut magic)
            .map_err(|_| "shorter than its magic")?;
        if magic != MAGIC {
            return Err("not a compact Foxy trace");
        }
        Ok(Self {
            input,
            last_time: 0,
            offset: MAGIC.len() as u64,
            record: MAGIC.len() as u64,
        })
    }

    /// Offset of a record in the decompressed stream. The record is the one that was read last or, after an
    /// error, the one that could not be read.
    #[must_use]
    pub const fn record_at(&self) -> u64 {
        self.record
    }

    /// Returns the next request; `None` at the end.
    ///
    /// # Errors
    /// Returns an error text if the trace is damaged or cut off.
    pub fn read(&mut self) -> Result<Option<Request>, &'static str> {
        self.record = self.offset;
        match self.input.fill_buf() {
            Ok([]) => return Ok(None),
            Ok(_) => {}
            Err(_) => return Err("compressed data is damaged or cut off"),
        }
        let tag = self.byte()?;
        let flags = Flags(self.byte()?);
        let zigzag = self.number()?;
        let step = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        self.last_time = self.last_time.wrapping_add(step);
        let object = if tag & PLAIN != 0 {
            self.plain()?
        } else {
            self.number()?
        };
        let client = self.small()?;
        let server = self.small()?;
        let size = self.number()?;
        let status = if tag & STATUS_200 != 0 {
            200
        } else {
            self.small()?
        };
        let version = if tag & VERSION != 0 { self.small()? } else { 0 };
        Ok(Some(Request {
            time_ms: self.last_time,
            object,
            size,
            client,
            server,
            version,
            status: u16::try_from(status).map_err(|_| WRONG)?,
            method: Method::from_code(tag & 7).ok_or(WRONG)?,
            class: Class::from_code(tag >> 3 & 3).ok_or(WRONG)?,
            flags,
        }))
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let mut byte = [0];
        self.input.read_exact(&mut byte).map_err(|_| CUT)?;
        self.offset += 1;
        Ok(byte[0])
    }

    fn plain(&mut self) -> Result<u64, &'static str> {
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes).map_err(|_| CUT)?;
        self.offset += bytes.len() as u64;
        Ok(u64::from_le_bytes(bytes))
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(WRONG);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WRONG)
    }

    fn small(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.number()?).map_err(|_| WRONG)
    }
}

#[cfg(test)]
mod tests;
