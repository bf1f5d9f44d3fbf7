//! Reads 8 KiB at random positions, at several queue depths, through the ring (io_uring) and through the
//! thread pool. Prints the rate and the CPU time per read.
//!
//! `cargo run --release --example disk_qd -- FILE [SECONDS [SIZE_MIB]]` makes FILE and prints a
//! line per run. FILE is written once, so that reads find allocated blocks. The CPU time is that of
//! the whole process. To compare with fio:
//! `--ioengine=io_uring --rw=randread --bs=8k --direct=1 --iodepth=N`.

use foxy_base::{Clock, Rng, SystemClock};
use foxy_disk::{AlignedBuf, Backend, Disk, FileDisk, Op, OpenOptions, Queue};
use std::error::Error;
use std::time::Duration;

const READ: usize = 8192;
const FILL: usize = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args
        .next()
        .ok_or("usage: disk_qd FILE [SECONDS [SIZE_MIB]]")?;
    let span = Duration::from_secs(args.next().map_or(Ok(3), |s| s.parse())?);
    let len = args.next().map_or(Ok(2048), |s| s.parse::<u64>())? << 20;
    let options = OpenOptions {
        create_len: Some(len),
        ..OpenOptions::default()
    };
    let disk = FileDisk::open(&path, &options)?;
    println!("{}", disk.describe());
    if disk.report().created {
        fill(&disk)?;
    }
    drop(disk);
    println!("backend  depth   reads/s  CPU us/read  submits/read  waits/read");
    for backend in [Backend::Ring, Backend::Pool] {
        let disk = FileDisk::open(
            &path,
            &OpenOptions {
                backend,
                ..options.clone()
            },
        )?;
        for depth in [1, 8, 32] {
            for wake in ["wait", "epoll"] {
                run(&disk, backend, depth, span, wake == "epoll")?;
            }
        }
    }
    Ok(())
}

fn fill(disk: &FileDisk) -> Result<(), Box<dyn Error>> {
    let mut queue = disk.open_queue(2)?;
    let mut buf = AlignedBuf::huge(FILL);
    let mut rng = Rng::new(1);
    buf.chunks_mut(8)
        .for_each(|c| c.copy_from_slice(&rng.next_u64().to_le_bytes()));
    let mut done = Vec::new();
    for at in (0..disk.len() / FILL as u64).map(|n| n * FILL as u64) {
        queue.submit(Op::write(0, at, FILL, buf));
        while done.is_empty() {
            queue.wait(Duration::from_secs(10))?;
            queue.reap(&mut done);
        }
        let completion = done.remove(0);
        completion.result?;
        buf = completion.buf.ok_or("no buffer")?;
    }
    Ok(disk.flush()?)
}

fn run(
    disk: &FileDisk,
    backend: Backend,
    depth: u32,
    span: Duration,
    epoll: bool,
) -> Result<(), Box<dyn Error>> {
    let mut queue = disk.open_queue(depth)?;
    let mut rng = Rng::new(7);
    let places = disk.len() / READ as u64;
    for n in 0..u64::from(depth) {
        queue.submit(Op::read(
            n,
            rng.below(places) * READ as u64,
            READ,
            AlignedBuf::new(READ),
        ));
    }
    let clock = SystemClock::default();
    let (start, cpu) = (clock.mono(), cpu_time());
    let mut sleeper = if epoll {
        Some(Sleeper::new(&*queue)?)
    } else {
        None
    };
    let (mut done, mut count) = (Vec::new(), 0u64);
    while clock.mono().since(start) < span {
        match &mut sleeper {
            Some(sleeper) => {
                queue.flush_submissions()?;
                sleeper.sleep()?;
            }
            None => drop(queue.wait(Duration::from_secs(10))?),
        }
        queue.reap(&mut done);
        for completion in done.drain(..) {
            completion.result?;
            count += 1;
            let buf = completion.buf.ok_or("no buffer")?;
            let at = rng.below(places) * READ as u64;
            queue.submit(Op::read(completion.token, at, READ, buf));
        }
    }
    let wall = clock.mono().since(start).as_secs_f64();
    let used = (cpu_time() - cpu).as_secs_f64();
    let (stats, reads) = (queue.stats(), count as f64);
    println!(
        "{:8} {depth:5} {:9.0}  {:11.2}  {:12.3}  {:10.3}  {}",
        format!("{backend:?}"),
        reads / wall,
        used * 1e6 / reads,
        stats.submit_calls as f64 / reads,
        stats.wait_calls as f64 / reads,
        if epoll { "epoll" } else { "wait" },
    );
    Ok(())
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Sleeps in epoll on a queue's descriptor, as a network thread does.
struct Sleeper {
    set: std::os::fd::OwnedFd,
    events: Vec<rustix::event::epoll::Event>,
}

impl Sleeper {
    fn new(queue: &dyn Queue) -> Result<Self, Box<dyn Error>> {
        use rustix::event::epoll;
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let fd = queue.event_fd().ok_or("no descriptor")?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&set, fd, epoll::EventData::new_u64(0), flags)?;
        Ok(Self {
            set,
            events: Vec::with_capacity(4),
        })
    }

    fn sleep(&mut self) -> Result<(), Box<dyn Error>> {
        use rustix::event::epoll;
        self.events.clear();
        match epoll::wait(
            &self.set,
            rustix::buffer::spare_capacity(&mut self.events),
            None,
        ) {
            // The ring's work in the background may interrupt the call; then nothing has completed
            // yet.
            Err(rustix::io::Errno::INTR) => {}
            other => drop(other?),
        }
        Ok(())
    }
}
