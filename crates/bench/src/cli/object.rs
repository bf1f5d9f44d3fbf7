//! One object of the origin, and the proxy to get it through: what several tools are given.

use std::io;
use std::net::SocketAddr;

use super::invalid;
use crate::Knobs;

/// An object, where it comes from, and through whom.
#[derive(Debug, clap::Args)]
pub struct ObjectArgs {
    /// The proxy
    #[arg(long, value_name = "ADDR")]
    pub target: SocketAddr,
    /// The origin of the object
    #[arg(long, value_name = "ADDR")]
    pub origin: SocketAddr,
    /// Path of the object as `bench origin` knows it, such as /o/1?s=1000000&l=200&b=50000000
    #[arg(long, value_name = "PATH")]
    pub object: String,
}

impl ObjectArgs {
    /// Settings in the path.
    ///
    /// # Errors
    /// It is no object of the origin.
    pub(super) fn knobs(&self) -> io::Result<Knobs> {
        Knobs::parse(self.object.as_bytes()).ok_or_else(|| {
            invalid(format!(
                "--object {}: not an object of `bench origin`; write /o/1?s=1000",
                self.object
            ))
        })
    }
}
