//! nginx with one worker, cache files in two levels of folders, and Host as part of the key.

use super::{Place, install, write};
use crate::kit::Launch;

/// Writes the configuration of nginx.
///
/// # Errors
/// An error if the folder cannot be written, or if the program is not installed.
pub fn nginx(place: &Place<'_>) -> Result<Launch, String> {
    let folder = place.folder.display();
    let (port, origin, disk_gib) = (place.port, place.origin, place.disk_gib);
    // `aio threads` is only for hits from the disk: a disk read in the worker would block all other
    // connections. For reads from the page cache, a thread pool only adds delay.
    let lock = if place.collapse {
        "proxy_cache_lock on;"
    } else {
        ""
    };
    let aio = if place.disk_hits { "aio threads;" } else { "" };
    // `tcp_nopush` is off, because with `on` the last part of an answer is held back on loopback.
    let text = format!(
        "user root;
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush off;
    tcp_nodelay on;
    {aio}
    keepalive_timeout 120s;
    keepalive_requests 100000000;
    open_file_cache max=2000 inactive=60s;
    client_body_temp_path {folder}/client;
    proxy_temp_path {folder}/temp;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    proxy_cache_path {folder}/cache levels=1:2 keys_zone=all:128m max_size={disk_gib}g inactive=1d use_temp_path=off;
    upstream origin {{ server 127.0.0.1:{origin}; keepalive 2000; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $host;
            proxy_cache all;
            proxy_cache_key $host$request_uri;
            {lock}
            add_header X-Cache-Status $upstream_cache_status;
        }}
    }}
}}
"
    );
    let config = place.folder.join("nginx.conf");
    write(&config, &text)?;
    let config = config.to_string_lossy().into_owned();
    Ok(Launch::new(
        install::path("nginx")?,
        ["-c", config.as_str(), "-p", &folder.to_string()],
    ))
}
