//! `bench floor`: the command line of the baseline server, which is the simplest possible server
//! ([`BaselineServer`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};

use crate::BaselineServer;

/// Options of the baseline server. A load for this server needs the options `--objects 1 --servers 1 --sizes
/// SIZE`, and `--reverse HOST` unless `--host` is an address.
#[derive(Debug, clap::Args)]
pub struct FloorArgs {
    /// Listener address
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Length of the body in each answer
    #[arg(long, default_value = "4KiB", value_name = "SIZE")]
    pub size: ByteSize,
    /// Server whose object 0 is sent; server 1 of a load is `h1` if the load has `--reverse`, and otherwise
    /// 127.1.0.1
    #[arg(long, default_value = "127.1.0.1")]
    pub host: String,
    /// Compute for this long before each answer, such as 500ns; this shows the kernel's CPU time for a server
    /// that has other work
    #[arg(long, default_value = "0", value_parser = super::time)]
    pub work: Duration,
}

impl FloorArgs {
    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// Returned if the server cannot listen.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<()> {
        let mut server =
            BaselineServer::bind(self.listen, &self.host, self.size.bytes(), self.work, clock)?;
        println!("floor on {}", server.address()?);
        server.run()
    }
}
