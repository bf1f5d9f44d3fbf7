//! Stores that come and go while the engine runs.
//!
//! **Leaving.** The store gets nothing new, waiting objects are written, and the open segment is
//! sealed. From then on the engine remembers what is removed ([`crate::away`]). The store writes to
//! its disk that its contents do not count, and leaves the list; its entries leave the index.
//!
//! **Coming back.** A store that left this engine in order, and was not opened by anybody since,
//! keeps its contents except what was removed meanwhile. The missed removals are made void in its own
//! log; only when they are durable does the store write that its contents count. Any other store with
//! contents begins empty if it comes after something has changed. So does a store that was missing in
//! a run of the others ([`crate::company`]).

use std::sync::Arc;

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::{Company, LogPosition, Superblock};

use crate::company::Circle;
use crate::fleet::Fleet;
use crate::recovery::{Loader, find_superblock, write_both, write_superblock};
use crate::shared::StoreShared;
use crate::{Engine, OpenError, StoreOptions};

/// The trust in a store's contents when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All that its log says.
    Known,
    /// The records of its log from this floor on, except those removed while it was away.
    Back(LogPosition),
    /// It grows: the engine has everything in hand.
    Grows,
    /// Nothing: nobody knows what was removed or replaced without it.
    Stranger,
}

/// Sets from where on the store's log counts, on the disk as well if nothing of it does.
pub(crate) fn believe(
    superblock: &mut Superblock,
    loader: &mut Loader,
    (standing, company): (Standing, Company),
    end: LogPosition,
    store: &StoreShared,
) -> std::io::Result<()> {
    match standing {
        Standing::Known | Standing::Grows => Ok(()),
        Standing::Back(floor) => {
            loader.come_back(floor);
            Ok(())
        }
        Standing::Stranger => {
            tracing::warn!(
                store = %store.disk.describe(),
                "this store was not there while objects were replaced or purged: it begins empty"
            );
            // In one write: the store names the others' company only together with the floor that
            // voids its contents.
            superblock.company = company;
            superblock.floor = end;
            rule!(
                "add: nothing counts that a stranger holds",
                loader.raise_floor(end),
                ()
            );
            if superblock.seed == store.space.seed() {
                superblock.generation += 1;
                return write_superblock(&*store.disk, superblock);
            }
            superblock.set_seed(store.space.seed());
            rule!(
                "seed: neither superblock says what keys were hashed with before",
                write_both(&*store.disk, superblock),
                {
                    superblock.generation += 1;
                    write_superblock(&*store.disk, superblock)
                }
            )
        }
    }
}

impl Engine {
    /// Looks at all stores of a start before the first is opened: a store that was missing in a run
    /// of the others begins empty. Without this call every store is believed. Changes nothing on
    /// disk.
    ///
    /// # Errors
    /// As [`Engine::open_store`] for one of them: the store that cannot be read may know the most.
    pub fn meet(&self, disks: &[Arc<dyn Disk>], options: &StoreOptions) -> Result<(), OpenError> {
        let mut found = Vec::with_capacity(disks.len());
        for disk in disks {
            found.extend(find_superblock(&**disk, options)?);
        }
        let all = found.len() == disks.len();
        let circle = Circle::meet(&found, all);
        let believed = found.iter().find(|found| circle.believes(&found.company));
        if let Some(found) = believed.or(found.first()) {
            self.ground().keys.agree_on(found.seed);
        }
        self.fleet().meet(circle);
        Ok(())
    }
}

impl Fleet {
    /// Returns the trust in the contents of a store that is found with this superblock, by an engine in
    /// which something `has_changed` since it was made.
    pub(crate) fn standing(&self, superblock: &Superblock, has_changed: bool) -> Standing {
        if let Some(floor) = self.away().floor_of(superblock.uuid, superblock.generation) {
            return Standing::Back(floor);
        }
        self.away().take(superblock.uuid);
        if rule!(
            "start: a store that is not in the list of the last run begins empty",
            self.trust().take(superblock.uuid),
            false
        ) {
            return Standing::Stranger;
        }
        let believed = self.believes(&superblock.company);
        let changed = rule!(
            "add: a store with contents that comes while something was missed begins empty",
            has_changed,
            false
        );
        match believed && !changed {
            true => Standing::Known,
            false => Standing::Stranger,
        }
    }
}
