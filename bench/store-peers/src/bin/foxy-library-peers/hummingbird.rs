//! The library Hummingbird, with its store in a file on the file system.

use foxy_hummingbird::{Config, Error, Hummingbird};

use crate::Failure;
use crate::engines::Engine;

pub(crate) struct Library(Hummingbird);

impl Library {
    pub(crate) fn open(folder: &str, disk: u64, memory: u64) -> Result<Self, Failure> {
        let config = Config {
            // The rest of the memory is for the program itself, and for the few bytes in the page cache.
            memory_bytes: memory / 4 * 3,
            ..Config::on(format!("{folder}/hummingbird"), disk / 10 * 8)
        };
        Ok(Self(Hummingbird::open(&config)?))
    }
}

impl Engine for Library {
    fn read(&mut self, name: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        match self.0.read_file(&name.to_le_bytes()) {
            Ok(file) => look(&file),
            Err(Error::NotFound) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    fn write(&mut self, name: u64, contents: Vec<u8>) -> Result<(), Failure> {
        self.0.write_file(&name.to_le_bytes(), contents)?;
        Ok(())
    }

    fn beside(&mut self, first: u64, second: u64) -> Result<(), Failure> {
        match self
            .0
            .collocate_files(&first.to_le_bytes(), &second.to_le_bytes())
        {
            Ok(_) | Err(Error::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.0.checkpoint()?;
        eprintln!("{:?}", self.0.statistics());
        Ok(())
    }
}
