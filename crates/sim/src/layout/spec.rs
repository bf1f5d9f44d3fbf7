//! Names of layouts (`stream`, `buddy:64`, `lazy-reads-loc:128`) and their construction.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use super::{
    Area, Calls, FileArea, Layout, LayoutError,
    buddy::{self, Buddy},
    lazy_reads::LazyConfig,
    locality::LocConfig,
    multiple_dirs::MultipleDirs,
    simple::Simple,
    squid::Squid,
    stream::{Stream, StreamConfig},
};
use crate::{
    levels::DiskOp,
    model::{Files, Raw},
};

/// A layout by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayoutSpec {
    /// `simple`
    Simple,
    /// `squid`
    Squid,
    /// `multiple-dirs`
    MultipleDirs,
    /// `buddy` or `buddy:BLOCKS`
    Buddy(u32),
    /// `stream`
    Stream,
    /// `stream-packetizer`
    Packetizer,
    /// `lazy-reads` or `lazy-reads:N`
    Lazy(u32),
    /// `loc:B`: packetizer and B locality buffers
    Loc(u32),
    /// `lazy-reads-loc:B`: B locality buffers and lazy reads with N = 10
    LazyLoc(u32),
}

/// Settings of a layout that are not part of its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutSizes {
    /// Bytes of the single file or partition of the STREAM family.
    pub bytes: u64,
    /// Bytes of a page, in which the packetizer collects small writes (module `packetizer`).
    pub page: u64,
    /// Bytes of a locality buffer, which collects the written objects of one server (module `locality`).
    pub buffer: u64,
    /// Longest wait of a lazy read: a read that waits for further reads (module `lazy_reads`).
    pub timeout: crate::model::SimTime,
    /// True if the files that many objects share exist at full size before the first operation.
    pub exists: bool,
    /// The calls with which the layout writes into shared files.
    pub calls: Calls,
}

impl LayoutSizes {
    /// Settings for a space of `bytes` bytes: pages of 8 KiB, buffers of 64 KiB, a timeout of half a second.
    #[must_use]
    pub fn of(bytes: u64) -> Self {
        Self {
            bytes,
            page: 8 << 10,
            buffer: 64 << 10,
            timeout: LazyConfig::default().timeout,
            exists: false,
            calls: Calls::Write,
        }
    }
}

impl LayoutSpec {
    /// The eight layouts of table 2 in the USITS'99 paper, in the order of the table. An additional layout,
    /// locality buffers without lazy reads, precedes the last published layout.
    pub const PUBLISHED: [Self; 9] = [
        Self::Simple,
        Self::Squid,
        Self::MultipleDirs,
        Self::Buddy(buddy::THRESHOLD),
        Self::Stream,
        Self::Packetizer,
        Self::Lazy(10),
        Self::Loc(128),
        Self::LazyLoc(128),
    ];

    /// True for the layouts that need one large space and no file system.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        !matches!(
            self,
            Self::Simple | Self::Squid | Self::MultipleDirs | Self::Buddy(_)
        )
    }

    fn stream_config(self, sizes: LayoutSizes) -> StreamConfig {
        let lazy = |batch| {
            Some(LazyConfig {
                batch,
                timeout: sizes.timeout,
            })
        };
        let loc = |buffers| {
            Some(LocConfig {
                buffers,
                bytes: sizes.buffer,
            })
        };
        let plain = StreamConfig {
            bytes: sizes.bytes,
            ..StreamConfig::default()
        };
        let packet = StreamConfig {
            packet: Some(sizes.page),
            ..plain
        };
        match self {
            Self::Packetizer => packet,
            Self::Lazy(n) => StreamConfig {
                lazy: lazy(n),
                ..packet
            },
            Self::Loc(b) => StreamConfig {
                locality: loc(b),
                ..packet
            },
            Self::LazyLoc(b) => StreamConfig {
                lazy: lazy(10),
                locality: loc(b),
                ..packet
            },
            _ => plain,
        }
    }

    /// Creates the layout over a file system. `coming` contains the operations that the layout will get, if
    /// they are known. If the shared files exist beforehand, BUDDY's class files get the sizes that these
    /// operations need.
    ///
    /// # Errors
    /// Returns the first error of the file system while directories and files are created.
    pub fn build<F: Files + 'static>(
        self,
        files: F,
        sizes: LayoutSizes,
        coming: &[DiskOp],
    ) -> Result<Box<dyn Layout>, LayoutError> {
        Ok(match self {
            Self::Simple => Box::new(Simple::new(files)?),
            Self::Squid => Box::new(Squid::new(files)?),
            Self::MultipleDirs => Box::new(MultipleDirs::new(files)),
            Self::Buddy(threshold) => {
                let mut buddy = Buddy::new(files, threshold)?.by(sizes.calls);
                if sizes.exists {
                    buddy.prepare(coming)?;
                }
                Box::new(buddy)
            }
            _ if sizes.exists => {
                let area = FileArea::existing(files, sizes.bytes)?;
                self.stream(area.by(sizes.calls), sizes)
            }
            _ => self.stream(FileArea::new(files)?.by(sizes.calls), sizes),
        })
    }

    /// Creates the layout over a raw partition; `None` for a layout that needs a file system.
    #[must_use]
    pub fn build_raw(self, raw: Raw, sizes: LayoutSizes) -> Option<Box<dyn Layout>> {
        let sizes = LayoutSizes {
            bytes: sizes.bytes.min(raw.bytes()),
            ..sizes
        };
        self.is_stream().then(|| self.stream(raw, sizes))
    }

    fn stream<A: Area + 'static>(self, area: A, sizes: LayoutSizes) -> Box<dyn Layout> {
        Box::new(Stream::new(area, self.stream_config(sizes)))
    }
}

impl fmt::Display for LayoutSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple => f.write_str("simple"),
            Self::Squid => f.write_str("squid"),
            Self::MultipleDirs => f.write_str("multiple-dirs"),
            Self::Buddy(buddy::THRESHOLD) => f.write_str("buddy"),
            Self::Buddy(threshold) => write!(f, "buddy:{threshold}"),
            Self::Stream => f.write_str("stream"),
            Self::Packetizer => f.write_str("stream-packetizer"),
            Self::Lazy(10) => f.write_str("lazy-reads"),
            Self::Lazy(n) => write!(f, "lazy-reads:{n}"),
            Self::Loc(b) => write!(f, "loc:{b}"),
            Self::LazyLoc(b) => write!(f, "lazy-reads-loc:{b}"),
        }
    }
}

impl FromStr for LayoutSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "layout `{text}` is not known; choose simple, squid, multiple-dirs, \
                 buddy[:BLOCKS], stream, stream-packetizer, lazy-reads[:N], loc[:B] or \
                 lazy-reads-loc[:B]"
            )
        };
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => {
                let good = number.parse().ok().filter(|n| (1..=1 << 20).contains(n));
                let bad = || format!("{}; numbers are at least 1", unknown());
                (name, Some(good.ok_or_else(bad)?))
            }
            None => (text, None),
        };
        Ok(match (name, number) {
            ("simple", None) => Self::Simple,
            ("squid", None) => Self::Squid,
            ("multiple-dirs", None) => Self::MultipleDirs,
            ("buddy", n) => Self::Buddy(n.unwrap_or(buddy::THRESHOLD)),
            ("stream", None) => Self::Stream,
            ("stream-packetizer", None) => Self::Packetizer,
            ("lazy-reads", n) => Self::Lazy(n.unwrap_or(10)),
            ("loc", n) => Self::Loc(n.unwrap_or(128)),
            ("lazy-reads-loc", n) => Self::LazyLoc(n.unwrap_or(128)),
            _ => return Err(unknown()),
        })
    }
}

impl Serialize for LayoutSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let more = [
            LayoutSpec::Buddy(64),
            LayoutSpec::Lazy(4),
            LayoutSpec::Loc(8),
        ];
        for spec in LayoutSpec::PUBLISHED.into_iter().chain(more) {
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for bad in [
            "",
            "steam",
            "squid:3",
            "buddy:",
            "buddy:0",
            "loc:x",
            "loc:9999999999",
        ] {
            assert!(
                bad.parse::<LayoutSpec>().unwrap_err().contains("choose"),
                "{bad}"
            );
        }
    }
}
