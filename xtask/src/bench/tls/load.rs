//! The load for `bench tls`: requests that the program h2load sends over HTTP/1.1.

use std::path::Path;
use std::process::Command;

use foxy_lab::kit::peers::install;

use super::servers::{HOST, Server};

/// The core of the load.
pub(super) const CORE: &str = "1";

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Requests for an object of 4 KiB, over persistent connections.
    Small,
    /// Requests for an object of 64 KiB, over persistent connections.
    Large,
    /// Requests for an object of 4 KiB, each over a new connection with a full handshake.
    Handshake,
}

impl Case {
    pub(super) const ALL: [Self; 3] = [Self::Small, Self::Large, Self::Handshake];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Small => "4 KiB hit",
            Self::Large => "64 KiB hit",
            Self::Handshake => "full handshake and 4 KiB",
        }
    }

    /// Greatest permitted CPU time of Foxy, as a fraction of nginx's CPU time.
    pub(super) const fn most(self) -> f64 {
        match self {
            Self::Small => 0.85,
            Self::Large => 0.6,
            Self::Handshake => 1.0,
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Small | Self::Handshake => "/4k",
            Self::Large => "/64k",
        }
    }

    /// Number of requests, and number of connections.
    fn size(self, share: f64) -> (u64, u64) {
        let (requests, connections) = match self {
            Self::Small => (150_000.0, 50.0),
            Self::Large => (40_000.0, 50.0),
            Self::Handshake => (1_500.0, 0.0),
        };
        let requests = (requests * share).max(50.0) as u64;
        match connections as u64 {
            0 => (requests, requests),
            connections => (requests, connections),
        }
    }

    /// Number of requests of a run.
    pub(super) fn requests(self, share: f64) -> u64 {
        self.size(share).0
    }

    /// Runs the load. Returns the server's CPU time per answer in microseconds.
    pub(super) fn measure(self, server: &Server, folder: &Path, share: f64) -> Result<f64, String> {
        let (requests, connections) = self.size(share);
        let before = server.cpu()?;
        let output = Command::new("taskset")
            .current_dir(folder)
            .args(["-c", CORE])
            .arg(install::path("h2load")?)
            .args(["--h1", "-t", "1"])
            .args(["-n", &requests.to_string(), "-c", &connections.to_string()])
            .args(["--connect-to", &server.address()])
            .arg(format!("https://{HOST}{}", self.path()))
            .output()
            .map_err(|e| format!("h2load: {e}"))?;
        let after = server.cpu()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let good = format!(" {requests} succeeded, 0 failed, 0 errored");
        if !text.contains(&good) || !text.contains("TLSv1.3") {
            let problem = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: h2load: {text}{problem}", self.name()));
        }
        Ok(after.saturating_sub(before) as f64 / requests as f64 / 1e3)
    }
}
