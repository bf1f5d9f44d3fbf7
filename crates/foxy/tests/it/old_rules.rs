//! A store that an older Foxy has written, under rules that permitted too much. Foxy must serve only those
//! objects that it would also store under its current rules.
//!
//! The Foxy of commit b92db70 has written the store. It ran as a site in front of `http://127.0.0.1:1`, with
//! the rule below. The store contains five answers with a lifetime of 68 years, whose bodies begin with
//! `old`:
//!
//! | request | answer |
//! |---|---|
//! | `/plain` | |
//! | `/cookie` | `Set-Cookie: sid=alice` |
//! | `/cloaked?id=1&x=evil`, stored under `/cloaked?id=1` by `query_keep` | made for `x=evil` |
//! | `/vary`, `X-Kind: a` | `Vary: X-Kind` |
//! | `/vary-poisoned`, `X-Kind: poison` with `Connection: X-Kind` | `Vary: X-Kind`, made without the field |

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use crate::frozen;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Nothing listens on port 1, so an answer that is not served from the store is a 502.
const SETTINGS: &str = r#"
admin = "off"
[[site]]
name = "golden"
listen = ["ADDRESS"]
origin = "http://127.0.0.1:1"
[[rule]]
path = "/cloaked"
query_keep = ["id"]
"#;

struct Foxy {
    child: Child,
    address: SocketAddr,
}

impl Foxy {
    fn start(folder: &Path, store: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = folder.join("foxy.toml");
        let settings = SETTINGS.replace("ADDRESS", &address.to_string());
        std::fs::write(&config, settings).unwrap();
        let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
        foxy.env_clear().args(["serve", "--access-log", "off"]);
        foxy.args(["--memory", "64MiB", "--store-size", "16MiB"]);
        foxy.arg("--config").arg(config).arg("--store").arg(store);
        let child = foxy.stdout(Stdio::null()).spawn().unwrap();
        let mut foxy = Self { child, address };
        for _ in 0..3000 {
            assert!(foxy.child.try_wait().unwrap().is_none(), "it ended");
            if TcpStream::connect(address).is_ok() {
                return foxy;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not listen");
    }

    /// Returns the answer with its head.
    fn get(&self, target: &str, fields: &str) -> String {
        let mut client = TcpStream::connect(self.address).unwrap();
        let timeout = Some(Duration::from_secs(20));
        client.set_read_timeout(timeout).unwrap();
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: golden.test\r\nConnection: close\r\n{fields}\r\n"
        );
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn answers_that_todays_rules_would_not_store_are_not_served() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let image = frozen::path(env!("CARGO_MANIFEST_DIR"), "rules");
    let image = std::fs::read_to_string(image).unwrap();
    std::fs::write(&store, frozen::unhex(&image)).unwrap();
    let foxy = Foxy::start(folder.path(), &store);
    let plain = foxy.get("/plain", "");
    assert!(plain.ends_with("\r\n\r\nold /plain kind=None"), "{plain}");
    for (target, fields) in [
        ("/cookie", ""),
        ("/cloaked?id=1", ""),
        ("/cloaked?id=1&x=evil", ""),
        ("/vary", "X-Kind: b\r\n"),
        ("/vary-poisoned", "X-Kind: poison\r\n"),
        ("/vary-poisoned", ""),
    ] {
        let answer = foxy.get(target, fields);
        assert!(answer.starts_with("HTTP/1.1 502 "), "{target}: {answer}");
        assert!(!answer.contains("old"), "{target}: {answer}");
    }
}
