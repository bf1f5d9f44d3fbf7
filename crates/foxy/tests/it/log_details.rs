//! Lines of the JSON log: the id of a request, and the details of its answer.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::common::origin;
use serde_json::Value;

/// Returns the log lines of requests for `/a` with these fields. The requests are sent one after another, on
/// separate connections.
fn logged(trusted: &str, requests: &[&str]) -> (Vec<Value>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (origin, heads) = origin("Cache-Control: max-age=600\r\n", "body");
    let config = format!(
        "admin = \"off\"\n[[site]]\nname = \"s\"\nlisten = [\"127.0.0.1:0\"]\norigin = \"{origin}\"\n\
         [log]\naccess = \"{}\"\nformat = \"json\"\n[access]\ntrusted_proxies = [{trusted}]\n\
         [[rule]]\nname = \"pages\"\npath = \"/*\"\nttl_max = \"300s\"\n",
        folder.path().join("log").display()
    );
    let file = folder.path().join("foxy.toml");
    std::fs::write(&file, config).unwrap();
    let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
    foxy.env_clear().env("STATE_DIRECTORY", folder.path());
    // There is only one worker. It stores an object and writes the log line before it accepts the next
    // connection.
    foxy.arg("--config").arg(&file);
    foxy.args(["--store", "off", "--workers", "1"]);
    let mut foxy = foxy.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(foxy.stderr.take().unwrap()).lines();
    let headline = said.find_map(|l| Some(l.unwrap()).filter(|l| l.starts_with("foxy ")));
    let headline = headline.unwrap();
    let address = headline
        .split(" on ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    for fields in requests {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET /a HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let id = rustix::process::Pid::from_child(&foxy);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(foxy.wait().unwrap().success());
    let text = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), heads.try_iter().collect())
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn lines_tell_lifetime_rule_and_time_to_the_first_byte() {
    let fields = format!("traceparent: {TRACE}\r\n");
    let (lines, heads) = logged("", &[&fields, ""]);
    let [miss, hit] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&miss["outcome"], &hit["outcome"]),
        (&"miss".into(), &"memory-hit".into())
    );
    for line in [miss, hit] {
        assert_eq!(line["rule"], "pages");
        let ttl = line["ttl"].as_i64().unwrap();
        assert!((250..=300).contains(&ttl), "{line}");
        let first = line["first_byte_us"].as_u64().unwrap();
        assert!(first <= line["duration_us"].as_u64().unwrap(), "{line}");
        let id = line["id"].as_str().unwrap();
        assert!(
            id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()),
            "{id}"
        );
    }
    assert_ne!(miss["id"], hit["id"]);
    assert_eq!(
        (&miss["traceparent"], &hit["traceparent"]),
        (&TRACE.into(), &Value::Null)
    );
    assert!(
        heads[0].contains(&format!("traceparent: {TRACE}")),
        "{heads:?}"
    );
}

#[test]
fn only_a_trusted_proxy_names_requests() {
    let fields = ["X-Request-Id: from-the-front\r\n"];
    let (strangers, _) = logged("", &fields);
    assert_ne!(strangers[0]["id"], "from-the-front");
    let (trusted, heads) = logged("\"127.0.0.1\"", &fields);
    assert_eq!(trusted[0]["id"], "from-the-front");
    assert!(
        heads[0].contains("x-request-id: from-the-front"),
        "{heads:?}"
    );
    let (unusable, _) = logged("\"127.0.0.1\"", &["X-Request-Id: a b\r\n"]);
    assert_eq!(unusable[0]["id"].as_str().unwrap().len(), 32);
}
