//! Reloads of a configuration with very many sites, each with its own certificate. The measurement shows
//! the processor time that the reloads take from the threads that serve requests.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use rcgen::generate_simple_self_signed;
use tokio::time::sleep;

use super::fixture::{Fixture, listener};
use super::{Findings, Reloads};
use crate::kit::{free_port, thread_times};

/// Greatest processor time that one reload may take from any worker (network thread).
const LIMIT: Duration = Duration::from_millis(50);
/// Number of reloads. The slowest reload is judged.
const RELOADS: u32 = 10;
/// Pause after a reload. In this time the workers do the work that the reload has left to them.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// Runs the reloads.
pub(super) async fn run(
    wanted: &Reloads,
    program: &Path,
    folder: &Path,
    findings: &mut Findings,
) -> Result<(), String> {
    certificates(folder, wanted.sites)?;
    // No request is sent to the origin. So the origin only occupies its port and answers nothing.
    let (_origin, origin) = listener().await?;
    let (tls, admin) = (free_port()?, free_port()?);
    let text = |mark| text(folder, (tls, admin, origin), wanted.sites, mark);
    let fixture = Fixture::start(program, folder, &text(0), (tls, admin))?;
    // Foxy accepts connections before its workers run, but it answers a reload only after they have started.
    // After this first reload, the workers run.
    fixture.apply(&text(0)).await?;
    let clock = SystemClock::default();
    let (mut slowest, mut whole) = (Duration::ZERO, Duration::ZERO);
    for mark in 1..=RELOADS {
        let before = workers(fixture.pid())?;
        let begun = clock.mono();
        fixture.apply(&text(mark)).await?;
        whole = whole.max(clock.mono().since(begun));
        sleep(AFTERWARDS).await;
        let used = workers(fixture.pid())?;
        for (now, before) in used.into_iter().zip(before) {
            slowest = slowest.max(now.saturating_sub(before));
        }
    }
    findings.result(format!(
        "many sites      {} with TLS, {RELOADS} reloads that change each: at most {:.1} ms of a worker, {:.0} ms until the answer",
        wanted.sites,
        slowest.as_secs_f64() * 1e3,
        whole.as_secs_f64() * 1e3,
    ));
    findings.expect(slowest < LIMIT, || {
        format!(
            "a reload of {} sites took {slowest:?} of a worker",
            wanted.sites
        )
    });
    Ok(())
}

/// Processor time of each worker.
fn workers(pid: u32) -> Result<Vec<Duration>, String> {
    let threads = thread_times(pid).into_iter();
    let times: Vec<_> = threads
        .filter(|(name, _)| {
            let number = name.strip_prefix("foxy-");
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        })
        .map(|(_, time)| time)
        .collect();
    match times.is_empty() {
        false => Ok(times),
        true => Err("Foxy has ended, or its threads have other names".to_owned()),
    }
}

fn certificates(folder: &Path, sites: u32) -> Result<(), String> {
    for number in 0..sites {
        let made = generate_simple_self_signed([host(number)]).map_err(|e| e.to_string())?;
        let write = |name: String, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        write(format!("{number}.crt"), made.cert.pem())?;
        write(format!("{number}.key"), made.signing_key.serialize_pem())?;
    }
    Ok(())
}

fn host(number: u32) -> String {
    format!("site{number}.test")
}

/// The text of the configuration file. Every site contains `mark`.
fn text(folder: &Path, (tls, admin, origin): (u16, u16, u16), sites: u32, mark: u32) -> String {
    let folder = folder.display();
    let mut text = format!(
        "admin = \"127.0.0.1:{admin}\"\nworkers = 2\nmemory = \"256MiB\"\n\
         [[store]]\npath = \"{folder}/store\"\nsize = \"64MiB\"\n"
    );
    for number in 0..sites {
        let host = host(number);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[site]]\nname = \"{host}\"\nhosts = [\"{host}\"]\nlisten_tls = \"127.0.0.1:{tls}\"\n\
             certificate = \"{folder}/{number}.crt\"\nkey = \"{folder}/{number}.key\"\n\
             origin = \"http://127.0.0.1:{origin}\"\nresponse_headers = [\"set X-Mark: {mark}\"]\n"
        );
    }
    text
}
