//! Disks are added, drained, taken out and put back, and stores grow, while requests run. The test uses the
//! commands of an operator. No request may fail, and no answer may be wrong.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clients::process::Foxy;
use crate::clients::web::{Response, serve};

fn body(path: &str) -> String {
    path.repeat(400)
}

/// Requests a path. Returns the body if the status is 200.
fn ask(proxy: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(proxy).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
}

/// Runs `foxy store ...`. Returns its output if it succeeded.
fn store(foxy: &Foxy, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_foxy"))
        .arg("store")
        .args(arguments)
        .args(["--admin", &foxy.admin().to_string()])
        .current_dir(foxy.dir())
        .output()
        .expect("foxy runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

#[test]
fn disks_come_and_go_under_load_and_no_request_fails() {
    let web = serve(|request| Response::cacheable("text/plain", body(&request.path))).unwrap();
    let foxy = Arc::new(Foxy::reverse(&format!("http://{}", web.address)));
    let stop = Arc::new(AtomicBool::new(false));
    let good = Arc::new(AtomicU64::new(0));
    let load = {
        let (stop, good, proxy) = (Arc::clone(&stop), Arc::clone(&good), foxy.proxy);
        std::thread::spawn(move || {
            for n in (0..1000_u32).cycle() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let path = format!("/{}", n * 7919 % 300);
                let answer = ask(proxy, &path);
                assert_eq!(answer, Some(body(&path)), "{path}");
                good.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    store(&foxy, &["add", "second", "--size", "64MiB"]).unwrap();
    let again = store(&foxy, &["add", "second"]).unwrap_err();
    assert!(again.contains("open already"), "{again}");
    let held = store(&foxy, &["remove", "store"]).unwrap_err();
    assert!(held.contains("drain"), "{held}");
    store(&foxy, &["drain", "store", "--wait"]).unwrap();
    store(&foxy, &["remove", "store"]).unwrap();
    // The store is closed now, so it can be inspected like an unused store.
    let inspected = Command::new(env!("CARGO_BIN_EXE_foxy"))
        .args(["store", "inspect"])
        .arg(foxy.dir().join("store"))
        .output()
        .expect("foxy runs");
    assert!(inspected.status.success(), "{inspected:?}");
    store(&foxy, &["grow", "second", "--size", "128MiB"]).unwrap();
    store(&foxy, &["add", "store"]).unwrap();
    let list = store(&foxy, &["list"]).unwrap();
    assert!(
        list.contains("/second") && list.contains("/store"),
        "{list}"
    );
    let alone = store(&foxy, &["drain", "no-such-store"]).unwrap_err();
    assert!(alone.contains("foxy store list"), "{alone}");
    store(&foxy, &["remove", "--now", "second"]).unwrap();
    let before = good.load(Ordering::Relaxed);
    while good.load(Ordering::Relaxed) < before + 50 && !load.is_finished() {
        std::thread::sleep(Duration::from_millis(10));
    }
    stop.store(true, Ordering::Relaxed);
    load.join().expect("every answer was right");
}
