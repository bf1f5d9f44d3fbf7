//! Bytes that small objects occupy on the device, compared with their key, fields and body.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::fixture::Fixture;
use super::load::{self, Paths};
use super::origin;

const STORE: u64 = 64 << 20;
const BODIES: [u64; 3] = [400, 2_000, 8_000];
/// Greatest permitted ratio of the bytes that the smallest objects occupy to the bytes of their key, fields
/// and body.
const GOAL: f64 = 1.10;

/// For each length, fills a store with objects of that length until the store overwrites its oldest segments.
pub(super) async fn measure(program: &Path, folder: &Path) -> Result<bool, String> {
    println!("Bytes on the device of small objects, from a store of 64 MiB that is being reused");
    let origin = origin::start().await?;
    let mut good = true;
    for body in BODIES {
        let folder = folder.join(format!("small-{body}"));
        std::fs::create_dir(&folder).map_err(|error| format!("no folder: {error}"))?;
        let store = folder.join("store");
        let stores = [(store, Some(STORE))];
        let fixture = Fixture::start(program, &folder, origin, &stores)?;
        let objects = STORE * 3 / 2 / (body + 300);
        let fill: Paths = Arc::new(move |n| (n < objects).then(|| format!("/{body}/object/{n}")));
        let got = load::run(fixture.address(), 8, fill, None).await;
        if got.bad() > 0 {
            return Err("answers were wrong or missing".to_owned());
        }
        sleep(Duration::from_secs(3)).await;
        let per_object = Bytes::of(&fixture.stats().await?)?;
        let ratio = per_object.device / per_object.payload;
        println!(
            "body of {body} bytes: key, fields and body {:.0}, record {:.0}, in clusters {:.0}, on the device {:.0}: {ratio:.3} times",
            per_object.payload, per_object.record, per_object.cluster, per_object.device
        );
        good &= body != BODIES[0] || ratio <= GOAL;
    }
    println!("those of {} bytes at most {GOAL} times\n", BODIES[0]);
    Ok(good)
}

/// Bytes per object. A record is the form of an object on disk. A cluster is the unit of writing. It contains
/// one or more records.
struct Bytes {
    payload: f64,
    record: f64,
    /// Bytes of the record, plus its share of the headers, tables and padding of its cluster.
    cluster: f64,
    /// Bytes in `cluster`, plus the record's share of segment summaries and of free space.
    device: f64,
}

impl Bytes {
    fn of(stats: &Value) -> Result<Self, String> {
        let store = &stats["stores"][0];
        let number = |value: &Value, name: &str| {
            let number = value[name].as_f64();
            number.ok_or_else(|| format!("the statistics have no {name}"))
        };
        let count = |name| number(&store["counts"], name);
        let written = count("records")?;
        Ok(Self {
            payload: count("payload_bytes")? / written,
            record: count("record_bytes")? / written,
            cluster: count("cluster_bytes")? / written,
            device: number(store, "used_bytes")? / number(stats, "disk_objects")?,
        })
    }
}
