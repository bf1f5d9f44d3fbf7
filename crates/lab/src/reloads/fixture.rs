//! A Foxy whose configuration file is replaced while it runs, and Foxy's answers to reloads.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;

use crate::kit::{Answer, Child, ClientRequest, Launch, Target, wait_for};

/// Longest time for an answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// A running Foxy. It is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Fixture {
    foxy: Child,
    admin: Target,
    file: PathBuf,
}

impl Fixture {
    /// Starts Foxy with this configuration. It listens on `port` and has its admin address on `admin`.
    pub(super) fn start(
        program: &Path,
        folder: &Path,
        text: &str,
        (port, admin): (u16, u16),
    ) -> Result<Self, String> {
        let file = folder.join("foxy.toml");
        write(&file, text)?;
        let state = format!("STATE_DIRECTORY={}", folder.join("state").display());
        let config = format!("--config={}", file.display());
        let program = program.display().to_string();
        let args = [state, program, "serve".to_owned(), config];
        let launch = Launch::new("/usr/bin/env".into(), args);
        let foxy = Child::start(&launch, folder, port)?;
        // Foxy listens on the admin address last. Without this wait, the first reload can be refused.
        wait_for(admin, TIMEOUT)?;
        Ok(Self {
            foxy,
            admin: target(admin, "localhost"),
            file,
        })
    }

    /// PID of Foxy.
    #[cfg(feature = "tls")]
    pub(super) fn pid(&self) -> u32 {
        self.foxy.pid()
    }

    /// Replaces the configuration file and makes Foxy read it. Returns Foxy's message; the inner result is
    /// an error if Foxy refused the file.
    pub(super) async fn reload(&self, text: &str) -> Result<Result<String, String>, String> {
        write(&self.file, text)?;
        let request = ClientRequest {
            method: "POST",
            ..ClientRequest::get("/reload".to_owned())
        };
        let answer = request.with("X-Foxy-Admin", "1");
        let answer = answer.send(&self.admin, TIMEOUT, None).await;
        let answer = answer.map_err(|error| format!("the admin address: {error}"))?;
        let words = String::from_utf8_lossy(&answer.body).trim().to_owned();
        match answer.head.status() {
            200 => Ok(Ok(words)),
            422 => Ok(Err(words)),
            status => Err(format!("a reload got {status}: {words}")),
        }
    }

    /// As [`reload`](Self::reload), for a file that must be accepted.
    pub(super) async fn apply(&self, text: &str) -> Result<String, String> {
        let words = self.reload(text).await?;
        words.map_err(|words| format!("a right file was refused: {words}"))
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    // A reload must never read an incomplete file. So the text is written to another file, which is then
    // renamed.
    let beside = file.with_extension("new");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, file))
        .map_err(|error| format!("no configuration: {error}"))
}

/// Returns the target for a listener on the loopback address.
pub(super) fn target(port: u16, name: &str) -> Target {
    Target {
        proxy: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        origin: name.to_owned(),
        scheme: None,
    }
}

/// A socket for an origin, and its port.
pub(super) async fn listener() -> Result<(TcpListener, u16), String> {
    let problem = |error: std::io::Error| format!("an origin has no port: {error}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(problem)?;
    let port = listener.local_addr().map_err(problem)?.port();
    Ok((listener, port))
}

/// The text of a body, without its padding.
pub(super) fn first_line(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    text.split('\n').next().unwrap_or_default().to_owned()
}
