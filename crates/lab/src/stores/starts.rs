//! Measures the start of Foxy when one of its two stores is bad. The measured time is from the start of the
//! process to the first answer.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use foxy_bench::store::Loop;
use tokio::time::{Instant, sleep};

use super::load::{self, Paths};
use super::origin;
use crate::kit::{Child, Launch, free_port};

/// The first answer must arrive within this time.
const WITHIN: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_secs(20);
const STORE: u64 = 256 << 20;
const OBJECTS: u64 = 4_000;

/// Change of the second store while Foxy is not running.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Nothing,
    CutShort,
    Unreadable,
    Gone,
    Wiped,
    Unmounted,
}

impl Bad {
    const ALL: [Self; 6] = [
        Self::Nothing,
        Self::CutShort,
        Self::Unreadable,
        Self::Gone,
        Self::Wiped,
        Self::Unmounted,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "both stores are well",
            Self::CutShort => "cut short",
            Self::Unreadable => "every read fails (EIO)",
            Self::Gone => "the file is gone",
            Self::Wiped => "first and last MiB wiped",
            Self::Unmounted => "folder gone (not mounted)",
        }
    }

    /// Applies the change to the store at `store`. If the store is a loop device, `file` is the file behind
    /// it.
    fn carry_out(self, store: &Path, file: &Path) -> Result<(), String> {
        let problem = |error: std::io::Error| format!("{}: {error}", store.display());
        let open = || File::options().write(true).open(store).map_err(problem);
        let folder = store.parent().unwrap_or(store);
        match self {
            Self::Nothing => {}
            Self::CutShort => open()?.set_len(1 << 20).map_err(problem)?,
            Self::Gone => std::fs::remove_file(store).map_err(problem)?,
            Self::Wiped => {
                for at in [0, STORE - (1 << 20)] {
                    open()?.write_all_at(&[0; 1 << 20], at).map_err(problem)?;
                }
            }
            Self::Unmounted => {
                std::fs::rename(folder, folder.with_extension("away")).map_err(problem)?;
            }
            // The device keeps its length, but its file is empty. So every read of the device fails.
            Self::Unreadable => {
                let file = File::options().write(true).open(file).map_err(problem)?;
                file.set_len(0).map_err(problem)?;
            }
        }
        Ok(())
    }
}

/// Measures each kind of change and judges the slowest start.
pub(super) async fn measure(program: &Path, folder: &Path, count: usize) -> Result<bool, String> {
    println!(
        "First answer after the start of the process, one bad store of two ({OBJECTS} objects)"
    );
    let origin = origin::start().await?;
    let mut good = true;
    for bad in Bad::ALL {
        let mut took = Vec::new();
        for n in 0..count {
            let place = Place {
                program,
                folder: folder.join(format!("{bad:?}-{n}")),
                origin,
            };
            let device = match bad {
                Bad::Unreadable => place.device(),
                _ => Ok(None),
            };
            let once = match device {
                Ok(device) => place.once(bad, device.as_ref()).await,
                Err(problem) => Err(problem),
            };
            match once {
                Ok(one) => took.push(one),
                Err(problem) if n == 0 => {
                    println!("{:<28} NOT MEASURED: {problem}", bad.name());
                    good = false;
                    break;
                }
                Err(problem) => return Err(problem),
            }
            let _ = std::fs::remove_dir_all(&place.folder);
        }
        took.sort();
        let (Some(least), Some(most)) = (took.first(), took.last()) else {
            continue;
        };
        println!(
            "{:<28} {:>4} ms in the middle, {:>4} to {:>4} ms",
            bad.name(),
            took[took.len() / 2].as_millis(),
            least.as_millis(),
            most.as_millis()
        );
        good &= *most <= WITHIN;
    }
    println!("each has to come within {} ms\n", WITHIN.as_millis());
    Ok(good)
}

struct Place<'a> {
    program: &'a Path,
    folder: PathBuf,
    origin: u16,
}

impl Place<'_> {
    fn store(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("store")
    }

    fn device(&self) -> Result<Option<Loop>, String> {
        std::fs::create_dir_all(&self.folder).map_err(|error| format!("no folder: {error}"))?;
        let device = Loop::new(&self.folder, "device", STORE, 512);
        device.map(Some).map_err(|error| error.to_string())
    }

    fn launch(&self, port: u16, second: &Path) -> Launch {
        let mut args = vec![
            format!("STATE_DIRECTORY={}", self.folder.join("state").display()),
            self.program.display().to_string(),
            "serve".to_owned(),
            "--admin=off".to_owned(),
            "--access-log=off".to_owned(),
            format!("--listen=127.0.0.1:{port}"),
            format!("--origin=http://127.0.0.1:{}", self.origin),
        ];
        for store in [&self.store("a"), second] {
            args.push(format!("--store={}", store.display()));
            args.push(format!("--store-size={STORE}B"));
        }
        Launch::new("/usr/bin/env".into(), args)
    }

    /// Fills both stores, changes the second store, starts Foxy again and requests an object. Returns the
    /// time to the answer.
    async fn once(&self, bad: Bad, device: Option<&Loop>) -> Result<Duration, String> {
        let second = device.map_or_else(|| self.store("b"), |device| device.device().to_owned());
        for name in ["a", "b", "state"] {
            let made = std::fs::create_dir_all(self.folder.join(name));
            made.map_err(|error| format!("no folder: {error}"))?;
        }
        let port = free_port()?;
        let foxy = Child::start(&self.launch(port, &second), &self.folder, port)?;
        let fill: Paths = Arc::new(|n| (n < OBJECTS).then(|| path(n)));
        let got = load::run(foxy.address(), 8, fill, None).await;
        if got.bad() > 0 {
            return Err("answers were wrong or missing".to_owned());
        }
        sleep(Duration::from_millis(1500)).await;
        drop(foxy);
        bad.carry_out(&second, &self.folder.join("device"))?;
        let port = free_port()?;
        let launch = self.launch(port, &second);
        let begun = Instant::now();
        let mut again = Command::new(&launch.program)
            .args(&launch.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("foxy did not start: {error}"))?;
        let took = first_answer((Ipv4Addr::LOCALHOST, port).into(), begun).await;
        let _ = again.kill();
        let _ = again.wait();
        took.ok_or_else(|| "no answer".to_owned())
    }
}

fn path(n: u64) -> String {
    format!("/2000/{n}")
}

async fn first_answer(to: SocketAddr, begun: Instant) -> Option<Duration> {
    while begun.elapsed() < TIMEOUT {
        if load::ask(to, &path(7), None).await.is_some() {
            return Some(begun.elapsed());
        }
        sleep(Duration::from_millis(1)).await;
    }
    None
}
