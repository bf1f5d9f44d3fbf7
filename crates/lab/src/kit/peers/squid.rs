//! Squid with a rock store, with an aufs store, or without a store. A separate process (the disker) reads and
//! writes the rock store, as it does when Squid runs as a daemon.

use std::process::Command;

use super::{Place, install, write};
use crate::kit::Launch;

/// Kind of Squid's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SquidDisk {
    /// No store on disk; objects are only in memory.
    Off,
    /// One large file that a separate process reads and writes.
    Rock,
    /// One file for each object. Threads read and write the files.
    Aufs,
}

/// Writes the configuration of Squid. If Squid has a store on disk, the caller must first run the command of
/// the returned launch once with `-z` added. This run prepares the store.
///
/// # Errors
/// An error if the folder cannot be written or given to Squid's user, or if the program is not installed.
pub fn squid(place: &Place<'_>, disk: SquidDisk) -> Result<Launch, String> {
    let folder = place.folder.display();
    let mib = place.disk_gib * 1024;
    let store = match disk {
        SquidDisk::Off => String::new(),
        SquidDisk::Rock => format!("cache_dir rock {folder}/store {mib} max-size=4194304"),
        SquidDisk::Aufs => format!("cache_dir aufs {folder}/store {mib} 64 256"),
    };
    let (port, memory) = (place.port, place.memory_mib);
    let collapse = if place.collapse {
        "collapsed_forwarding on"
    } else {
        ""
    };
    let config = place.folder.join("squid.conf");
    write(
        &config,
        &format!(
            "http_port 127.0.0.1:{port}
http_access allow all
{store}
{collapse}
cache_mem {memory} MB
maximum_object_size 4 MB
access_log none
cache_store_log none
cache_log {folder}/cache.log
pid_filename {folder}/squid.pid
coredump_dir {folder}
netdb_filename none
pinger_enable off
logfile_rotate 0
shutdown_lifetime 1 second
max_filedescriptors 65536
client_idle_pconn_timeout 2 minutes
visible_hostname bench
"
        ),
    )?;
    let program = install::path("squid")?;
    std::fs::create_dir_all(place.folder.join("store"))
        .map_err(|e| format!("{folder}/store: {e}"))?;
    own(place)?;
    let config = config.to_string_lossy().into_owned();
    let args = ["-n", place.name, "-f", &config, "--foreground"];
    Ok(Launch::new(program, args))
}

/// Gives the folder to the user that Squid's package created. Squid drops the rights of root and runs as
/// that user.
fn own(place: &Place<'_>) -> Result<(), String> {
    let status = Command::new("chown")
        .arg("-R")
        .arg("proxy:proxy")
        .arg(place.folder)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err("chown to Squid's user `proxy` failed; is the package installed?".into()),
    }
}
