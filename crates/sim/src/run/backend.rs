//! The backend below a layout: a modelled drive with a modelled file system or a raw partition, or real
//! files.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Serialize, Serializer};

use super::{RealFiles, RunError};
use crate::{
    layout::{Area, FileArea, Layout, LayoutSpec, spec::LayoutSizes},
    levels::DiskOp,
    model::{Drive, FsConfig, Raw, Schedule, Ufs},
    report::readable,
};

/// A file system, or a partition without a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FsKind {
    /// `ufs`: the UFS of Solaris; metadata is written synchronously.
    #[default]
    Ufs,
    /// `ffs`: the textbook FFS; metadata is written synchronously.
    Ffs,
    /// `ffs-async`: FFS; metadata is written asynchronously.
    Async,
    /// `ffs-soft`: FFS with soft updates.
    Soft,
    /// `journal`: metadata is written to a log.
    Journal,
    /// `raw`: a partition without a file system.
    Raw,
}

const KINDS: [(&str, FsKind); 6] = [
    ("ufs", FsKind::Ufs),
    ("ffs", FsKind::Ffs),
    ("ffs-async", FsKind::Async),
    ("ffs-soft", FsKind::Soft),
    ("journal", FsKind::Journal),
    ("raw", FsKind::Raw),
];

impl FsKind {
    fn config(self, page_cache: u64) -> FsConfig {
        match self {
            Self::Ufs | Self::Raw => FsConfig::ufs(page_cache),
            Self::Ffs => FsConfig::ffs_sync(page_cache),
            Self::Async => FsConfig::ffs_async(page_cache),
            Self::Soft => FsConfig::ffs_soft(page_cache),
            Self::Journal => FsConfig::xfs(page_cache),
        }
    }
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            KINDS
                .iter()
                .find(|(_, kind)| kind == self)
                .map_or("", |(name, _)| name),
        )
    }
}

impl FromStr for FsKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        KINDS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, kind)| *kind)
            .ok_or_else(|| {
                format!(
                    "file system `{text}` is not known; choose {}",
                    KINDS.map(|k| k.0).join(", ")
                )
            })
    }
}

impl Serialize for FsKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The drive and its file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Backend {
    /// Name of the drive, one of [`Drive::NAMES`].
    pub drive: String,
    /// File system on the drive.
    pub fs: FsKind,
    /// Memory for file pages, bytes.
    pub page_cache: u64,
    /// Folder for real files instead of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<PathBuf>,
}

impl Default for Backend {
    /// The published platform: an ST15150WC under UFS on a machine with 384 MB of memory. The assumption is
    /// that the system and the processes leave 320 MB for file pages.
    fn default() -> Self {
        Self {
            drive: "st15150wc".into(),
            fs: FsKind::Ufs,
            page_cache: 320 << 20,
            dir: None,
        }
    }
}

/// Number of bytes written to measure the sequential bandwidth. Before the measurement, the same number of
/// bytes is written to fill the caches.
const SEQUENTIAL: u64 = 64 << 20;

impl Backend {
    fn drive(&self) -> Result<Drive, RunError> {
        Drive::named(&self.drive).ok_or_else(|| {
            RunError::Config(format!(
                "drive `{}` is not known; choose {}",
                self.drive,
                Drive::NAMES.join(", ")
            ))
        })
    }

    /// Checks that `bytes` bytes fit on the modelled drive. Real files are not checked.
    ///
    /// # Errors
    /// Returns an error if there is no drive of the configured name, or if the drive is too small.
    pub fn check_room(&self, bytes: u64) -> Result<(), RunError> {
        if self.dir.is_some() {
            return Ok(());
        }
        let room = self.drive()?.capacity();
        if bytes <= room {
            return Ok(());
        }
        let (wanted, room) = (readable(bytes), readable(room));
        let name = &self.drive;
        Err(RunError::Config(format!(
            "{wanted} of objects do not fit on drive {name}, which has {room}; make --disk smaller \
             or choose another --drive"
        )))
    }

    /// Creates a file system on the drive.
    ///
    /// # Errors
    /// Returns an error if there is no drive of the configured name.
    pub fn ufs(&self) -> Result<Ufs, RunError> {
        Ok(Ufs::new(self.drive()?, self.fs.config(self.page_cache)))
    }

    /// Creates a partition of the whole drive.
    ///
    /// # Errors
    /// Returns an error if there is no drive of the configured name.
    pub fn raw(&self) -> Result<Raw, RunError> {
        Ok(Raw::new(self.drive()?, Schedule::CLook))
    }

    /// Creates an empty layout on the backend. `coming` are the operations that the layout will get; empty if
    /// they are not known beforehand.
    ///
    /// # Errors
    /// Returns an error if there is no drive of the configured name, the folder for real files cannot be
    /// used, the space is too small, or the layout needs a file system.
    pub fn layout(
        &self,
        spec: LayoutSpec,
        sizes: LayoutSizes,
        coming: &[DiskOp],
    ) -> Result<Box<dyn Layout>, RunError> {
        if let Some(dir) = &self.dir {
            return spec
                .build(real(dir)?, sizes, coming)
                .map_err(RunError::Layout);
        }
        if self.fs != FsKind::Raw {
            return spec
                .build(self.ufs()?, sizes, coming)
                .map_err(RunError::Layout);
        }
        spec.build_raw(self.raw()?, sizes)
            .ok_or_else(|| RunError::Config(format!("layout {spec} needs a file system")))
    }

    /// Measures the bytes per second of one long sequential write in pieces of 64 KiB.
    ///
    /// # Errors
    /// Returns an error if there is no drive of the configured name, or if the file system fails.
    pub fn sequential(&self) -> Result<f64, RunError> {
        if let Some(dir) = &self.dir {
            FileArea::new(real(dir)?)
                .map_err(RunError::Layout)
                .and_then(sequential)
        } else if self.fs == FsKind::Raw {
            sequential(self.raw()?)
        } else {
            FileArea::new(self.ufs()?)
                .map_err(RunError::Layout)
                .and_then(sequential)
        }
    }
}

fn real(dir: &Path) -> Result<RealFiles, RunError> {
    RealFiles::new(dir).map_err(|source| RunError::Output {
        path: dir.to_owned(),
        source,
    })
}

fn sequential(mut area: impl Area) -> Result<f64, RunError> {
    const PIECE: u64 = 64 << 10;
    let start = area.now();
    for at in (0..SEQUENTIAL).step_by(PIECE as usize) {
        area.write(at, PIECE).map_err(RunError::Layout)?;
    }
    area.sync();
    let seconds = (area.now() - start).as_secs();
    Ok(if seconds > 0.0 {
        SEQUENTIAL as f64 / seconds
    } else {
        0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused_with_the_choices() {
        for (name, kind) in KINDS {
            assert_eq!(name.parse(), Ok(kind));
            assert_eq!(kind.to_string(), name);
        }
        assert!("ext2".parse::<FsKind>().unwrap_err().contains("journal"));
        let backend = Backend {
            drive: "floppy".into(),
            ..Backend::default()
        };
        assert!(
            backend
                .sequential()
                .unwrap_err()
                .to_string()
                .contains("st15150wc")
        );
        let raw = Backend {
            fs: FsKind::Raw,
            ..Backend::default()
        };
        let sizes = LayoutSizes::of(1 << 20);
        assert!(raw.layout(LayoutSpec::Squid, sizes, &[]).is_err());
        assert!(raw.layout(LayoutSpec::Stream, sizes, &[]).is_ok());
        assert!(raw.sequential().unwrap() > 0.0);
    }
}
