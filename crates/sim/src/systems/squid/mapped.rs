//! Small objects in memory-mapped files (SQUIDM; Maltzahn, Richardson, Grunwald, USENIX 1999).
//!
//! Rules: objects below 8 KB are stored in a few large mapped files. Each file consists of segments of one
//! size (powers of two from 512 bytes to 8 KB; these values are quoted from recollection, because the digits
//! are lost in the paper). The virtual memory system reads and writes the pages of the files. Each file gets
//! new segments on demand until all files together have used their share of the disk. From then on segments
//! are replaced cyclically by frequency: a cursor moves cyclically over the segments. It subtracts one use
//! from each object that it passes. The first object without remaining uses is replaced. In aligned files
//! (SQUIDMLA), no segment crosses a page. In other files, a head of 64 bytes precedes each segment, so that
//! many segments cross pages (our interpretation of the effect of alignment).

use std::collections::HashMap;

use crate::model::{DirId, FileId, Files, FsError, hash::BuildIdHasher};

/// Mapped objects are smaller than this number of bytes.
pub const LARGEST: u64 = 8 << 10;
/// Bytes of the head before a segment that is not aligned.
const HEAD: u64 = 64;
/// Bytes by which a file grows.
const STEP: u64 = 64 << 10;
/// Maximum of the use counter.
const USES: u8 = 8;

/// An object in a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    class: u8,
    segment: u32,
    /// Size of the object in bytes.
    pub size: u64,
    /// Version of the object.
    pub version: u32,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    object: u64,
    uses: u8,
    taken: bool,
}

#[derive(Debug)]
struct Class {
    bytes: u64,
    file: FileId,
    segments: Vec<Segment>,
    cursor: usize,
    end: u64,
}

/// The mapped files.
#[derive(Debug)]
pub struct Mapped {
    classes: Vec<Class>,
    index: HashMap<u64, Place, BuildIdHasher>,
    head: u64,
    most: u64,
    used: u64,
}

impl Mapped {
    /// Creates empty mapped files. Together they may grow to `most` bytes.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn new<F: Files>(
        files: &mut F,
        dir: DirId,
        most: u64,
        aligned: bool,
    ) -> Result<Self, FsError> {
        let mut classes = Vec::new();
        for power in 9..=13 {
            classes.push(Class {
                bytes: 1 << power,
                file: files.create(dir, u64::MAX - power)?,
                segments: Vec::new(),
                cursor: 0,
                end: 0,
            });
        }
        Ok(Self {
            classes,
            index: HashMap::default(),
            head: if aligned { 0 } else { HEAD },
            most,
            used: 0,
        })
    }

    /// Position of an object, without counting a use.
    #[must_use]
    pub fn find(&self, object: u64) -> Option<Place> {
        self.index.get(&object).copied()
    }

    /// Number of objects in the files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True if there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes of the files.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.used
    }

    /// Counts a use of an object of these files. The request may have been answered from memory or from the
    /// files.
    pub fn touch(&mut self, place: Place) {
        let segment = &mut self.classes[usize::from(place.class)].segments[place.segment as usize];
        segment.uses = (segment.uses + 1).min(USES);
    }

    fn at(&self, place: Place) -> (FileId, u64) {
        let class = &self.classes[usize::from(place.class)];
        let stride = class.bytes + self.head;
        (class.file, u64::from(place.segment) * stride + self.head)
    }

    /// Reads an object through the mapping.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn read<F: Files>(&self, files: &mut F, place: Place) -> Result<(), FsError> {
        let (file, at) = self.at(place);
        files.map_read(file, at, place.size).map(|_| ())
    }

    /// Stores an object. Returns `Some` with the object that was replaced, if any. Returns `None` if the
    /// object is too large for every file, or if its file has no segments and cannot grow.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn write<F: Files>(
        &mut self,
        files: &mut F,
        object: u64,
        size: u64,
        version: u32,
    ) -> Result<Option<Option<u64>>, FsError> {
        let Some(number) = self.classes.iter().position(|c| size <= c.bytes) else {
            return Ok(None);
        };
        if !self.grow(files, number)? && self.classes[number].segments.is_empty() {
            return Ok(None);
        }
        let class = &mut self.classes[number];
        let at = cycle(class);
        let gone = class.segments[at]
            .taken
            .then_some(class.segments[at].object);
        class.segments[at] = Segment {
            object,
            uses: 0,
            taken: true,
        };
        if let Some(gone) = gone {
            self.index.remove(&gone);
        }
        let place = Place {
            class: number as u8,
            segment: at as u32,
            size,
            version,
        };
        self.index.insert(object, place);
        let (file, at) = self.at(place);
        files.map_write(file, at, size)?;
        Ok(Some(gone))
    }

    /// Removes an object; its segment is free afterwards.
    pub fn remove(&mut self, object: u64) {
        if let Some(place) = self.index.remove(&object) {
            let class = &mut self.classes[usize::from(place.class)];
            class.segments[place.segment as usize].taken = false;
            class.segments[place.segment as usize].uses = 0;
        }
    }

    /// Adds segments if the cursor has passed all segments. Returns false if there is no space for more
    /// segments.
    fn grow<F: Files>(&mut self, files: &mut F, number: usize) -> Result<bool, FsError> {
        let class = &mut self.classes[number];
        if class.cursor < class.segments.len() {
            return Ok(true);
        }
        if self.used + STEP > self.most {
            return Ok(false);
        }
        match files.write(class.file, class.end, STEP) {
            Err(FsError::NoSpace) => return Ok(false),
            done => done?,
        }
        class.end += STEP;
        self.used += STEP;
        let fit = (class.end / (class.bytes + self.head)) as usize;
        let free = Segment {
            object: 0,
            uses: 0,
            taken: false,
        };
        class.segments.resize(fit, free);
        Ok(true)
    }
}

/// The next segment that is free or has no remaining uses.
fn cycle(class: &mut Class) -> usize {
    for _ in 0..=usize::from(USES) * class.segments.len() + class.segments.len() {
        if class.cursor >= class.segments.len() {
            class.cursor = 0;
        }
        let at = class.cursor;
        class.cursor += 1;
        let segment = &mut class.segments[at];
        if !segment.taken || segment.uses == 0 {
            return at;
        }
        segment.uses -= 1;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::fake::FakeFiles;

    fn mapped(most: u64) -> (FakeFiles, Mapped) {
        let mut files = FakeFiles::new();
        let root = files.root();
        let mapped = Mapped::new(&mut files, root, most, true).unwrap();
        (files, mapped)
    }

    #[test]
    fn segments_are_replaced_in_turn_unless_used() {
        let (mut files, mut mapped) = mapped(STEP);
        let mut put = |mapped: &mut Mapped, object| {
            mapped.write(&mut files, object, 5_000, 0).unwrap().unwrap()
        };
        for object in 0..8 {
            assert_eq!(put(&mut mapped, object), None);
        }
        let second = mapped.find(1).unwrap();
        mapped.touch(second);
        assert_eq!(put(&mut mapped, 8), Some(0));
        assert_eq!(put(&mut mapped, 9), Some(2));
        mapped.remove(3);
        assert_eq!(put(&mut mapped, 10), None);
        for object in 11..15 {
            put(&mut mapped, object);
        }
        // The single use of object 1 was subtracted when the cursor passed.
        assert_eq!(
            (put(&mut mapped, 15), put(&mut mapped, 16)),
            (Some(8), Some(1))
        );
        assert_eq!((mapped.len(), mapped.bytes()), (8, STEP));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_no_byte_is_shared() {
        let (mut files, mut mapped) = mapped(STEP);
        assert_eq!(mapped.write(&mut files, 1, 9_000, 0).unwrap(), None);
        let mut places = Vec::new();
        for object in 0..64 {
            mapped
                .write(&mut files, object, 500 + object % 3, 0)
                .unwrap();
            let place = mapped.find(object).unwrap();
            let (file, at) = mapped.at(place);
            places.push((file, at, at + place.size));
        }
        places.sort_unstable();
        assert!(
            places
                .windows(2)
                .all(|w| w[0].0 != w[1].0 || w[0].2 <= w[1].1)
        );
        // The first file has used all the space, so another file gets no space.
        assert_eq!(mapped.write(&mut files, 99, 4_000, 0).unwrap(), None);
    }
}
