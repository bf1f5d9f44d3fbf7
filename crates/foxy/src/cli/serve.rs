//! `foxy serve`: starts the proxy with these arguments, and runs until a signal ends it.

use std::io::Write;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::ServeArgs;
use super::reload::{self, LevelHandle};
use super::{failed, misconfigured};
use crate::config::{Config, ThisMachine, Users, human};
use crate::run::{notify, raise_open_files};
use crate::{Parts, Passed, Running, start};

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(args: &ServeArgs) -> ExitCode {
    run_with(args, Parts::system())
}

/// Runs like [`run`], but with the [`Parts`] that the caller provides.
pub(super) fn run_with(args: &ServeArgs, mut parts: Parts) -> ExitCode {
    // Huge pages are forbidden until the memory budget is known, because a later call cannot remove huge
    // pages that the process already has. An error of this call is ignored. When the budget is known, a
    // second call logs such an error.
    let _ = foxy_disk::use_small_pages(true);
    parts.store_options.force_format = args.force_format;
    parts.strict = args.strict;
    parts.passed = match Passed::from_environment() {
        Ok(passed) => passed,
        Err(error) => return failed(error),
    };
    let config = match args.configuration(&ThisMachine) {
        Ok(config) => config,
        Err(problems) => return misconfigured(&problems),
    };
    let level = reload::messages(&config.log.level);
    raise_open_files();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return failed(format!("the system refuses an event loop: {error}")),
    };
    // Signals are caught before anything is opened, so that no signal can end a Foxy that is half started.
    let signals = match runtime.block_on(async { Signals::new() }) {
        Ok(signals) => signals,
        Err(error) => return failed(format!("signals cannot be handled: {error}")),
    };
    let running = match start(&config, parts) {
        Ok(running) => running,
        Err(error) => return failed(error),
    };
    tell(&headline(&config, &running));
    for users in running_users(&config, &running) {
        match users.open_proxy {
            true => tracing::warn!("{}", users.words),
            false => tell(&format!("foxy: {}", users.words)),
        }
    }
    notify("READY=1");
    let signal = runtime.block_on(until_ended(signals, args, &running, &level));
    let drain = running.config().proxy.timeouts.drain;
    notify("STOPPING=1");
    tracing::info!(
        "{signal}: nothing new is accepted, {} open connections have {drain:?} to finish, then contents are written to disk; a second signal ends at once",
        running.proxy().connections()
    );
    // A second signal ends Foxy immediately. Contents that are not written yet will be fetched again.
    std::thread::spawn(move || {
        let second = runtime.block_on(async { Some(Signals::new().ok()?.ending().await) });
        if second.is_some() {
            std::process::exit(1);
        }
    });
    running.shutdown();
    tracing::info!("ended; everything is written");
    ExitCode::SUCCESS
}

/// Writes a line to standard error. If the reader has closed standard error, the proxy continues.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns one line about the listeners and resources of the proxy.
fn headline(config: &Config, running: &Running) -> String {
    let mut parts = Vec::new();
    for address in running.forward() {
        parts.push(format!("forward proxy on {address}"));
    }
    for ((name, addresses), site) in running.sites().iter().zip(&config.sites) {
        for address in addresses {
            let origin = match site.objects {
                Some(_) => "objects of its clients".to_owned(),
                None => site.origin.to_string(),
            };
            parts.push(format!("site {name} on {address} for {origin}"));
        }
    }
    if let Some(admin) = running.admin() {
        parts.push(format!("status on http://{admin}/"));
    }
    if let Some(socket) = &config.admin_socket {
        parts.push(format!("admin socket {}", socket.path.display()));
    }
    let stats = running.engine().stats();
    for store in &stats.stores {
        let bytes = u64::from(store.segments) * u64::from(store.segment_bytes);
        parts.push(format!("store {} of {}", store.disk, human(bytes)));
    }
    if stats.stores.is_empty() {
        parts.push("no store".to_owned());
    }
    for absent in running.absent_stores() {
        parts.push(format!("WITHOUT {}", absent.path));
    }
    parts.push(format!("memory {}", human(config.memory)));
    parts.push(format!("{} workers", config.workers));
    format!("foxy {}: {}", env!("CARGO_PKG_VERSION"), parts.join(", "))
}

/// Returns the clients that may use each listener. The listeners have the addresses that the system has
/// bound.
fn running_users(config: &Config, running: &Running) -> Vec<Users> {
    let all = running.sites();
    config.users(&running.forward(), |site| {
        let found = all.iter().find(|(name, _)| *name == site.name);
        found.map_or(&[], |(_, addresses)| addresses)
    })
}

/// The signals that Foxy handles.
struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
    reopen: Signal,
    /// Signals that have a meaning for other servers only. Without a handler they would end Foxy.
    quit: Signal,
    user2: Signal,
    /// The signal for a file that is longer than the system's limit (`ulimit -f`). It is caught, so that the
    /// write fails and Foxy continues.
    _too_long: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            reopen: signal(SignalKind::user_defined1())?,
            quit: signal(SignalKind::quit())?,
            user2: signal(SignalKind::user_defined2())?,
            _too_long: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for a signal that ends Foxy.
    async fn ending(mut self) -> Option<()> {
        tokio::select! {
            got = self.term.recv() => got,
            got = self.interrupt.recv() => got,
        }
    }
}

/// Serves until a signal ends the proxy, and returns the signal's name.
async fn until_ended(
    mut signals: Signals,
    args: &ServeArgs,
    running: &Running,
    level: &LevelHandle,
) -> &'static str {
    let mut requests = running.reload_requests();
    let mut request = async || match &mut requests {
        Some(requests) => requests.recv().await,
        None => None,
    };
    loop {
        tokio::select! {
            Some(reply) = request() => {
                let outcome = reload::reload(args, running, level);
                reload::report(&outcome);
                // The client may have left already.
                let _ = reply.send(outcome);
            }
            _ = signals.term.recv() => return "SIGTERM",
            _ = signals.interrupt.recv() => return "SIGINT",
            _ = signals.hangup.recv() => reload::report(&reload::reload(args, running, level)),
            _ = signals.reopen.recv() => reopen(running),
            _ = signals.quit.recv() => without_meaning("SIGQUIT"),
            _ = signals.user2.recv() => without_meaning("SIGUSR2"),
        }
    }
}

fn reopen(running: &Running) {
    match running.log() {
        Some(log) => {
            log.reopen();
            tracing::info!("SIGUSR1: the access log is opened anew");
        }
        None => tracing::info!("SIGUSR1: there is no access log to open anew"),
    }
}

fn without_meaning(name: &str) {
    tracing::info!("{name} has no meaning here: SIGTERM ends, SIGUSR1 opens logs anew");
}
