//! Measures the memory of a server for idle connections that have received one answer.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use foxy_lab::kit::peers::install;

use super::load;
use super::servers::{HOST, Server};

/// Greatest permitted memory of the server for one connection, in KiB.
const MOST: f64 = 25.0;
/// Time after the start of the load at which all connections have their first answer and are idle.
const SETTLED: Duration = Duration::from_secs(25);
/// Time in milliseconds from the first request of a connection to its second and last request.
const WAIT: u64 = 32_000;

/// Opens connections and prints the server's memory per connection. Fails above 25 KiB.
pub(super) fn measure(server: &Server, folder: &Path, connections: u64) -> Result<(), String> {
    let script = folder.join("idle.txt");
    let url = format!("https://{HOST}/4k");
    let lines = format!("0\t{url}\n{WAIT}\t{url}\n");
    fs::write(&script, lines).map_err(|e| format!("{}: {e}", script.display()))?;
    let before = server.resident()?;
    let mut load = Command::new("taskset");
    load.current_dir(folder)
        .args(["-c", load::CORE])
        .arg(install::path("h2load")?)
        .args(["--h1", "-t", "1", "-n", "2", "-c", &connections.to_string()])
        .args(["--connect-to", &server.address()])
        .arg(format!("--timing-script-file={}", script.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let load = load.spawn().map_err(|e| format!("h2load: {e}"))?;
    sleep(SETTLED);
    let after = server.resident();
    let output = load
        .wait_with_output()
        .map_err(|e| format!("h2load: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let all = format!(" {} succeeded, 0 failed", connections * 2);
    if !text.contains(&all) {
        return Err(format!("{connections} idle connections: h2load: {text}"));
    }
    let each = (after? - before) / connections as f64;
    println!("   {connections} idle connections: {each:.1} KiB each, at most {MOST} are allowed");
    match each <= MOST {
        true => Ok(()),
        false => Err(format!("an idle connection takes {each:.1} KiB")),
    }
}
