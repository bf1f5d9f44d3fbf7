//! The programs of one run: the suite's origin, Foxy in front of the origin, and the client. All programs
//! end with the run, even if the run fails.

use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use foxy_lab::kit::free_port;

use super::certificate::TestCertificate;
use super::install::Suite;

/// Role of Foxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Foxy is in front of the origin. Its contents are only in memory.
    Reverse,
    /// Foxy is a forward proxy: the client names the origin. Foxy has a store.
    Forward,
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Reverse => "reverse",
            Self::Forward => "forward",
        }
    }
}

/// Settings of a Foxy under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settings {
    /// All features that the standard permits are enabled.
    Wide,
    /// Foxy has its default settings.
    Defaults,
}

impl Settings {
    const fn lines(self) -> &'static str {
        match self {
            Self::Wide => "obey_request = true\nstore_set_cookie = true\nstore_post = true\n",
            Self::Defaults => "",
        }
    }
}

const fn scheme(certificate: Option<&TestCertificate>) -> &'static str {
    match certificate {
        Some(_) => "https",
        None => "http",
    }
}

/// The lines for TLS that must precede all sections of Foxy's settings file.
fn on_top(mode: Mode, address: &str) -> String {
    match mode {
        Mode::Forward => format!("listen_tls = \"{address}\"\n"),
        Mode::Reverse => String::new(),
    }
}

/// The sections for TLS at the end of Foxy's settings file.
fn below(mode: Mode, certificate: &TestCertificate, (address, origin): (&str, &str)) -> String {
    let (certificate, key) = (certificate.file.display(), certificate.key.display());
    let pair = format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n");
    match mode {
        Mode::Forward => format!("[tls]\n{pair}"),
        Mode::Reverse => format!(
            "[[site]]\nname = \"suite\"\nlisten_tls = \"{address}\"\n{pair}origin = \"{origin}\"\n\
             origin_ca = \"{certificate}\"\n"
        ),
    }
}

/// A server that is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    port: u16,
    scheme: &'static str,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the suite's origin.
    pub(super) fn origin(
        suite: &Suite,
        (mode, certificate): (Mode, Option<&TestCertificate>),
        folder: &Path,
    ) -> Result<Self, String> {
        let port = free_port()?;
        let scheme = scheme(certificate);
        let name = mode.name();
        let mut command = Command::new("node");
        command
            .current_dir(&suite.folder)
            .arg("--no-warnings")
            .arg(suite.server())
            .env("npm_config_protocol", scheme)
            .env("npm_config_port", port.to_string())
            .env(
                "npm_config_pidfile",
                folder.join(format!("{name}-origin.pid")),
            );
        if let Some(certificate) = certificate {
            command.env("npm_config_certfile", &certificate.file);
            command.env("npm_config_keyfile", &certificate.key);
        }
        let log = folder.join(format!("{name}-origin.log"));
        Self::start(command, (scheme, port), &log)
    }

    /// Starts Foxy and waits until it accepts connections.
    pub(super) fn foxy(
        program: &Path,
        suite: &Suite,
        (mode, settings, certificate): (Mode, Settings, Option<&TestCertificate>),
        origin: &Self,
        folder: &Path,
    ) -> Result<Self, String> {
        let port = free_port()?;
        let name = mode.name();
        let config = folder.join(format!("{name}.toml"));
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(&config);
        let lines = settings.lines();
        let mut text = format!("[cache]\nsurrogate_control = {}\n{lines}", suite.surrogate);
        let address = format!("127.0.0.1:{port}");
        if let Some(certificate) = certificate {
            text.insert_str(0, &on_top(mode, &address));
            text += &below(mode, certificate, (&address, &origin.url()));
            // The forward proxy trusts the system's certificate authorities. This variable replaces them with
            // the certificate of the run.
            command.env("SSL_CERT_FILE", &certificate.file);
        } else {
            command.args(["--listen", &address]);
        }
        std::fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
        command.args([
            "--admin",
            "off",
            "--access-log",
            "off",
            "--memory",
            "128MiB",
        ]);
        match (mode, certificate) {
            (Mode::Reverse, Some(_)) => command.args(["--store", "off"]),
            (Mode::Reverse, None) => command.args(["--store", "off", "--origin", &origin.url()]),
            (Mode::Forward, _) => {
                let store = folder.join("forward.store");
                let _ = std::fs::remove_file(&store);
                command
                    .arg("--store")
                    .arg(store)
                    .args(["--store-size", "256MiB"])
            }
        };
        let log = folder.join(format!("{name}-foxy.log"));
        Self::start(command, (scheme(certificate), port), &log)
    }

    /// Starts a server and waits until it accepts connections.
    fn start(
        mut command: Command,
        (scheme, port): (&'static str, u16),
        log: &Path,
    ) -> Result<Self, String> {
        let show = log.display();
        let file = File::create(log).map_err(|error| format!("{show}: {error}"))?;
        let copy = file
            .try_clone()
            .map_err(|error| format!("{show}: {error}"))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(copy)
            .spawn()
            .map_err(|error| format!("{program} did not start: {error}"))?;
        let mut server = Self {
            child,
            port,
            scheme,
        };
        for _ in 0..300 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{program} ended at once ({status}); see {show}"));
            }
            sleep(Duration::from_millis(100));
        }
        Err(format!("{program} does not accept connections; see {show}"))
    }

    pub(super) fn url(&self) -> String {
        // In a TLS handshake, a client can send a host name, but no IP address. Foxy refuses handshakes
        // without a name. So the URL needs a name.
        let host = match self.scheme {
            "https" => "localhost",
            _ => "127.0.0.1",
        };
        format!("{}://{host}:{}", self.scheme, self.port)
    }
}

/// Runs a command, which must succeed within `timeout`.
pub(super) fn finish(mut command: Command, timeout: Duration) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let clock = SystemClock::default();
    let start = clock.mono();
    let mut child = command
        .spawn()
        .map_err(|error| format!("{program} did not start: {error}"))?;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("the test run failed ({status})")),
            Ok(None) if clock.mono().since(start) < timeout => sleep(Duration::from_millis(200)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("the test run took over {} s", timeout.as_secs()));
            }
        }
    }
}
