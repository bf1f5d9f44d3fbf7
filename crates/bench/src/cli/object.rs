//! One object of the origin, and the proxy through which it is requested. Several tools have these options.

use std::io;
use std::net::SocketAddr;

use super::invalid;
use crate::Knobs;

/// An object, its origin, and the proxy.
#[derive(Debug, clap::Args)]
pub struct ObjectArgs {
    /// Address of the proxy
    #[arg(long, value_name = "ADDR")]
    pub target: SocketAddr,
    /// Address of the object's origin
    #[arg(long, value_name = "ADDR")]
    pub origin: SocketAddr,
    /// Path of the object in the syntax of `bench origin`, such as /o/1?s=1000000&l=200&b=50000000
    #[arg(long, value_name = "PATH")]
    pub object: String,
}

impl ObjectArgs {
    /// The settings of the object that its path contains.
    ///
    /// # Errors
    /// Returned if the path is not an object of the origin.
    pub(super) fn knobs(&self) -> io::Result<Knobs> {
        Knobs::parse(self.object.as_bytes()).ok_or_else(|| {
            invalid(format!(
                "--object {}: not an object of `bench origin`; write /o/1?s=1000",
                self.object
            ))
        })
    }
}
