//! curl: plain requests, CONNECT to a TLS server, 100 MB down and up, ranges, HEAD.

use std::fs;

use crate::clients::process::{Foxy, run, text, tool};
use crate::clients::tls;
use crate::clients::web::{self, Response};

/// Returns `n` bytes without a short period.
pub(crate) fn body(n: usize) -> Vec<u8> {
    (0..n as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

#[test]
fn a_page_twice_is_one_request_to_the_origin() {
    let Some(mut curl) = tool("curl", "curl") else {
        return;
    };
    let origin = web::serve(|_| Response::cacheable("text/plain", "hello")).unwrap();
    let foxy = Foxy::forward(&[443]);
    let url = origin.url("/page");
    curl.args(["-sS", "-i", "-x", &foxy.url(), &url]);
    let (first, second) = (text(&mut curl), text(&mut curl));
    assert!(
        first.ends_with("hello") && second.ends_with("hello"),
        "{first}\n{second}"
    );
    assert!(
        first.contains("fwd=") && second.contains("; hit"),
        "{first}\n{second}"
    );
    assert_eq!(origin.requests(), 1);
}

#[test]
fn head_and_ranges_come_from_the_stored_whole() {
    let Some(mut curl) = tool("curl", "curl") else {
        return;
    };
    let whole = body(300_000);
    let served = whole.clone();
    let origin = web::serve(move |_| Response::cacheable("text/plain", served.clone())).unwrap();
    let foxy = Foxy::forward(&[443]);
    let url = origin.url("/whole");
    assert_eq!(
        run(curl.args(["-sS", "-x", &foxy.url(), &url])).stdout,
        whole
    );
    let mut head = tool("curl", "curl").unwrap();
    let head = text(head.args(["-sSI", "-x", &foxy.url(), &url]));
    assert!(
        head.starts_with("HTTP/1.1 200") && head.contains("300000"),
        "{head}"
    );
    for (range, expect) in [("100-199", &whole[100..200]), ("-5", &whole[299_995..])] {
        let mut part = tool("curl", "curl").unwrap();
        part.args(["-sS", "-r", range, "-x", &foxy.url(), &url]);
        assert_eq!(run(&mut part).stdout, expect, "{range}");
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn a_hundred_megabytes_down_and_up() {
    let Some(mut down) = tool("curl", "curl") else {
        return;
    };
    let whole = body(100_000_000);
    let served = whole.clone();
    let origin = web::serve(move |request| match request.method.as_str() {
        "GET" => Response::cacheable("application/octet-stream", served.clone()),
        _ => Response::new(200, "text/plain", (request.body == served).to_string()),
    })
    .unwrap();
    let foxy = Foxy::forward(&[443]);
    let url = origin.url("/big");
    let file = foxy.dir().join("down");
    down.args(["-sS", "-x", &foxy.url(), "-o"])
        .arg(&file)
        .arg(&url);
    for _ in 0..2 {
        run(&mut down);
        assert!(fs::read(&file).unwrap() == whole, "100 MB differ");
    }
    for encoding in ["Content-Length: 100000000", "Transfer-Encoding: chunked"] {
        let mut up = tool("curl", "curl").unwrap();
        up.args(["-sS", "-x", &foxy.url(), "-X", "PUT", "-H", encoding, "-T"])
            .arg(&file)
            .arg(&url);
        assert_eq!(text(&mut up), "true", "{encoding}");
    }
}

#[test]
fn connect_reaches_a_tls_server() {
    let Some(mut curl) = tool("curl", "curl") else {
        return;
    };
    let (origin, certificate) = tls::serve(|r| Response::new(200, "text/plain", r.path.clone()));
    let port = origin.address.port();
    let foxy = Foxy::forward(&[port]);
    let trust = foxy.dir().join("ca.pem");
    fs::write(&trust, certificate).unwrap();
    let url = format!("https://localhost:{port}/secret");
    curl.args(["-sS", "-x", &foxy.url(), "--cacert"])
        .arg(&trust)
        .arg(&url);
    assert_eq!(text(&mut curl), "/secret");
    let refused = Foxy::forward(&[443]);
    let mut curl = tool("curl", "curl").unwrap();
    curl.args(["-sS", "-x", &refused.url(), "--cacert"])
        .arg(&trust)
        .arg(&url);
    let output = curl.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("403"), "{said}");
}
