//! One purge by tag that removes a million objects. It must be acknowledged in time, take effect immediately,
//! and still apply after SIGKILL.

use super::process::Bench;
use crate::report::Outcome;
use crate::workspace::cargo;

/// Greatest permitted time until the acknowledgement, in milliseconds.
const LIMIT: f64 = 10.0;

pub(crate) fn run(bench: &Bench) -> Outcome {
    Outcome::single(million(bench))
}

fn million(bench: &Bench) -> Result<(), String> {
    let store = bench.path("purge-store");
    let mut example = cargo(&["run", "--release", "--quiet", "--package", "foxy-store"]);
    example.args(["--example", "purge", "--"]).arg(&store);
    let done = example.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&done.stdout);
    for line in text.lines() {
        println!("   {line}");
    }
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let took = text.lines().find_map(|line| {
        let rest = line.strip_prefix("acknowledged after ")?;
        rest.strip_suffix(" ms")?.parse::<f64>().ok()
    });
    match took {
        Some(took) if took < LIMIT => Ok(()),
        Some(took) => Err(format!(
            "acknowledged after {took} ms, {LIMIT} are promised"
        )),
        None => Err("the example does not tell how long it took".to_owned()),
    }
}
