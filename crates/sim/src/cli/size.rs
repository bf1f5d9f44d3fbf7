//! The command `size`, which predicts the hits of other cache sizes and policies from an access log.

use std::path::{Path, PathBuf};

use foxy_base::ByteSize;
use foxy_trace::{FieldMap, Format, Options, Progress, TraceError};

use super::{OutputFormat, bar, threads, with_files};
use crate::{
    report::readable,
    run::{RunError, stopped},
    size::{Candidate, Sampler, Share, SizeOptions, SizeReport},
};

/// Arguments of `size`.
#[derive(Clone, Debug, clap::Args)]
pub struct SizeArgs {
    /// The access log; .gz, .xz and .zst are decompressed automatically
    log: PathBuf,
    /// Format of the log; detected if not given
    #[arg(long)]
    log_format: Option<Format>,
    /// Members of a JSON log, such as url=request_uri,size=body_bytes_sent
    #[arg(long, value_name = "WHAT=MEMBER,..")]
    fields: Option<FieldMap>,
    /// Sizes of memory or disk to try; if not given, powers of two
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<ByteSize>,
    /// Candidates. `foxy` simulates foxy with its records, segments and reinsertion, and with the memory of
    /// --memory before its disk. `foxy:RULE` simulates foxy with an admission rule: the disk stores only
    /// objects that the rule admits. RULE is a value of the setting `when_spent`, or `max_size:SIZE`. Here
    /// the rule always applies; in foxy it applies only while the write budget is spent. All other names are
    /// policies over bare objects. If not given: foxy, foxy:second-use, lru, s3-fifo, and foxy:max_size:SIZE
    /// for up to three sizes that are taken from the log
    #[arg(long, value_delimiter = ',')]
    policies: Vec<Candidate>,
    /// Memory budget of foxy, as its setting `memory`; if not given, only foxy's disk is simulated
    #[arg(long, default_value = "0")]
    memory: ByteSize,
    /// Bytes of the URL and header lines of a response as foxy stores them; logs do not contain this size
    #[arg(long, default_value = "300")]
    head: ByteSize,
    /// Maximum number of requests kept as a sample; for a log with fewer requests the results are exact
    #[arg(long, default_value_t = 1 << 20)]
    sample: usize,
    /// Number of threads; if not given, the number of processors
    #[arg(long)]
    threads: Option<usize>,
    /// Draw missed requests and bytes into STEM.svg, STEM.png, STEM-bytes.svg and STEM-bytes.png
    #[arg(long, value_name = "STEM")]
    figure: Option<PathBuf>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    form: OutputFormat,
}

impl SizeArgs {
    pub(super) fn text(&self) -> Result<String, RunError> {
        self.check()?;
        let (mut sampler, bad, broken) = self.read()?;
        let mut sizes: Vec<u64> = self.sizes.iter().map(|s| s.bytes()).collect();
        sizes.sort_unstable();
        let options = SizeOptions {
            policies: if self.policies.is_empty() {
                Candidate::usual(&sampler)
            } else {
                self.policies.clone()
            },
            sizes,
            sample: self.sample,
            threads: threads(self.threads),
            memory: self.memory.bytes(),
            head: self.head.bytes(),
        };
        let bar = bar(1, "{wide_bar} {pos} of {len} caches");
        let report = SizeReport::new(&mut sampler, &options, &|done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let mut text = self.form.print(&report.table(), &report)?;
        if self.form == OutputFormat::Table {
            text = tables(&report, &bad);
        }
        if let Some(stem) = &self.figure {
            text = with_files(text, draw(&report, stem))?;
        }
        match broken {
            Some(error) => Err(RunError::Partly {
                text,
                error: Box::new(error.into()),
                note: "; the results are of what comes before",
            }),
            None => Ok(text),
        }
    }

    fn check(&self) -> Result<(), RunError> {
        let bad = |text: &str| Err(RunError::Config(text.to_owned()));
        if self.sample == 0 {
            return bad("--sample must be at least 1 request");
        }
        if self.sizes.iter().any(|size| size.bytes() == 0) {
            return bad("a cache of 0 bytes answers nothing; --sizes must be above 0");
        }
        Ok(())
    }

    /// Returns the sample, the warnings about the log, and the error at which the log ended early, if any.
    /// The sample covers the log up to that point.
    fn read(&self) -> Result<(Sampler, String, Option<TraceError>), RunError> {
        let bar = bar(0, "{wide_bar} {bytes} of {total_bytes}, {msg}, {eta} left");
        let shown = bar.clone();
        let progress = move |now: Progress| {
            shown.set_length(now.total);
            shown.set_position(now.bytes);
            shown.set_message(format!("{} requests", now.requests));
        };
        let options = Options {
            format: self.log_format,
            fields: self.fields.clone(),
            progress: Some(Box::new(progress)),
        };
        let mut reader = foxy_trace::open(&self.log, options)?;
        let mut sampler = Sampler::new(self.sample);
        let (mut cut, mut broken) = ("", None);
        for request in reader.by_ref() {
            match request {
                Ok(_) if stopped() => {
                    cut = "; stopped, the rest was not read";
                    break;
                }
                Ok(request) => sampler.add(&request),
                Err(error) => broken = Some(error),
            }
        }
        bar.finish_and_clear();
        Ok((
            sampler,
            format!("format {}, {}{cut}", reader.format(), reader.bad()),
            broken,
        ))
    }
}

fn tables(report: &SizeReport, bad: &str) -> String {
    if report.curves.iter().all(|c| c.points.is_empty()) {
        return format!("{}\n{}\n", head(report, bad), wrapped(&report.advice));
    }
    format!(
        "{}\nhits, % of requests\n{}\nhits, % of bytes\n{}\nwritten to the disk, % of bytes asked \
         for\n{}\n{}\n",
        head(report, bad),
        report.narrow(Share::Hits),
        report.narrow(Share::Bytes),
        report.narrow(Share::Written),
        wrapped(&report.advice)
    )
}

fn draw(report: &SizeReport, stem: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut bytes = stem.to_owned().into_os_string();
    bytes.push("-bytes");
    let mut files = report.figure(false).save(stem)?.to_vec();
    files.extend(report.figure(true).save(Path::new(&bytes))?);
    Ok(files)
}

fn head(report: &SizeReport, bad: &str) -> String {
    let how = if report.sampled < 1.0 {
        format!(
            "estimated from {:.2} % of the objects",
            100.0 * report.sampled
        )
    } else {
        "exact".to_owned()
    };
    let load = if report.load.mean > 0.0 {
        format!(
            "asked for: {}/s on average, {}/s in the busiest minute\n",
            readable(report.load.mean as u64),
            readable(report.load.busiest as u64)
        )
    } else {
        String::new()
    };
    format!(
        "{bad}\n{} cacheable requests for {} objects; {how}\n{}\n{load}{}",
        report.requests,
        report.objects,
        report.left_out.text(),
        too_small(report),
    )
}

/// Width in columns at which the advice is wrapped for a terminal.
const WIDE: usize = 88;

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < WIDE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// A note that names the sizes for which the sample gives no result, and the option that helps.
fn too_small(report: &SizeReport) -> String {
    if report.too_small.is_empty() {
        return String::new();
    }
    let sizes: Vec<String> = report.too_small.iter().map(|s| readable(*s)).collect();
    let help = if report.sampled < 1.0 {
        "; a greater --sample can tell smaller ones"
    } else {
        ""
    };
    format!(
        "no answer for {}: below {} a cache holds too few objects of this log to tell{help}\n",
        sizes.join(", "),
        readable(report.least)
    )
}
