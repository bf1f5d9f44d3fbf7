//! The measured Foxy with its mirrors, other servers beside it, and the memory use of a process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::kit::{Child, Launch, Memory, Respond, forget_peak, free_port, runtime, serve};

/// Memory budget of each Foxy.
pub(super) const MEMORY: &str = "256MiB";
const MIB: f64 = 1024.0 * 1024.0;

/// A server on its own thread. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    _stop: oneshot::Sender<()>,
}

impl Server {
    pub(super) fn start<P: Respond>(responder: Arc<P>) -> Result<Self, String> {
        Self::with(move |listener| serve(listener, responder))
    }

    /// Starts a server in which the function `serves` handles all connections.
    pub(super) fn with<F: Future<Output = ()>>(
        serves: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> Result<Self, String> {
        let problem = |error: std::io::Error| format!("a registry has no port: {error}");
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        listener.set_nonblocking(true).map_err(problem)?;
        let runtime = runtime()?;
        let (stop, stopped) = oneshot::channel();
        thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else {
                    return;
                };
                tokio::select! {
                    () = serves(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self { port, _stop: stop })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

/// Options for the start of a Foxy.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) program: PathBuf,
    /// Size of the store, in bytes.
    pub(super) store: u64,
    /// True if Foxy runs only on the first core.
    pub(super) pinned: bool,
    /// Configuration of the mirrors.
    pub(super) mirrors: String,
}

impl Setup {
    /// Options for these mirrors of packages, with a store that is large enough for all packages.
    pub(super) fn of_packages(program: PathBuf, mirrors: String) -> Self {
        Self {
            program,
            store: 2 << 30,
            pinned: false,
            mirrors,
        }
    }

    /// Starts Foxy with its files in `folder`.
    pub(super) fn start(&self, folder: &Path) -> Result<Child, String> {
        let port = free_port()?;
        let text = format!(
            "listen = [\"127.0.0.1:{port}\"]\nadmin = \"off\"\n\
             memory = \"{MEMORY}\"\n[log]\naccess = \"off\"\n\
             [[store]]\npath = \"{}\"\nsize = \"{}\"\n{}",
            folder.join("store").display(),
            self.store,
            self.mirrors
        );
        let file = folder.join("foxy.toml");
        std::fs::write(&file, text).map_err(|error| format!("no configuration: {error}"))?;
        let args = ["serve".to_owned(), format!("--config={}", file.display())];
        let launch = Launch::new(self.program.clone(), args);
        Child::start(&pinned(launch, self.pinned), folder, port)
    }
}

/// If `pinned` is true, changes `launch` so that the program runs only on the first core. Otherwise returns
/// `launch` unchanged.
pub(super) fn pinned(launch: Launch, pinned: bool) -> Launch {
    if !pinned {
        return launch;
    }
    let program = launch.program.display().to_string();
    let mut args = vec!["-c".to_owned(), "0".to_owned(), program];
    args.extend(launch.args);
    Launch::new("taskset".into(), args)
}

/// Resident memory of a process before a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Baseline {
    pid: u32,
    resident: u64,
}

impl Baseline {
    pub(super) fn of(pid: u32) -> Self {
        forget_peak(pid);
        let memory = Memory::of(pid).unwrap_or_default();
        Self {
            pid,
            resident: memory.resident,
        }
    }

    /// The growth of resident memory in MiB: the peak since this value was taken, less the resident memory at
    /// that time.
    pub(super) fn above(self) -> f64 {
        let memory = Memory::of(self.pid).unwrap_or_default();
        memory.peak.saturating_sub(self.resident) as f64 / MIB
    }

    /// The resident memory in MiB.
    pub(super) fn resident(self) -> f64 {
        self.resident as f64 / MIB
    }
}
