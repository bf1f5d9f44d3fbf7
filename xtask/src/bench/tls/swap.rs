//! A certificate is replaced under load. No request may fail, and new connections must soon get the new
//! certificate.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use foxy_base::{Clock, SystemClock};

use super::load::Case;
use super::servers::{HOST, Server, certificate};

/// Greatest permitted time until the new certificate is served.
const MOST: Duration = Duration::from_secs(11);
/// Duration of the load before the certificate is replaced, and again after the new certificate is served.
const BESIDE: Duration = Duration::from_secs(1);

/// Replaces the certificate while requests come over old and new connections. Fails if a request fails, or if
/// the new certificate is not served in time.
pub(super) fn measure(server: &Server, folder: &Path) -> Result<(), String> {
    let over = AtomicBool::new(false);
    scope(|threads| {
        let load = threads.spawn(|| {
            let mut requests = 0;
            while !over.load(Ordering::Relaxed) {
                for (case, share) in [(Case::Small, 0.05), (Case::Handshake, 0.1)] {
                    case.measure(server, folder, share)?;
                    requests += case.requests(share);
                }
            }
            Ok::<_, String>(requests)
        });
        let clock = SystemClock::default();
        let begun = clock.mono();
        let taken = replaced(server, folder);
        sleep(BESIDE);
        over.store(true, Ordering::Relaxed);
        let requests = load.join().map_err(|_| "the load panicked".to_owned())??;
        let (taken, rate) = (
            taken?,
            requests as f64 / clock.mono().since(begun).as_secs_f64(),
        );
        println!(
            "   certificate replaced at {rate:.0} req/s: served after {:.1} s, 0 of {requests} requests failed",
            taken.as_secs_f64()
        );
        Ok(())
    })
}

/// Replaces the files of the certificate. Returns the time until a new connection gets the new certificate.
fn replaced(server: &Server, folder: &Path) -> Result<Duration, String> {
    sleep(BESIDE);
    let old = shown(server)?;
    let made = folder.join("next");
    fs::create_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    certificate(&made)?;
    for name in ["key.pem", "cert.pem"] {
        fs::rename(made.join(name), folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
    }
    let clock = SystemClock::default();
    let begun = clock.mono();
    while clock.mono().since(begun) < MOST {
        if shown(server)? != old {
            return Ok(clock.mono().since(begun));
        }
        sleep(Duration::from_millis(100));
    }
    Err(format!(
        "the old certificate is still served after {MOST:?}"
    ))
}

/// The certificate that a new connection gets.
fn shown(server: &Server) -> Result<String, String> {
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            &server.address(),
            "-servername",
            HOST,
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("openssl: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.find("-----BEGIN").ok_or("no certificate was shown")?;
    let end = text.find("-----END").ok_or("no certificate was shown")?;
    Ok(text[begin..end].to_owned())
}
