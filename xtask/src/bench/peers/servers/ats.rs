//! Apache Traffic Server as a forward proxy: one network thread, its store in a file.

use std::fs;

use super::super::tools;
use super::{DISK_GIB, Site, Start, write};

pub(super) fn start(site: &Site<'_>) -> Result<Start, String> {
    let folder = &site.folder;
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
        &format!("{shown}/cache {DISK_GIB}G\n"),
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
    write(&config.join("records.config"), &records(site))?;
    let mut start = Start::new(tools::path("traffic_server")?, [""; 0]);
    start.args = vec![format!("--run-root={shown}/runroot.yaml")];
    Ok(start)
}

/// Settings that differ from the defaults.
fn records(site: &Site<'_>) -> String {
    let numbers = [
        ("exec_thread.autoconfig", 0),
        ("exec_thread.limit", 1),
        ("accept_threads", 0),
        ("task_threads", 1),
        ("cache.ram_cache.size", site.memory_mib << 20),
        ("log.logging_enabled", 0),
        ("url_remap.remap_required", 0),
        ("reverse_proxy.enabled", 0),
        ("http.insert_response_via_str", 2),
        ("net.connections_throttle", 30_000),
        ("http.keep_alive_no_activity_timeout_in", 120),
        ("http.keep_alive_no_activity_timeout_out", 120),
        ("hostdb.host_file.interval", 0),
    ];
    let mut text = format!(
        "CONFIG proxy.config.http.server_ports STRING {}\n\
         CONFIG proxy.config.admin.user_id STRING #-1\n",
        site.port
    );
    for (name, value) in numbers {
        text.push_str(&format!("CONFIG proxy.config.{name} INT {value}\n"));
    }
    text
}
