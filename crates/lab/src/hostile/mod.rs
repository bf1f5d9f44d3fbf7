//! TLS clients that misbehave, and their effect on other clients. For each kind of attack, the measurement
//! reports the latency of well-behaved ("good") clients during the attack, and the peak memory of Foxy.

mod attacks;
mod others;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::kit::{
    self, AfterResponse, BufferedConn, Memory, Mode, ReceivedRequest, Respond, Secured, beside,
    forget_peak, raise_files, serve,
};
use attacks::{Attack, Attackers};
use others::Times;

/// Memory budget of the measured Foxy, in bytes.
const BUDGET: u64 = 256 << 20;
/// Permitted memory of the measured Foxy, in bytes: a tenth more than its budget.
const BOUND: u64 = BUDGET + BUDGET / 10;
/// Number of files that good clients, the origin and the store need to open. The attackers need one more file
/// for each of their connections.
const SPARE_FILES: u64 = 1000;
/// Length of the page that good clients request, in bytes.
const PAGE: usize = 4096;

/// Measure the cost of misbehaving TLS clients for other clients. Exit code 1 if a good client fails, or
/// memory exceeds the budget by more than a tenth; times are printed and not judged
#[derive(Clone, Debug, clap::Args)]
pub struct Hostile {
    /// Foxy program to measure; default: the `foxy` in the folder of this program
    #[arg(long, value_name = "PATH")]
    foxy: Option<PathBuf>,
    /// Duration of each attack, in seconds
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Number of handshakes that are begun and not completed
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    halves: usize,
    /// Number of connections of each of the other attacks
    #[arg(long, value_name = "N", default_value_t = 50)]
    connections: usize,
}

/// The origin. It serves one page.
struct Page;

impl Respond for Page {
    async fn respond(&self, _: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {PAGE}\r\n\r\n"
        );
        let mut answer = head.into_bytes();
        answer.resize(answer.len() + PAGE, b'p');
        match conn.write(&answer).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}

impl Hostile {
    /// Measures, prints the results and judges them.
    #[must_use]
    pub fn run(&self) -> ExitCode {
        kit::exit(self.measure())
    }

    fn measure(&self) -> Result<bool, String> {
        let program = self.foxy.clone().unwrap_or_else(beside);
        raise_files(self.halves.max(self.connections) as u64 + SPARE_FILES)?;
        let folder = kit::folder()?;
        let runtime = kit::runtime()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.map_err(|error| format!("the origin has no port: {error}"))?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        // The origin has its own thread, because the start of Foxy blocks this thread.
        std::thread::spawn(move || runtime.block_on(serve(listener, Arc::new(Page))));
        let foxy = Secured::start(&program, Mode::Reverse, port, folder.path())?;
        let runtime = kit::runtime()?;
        runtime.block_on(self.attacks(&foxy))
    }

    async fn attacks(&self, foxy: &Secured) -> Result<bool, String> {
        let length = Duration::from_secs(self.seconds.max(1));
        println!(
            "{:<18} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
            "clients", "requests", "failed", "p50 ms", "p99 ms", "attempts", "MiB"
        );
        let mut good = true;
        for attack in [None].into_iter().chain(Attack::ALL.map(Some)) {
            forget_peak(foxy.pid());
            let count = match attack {
                Some(Attack::HalfHandshake) => self.halves,
                _ => self.connections,
            };
            let attackers = attack.map(|attack| Attackers::start(attack, foxy, count));
            let times = others::run(foxy, length).await;
            let attempts = attackers.map_or(0, Attackers::stop);
            let memory = Memory::of(foxy.pid()).ok_or("Foxy has ended")?;
            print(attack, &times, attempts, memory.peak);
            good &= times.failed == 0 && times.requests > 0 && memory.peak <= BOUND;
        }
        Ok(good)
    }
}

fn print(attack: Option<Attack>, times: &Times, attempts: u64, peak: u64) {
    let name = attack.map_or("none that misbehave", Attack::name);
    let ms = |share| times.times.quantile(share).as_secs_f64() * 1e3;
    println!(
        "{name:<18} {:>8} {:>8} {:>9.2} {:>9.2} {attempts:>9} {:>9}",
        times.requests,
        times.failed,
        ms(0.5),
        ms(0.99),
        peak >> 20
    );
}

/// Source address of the attackers. Good clients have a different source address.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66));
