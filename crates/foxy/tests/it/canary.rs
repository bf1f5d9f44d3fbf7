//! Tests that secrets appear in no output: neither secrets of the configuration nor secrets that clients
//! send.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A text that is a part of every secret.
const CANARY: &str = "canary7f3a";

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env_clear().env("STATE_DIRECTORY", folder);
    command.env("CANARY", format!("{CANARY}-variable"));
    command.args(args);
    command
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn free() -> String {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

fn ask(to: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    let _ = stream.write_all(request.replace('\n', "\r\n").as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns a configuration with secrets in all settings that may have them.
fn configuration(folder: &Path, (admin, listen, site, origin): (&str, &str, &str, &str)) -> String {
    let token = write(folder, "token", &format!("{CANARY}-operate-token"));
    let read = write(folder, "read", &format!("{CANARY}-read-token-0123"));
    let login = write(folder, "login", &format!("user:{CANARY}-parent\n"));
    let log = folder.join("access.log");
    let log = log.display();
    format!(
        "admin = \"{admin}\"\nworkers = 1\nmemory = \"48MiB\"\nlisten = \"{listen}\"\n\
         [access]\nadmin_token_file = \"{token}\"\nadmin_read_token_file = \"{read}\"\n\
         admin_loopback_rights = \"operate\"\n\
         [log]\naccess = \"{log}\"\nformat = \"json\"\nlevel = \"debug\"\n\
         [[site]]\nname = \"s\"\nlisten = \"{site}\"\norigin = \"{origin}\"\n\
         request_headers = [\"set X-Key: ${{CANARY}}\"]\n\
         [[parent]]\nname = \"up\"\nurl = \"http://127.0.0.1:1\"\nfor = \"rules\"\nlogin = \"${{file:{login}}}\"\n\
         [[mirror]]\npreset = \"npm\"\nupstream = \"http://127.0.0.1:1\"\ntoken = \"${{file:{token}}}\"\n\
         [[mirror]]\npreset = \"pypi\"\nupstream = \"http://127.0.0.1:1\"\nlogin = \"${{file:{login}}}\"\n"
    )
}

/// A running Foxy that listens.
struct Started {
    child: Child,
    configuration: String,
    admin: String,
    site: String,
}

/// Writes the configuration to `file` and starts a Foxy with it. If another program has taken a port, tries
/// again with other ports.
fn start(folder: &Path, file: &str, origin: &str) -> Started {
    let started = (0..5).find_map(|_| try_start(folder, file, origin));
    started.expect("foxy listens, with one of five sets of ports")
}

fn try_start(folder: &Path, file: &str, origin: &str) -> Option<Started> {
    let (admin, listen, site) = (free(), free(), free());
    let configuration = configuration(folder, (&admin, &listen, &site, origin));
    std::fs::write(file, &configuration).unwrap();
    let output = folder.join("output");
    let mut foxy = program(folder, &["--config", file, "--store", "off"]);
    let out = std::fs::File::create(&output).unwrap();
    let copy = out.try_clone().unwrap();
    foxy.stdout(Stdio::from(out)).stderr(Stdio::from(copy));
    let mut child = foxy.spawn().unwrap();
    let listens = format!("status on http://{admin}");
    for _ in 0..1000 {
        if std::fs::read_to_string(&output).unwrap().contains(&listens) {
            return Some(Started {
                child,
                configuration,
                admin,
                site,
            });
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("foxy does not listen after 20 s");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a list of outputs")]
fn secrets_are_in_no_output() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (origin, heads) = crate::common::origin("Cache-Control: max-age=60\r\n", "body");
    let right = configuration(at, (&free(), &free(), &free(), &origin));
    let file = write(at, "foxy.toml", &right);
    let mut said = Vec::new();
    let mut note = |name: &str, text: String| said.push((name.to_owned(), text));
    for args in [
        &["check"][..],
        &["check", "--json"],
        &["check", "--config-only"],
    ] {
        let args = [args, &["--config", &file, "--store", "off"]].concat();
        note("check", text(&program(at, &args).output().unwrap()));
    }
    for wrong in [
        "memory = \"${CANARY}\"",
        "workers = [\"${CANARY}\"]",
        "[[parent]]\nname = \"p\"\nurl = \"http://a\"\nlogin = \"canary7f3a-without-colon\"",
        "[[parent]]\nname = \"p\"\nurl = \"http://a\"\nlogin = [\"canary7f3a\", \"b\"]",
        "[[parent]]\nname = \"p\"\nurl = \"http://a\"\nlogin = \"canary7f3a",
        "[[mirror]]\npreset = \"npm\"\nupstream = \"http://a\"\ntoken = \"canary7f3a b\"",
        "[[mirror]]\npreset = \"npm\"\nupstream = \"http://a\"\nlogin = \"canary7f3a\"",
    ] {
        let wrong = write(at, "wrong.toml", wrong);
        let output = program(at, &["check", "--config", &wrong])
            .output()
            .unwrap();
        assert!(!output.status.success());
        note("a wrong file", text(&output));
    }
    let Started {
        child: mut foxy,
        configuration: right,
        admin,
        site,
    } = start(at, &file, &origin);
    let secrets = format!(
        "Authorization: Bearer {CANARY}-client\nCookie: sid={CANARY}-cookie\nProxy-Authorization: Basic {CANARY}\n\
         X-Foxy-Token: {CANARY}-operate-token\nReferer: http://a/?k={CANARY}-referer\n"
    );
    for path in ["/page", "/page", "/page?key=canary7f3a-query"] {
        let request = format!("GET {path} HTTP/1.1\nHost: s\n{secrets}Connection: close\n\n");
        note("page", ask(&site, &request));
    }
    assert!(
        heads.recv().unwrap().contains("canary7f3a-variable"),
        "it is used"
    );
    let bad = format!("GET /{} HTTP/1.1\nHost: s\nHost: t\n{secrets}\n", "x");
    note("refused page", ask(&site, &bad));
    for path in [
        "/",
        "/stats",
        "/metrics",
        "/readyz",
        "/ls?pattern=page",
        "/stores",
        "/purges",
    ] {
        let request = format!("GET {path} HTTP/1.1\nHost: localhost\n{secrets}\n");
        // The name of a stored object contains the query of its URL. So this query is removed from the answer
        // before the search for secrets.
        let answer = ask(&admin, &request).replace("/page?key=canary7f3a-query", "");
        note(path, answer);
    }
    note(
        "why",
        ask(
            &admin,
            &format!("GET /why?url={site}/page&site=s HTTP/1.1\nHost: localhost\n{secrets}\n"),
        ),
    );
    for new in [
        right.replace("-read-token", "-other"),
        format!("{right}[timeouts]\nidle = \"x\"\n"),
    ] {
        std::fs::write(&file, new).unwrap();
        note(
            "reload",
            text(
                &program(at, &["reload", "--admin", &admin])
                    .output()
                    .unwrap(),
            ),
        );
    }
    let token = format!("{}/token", at.display());
    for args in [
        &["stats"][..],
        &["why", "http://s/page"],
        &["ls"],
        &["purge", "http://s/none"],
    ] {
        let args = [args, &["--admin", &admin, "--token-file", &token]].concat();
        let output = text(&program(at, &args).output().unwrap());
        note(args[0], output.replace("/page?key=canary7f3a-query", ""));
    }
    let id = rustix::process::Pid::from_child(&foxy);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(foxy.wait().unwrap().success());
    let log = std::fs::read_to_string(at.join("access.log")).unwrap();
    assert!(log.lines().count() >= 3, "{log}");
    note("access log", log);
    note(
        "messages",
        std::fs::read_to_string(at.join("output")).unwrap(),
    );
    for (name, text) in said {
        assert!(!text.is_empty(), "{name} says nothing");
        assert!(!text.contains(CANARY), "{name}: {text}");
    }
}
