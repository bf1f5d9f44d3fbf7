//! Options of the command line that select a workload: the stream of requests that a load sends.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use foxy_base::{ByteSize, Rng};
use foxy_trace::generate::{
    Polygraph, PolygraphConfig, SessionConfig, Sessions, Sizes, ZipfWeb, ZipfWebConfig,
};
use foxy_trace::{Format, Options};

use super::invalid;
use crate::load::{FromTrace, Popular, RequestSpec, Source};

/// Options that select the stream of requests.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkloadArgs {
    /// Kind of workload
    #[arg(long, value_enum, default_value_t = Kind::Popular)]
    pub workload: Kind,
    /// Number of objects (popular, scan; web: number of objects that can be requested)
    #[arg(long, default_value_t = 1000)]
    pub objects: u64,
    /// Zipf exponent; default 0.6 (popular, polygraph) or 0.75 (web)
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Sizes: 4KiB, exp:5000, web, or lognormal:MEDIAN,SIGMA; default 4KiB (popular, scan),
    /// exp:5000 (polygraph), web (web)
    #[arg(long)]
    pub sizes: Option<SizesArg>,
    /// Number of origin servers; 0 keeps the servers of a trace
    #[arg(long, default_value_t = 20)]
    pub servers: u32,
    /// polygraph: share of requests for objects that were requested before
    #[arg(long, default_value_t = 0.4)]
    pub recurrence: f64,
    /// web: total bytes of the different objects that the stream shall request (needs --requests)
    #[arg(long, value_name = "SIZE")]
    pub distinct: Option<ByteSize>,
    /// web: share of requests whose object was modified since its last request
    #[arg(long, default_value_t = 0.0)]
    pub modified: f64,
    /// scan: seed of the order, to request the same objects in a different order; default: the value of
    /// --seed
    #[arg(long)]
    pub order: Option<u64>,
    /// scan: number of the first object
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// trace: file with the trace
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// trace: format of the file; default: the format is detected
    #[arg(long)]
    pub format: Option<Format>,
    /// Largest body; larger bodies are shortened to this length
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    pub largest: ByteSize,
    /// Number of requests to skip at the beginning, so that the run continues where an earlier run ended
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub skip: u64,
}

/// Kinds of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A fixed set of objects with a Zipf distribution, without end
    Popular,
    /// Each object once, in random order
    Scan,
    /// Recurring and new objects as in Web Polygraph, without end
    Polygraph,
    /// Many servers, Zipf distribution, heavy-tailed sizes, recency
    Web,
    /// The DEC proxies of 1996
    Dec,
    /// A national ISP of 1999: pages with embedded objects
    Isp,
    /// Replay of an access log
    Trace,
}

/// A distribution of body sizes, in the syntax of the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizesArg(pub Sizes);

impl FromStr for SizesArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("sizes `{text}`: write 4KiB, exp:5000, web or lognormal:3000,1.2");
        let bytes = |t: &str| {
            t.parse::<ByteSize>()
                .map(|s| s.bytes() as f64)
                .map_err(|_| wrong())
        };
        if text == "web" {
            return Ok(Self(Sizes::web()));
        }
        if let Some(mean) = text.strip_prefix("exp:") {
            return Ok(Self(Sizes::Exponential { mean: bytes(mean)? }));
        }
        if let Some(rest) = text.strip_prefix("lognormal:") {
            let (median, sigma) = rest.split_once(',').ok_or_else(wrong)?;
            let sigma = sigma.parse().map_err(|_| wrong())?;
            let median = bytes(median)?;
            let most = u64::MAX;
            return Ok(Self(Sizes::Heavy {
                median,
                sigma,
                tail: 0.0,
                from: 1.0,
                alpha: 1.0,
                most,
            }));
        }
        Ok(Self(Sizes::Fixed(bytes(text)? as u64)))
    }
}

impl WorkloadArgs {
    fn sizes(&self, default: Sizes) -> Sizes {
        self.sizes.map_or(default, |s| s.0)
    }

    /// The stream without its first `skip` requests. A stream that is generated for a certain length (such as
    /// polygraph or web) has at most `requests` requests.
    ///
    /// # Errors
    /// Returned if the trace cannot be read, or if an option that the workload needs is missing.
    pub fn source(&self, requests: u64, seed: u64) -> io::Result<Source> {
        let mut source = self.whole(requests.saturating_add(self.skip), seed)?;
        for _ in 0..self.skip {
            if source.next().is_none() {
                return Err(invalid(format!("--skip {}: nothing is left", self.skip)));
            }
        }
        Ok(source)
    }

    fn whole(&self, requests: u64, seed: u64) -> io::Result<Source> {
        let largest = self.largest.bytes();
        Ok(match self.workload {
            Kind::Popular => {
                let alpha = self.alpha.unwrap_or(0.6);
                let objects = self.objects(seed);
                if objects.is_empty() {
                    return Err(invalid("--objects must be at least 1"));
                }
                Box::new(Popular::new(objects, alpha, Rng::new(seed).fork("popular")))
            }
            Kind::Scan => {
                let mut objects = self.objects(seed);
                shuffle(
                    &mut objects,
                    &mut Rng::new(self.order.unwrap_or(seed)).fork("scan"),
                );
                Box::new(objects.into_iter())
            }
            Kind::Polygraph => {
                let base = PolygraphConfig::default();
                let config = PolygraphConfig {
                    requests,
                    recurrence: self.recurrence,
                    alpha: self.alpha.unwrap_or(base.alpha),
                    sizes: self.sizes(base.sizes),
                    servers: self.servers,
                    ..base
                };
                let servers = self.servers;
                Box::new(FromTrace::new(
                    Polygraph::new(config, seed),
                    servers,
                    largest,
                ))
            }
            Kind::Web => {
                let servers = self.servers;
                Box::new(FromTrace::new(
                    ZipfWeb::new(self.web(requests)?, seed),
                    servers,
                    largest,
                ))
            }
            Kind::Dec => self.sessions(SessionConfig::dec(), requests, seed),
            Kind::Isp => self.sessions(SessionConfig::isp(), requests, seed),
            Kind::Trace => self.trace(largest)?,
        })
    }

    fn sessions(&self, base: SessionConfig, requests: u64, seed: u64) -> Source {
        let config = SessionConfig { requests, ..base };
        let stream = Sessions::new(config, seed);
        Box::new(FromTrace::new(stream, self.servers, self.largest.bytes()))
    }

    fn objects(&self, seed: u64) -> Vec<RequestSpec> {
        let sizes = self.sizes(Sizes::Fixed(4096));
        let servers = u64::from(self.servers.max(1));
        (self.first..self.first.saturating_add(self.objects))
            .map(|id| RequestSpec {
                server: (id % servers) as u32 + 1,
                id,
                size: sizes.of(seed, id, 0).min(self.largest.bytes()),
                version: 0,
                no_store: false,
            })
            .collect()
    }

    fn web(&self, requests: u64) -> io::Result<ZipfWebConfig> {
        let base = ZipfWebConfig::default();
        let config = ZipfWebConfig {
            requests,
            objects: self.objects,
            alpha: self.alpha.unwrap_or(base.alpha),
            servers: self.servers,
            sizes: self.sizes(base.sizes),
            modified: self.modified,
            ..base
        };
        match self.distinct {
            None => Ok(config),
            Some(_) if requests == u64::MAX => Err(invalid("--distinct needs --requests")),
            Some(bytes) => Ok(config.with_distinct_bytes(bytes.bytes())),
        }
    }

    fn trace(&self, largest: u64) -> io::Result<Source> {
        let path = self
            .trace
            .as_ref()
            .ok_or_else(|| invalid("--workload trace needs --trace"))?;
        let options = Options {
            format: self.format,
            progress: None,
            ..Options::default()
        };
        let reader = foxy_trace::open(path, options).map_err(|e| invalid(e.to_string()))?;
        let requests = reader.map_while(|request| {
            // If the trace cannot be read to its end, the requests before the error are still replayed. The
            // warning contains the reason for the early end.
            request
                .inspect_err(|error| eprintln!("warning: {error}"))
                .ok()
        });
        let gets = requests.filter(|r| {
            r.method == foxy_trace::Method::Get && matches!(r.status, 0 | 200 | 206 | 304)
        });
        Ok(Box::new(FromTrace::new(gets, self.servers, largest)))
    }
}

/// Shuffles the items with the algorithm of Fisher and Yates.
pub(super) fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let read = |text: &str| text.parse::<SizesArg>().map(|s| s.0);
        assert_eq!(read("4KiB"), Ok(Sizes::Fixed(4096)));
        assert_eq!(read("exp:5000"), Ok(Sizes::Exponential { mean: 5000.0 }));
        assert_eq!(read("web"), Ok(Sizes::web()));
        assert!(read("lognormal:3000,1.2").is_ok());
        for bad in ["", "exp:", "lognormal:3", "big"] {
            assert!(read(bad).unwrap_err().contains("lognormal"), "{bad}");
        }
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    fn stream(line: &[&str]) -> io::Result<Vec<RequestSpec>> {
        let words = ["load", "--workload", "polygraph"].iter().chain(line);
        let line = <Line as clap::Parser>::try_parse_from(words).unwrap();
        line.workload.source(300, 7).map(Iterator::collect)
    }

    #[test]
    fn a_stream_goes_on_where_it_ended() {
        let later = stream(&["--skip", "200"]).unwrap();
        let all = stream(&[]).unwrap();
        assert_eq!((all.len(), later.len()), (300, 300));
        assert_eq!(all[200..], later[..100]);
        let trace = ["--workload", "scan", "--objects", "5", "--skip", "6"];
        let line = <Line as clap::Parser>::try_parse_from(["load"].iter().chain(&trace)).unwrap();
        let problem = line.workload.source(5, 7).err().unwrap().to_string();
        assert!(problem.contains("--skip 6"), "{problem}");
    }

    #[test]
    fn a_shuffle_keeps_everything() {
        let mut items: Vec<u32> = (0..100).collect();
        shuffle(&mut items, &mut Rng::new(1));
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
