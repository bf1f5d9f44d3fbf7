//! Writing a trace for other tools.
//!
//! `csv` has a line of names, and then one line for each request. `oracle-general` is the binary form of
//! libCacheSim. It has 24 bytes for each request, little endian: seconds since the first request, object,
//! size, and the position of the object's next request in the trace (-1 if there is none). This form needs
//! data of later requests, so 24 bytes of memory for each request are kept until the end.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use crate::Request;
use crate::compact::CompactWriter;

/// Formats to which a log can be converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// The compact binary form of Foxy
    #[default]
    Foxy,
    /// Comma-separated values with a line of names
    Csv,
    /// libCacheSim's oracleGeneral
    OracleGeneral,
}

/// A trace that is being written. Call [`Export::finish`] at the end.
pub enum Export<W: Write> {
    /// [`OutputFormat::Foxy`]
    Foxy(Box<CompactWriter<W>>),
    /// [`OutputFormat::Csv`]
    Csv(BufWriter<W>),
    /// [`OutputFormat::OracleGeneral`]
    Oracle(BufWriter<W>, Vec<Access>),
}

/// A request as in oracleGeneral, without the position of the object's next request.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    time_ms: i64,
    object: u64,
    size: u32,
}

impl<W: Write> std::fmt::Debug for Export<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Foxy(_) => "Foxy",
            Self::Csv(_) => "Csv",
            Self::Oracle(..) => "Oracle",
        })
    }
}

impl<W: Write> Export<W> {
    /// Starts a trace in this form.
    ///
    /// # Errors
    /// Returns the error of `output`.
    pub fn new(form: OutputFormat, output: W) -> io::Result<Self> {
        Ok(match form {
            OutputFormat::Foxy => Self::Foxy(Box::new(CompactWriter::new(output)?)),
            OutputFormat::Csv => {
                let mut output = BufWriter::new(output);
                writeln!(
                    output,
                    "time_ms,object,size,client,server,status,method,class,version"
                )?;
                Self::Csv(output)
            }
            OutputFormat::OracleGeneral => Self::Oracle(BufWriter::new(output), Vec::new()),
        })
    }

    /// Appends a request.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        match self {
            Self::Foxy(writer) => writer.write(request),
            Self::Csv(output) => writeln!(
                output,
                "{},{},{},{},{},{},{:?},{:?},{}",
                request.time_ms,
                request.object,
                request.size,
                request.client,
                request.server,
                request.status,
                request.method,
                request.class,
                request.version
            ),
            Self::Oracle(_, all) => {
                all.push(Access {
                    time_ms: request.time_ms,
                    object: request.object,
                    size: u32::try_from(request.size).unwrap_or(u32::MAX),
                });
                Ok(())
            }
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Self::Foxy(writer) => writer.finish().map(|_| ()),
            Self::Csv(mut output) => output.flush(),
            Self::Oracle(mut output, all) => {
                oracle(&mut output, &all)?;
                output.flush()
            }
        }
    }
}

fn oracle(output: &mut impl Write, all: &[Access]) -> io::Result<()> {
    // This pass from the end to the start finds, for each request, the position of the object's next request.
    let mut next = vec![-1i64; all.len()];
    let mut last: HashMap<u64, i64> = HashMap::new();
    for (number, access) in all.iter().enumerate().rev() {
        if let Some(later) = last.insert(access.object, number as i64) {
            next[number] = later;
        }
    }
    let first = all.iter().map(|access| access.time_ms).min().unwrap_or(0);
    for (access, next) in all.iter().zip(next) {
        let seconds = u32::try_from((access.time_ms - first) / 1_000).unwrap_or(u32::MAX);
        output.write_all(&seconds.to_le_bytes())?;
        output.write_all(&access.object.to_le_bytes())?;
        output.write_all(&access.size.to_le_bytes())?;
        output.write_all(&next.to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(form: OutputFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut export = Export::new(form, &mut bytes).unwrap();
        for (object, time_ms, size) in [(7u64, 5_000, 10), (9, 6_500, 20), (7, 9_000, 10)] {
            let request = Request {
                time_ms,
                object,
                size,
                ..Request::default()
            };
            export.write(&request).unwrap();
        }
        export.finish().unwrap();
        bytes
    }

    #[test]
    fn oracle_general_knows_the_next_request_of_an_object() {
        let bytes = export(OutputFormat::OracleGeneral);
        assert_eq!(bytes.len(), 3 * 24);
        let record = |n: usize| {
            let at = &bytes[24 * n..24 * (n + 1)];
            (
                u32::from_le_bytes(at[..4].try_into().unwrap()),
                u64::from_le_bytes(at[4..12].try_into().unwrap()),
                u32::from_le_bytes(at[12..16].try_into().unwrap()),
                i64::from_le_bytes(at[16..].try_into().unwrap()),
            )
        };
        assert_eq!(record(0), (0, 7, 10, 2));
        assert_eq!(record(1), (1, 9, 20, -1));
        assert_eq!(record(2), (4, 7, 10, -1));
    }

    #[test]
    fn csv_has_a_line_of_names_and_one_for_each_request() {
        let text = String::from_utf8(export(OutputFormat::Csv)).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[0].starts_with("time_ms,object,size,"));
        assert_eq!(lines[2], "6500,9,20,0,0,200,Get,Other,0");
    }
}
