//! Power cuts of a memory disk: computes the contents that remain.

use super::image::Image;
use super::state::{Held, SECTOR, State};
use super::{Keep, Unsynced};
use crate::OpKind;
use foxy_base::Rng;

/// The writes that a crash may lose, with their bytes, in order of execution.
pub(super) fn unsynced(state: &State) -> Vec<(Unsynced, &[u8])> {
    let done = state.unsynced.iter().map(|p| (p.at, &p.data[..], true));
    let late = state
        .late
        .iter()
        .map(|l| (l.piece.at, &l.piece.data[..], false));
    let held = state.held.iter().filter_map(pending);
    done.chain(late)
        .chain(held)
        .enumerate()
        .map(|(index, (at, data, executed))| {
            (
                Unsynced {
                    index,
                    at,
                    len: data.len() as u64,
                    executed,
                },
                data,
            )
        })
        .collect()
}

fn pending(held: &Held) -> Option<(u64, &[u8], bool)> {
    match &held.op.kind {
        OpKind::Write { at, buf, len } => Some((*at, buf.get(..*len)?, false)),
        OpKind::Read { .. } | OpKind::Flush => None,
    }
}

/// The image of the disk after a power cut.
pub(super) fn image(state: &State, mut keep: Keep<'_>) -> Image {
    let mut image = state.durable.clone();
    let block = u64::from(state.block);
    let mut rng = if let Keep::Random(seed) = keep {
        Rng::new(seed)
    } else {
        Rng::new(0)
    };
    for (write, data) in unsynced(state) {
        match &mut keep {
            Keep::Nothing => {}
            Keep::All => {
                if write.executed {
                    image.write(write.at, data);
                }
            }
            Keep::Writes(choose) => {
                if choose(&write) {
                    image.write(write.at, data);
                }
            }
            Keep::Blocks(choose) => parts(&mut image, &write, data, block, choose),
            Keep::Sectors(choose) => parts(&mut image, &write, data, SECTOR, choose),
            Keep::Random(_) => random(&mut image, &write, data, block, &mut rng),
        }
    }
    image
}

fn parts(
    image: &mut Image,
    write: &Unsynced,
    data: &[u8],
    unit: u64,
    choose: &mut dyn FnMut(&Unsynced, u64) -> bool,
) {
    // Units are 512 or 4096 bytes.
    for (n, part) in (0u64..).zip(data.chunks(unit as usize)) {
        if choose(write, n) {
            image.write(write.at + n * unit, part);
        }
    }
}

fn random(image: &mut Image, write: &Unsynced, data: &[u8], block: u64, rng: &mut Rng) {
    match rng.below(3) {
        0 => {}
        1 => image.write(write.at, data),
        _ => parts(image, write, data, block, &mut |_, _| rng.chance(0.5)),
    }
}
