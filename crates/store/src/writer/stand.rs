//! A store without an engine, for tests of the writer's parts.

use std::sync::Arc;

use foxy_base::{KeyHash, KeySeed, MonoTime};
use foxy_disk::{Disk, MemDisk};
use foxy_format::{Geometry, LogPosition, Membership, StoreUuid, Superblock};

use super::io::{Done, Io};
use crate::shared::{Item, StoreShared};
use crate::{StoreId, StoreOptions};

pub(super) const NOW: MonoTime = MonoTime(1 << 40);

/// A disk in memory, the shared state of a store on it, and the queue of the store's writer.
pub(super) struct Stand {
    pub(super) disk: MemDisk,
    pub(super) store: Arc<StoreShared>,
    pub(super) superblock: Superblock,
    pub(super) io: Io,
}

impl Stand {
    pub(super) fn new() -> Self {
        let disk = MemDisk::new(2 << 20, 512, 1);
        let superblock = Superblock {
            extensions: 0,
            generation: 1,
            uuid: StoreUuid([1; 16]),
            geometry: Geometry::fit(2 << 20, 64 << 10, 16 << 10, 512).unwrap(),
            floor: LogPosition(0),
            membership: Membership::default(),
            quarantine: Vec::new(),
            seed: KeySeed::default(),
        };
        let (shared, options) = (Arc::new(disk.clone()), StoreOptions::default());
        let store = StoreShared::new(StoreId(0), 0, &superblock, shared, 1, &options, 1 << 20);
        let store = Arc::new(store);
        let queue = disk.open_queue(8).unwrap();
        Self {
            io: Io::new(store.clone(), queue, NOW),
            disk,
            store,
            superblock,
        }
    }

    /// Carries out all operations that were requested from the disk.
    pub(super) fn run(&mut self) -> Vec<Done> {
        let mut done = Vec::new();
        self.io.submit(NOW);
        while self.io.in_flight() > 0 {
            done.extend(self.io.reap());
            self.io.submit(NOW);
        }
        done
    }
}

/// Makes an item of `bytes` bytes.
pub(super) const fn item(bytes: u32) -> Item {
    Item {
        hash: KeyHash(bytes as u128),
        ticket: 1,
        group: 0,
        bytes,
    }
}
