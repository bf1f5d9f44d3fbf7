//! The generator of calls. It works like wg-Hummingbird, the load generator of the Hummingbird paper (paper
//! 004). It turns each request of the stream into a read of a file. After a miss, it writes the file. If the
//! written file is not a page, it gives the engine the hint that the file belongs to the last page of the
//! same client.

use foxy_policy::{CachePolicy, Lru};

use crate::Failure;
use crate::engines::Engine;

/// A request of the stream.
pub(crate) struct Request {
    object: u64,
    size: u32,
    version: u32,
    client: u32,
    page: bool,
}

impl Request {
    /// Length of a request in the stream, in bytes. A request contains object, size, version, client
    /// and page, in little-endian order.
    pub(crate) const BYTES: usize = 24;

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let word = |at: usize| -> Result<u32, Failure> {
            Ok(u32::from_le_bytes(bytes[at..at + 4].try_into()?))
        };
        Ok(Self {
            object: u64::from_le_bytes(bytes[..8].try_into()?),
            size: word(8)?,
            version: word(12)?,
            client: word(16)?,
            page: word(20)? != 0,
        })
    }

    /// Contents of the object: the version, and then random bytes, which no engine can compress.
    fn contents(&self, stock: &[u8]) -> Vec<u8> {
        let from = (self.object.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45) as usize;
        let mut contents = stock[from..from + self.size as usize].to_vec();
        let head = contents.len().min(4);
        contents[..head].copy_from_slice(&self.version.to_le_bytes()[..head]);
        contents
    }

    fn is_in(&self, contents: &[u8]) -> bool {
        let head = contents.len().min(4);
        contents.len() == self.size as usize
            && contents[..head] == self.version.to_le_bytes()[..head]
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) hits: u64,
    /// Number of content bytes that were written.
    pub(crate) stored: u64,
}

pub(crate) struct Generator {
    engine: Box<dyn Engine>,
    pages: Lru<u32, u64>,
    stock: Vec<u8>,
    counts: Counts,
}

impl Generator {
    pub(crate) fn new(engine: Box<dyn Engine>) -> Self {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed ^ mixed >> 27
        };
        let stock = (0..80_000).flat_map(|_| next().to_le_bytes()).collect();
        Self {
            engine,
            pages: Lru::new(10_000),
            stock,
            counts: Counts::default(),
        }
    }

    pub(crate) fn request(&mut self, request: &Request) -> Result<(), Failure> {
        let mut fresh = false;
        self.engine.read(request.object, &mut |contents| {
            fresh = request.is_in(contents);
        })?;
        if fresh {
            self.counts.hits += 1;
        } else {
            self.counts.stored += u64::from(request.size);
            let contents = request.contents(&self.stock);
            self.engine.write(request.object, contents)?;
        }
        if request.page {
            let _ = self
                .pages
                .insert(request.client, request.object, 1, &mut Vec::new());
        } else if !fresh && let Some(page) = self.pages.get(&request.client).copied() {
            self.engine.beside(page, request.object)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Counts, Failure> {
        self.engine.finish()?;
        Ok(self.counts)
    }
}
