//! Request collapsing: if many clients request one object at the same time (a crowd), the proxy sends only
//! one request to the origin. Two things are measured: the number of requests to the origin, and the answers
//! that the crowd gets when its first request (the leader) fails.

mod crowd;
mod leaders;
mod object;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::kit::{self, Answer, Child, ClientRequest, Mode, Progress, Target, beside, foxy, serve};
use object::Origin;

/// Measure request collapsing and failing leaders. Exit code 1 if a row fails
#[derive(Clone, Debug, clap::Args)]
pub struct Collapse {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Number of clients of a crowd
    #[arg(long, value_name = "N", default_value_t = 1000)]
    clients: usize,
    /// Measure failing leaders only
    #[arg(long)]
    leaders: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A part of the measurement. Each part gets a new proxy process, so that the proxy has no idle connection to
/// the origin when the failing leaders begin. If a request fails on an idle connection, the proxy retries,
/// because the origin may have closed the connection. This retry would hide whether the proxy handles a
/// failing leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Crowds,
    Leaders,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Crowds => "crowds",
            Self::Leaders => "leaders",
        }
    }
}

/// A line of the printed table.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    measured: String,
    wanted: String,
    met: bool,
}

/// Proxy and origin of one run.
#[derive(Debug)]
struct Fixture {
    target: Target,
    origin: Arc<Origin>,
}

impl Collapse {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.all())
    }

    fn all(&self) -> Result<bool, String> {
        let folder = kit::folder()?;
        let program = self.foxy.clone().unwrap_or_else(beside);
        let mut good = true;
        let mut reports = Vec::new();
        for mode in [Mode::Reverse, Mode::Forward] {
            let place = folder.path().join(mode.name());
            std::fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
            let mut rows = Vec::new();
            for part in [Part::Crowds, Part::Leaders] {
                let place = place.join(part.name());
                std::fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
                if part == Part::Leaders || !self.leaders {
                    rows.extend(self.measure(part, &program, mode, &place)?);
                }
            }
            good &= rows.iter().all(|row| row.met);
            match self.json {
                true => reports.push(report(mode, &rows)),
                false => print(mode, &rows),
            }
        }
        if self.json {
            println!("{}", Value::Array(reports));
        }
        Ok(good)
    }

    fn measure(
        &self,
        part: Part,
        program: &Path,
        mode: Mode,
        folder: &Path,
    ) -> Result<Vec<Row>, String> {
        let runtime = kit::runtime()?;
        let listener = runtime
            .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|error| format!("the origin has no port: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?;
        let port = port.port();
        let proxy: Child = foxy(program, mode, port, folder)?;
        let origin = Arc::new(Origin::default());
        let fixture = Arc::new(Fixture {
            target: Target {
                proxy: proxy.address(),
                origin: format!("127.0.0.1:{port}"),
                scheme: mode.scheme(),
            },
            origin: Arc::clone(&origin),
        });
        Ok(runtime.block_on(async {
            tokio::spawn(serve(listener, origin));
            match part {
                Part::Crowds => crowd::run(&fixture, self.clients).await,
                Part::Leaders => leaders::run(&fixture).await,
            }
        }))
    }
}

/// A running request and its progress.
type Sent = (
    watch::Receiver<Progress>,
    JoinHandle<Result<Answer, String>>,
);

fn sent(fixture: &Fixture, request: ClientRequest, timeout: Duration) -> Sent {
    let (sender, progress) = watch::channel(Progress::Before);
    let target = fixture.target.clone();
    let task = tokio::spawn(async move { request.send(&target, timeout, Some(sender)).await });
    (progress, task)
}

fn print(mode: Mode, rows: &[Row]) {
    println!("foxy, {}", mode.name());
    for row in rows {
        let met = if row.met { "met" } else { "MISSED" };
        println!(
            "  {:<56} {:<58} {:<24} {met}",
            row.name, row.measured, row.wanted
        );
    }
    println!();
}

fn report(mode: Mode, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "name": row.name, "measured": row.measured, "wanted": row.wanted, "met": row.met,
        })
    };
    json!({"mode": mode.name(), "rows": rows.iter().map(row).collect::<Vec<_>>()})
}
