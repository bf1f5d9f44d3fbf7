//! Sizes of records in seven bits. The class of a record states the number of sectors to read. This number is
//! the number of sectors of the record, or at most a tenth more.

use std::num::NonZeroU8;

use crate::address::SECTOR_BYTES;

/// A range of sizes of records. Each of the classes 1 to 28 has only one size in sectors of 512 bytes. The
/// upper bound of each later class is 5 to 7 % above the upper bound of the class before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeClass(NonZeroU8);

/// Upper bound of each class in sectors. Class 0 is not used. So the word of an entry is never 0, and a word
/// of 0 can mark an empty slot.
const SECTORS: [u32; 128] = table();

const fn table() -> [u32; 128] {
    let mut sectors = [0u32; 128];
    let mut class = 1;
    while class < 128 {
        let before = sectors[class - 1];
        let step = before / 14;
        sectors[class] = before + if step == 0 { 1 } else { step };
        class += 1;
    }
    sectors
}

/// Length of the table `CLASSES`. The class of a record with this number of sectors or more is found by a
/// search.
const SHORT: usize = 257;
/// The class of each number of sectors.
const CLASSES: [u8; SHORT] = classes();

const fn classes() -> [u8; SHORT] {
    let mut classes = [1; SHORT];
    let mut sectors = 2;
    while sectors < SHORT {
        let before = classes[sectors - 1];
        let fits = sectors as u32 <= SECTORS[before as usize];
        classes[sectors] = if fits { before } else { before + 1 };
        sectors += 1;
    }
    classes
}

impl SizeClass {
    /// The class of the longest records.
    pub const MAX: Self = Self(NonZeroU8::MIN.saturating_add(126));

    /// The smallest class that holds a record of `bytes`; `None` if the record is longer than
    /// `SizeClass::MAX.bytes()` (over 8 MiB). Zero bytes count as one sector.
    #[must_use]
    pub fn for_bytes(bytes: u64) -> Option<Self> {
        let sectors = bytes.div_ceil(SECTOR_BYTES);
        if let Some(class) = CLASSES.get(usize::try_from(sectors).ok()?) {
            return Self::from_number(*class);
        }
        let class = SECTORS.partition_point(|bound| u64::from(*bound) < sectors);
        Self::from_number(u8::try_from(class).ok()?)
    }

    /// Makes a class from a number that [`SizeClass::number`] returned; `None` outside 1..=127.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match NonZeroU8::new(number) {
            Some(class) if number <= Self::MAX.number() => Some(Self(class)),
            _ => None,
        }
    }

    /// The number of this class: 1 to 127.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0.get()
    }

    /// Number of bytes to read for a record of this class. No record of the class is longer. It is
    /// a multiple of 512.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        SECTORS[self.number() as usize] as u64 * SECTOR_BYTES
    }
}
