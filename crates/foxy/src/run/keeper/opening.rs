//! Opens the stores when Foxy starts. Stores whose disks fail are left out, and Foxy runs without them.

use std::path::Path;
use std::sync::Arc;

use foxy_disk::Disk;

use super::StoreKeeper;
use crate::config::{Config, StoreConfig};
use crate::run::StartError;
use crate::run::roster::Roster;
use crate::run::stores::open_disk;

/// A store of the configuration that could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Absent {
    /// The path of the store.
    pub path: String,
    /// The reason why it cannot be opened.
    pub reason: String,
}

/// A disk, and the identity (UUID) of the store on it; `None` if there is no store on it.
type DiskAndIdentity = (Arc<dyn Disk>, Option<[u8; 16]>);

impl StoreKeeper {
    /// Opens the stores when Foxy starts, on the given disks or as configured.
    pub(in crate::run) fn open_all(
        &self,
        given: Option<Vec<Arc<dyn Disk>>>,
        config: &Config,
        strict: bool,
    ) -> Result<(), StartError> {
        match given {
            Some(disks) => self.open_given(disks, &config.stores),
            None => self.open_configured(&config.stores, &config.state_folder, strict),
        }
    }

    /// Opens the stores on these disks when Foxy starts. The first disk has the settings of the first
    /// configured store, and so on. Further disks have default settings. Each store notes on its disk which
    /// stores are open together. All stores are opened before the first store writes this note. Otherwise a
    /// start could fail after some notes were written. The stores that these notes do not contain would then
    /// lose their contents at the next start.
    fn open_given(
        &self,
        disks: Vec<Arc<dyn Disk>>,
        configs: &[StoreConfig],
    ) -> Result<(), StartError> {
        let numbered = disks.into_iter().enumerate();
        let found = numbered.map(|(n, disk)| (disk, configs.get(n))).collect();
        self.open_together(found, true)
    }

    /// Opens the configured stores. Stores whose disks fail are left out, unless `strict` is true. The list
    /// of the last run is in the folder `state`. If it can be read, stores that are not on it are out of date
    /// and begin empty.
    fn open_configured(
        &self,
        configs: &[StoreConfig],
        state: &Path,
        strict: bool,
    ) -> Result<(), StartError> {
        let mut found: Vec<(Arc<dyn Disk>, Option<&StoreConfig>)> = Vec::new();
        let mut identities = Vec::new();
        for config in configs {
            match self.open_one(config) {
                Ok((disk, identity)) => {
                    identities.extend(identity);
                    found.push((disk, Some(config)));
                }
                Err(error) => self.go_without(config, error, strict)?,
            }
        }
        let roster = Roster::read(state, configs);
        self.engine
            .fleet()
            .begin_empty(roster.strangers(&identities));
        let missing = roster.missing(&identities);
        if missing > 0 {
            tracing::warn!(
                missing,
                "stores of the last run are not here: is a disk not mounted? They begin empty when they are back"
            );
        }
        self.open_together(found, strict)?;
        let alone = self.kept.lock().is_empty() && !self.absent.lock().is_empty();
        *self.roster.lock() = Some(roster);
        if !self.write_roster(None) && alone {
            tracing::error!(
                folder = %state.display(),
                "a store is missing and nothing can note that: purges are answered as not durable"
            );
            self.engine.fleet().lose_purges();
        }
        Ok(())
    }

    /// Opens the disk of a store, and reads the identity of the store on it.
    fn open_one(&self, config: &StoreConfig) -> Result<DiskAndIdentity, StartError> {
        let disk = open_disk(config)?;
        let identity = foxy_store::identity(&*disk, &self.options)?;
        Ok((disk, identity))
    }

    fn open_together(
        &self,
        mut found: Vec<(Arc<dyn Disk>, Option<&StoreConfig>)>,
        strict: bool,
    ) -> Result<(), StartError> {
        let disks: Vec<_> = found.iter().map(|(disk, _)| Arc::clone(disk)).collect();
        self.engine.compare_memberships(&disks, &self.options)?;
        let mut writers = Vec::new();
        let mut kept = Vec::new();
        for (disk, config) in found.drain(..) {
            match (self.open(disk, config), config) {
                (Ok(writer), _) => {
                    writers.push(writer);
                    kept.push(config);
                }
                (Err(error), Some(config)) => self.go_without(config, error.into(), strict)?,
                (Err(error), None) => return Err(error.into()),
            }
        }
        self.engine.join(&mut writers)?;
        for (writer, config) in writers.into_iter().zip(kept) {
            self.keep(writer, config)?;
        }
        Ok(())
    }

    /// Leaves out a store whose disk fails, and logs this.
    fn go_without(
        &self,
        config: &StoreConfig,
        error: StartError,
        strict: bool,
    ) -> Result<(), StartError> {
        if strict || !error.is_of_a_disk() {
            return Err(error);
        }
        let path = config.path.display().to_string();
        tracing::error!(path, %error, "serving without this store; --strict refuses to start instead");
        self.absent.lock().push(Absent {
            path,
            reason: error.to_string(),
        });
        Ok(())
    }

    /// Returns the stores of the configuration that could not be opened.
    pub(crate) fn absent(&self) -> Vec<Absent> {
        self.absent.lock().clone()
    }
}
