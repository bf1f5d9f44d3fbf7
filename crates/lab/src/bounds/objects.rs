//! A store with many objects. It is filled once, and each load that begins with such a store gets a copy. The
//! load `purge` removes these objects by their tag.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::ByteSize;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::conn::TIMEOUT;
use super::fixture::{Client, Fixture};
use super::origin::{Origin, TAG, tagged};
use super::row::milliseconds;
use super::subject::{Limit, Setup, Subject};
use crate::kit::{ClientRequest, Target};

/// Size of an object, in bytes.
const SIZE: usize = 500;
/// Number of clients that fill the store.
const CLIENTS: u64 = 64;
/// Time after which a stored object is on disk.
const SETTLE: Duration = Duration::from_secs(4);
/// Longest wait for a purge or a recovery. It is much longer than a purge or a recovery usually takes,
/// because the processors may be busy with other programs.
const LONGEST: Duration = Duration::from_secs(600);
/// Time between two requests for a statistic.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Disk space that is planned for each object, in bytes. It is more than an object needs.
pub(super) const ON_DISK: u64 = 2_048;

/// Starts Foxy with a store in `folder`, fills the store with `count` tagged objects, and kills Foxy.
pub(super) fn fill(
    setup: &Setup,
    origin: &Arc<Origin>,
    folder: &Path,
    count: u64,
) -> Result<(), String> {
    let budget = Limit::Budget(ByteSize::mib(512));
    let subject = Subject::start(setup, budget, folder)?;
    let fixture = Fixture::new(subject.proxy(), subject.admin(), origin);
    let runtime = crate::kit::runtime()?;
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for number in 0..CLIENTS {
            let mut client = Client::new([127, 0, 0, 1].into(), fixture.proxy);
            running.spawn(async move {
                let mut object = number;
                while object < count {
                    let path = tagged(SIZE, &object.to_string());
                    let stored = client.get(&path, SIZE).await;
                    stored.map_err(|fault| format!("the store cannot be filled: {fault}"))?;
                    object += CLIENTS;
                }
                Ok::<_, String>(())
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        sleep(SETTLE).await;
        Ok(())
    })
}

/// Copies a store without the parts that were never written. Soon after the fill, these parts are most of
/// the store.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let copied = (|| {
        let mut source = File::open(from.join("store"))?;
        let mut target = File::create(to.join("store"))?;
        let length = source.metadata()?.len();
        target.set_len(length)?;
        let mut at = 0;
        loop {
            at = match seek(&source, SeekFrom::Data(at)) {
                Ok(data) => data,
                // There is no data from here to the end of the file.
                Err(Errno::NXIO) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let end = seek(&source, SeekFrom::Hole(at))?;
            seek(&source, SeekFrom::Start(at))?;
            seek(&target, SeekFrom::Start(at))?;
            io::copy(&mut (&mut source).take(end - at), &mut target)?;
            at = end;
        }
    })();
    copied.map_err(|error: io::Error| format!("the store cannot be copied: {error}"))
}

/// Sends a request to the admin address and returns the JSON of the answer.
async fn admin(fixture: &Fixture, request: ClientRequest) -> Result<Value, String> {
    let target = Target {
        proxy: fixture.admin,
        origin: fixture.admin.to_string(),
        scheme: None,
    };
    let answer = request.send(&target, TIMEOUT, None).await?;
    match answer.head.status() {
        200 => serde_json::from_slice(&answer.body).map_err(|error| error.to_string()),
        status => Err(format!("status {status} from the admin address")),
    }
}

/// Purges all objects with the tag. Then waits until the sweep (the pass over the stores that removes the
/// objects) has found all of them. Returns their number as text.
pub(super) async fn purge(fixture: &Fixture) -> Result<String, String> {
    let begun = Instant::now();
    let mut request = ClientRequest::get(format!("/purge?tag={TAG}")).with("X-Foxy-Admin", "1");
    request.method = "POST";
    let answer = admin(fixture, request).await;
    let answer = answer.map_err(|problem| format!("the purge failed: {problem}"))?;
    let number = answer["purge"].as_u64().unwrap_or(0);
    let acknowledged = begun.elapsed();
    loop {
        sleep(POLL_INTERVAL).await;
        let state = admin(fixture, ClientRequest::get(format!("/purges/{number}"))).await;
        let state = state.map_err(|problem| format!("the purge is not reported: {problem}"))?;
        let found = state["objects"].as_u64().unwrap_or(0);
        let (done, took) = (state["done"] == true, begun.elapsed());
        let note = format!(
            "purge acknowledged in {}, {found} objects in {:.1} s",
            milliseconds(acknowledged),
            took.as_secs_f64()
        );
        if done {
            return Ok(note);
        }
        if took > LONGEST {
            return Err(format!("{note}, and not done"));
        }
    }
}

/// Waits until all stores are loaded, and until at least the time `least` has passed since `begun`. Returns
/// the time until the stores were loaded, and the number of objects, as text.
pub(super) async fn loaded(
    fixture: &Fixture,
    begun: Instant,
    least: Duration,
) -> Result<String, String> {
    let mut note = None;
    loop {
        let stats = admin(fixture, ClientRequest::get("/stats".to_owned())).await;
        let stats = stats.unwrap_or_default();
        let stores = stats["stores"].as_array().cloned().unwrap_or_default();
        let loaded = !stores.is_empty() && stores.iter().all(|store| store["loading"] == false);
        let took = begun.elapsed();
        if loaded && note.is_none() {
            let objects = stats["disk_objects"].as_u64().unwrap_or(0);
            note = Some(format!(
                "{objects} objects loaded in {:.2} s",
                took.as_secs_f64()
            ));
        }
        match note {
            Some(note) if took >= least => return Ok(note),
            None if took >= LONGEST => {
                return Err(format!(
                    "the store is not loaded after {} s",
                    LONGEST.as_secs()
                ));
            }
            _ => sleep(POLL_INTERVAL).await,
        }
    }
}
