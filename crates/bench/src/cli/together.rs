//! `bench together`: the command line of a burst of clients that request one object at the same moment.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};

use super::object::ObjectArgs;
use super::time;
use crate::together::Burst;

/// Options of a burst.
#[derive(Debug, clap::Args)]
pub struct TogetherArgs {
    /// Object to request
    #[command(flatten)]
    pub object: ObjectArgs,
    /// Number of clients that request the complete object
    #[arg(long, default_value_t = 100)]
    pub clients: usize,
    /// Time between the request of the first client and the requests of the other clients
    #[arg(long, default_value = "20ms", value_parser = time)]
    pub lead: Duration,
    /// The first client disconnects after this many bytes
    #[arg(long, value_name = "SIZE")]
    pub leave_after: Option<ByteSize>,
    /// Number of clients that read slowly, in addition to --clients; the run does not wait for them
    #[arg(long, default_value_t = 0)]
    pub slow: usize,
    /// Bytes per second of each slow client
    #[arg(long, default_value = "10KB", value_name = "SIZE")]
    pub slow_rate: ByteSize,
    /// Each client sends its own cookie, and the answer varies by the cookie
    #[arg(long)]
    pub cookies: bool,
    /// Time limit for the complete run
    #[arg(long, default_value = "2m", value_parser = time)]
    pub timeout: Duration,
}

impl TogetherArgs {
    /// Runs the burst and prints a JSON report. Returns false if a client did not get the complete object.
    ///
    /// # Errors
    /// Returned if target or origin cannot be reached, or if the path is not an object of the origin.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        let burst = Burst {
            target: self.object.target,
            origin: self.object.origin,
            knobs: self.object.knobs()?,
            clients: self.clients,
            lead: self.lead,
            leave_after: self.leave_after.map(|size| size.bytes()),
            slow: self.slow,
            slow_rate: self.slow_rate.bytes(),
            cookies: self.cookies,
            timeout: self.timeout,
        };
        let report = burst.run(clock)?;
        println!("{}", serde_json::to_string_pretty(&report)?);
        Ok(report.is_right())
    }
}
