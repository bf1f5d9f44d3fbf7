//! Names of cache systems, and the construction of a system with a given memory, disk and drive.

use std::{fmt, path::PathBuf, str::FromStr};

use serde::{Serialize, Serializer};

use super::{
    CacheSystem, HummingbirdConfig, Pace, Replay, Squid, SquidConfig, SystemResult, Ucfs,
    UcfsConfig, WgHummingbird,
    hummingbird::{Placement, WgConfig},
    run_system,
};
use crate::{
    model::{Drive, Raw, Schedule},
    run::{Backend, FsKind, Partition, RequestStream, RunError, Workload},
};

/// Kind of system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemSpec {
    /// Squid 2.2 on a file system.
    Squid,
    /// Squid with mapped files for small objects.
    SquidM,
    /// Squid with a directory for each server.
    SquidL,
    /// Squid with both mapped files and a directory for each server.
    SquidMl,
    /// `SquidMl` with mapped objects that are aligned to pages.
    SquidMla,
    /// UCFS on a partition.
    Ucfs,
    /// Hummingbird on a partition.
    Hummingbird,
    /// The production store on a partition.
    Foxy,
}

const SPECS: [(&str, SystemSpec); 8] = [
    ("squid", SystemSpec::Squid),
    ("squidm", SystemSpec::SquidM),
    ("squidl", SystemSpec::SquidL),
    ("squidml", SystemSpec::SquidMl),
    ("squidmla", SystemSpec::SquidMla),
    ("ucfs", SystemSpec::Ucfs),
    ("hummingbird", SystemSpec::Hummingbird),
    ("foxy", SystemSpec::Foxy),
];

impl SystemSpec {
    /// Every system.
    pub const ALL: [Self; 8] = [
        Self::Squid,
        Self::SquidM,
        Self::SquidL,
        Self::SquidMl,
        Self::SquidMla,
        Self::Ucfs,
        Self::Hummingbird,
        Self::Foxy,
    ];

    /// True if the system works directly on a partition, without a file system.
    #[must_use]
    pub const fn owns_partition(self) -> bool {
        matches!(self, Self::Ucfs | Self::Hummingbird)
    }

    /// True for Squid and its variants, which keep objects in files.
    #[must_use]
    pub const fn keeps_files(self) -> bool {
        !matches!(self, Self::Ucfs | Self::Hummingbird | Self::Foxy)
    }
}

impl fmt::Display for SystemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = SPECS.iter().find(|(_, spec)| spec == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for SystemSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = SPECS.iter().find(|(name, _)| *name == text);
        found.map(|(_, spec)| *spec).ok_or_else(|| {
            let names = SPECS.map(|s| s.0).join(", ");
            format!("system `{text}` is not known; choose {names}")
        })
    }
}

impl Serialize for SystemSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All parameters of a run of a cache system.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemConfig {
    /// The system.
    pub spec: SystemSpec,
    /// Source of the requests.
    pub workload: Workload,
    /// Seed of generated requests.
    pub seed: u64,
    /// Objects larger than this are left out of the stream; 0: no limit.
    pub largest: u64,
    /// Bytes of memory for contents. Squid and its file system share this memory. For Foxy this memory also
    /// includes the tables.
    pub ram: u64,
    /// Part of `ram` in which Squid keeps objects. The page cache of its file system has the rest.
    pub cache_mem: u64,
    /// Bytes of disk.
    pub disk: u64,
    /// Name of the drive, one of [`Drive::NAMES`].
    pub drive: String,
    /// A partition, loop device or file of this machine that is used instead of the modelled drive (only for
    /// UCFS and Hummingbird). The contents of the device or file are overwritten, so a device or file whose
    /// first MiB contains foreign data is refused.
    pub device: Option<PathBuf>,
    /// File system for Squid and its variants.
    pub fs: FsKind,
    /// Pace of the stream.
    pub replay: Replay,
    /// Bytes of a cluster of UCFS and Hummingbird.
    pub cluster: u64,
    /// Lifetime of Hummingbird's clusters, in minutes of simulated time; 0: no limit.
    pub life_minutes: f64,
    /// Placement of Hummingbird's clusters.
    pub placement: Placement,
    /// Share of the disk that is used for mapped files.
    pub mapped: f64,
    /// The parameters of UCFS. Many of the published values are lost.
    pub ucfs: UcfsConfig,
}

impl SystemConfig {
    /// Hummingbird's published conditions: the ISP stream with objects of at most 64 KB, 256 MB of memory,
    /// and 9 GB of the drive ST118202FC. Squid uses 50 MB of the memory for objects. There are no pauses
    /// between requests. Clusters have a lifetime of 60 minutes.
    #[must_use]
    pub fn hummingbird(spec: SystemSpec) -> Self {
        Self {
            spec,
            workload: Workload::Made(crate::run::Made::Isp, 4_809_895),
            seed: 1,
            largest: 64 << 10,
            ram: 256 << 20,
            cache_mem: 50 << 20,
            disk: 9 << 30,
            drive: "st118202fc".into(),
            device: None,
            fs: FsKind::Journal,
            replay: Replay::default(),
            cluster: 64 << 10,
            life_minutes: 60.0,
            placement: Placement::Closest,
            mapped: 0.35,
            ucfs: UcfsConfig::new(256 << 20),
        }
    }

    /// Finds mistakes in the parameters that can be found without a run.
    ///
    /// # Errors
    /// Returns a sentence that names the impossible parameter.
    pub fn check(&self) -> Result<(), RunError> {
        let bad = |text: String| Err(RunError::Config(text));
        let drive = self.open_drive()?;
        if self.disk < 16 << 20 {
            return bad("a cache system needs at least 16 MiB of disk".into());
        }
        if !(4 << 10..=16 << 20).contains(&self.cluster) {
            return bad("a cluster has from 4 KiB to 16 MiB".into());
        }
        if self.ram < 16 * self.cluster || self.ram < 1 << 20 {
            return bad("memory must hold 16 clusters and 1 MiB at least".into());
        }
        if self.device.is_some() && !self.spec.owns_partition() {
            return bad(format!(
                "--device is for ucfs and hummingbird, not for {}",
                self.spec
            ));
        }
        if self.device.is_none() && self.disk > drive.capacity() {
            let name = &self.drive;
            return bad(format!("{name} has {} bytes only", drive.capacity()));
        }
        if self.spec.keeps_files() && self.fs == FsKind::Raw {
            return bad(format!("{} needs a file system, not raw", self.spec));
        }
        if !(0.0..1e9).contains(&self.life_minutes) {
            return bad("a lifetime is a number of minutes from 0 on".into());
        }
        Ok(())
    }

    fn open_drive(&self) -> Result<Drive, RunError> {
        Drive::named(&self.drive).ok_or_else(|| {
            let names = Drive::NAMES.join(", ");
            RunError::Config(format!(
                "drive `{}` is not known; choose {names}",
                self.drive
            ))
        })
    }

    /// Creates the partition for a system without a file system. Its size is the size of the system's disk
    /// plus `reserved` bytes for tables.
    fn raw(&self, reserved: u64) -> Result<Raw, RunError> {
        let bytes = self.disk + reserved;
        if let Some(device) = &self.device {
            let partition = Partition::open(device, bytes).map_err(RunError::Config)?;
            return Ok(Raw::on(partition, bytes));
        }
        let drive = self.open_drive()?;
        Ok(Raw::partition(drive, Schedule::CLook, 0, bytes))
    }

    /// Squid's parameters.
    #[must_use]
    pub fn squid(&self) -> SquidConfig {
        use SystemSpec::{SquidL, SquidM, SquidMl, SquidMla};
        SquidConfig {
            cache_mem: self.cache_mem.min(self.ram),
            by_server: matches!(self.spec, SquidL | SquidMl | SquidMla),
            mapped: if matches!(self.spec, SquidM | SquidMl | SquidMla) {
                self.mapped
            } else {
                0.0
            },
            aligned: self.spec == SquidMla,
            ..SquidConfig::published(self.disk)
        }
    }

    /// Hummingbird's parameters.
    #[must_use]
    pub fn library(&self) -> HummingbirdConfig {
        HummingbirdConfig {
            cluster: self.cluster,
            placement: self.placement,
            cluster_life: (self.life_minutes > 0.0)
                .then(|| crate::model::SimTime::from_secs(60.0 * self.life_minutes)),
            ..HummingbirdConfig::published(self.ram, self.life_minutes)
        }
    }

    /// UCFS' parameters.
    #[must_use]
    pub const fn ucfs(&self) -> UcfsConfig {
        UcfsConfig {
            memory: self.ram,
            cluster: self.cluster,
            ..self.ucfs
        }
    }

    /// Creates an empty system.
    ///
    /// # Errors
    /// Returns an error if a parameter is impossible.
    pub fn build(&self) -> Result<Box<dyn CacheSystem>, RunError> {
        self.check()?;
        Ok(match self.spec {
            SystemSpec::Ucfs => {
                let config = self.ucfs();
                let raw = self.raw(config.reserved + config.memory)?;
                Box::new(Ucfs::new(raw, config))
            }
            SystemSpec::Hummingbird => {
                let config = self.library();
                let raw = self.raw(config.logs.reserved)?;
                Box::new(WgHummingbird::new(raw, config, WgConfig::default()))
            }
            SystemSpec::Foxy => self.store()?,
            _ => self.build_squid()?,
        })
    }

    fn build_squid(&self) -> Result<Box<dyn CacheSystem>, RunError> {
        let config = self.squid();
        let backend = Backend {
            drive: self.drive.clone(),
            fs: self.fs,
            page_cache: self.ram - config.cache_mem,
            ..Backend::default()
        };
        let squid = Squid::new(backend.ufs()?, config)
            .map_err(|e| RunError::Layout(crate::layout::LayoutError::Fs(e)))?;
        Ok(Box::new(squid))
    }

    fn store(&self) -> Result<Box<dyn CacheSystem>, RunError> {
        let drive = self.open_drive()?;
        let store = super::store::Store::new(drive, self.ram, self.disk, self.seed);
        Ok(Box::new(store.map_err(RunError::Config)?))
    }

    /// The stream without requests for objects that are too large.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn requests(&self) -> Result<RequestStream, RunError> {
        let all = self.workload.open(self.seed)?;
        let largest = self.largest;
        if largest == 0 {
            return Ok(all);
        }
        Ok(Box::new(all.filter(move |r| {
            r.as_ref().map_or(true, |r| r.size <= largest)
        })))
    }

    /// Runs the stream through the system.
    ///
    /// # Errors
    /// Returns an error if a parameter is impossible, the log cannot be read, or the drive fails.
    pub fn run(&self) -> Result<SystemResult, RunError> {
        let mut system = self.build()?;
        run_system(&mut *system, self.requests()?, self.replay)
    }

    /// Name and main parameters of the system, which distinguish it from other rows of a table.
    #[must_use]
    pub fn label(&self) -> String {
        let on = match &self.device {
            Some(device) => format!("{} on {}", self.spec, device.display()),
            None if self.spec.keeps_files() => format!("{} on {}", self.spec, self.fs),
            None => self.spec.to_string(),
        };
        match self.replay.pace {
            Pace::Throttle => on,
            pace => format!("{on}, {pace}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_nonsense_is_refused() {
        for spec in SystemSpec::ALL {
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        assert!(
            "cern"
                .parse::<SystemSpec>()
                .unwrap_err()
                .contains("squidml")
        );
        let good = SystemConfig::hummingbird(SystemSpec::Squid);
        assert!(good.check().is_ok());
        let bad = [
            SystemConfig {
                disk: 1,
                ..good.clone()
            },
            SystemConfig {
                disk: 1 << 40,
                ..good.clone()
            },
            SystemConfig {
                fs: FsKind::Raw,
                ..good.clone()
            },
            SystemConfig {
                drive: "drum".into(),
                ..good.clone()
            },
            SystemConfig {
                cluster: 1,
                ..good.clone()
            },
            SystemConfig {
                life_minutes: f64::NAN,
                ..good.clone()
            },
            SystemConfig { ram: 0, ..good },
        ];
        for config in bad {
            assert!(config.check().is_err(), "{config:?}");
        }
    }
}
