//! Checks of the machine before a start: addresses, folders, free space, limits. `foxy check` prints the
//! findings. A start makes these checks first, so that a start that fails leaves no changes on a disk.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use foxy_disk::{DiskError, ring_refusal};
use rustix::fs::{Access, access};

use super::{Parts, Passed, StartError, limits, token};
use crate::config::{Config, LogTarget, Machine, StoreConfig, human};

/// A property of this machine that does not meet the needs of the configuration.
#[derive(Debug)]
pub(crate) enum Finding {
    /// A problem that prevents the start.
    Stops(StartError),
    /// A problem that does not prevent the start. Foxy cannot do everything that the configuration requires.
    Warning(String),
}

impl Finding {
    /// True if Foxy would not start.
    pub(crate) const fn stops(&self) -> bool {
        matches!(self, Self::Stops(_))
    }

    /// True if an address is in use by another program, or by a Foxy that already runs.
    pub(crate) fn is_address_in_use(&self) -> bool {
        matches!(
            self,
            Self::Stops(StartError::Listen { source, .. }) if source.kind() == io::ErrorKind::AddrInUse
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stops(error) => error.fmt(f),
            Self::Warning(text) => f.write_str(text),
        }
    }
}

/// Checks everything that `config` needs of `machine`. The problems that prevent the start come first, then
/// the other problems. The checks change nothing.
pub(crate) fn examine(config: &Config, machine: &dyn Machine) -> Vec<Finding> {
    let mut all: Vec<_> = what_stops(config, &Passed::default())
        .into_iter()
        .map(Finding::Stops)
        .collect();
    all.extend(warnings(config, machine).into_iter().map(Finding::Warning));
    all
}

/// Returns an error for the first problem that would prevent the start. Addresses whose sockets were passed
/// are open already and are not checked. If `parts` contains disks, nothing is checked, because only tests
/// and scenarios start Foxy with given disks.
pub(super) fn refuse(config: &Config, parts: &Parts) -> Result<(), StartError> {
    if parts.disks.is_some() {
        return Ok(());
    }
    let first = what_stops(config, &parts.passed).into_iter().next();
    first.map_or(Ok(()), Err)
}

fn what_stops(config: &Config, passed: &Passed) -> Vec<StartError> {
    let mut all = stores(&config.stores);
    all.extend(addresses(config, passed));
    all.extend(admin_token(config));
    all.extend(further_tokens(config));
    all.extend(admin_socket(config));
    all.extend(access_log(&config.log.access));
    all
}

/// Checks space and permissions for the stores. If the folder of a named store is missing, this does not
/// prevent the start, because perhaps the disk of the store is not mounted.
fn stores(stores: &[StoreConfig]) -> Vec<StartError> {
    let mut all = Vec::new();
    // The stores on one file system share its space.
    let mut promised: BTreeMap<u64, u64> = BTreeMap::new();
    for store in stores {
        match std::fs::metadata(&store.path) {
            Ok(there) if !is_empty_file(&there) => all.extend(existing(&store.path, &there)),
            _ => all.extend(new(store, &mut promised)),
        }
    }
    all
}

fn is_empty_file(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.len() == 0
}

fn existing(path: &Path, metadata: &Metadata) -> Option<StartError> {
    let usable = metadata.is_file() || metadata.file_type().is_block_device();
    let denied = usable && access(path, Access::READ_OK | Access::WRITE_OK).is_err();
    // If the path is neither a file nor a block device, this is reported when the path is opened. Nothing is
    // created before this report.
    denied.then(|| {
        DiskError::Permission {
            path: path.to_owned(),
        }
        .into()
    })
}

fn new(store: &StoreConfig, promised: &mut BTreeMap<u64, u64>) -> Option<StartError> {
    let folder = folder_of(&store.path);
    // A missing folder means that a disk is not mounted. A file in its place is reported when the store is
    // opened. Nothing is created before this report.
    if store.named && !folder.is_dir() {
        return None;
    }
    let folder = folder.ancestors().find(|folder| folder.exists())?;
    if access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Some(
            DiskError::Permission {
                path: folder.to_owned(),
            }
            .into(),
        );
    }
    let system = std::fs::metadata(folder).ok()?.dev();
    let stat = rustix::fs::statvfs(folder).ok()?;
    let taken = promised.entry(system).or_default();
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let available = free.saturating_sub(*taken);
    *taken += store.size;
    (available < store.size).then(|| {
        DiskError::NoSpace {
            path: store.path.clone(),
            wanted: store.size,
            available,
        }
        .into()
    })
}

/// Returns the folder of a file, or the current folder if the path is only a name.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."))
}

fn addresses(config: &Config, passed: &Passed) -> Vec<StartError> {
    let forward = config
        .listen
        .iter()
        .map(|address| (*address, "forward proxy".to_owned()));
    let sites = config.shared_listeners().into_iter().map(|listener| {
        let names: Vec<_> = listener.sites.iter().map(|site| &site.name[..]).collect();
        (listener.address, names.join(", "))
    });
    let admin = config.admin.map(|address| (address, "admin".to_owned()));
    let open: Vec<(SocketAddr, String)> = forward
        .chain(sites)
        .chain(admin)
        .filter(|(address, _)| !passed.has(*address))
        .collect();
    let refused = |(address, user): (SocketAddr, String)| {
        let source = foxy_proxy::can_bind(address).err()?;
        Some(StartError::listen(address, &user, source))
    };
    open.into_iter().filter_map(refused).collect()
}

/// Returns an error if the token is needed, and its file exists but cannot be read. A missing file will be
/// created.
fn admin_token(config: &Config) -> Option<StartError> {
    let file = &config.admin_token;
    let needed = file.given || config.admin.is_some_and(|a| !a.ip().is_loopback());
    let source = File::open(&file.path).err().filter(|_| needed)?;
    (source.kind() != io::ErrorKind::NotFound).then(|| StartError::Token {
        path: file.path.display().to_string(),
        source,
    })
}

/// Returns errors for further tokens, whose files must exist.
fn further_tokens(config: &Config) -> Vec<StartError> {
    let rights = &config.admin_rights;
    let all = [
        ("admin_purge_token_file", &rights.purge_token),
        ("admin_read_token_file", &rights.read_token),
    ];
    let refused = |(setting, path): (&'static str, &Option<PathBuf>)| {
        let path = path.as_ref()?;
        let source = token::read(path).err()?;
        Some(StartError::FurtherToken {
            path: path.display().to_string(),
            setting,
            source,
        })
    };
    all.into_iter().filter_map(refused).collect()
}

/// Returns an error if the folder of the admin socket cannot be written or is missing. Foxy does not create
/// it.
fn admin_socket(config: &Config) -> Option<StartError> {
    let path = &config.admin_socket.as_ref()?.path;
    let source = access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(StartError::AdminSocket {
        path: path.display().to_string(),
        source: source.into(),
    })
}

fn access_log(target: &LogTarget) -> Option<StartError> {
    let LogTarget::File(path) = target else {
        return None;
    };
    let refused = match OpenOptions::new().append(true).open(path) {
        Ok(_) => return None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)
                .err()
                .map(Into::into)
        }
        Err(error) => Some(error),
    };
    refused.map(|source| StartError::AccessLog {
        target: path.display().to_string(),
        source,
    })
}

fn warnings(config: &Config, machine: &dyn Machine) -> Vec<String> {
    let mut all = Vec::new();
    for store in &config.stores {
        let path = &store.path;
        if store.named && !path.exists() && !folder_of(path).exists() {
            let missing = DiskError::NoFolder { path: path.clone() };
            all.push(format!("store {missing}; Foxy serves without it"));
        }
    }
    let total = machine.memory();
    if config.memory > total / 10 * 9 {
        let (memory, total) = (human(config.memory), human(total));
        all.push(format!(
            "memory: {memory} are more than nine tenths of the {total} there are; choose less"
        ));
    }
    all.extend(limits::few_open_files());
    if let Some(reason) = ring_refusal().filter(|_| !config.stores.is_empty()) {
        all.push(format!(
            "io_uring is not available ({reason}): threads do the reads and writes, with more CPU time for each"
        ));
    }
    let state = config.state_folder.ancestors().find(|path| path.exists());
    if state.is_some_and(|folder| access(folder, Access::WRITE_OK).is_err()) {
        all.push(format!(
            "state folder {}: it cannot be written: if a store is missing at a start, purges are answered as not durable; set STATE_DIRECTORY",
            config.state_folder.display()
        ));
    }
    all
}

#[cfg(test)]
mod tests;
