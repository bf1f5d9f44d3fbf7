//! A scene: the origin, Foxy, the clock and the disk of a scenario, and the changes that a scenario makes to
//! them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use foxy::config::{Config, RawConfig, ThisMachine, parse};
use foxy::{Parts, Running, start};
use foxy_base::{Clock, ManualClock, WallTime};
use foxy_disk::{Disk, MemDisk};
use foxy_proxy::{FixedNames, StandIn};
use foxy_store::StoreOptions;
use tempfile::TempDir;

use crate::{Answer, Client, Origin};

/// 2026-11-20 12:00:00 UTC.
const NOON: i64 = 1_795_176_000;
const DISK_BYTES: u64 = 32 << 20;

/// The request field with the admin token that [`SceneBuilder::token`] gives to Foxy.
pub const TOKEN: &str = "X-Foxy-Token: 0123456789abcdef0123456789abcdef\r\n";

/// A duration of this many seconds.
#[must_use]
pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Options of a scene before it begins.
#[derive(Debug)]
pub struct SceneBuilder {
    config: String,
    admin: String,
    token: Option<Arc<TempDir>>,
    disk: bool,
    site: bool,
    stand_in: Option<Arc<dyn StandIn>>,
}

impl SceneBuilder {
    /// Adds lines to the configuration file.
    #[must_use]
    pub fn config(mut self, lines: &str) -> Self {
        self.config += lines;
        self.config.push('\n');
        self
    }

    /// Uses this address for the admin listener, in place of a loopback address.
    #[must_use]
    pub fn admin(mut self, address: &str) -> Self {
        address.clone_into(&mut self.admin);
        self
    }

    /// Gives Foxy the admin token that [`TOKEN`] contains. This begins the section `[access]` of the
    /// configuration, so lines that are added afterwards belong to this section.
    #[must_use]
    pub fn token(mut self) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "0123456789abcdef0123456789abcdef\n").expect("a file");
        self.token = Some(Arc::new(folder));
        self.config(&format!(
            "[access]\nadmin_token_file = \"{}\"",
            path.display()
        ))
    }

    /// Gives Foxy a disk. Without a disk, Foxy has only memory.
    #[must_use]
    pub fn disk(mut self) -> Self {
        self.disk = true;
        self
    }

    /// Adds a reverse proxy named `www` in front of the origin.
    #[must_use]
    pub fn site(mut self) -> Self {
        self.site = true;
        self
    }

    /// Uses another cache in place of the store.
    #[must_use]
    pub fn stand_in(mut self, stand_in: Arc<dyn StandIn>) -> Self {
        self.stand_in = Some(stand_in);
        self
    }

    /// Starts the scene.
    #[must_use]
    pub fn begin(self) -> Scene {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
        let origin = Origin::start(Arc::clone(&clock));
        let disk = self
            .disk
            .then(|| Arc::new(MemDisk::new(DISK_BYTES, 512, 1)));
        let mut text = "listen = \"127.0.0.1:0\"\nmemory = \"64MiB\"\nworkers = 2\n".to_owned();
        text += &format!("admin = \"{}\"\n", self.admin);
        text += &self.config;
        text += "\n[[store]]\npath = \"off\"\n";
        if self.site {
            let origin = origin.address();
            text += &format!(
                "[[site]]\nname = \"www\"\nlisten = \"127.0.0.1:0\"\norigin = \"http://{origin}\"\n"
            );
        }
        let raw: RawConfig = parse(&text, "scene").expect("valid configuration");
        let config = Config::build(&raw, &ThisMachine).expect("right configuration");
        let stand_in = self.stand_in;
        let foxy = Some(run(&config, &clock, disk.as_ref(), stand_in.clone()));
        Scene {
            origin,
            clock,
            config,
            disk,
            stand_in,
            foxy,
            _token: self.token,
        }
    }
}

/// A running scene.
#[derive(Debug)]
pub struct Scene {
    /// The origin. Its name is `origin.test`.
    pub origin: Origin,
    /// The clock that the origin and Foxy use.
    pub clock: Arc<ManualClock>,
    config: Config,
    disk: Option<Arc<MemDisk>>,
    stand_in: Option<Arc<dyn StandIn>>,
    foxy: Option<Running>,
    /// Keeps the file with the token until the scene ends.
    _token: Option<Arc<TempDir>>,
}

fn run(
    config: &Config,
    clock: &Arc<ManualClock>,
    disk: Option<&Arc<MemDisk>>,
    stand_in: Option<Arc<dyn StandIn>>,
) -> Running {
    let names = FixedNames::default()
        .with("origin.test", &[IpAddr::from([127, 0, 0, 1])])
        .with("metadata.test", &[IpAddr::from([169, 254, 169, 254])]);
    let parts = Parts {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        resolver: Some(Arc::new(names)),
        seed: 1,
        passed: foxy::Passed::default(),
        alone: false,
        strict: true,
        disks: Some(
            disk.iter()
                .map(|disk| Arc::clone(*disk) as Arc<dyn Disk>)
                .collect(),
        ),
        store_options: StoreOptions {
            segment_bytes: Some(1 << 20),
            ..StoreOptions::default()
        },
        stand_in,
    };
    start(config, parts).expect("Foxy starts")
}

impl Scene {
    /// A scene with an origin and Foxy as a forward proxy, with memory only.
    #[must_use]
    pub fn new() -> Self {
        Self::with().begin()
    }

    /// Options of a new scene.
    #[must_use]
    pub fn with() -> SceneBuilder {
        SceneBuilder {
            config: String::new(),
            admin: "127.0.0.1:0".to_owned(),
            token: None,
            disk: false,
            site: false,
            stand_in: None,
        }
    }

    /// The running Foxy.
    #[must_use]
    pub fn foxy(&self) -> &Running {
        self.foxy.as_ref().expect("Foxy runs")
    }

    /// The disk of Foxy.
    #[must_use]
    pub fn disk(&self) -> &MemDisk {
        self.disk.as_ref().expect("a scene with a disk")
    }

    /// Address of the forward proxy.
    #[must_use]
    pub fn forward(&self) -> SocketAddr {
        self.foxy().forward()[0]
    }

    /// Address of the site `www`.
    #[must_use]
    pub fn site(&self) -> SocketAddr {
        self.foxy().sites()[0].1[0]
    }

    /// Address of the admin listener.
    #[must_use]
    pub fn admin(&self) -> SocketAddr {
        self.foxy().admin().expect("an admin listener")
    }

    /// Opens a connection to the forward proxy.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::to(self.forward())
    }

    /// The URL `http://origin.test:port/path`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.origin.authority())
    }

    /// Sends a GET through the forward proxy.
    #[must_use]
    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// Sends a GET with further fields. Each field line ends with CRLF.
    #[must_use]
    pub fn get_with(&self, path: &str, fields: &str) -> Answer {
        self.ask("GET", path, fields)
    }

    /// Sends a request with any method and without a body.
    #[must_use]
    pub fn ask(&self, method: &str, path: &str, fields: &str) -> Answer {
        let (url, host) = (self.url(path), self.origin.authority());
        let mut client = self.client();
        client.send(format!(
            "{method} {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n"
        ));
        client.answer_to(method)
    }

    /// Sends a GET to any listener of Foxy. The request contains only a path, not a complete URL.
    #[must_use]
    pub fn get_at(&self, address: SocketAddr, host: &str, path: &str) -> Answer {
        let mut client = Client::to(address);
        client
            .send(format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            ))
            .answer()
    }

    /// Reads a page of the admin address. The page must exist.
    #[must_use]
    pub fn page(&self, path: &str) -> String {
        let answer = self.get_at(self.admin(), "localhost", path);
        String::from_utf8_lossy(&answer.is(200).body).into_owned()
    }

    /// Waits until the metrics contain a line with this beginning and a value other than zero.
    pub fn exports(&self, sample: &str) {
        self.until(sample, || {
            let found = |line: &str| line.starts_with(sample) && !line.ends_with(" 0");
            self.page("/metrics").lines().any(found)
        });
    }

    /// Sends these bytes as a request and returns the answer.
    #[must_use]
    pub fn send_raw(&self, bytes: &str) -> Answer {
        self.client().send(bytes).answer()
    }

    /// Moves the clock forward by this time.
    pub fn wait(&self, time: Duration) {
        self.clock.advance(time);
        self.foxy().wake_stores();
    }

    /// Moves the clock forward until everything is on disk and durable.
    pub fn settle(&self) {
        for _ in 0..8 {
            self.wait(secs(1));
            thread::sleep(Duration::from_millis(15));
        }
        self.until("everything is written", || {
            self.foxy().wake_stores();
            self.foxy().engine().stats().pending_bytes == 0
        });
    }

    /// Waits until a background event has happened.
    pub fn until(&self, what: &str, done: impl Fn() -> bool) {
        for _ in 0..6000 {
            if done() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("still waiting after a minute: {what}");
    }

    /// Ends Foxy in order, as SIGTERM would, and starts it again.
    pub fn restart(&mut self) {
        if let Some(foxy) = self.foxy.take() {
            foxy.shutdown();
        }
        self.start_again();
    }

    /// Ends Foxy as SIGKILL would, and starts it again. Data that were not written are lost.
    pub fn kill_and_start(&mut self) {
        let disk = self.disk.as_ref().map(|disk| Arc::new(disk.kill()));
        if let Some(foxy) = self.foxy.take() {
            foxy.kill();
        }
        self.disk = disk;
        self.start_again();
    }

    fn start_again(&mut self) {
        let (disk, stand_in) = (self.disk.as_ref(), self.stand_in.clone());
        self.foxy = Some(run(&self.config, &self.clock, disk, stand_in));
        // Foxy answers requests before it has loaded all segments of the store. A story needs the contents of
        // all segments, so the scene waits for them.
        let loading = || {
            self.foxy()
                .engine()
                .stats()
                .stores
                .iter()
                .any(|store| store.loading)
        };
        self.until("contents are loaded", || !loading());
    }
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}
