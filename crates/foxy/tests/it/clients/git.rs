//! git: a clone over smart HTTP from a local repository, through Foxy.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::clients::process::{Foxy, run, text, tool};
use crate::clients::web::{self, Request, Response};

#[test]
fn clone_over_http() {
    let Some(mut git) = tool("git", "git") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let project = make_repository(dir.path());
    let exported = dir.path().to_owned();
    let origin = web::serve(move |request| backend(&exported, request)).unwrap();
    let foxy = Foxy::forward(&[443]);
    let copy = dir.path().join("copy");
    run(git
        .env("http_proxy", foxy.url())
        .env("no_proxy", "")
        .arg("clone")
        .arg(origin.url("/project/.git"))
        .arg(&copy));
    let log = |at: &Path| {
        text(
            Command::new("git")
                .arg("-C")
                .arg(at)
                .args(["log", "--format=%H %s"]),
        )
    };
    assert_eq!(log(&copy), log(&project));
    assert!(origin.requests() >= 2, "the clone went round the origin");
}

/// Creates a repository with a few commits and a file of some size.
fn make_repository(dir: &Path) -> PathBuf {
    let project = dir.join("project");
    let git = |args: &[&str]| {
        run(Command::new("git")
            .args(["-c", "user.name=A", "-c", "user.email=a@example.com", "-C"])
            .arg(&project)
            .args(args));
    };
    std::fs::create_dir(&project).expect("a new directory");
    git(&["init", "-q"]);
    for commit in 0..5 {
        let lines: String = (0..20_000)
            .map(|i| format!("{commit} {}\n", i * i))
            .collect();
        std::fs::write(project.join("file"), lines).expect("a file");
        git(&["add", "."]);
        git(&["commit", "-q", "-m", &format!("commit {commit}")]);
    }
    project
}

/// Answers a request by means of `git http-backend`, which runs as a CGI program.
fn backend(root: &Path, request: &Request) -> Response {
    let field = |name: &str| request.fields.get(name).cloned().unwrap_or_default();
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", field("content-type"))
        .env("HTTP_CONTENT_ENCODING", field("content-encoding"))
        .env("GIT_PROTOCOL", field("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git http-backend starts");
    let mut stdin = child.stdin.take().expect("piped");
    let body = request.body.clone();
    let feeder = std::thread::spawn(move || stdin.write_all(&body));
    let output = child
        .wait_with_output()
        .expect("git http-backend ends")
        .stdout;
    let _ = feeder.join();
    cgi_response(&output)
}

fn cgi_response(output: &[u8]) -> Response {
    let split = output
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..split]).into_owned();
    let mut response = Response {
        status: 200,
        fields: Vec::new(),
        body: output.get(split + 4..).unwrap_or_default().to_vec(),
    };
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("status") {
            response.status = value[..3].parse().unwrap_or(500);
        } else {
            response.fields.push((name.into(), value.trim().into()));
        }
    }
    response
}
