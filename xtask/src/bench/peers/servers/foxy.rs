//! The commands that start Foxy, Foxy's front end with one of the published disk layouts (`foxy-lab bench
//! proxy`), the simplest possible server (`bench floor`), and the proxy with a process for each request
//! (bench/fork-proxy).

use foxy_lab::kit::Launch;

use super::{DISK_GIB, Site};

pub(super) fn start(site: &Site<'_>, reverse: bool) -> Launch {
    let store = site.folder.join("store");
    let mut args = vec![
        "serve".to_owned(),
        "--listen".into(),
        format!("127.0.0.1:{}", site.port),
        "--admin".into(),
        format!("127.0.0.1:{}", site.admin),
        "--access-log".into(),
        "off".into(),
        "--workers".into(),
        "1".into(),
        "--memory".into(),
        format!("{}MiB", site.memory_mib),
        "--store".into(),
        store.to_string_lossy().into_owned(),
        "--store-size".into(),
        format!("{DISK_GIB}GiB"),
    ];
    if reverse {
        args.extend([
            "--origin".into(),
            format!("http://127.0.0.1:{}", site.origin),
        ]);
    }
    Launch::new(site.programs.foxy.clone(), args)
}

pub(super) fn floor(site: &Site<'_>) -> Launch {
    let listen = format!("127.0.0.1:{}", site.port);
    let args = ["bench", "floor", "--listen", &listen, "--host", "h1"];
    Launch::new(site.programs.lab.clone(), args)
}

pub(super) fn fork(site: &Site<'_>, cache: bool) -> Launch {
    let listen = format!("127.0.0.1:{}", site.port);
    let mut args = vec!["serve".to_owned(), "--listen".into(), listen];
    if cache {
        let folder = site.folder.join("files");
        args.extend(["--cache".into(), folder.to_string_lossy().into_owned()]);
    }
    Launch::new(super::super::fork::program(&site.programs.foxy), args)
}

/// Disk space for the objects of a published layout, in GiB. The layout's file has its full length before the
/// first request.
const LAYOUT_GIB: u64 = 2;

pub(super) fn layout(site: &Site<'_>, layout: &str) -> Launch {
    let values = [
        ("--listen", format!("127.0.0.1:{}", site.port)),
        ("--admin", format!("127.0.0.1:{}", site.admin)),
        ("--access-log", "off".to_owned()),
        ("--workers", "1".to_owned()),
        ("--layout", layout.to_owned()),
        ("--dir", site.folder.to_string_lossy().into_owned()),
        ("--ram", format!("{}MiB", site.memory_mib)),
        ("--disk", format!("{LAYOUT_GIB}GiB")),
    ];
    let mut args = vec!["bench".to_owned(), "proxy".to_owned()];
    for (name, value) in values {
        args.extend([name.to_owned(), value]);
    }
    Launch::new(site.programs.lab.clone(), args)
}
