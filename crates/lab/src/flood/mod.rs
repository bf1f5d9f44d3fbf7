//! A flood of purges from a client that does not have the operator's token. During the flood, the operator's
//! own purges are measured.

mod origin;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use crate::kit::{self, Child, ClientRequest, Launch, Target, beside, free_port, serve};
use origin::Origin;

/// The 99th percentile of the operator's purge times must be below this limit.
const LIMIT: Duration = Duration::from_millis(10);
/// Pause between two purges of the operator.
const PAUSE: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Kinds of purges that the flood sends: name of the field that selects the kind, value of the field, and
/// path. If the path is `None`, each purge has a new URL.
const KINDS: [(&str, &str, Option<&str>); 8] = [
    ("Surrogate-Key", "all", Some("/kept/0")),
    ("X-Purge-Method", "prefix", Some("/kept/")),
    ("X-Purge-Method", "regex", Some("/kept/.*")),
    ("X-Purge-Method", "host", Some("/kept/0")),
    ("X-Purge-Method", "all", Some("/kept/0")),
    ("Origin", "http://page.test", Some("/kept/1")),
    ("X-Forwarded-For", "192.0.2.1", Some("/kept/2")),
    // A client without the token may purge a URL that it names exactly. Each purge of this kind has a new
    // URL.
    ("X-Purge-Method", "soft", None),
];

/// Measure the operator's purges during a flood of purges. Exit code 1 if the 99th percentile of the
/// operator's purges is 10 ms or more, a stored object is lost, or no purge of the flood is refused
#[derive(Clone, Debug, clap::Args)]
pub struct Flood {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Duration of the flood, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Number of connections that send the flood
    #[arg(long, value_name = "N", default_value_t = 16)]
    connections: usize,
    /// Number of objects that are stored before the flood
    #[arg(long, value_name = "N", default_value_t = 5000)]
    objects: usize,
}

/// Times of the operator's purges, sorted.
struct Times(Vec<Duration>);

impl Times {
    fn at(&self, share: f64) -> Duration {
        let last = self.0.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or_default()
    }
}

impl Flood {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let folder = kit::folder()?;
        let runtime = kit::runtime()?;
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .map_err(|error| format!("the origin has no port: {error}"))?;
            let port = listener.local_addr().map_err(|e| e.to_string())?.port();
            tokio::spawn(serve(listener, Arc::new(Origin)));
            let (foxy, admin) = self.start(port, folder.path())?;
            let fixture = Fixture::new(&foxy, admin, port);
            for n in 0..self.objects {
                fixture.get(n).await?;
            }
            let quiet = fixture.operator(Duration::from_secs(2)).await?;
            let (stop, counts) = (
                Arc::new(AtomicBool::new(false)),
                Arc::new(Counts::default()),
            );
            for n in 0..self.connections {
                tokio::spawn(flood(
                    fixture.target.clone(),
                    n,
                    stop.clone(),
                    counts.clone(),
                ));
            }
            let busy = fixture.operator(Duration::from_secs(self.seconds)).await?;
            stop.store(true, Ordering::Relaxed);
            let mut lost = 0;
            for n in 0..self.objects {
                lost += usize::from(!fixture.get(n).await?);
            }
            let sent = counts.sent.load(Ordering::Relaxed);
            let refused = counts.refused.load(Ordering::Relaxed);
            println!("flood         {sent} purges, {refused} refused, {lost} objects lost");
            for (name, times) in [("quiet", &quiet), ("in the flood", &busy)] {
                println!(
                    "{name:<13} {} purges of the operator, ms: p50 {:.2}  p99 {:.2}  max {:.2}",
                    times.0.len(),
                    ms(times.at(0.5)),
                    ms(times.at(0.99)),
                    ms(times.at(1.0)),
                );
            }
            Ok(lost == 0 && refused > 0 && busy.at(0.99) < LIMIT)
        })
    }

    fn start(&self, origin: u16, folder: &std::path::Path) -> Result<(Child, SocketAddr), String> {
        let (port, admin) = (free_port()?, free_port()?);
        let program = self.foxy.clone().unwrap_or_else(beside);
        let store = folder.join("store").to_string_lossy().into_owned();
        let args = [
            "serve".to_owned(),
            "--access-log=off".to_owned(),
            "--memory=256MiB".to_owned(),
            "--store-size=256MiB".to_owned(),
            format!("--store={store}"),
            format!("--listen=127.0.0.1:{port}"),
            format!("--admin=127.0.0.1:{admin}"),
            format!("--origin=http://127.0.0.1:{origin}"),
        ];
        let child = Child::start(&Launch::new(program, args), folder, port)?;
        Ok((child, (Ipv4Addr::LOCALHOST, admin).into()))
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Results of the flood.
#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    refused: AtomicU64,
}

/// Sends purges of all kinds without a pause. If Foxy permitted them, most of these purges would remove
/// objects that other clients have stored.
async fn flood(target: Target, number: usize, stop: Arc<AtomicBool>, counts: Arc<Counts>) {
    let mut count = number;
    while !stop.load(Ordering::Relaxed) {
        let (name, value, others) = KINDS[count % KINDS.len()];
        let path = others.map_or_else(|| format!("/flood/{count}"), str::to_owned);
        let request = ClientRequest {
            method: "PURGE",
            ..ClientRequest::get(path)
        };
        let request = request.with(name, value);
        count += 1;
        counts.sent.fetch_add(1, Ordering::Relaxed);
        match request.send(&target, TIMEOUT, None).await {
            Ok(answer) if matches!(answer.head.status(), 403 | 429) => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// The two addresses of the measured Foxy: the address for clients, and the admin address.
struct Fixture {
    target: Target,
    admin: Target,
}

impl Fixture {
    fn new(foxy: &Child, admin: SocketAddr, origin: u16) -> Self {
        let target = |proxy, name: String| Target {
            proxy,
            origin: name,
            scheme: None,
        };
        Self {
            target: target(foxy.address(), format!("127.0.0.1:{origin}")),
            admin: target(admin, "localhost".to_owned()),
        }
    }

    /// Requests an object. Returns true if the object was already stored.
    async fn get(&self, n: usize) -> Result<bool, String> {
        let request = ClientRequest::get(format!("/kept/{n}"));
        let answer = request.send(&self.target, TIMEOUT, None).await?;
        if answer.head.status() != 200 || !answer.whole {
            return Err(format!("/kept/{n} gave {}", answer.head.start));
        }
        let cache = answer.head.get("Cache-Status").unwrap_or_default();
        Ok(cache.contains("hit"))
    }

    /// Sends the operator's purges one after another. Each purge names a different tag. Returns the times of
    /// the purges.
    async fn operator(&self, length: Duration) -> Result<Times, String> {
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < length {
            let request = ClientRequest {
                method: "POST",
                fields: vec![("X-Foxy-Admin", "1".to_owned())],
                ..ClientRequest::get(format!("/purge?tag=mine-{}", times.len()))
            };
            let asked = Instant::now();
            let answer = request.send(&self.admin, TIMEOUT, None).await?;
            times.push(asked.elapsed());
            if answer.head.status() != 200 {
                let text = String::from_utf8_lossy(&answer.body);
                return Err(format!("a purge gave {}: {text}", answer.head.start));
            }
            sleep(PAUSE).await;
        }
        times.sort_unstable();
        Ok(Times(times))
    }
}
