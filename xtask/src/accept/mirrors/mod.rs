//! Real clients (pip, npm, cargo, apt) install packages through Foxy's mirrors of the public registries. They
//! must get the same files as without Foxy. Foxy must not fetch any artefact (package file) twice.
//! Installations must also work while Foxy cannot reach the registries.
//!
//! The registries are taken from the clients' own settings on this machine.

mod clients;
mod files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foxy_lab::kit::free_port;
use serde_json::Value;

use self::clients::{CLIENTS, Client, Packages};
use self::files::Files;
use super::process::{Bench, Foxy};
use crate::report::Outcome;

/// Folder, port and log that all Foxy processes with mirrors use.
struct Mirrors<'a> {
    bench: &'a Bench,
    /// Port of all these processes. Foxy writes addresses with this port into the registries' index
    /// documents, and uses a stored document only for requests to these addresses. So all processes must use
    /// the same port.
    port: u16,
    log: PathBuf,
}

pub(crate) fn run(bench: &Bench) -> Outcome {
    let mut outcome = Outcome::default();
    let mut ready = Vec::new();
    for client in &CLIENTS {
        match (client.registry)() {
            Ok(upstream) => ready.push((client, upstream)),
            Err(why) => outcome.note(Err(format!("{}: {why}", client.name))),
        }
    }
    let port = match free_port() {
        Ok(port) => port,
        Err(why) => return Outcome::single(Err(why)),
    };
    let mirrors = Mirrors {
        bench,
        port,
        log: bench.path("mirrors-access.log"),
    };
    let mut cold = Vec::new();
    match mirrors.start("mirrors.toml", &ready, "") {
        Ok(foxy) => {
            for (client, _) in &ready {
                match mirrors.online(client, &foxy) {
                    Ok(files) => {
                        outcome.passed += 1;
                        cold.push((client, files));
                    }
                    Err(why) => outcome.note(Err(format!("{}: {why}", client.name))),
                }
            }
            outcome.note(foxy.stop());
        }
        Err(why) => outcome.note(Err(why)),
    }
    // No name server answers at this port, so Foxy cannot reach the registries.
    let alone = "[upstream]\nname_servers = [\"127.0.0.1:9\"]\n";
    match mirrors.start("alone.toml", &ready, alone) {
        Ok(foxy) => {
            for (client, files) in cold {
                let result = mirrors.offline(client, &foxy, &files);
                outcome
                    .note(result.map_err(|why| format!("{} without upstream: {why}", client.name)));
            }
        }
        Err(why) => outcome.note(Err(why)),
    }
    outcome
}

impl Mirrors<'_> {
    fn start(
        &self,
        name: &str,
        clients: &[(&Client, Option<String>)],
        more: &str,
    ) -> Result<Foxy, String> {
        let mut config = format!("{more}[log]\nformat = \"json\"\n");
        for (client, upstream) in clients {
            config.push_str(&format!("[[mirror]]\npreset = \"{}\"\n", client.preset));
            if let Some(upstream) = upstream {
                config.push_str(&format!("upstream = \"{upstream}\"\n"));
            }
        }
        let file = self.bench.path(name);
        std::fs::write(&file, config).map_err(|error| format!("{}: {error}", file.display()))?;
        let store = self.bench.path("mirrors-store");
        let text = |path: &Path| path.display().to_string();
        self.bench.foxy_on(
            self.port,
            &[
                "--config",
                &text(&file),
                "--store",
                &text(&store),
                "--store-size",
                "4GiB",
                "--access-log",
                &text(&self.log),
            ],
        )
    }

    /// Installs five times. The first installation is without Foxy. The second and the third install the same
    /// versions through Foxy, which is empty at first. In the fourth, the client chooses the versions and
    /// installs them through Foxy. The fifth installs the versions of the fourth without Foxy. Returns the
    /// first installation.
    fn online(&self, client: &Client, foxy: &Foxy) -> Result<Installed, String> {
        let own = self.folder(client, "without")?;
        let files = (client.install)(&own, Packages::default())?;
        if files.is_empty() {
            return Err("the installation has no file".to_owned());
        }
        let installed = Installed { lock: own, files };
        let cold = self.through(client, foxy, "cold", &installed)?;
        let warm = self.through(client, foxy, "warm", &installed)?;
        if cold.artefacts.is_empty() {
            return Err("the cold run fetched no artefact".to_owned());
        }
        if !warm.artefacts.is_empty() {
            return Err(format!("fetched again when warm: {:?}", warm.artefacts));
        }
        let chosen = self.folder(client, "chosen")?;
        let newest = Packages {
            foxy: Some(&self.url()),
            lock: None,
        };
        (client.install)(&chosen, newest)?;
        let back = self.folder(client, "back")?;
        let same = Packages {
            foxy: None,
            lock: Some(&chosen),
        };
        (client.install)(&back, same)?;
        println!(
            "   {:<6} {:>5} files  cold: {} artefacts, {} from upstream  warm: 0 artefacts, {} from upstream",
            client.name,
            installed.files.len(),
            cold.artefacts.len(),
            mib(cold.bytes),
            mib(warm.bytes),
        );
        Ok(installed)
    }

    fn offline(&self, client: &Client, foxy: &Foxy, installed: &Installed) -> Result<(), String> {
        let seen = self.through(client, foxy, "alone", installed)?;
        match seen.bytes {
            0 => Ok(()),
            bytes => Err(format!("{bytes} bytes came from an upstream")),
        }
    }

    /// Installs through Foxy, with the lock file of the installation without Foxy. Returns what Foxy fetched
    /// in this time.
    fn through(
        &self,
        client: &Client,
        foxy: &Foxy,
        run: &str,
        installed: &Installed,
    ) -> Result<Fetched, String> {
        let before = (received(foxy)?, self.lines()?.len());
        let folder = self.folder(client, run)?;
        let packages = Packages {
            foxy: Some(&self.url()),
            lock: Some(&installed.lock),
        };
        let files = (client.install)(&folder, packages).map_err(|why| format!("{run}: {why}"))?;
        files::same(&installed.files, &files).map_err(|why| format!("{run}: {why}"))?;
        let lines = self.lines()?;
        let fetched = lines.get(before.1..).unwrap_or_default().iter();
        Ok(Fetched {
            artefacts: fetched.filter_map(|line| fetched_artefact(line)).collect(),
            bytes: received(foxy)?.saturating_sub(before.0),
        })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn folder(&self, client: &Client, run: &str) -> Result<PathBuf, String> {
        let folder = self.bench.path(&format!("{}-{run}", client.name));
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    fn lines(&self) -> Result<Vec<String>, String> {
        // Foxy writes the line of a request to the log some time after the answer.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        let text = std::fs::read_to_string(&self.log)
            .map_err(|error| format!("{}: {error}", self.log.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// An installation without Foxy: its folder with the lock file, and its files.
struct Installed {
    lock: PathBuf,
    files: Files,
}

/// The data that Foxy fetched during an installation.
struct Fetched {
    /// URLs of the artefacts that were fetched.
    artefacts: BTreeSet<String>,
    /// Number of bytes that Foxy got from the registries, including all documents.
    bytes: u64,
}

fn received(foxy: &Foxy) -> Result<u64, String> {
    let page = foxy.page("/metrics")?;
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("foxy_origin_received_bytes_total "));
    line.and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| "/metrics has no foxy_origin_received_bytes_total".to_owned())
}

/// The URL in this line of the access log, if Foxy fetched an artefact for this request.
fn fetched_artefact(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let path = line["url"].as_str()?.split('?').next()?;
    let artefact = [".whl", ".tgz", ".crate", "/download", ".deb", ".tar.gz"]
        .iter()
        .any(|end| path.ends_with(end));
    let fetched = line["origin_status"]
        .as_u64()
        .is_some_and(|status| status == 200);
    (artefact && fetched).then(|| path.to_owned())
}

fn mib(bytes: u64) -> String {
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

#[cfg(test)]
mod tests {
    use super::fetched_artefact;

    #[test]
    fn only_artefacts_that_an_upstream_sent_count() {
        let line =
            |url: &str, status: &str| fetched_artefact(&format!("{{\"url\":\"{url}\"{status}}}"));
        let sent = ",\"origin_status\":200";
        assert!(line("http://m/a-1.whl", sent).is_some());
        assert!(line("http://m/a-1.whl", "").is_none());
        assert!(line("http://m/simple/a/", sent).is_none());
        assert!(line("http://m/a-1.whl", ",\"origin_status\":304").is_none());
    }
}
