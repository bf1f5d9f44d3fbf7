//! Tests of commands whose output is closed by its reader, or cannot be written.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

/// The answer about a purge: its number, the number of objects, and the later purge into which it was merged.
macro_rules! operation {
    ($purge:literal, $objects:literal, $merged:literal) => {
        concat!(
            r#"{"purge":"#,
            $purge,
            r#","kind":"prefix","text":"","site":null,"soft":false,"at_ms":0,"objects":"#,
            $objects,
            r#","done":true,"merged_into":"#,
            $merged,
            "}\n"
        )
    };
}

fn check() -> Command {
    let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
    foxy.arg("check").env_clear();
    foxy
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error_and_no_crash() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = check().stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("foxy: cannot write the answer: "),
        "{said}"
    );
}

#[test]
fn whoever_reads_may_have_seen_enough() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = check().stdout(Stdio::from(writer)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said, "");
}

/// The answers of an admin address, by target.
fn admin(answers: &'static [(&str, &str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let target = line.split(' ').nth(1).unwrap();
            let found = answers.iter().find(|(begin, _)| target.starts_with(begin));
            let body = found.unwrap().1;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    address
}

/// One request can start several purges. Purge 2 was merged into purge 4, which counts the objects of both.
#[test]
fn a_purge_that_waits_counts_the_objects_of_all_its_purges() {
    let admin = admin(&[
        ("/purge?", r#"{"purge":3,"also":[1,2,4],"durable":true}"#),
        ("/purges/1", operation!(1, 10, "null")),
        ("/purges/2", operation!(2, 100, "4")),
        ("/purges/3", operation!(3, 1000, "null")),
        ("/purges/4", operation!(4, 30000, "null")),
    ]);
    let purge = |more: &[&str]| {
        let mut foxy = Command::new(env!("CARGO_BIN_EXE_foxy"));
        foxy.env_clear()
            .args(["purge", "--prefix", "http://a.test/"]);
        let output = foxy.args(["--wait", "--admin", &admin]).args(more);
        String::from_utf8(output.output().unwrap().stdout).unwrap()
    };
    assert_eq!(purge(&[]), "purge 3: 31010 removed\n");
    let lines = purge(&["--json"]);
    let numbers = [1, 4, 3].map(|number| format!("{{\"purge\":{number},"));
    assert_eq!(lines.lines().count(), 3, "{lines}");
    for (line, number) in lines.lines().zip(numbers) {
        assert!(line.starts_with(&number), "{lines}");
    }
}
