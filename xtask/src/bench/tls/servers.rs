//! nginx with static files (the fastest answers of nginx), and Foxy in front of nginx.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foxy_lab::kit::peers::install;
use foxy_lab::kit::{Child, Launch, free_port};

/// The core of both servers. The load uses the other core.
pub(super) const SERVER_CORE: &str = "0";
/// The host name in the certificate.
pub(super) const HOST: &str = "tls.test";

/// nginx or Foxy.
pub(super) struct Server {
    child: Child,
    /// TLS port of the server.
    port: u16,
}

impl Server {
    /// Run time of the server's threads in nanoseconds.
    pub(super) fn cpu(&self) -> Result<u64, String> {
        let tasks = format!("/proc/{}/task", self.child.pid());
        let problem = |e: std::io::Error| format!("{tasks}: {e}");
        let mut sum = 0;
        for task in fs::read_dir(&tasks).map_err(problem)? {
            let path = task.map_err(problem)?.path().join("schedstat");
            let text = fs::read_to_string(path).unwrap_or_default();
            let ran = text
                .split(' ')
                .next()
                .and_then(|ran| ran.parse::<u64>().ok());
            sum += ran.unwrap_or(0);
        }
        Ok(sum)
    }

    /// Resident memory of the server in KiB.
    pub(super) fn resident(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.child.pid());
        let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        number.ok_or_else(|| format!("{path}: no VmRSS"))
    }

    /// Address of the server's listener.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Both servers while they run.
pub(super) struct Servers {
    foxy: Server,
    nginx: Server,
}

impl Servers {
    /// Starts both servers in `folder`, with the same certificate.
    pub(super) fn start(foxy: &Path, folder: &Path) -> Result<Self, String> {
        certificate(folder)?;
        for (name, size) in [("4k", 4 << 10), ("64k", 64 << 10)] {
            write(&folder.join("files").join(name), &"x".repeat(size))?;
        }
        let (plain, nginx, own) = (free_port()?, free_port()?, free_port()?);
        write(
            &folder.join("nginx.conf"),
            &nginx_config(folder, plain, nginx),
        )?;
        let config = folder.join("nginx.conf").to_string_lossy().into_owned();
        let nginx = Server {
            child: start(
                &install::path("nginx")?,
                &["-c", &config, "-e", "stderr"],
                &folder.join("nginx"),
                nginx,
            )?,
            port: nginx,
        };
        write(&folder.join("foxy.toml"), &foxy_config(folder, plain, own))?;
        let config = folder.join("foxy.toml").to_string_lossy().into_owned();
        let args = ["serve", "--store", "off", "--config", &config];
        let foxy = Server {
            child: start(foxy, &args, &folder.join("foxy"), own)?,
            port: own,
        };
        Ok(Self { foxy, nginx })
    }

    pub(super) const fn foxy(&self) -> &Server {
        &self.foxy
    }

    pub(super) const fn nginx(&self) -> &Server {
        &self.nginx
    }
}

fn start(program: &Path, args: &[&str], folder: &Path, port: u16) -> Result<Child, String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let program = program.to_string_lossy();
    let all = [&["-c", SERVER_CORE, &program], args].concat();
    Child::start(&Launch::new(install::path("taskset")?, all), folder, port)
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    let problem = |e: std::io::Error| format!("{}: {e}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(problem)?;
    }
    fs::write(path, text).map_err(problem)
}

/// Creates a self-signed certificate. The load does not verify it.
pub(super) fn certificate(folder: &Path) -> Result<(), String> {
    let name = format!("/CN={HOST}");
    let alternative = format!("subjectAltName=DNS:{HOST}");
    let status = Command::new("openssl")
        .current_dir(folder)
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args([
            "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
        ])
        .args(["-subj", &name, "-addext", &alternative])
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("openssl: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err("openssl made no certificate".to_owned()),
    }
}

fn nginx_config(folder: &Path, plain: u16, secure: u16) -> String {
    let folder = folder.display();
    format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 20000; }}
http {{
    access_log off;
    sendfile on;
    open_file_cache max=100 inactive=1h;
    keepalive_requests 100000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{plain};
        root {folder}/files;
        add_header Cache-Control max-age=86400;
    }}
    server {{
        listen 127.0.0.1:{secure} ssl backlog=8192;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        ssl_protocols TLSv1.3;
        root {folder}/files;
    }}
}}
"
    )
}

fn foxy_config(folder: &Path, origin: u16, secure: u16) -> String {
    let folder = folder.display();
    format!(
        "admin = \"off\"
memory = \"4GiB\"
workers = 1

[log]
access = \"off\"

[limits]
connections = 40000
client_connections = 40000

[[site]]
name = \"tls\"
hosts = [\"{HOST}\"]
listen_tls = \"127.0.0.1:{secure}\"
origin = \"http://127.0.0.1:{origin}\"
certificate = \"{folder}/cert.pem\"
key = \"{folder}/key.pem\"
"
    )
}
