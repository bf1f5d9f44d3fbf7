//! A program that checks users. It uses Squid's protocol for helpers of Basic authentication: Foxy writes a
//! line with user and password, escaped as in URLs, and the program answers with a line `OK` or `ERR`.

use std::io::{BufRead, BufReader, Write};
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::Helper;

/// Longest wait for an answer. A program that takes longer is killed and started again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer of the program, in bytes.
const LONGEST: usize = 4096;

/// A running helper program. It belongs to one thread, which asks one question at a time.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Child {
    /// Asks the helper program whether the login is right. If the program does not run, starts it first. A
    /// failure of the program counts as a wrong login.
    pub(super) fn ask(
        slot: &mut Option<Self>,
        helper: &Helper,
        user: &str,
        password: &[u8],
    ) -> bool {
        if slot.is_none() {
            *slot = Self::start(helper);
        }
        let Some(child) = slot else {
            tracing::warn!("the login helper cannot be started");
            return false;
        };
        let line = format!("{} {}\n", escaped(user.as_bytes()), escaped(password));
        let answer = child.input.write_all(line.as_bytes()).ok();
        let answer = answer.and_then(|()| child.answers.recv_timeout(ANSWER_TIMEOUT).ok());
        match answer {
            Some(answer) => answer.split_whitespace().next() == Some("OK"),
            None => {
                tracing::warn!("the login helper does not answer; it is started anew");
                *slot = None;
                false
            }
        }
    }

    fn start(helper: &Helper) -> Option<Self> {
        let (program, args) = helper.command.split_first()?;
        let mut process = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (input, output) = (process.stdin.take()?, process.stdout.take()?);
        let (sender, answers) = channel();
        let reader = thread::Builder::new().name("foxy-login-read".to_owned());
        let _ = reader.spawn(move || {
            let mut lines = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let mut part = std::io::Read::take(&mut lines, LONGEST as u64);
                let read = part.read_until(b'\n', &mut line);
                let whole = read.is_ok() && line.last() == Some(&b'\n');
                let line = String::from_utf8_lossy(&line).into_owned();
                if !whole || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            process,
            input,
            answers,
        })
    }
}

/// Escapes a text as in URLs. Letters, digits and a few marks are not escaped.
fn escaped(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                out.push(char::from(*byte));
            }
            other => out.push_str(&format!("%{other:02x}")),
        }
    }
    out
}
