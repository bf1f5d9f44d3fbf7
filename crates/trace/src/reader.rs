//! Opens a trace: decompresses it, detects its format, and returns one request after the other.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::read::{self, LineParser};
use crate::{BadLines, Format, Request, TraceError, compact};

/// Options for reading.
#[derive(Default)]
pub struct Options {
    /// The format; `None` detects it.
    pub format: Option<Format>,
    /// Members of a JSON log. Fields that are not named use their usual member names.
    pub fields: Option<crate::FieldMap>,
    /// Callback that is called every [`PROGRESS_EVERY`] requests and at the end.
    pub progress: Option<Box<dyn FnMut(Progress) + Send>>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

/// Number of requests between two calls of the progress callback.
pub const PROGRESS_EVERY: u64 = 1 << 14;

/// Progress of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of requests read.
    pub requests: u64,
    /// Number of bytes read from the (compressed) file.
    pub bytes: u64,
    /// Length of the file; 0 if not known.
    pub total: u64,
}

/// Number of bytes that are read to detect the format.
const SAMPLE: usize = 16 << 10;
/// Length of the longest line that is read; a longer line is bad.
const LINE_MAX: usize = 64 << 10;
/// Minimum number of lines before the reader may give up. It gives up if more than half of the lines so far
/// are bad.
const HOPELESS_AFTER: u64 = 1000;

/// Opens a trace file. `.gz`, `.xz` and `.zst` files are recognised by their first bytes, not by their names.
///
/// # Errors
/// Returns an error if the file cannot be read or no known format fits.
pub fn open(path: &Path, options: Options) -> Result<Reader, TraceError> {
    let io = |source| TraceError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let total = file.metadata().map_err(io)?.len();
    let mut reader = Reader::new(path, Box::new(BufReader::new(file)), options)?;
    reader.progress.total = total;
    Ok(reader)
}

/// A stream of requests from a log. It ends after the first error.
pub struct Reader {
    path: PathBuf,
    format: Format,
    source: Source,
    bad: BadLines,
    progress: Progress,
    consumed: Arc<AtomicU64>,
    on_progress: Option<Box<dyn FnMut(Progress) + Send>>,
    done: bool,
}

enum Source {
    Lines {
        input: Box<dyn BufRead + Send>,
        parser: LineParser,
        line: Vec<u8>,
        number: u64,
    },
    Dec(read::dec::Binary<Box<dyn BufRead + Send>>),
    Compact(Box<compact::CompactReader<Box<dyn BufRead + Send>>>),
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads from any stream; `path` is used only in messages.
    ///
    /// # Errors
    /// The same errors as [`open`].
    pub fn new(
        path: &Path,
        raw: Box<dyn BufRead + Send>,
        options: Options,
    ) -> Result<Self, TraceError> {
        let io = |source| TraceError::Io {
            path: path.to_owned(),
            source,
        };
        let consumed = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            inner: raw,
            count: consumed.clone(),
        };
        let mut input = decompressed(BufReader::with_capacity(SAMPLE, counted)).map_err(io)?;
        let (start, failed) = first_bytes(&mut input);
        if start.is_empty() {
            let path = path.to_owned();
            return Err(match failed {
                Some(source) => TraceError::Io { path, source },
                None => TraceError::Empty { path },
            });
        }
        // Only JSON logs have a map of fields, so a map implies JSON.
        let named = options
            .format
            .or(options.fields.as_ref().map(|_| Format::Json));
        let Some(format) = named.or_else(|| Format::detect(&start)) else {
            return Err(unknown(path, &start));
        };
        // Bytes that were read before a failure are used. The failure is reported after the requests in these
        // bytes.
        let rest: Box<dyn BufRead + Send> = match failed {
            Some(error) => Box::new(BufReader::new(Failing(Some(error)))),
            None => input,
        };
        let input: Box<dyn BufRead + Send> = Box::new(std::io::Cursor::new(start).chain(rest));
        let source =
            source_for(format, input, options.fields).map_err(|problem| TraceError::Damaged {
                path: path.to_owned(),
                offset: 0,
                records: 0,
                problem,
            })?;
        Ok(Self {
            path: path.to_owned(),
            format,
            source,
            bad: BadLines::default(),
            progress: Progress::default(),
            consumed,
            on_progress: options.progress,
            done: false,
        })
    }

    /// The format of the log.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The bad lines so far.
    #[must_use]
    pub const fn bad(&self) -> &BadLines {
        &self.bad
    }

    /// Progress so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            bytes: self.consumed.load(Ordering::Relaxed),
            ..self.progress
        }
    }

    /// The URL of the request returned last, if the log contains URLs.
    #[must_use]
    pub fn url(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Lines { parser, line, .. } => parser.url(trimmed(line)),
            _ => None,
        }
    }

    fn step(&mut self) -> Result<Option<Request>, TraceError> {
        match &mut self.source {
            Source::Dec(reader) => reader
                .next()
                .map_err(|p| damaged(&self.path, &self.progress, reader.offset(), p)),
            Source::Compact(reader) => reader
                .read()
                .map_err(|p| damaged(&self.path, &self.progress, reader.record_at(), p)),
            Source::Lines { .. } => self.next_line(),
        }
    }

    fn next_line(&mut self) -> Result<Option<Request>, TraceError> {
        let Source::Lines {
            input,
            parser,
            line,
            number,
        } = &mut self.source
        else {
            return Ok(None);
        };
        loop {
            line.clear();
            let length = read_line(input, line).map_err(|source| TraceError::Broken {
                path: self.path.clone(),
                line: *number,
                offset: self.consumed.load(Ordering::Relaxed),
                source,
            })?;
            if length == 0 {
                return Ok(None);
            }
            *number += 1;
            let text = trimmed(line);
            if text.starts_with(b"#") {
                parser.comment(text);
                continue;
            }
            if text.is_empty() {
                continue;
            }
            let reason = if length > LINE_MAX {
                "line too long"
            } else {
                match parser.parse(text) {
                    Ok(Some(request)) => return Ok(Some(request)),
                    Ok(None) => continue,
                    Err(reason) => reason,
                }
            };
            self.bad.add(*number, reason, text);
            if *number >= HOPELESS_AFTER && self.bad.count * 2 > *number {
                return Err(hopeless(&self.path, self.format, &self.bad, *number));
            }
        }
    }

    fn report(&mut self) {
        let now = self.progress();
        if let Some(report) = &mut self.on_progress {
            report(now);
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.step().transpose();
        match next {
            Some(Ok(_)) => {
                self.progress.requests += 1;
                if self.progress.requests.is_multiple_of(PROGRESS_EVERY) {
                    self.report();
                }
            }
            Some(Err(_)) | None => {
                self.done = true;
                self.report();
            }
        }
        next
    }
}

/// Maximum number of bytes that are shown of a file with an unknown format.
const SHOWN: usize = 40;

fn unknown(path: &Path, start: &[u8]) -> TraceError {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    TraceError::Unknown {
        path: path.to_owned(),
        start: line[..line.len().min(SHOWN)].escape_ascii().to_string(),
    }
}

fn damaged(path: &Path, progress: &Progress, offset: u64, problem: &'static str) -> TraceError {
    TraceError::Damaged {
        path: path.to_owned(),
        offset,
        records: progress.requests,
        problem,
    }
}

fn hopeless(path: &Path, format: Format, bad: &BadLines, lines: u64) -> TraceError {
    TraceError::Hopeless {
        path: path.to_owned(),
        format,
        bad: bad.count,
        lines,
        line: bad.first.first().map_or(0, |b| b.line),
        reason: bad.first.first().map_or("", |b| b.reason),
    }
}

fn source_for(
    format: Format,
    input: Box<dyn BufRead + Send>,
    fields: Option<crate::FieldMap>,
) -> Result<Source, &'static str> {
    Ok(match format {
        Format::Foxy => Source::Compact(Box::new(compact::CompactReader::new(input)?)),
        Format::DecBinary => Source::Dec(read::dec::Binary::new(input)?),
        _ => Source::Lines {
            input,
            parser: match fields.filter(|_| format == Format::Json) {
                Some(fields) => LineParser::Json(fields),
                None => read::line_parser(format).ok_or("not a format of lines")?,
            },
            line: Vec::new(),
            number: 0,
        },
    })
}

/// Decompresses the input if its first bytes show a compression format.
fn decompressed<R: BufRead + Send + 'static>(
    mut input: R,
) -> std::io::Result<Box<dyn BufRead + Send>> {
    let start = input.fill_buf()?;
    Ok(if start.starts_with(b"\xfd7zXZ\0") {
        Box::new(BufReader::new(xz2::bufread::XzDecoder::new_multi_decoder(
            input,
        )))
    } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(BufReader::new(zstd::Decoder::with_buffer(input)?))
    } else if start.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(input)))
    } else {
        Box::new(input)
    })
}

/// Reads [`SAMPLE`] bytes. Returns fewer bytes only if the input ended, or if an error ended the reading.
fn first_bytes(input: &mut Box<dyn BufRead + Send>) -> (Vec<u8>, Option<std::io::Error>) {
    let mut start = Vec::new();
    let read = input.take(SAMPLE as u64).read_to_end(&mut start);
    (start, read.err())
}

/// An input that returns this error at the first read, and then ends.
struct Failing(Option<std::io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Reads one line including its end. Bytes of a line beyond [`LINE_MAX`] are skipped. Returns the length of
/// the line; 0 at the end of the input.
fn read_line(input: &mut Box<dyn BufRead + Send>, line: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut length = input.take(LINE_MAX as u64 + 1).read_until(b'\n', line)?;
    while length > LINE_MAX && line.last() != Some(&b'\n') {
        line.truncate(LINE_MAX);
        let more = input.take(LINE_MAX as u64).read_until(b'\n', line)?;
        length += more;
        if more == 0 {
            break;
        }
    }
    Ok(length)
}

fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A reader that counts the bytes that pass through it.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

#[cfg(test)]
mod tests;
