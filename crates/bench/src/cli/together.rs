//! `bench together`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ByteSize, Clock};

use super::object::ObjectArgs;
use super::time;
use crate::together::Together;

/// Options of a crowd.
#[derive(Debug, clap::Args)]
pub struct TogetherArgs {
    /// The object
    #[command(flatten)]
    pub object: ObjectArgs,
    /// Clients that want all of it
    #[arg(long, default_value_t = 100)]
    pub clients: usize,
    /// Time by which the first client is ahead of the others
    #[arg(long, default_value = "20ms", value_parser = time)]
    pub lead: Duration,
    /// The first client leaves after this many bytes
    #[arg(long, value_name = "SIZE")]
    pub leave_after: Option<ByteSize>,
    /// Further clients that read slowly and are not waited for
    #[arg(long, default_value_t = 0)]
    pub slow: usize,
    /// Bytes per second of each of them
    #[arg(long, default_value = "10KB", value_name = "SIZE")]
    pub slow_rate: ByteSize,
    /// Each client has its own cookie, and the answer varies by it
    #[arg(long)]
    pub cookies: bool,
    /// Longest time for all
    #[arg(long, default_value = "2m", value_parser = time)]
    pub timeout: Duration,
}

impl TogetherArgs {
    /// Runs the crowd and prints a JSON report; false if somebody did not get what it wanted.
    ///
    /// # Errors
    /// Target or origin cannot be reached, or the object is not one.
    pub fn run(&self, clock: &Arc<dyn Clock>) -> io::Result<bool> {
        let crowd = Together {
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
        let gathered = crowd.run(clock)?;
        println!("{}", serde_json::to_string_pretty(&gathered)?);
        Ok(gathered.is_right())
    }
}
