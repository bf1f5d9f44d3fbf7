//! Squid with a rock store (and its disker, as in daemon mode) or with aufs.

use std::process::{Command, Stdio};

use super::super::host::Core;
use super::super::tools;
use super::{DISK_GIB, Site, Start, write};

/// The kind of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    Rock,
    Aufs,
}

pub(super) fn start(site: &Site<'_>, disk: Disk) -> Result<Start, String> {
    let folder = site.folder.display();
    let mib = DISK_GIB * 1024;
    let store = match disk {
        Disk::Rock => format!("cache_dir rock {folder}/store {mib} max-size=4194304"),
        Disk::Aufs => format!("cache_dir aufs {folder}/store {mib} 64 256"),
    };
    let (port, memory) = (site.port, site.memory_mib);
    let config = site.folder.join("squid.conf");
    write(
        &config,
        &format!(
            "http_port 127.0.0.1:{port}
http_access allow all
{store}
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
    let program = tools::path("squid")?;
    std::fs::create_dir_all(site.folder.join("store"))
        .map_err(|e| format!("{folder}/store: {e}"))?;
    own(site)?;
    // Shared memory gets a name that the run's watcher knows and removes.
    let name = format!("{}x{port}", site.host.name);
    let config = config.to_string_lossy().into_owned();
    let args = ["-n", &name, "-f", &config, "--foreground"];
    let output = site
        .host
        .group("tools")?
        .command(Core::Load, &program)
        .args(args)
        .arg("-z")
        .stdout(Stdio::null())
        .output()
        .map_err(|e| format!("squid -z: {e}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!(
            "squid -z: {}",
            text.lines().last().unwrap_or_default()
        ));
    }
    let _ = std::fs::remove_file(site.folder.join("squid.pid"));
    Ok(Start::new(program, args))
}

/// Squid gives up root for the user that its package made.
fn own(site: &Site<'_>) -> Result<(), String> {
    let status = Command::new("chown")
        .arg("-R")
        .arg("proxy:proxy")
        .arg(&site.folder)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err("chown to Squid's user `proxy` failed; is the package installed?".into()),
    }
}
