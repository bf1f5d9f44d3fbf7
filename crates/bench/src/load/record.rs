//! The record of a run, with one line for each answer: its object and its time. After a restart, it shows
//! which objects a cache must still have.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use foxy_base::{Clock, WallTime};

use super::answer::Served;
use super::request_spec::RequestSpec;

/// One correct answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The request.
    pub spec: RequestSpec,
    /// The version in the answer.
    pub version: u32,
    /// Source of the answer.
    pub served: Served,
}

/// Writes outcomes as lines of the form `time-ms server id version size h|m|?`.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: BufWriter<File>,
    clock: Arc<dyn Clock>,
    /// The first failure. All lines after it are dropped.
    failed: Option<std::io::Error>,
}

impl Recorder {
    pub(crate) fn create(path: &Path, clock: Arc<dyn Clock>) -> std::io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(File::create(path)?),
            clock,
            failed: None,
        })
    }

    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let Outcome {
            spec,
            version,
            served,
        } = outcome;
        let served = match served {
            Served::Hit => 'h',
            Served::Miss => 'm',
            Served::Unknown => '?',
        };
        let time = self.clock.wall().millis();
        let (server, id, size) = (spec.server, spec.id, spec.size);
        if self.failed.is_none()
            && let Err(error) =
                writeln!(self.file, "{time} {server} {id} {version} {size} {served}")
        {
            self.failed = Some(error);
        }
    }

    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}

/// An object in a record. An answer counts as a store of its object if the answer was not a hit, or if its
/// version is newer than the version of the last answer that counted as a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The object, with the version that was stored last.
    pub spec: RequestSpec,
    /// Time of the last answer that counts as a store of the object.
    pub stored: WallTime,
    /// Time of the last answer.
    pub used: WallTime,
}

/// Reads a record. Returns every object once, in the order of [`Known::stored`]. The object that was stored
/// longest ago is the first.
///
/// # Errors
/// Returned if the file cannot be read, or if a line does not have the form that `load --record` writes.
pub fn read_record(path: &Path) -> std::io::Result<Vec<Known>> {
    let mut objects: std::collections::HashMap<(u32, u64), Known> =
        std::collections::HashMap::new();
    for (number, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let line = line?;
        let Some((time, spec, miss)) = parse_line(&line) else {
            let text = format!(
                "{}: line {}: not a record: {line}",
                path.display(),
                number + 1
            );
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
        };
        let fresh = Known {
            spec,
            stored: time,
            used: time,
        };
        let known = objects.entry((spec.server, spec.id)).or_insert(fresh);
        if miss || spec.version > known.spec.version {
            *known = fresh;
        }
        known.used = time;
    }
    let mut all: Vec<Known> = objects.into_values().collect();
    all.sort_unstable_by_key(|k| (k.stored, k.spec.server, k.spec.id));
    Ok(all)
}

fn parse_line(line: &str) -> Option<(WallTime, RequestSpec, bool)> {
    let mut words = line.split(' ');
    let time = WallTime(words.next()?.parse().ok()?);
    let server = words.next()?.parse().ok()?;
    let id = words.next()?.parse().ok()?;
    let version = words.next()?.parse().ok()?;
    let size = words.next()?.parse().ok()?;
    let miss = match words.next()? {
        "m" | "?" => true,
        "h" => false,
        _ => return None,
    };
    Some((
        time,
        RequestSpec {
            server,
            id,
            size,
            version,
            no_store: false,
        },
        miss,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::ManualClock;
    use std::time::Duration;

    #[test]
    fn the_last_store_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let clock = Arc::new(ManualClock::new(WallTime(1000)));
        let mut recorder = Recorder::create(&path, clock.clone()).unwrap();
        let steps = [
            (1, 0, Served::Miss),
            (2, 0, Served::Miss),
            (1, 0, Served::Hit),
            (2, 1, Served::Hit),
            (1, 0, Served::Miss),
        ];
        for (id, version, served) in steps {
            let spec = RequestSpec {
                server: 1,
                id,
                size: 9,
                version,
                no_store: false,
            };
            recorder.add(&Outcome {
                spec,
                version,
                served,
            });
            clock.advance(Duration::from_millis(100));
        }
        recorder.finish().unwrap();
        let known = read_record(&path).unwrap();
        let told: Vec<_> = known
            .iter()
            .map(|k| (k.spec.id, k.spec.version, k.stored.0))
            .collect();
        assert_eq!(told, [(2, 1, 1300), (1, 0, 1400)]);
        std::fs::write(&path, "1 2 3").unwrap();
        assert!(
            read_record(&path)
                .unwrap_err()
                .to_string()
                .contains("line 1")
        );
    }
}
