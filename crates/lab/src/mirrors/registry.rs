//! A registry of packages for npm, and the packages in it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_base::Rng;
use foxy_trace::generate::lognormal;
use sha2::{Digest as _, Sha512};

use super::document::{Document, Substitutions, version};
use crate::kit::{AfterResponse, Body, BufferedConn, ReceivedRequest, Respond};

/// Greatest number of body bytes in one write.
const PIECE: usize = 64 << 10;
/// In each version of a package, this number of bytes belongs to fields that an installation does not need.
/// In an abbreviated document of npm, the number is about the same.
const ABOUT: usize = 300;
/// Lognormal distribution of the number of versions of a package: median, spread (sigma) and maximum.
const VERSIONS: (f64, f64, f64) = (20.0, 1.2, 1000.0);
/// Lognormal distribution of the length of an artefact in bytes: median, spread (sigma) and maximum.
const ARTEFACT: (f64, f64, f64) = (16384.0, 1.6, 4_194_304.0);

/// A package.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) document: Arc<Document>,
    /// Version of the only artefact of this package.
    version: String,
    /// Length of the artefact, in bytes.
    pub(super) length: u64,
}

impl Package {
    /// A package with this number of versions.
    pub(super) fn new(name: String, document: Arc<Document>, versions: usize, length: u64) -> Self {
        Self {
            name,
            document,
            version: version(versions.saturating_sub(1)),
            length,
        }
    }

    /// Draws random packages. An installation needs one version of each package.
    pub(super) fn drawn(seed: u64, count: usize) -> Vec<Self> {
        let mut rng = Rng::new(seed);
        let draw = |rng: &mut Rng, (median, sigma, most): (f64, f64, f64)| {
            lognormal(rng, median.ln(), sigma).clamp(1.0, most)
        };
        (0..count)
            .map(|number| {
                let versions = draw(&mut rng, VERSIONS) as usize;
                let length = draw(&mut rng, ARTEFACT) as u64;
                let name = format!("package-{number}");
                let mut package = Self::new(name, Arc::default(), versions, length);
                let digest = package.digest();
                let document = Document::packument(&mut rng, versions, ABOUT, &digest);
                package.document = Arc::new(document);
                package
            })
            .collect()
    }

    /// Path of the artefact, relative to the registry.
    pub(super) fn artefact(&self) -> String {
        let name = &self.name;
        format!("/{name}/-/{name}-{}.tgz", self.version)
    }

    fn digest(&self) -> String {
        let (mut body, mut left) = (Body::of(&self.artefact()), self.length);
        let mut digest = Sha512::new();
        while left > 0 {
            let piece = body.next(usize::try_from(left).unwrap_or(usize::MAX));
            digest.update(piece);
            left -= piece.len() as u64;
        }
        STANDARD.encode(digest.finalize())
    }
}

/// The number of requests of each kind that a registry has received, and the number of artefact bytes that it
/// has sent.
#[derive(Debug, Default)]
pub(super) struct Counts {
    documents: AtomicU64,
    artefacts: AtomicU64,
    bytes: AtomicU64,
}

/// The values of [`Counts`] at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) documents: u64,
    pub(super) artefacts: u64,
    /// Bytes of artefacts that were sent.
    pub(super) bytes: u64,
}

/// The registry.
#[derive(Debug)]
pub(super) struct Registry {
    packages: HashMap<String, Arc<Package>>,
    counts: Counts,
}

impl Registry {
    pub(super) fn of(packages: &[Arc<Package>]) -> Self {
        let named = packages
            .iter()
            .map(|package| (package.name.clone(), Arc::clone(package)));
        Self {
            packages: named.collect(),
            counts: Counts::default(),
        }
    }

    /// Returns the counts since the last call and resets them.
    pub(super) fn take(&self) -> Seen {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Seen {
            documents: take(&self.counts.documents),
            artefacts: take(&self.counts.artefacts),
            bytes: take(&self.counts.bytes),
        }
    }

    async fn document(
        &self,
        package: &Package,
        request: &ReceivedRequest,
        conn: &mut BufferedConn,
    ) -> Option<()> {
        self.counts.documents.fetch_add(1, Ordering::Relaxed);
        let tag = format!("\"{}\"", package.name);
        if request.head.get("If-None-Match") == Some(&tag) {
            let text = format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n\r\n");
            return conn.write(text.as_bytes()).await.ok();
        }
        let base = format!("http://{}", request.head.get("Host").unwrap_or_default());
        let substitutions = Substitutions {
            name: &package.name,
            artefacts: &base,
            registry: &base,
        };
        let length = package.document.length(&substitutions);
        let mut ready = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: {tag}\r\n\
             Content-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        for part in package.document.parts(substitutions) {
            ready.extend_from_slice(part);
            if ready.len() >= PIECE {
                conn.write(&ready).await.ok()?;
                ready.clear();
            }
        }
        conn.write(&ready).await.ok()
    }

    async fn artefact(&self, package: &Package, conn: &mut BufferedConn) -> Option<()> {
        self.counts.artefacts.fetch_add(1, Ordering::Relaxed);
        let (mut body, mut left) = (Body::of(&package.artefact()), package.length);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n");
        conn.write(head.as_bytes()).await.ok()?;
        while left > 0 {
            let piece = body.next(usize::try_from(left).unwrap_or(usize::MAX));
            conn.write(piece).await.ok()?;
            left -= piece.len() as u64;
            let sent = piece.len() as u64;
            self.counts.bytes.fetch_add(sent, Ordering::Relaxed);
        }
        Some(())
    }
}

impl Respond for Registry {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let name = request.path.trim_start_matches('/').split('/').next();
        let package = name.and_then(|name| self.packages.get(name));
        let sent = match package {
            Some(package) if request.path == package.artefact() => {
                self.artefact(package, conn).await
            }
            Some(package) if request.path[1..] == package.name => {
                self.document(package, request, conn).await
            }
            _ => {
                let text = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
                conn.write(text.as_bytes()).await.ok()
            }
        };
        sent.map_or(AfterResponse::Close, |()| AfterResponse::Keep)
    }
}
