//! `bench ranges`: the command line of a reader that reads at random positions of one object.

use std::io;

use foxy_base::ByteSize;

use super::invalid;
use super::object::ObjectArgs;
use crate::ranges::{Plan, RangeReader};

/// Options of a reader of random ranges.
#[derive(Debug, clap::Args)]
pub struct RangesArgs {
    /// Object to read
    #[command(flatten)]
    pub object: ObjectArgs,
    /// Read the complete object once, in this many pieces of different lengths and in a random order
    #[arg(long, conflicts_with = "reads")]
    pub pieces: Option<u64>,
    /// With --pieces: divide the pieces into N parts and read only part K, such as 1/2
    #[arg(long, default_value = "1/1", value_name = "K/N")]
    pub part: String,
    /// Number of reads at random positions
    #[arg(long, default_value_t = 1)]
    pub reads: u64,
    /// Bytes of each read
    #[arg(long, default_value = "100", value_name = "SIZE")]
    pub bytes: ByteSize,
    /// Seed of positions and order
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl RangesArgs {
    /// Reads the ranges and prints a JSON report. Returns false if a read failed or returned a wrong byte.
    ///
    /// # Errors
    /// Returned if target or origin cannot be reached, or if the path is not an object of the origin.
    pub fn run(&self) -> io::Result<bool> {
        let knobs = self.object.knobs()?;
        if knobs.size == 0 {
            let path = &self.object.object;
            return Err(invalid(format!("--object {path}: it has no bytes (s=0)")));
        }
        let plan = match self.pieces {
            Some(pieces) => {
                let (part, parts) = self.part()?;
                Plan::Everything {
                    pieces,
                    part,
                    parts,
                }
            }
            None => Plan::Anywhere {
                reads: self.reads,
                bytes: self.bytes.bytes(),
            },
        };
        let reader = RangeReader {
            target: self.object.target,
            origin: self.object.origin,
            knobs,
            plan,
            seed: self.seed,
        };
        let report = reader.run()?;
        println!("{}", serde_json::to_string_pretty(&report)?);
        Ok(report.is_right())
    }

    /// Parses `K/N`. Returns the part, counted from 0, and the number of parts.
    fn part(&self) -> io::Result<(u64, u64)> {
        let numbers = self.part.split_once('/');
        let numbers =
            numbers.and_then(|(k, n)| Some((k.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
        match numbers {
            Some((part, parts)) if 1 <= part && part <= parts => Ok((part - 1, parts)),
            _ => Err(invalid(format!(
                "--part {}: write K/N, such as 1/2",
                self.part
            ))),
        }
    }
}
