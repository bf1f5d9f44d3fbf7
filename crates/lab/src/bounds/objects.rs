//! A store with many objects: filled once, copied for every load that begins with it, purged.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::conn::PATIENCE;
use super::origin::{Origin, TAG, tagged};
use super::scene::{Client, Scene};
use super::subject::{Limit, Setup, Subject};
use crate::kit::{Ask, Door};
use foxy_base::ByteSize;

/// Size of an object, in bytes.
const SIZE: usize = 500;
/// Clients that fill.
const CLIENTS: u64 = 64;
/// Time after which a stored object is on disk.
const SETTLE: Duration = Duration::from_secs(4);
/// Longest wait for a purge or a recovery.
const LONGEST: Duration = Duration::from_secs(60);
/// Time between two looks at a figure.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes on disk for each object, with room to spare.
pub(super) const ON_DISK: u64 = 2_048;

/// Fills a store in `folder` with `count` tagged objects and kills the process.
pub(super) fn fill(
    setup: &Setup,
    origin: &Arc<Origin>,
    folder: &Path,
    count: u64,
) -> Result<(), String> {
    let budget = Limit::Budget(ByteSize::mib(512));
    let subject = Subject::start(setup, budget, folder)?;
    let scene = Scene::new(subject.proxy(), subject.admin(), origin);
    let runtime = super::run::runtime()?;
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for number in 0..CLIENTS {
            let mut client = Client::new([127, 0, 0, 1].into(), scene.proxy);
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

/// Copies a store without its unwritten parts.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let status = Command::new("cp")
        .args(["--sparse=always", "--"])
        .arg(from.join("store"))
        .arg(to.join("store"))
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the store cannot be copied: cp {status}")),
        Err(error) => Err(format!("cp does not start: {error}")),
    }
}

/// JSON from the admin address.
async fn admin(scene: &Scene, ask: Ask) -> Result<Value, String> {
    let door = Door {
        proxy: scene.admin,
        origin: scene.admin.to_string(),
        absolute: false,
    };
    let answer = ask.send(&door, PATIENCE, None).await?;
    match answer.head.status() {
        200 => serde_json::from_slice(&answer.body).map_err(|error| error.to_string()),
        status => Err(format!("status {status} from the admin address")),
    }
}

/// Purges all objects with the tag, waits until all are found, and says how many were.
pub(super) async fn purge(scene: &Scene) -> String {
    let begun = Instant::now();
    let mut ask = Ask::get(format!("/purge?tag={TAG}")).with("X-Foxy-Admin", "1");
    ask.method = "POST";
    let number = match admin(scene, ask).await {
        Ok(answer) => answer["purge"].as_u64().unwrap_or(0),
        Err(problem) => return format!("PURGE FAILED: {problem}"),
    };
    let acknowledged = begun.elapsed();
    loop {
        sleep(LOOK).await;
        let state = admin(scene, Ask::get(format!("/purges/{number}"))).await;
        let state = state.unwrap_or_default();
        let found = state["objects"].as_u64().unwrap_or(0);
        let (done, took) = (state["done"] == true, begun.elapsed());
        if done || took > LONGEST {
            let state = if done { "done" } else { "NOT DONE" };
            return format!(
                "purge acknowledged in {}, {state} in {:.1} s, {found} objects",
                super::report::time(acknowledged),
                took.as_secs_f64()
            );
        }
    }
}

/// Waits until all stores are loaded, `least` at least, and says how long that took and how many
/// objects there are.
pub(super) async fn loaded(scene: &Scene, begun: Instant, least: Duration) -> String {
    let mut note = None;
    loop {
        let stats = admin(scene, Ask::get("/stats".to_owned())).await;
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
            Some(note) if took >= least => return note,
            None if took >= LONGEST => return "NOT LOADED in 60 s".to_owned(),
            _ => sleep(LOOK).await,
        }
    }
}
