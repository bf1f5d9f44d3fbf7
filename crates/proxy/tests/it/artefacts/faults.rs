//! A registry with many files and with faults in its answers, and several clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foxy_proxy::{Event, Role};

use super::{download, file, hex, renew_index};
use crate::common::{Foxy, Origin};
use crate::mirrors::{config, mirror};

const FILES: usize = 120;

/// Returns the bytes of file `n`, which differ for each version of the registry.
fn release(version: usize, n: usize) -> Vec<u8> {
    file((version * 100 + n) as u8, 900 + n * 700)
}

/// A registry with many files. One answer in four has a fault. `counts` contains two numbers: the number of
/// answers with files, and the number of these answers that have wrong bytes.
fn faulty(version: &Arc<AtomicUsize>, counts: &Arc<[AtomicUsize; 2]>) -> Origin {
    let (now, counts) = (Arc::clone(version), Arc::clone(counts));
    Origin::start(move |asked| {
        let port = asked.client.stream.local_addr().unwrap().port();
        let version = now.load(Ordering::SeqCst);
        if asked.path() == "/simple/a/" {
            let link = |n| {
                let digest = hex(&release(version, n));
                format!(
                    "<a href=\"http://127.0.0.1:{port}/packages/{n}#sha256={digest}\">{n}</a>\n"
                )
            };
            let links: String = (0..FILES).map(link).collect();
            asked.reply("200 OK", "Content-Type: text/html\r\n", links);
            return true;
        }
        let n: usize = asked.path().rsplit('/').next().unwrap().parse().unwrap();
        let mut bytes = release(version, n);
        let length = bytes.len();
        match counts[0].fetch_add(1, Ordering::SeqCst) % 16 {
            3 => {
                counts[1].fetch_add(1, Ordering::SeqCst);
                bytes[(n * 37) % length] ^= 0x40;
            }
            7 => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                asked.raw([head.as_bytes(), &bytes[..length / 2]].concat());
                return false;
            }
            11 => {
                let range = format!("Content-Range: bytes 0-{}/{length}\r\n", length - 1);
                asked.reply("206 Partial Content", &range, &bytes);
                return true;
            }
            15 => {
                // This answer has the file of another version under the same name.
                counts[1].fetch_add(1, Ordering::SeqCst);
                bytes = release(version + 1, n);
            }
            _ => {}
        }
        asked.reply("200 OK", "ETag: \"same\"\r\n", bytes);
        true
    })
}

/// Four clients request the files. Halfway through the test, each file gets a new version. A complete file
/// that a client gets must be the file whose digest the latest index contains. Foxy must count every answer
/// with wrong bytes.
#[test]
fn faults_among_many_artefacts_cost_an_error_and_never_a_wrong_file() {
    let (version, counts) = (Arc::default(), Arc::default());
    let origin = faulty(&version, &counts);
    let foxy = Foxy::start(Role::Forward, config(vec![mirror("pypi", &origin)]), 2);
    for round in 0..2_usize {
        version.store(round, Ordering::SeqCst);
        renew_index(&foxy, round as i64);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let foxy = &foxy;
                scope.spawn(move || {
                    for step in 0..FILES {
                        let n = (step * 7 + client * 31) % FILES;
                        let path = format!("/pypi/packages/{n}");
                        // One answer in four is wrong, so forty wrong answers in a row are practically
                        // impossible.
                        let mut tries = (0..40).map(|_| download(foxy, &path));
                        let got = tries.find(|(_, whole)| *whole);
                        let right = got.is_some_and(|(bytes, _)| bytes == release(round, n));
                        assert!(right, "{round} {n}: another file");
                    }
                });
            }
        });
    }
    let [answers, flipped] = [0, 1].map(|n: usize| counts[n].load(Ordering::SeqCst));
    assert!(flipped > 10, "{flipped}");
    foxy.counts(Event::MirrorMismatch, flipped as u64);
    assert!(answers < 5 * FILES, "files are kept: {answers}");
}
