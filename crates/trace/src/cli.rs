//! Command line of `trace`: `info`, `convert`, `generate`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::analysis::{IdleTime, SiteSets, Summary};
use crate::clean::{Clean, Rule};
use crate::compact::CompactWriter;
use crate::export::{Export, OutputFormat};
use crate::generate::{
    Polygraph, PolygraphConfig, SessionConfig, Sessions, ZipfWeb, ZipfWebConfig, check,
};
use crate::{FieldMap, Format, Options, Progress, Request, TraceError, open};

/// Read, convert and generate access logs.
#[derive(Debug, clap::Subcommand)]
pub enum TraceCommand {
    /// Describe a log: sizes, hit ratios, popularity, locality
    Info {
        /// The log; .gz, .xz and .zst are decompressed automatically
        file: PathBuf,
        /// Format of the log; detected if not given
        #[arg(long)]
        format: Option<Format>,
        /// Members of a JSON log, such as url=request_uri,size=body_bytes_sent
        #[arg(long, value_name = "WHAT=MEMBER,..")]
        fields: Option<FieldMap>,
        /// Further analyses
        #[command(flatten)]
        more: More,
    },
    /// Convert a log to the compact form, to CSV or to libCacheSim's oracleGeneral
    Convert {
        /// The log; .gz, .xz and .zst are decompressed automatically
        file: PathBuf,
        /// Output file
        output: PathBuf,
        /// Format of the log; detected if not given
        #[arg(long)]
        format: Option<Format>,
        /// Members of a JSON log, such as url=request_uri,size=body_bytes_sent
        #[arg(long, value_name = "WHAT=MEMBER,..")]
        fields: Option<FieldMap>,
        /// Format of the output
        #[arg(long, value_enum, default_value_t)]
        to: OutputFormat,
        /// Prepare the log as a paper did, and print the number of dropped requests
        #[arg(long, value_enum)]
        clean: Option<Rule>,
    },
    /// Generate a stream and print how it compares with the log that it imitates
    Generate {
        /// Kind of workload
        #[arg(value_enum)]
        kind: Kind,
        /// Output file for the compact form; without it, only the comparison is printed
        #[arg(long, short)]
        output: Option<PathBuf>,
        /// Number of requests; each kind has its own default
        #[arg(long)]
        requests: Option<u64>,
        /// Seed of the stream
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Further analyses of `info`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct More {
    /// Count every request, not only GETs answered by 200, 206 or 304
    #[arg(long)]
    all: bool,
    /// Print a disk's idle time per minute, with a bar chart. The values are durations of a 64-KB operation,
    /// such as 12ms,25ms; the idle time is computed for each of them
    #[arg(long, value_delimiter = ',', value_parser = millis, value_name = "MS")]
    idle: Vec<f64>,
    /// Analyse locality sets as in UCFS. A set consists of a page and the objects of its site that are
    /// requested in the minutes after the page. The values are numbers of minutes, such as 1,2,5,10; the sets
    /// are computed for each of them
    #[arg(long, value_delimiter = ',', value_parser = minutes, value_name = "MINUTES")]
    sets: Vec<f64>,
}

fn millis(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("ms").unwrap_or(text);
    let value = number
        .parse()
        .ok()
        .filter(|ms| (0.001..=10_000.0).contains(ms));
    value.ok_or_else(|| format!("`{text}` is not a time of an operation from 0.001ms to 10000ms"))
}

fn minutes(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|m| (0.01..=1_440.0).contains(m));
    value.ok_or_else(|| format!("`{text}` is not a number of minutes from 0.01 to 1440"))
}

/// Kinds of streams that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The DEC proxies of 1996
    Dec,
    /// A national ISP of 1999 (Hummingbird)
    Isp,
    /// Four proxies at the root of a hierarchy, 1997 (NLANR)
    Nlanr,
    /// The Polygraph mix of the Foxy paper, with new and repeated objects
    Polygraph,
    /// 200 servers, Zipf 0.75, median 3 KB with a heavy tail
    Web,
}

impl TraceCommand {
    /// Runs the command. The exit code is 0 after success and 2 after an error. If the error occurs in the
    /// middle of the log, the results of the part before the error are printed.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let mut text = String::new();
        let result = self.text(&mut text);
        match result.and_then(|()| Ok(print(&text)?)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                if !matches!(error, TraceError::Output(_)) {
                    // If printing fails too, only the first error is reported.
                    let _ = print(&text);
                }
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }

    /// Runs the command. Appends the report to `out`; after an error, `out` contains the report up to the
    /// error.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read to its end, or if the output cannot be written.
    pub fn text(&self, out: &mut String) -> Result<(), TraceError> {
        match self {
            Self::Info {
                file,
                format,
                fields,
                more,
            } => info(file, options(*format, fields.as_ref()), more, out),
            Self::Convert {
                file,
                output,
                format,
                fields,
                to,
                clean,
            } => {
                let options = options(*format, fields.as_ref());
                convert((file, options), (output, *to), *clean, out)
            }
            Self::Generate {
                kind,
                output,
                requests,
                seed,
            } => generate(*kind, output.as_deref(), *requests, *seed, out),
        }
    }
}

/// Prints to standard output. A reader that closes the pipe early (`| head`) is no error; a full disk
/// is an error.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn show(progress: Progress) {
    if progress.total > 0 && progress.requests.is_multiple_of(1 << 20) {
        let percent = 100 * progress.bytes / progress.total;
        eprintln!("{} requests, {percent} % of the file", progress.requests);
    }
}

fn options(format: Option<Format>, fields: Option<&FieldMap>) -> Options {
    Options {
        format,
        fields: fields.cloned(),
        progress: Some(Box::new(show)),
    }
}

/// Appends one line to the output. Writing to a string cannot fail.
fn line(out: &mut String, text: impl std::fmt::Display) {
    let _ = writeln!(out, "{text}");
}

fn info(file: &Path, options: Options, more: &More, out: &mut String) -> Result<(), TraceError> {
    let mut reader = open(file, options)?;
    let (mut summary, mut idle) = (Summary::default(), IdleTime::default());
    let mut sets: Vec<SiteSets> = more.sets.iter().map(|m| SiteSets::new(*m)).collect();
    let (mut left_out, mut failed) = (0u64, None);
    for request in reader.by_ref() {
        match request {
            Ok(request) if more.all || counts(&request) => {
                summary.add(&request);
                if !more.idle.is_empty() {
                    idle.add(&request);
                }
                sets.iter_mut().for_each(|sets| sets.add(&request));
            }
            Ok(_) => left_out += 1,
            Err(error) => failed = Some(error),
        }
    }
    line(
        out,
        format_args!("format {}, {}", reader.format(), reader.bad()),
    );
    line(
        out,
        format_args!("{left_out} requests left out (not a GET answered by 200, 206 or 304)"),
    );
    let report = summary.report();
    let has_times = report.span_ms > 0;
    line(out, &report);
    let timed = !more.idle.is_empty() || !more.sets.is_empty();
    if timed && !has_times {
        line(
            out,
            "the log has no times: no idle time, no sets within minutes",
        );
    } else {
        sets.into_iter().for_each(|sets| line(out, sets.report()));
        if !more.idle.is_empty() {
            *out += &idle.report(&more.idle);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// True if a cache of the 1990s could have stored the answer: a GET with status 200, 206 or 304, or without a
/// status.
const fn counts(request: &Request) -> bool {
    matches!(request.method, crate::Method::Get) && matches!(request.status, 0 | 200 | 206 | 304)
}

fn convert(
    (file, options): (&Path, Options),
    (output, form): (&Path, OutputFormat),
    clean: Option<Rule>,
    out: &mut String,
) -> Result<(), TraceError> {
    let io = |source| TraceError::Io {
        path: output.to_owned(),
        source,
    };
    let mut reader = open(file, options)?;
    if is_same(file, output) {
        let path = output.to_owned();
        return Err(TraceError::SameFile { path });
    }
    let mut writer = Export::new(form, File::create(output).map_err(io)?).map_err(io)?;
    let mut clean = clean.map(Clean::new);
    let mut failed = None;
    for request in reader.by_ref() {
        match request {
            Ok(request) => {
                let kept = match &mut clean {
                    Some(clean) => clean.request(request),
                    None => Some(request),
                };
                if let Some(request) = kept {
                    writer.write(&request).map_err(io)?;
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    writer.finish().map_err(io)?;
    let requests = reader.progress().requests;
    line(out, format_args!("{requests} requests, {}", reader.bad()));
    if let Some(clean) = clean {
        line(out, clean);
    }
    failed.map_or(Ok(()), Err)
}

/// True if both paths lead to the same file. Then writing to one path would destroy the file that is read
/// from the other path.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
    id(one).is_some_and(|one| Some(one) == id(other))
}

fn generate(
    kind: Kind,
    output: Option<&Path>,
    requests: Option<u64>,
    seed: u64,
    out: &mut String,
) -> Result<(), TraceError> {
    let stream = stream(kind, requests, seed);
    let mut failed: Option<io::Error> = None;
    let mut writer = None;
    if let Some(path) = output {
        let io = |source| TraceError::Io {
            path: path.to_owned(),
            source,
        };
        writer = Some(CompactWriter::new(File::create(path).map_err(io)?).map_err(io)?);
    }
    let stream = stream.inspect(|request| {
        if let Some(writer) = &mut writer
            && failed.is_none()
        {
            failed = writer.write(request).err();
        }
    });
    match kind {
        Kind::Dec => line(out, check::dec(stream)),
        Kind::Isp => line(out, check::isp(stream)),
        Kind::Nlanr => line(out, check::nlanr(stream)),
        Kind::Polygraph | Kind::Web => {
            let mut summary = Summary::default();
            stream.for_each(|request| summary.add(&request));
            line(out, summary.report());
        }
    }
    let finished = match (failed, writer) {
        (Some(error), _) => Err(error),
        (None, Some(writer)) => writer.finish().map(|_| ()),
        (None, None) => Ok(()),
    };
    finished.map_err(|source| TraceError::Io {
        path: output.map(Path::to_owned).unwrap_or_default(),
        source,
    })
}

fn stream(kind: Kind, requests: Option<u64>, seed: u64) -> Box<dyn Iterator<Item = Request>> {
    let sessions = |base: SessionConfig| {
        let config = SessionConfig {
            requests: requests.unwrap_or(base.requests),
            ..base
        };
        Box::new(Sessions::new(config, seed))
    };
    match kind {
        Kind::Dec => sessions(SessionConfig::dec()),
        Kind::Isp => sessions(SessionConfig::isp()),
        Kind::Nlanr => sessions(SessionConfig::nlanr()),
        Kind::Polygraph => {
            let requests = requests.unwrap_or(1_000_000);
            Box::new(Polygraph::new(
                PolygraphConfig {
                    requests,
                    ..Default::default()
                },
                seed,
            ))
        }
        Kind::Web => {
            let base = ZipfWebConfig::default();
            let requests = requests.unwrap_or(base.requests);
            Box::new(ZipfWeb::new(ZipfWebConfig { requests, ..base }, seed))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Options {
        options(None, None)
    }

    #[test]
    fn what_is_generated_can_be_read_and_converted() {
        let folder = std::env::temp_dir().join(format!("foxy-trace-cli-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, second) = (folder.join("a"), folder.join("b"));
        let mut text = String::new();
        let out = &mut text;
        generate(Kind::Isp, Some(&first), Some(3_000), 5, out).unwrap();
        convert((&first, plain()), (&second, OutputFormat::Foxy), None, out).unwrap();
        let more = More {
            idle: vec![12.0, 25.0],
            sets: vec![1.0, 10.0],
            ..More::default()
        };
        info(&second, plain(), &more, out).unwrap();
        for part in [
            "\n12 ms: least",
            "\n25 ms: least",
            "within 1 min",
            "within 10 min",
        ] {
            assert!(out.contains(part), "{out}");
        }
        let read = |path| {
            open(path, Options::default())
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        };
        assert_eq!(read(&first), read(&second));
        assert_eq!(
            read(&first),
            stream(Kind::Isp, Some(3_000), 5).collect::<Vec<_>>()
        );
        // The log survives an attempt to overwrite it, even if the output path is a link to the log.
        let link = folder.join("link");
        std::os::unix::fs::symlink(&first, &link).unwrap();
        for same in [&first, &link] {
            let refused = convert((&first, plain()), (same, OutputFormat::Foxy), None, out);
            assert!(matches!(refused, Err(TraceError::SameFile { .. })));
        }
        assert_eq!(read(&first).len(), 3_000);
        std::fs::write(&second, "nothing known\n").unwrap();
        assert!(matches!(
            info(&second, plain(), &more, &mut String::new()),
            Err(TraceError::Unknown { .. })
        ));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
