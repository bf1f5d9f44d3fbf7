//! A site with three origins. One origin dies, one answers 500 and one becomes ten times slower. Later all
//! origins fail. The measurement shows the effect on clients.

mod load;
mod server;

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::kit::{self, Child, ClientRequest, Launch, Target, beside, free_port};
use load::{Got, Load};
use server::{Mode, Server};

/// Longest permitted time until Foxy stops using a bad origin.
const OUT: Duration = Duration::from_secs(1);
/// Greatest permitted number of requests to origins for each request of a client, while all origins fail.
const STORM: f64 = 1.3;
/// Number of objects that are stored before all origins fail.
const KEPT: usize = 50;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two requests for the statistics.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Measure a site with three origins that fail. Exit code 1 if a client's GET fails while one origin is
/// healthy, if bad origins are used for longer than a second, or if the origins get more than 1.3 requests
/// for each request of a client while all origins fail
#[derive(Clone, Debug, clap::Args)]
pub struct Origins {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Requests per second
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    rate: u64,
    /// Number of client connections
    #[arg(long, value_name = "N", default_value_t = 100)]
    connections: u64,
    /// Duration of each phase, in seconds
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Delay of a healthy origin, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 1)]
    delay: u64,
    /// Setting `balance`: the way in which Foxy chooses an origin
    #[arg(long, value_name = "WORD", default_value = "least_outstanding")]
    balance: String,
}

impl Origins {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let folder = kit::folder()?;
        let runtime = kit::runtime()?;
        runtime.block_on(self.phases(folder.path()))
    }

    async fn phases(&self, folder: &Path) -> Result<bool, String> {
        let mut servers = Vec::new();
        for _ in 0..3 {
            servers.push(Server::start(Duration::from_millis(self.delay)).await?);
        }
        let (foxy, admin) = self.start(&servers, folder)?;
        let fixture = Fixture {
            site: target(foxy.address(), "site.test"),
            admin: target(admin, "localhost"),
            servers,
            length: Duration::from_secs(self.seconds),
        };
        let load = Load::start(foxy.address(), self.connections, self.rate);
        sleep(Duration::from_secs(1)).await;
        let healthy = fixture.phase(&load, "three are well").await;
        let partly = fixture.some_fail(&load).await?;
        let back = fixture.all_well(&load).await?;
        let none = fixture.all_fail(&load).await?;
        Ok(healthy.errors + healthy.broken == 0 && partly && back && none)
    }

    fn start(&self, servers: &[Server], folder: &Path) -> Result<(Child, SocketAddr), String> {
        let (port, admin) = (free_port()?, free_port()?);
        let urls = servers
            .iter()
            .map(|s| format!("\"http://127.0.0.1:{}\"", s.port()));
        let text = format!(
            "admin = \"127.0.0.1:{admin}\"\nmemory = \"256MiB\"\n[[store]]\npath = \"off\"\n\
             [[site]]\nname = \"site\"\nlisten = [\"127.0.0.1:{port}\"]\norigin = [{}]\nbalance = \"{}\"\n",
            urls.collect::<Vec<_>>().join(", "),
            self.balance
        );
        let file = folder.join("foxy.toml");
        std::fs::write(&file, text).map_err(|error| format!("no configuration: {error}"))?;
        let program = self.foxy.clone().unwrap_or_else(beside);
        let args = ["serve".to_owned(), format!("--config={}", file.display())];
        let child = Child::start(&Launch::new(program, args), folder, port)?;
        Ok((child, (Ipv4Addr::LOCALHOST, admin).into()))
    }
}

fn target(proxy: SocketAddr, name: &str) -> Target {
    Target {
        proxy,
        origin: name.to_owned(),
        scheme: None,
    }
}

/// The addresses of a run, and the origins of the site.
struct Fixture {
    site: Target,
    admin: Target,
    servers: Vec<Server>,
    length: Duration,
}

impl Fixture {
    /// Lets the load run for the length of a phase. Prints and returns the counts of the answers.
    async fn phase(&self, load: &Load, name: &str) -> Got {
        let before = self.asked();
        let begun = Instant::now();
        load.counts.take();
        sleep(self.length).await;
        let (got, seconds) = (load.counts.take(), begun.elapsed().as_secs_f64());
        let asked = self.asked();
        let mut each = String::new();
        for (now, before) in asked.iter().zip(before) {
            // Writing to a string cannot fail.
            let _ = write!(each, " {}", now - before);
        }
        println!(
            "{name:<18} {:.0} requests/s, {} errors, {} broken, longest {} ms; origins got{each}",
            got.all() as f64 / seconds,
            got.errors,
            got.broken,
            got.longest.as_millis(),
        );
        got
    }

    fn asked(&self) -> Vec<u64> {
        self.servers.iter().map(Server::asked).collect()
    }

    /// Runs the phase in which one origin dies, one answers 500, and one becomes slow. Returns true if the
    /// goals are met.
    async fn some_fail(&self, load: &Load) -> Result<bool, String> {
        let begun = Instant::now();
        self.servers[0].set(Mode::Dead).await?;
        self.servers[1].set(Mode::Errors).await?;
        self.servers[2].set(Mode::Slow).await?;
        load.counts.take();
        let out = self
            .until("out", |standing| standing == "ejected", &[0, 1])
            .await?;
        let took = begun.elapsed();
        println!("left out          after {} ms", took.as_millis());
        let first = load.counts.take();
        let got = self.phase(load, "one is left").await;
        let errors = first.errors + first.broken + got.errors + got.broken;
        println!(
            "errors until then {}, all in all {errors}",
            first.errors + first.broken
        );
        Ok(out && took < OUT && errors == 0)
    }

    /// Runs the phase in which all origins work again. Returns true if the goals are met.
    async fn all_well(&self, load: &Load) -> Result<bool, String> {
        for server in &self.servers {
            server.set(Mode::Well).await?;
        }
        let begun = Instant::now();
        load.counts.take();
        let back = self
            .until("back", |standing| standing != "ejected", &[0, 1])
            .await?;
        println!(
            "back              after {:.1} s",
            begun.elapsed().as_secs_f64()
        );
        let first = load.counts.take();
        let got = self.phase(load, "all recover").await;
        Ok(back && first.errors + first.broken + got.errors + got.broken == 0)
    }

    /// Runs the phase in which all origins reset every connection. Returns true if the goals are met.
    async fn all_fail(&self, load: &Load) -> Result<bool, String> {
        for n in 0..KEPT {
            self.kept(n).await?;
        }
        sleep(Duration::from_secs(2)).await;
        for server in &self.servers {
            server.set(Mode::Resets).await?;
        }
        let before: u64 = self.asked().iter().sum();
        let got = self.phase(load, "all fail").await;
        let asked = self.asked().iter().sum::<u64>() - before;
        let mut stale = 0;
        for n in 0..KEPT {
            stale += usize::from(self.kept(n).await? == 200);
        }
        let ratio = asked as f64 / got.all().max(1) as f64;
        println!(
            "all fail          {stale} of {KEPT} stored pages answered stale, {ratio:.2} requests to \
             origins per request"
        );
        // Requests that had already begun when the origins failed may still succeed.
        let fails = got.good < got.all() / 20 && got.broken == 0;
        Ok(stale == KEPT && ratio <= STORM && fails)
    }

    /// Returns the status of the answer for a page that may be stored.
    async fn kept(&self, n: usize) -> Result<u16, String> {
        let answer = ClientRequest::get(format!("/kept/{n}"))
            .send(&self.site, TIMEOUT, None)
            .await?;
        Ok(answer.head.status())
    }

    /// Waits until `fits` accepts the state that Foxy reports for each origin in `which`. Returns false if
    /// this does not happen within one minute.
    async fn until(
        &self,
        what: &str,
        fits: impl Fn(&str) -> bool,
        which: &[usize],
    ) -> Result<bool, String> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let answer = ClientRequest::get("/stats".to_owned())
                .send(&self.admin, TIMEOUT, None)
                .await?;
            let stats: Value = serde_json::from_slice(&answer.body).map_err(|e| e.to_string())?;
            let standing = |at: &usize| stats["origins"][*at]["standing"].as_str().unwrap_or("");
            if which.iter().map(standing).all(&fits) {
                return Ok(true);
            }
            sleep(POLL_INTERVAL).await;
        }
        println!("not {what} within a minute");
        Ok(false)
    }
}
