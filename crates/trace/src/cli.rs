//! Command line of `trace`: `info`, `convert`, `generate`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::analysis::Summary;
use crate::clean::{Clean, Rule};
use crate::compact::CompactWriter;
use crate::generate::{
    Polygraph, PolygraphConfig, SessionConfig, Sessions, ZipfWeb, ZipfWebConfig, check,
};
use crate::{Format, Options, Progress, Request, TraceError, open};

/// Read, convert and generate access logs.
#[derive(Debug, clap::Subcommand)]
pub enum TraceCommand {
    /// What a log holds: sizes, hit ratios, popularity, locality
    Info {
        /// The log; .xz and .zst are unpacked on the way
        file: PathBuf,
        /// Its format, if it is not to be detected
        #[arg(long)]
        format: Option<Format>,
        /// Every request counts, not only GETs answered by 200, 206 or 304
        #[arg(long)]
        all: bool,
    },
    /// Convert a log to the compact form
    Convert {
        /// The log
        file: PathBuf,
        /// Where to write
        output: PathBuf,
        /// Its format, if it is not to be detected
        #[arg(long)]
        format: Option<Format>,
        /// Prepare it as a paper did, and print what was dropped
        #[arg(long, value_enum)]
        clean: Option<Rule>,
    },
    /// Generate a stream; prints how it compares with what it imitates
    Generate {
        /// Which
        #[arg(value_enum)]
        kind: Kind,
        /// Where to write the compact form; without it only the comparison is made
        #[arg(long, short)]
        output: Option<PathBuf>,
        /// Requests; each kind has its own default
        #[arg(long)]
        requests: Option<u64>,
        /// Seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Streams that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The DEC proxies of 1996
    Dec,
    /// A national ISP of 1999 (Hummingbird)
    Isp,
    /// The Polygraph mix of the Foxy paper
    Polygraph,
    /// 200 servers, Zipf 0.75, median 3 KB with a heavy tail
    Web,
}

impl TraceCommand {
    /// Runs it. Exit code 0: done; 2: could not.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        let result = match self {
            Self::Info { file, format, all } => info(file, *format, *all),
            Self::Convert {
                file,
                output,
                format,
                clean,
            } => convert(file, output, *format, *clean),
            Self::Generate {
                kind,
                output,
                requests,
                seed,
            } => generate(*kind, output.as_deref(), *requests, *seed),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(2)
            }
        }
    }
}

fn show(progress: Progress) {
    if progress.total > 0 && progress.requests.is_multiple_of(1 << 20) {
        let percent = 100 * progress.bytes / progress.total;
        eprintln!("{} requests, {percent} % of the file", progress.requests);
    }
}

fn options(format: Option<Format>) -> Options {
    Options {
        format,
        progress: Some(Box::new(show)),
    }
}

fn info(file: &Path, format: Option<Format>, all: bool) -> Result<(), TraceError> {
    let mut reader = open(file, options(format))?;
    let mut summary = Summary::default();
    let mut left_out = 0u64;
    let mut failed = None;
    for request in reader.by_ref() {
        match request {
            Ok(request) if all || counts(&request) => summary.add(&request),
            Ok(_) => left_out += 1,
            Err(error) => failed = Some(error),
        }
    }
    println!("format {}, {}", reader.format(), reader.bad());
    println!("{left_out} requests left out (not a GET answered by 200, 206 or 304)");
    println!("{}", summary.report());
    failed.map_or(Ok(()), Err)
}

/// Whether a cache of the time could have answered it.
const fn counts(request: &Request) -> bool {
    matches!(request.method, crate::Method::Get) && matches!(request.status, 0 | 200 | 206 | 304)
}

fn convert(
    file: &Path,
    output: &Path,
    format: Option<Format>,
    clean: Option<Rule>,
) -> Result<(), TraceError> {
    let io = |source| TraceError::Io {
        path: output.to_owned(),
        source,
    };
    let mut reader = open(file, options(format))?;
    let mut writer = CompactWriter::new(File::create(output).map_err(io)?).map_err(io)?;
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
    println!("{} requests, {}", reader.progress().requests, reader.bad());
    if let Some(clean) = clean {
        println!("{clean}");
    }
    failed.map_or(Ok(()), Err)
}

fn generate(
    kind: Kind,
    output: Option<&Path>,
    requests: Option<u64>,
    seed: u64,
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
        Kind::Dec => println!("{}", check::dec(stream)),
        Kind::Isp => println!("{}", check::isp(stream)),
        Kind::Polygraph | Kind::Web => {
            let mut summary = Summary::default();
            stream.for_each(|request| summary.add(&request));
            println!("{}", summary.report());
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

    #[test]
    fn what_is_generated_can_be_read_and_converted() {
        let folder = std::env::temp_dir().join(format!("foxy-trace-cli-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (first, second) = (folder.join("a"), folder.join("b"));
        generate(Kind::Isp, Some(&first), Some(3_000), 5).unwrap();
        convert(&first, &second, None, None).unwrap();
        info(&second, None, false).unwrap();
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
        std::fs::write(&second, "nothing known\n").unwrap();
        assert!(matches!(
            info(&second, None, false),
            Err(TraceError::Unknown { .. })
        ));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
