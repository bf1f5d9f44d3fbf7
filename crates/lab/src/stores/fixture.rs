//! A Foxy with several stores, and the statistics that it reports about them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::kit::{Child, ClientRequest, Launch, Target, free_port};

/// A running Foxy. It is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Fixture {
    foxy: Child,
    admin: SocketAddr,
}

impl Fixture {
    /// Starts Foxy with these stores, given by path and size.
    pub(super) fn start(
        program: &Path,
        folder: &Path,
        origin: u16,
        stores: &[(PathBuf, Option<u64>)],
    ) -> Result<Self, String> {
        let (port, admin) = (free_port()?, free_port()?);
        let mut text = format!(
            "admin = \"127.0.0.1:{admin}\"\nmemory = \"48MiB\"\n[[site]]\nname = \"site\"\n\
             listen = [\"127.0.0.1:{port}\"]\norigin = \"http://127.0.0.1:{origin}\"\n"
        );
        for (path, size) in stores {
            text += &format!("[[store]]\npath = \"{}\"\n", path.display());
            if let Some(size) = size {
                text += &format!("size = \"{size}B\"\n");
            }
        }
        let file = folder.join("foxy.toml");
        std::fs::write(&file, text).map_err(|error| format!("no configuration: {error}"))?;
        let state = format!("STATE_DIRECTORY={}", folder.join("state").display());
        let config = format!("--config={}", file.display());
        let program = program.display().to_string();
        let args = [state, program, "serve".to_owned(), config];
        let foxy = Child::start(&Launch::new("/usr/bin/env".into(), args), folder, port)?;
        let admin = (Ipv4Addr::LOCALHOST, admin).into();
        Ok(Self { foxy, admin })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.foxy.address()
    }

    /// Number of bytes written to each store.
    pub(super) async fn written(&self) -> Result<Vec<f64>, String> {
        let stats = self.stats().await?;
        let stores = stats["stores"].as_array();
        let stores = stores.ok_or("the statistics have no stores")?;
        let of = |store: &Value| store["counts"]["cluster_bytes"].as_f64();
        let written: Option<Vec<_>> = stores.iter().map(of).collect();
        written.ok_or_else(|| "the statistics do not say what was written".to_owned())
    }

    pub(super) async fn stats(&self) -> Result<Value, String> {
        let target = Target {
            proxy: self.admin,
            origin: "localhost".to_owned(),
            scheme: None,
        };
        let request = ClientRequest::get("/stats".to_owned());
        let answer = request.send(&target, Duration::from_secs(10), None).await?;
        serde_json::from_slice(&answer.body).map_err(|error| format!("statistics: {error}"))
    }
}
