//! The harness of the tests: the library on one disk in memory. The tests call `Driver::turn` themselves.

use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, ManualClock, WallTime};
use foxy_disk::{Disk, Keep, MemDisk};
use foxy_hummingbird::{Config, Driver, Hummingbird};

pub(crate) struct Harness {
    pub(crate) fs: Hummingbird,
    pub(crate) driver: Driver,
    pub(crate) disk: MemDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) config: Config,
}

/// Settings for small amounts of data. The disk in these settings is not used, because tests pass the disks
/// separately.
pub(crate) fn config() -> Config {
    Config {
        memory_bytes: 4 << 20,
        cluster_bytes: 16 << 10,
        ..Config::on("", 0)
    }
}

impl Harness {
    pub(crate) fn new(bytes: u64, config: Config) -> Self {
        Self::on(MemDisk::new(bytes, 512, 7), config, 7)
    }

    pub(crate) fn on(disk: MemDisk, config: Config, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        Self::at(disk, config, seed, clock)
    }

    fn at(disk: MemDisk, config: Config, seed: u64, clock: Arc<ManualClock>) -> Self {
        let disks = [Arc::new(disk.clone()) as Arc<dyn Disk>];
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let (fs, mut drivers) = Hummingbird::on_disks(&config, &disks, time, seed).unwrap();
        Self {
            fs,
            driver: drivers.remove(0),
            disk,
            clock,
            config,
        }
    }

    /// Opens the same disk after a crash, with a clock that shows the same wall time, and loads the contents
    /// of the disk.
    pub(crate) fn crash(&self, keep: Keep<'_>) -> Self {
        let clock = Arc::new(ManualClock::new(self.clock.wall()));
        let mut again = Self::at(self.disk.crash(keep), self.config.clone(), 8, clock);
        again.settle();
        again
    }

    /// Calls `Driver::turn` and advances the clock until no work is left.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20_000 {
            self.driver.turn();
            if self.driver.is_idle() {
                return;
            }
            self.clock.advance(Duration::from_millis(20));
        }
        panic!("the daemons do not come to rest: {:?}", self.driver);
    }

    /// Packs and writes all files.
    pub(crate) fn checkpoint(&mut self) {
        let checkpoint = self.fs.begin_checkpoint();
        self.settle();
        assert!(checkpoint.is_done());
        checkpoint.wait().unwrap();
    }

    /// Packs all files, and opens the disk again. Then no contents are in memory.
    pub(crate) fn restart(&mut self) -> Self {
        self.checkpoint();
        self.crash(Keep::All)
    }

    pub(crate) fn read(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.fs.read_file(name).ok().map(|file| file.to_vec())
    }
}
