//! Foxy, the floor, and the model with a process per request.

use super::{DISK_GIB, Site, Start};

pub(super) fn start(site: &Site<'_>, reverse: bool) -> Start {
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
    Start::new(site.foxy.to_path_buf(), args)
}

pub(super) fn floor(site: &Site<'_>) -> Start {
    let listen = format!("127.0.0.1:{}", site.port);
    let args = ["bench", "floor", "--listen", &listen, "--host", "h1"];
    Start::new(site.foxy.to_path_buf(), args)
}

pub(super) fn fork(site: &Site<'_>, cache: bool) -> Start {
    let listen = format!("127.0.0.1:{}", site.port);
    let mut args = vec!["serve".to_owned(), "--listen".into(), listen];
    if cache {
        let folder = site.folder.join("files");
        args.extend(["--cache".into(), folder.to_string_lossy().into_owned()]);
    }
    Start::new(super::super::fork::program(site.foxy), args)
}
