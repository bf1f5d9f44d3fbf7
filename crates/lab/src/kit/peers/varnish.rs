//! Varnish with its contents in a mapped file. Contents in memory are pages of this file in the page cache.

use super::{Place, install, write};
use crate::kit::Launch;

/// Writes the configuration of Varnish.
///
/// # Errors
/// An error if the folder cannot be written, or if the program is not installed.
pub fn varnish(place: &Place<'_>) -> Result<Launch, String> {
    let rules = place.folder.join("rules.vcl");
    write(
        &rules,
        &format!(
            "vcl 4.1;
backend default {{ .host = \"127.0.0.1\"; .port = \"{}\"; .max_connections = 8000; }}
sub vcl_deliver {{
    if (obj.hits > 0) {{ set resp.http.X-Cache = \"HIT\"; }} else {{ set resp.http.X-Cache = \"MISS\"; }}
}}
",
            place.origin
        ),
    )?;
    let work = place.folder.join("work");
    let store = place.folder.join("store");
    let args = [
        "-F".to_owned(),
        "-j".into(),
        "none".into(),
        "-a".into(),
        format!("127.0.0.1:{}", place.port),
        "-f".into(),
        rules.to_string_lossy().into_owned(),
        "-n".into(),
        work.to_string_lossy().into_owned(),
        "-s".into(),
        format!("file,{},{}G", store.display(), place.disk_gib),
        "-p".into(),
        "thread_pools=1".into(),
        "-p".into(),
        "timeout_idle=120".into(),
    ];
    Ok(Launch::new(install::path("varnishd")?, args))
}
