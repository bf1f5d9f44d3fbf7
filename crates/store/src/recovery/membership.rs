//! The trust in the stores of a start, and the superblocks of a store that is not trusted.

use std::sync::Arc;

use foxy_base::rule;
use foxy_disk::Disk;
use foxy_format::{LogPosition, Membership, Superblock};

use super::load::Loader;
use super::superblocks::{find_superblock, write_both, write_superblock};
use crate::fleet::{Standing, TrustedMembership};
use crate::shared::StoreShared;
use crate::{Engine, OpenError, StoreOptions};

/// Sets the position from which the store's records are live. If all records are dead, this position is also
/// written to a superblock. It is written to both superblocks if the store gets another seed.
pub(super) fn apply_standing(
    superblock: &mut Superblock,
    loader: &mut Loader,
    (standing, membership): (Standing, Membership),
    end: LogPosition,
    store: &StoreShared,
) -> std::io::Result<()> {
    match standing {
        Standing::Known | Standing::Grows => Ok(()),
        Standing::Back(floor) => {
            loader.reattach(floor);
            Ok(())
        }
        Standing::Untrusted => {
            tracing::warn!(
                store = %store.disk.describe(),
                "this store was not there while objects were replaced or purged: it begins empty"
            );
            // One write changes both fields: the superblock may record the membership of the other stores
            // only together with the floor that makes this store's contents dead.
            superblock.membership = membership;
            superblock.floor = end;
            rule!(
                "add: everything in an untrusted store is dead",
                loader.raise_floor(end),
                ()
            );
            if superblock.seed == store.space.seed() {
                superblock.generation += 1;
                return write_superblock(&*store.disk, superblock);
            }
            superblock.set_seed(store.space.seed());
            rule!(
                "seed: neither superblock records what keys were hashed with before",
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
    /// Compares all stores of a start before the first of them is opened. A store that was missing in a run
    /// of the other stores then begins empty. Without this call every store is trusted. This method changes
    /// nothing on disk.
    ///
    /// # Errors
    /// The same errors as [`Engine::open_store`] for any of the stores: a store that cannot be read may
    /// be the store with the newest membership record.
    pub fn compare_memberships(
        &self,
        disks: &[Arc<dyn Disk>],
        options: &StoreOptions,
    ) -> Result<(), OpenError> {
        let mut found = Vec::with_capacity(disks.len());
        for disk in disks {
            found.extend(find_superblock(&**disk, options)?);
        }
        let all = found.len() == disks.len();
        let trusted = TrustedMembership::find(&found, all);
        let first = found.iter().find(|found| trusted.trusts(&found.membership));
        if let Some(found) = first.or(found.first()) {
            self.context().keys.agree_on(found.seed);
        }
        self.fleet().set_trusted_membership(trusted);
        Ok(())
    }
}
