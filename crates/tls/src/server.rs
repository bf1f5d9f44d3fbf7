//! TLS from clients: the certificates of a listener, which are renewed when their files change.

use std::collections::HashMap;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::ProducesTickets;

use crate::table::{Pair, Served, Stamp, Table};
use crate::{ClientOptions, TlsError};

/// Settings for the certificates of one or more sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// PEM files of one certificate and of its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A folder with more certificates: `NAME.crt` or `NAME.pem` with `NAME.key`, and folders that contain
    /// `tls.crt` with `tls.key` or `fullchain.pem` with `privkey.pem`.
    pub folder: Option<PathBuf>,
    /// The name whose certificate is used for clients that request no name, or a name without a certificate.
    /// `None` means that these clients are refused.
    pub default: Option<String>,
    /// Settings for the certificates that clients are asked to present. `None` means that clients are not
    /// asked.
    pub clients: Option<ClientOptions>,
}

/// Certificates that were read and can be used. Copies share them.
#[derive(Clone)]
pub struct ServerTls(Arc<Inner>);

struct Inner {
    /// A number that no other set of certificates has.
    set: u64,
    options: ServerOptions,
    table: RwLock<Arc<Table>>,
    tickets: Arc<dyn ProducesTickets>,
    /// Pairs of certificate and key that could not be used at the last check. They are kept so that each
    /// problem is reported only once.
    bad: Mutex<HashMap<Pair, Option<Stamp>>>,
    /// The problem of the last check that concerned all certificates. It is kept for the same reason.
    problem: Mutex<Option<String>>,
}

/// The result of a check of the files.
#[derive(Debug, Default)]
pub struct Renewed {
    /// Certificates that are new or have changed.
    pub changed: Vec<Arc<Served>>,
    /// Descriptions of new problems. If a pair cannot be used, its earlier certificate remains in use. If the
    /// folder cannot be read, or if the default certificate is gone, all earlier certificates remain in use.
    pub problems: Vec<String>,
}

impl ServerTls {
    /// Reads all certificates.
    ///
    /// # Errors
    /// Returns an error if a pair cannot be used, if there is no certificate at all, or if there is no
    /// certificate for the default name.
    pub fn new(options: ServerOptions) -> Result<Self, TlsError> {
        let failed = |error: rustls::Error| TlsError::Settings(error.to_string());
        let tickets = Ticketer::new().map_err(failed)?;
        static SETS: AtomicU64 = AtomicU64::new(0);
        let set = SETS.fetch_add(1, Ordering::Relaxed);
        let pairs = pairs(&options)?;
        let served: Result<Vec<_>, _> = pairs
            .iter()
            .map(|pair| Served::load(pair, set, &tickets).map(Arc::new))
            .collect();
        let table = Table::new(served?, options.default.as_deref());
        if table.served.is_empty() {
            return Err(nothing(&options));
        }
        if let (Some(name), false) = (&options.default, table.has_default()) {
            let text = format!("no certificate is for the default name `{name}`");
            return Err(TlsError::Settings(text));
        }
        Ok(Self(Arc::new(Inner {
            set,
            table: RwLock::new(Arc::new(table)),
            tickets,
            bad: Mutex::default(),
            problem: Mutex::default(),
            options,
        })))
    }

    /// Checks the files again and loads changed certificates. `now` is in seconds since 1970. Open
    /// connections keep their certificate.
    pub fn renew(&self, now: i64) -> Renewed {
        let mut renewed = Renewed::default();
        let problem = self.check(now, &mut renewed).err();
        let mut last = self.0.problem.lock();
        if *last != problem {
            renewed.problems.extend(problem.clone());
            *last = problem;
        }
        renewed
    }

    /// Does the work of [`renew`](Self::renew). Returns an error if a problem concerns all certificates.
    fn check(&self, now: i64, renewed: &mut Renewed) -> Result<(), String> {
        let pairs = pairs(&self.0.options).map_err(|error| error.to_string())?;
        self.0.bad.lock().retain(|pair, _| pairs.contains(pair));
        let old = Arc::clone(&self.0.table.read());
        let known = |pair: &Pair| old.served.iter().find(|served| served.pair == *pair);
        let served: Vec<_> = pairs
            .iter()
            .filter_map(|pair| self.look(pair, known(pair), now, renewed))
            .collect();
        let gone = served.len() != old.served.len();
        if served.is_empty() || (renewed.changed.is_empty() && !gone) {
            return Ok(());
        }
        let table = Table::new(served, self.0.options.default.as_deref());
        if old.has_default() && !table.has_default() {
            renewed.changed.clear();
            let text = "the default certificate is gone; the certificates stay as they were";
            return Err(text.to_owned());
        }
        *self.0.table.write() = Arc::new(table);
        Ok(())
    }

    /// Loads the pair again if its files have changed. Returns `old` if the new files cannot be used.
    fn look(
        &self,
        pair: &Pair,
        old: Option<&Arc<Served>>,
        now: i64,
        renewed: &mut Renewed,
    ) -> Option<Arc<Served>> {
        let stamp = pair.stamp().ok();
        if let Some(old) = old.filter(|old| Some(old.stamp) == stamp) {
            self.0.bad.lock().remove(pair);
            return Some(Arc::clone(old));
        }
        let new =
            Served::load(pair, self.0.set, &self.0.tickets).map_err(|error| error.to_string());
        let new = new.and_then(|new| match old {
            Some(old) if is_expired(&new, now) && !is_expired(old, now) => {
                Err(format!("{}: it has expired", pair.certificate.display()))
            }
            _ => Ok(Arc::new(new)),
        });
        match new {
            Ok(new) => {
                self.0.bad.lock().remove(pair);
                renewed.changed.push(Arc::clone(&new));
                Some(new)
            }
            Err(problem) => {
                if self.0.bad.lock().insert(pair.clone(), stamp) != Some(stamp) {
                    renewed.problems.push(problem);
                }
                old.cloned()
            }
        }
    }

    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.0.table.read())
    }

    /// Returns true if the certificate belongs or belonged to this set.
    #[must_use]
    pub fn has(&self, served: &Served) -> bool {
        self.0.set == served.set
    }

    /// Returns the settings for the certificates of clients.
    #[must_use]
    pub fn clients(&self) -> Option<&ClientOptions> {
        self.0.options.clients.as_ref()
    }

    /// Returns true if clients that request no name get a certificate.
    #[must_use]
    pub fn has_default(&self) -> bool {
        self.table().has_default()
    }

    /// Returns the certificates in use now.
    #[must_use]
    pub fn served(&self) -> Vec<Arc<Served>> {
        self.0.table.read().served.clone()
    }

    /// Returns warnings about the files, as texts: keys that everybody can read, and expired certificates.
    /// `now` is in seconds since 1970.
    #[must_use]
    pub fn warnings(&self, now: i64) -> Vec<String> {
        let served = self.served();
        let mut warnings = Vec::new();
        for served in &served {
            let key = &served.pair.key;
            let mode = std::fs::metadata(key).map_or(0, |file| file.permissions().mode());
            if mode & 0o006 != 0 {
                let path = key.display();
                warnings.push(format!(
                    "{path}: every user of this machine can read or change this key; chmod o= {path}"
                ));
            }
            if is_expired(served, now) {
                let path = served.path().display();
                warnings.push(format!("{path}: the certificate has expired; renew it"));
            }
        }
        warnings
    }
}

fn is_expired(served: &Served, now: i64) -> bool {
    served.certificate().not_after < now
}

fn nothing(options: &ServerOptions) -> TlsError {
    match &options.folder {
        Some(folder) => TlsError::content(
            folder,
            "there are no certificates in it; name them NAME.crt and NAME.key",
        ),
        None => TlsError::Settings("name a certificate and its key".to_owned()),
    }
}

/// Returns the pairs of certificate and key that the options name, in a fixed order.
fn pairs(options: &ServerOptions) -> Result<Vec<Pair>, TlsError> {
    let mut pairs = Vec::new();
    if let Some((certificate, key)) = &options.certificate {
        pairs.push(Pair {
            certificate: certificate.clone(),
            key: key.clone(),
            clients: options.clients.clone(),
        });
    }
    if let Some(folder) = &options.folder {
        let fail = |source| TlsError::Read {
            path: folder.clone(),
            source,
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(fail)? {
            paths.push(entry.map_err(fail)?.path());
        }
        paths.sort();
        pairs.extend(
            paths
                .iter()
                .filter_map(|path| pair_at(path, &options.clients)),
        );
    }
    Ok(pairs)
}

/// Returns the pair to which an entry of a folder belongs.
fn pair_at(path: &Path, clients: &Option<ClientOptions>) -> Option<Pair> {
    let pair = |certificate: PathBuf, key: PathBuf| {
        (certificate.is_file() && key.is_file()).then_some(Pair {
            certificate,
            key,
            clients: clients.clone(),
        })
    };
    if path.is_dir() {
        let inside = |certificate, key| pair(path.join(certificate), path.join(key));
        return inside("tls.crt", "tls.key").or_else(|| inside("fullchain.pem", "privkey.pem"));
    }
    match path.extension()?.to_str()? {
        "crt" | "pem" => pair(path.to_owned(), path.with_extension("key")),
        _ => None,
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerTls").field(&self.0.options).finish()
    }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ServerTls {}
