//! `bench store stores`: one store compared with two stores of half the size, on devices with as few reads
//! per second as a rotating disk. The measurement shows whether a second disk doubles the hits per second,
//! and how a second disk changes the response times at equal load.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use foxy_base::{Clock, MonoTime, Rng};
use foxy_disk::{AlignedBuf, Disk, FileDisk, OpenOptions};
use foxy_store::{Admission, Engine, EngineConfig, Lookup, StoreOptions, Writer};

use super::Context;
use super::harness::{body, keyed, object, stock, usual_fields};
use super::report::{Goal, Section};
use super::system::Loop;
use super::throttle::{Limit, Throttle};
use crate::Histogram;

/// Number of reads per second of each device. On a rotating disk, a read takes the time of a seek (5.2 ms)
/// and of half a rotation (3 ms).
const READS: u64 = 120;
/// Length of a body in bytes.
const BODY: usize = 8 << 10;
/// Number of requests that run at the same time in the run without a limit on their rate.
const CLIENTS: usize = 16;
/// Number of requests per second at equal load: three quarters of the rate of one device.
const LOAD: u64 = READS * 3 / 4;
/// Memory of the engine. The index uses nearly all of it, so that nearly all hits are disk hits.
const MEMORY: u64 = 32 << 20;

/// An engine with one store on each device, started as in Foxy.
struct Stores {
    engine: Arc<Engine>,
    clock: Arc<dyn Clock>,
    objects: u64,
}

/// Results of a run.
#[derive(Default)]
struct Run {
    hits: u64,
    memory: u64,
    missed: u64,
    seconds: f64,
    times: Histogram,
}

impl Run {
    fn rate(&self) -> f64 {
        self.hits as f64 / self.seconds.max(1e-9)
    }

    fn wait_ms(&self, quantile: f64) -> f64 {
        self.times.quantile(quantile).as_secs_f64() * 1e3
    }
}

/// Compares one store with two stores: the hits per second without a limit on requests, and the times of
/// requests at the same load.
pub(super) fn stores(context: &Context<'_>) -> io::Result<Vec<Section>> {
    let bytes = context.quick_or(128 << 20, 512 << 20);
    let mut section = Section::new(
        "stores",
        format!(
            "hits of 8 KiB objects on devices of {READS} reads per second each: one store of {} MiB, two of half of it",
            bytes >> 20
        ),
    );
    let one = measured(context, 1, bytes);
    let both = one.and_then(|one| Ok((one, measured(context, 2, bytes)?)));
    let ((one, one_loaded), (two, two_loaded)) = match both {
        Ok(both) => both,
        Err(error) => {
            section.missing(error.to_string());
            return Ok(vec![section]);
        }
    };
    let many = format!("{CLIENTS} under way");
    section.row(format!("one store, hits, {many}"), one.rate(), "1/s");
    let row = section.row(format!("two stores, hits, {many}"), two.rate(), "1/s");
    row.reference("one store", one.rate());
    section
        .row("two stores for one", two.rate() / one.rate(), "times")
        .goal(Goal::Least(1.9));
    for (what, quantile) in [("median", 0.5), ("p95", 0.95)] {
        let row = section.row(
            format!("two stores, {what} wait at {LOAD} requests/s"),
            two_loaded.wait_ms(quantile),
            "ms",
        );
        row.reference("one store", one_loaded.wait_ms(quantile));
    }
    let failed = [&one, &two, &one_loaded, &two_loaded].map(|run| run.missed);
    section.row("misses, of all", failed.iter().sum::<u64>() as f64, "");
    let memory = [&one, &two].map(|run| run.memory).iter().sum::<u64>() as f64;
    let share = memory / (memory + (one.hits + two.hits) as f64);
    section.row("hits from memory, not counted above", share * 100.0, "%");
    Ok(vec![section])
}

/// Measures `stores` stores of `bytes` bytes in total: first without a limit on the rate of requests, and
/// then at the rate [`LOAD`].
fn measured(context: &Context<'_>, stores: u64, bytes: u64) -> io::Result<(Run, Run)> {
    let device = |n| {
        let name = format!("bench-stores-{n}.img");
        Loop::new(context.folder, &name, bytes / stores, 512)
    };
    let devices: Vec<_> = (0..stores).map(device).collect::<io::Result<_>>()?;
    let stop = AtomicBool::new(false);
    let (stores, writers) = open(context, &devices)?;
    thread::scope(|scope| {
        let engine = Arc::clone(&stores.engine);
        let _stop = Stop(&stop, &engine);
        for writer in writers {
            scope.spawn(|| drive(writer, &stop));
        }
        let stores = stores.fill(bytes);
        let _slow = Throttle::new(&devices, &[Limit::Reads(READS)])?;
        let time = context.run_time() * 5;
        Ok((stores.ask(None, time), stores.ask(Some(LOAD), time)))
    })
}

/// Stops the writers' threads when it is dropped, even after an error.
struct Stop<'a>(&'a AtomicBool, &'a Arc<Engine>);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        // Wakes every writer.
        drop(self.1.sync());
    }
}

fn drive(mut writer: Writer, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let turn = writer.turn();
        writer.park(turn);
    }
}

fn open(context: &Context<'_>, devices: &[Loop]) -> io::Result<(Stores, Vec<Writer>)> {
    let other = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let disk = |device: &Loop| {
        let opened = FileDisk::open(&device.device, &OpenOptions::default());
        opened.map(|disk| Arc::new(disk) as Arc<dyn Disk>)
    };
    let disks: Vec<_> = devices
        .iter()
        .map(disk)
        .collect::<Result<_, _>>()
        .map_err(|e| other(&e))?;
    let engine = Engine::new(EngineConfig::new(MEMORY, 1), Arc::clone(context.clock));
    let options = StoreOptions::default();
    engine
        .compare_memberships(&disks, &options)
        .map_err(|e| other(&e))?;
    let opened = disks
        .into_iter()
        .map(|disk| engine.open_store(disk, options.clone()));
    let mut writers: Vec<_> = opened.collect::<Result<_, _>>().map_err(|e| other(&e))?;
    engine.join(&mut writers).map_err(|e| other(&e))?;
    let stores = Stores {
        engine,
        clock: Arc::clone(context.clock),
        objects: 0,
    };
    Ok((stores, writers))
}

impl Stores {
    /// Stores objects until most of the space is used. The number of objects depends only on the total space.
    fn fill(mut self, bytes: u64) -> Self {
        let (stock, fields) = (stock(), usual_fields());
        self.objects = bytes / 100 * 70 / (BODY as u64 + 512);
        for number in 0..self.objects {
            let new = || object(number, body(&stock, number, BODY), fields.clone());
            while self.engine.put(new()).admitted != Admission::Disk {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let ticket = self.engine.sync();
        while !ticket.is_done() {
            thread::sleep(Duration::from_millis(1));
        }
        self
    }

    /// Requests random objects for this time. Each client sends one request after the other, or `rate`
    /// requests are sent per second.
    fn ask(&self, rate: Option<u64>, time: Duration) -> Run {
        let (start, asked) = (self.clock.mono(), AtomicU64::new(0));
        let ends = start + time;
        let runs: Vec<Run> = thread::scope(|scope| {
            // If the rate is given, a request must not wait for a free client. So there are more clients.
            let clients = rate.map_or(CLIENTS, |_| CLIENTS * 4);
            let clients: Vec<_> = (0..clients)
                .map(|n| {
                    let asked = &asked;
                    scope.spawn(move || self.client(n as u64, rate, asked, (start, ends)))
                })
                .collect();
            let done = clients.into_iter().map(|client| client.join());
            done.filter_map(Result::ok).collect()
        });
        let mut all = Run {
            seconds: self.clock.mono().since(start).as_secs_f64(),
            ..Run::default()
        };
        for run in runs {
            all.hits += run.hits;
            all.memory += run.memory;
            all.missed += run.missed;
            all.times.merge(&run.times);
        }
        all
    }

    fn client(
        &self,
        seed: u64,
        rate: Option<u64>,
        asked: &AtomicU64,
        (start, ends): (MonoTime, MonoTime),
    ) -> Run {
        let (mut rng, mut run) = (Rng::new(seed), Run::default());
        loop {
            let mut since = self.clock.mono();
            if let Some(rate) = rate {
                let number = asked.fetch_add(1, Ordering::Relaxed);
                let due = start + Duration::from_secs(1) * number as u32 / rate as u32;
                if due >= ends {
                    return run;
                }
                thread::sleep(due.since(since));
                since = due;
            }
            if since >= ends {
                return run;
            }
            self.ask_one(rng.below(self.objects), since, &mut run);
        }
    }

    fn ask_one(&self, number: u64, since: MonoTime, run: &mut Run) {
        let (key, hash) = keyed(number);
        let plan = match self.engine.reads().lookup(hash, &key) {
            Lookup::Memory(_) => return run.memory += 1,
            Lookup::Miss => return run.missed += 1,
            Lookup::Disk(plan) => plan,
        };
        let mut buf = AlignedBuf::new(plan.len as usize);
        buf.set_len(plan.len as usize);
        let disk = self.engine.fleet().disk(plan.store);
        let read = disk.is_some_and(|disk| disk.read_at(plan.at, &mut buf).is_ok());
        if read && self.engine.reads().finish_read(&plan, &key, buf).is_ok() {
            run.hits += 1;
            run.times
                .add(self.clock.mono().since(since).as_nanos() as u64);
        } else {
            run.missed += 1;
        }
    }
}
