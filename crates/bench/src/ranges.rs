//! A reader that reads at random positions of one large object. It checks every byte, and reports how many
//! bytes the origin had to send.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use foxy_base::Rng;
use serde::Serialize;

use crate::origin::OriginCounters;
use crate::{BodyKey, Identity, Knobs};

/// The ranges to read, and their order.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    /// The complete object, in `pieces` pieces of different lengths, in a random order. The sequence of
    /// pieces is divided into `parts` parts, and the reader reads part `part`.
    Everything {
        /// Number of pieces of the object.
        pieces: u64,
        /// Number of the part, from 0.
        part: u64,
        /// Number of parts.
        parts: u64,
    },
    /// The reads have a fixed length, and are at random positions.
    Anywhere {
        /// Number of reads.
        reads: u64,
        /// Bytes of each read.
        bytes: u64,
    },
}

/// One reader.
#[derive(Clone, Debug)]
pub struct RangeReader {
    /// Address of the proxy.
    pub target: SocketAddr,
    /// Address of the object's origin.
    pub origin: SocketAddr,
    /// Path and properties of the object.
    pub knobs: Knobs,
    /// The ranges to read, and their order.
    pub plan: Plan,
    /// Seed of the order and of the positions.
    pub seed: u64,
}

/// Result of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RangeReport {
    /// Number of reads with only correct bytes.
    pub right: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of body bytes that arrived.
    pub bytes: u64,
    /// First problem.
    pub problem: Option<String>,
    /// The origin's counts during the run.
    pub origin: OriginCounters,
}

impl RangeReader {
    /// Sends the reads one after the other. Stops at the first read that fails or returns a wrong byte.
    ///
    /// # Errors
    /// Returned if target or origin cannot be reached.
    pub fn run(&self) -> io::Result<RangeReport> {
        let before = crate::load::read_counters(self.origin)?;
        let host = self.origin.ip().to_string();
        let identity = Identity {
            host: host.as_bytes(),
            id: self.knobs.id,
            version: self.knobs.version,
            size: self.knobs.size,
        };
        let stream = TcpStream::connect(self.target)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let mut stream = BufReader::new(stream);
        let mut report = RangeReport::default();
        for (from, to) in self.places() {
            report.reads += 1;
            match self.read(&mut stream, identity.key(), from, to) {
                Ok(bytes) => {
                    report.right += 1;
                    report.bytes += bytes;
                }
                Err(problem) => {
                    report.problem = Some(format!("bytes {from} to {to}: {problem}"));
                    break;
                }
            }
        }
        report.origin = crate::load::read_counters(self.origin)?.minus(&before);
        Ok(report)
    }

    /// Range of each read: its first byte, and the byte after its last byte.
    fn places(&self) -> Vec<(u64, u64)> {
        let mut rng = Rng::new(self.seed);
        let size = self.knobs.size;
        match self.plan {
            Plan::Anywhere { reads, bytes } => {
                let bytes = bytes.clamp(1, size.max(1));
                let place = |rng: &mut Rng| rng.below(size.saturating_sub(bytes) + 1);
                let places = (0..reads).map(|_| place(&mut rng));
                places
                    .map(|from| (from, (from + bytes).min(size)))
                    .collect()
            }
            Plan::Everything {
                pieces,
                part,
                parts,
            } => {
                let mut cuts: Vec<_> = (1..pieces).map(|_| rng.below(size)).collect();
                cuts.extend([0, size]);
                cuts.sort_unstable();
                cuts.dedup();
                let mut places: Vec<_> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
                for last in (1..places.len()).rev() {
                    let other = usize::try_from(rng.below(last as u64 + 1)).unwrap_or(0);
                    places.swap(last, other);
                }
                let each = (places.len() as u64).div_ceil(parts.max(1));
                let bound = |n: u64| usize::try_from(n * each).unwrap_or(usize::MAX);
                let (from, to) = (bound(part), bound(part + 1).min(places.len()));
                places.get(from..to).unwrap_or_default().to_vec()
            }
        }
    }

    /// Sends one range request. Returns the bytes that arrived.
    fn read(
        &self,
        stream: &mut BufReader<TcpStream>,
        key: BodyKey,
        from: u64,
        to: u64,
    ) -> Result<u64, String> {
        let mut request = format!("GET http://{}", self.origin).into_bytes();
        self.knobs.write(&mut request);
        let fields = format!(
            " HTTP/1.1\r\nHost: {}\r\nRange: bytes={from}-{}\r\n\r\n",
            self.origin,
            to - 1
        );
        request.extend_from_slice(fields.as_bytes());
        let told = |error: io::Error| error.to_string();
        stream.get_mut().write_all(&request).map_err(told)?;
        let head = head(stream).map_err(told)?;
        let size = self.knobs.size;
        let range = format!("content-range: bytes {from}-{}/{size}\r\n", to - 1);
        if !head.starts_with("http/1.1 206 ") || !head.contains(&range) {
            return Err(format!("answered by {head}"));
        }
        let (mut at, mut buffer) = (from, vec![0; 256 << 10]);
        while at < to {
            let most = usize::try_from(to - at)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let n = stream.read(&mut buffer[..most]).map_err(told)?;
            if n == 0 {
                return Err(format!("the connection ended at {at}"));
            }
            key.check(at, &buffer[..n])
                .map_err(|at| format!("a wrong byte at {at}"))?;
            at += n as u64;
        }
        Ok(to - from)
    }
}

/// Reads the head of an answer. Returns it in lower case.
fn head(stream: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head.to_ascii_lowercase())
}

impl RangeReport {
    /// True if every read returned the correct bytes.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.problem.is_none() && self.right == self.reads
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use foxy_base::{Clock, SystemClock};

    use super::*;
    use crate::{Origin, OriginConfig};

    fn reader(plan: Plan) -> RangeReader {
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        RangeReader {
            target: nobody,
            origin: nobody,
            knobs: Knobs::new(1, 1_000_000),
            plan,
            seed: 7,
        }
    }

    #[test]
    fn the_parts_together_are_everything_once() {
        let mut all = Vec::new();
        for part in 0..3 {
            let pieces = 100;
            let plan = Plan::Everything {
                pieces,
                part,
                parts: 3,
            };
            all.extend(reader(plan).places());
        }
        assert!(!all.is_sorted(), "not shuffled");
        all.sort_unstable();
        assert_eq!((all[0].0, all[all.len() - 1].1), (0, 1_000_000));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
    }

    #[test]
    fn readings_are_checked() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let origin = Origin::start(
            OriginConfig {
                listen,
                ..OriginConfig::default()
            },
            &clock,
        );
        let origin = origin.unwrap();
        let plan = Plan::Anywhere {
            reads: 10,
            bytes: 5000,
        };
        let mut reader = reader(plan);
        (reader.target, reader.origin) = (origin.address(), origin.address());
        let report = reader.run().unwrap();
        assert!(report.is_right(), "{report:?}");
        assert_eq!((report.bytes, report.origin.partial), (50_000, 10));
        reader.knobs.status = 404;
        assert!(!reader.run().unwrap().is_right());
    }
}
