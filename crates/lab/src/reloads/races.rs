//! Races: reloads while a fetch runs or after its answer was stored. If the new rules forbid an answer that
//! was made under the old rules, no later request may get it.

mod origin;
mod table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use self::origin::Held;
use self::table::{Late, Places, RACES, Race};
use super::Findings;
use super::fixture::{Fixture, TIMEOUT, first_line, listener};
use crate::kit::{Answer, ClientRequest, Progress, Target, free_port};

/// Longest time for the answer to a request that the origin does not hold.
const SOON: Duration = Duration::from_secs(10);

/// State of the answer under the old rules at the moment of the reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// The origin has not answered yet.
    Head,
    /// A part of the body was sent to the client.
    Body,
    /// The answer is stored.
    Stored,
}

impl Point {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Body => "body",
            Self::Stored => "stored",
        }
    }
}

/// Runs every race of the table.
pub(super) async fn run(
    program: &Path,
    folder: &Path,
    findings: &mut Findings,
) -> Result<(), String> {
    let (one, two) = (listener().await?, listener().await?);
    let ports = (free_port()?, free_port()?, free_port()?);
    let places = Places {
        admin: ports.0,
        site: ports.1,
        forward: ports.2,
        one: one.1,
        two: two.1,
        store: folder.join("store").display().to_string(),
    };
    let one = Held::start("one", one.0);
    let _two = Held::start("two", two.0);
    let text = (RACES[0].before)(&places);
    let fixture = Fixture::start(program, folder, &text, (places.site, places.admin))?;
    let (mut count, mut number) = (0, 0);
    for race in &RACES {
        for point in [Point::Head, Point::Body, Point::Stored] {
            number += 1;
            if point == Point::Stored && !race.stored {
                continue;
            }
            count += 1;
            let path = format!("/{}/{}/{number}", point.as_str(), race.path);
            let told = run_race(race, point, path, (&fixture, &places, &one)).await?;
            for fault in told {
                findings.fault(format!("race {} ({}): {fault}", race.name, point.as_str()));
            }
        }
    }
    findings.result(format!(
        "races           {count}, of {} changes",
        RACES.len()
    ));
    Ok(())
}

/// Runs one race. Returns descriptions of the faults.
async fn run_race(
    race: &Race,
    point: Point,
    path: String,
    (fixture, places, origin): (&Fixture, &Places, &Arc<Held>),
) -> Result<Vec<String>, String> {
    let mut faults = Vec::new();
    fixture.reload(&(race.before)(places)).await?.ok();
    let target = race.target(places);
    let request = |kind: &str| ClientRequest::get(path.clone()).with("X-Kind", kind);
    origin.hold();
    let first = First::start(request("a"), target.clone());
    match point {
        Point::Stored => first.ended().await?,
        Point::Head => origin.is_held().await?,
        Point::Body => {
            origin.is_held().await?;
            first.has_head().await?;
        }
    }
    fixture.apply(&(race.after)(places)).await?;
    let second = request("b").send(&target, SOON, None).await;
    origin.release();
    let first = first.answer().await;
    let first =
        first.map_err(|error| format!("race {} ({}): {error}", race.name, point.as_str()))?;
    let old = first_line(&first);
    if !(first.whole && first.head.status() == 200 && old.starts_with("one ")) {
        faults.push(format!("the request of before got {:?}, {old}", first.head));
    }
    // The old fetch has ended now. The same request is sent once more.
    let third = request("b").send(&target, SOON, None).await;
    for (name, answer) in [("during", second), ("after", third)] {
        match answer {
            Err(error) => faults.push(format!("{name} the old fetch: {error}")),
            Ok(answer) => faults.extend(wrong(&race.late, &answer, &old).map(|why| {
                format!(
                    "{name} the old fetch: {why}: {} {}",
                    answer.head.start,
                    first_line(&answer)
                )
            })),
        }
    }
    Ok(faults)
}

/// Reason why an answer under the new rules is wrong; `None` if it is correct.
fn wrong(late: &Late, answer: &Answer, old: &str) -> Option<&'static str> {
    let status = answer.head.status();
    let new = first_line(answer);
    match late {
        Late::Refused => (!matches!(status, 403 | 404 | 421)).then_some("it is not refused"),
        Late::Has(part) => match (status, answer.whole) {
            (200, true) if new == old => Some("it is the old answer"),
            (200, true) if !new.contains(part) => Some("it is not as the new rules say"),
            (200, true) => None,
            _ => Some("it failed"),
        },
    }
}

/// The request that begins under the old rules.
struct First {
    task: JoinHandle<Result<Answer, String>>,
    progress: watch::Receiver<Progress>,
}

impl First {
    fn start(request: ClientRequest, target: Target) -> Self {
        let (sender, progress) = watch::channel(Progress::Before);
        let send = async move { request.send(&target, TIMEOUT, Some(sender)).await };
        Self {
            task: tokio::spawn(send),
            progress,
        }
    }

    async fn has_head(&self) -> Result<(), String> {
        let mut progress = self.progress.clone();
        let seen = progress.wait_for(|at| *at == Progress::Head).await;
        seen.map(drop).map_err(|_| "no head came".to_owned())
    }

    async fn ended(&self) -> Result<(), String> {
        for _ in 0..TIMEOUT.as_millis() {
            if self.task.is_finished() {
                // Foxy stores the complete object a moment after the client has received it.
                sleep(Duration::from_millis(20)).await;
                return Ok(());
            }
            sleep(Duration::from_millis(1)).await;
        }
        Err("no answer came".to_owned())
    }

    async fn answer(self) -> Result<Answer, String> {
        self.task.await.map_err(|error| error.to_string())?
    }
}
