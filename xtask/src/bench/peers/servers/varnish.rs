//! Varnish: contents in a mapped file; its memory is the page cache.

use super::super::tools;
use super::{DISK_GIB, Site, Start, write};

pub(super) fn start(site: &Site<'_>) -> Result<Start, String> {
    let rules = site.folder.join("rules.vcl");
    write(
        &rules,
        &format!(
            "vcl 4.1;
backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; .max_connections = 8000; }}
sub vcl_deliver {{
    if (obj.hits > 0) {{ set resp.http.X-Cache = \"HIT\"; }} else {{ set resp.http.X-Cache = \"MISS\"; }}
}}
",
            site.origin
        ),
    )?;
    let work = site.folder.join("work");
    let store = site.folder.join("store");
    let args = [
        "-F".to_owned(),
        "-j".into(),
        "none".into(),
        "-a".into(),
        format!("127.0.0.1:{}", site.port),
        "-f".into(),
        rules.to_string_lossy().into_owned(),
        "-n".into(),
        work.to_string_lossy().into_owned(),
        "-s".into(),
        format!("file,{},{DISK_GIB}G", store.display()),
        "-p".into(),
        "thread_pools=1".into(),
        "-p".into(),
        "timeout_idle=120".into(),
    ];
    Ok(Start::new(tools::path("varnishd")?, args))
}
