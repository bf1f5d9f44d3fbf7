//! The superblocks of a store: this file finds, checks and writes them, and formats disks.

use std::io;

use foxy_base::{KeySeed, Rng, hash64, rule};
use foxy_disk::Disk;
use foxy_format::{
    BLOCK, EXTENSION_CHAIN, FormatError, Geometry, LogPosition, SUPERBLOCK_BYTES, StoreUuid,
    Superblock, may_be_table,
};

use super::replay::first_block;
use crate::engine::StoreContext;
use crate::memory::EngineCore;
use crate::shared::{read_agreed, write_checked};
use crate::{OpenError, StoreOptions};

/// Number of bytes at the beginning and the end of a disk that must be zero for the disk to count as empty.
/// File systems, volume managers and partition tables leave their marks there.
const LOOK_BYTES: u64 = 1 << 20;

pub(super) fn failed(disk: &str, doing: &'static str, source: io::Error) -> OpenError {
    OpenError::Io {
        disk: disk.to_owned(),
        doing,
        source,
    }
}

/// Writes a superblock. Even and odd generations go to different superblocks, so that one superblock
/// stays valid while the other is written.
pub(crate) fn write_superblock(disk: &dyn Disk, superblock: &Superblock) -> io::Result<()> {
    let at = Geometry::superblock_at((superblock.generation & 1) as usize);
    let bytes = superblock.encode();
    // All later steps rely on this superblock. The next write overwrites the other superblock: if this
    // superblock were bad and that write were torn, neither superblock would be valid.
    rule!(
        "superblock: it is read back before anything relies on it",
        write_checked(disk, at, &bytes),
        disk.write_at(at, &bytes).and_then(|()| disk.flush())
    )
}

/// Writes both superblocks, so that neither keeps the old contents. The second write is tried even if
/// the first failed.
pub(crate) fn write_both(disk: &dyn Disk, superblock: &mut Superblock) -> io::Result<()> {
    let mut write = || {
        superblock.generation += 1;
        write_superblock(disk, superblock)
    };
    let first = write();
    let second = rule!(
        "superblock: what was before is in neither of the two",
        write(),
        Ok(())
    );
    first.and(second)
}

/// Returns the superblock in force of a store that can be opened, or `None` for a disk that is to be
/// formatted.
pub(crate) fn find_superblock(
    disk: &dyn Disk,
    options: &StoreOptions,
) -> Result<Option<Superblock>, OpenError> {
    let Some(found) = read_superblocks(disk, options)? else {
        return Ok(None);
    };
    let needed = found.geometry.total_bytes();
    match (needed > disk.len(), options.force_format) {
        (false, _) => Ok(Some(found)),
        (true, true) => Ok(None),
        (true, false) => Err(OpenError::CutShort {
            disk: disk.describe(),
            bytes: disk.len(),
            needed,
        }),
    }
}

/// Returns the identity of the store on a disk, as a start would find it, or `None` for a disk that a
/// start would format. It changes nothing.
///
/// # Errors
/// The same errors as [`crate::Engine::open_store`].
pub fn identity(disk: &dyn Disk, options: &StoreOptions) -> Result<Option<[u8; 16]>, OpenError> {
    Ok(find_superblock(disk, options)?.map(|found| found.uuid.0))
}

/// Returns the newer valid superblock, or `None` for an empty disk or a disk whose formatting did not
/// end.
fn read_superblocks(
    disk: &dyn Disk,
    options: &StoreOptions,
) -> Result<Option<Superblock>, OpenError> {
    let name = disk.describe();
    if disk.len() < 2 * SUPERBLOCK_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; 2 * SUPERBLOCK_BYTES];
    read_agreed(&mut bytes, |into| disk.read_at(0, into))
        .map_err(|e| failed(&name, "read the superblocks", e))?;
    let [a, b] = Superblock::decode_both(&bytes);
    if !options.force_format
        && let Some(problem) = other_format(&name, &a, &b)
    {
        return Err(problem);
    }
    match (a, b) {
        (Ok(a), Ok(b)) => Ok(Some(
            if rule!(
                "superblock: the one with the higher generation is current",
                a.generation > b.generation,
                a.generation < b.generation
            ) {
                a
            } else {
                b
            },
        )),
        // The damaged superblock may have had the higher generation. The generation is raised by two, so
        // that no generation is used twice and the next write still goes to the damaged superblock.
        (Ok(only), _) | (_, Ok(only)) => Ok(Some(Superblock {
            generation: only.generation
                + rule!(
                    "superblock: beside a damaged one two generations are left out",
                    2,
                    0
                ),
            ..only
        })),
        _ if options.force_format => Ok(None),
        // Formatting writes superblock A last: if only a torn superblock B is there, the formatting did
        // not end.
        (Err(FormatError::Empty), Err(FormatError::Empty | FormatError::Checksum)) => {
            match look_around(disk).map_err(|e| failed(&name, "read the disk", e))? {
                Looks::Empty => Ok(None),
                Looks::Ours => Err(OpenError::Wiped { disk: name }),
                Looks::Foreign => Err(OpenError::Foreign { disk: name }),
            }
        }
        (Err(FormatError::Foreign | FormatError::Empty), _) => {
            Err(OpenError::Foreign { disk: name })
        }
        (Err(problem), _) => Err(OpenError::Damaged {
            disk: name,
            problem: problem.to_string(),
        }),
    }
}

/// Returns an error if one of the superblocks was written by another version of Foxy. A later version may
/// have written only one of the superblocks so far. An older version never writes to a store that this
/// version has written.
pub(crate) fn other_format(
    disk: &str,
    a: &Result<Superblock, FormatError>,
    b: &Result<Superblock, FormatError>,
) -> Option<OpenError> {
    let disk = disk.to_owned();
    match (a, b) {
        (Err(FormatError::Newer(version)), _) | (_, Err(FormatError::Newer(version))) => {
            let version = *version;
            Some(OpenError::Newer { disk, version })
        }
        (Err(FormatError::Extended(bits)), _) | (_, Err(FormatError::Extended(bits))) => {
            let extensions = *bits;
            Some(OpenError::Extended { disk, extensions })
        }
        (Ok(_), _) | (_, Ok(_)) => None,
        (Err(FormatError::Older(version)), _) | (_, Err(FormatError::Older(version))) => {
            let version = *version;
            Some(OpenError::Older { disk, version })
        }
        _ => None,
    }
}

/// The contents of the beginning and the end of a disk without superblocks.
enum Looks {
    Empty,
    /// The tables of a Foxy store are there.
    Ours,
    Foreign,
}

fn look_around(disk: &dyn Disk) -> io::Result<Looks> {
    let len = LOOK_BYTES.min(disk.len());
    let mut bytes = vec![0; len as usize];
    let mut looks = Looks::Empty;
    for at in [0, disk.len() - len] {
        disk.read_at(at, &mut bytes)?;
        // Superblock B may be a torn superblock of Foxy, so its bytes do not count as foreign.
        let own = if at == 0 {
            SUPERBLOCK_BYTES..2 * SUPERBLOCK_BYTES
        } else {
            0..0
        };
        if bytes.chunks(BLOCK as usize).any(may_be_table) {
            return Ok(Looks::Ours);
        }
        let foreign = bytes
            .iter()
            .enumerate()
            .any(|(i, b)| *b != 0 && !own.contains(&i));
        if foreign && (at == 0 || len < disk.len()) {
            looks = Looks::Foreign;
        }
    }
    Ok(looks)
}

pub(super) fn format(
    context: &StoreContext,
    disk: &dyn Disk,
    options: &StoreOptions,
) -> Result<Superblock, OpenError> {
    let core = &context.core;
    let name = disk.describe();
    let total = disk.len();
    let segment = options.segment_bytes.unwrap_or_else(|| {
        let wanted = (total / 256).clamp(64 << 10, 32 << 20) as u32;
        wanted / 4096 * 4096
    });
    let cluster = options.cluster_bytes.min(segment / 2) / 4096 * 4096;
    let geometry =
        Geometry::fit(total, segment, cluster, options.mean_object_bytes).map_err(|problem| {
            match problem {
                FormatError::Invalid("number of segments" | "size") => {
                    let needed = u64::from(segment) * 5 + (1 << 16);
                    OpenError::TooSmall {
                        disk: name.clone(),
                        bytes: total,
                        needed,
                    }
                }
                FormatError::Invalid(what) => OpenError::Options {
                    disk: name.clone(),
                    what,
                },
                _ => OpenError::Options {
                    disk: name.clone(),
                    what: "geometry",
                },
            }
        })?;
    let mut superblock = Superblock {
        extensions: EXTENSION_CHAIN,
        generation: 1,
        uuid: new_uuid(core, options),
        geometry,
        floor: LogPosition(0),
        membership: core.fleet.membership().unwrap_or_default(),
        quarantine: Vec::new(),
        seed: KeySeed::default(),
    };
    superblock.set_seed(context.keys.seed());
    let write = || -> io::Result<()> {
        // Slots of an earlier store on this disk must not be taken for slots of the new store. Since
        // superblock A is written last, an interrupted formatting begins again.
        if options.force_format {
            disk.write_at(0, &[0; 2 * SUPERBLOCK_BYTES])?;
            write_zeros(disk, geometry.journal_at()..geometry.removals_at())?;
            let removals = vec![0; geometry.removals_bytes as usize];
            disk.write_cached(geometry.removals_at(), &removals)?;
            disk.flush()?;
        }
        // Without this, a start would take earlier contents of the disk for damaged slots.
        clear_slots(disk, &geometry)?;
        disk.flush()?;
        write_superblock(disk, &superblock)?;
        // A store without a complete half of the journal would count as damaged.
        let (_, journal) = first_block(superblock.uuid, 1)?;
        disk.write_at(geometry.journal_at(), &journal)?;
        write_superblock(
            disk,
            &Superblock {
                generation: 2,
                ..superblock.clone()
            },
        )
    };
    write().map_err(|e| failed(&name, "format it", e))?;
    let bytes = geometry.total_bytes();
    tracing::warn!(store = name, bytes, "a new store was made: it is empty");
    Ok(Superblock {
        generation: 2,
        ..superblock
    })
}

fn clear_slots(disk: &dyn Disk, geometry: &Geometry) -> io::Result<()> {
    let slots = rule!(
        "format: the slots of a former store are cleared",
        geometry.segments,
        0
    );
    for index in 0..slots {
        disk.write_at(geometry.slot_at(index), &[0; BLOCK as usize])?;
    }
    Ok(())
}

fn write_zeros(disk: &dyn Disk, range: std::ops::Range<u64>) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(zeros.len() as u64);
        disk.write_at(at, &zeros[..len as usize])?;
        at += len;
    }
    Ok(())
}

/// Returns the identity of a new store. It must differ between stores. Origins must not know it, because
/// their bodies are written to this disk: an origin could send a body that looks like a cluster of the store.
fn new_uuid(core: &EngineCore, options: &StoreOptions) -> StoreUuid {
    if let Some(uuid) = options.uuid {
        return StoreUuid(uuid);
    }
    let time = core.clock.wall().millis().to_le_bytes();
    let mut rng = Rng::new(hash64(core.numbers.next_seeded(), &time)).fork("uuid");
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
    uuid[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
    StoreUuid(uuid)
}
