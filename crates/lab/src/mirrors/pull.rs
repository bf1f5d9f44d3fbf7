//! Several clients pull one large layer of an image at the same time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Mirrors;
use super::client::Client;
use super::fixture::{Baseline, Server, Setup};
use super::images::{Images, Layer, Storage};
use super::report::Report;
use crate::kit::Child;

const CLIENTS: usize = 4;
const LENGTH: u64 = 2_000_000_000;
const QUICK: u64 = 200_000_000;

pub(super) async fn measure(options: &Mirrors, folder: &Path) -> Result<Report, String> {
    let mut report = Report::new("pull");
    let length = match options.layer {
        Some(size) => size.bytes(),
        None if options.quick => QUICK,
        None => LENGTH,
    };
    let layer = Arc::new(Layer::new(length));
    let storage = Arc::new(Storage::of(Arc::clone(&layer)));
    let stores = Server::start(Arc::clone(&storage))?;
    let registry = Server::start(Arc::new(Images::new(Arc::clone(&layer), stores.url())))?;
    let setup = Setup {
        program: options.program(),
        // An object may occupy at most a quarter of a store, so the store is more than four times as large as
        // the layer.
        store: length * 9 / 2 + (1 << 30),
        pinned: false,
        mirrors: format!(
            "[[mirror]]\npreset = \"oci\"\nname = \"registry.test\"\nupstream = \"{}\"\nhosts = [\"{}\"]\n",
            registry.url(),
            stores.url()
        ),
    };
    let foxy = setup.start(folder)?;
    for run in ["cold", "warm"] {
        pulled(run, &foxy, &layer, &storage, &mut report).await;
        // Waits until the end of the layer is on disk.
        sleep(Duration::from_secs(2)).await;
    }
    let leaks = storage.leaks.load(Ordering::Relaxed);
    report.expect(leaks == 0, || {
        format!("{leaks} credentials reached the storage")
    });
    Ok(report)
}

async fn pulled(
    run: &str,
    foxy: &Child,
    layer: &Arc<Layer>,
    storage: &Storage,
    report: &mut Report,
) {
    let baseline = Baseline::of(foxy.pid());
    let (to, begun) = (foxy.address(), Instant::now());
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let layer = Arc::clone(layer);
        clients.spawn(async move {
            let path = format!("{}?ns=registry.test", layer.path());
            let (mut body, mut right, mut length) = (Layer::body(), true, 0);
            let mut client = Client::new(to);
            let head = client.get(&path, "", |piece| {
                right &= body.continues(piece);
                length += piece.len() as u64;
            });
            let head = head.await?;
            match head.status() == 200 && right && length == layer.length {
                true => Ok(()),
                false => Err(format!("{}, {length} bytes, right: {right}", head.start)),
            }
        });
    }
    let mut right = 0;
    while let Some(ended) = clients.join_next().await {
        match ended.map_err(|error| error.to_string()).flatten() {
            Ok(()) => right += 1,
            Err(fault) => report.fault(format!("{run}: {fault}")),
        }
    }
    let transfers = storage.transfers.load(Ordering::Relaxed);
    let bytes = storage.bytes.load(Ordering::Relaxed);
    let took = begun.elapsed().as_secs_f64();
    report.line(format!(
        "{run}: {right} of {CLIENTS} clients have {:.0} MB in {took:.1} s ({:.0} MB/s for each); the storage has sent \
         it {transfers} times in all, {:.0} MB; resident +{:.1} MiB",
        layer.length as f64 / 1e6,
        layer.length as f64 / 1e6 / took,
        bytes as f64 / 1e6,
        baseline.above(),
    ));
    report.expect(transfers == 1, || format!("{run}: {transfers} transfers"));
}
