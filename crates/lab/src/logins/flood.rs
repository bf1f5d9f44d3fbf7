//! A flood of wrong passwords. During the flood, other users send requests. Also during the flood, users log
//! in for the first time from the attacker's address.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use foxy_bench::Histogram;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::kit::runtime;

use super::Row;
use super::cpu::Cpu;
use super::fixture::{Client, Fixture, SMALL, THREADS, USERS, VICTIM, login, right};

/// Number of known users: these users have logged in before the measurement. Each user has one connection.
const KNOWN: usize = 4;
/// Time between two requests of one known user.
const INTERVAL: Duration = Duration::from_millis(4);
/// Greatest number of attempts of a user who logs in for the first time.
const TRIES: u32 = 100;
/// Pause after a failed attempt of a user who logs in for the first time.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn run(
    fixture: &Fixture,
    connections: usize,
    length: Duration,
) -> Result<Vec<Row>, String> {
    LocalSet::new()
        .run_until(measure(fixture, connections, length))
        .await
}

/// The results of the flood.
struct Seen {
    /// Number of answers to wrong passwords, by status.
    answers: BTreeMap<u16, u64>,
    /// Number of requests of known users before the flood, and the 99th percentile of their times.
    quiet: (u64, Duration),
    /// Number of requests of known users during the flood, and the 99th percentile of their times.
    busy: (u64, Duration),
    /// Number of attempts of all users who log in for the first time during the flood, and the longest time
    /// until such a user was logged in.
    late: (u32, Duration),
    used: Cpu,
    lasted: f64,
}

async fn measure(
    fixture: &Fixture,
    connections: usize,
    length: Duration,
) -> Result<Vec<Row>, String> {
    // Each user logs in before the measurement. Otherwise the times would include the password checks.
    for user in 0..KNOWN {
        let login = right(&format!("user{user}"));
        let mut client = fixture.client();
        client.take(("/small", SMALL), Some(&login)).await?;
    }
    let quiet = others(fixture, length).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let clients = (0..connections).map(|_| fixture.client()).collect();
    let flood = flood(clients, Arc::clone(&stop));
    let (begun, before) = (Instant::now(), Cpu::of(fixture.pid())?);
    let (busy, late) = tokio::join!(others(fixture, length), late(fixture));
    let used = Cpu::of(fixture.pid())?.since(before);
    let lasted = begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let answers = flood.join().map_err(|_| "the flood ended early")??;
    Ok(rows(&Seen {
        answers,
        quiet,
        busy: busy?,
        late: late?,
        used,
        lasted,
    }))
}

fn rows(seen: &Seen) -> Vec<Row> {
    let (answers, (tries, longest)) = (&seen.answers, seen.late);
    let let_in = answers.keys().any(|status| !matches!(status, 407 | 503));
    let share = |time: Duration| time.as_secs_f64() / seen.lasted * 100.0;
    vec![
        Row::judged(
            "answers to wrong passwords",
            format!("{answers:?}"),
            "407 or 503",
            !let_in && answers.get(&407).is_some_and(|count| *count > 0),
        ),
        Row::shown(
            "known users",
            format!("{} requests, all right", seen.quiet.0 + seen.busy.0),
            "another answer ends the run",
        ),
        Row::shown(
            "first logins behind the same address",
            format!("{USERS} of {USERS} in {tries} attempts"),
            "a lock-out ends the run",
        ),
        Row::shown(
            "slowest of these",
            format!("{} ms", longest.as_millis()),
            "-",
        ),
        Row::shown(
            "p99 of known users",
            format!(
                "{:.2} ms, quiet {:.2} ms",
                ms(seen.busy.1),
                ms(seen.quiet.1)
            ),
            "less than twice",
        ),
        Row::judged(
            "threads that check",
            seen.used.threads.to_string(),
            "1",
            seen.used.threads == THREADS,
        ),
        Row::shown(
            "CPU of checks",
            format!(
                "{:.0} % of a core; all of Foxy {:.0} %",
                share(seen.used.checks),
                share(seen.used.all)
            ),
            "100 % for each thread",
        ),
    ]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Sends requests of known users at an even rate. Returns the number of these requests, and the 99th
/// percentile of their times.
async fn others(fixture: &Fixture, length: Duration) -> Result<(u64, Duration), String> {
    let tasks: Vec<JoinHandle<Result<Histogram, String>>> = (0..KNOWN)
        .map(|user| {
            let (mut client, login) = (fixture.client(), right(&format!("user{user}")));
            spawn_local(async move {
                let (begun, mut times) = (Instant::now(), Histogram::default());
                let mut ticks = interval(INTERVAL);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                while begun.elapsed() < length {
                    ticks.tick().await;
                    let asked = Instant::now();
                    client.take(("/small", SMALL), Some(&login)).await?;
                    times.add(asked.elapsed().as_nanos() as u64);
                }
                Ok(times)
            })
        })
        .collect();
    let (mut all, mut count) = (Histogram::default(), 0);
    for task in tasks {
        let times = task.await.map_err(|error| error.to_string())??;
        count += times.count();
        all.merge(&times);
    }
    Ok((count, all.quantile(0.99)))
}

/// Number of answers by status.
type Answers = BTreeMap<u16, u64>;

/// Sends wrong passwords without a pause. All passwords differ. Some are for an existing user, and some are
/// for unknown names. The flood runs on its own thread. Otherwise its work would delay the other users'
/// requests and distort their times.
fn flood(
    clients: Vec<Client>,
    stop: Arc<AtomicBool>,
) -> std::thread::JoinHandle<Result<Answers, String>> {
    let one = async |(number, mut client): (usize, Client), stop: &AtomicBool| {
        let mut answers = Answers::new();
        for attempt in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let user = match attempt % 2 {
                0 => VICTIM.to_owned(),
                _ => format!("nobody{number}-{attempt}"),
            };
            let wrong = login(&user, &format!("wrong{number}-{attempt}"));
            let (status, _) = client.get("/small", Some(&wrong)).await?;
            *answers.entry(status).or_default() += 1;
        }
        Ok::<_, String>(answers)
    };
    std::thread::spawn(move || {
        let all = async {
            let tasks: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|client| {
                    let stop = Arc::clone(&stop);
                    spawn_local(async move { one(client, &stop).await })
                })
                .collect();
            let mut answers = Answers::new();
            for task in tasks {
                for (status, count) in task.await.map_err(|error| error.to_string())?? {
                    *answers.entry(status).or_default() += count;
                }
            }
            Ok(answers)
        };
        let runtime = runtime()?;
        runtime.block_on(LocalSet::new().run_until(all))
    })
}

/// Logs users in during the flood, one after the other. Returns the number of their attempts, and the longest
/// time until a user was logged in.
async fn late(fixture: &Fixture) -> Result<(u32, Duration), String> {
    let (mut attempts, mut longest) = (0, Duration::ZERO);
    for user in 0..USERS {
        let (mut client, begun) = (fixture.client(), Instant::now());
        let (login, before) = (right(&format!("late{user}")), attempts);
        loop {
            attempts += 1;
            match client.get("/small", Some(&login)).await? {
                (200, SMALL) => break,
                (503, _) if attempts - before < TRIES => sleep(PAUSE).await,
                (status, _) => return Err(format!("late{user} is locked out: {status}")),
            }
        }
        longest = longest.max(begun.elapsed());
    }
    Ok((attempts, longest))
}
