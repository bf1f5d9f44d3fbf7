//! Apache Traffic Server as a forward proxy: one network thread, its store in a file.

use std::fs;

use super::{Place, install, write};
use crate::kit::Launch;

/// Writes the configuration of Apache Traffic Server.
///
/// # Errors
/// An error if the folder cannot be written, or if the program is not installed.
pub fn ats(place: &Place<'_>) -> Result<Launch, String> {
    let folder = place.folder;
    let config = folder.join("config");
    for name in ["config", "cache", "run", "log"] {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let shown = folder.display();
    write(
        &folder.join("runroot.yaml"),
        &format!(
            "prefix: {shown}\nexec_prefix: /usr\nbindir: /usr/bin\nsbindir: /usr/sbin\n\
             sysconfdir: {shown}/config\ndatadir: {shown}/cache\nincludedir: /usr/include\n\
             libdir: /usr/lib/trafficserver\nlibexecdir: /usr/lib/trafficserver/modules\n\
             localstatedir: {shown}\nruntimedir: {shown}/run\nlogdir: {shown}/log\n\
             cachedir: {shown}/cache\n"
        ),
    )?;
    write(
        &config.join("storage.config"),
        &format!("{shown}/cache {}G\n", place.disk_gib),
    )?;
    for empty in [
        "plugin.config",
        "remap.config",
        "hosting.config",
        "volume.config",
    ] {
        write(&config.join(empty), "")?;
    }
    write(
        &config.join("ip_allow.yaml"),
        "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n    methods: ALL\n",
    )?;
    write(&config.join("records.config"), &records(place))?;
    let run_root = format!("--run-root={shown}/runroot.yaml");
    Ok(Launch::new(install::path("traffic_server")?, [run_root]))
}

/// Settings that differ from the defaults.
fn records(place: &Place<'_>) -> String {
    let mut numbers = vec![
        ("exec_thread.autoconfig", 0),
        ("exec_thread.limit", 1),
        ("accept_threads", 0),
        ("task_threads", 1),
        ("cache.ram_cache.size", place.memory_mib << 20),
        ("log.logging_enabled", 0),
        ("url_remap.remap_required", 0),
        ("reverse_proxy.enabled", 0),
        ("http.insert_response_via_str", 2),
        ("net.connections_throttle", 30_000),
        ("http.keep_alive_no_activity_timeout_in", 120),
        ("http.keep_alive_no_activity_timeout_out", 120),
        ("hostdb.host_file.interval", 0),
    ];
    if place.collapse {
        // While an object is being fetched, other requests for it wait for its head. Then they read the
        // object while it arrives.
        numbers.extend([
            ("cache.enable_read_while_writer", 1),
            ("http.background_fill_active_timeout", 0),
            ("http.cache.max_open_read_retries", 20),
            ("http.cache.open_read_retry_time", 50),
        ]);
    }
    let mut text = format!(
        "CONFIG proxy.config.http.server_ports STRING {}\n\
         CONFIG proxy.config.admin.user_id STRING #-1\n",
        place.port
    );
    for (name, value) in numbers {
        text.push_str(&format!("CONFIG proxy.config.{name} INT {value}\n"));
    }
    text
}
