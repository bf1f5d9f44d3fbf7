//! `bench resolver`: the command line of a name server that can be slow or fail.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use foxy_base::Clock;

use crate::{Phase, TestResolver, Zone};

/// Options of the name server.
#[derive(Debug, clap::Args)]
pub struct ResolverArgs {
    /// Listener address (UDP)
    #[arg(long, default_value = "127.0.0.1:5353", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Address of every name, may be repeated; a name such as 127-1-0-5.test has the address that it
    /// contains
    #[arg(long, default_value = "127.0.0.1", value_name = "IP")]
    pub address: Vec<IpAddr>,
    /// Time to live of the answers, in seconds
    #[arg(long, default_value_t = 60)]
    pub ttl: u32,
    /// Behaviour, may be repeated: good, slow:TIME, silent, fail, refuse, unknown, empty, circle, stranger,
    /// garbage or torn; with `,TIME` it lasts for this time
    #[arg(long, default_value = "good", value_name = "KIND[,TIME]")]
    pub phase: Vec<Phase>,
}

impl ResolverArgs {
    /// Answers DNS queries until the process ends.
    ///
    /// # Errors
    /// Returned if the server cannot listen.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<()> {
        let zone = Zone {
            addresses: self.address.clone(),
            ttl: self.ttl,
        };
        let mut resolver = TestResolver::start(self.listen, zone, self.phase.clone(), clock)?;
        println!("resolver on {}", resolver.address());
        resolver.wait();
        Ok(())
    }
}
