//! Foxy as a child process, and the clients as commands.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A Foxy with its own store. It is killed when this value is dropped.
pub(crate) struct Foxy {
    child: Child,
    pub(crate) proxy: SocketAddr,
    admin: SocketAddr,
    dir: tempfile::TempDir,
}

impl Foxy {
    /// Starts a forward proxy. `connect_ports` are the ports that CONNECT may reach.
    pub(crate) fn forward(connect_ports: &[u16]) -> Self {
        Self::start(
            &[],
            &format!("[access]\nconnect_ports = {connect_ports:?}\n"),
        )
    }

    /// Starts a reverse proxy in front of `origin`.
    pub(crate) fn reverse(origin: &str) -> Self {
        Self::start(&["--origin", origin], "")
    }

    /// Starts a forward proxy that asks these name servers.
    pub(crate) fn asking(name_servers: &[SocketAddr]) -> Self {
        let servers: Vec<_> = name_servers.iter().map(ToString::to_string).collect();
        Self::start(
            &[],
            &format!("[upstream]\nname_servers = {servers:?}\n[timeouts]\nconnect = \"20s\"\n"),
        )
    }

    /// Starts a forward proxy with these mirrors.
    pub(crate) fn mirroring(mirrors: &str) -> Self {
        Self::start(&[], mirrors)
    }

    /// Starts a site named `shop` with TLS and these settings. Also returns the address of the site.
    pub(crate) fn secured(settings: &str) -> (Self, SocketAddr) {
        let started = (0..5).find_map(|_| {
            let [address, _] = free_addresses();
            let site = format!("[[site]]\nname = \"shop\"\nlisten_tls = \"{address}\"\n");
            Some((Self::try_start(&[], &(site + settings))?, address))
        });
        started.expect("Foxy starts with one of five sets of addresses")
    }

    /// Starts a build cache named `build` with these settings. Also returns the address of the build cache.
    pub(crate) fn building(settings: &str) -> (Self, SocketAddr) {
        let started = (0..5).find_map(|_| {
            let [address, _] = free_addresses();
            let site = format!(
                "[[site]]\nkind = \"objects\"\nname = \"build\"\nlisten = \"{address}\"\nwrite = \"ci\"\n"
            );
            Some((Self::try_start(&[], &(site + settings))?, address))
        });
        started.expect("Foxy starts with one of five sets of addresses")
    }

    fn start(extra: &[&str], settings: &str) -> Self {
        // Other tests look for free ports at the same time, so a port may be taken before Foxy has it.
        let started = (0..5).find_map(|_| Self::try_start(extra, settings));
        started.expect("Foxy starts with one of five pairs of addresses")
    }

    /// Tries to start Foxy. Returns `None` if Foxy ended before it listened. Foxy's messages contain the
    /// reason.
    fn try_start(extra: &[&str], settings: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let [proxy, admin] = free_addresses();
        let config = dir.path().join("foxy.toml");
        std::fs::write(&config, settings).expect("config");
        let child = Command::new(env!("CARGO_BIN_EXE_foxy"))
            .arg("serve")
            .args(["--config".as_ref(), config.as_os_str()])
            .args([
                "--listen",
                &proxy.to_string(),
                "--admin",
                &admin.to_string(),
            ])
            .args(["--store".as_ref(), dir.path().join("store").as_os_str()])
            .args([
                "--store-size",
                "512MiB",
                "--memory",
                "64MiB",
                "--access-log",
                "off",
            ])
            .args(extra)
            .stdout(Stdio::null())
            .spawn()
            .expect("foxy starts");
        let mut foxy = Self {
            child,
            proxy,
            admin,
            dir,
        };
        foxy.listens().then_some(foxy)
    }

    /// Waits until Foxy listens. Returns false if it ends instead.
    fn listens(&mut self) -> bool {
        for _ in 0..3000 {
            if self.child.try_wait().expect("a child").is_some() {
                return false;
            }
            if self.is_healthy() && TcpStream::connect(self.proxy).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("foxy does not listen on {} after 60 s", self.proxy);
    }

    /// True if the admin address answers. An open port alone would not show that Foxy has this port, because
    /// a test that looks for a free port listens on the port for a moment.
    fn is_healthy(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.admin)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            let request = format!("GET /healthz HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin);
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    /// Returns the URL that a client uses as its proxy.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.proxy)
    }

    /// Returns the bytes that Foxy received from origins, heads included.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        let stats = self.stats();
        let bytes = stats["events"]["origin_bytes_in"].as_u64();
        bytes.unwrap_or_else(|| panic!("no origin_bytes_in in {stats}"))
    }

    /// Returns the statistics of this Foxy.
    pub(crate) fn stats(&self) -> serde_json::Value {
        let mut stream = TcpStream::connect(self.admin).expect("the admin address");
        let request = format!("GET /stats HTTP/1.0\r\nHost: {}\r\n\r\n", self.admin);
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("statistics");
        let (_, json) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(json).expect("JSON")
    }

    /// Returns the admin address.
    pub(crate) const fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Returns a directory that belongs to this Foxy.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns two loopback addresses that were free a moment ago.
fn free_addresses() -> [SocketAddr; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("its address"))
}

/// Returns the command of the tool `name`. If the tool is missing, prints the way to install it and returns
/// `None`. With `FOXY_CLIENTS=required` (as in the full check) a missing tool fails the test.
pub(crate) fn tool(name: &str, package: &str) -> Option<Command> {
    // These two programs show their version by a command. Other programs have an option.
    let version = match name {
        "go" | "openssl" => "version",
        _ => "--version",
    };
    let found = Command::new(name)
        .arg(version)
        .output()
        .is_ok_and(|o| o.status.success());
    if found {
        return Some(Command::new(name));
    }
    let hint =
        format!("{name} is not installed: not tried. Get it with: apt-get install -y {package}");
    assert!(
        std::env::var("FOXY_CLIENTS").as_deref() != Ok("required"),
        "{hint}"
    );
    eprintln!("{hint}");
    None
}

/// Returns a program that `cargo xtask check` fetches from PyPI or npm's registry, because Debian does not
/// have it. If it is missing, prints a message and returns `None`.
pub(crate) fn fetched_tool(name: &str) -> Option<PathBuf> {
    let program = match name {
        "uv" => "uv/bin/uv",
        "pnpm" => "npm/node_modules/.bin/pnpm",
        "yarn" => "npm/node_modules/.bin/yarn",
        "yarn-1" => "yarn-1/node_modules/.bin/yarn",
        other => panic!("{other} is not fetched"),
    };
    let target = Path::new(env!("CARGO_BIN_EXE_foxy")).ancestors().nth(2);
    let program = target
        .expect("a target folder")
        .join("clients")
        .join(program);
    if program.exists() {
        return Some(program);
    }
    let hint = format!("{name} is not fetched: not tried. Get it with: cargo xtask clients");
    assert!(
        std::env::var("FOXY_CLIENTS").as_deref() != Ok("required"),
        "{hint}"
    );
    eprintln!("{hint}");
    None
}

/// Runs a command that must succeed. Its output is in the failure message.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Runs a command like [`run`], and returns its standard output as text.
pub(crate) fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stdout).into_owned()
}
