//! Processor time of a request with a login that Foxy has already checked, compared with a request without a
//! login.

use std::time::Duration;

use super::Row;
use super::cpu::Cpu;
use super::fixture::{Fixture, SMALL, right};

/// Number of rounds for each kind of request. The rounds of the two kinds alternate. Of each kind, only the
/// round with the least processor time counts, because other processes disturbed it least.
const ROUNDS: u64 = 10;

pub(super) async fn run(fixture: &Fixture, requests: u64) -> Result<Vec<Row>, String> {
    let (mut client, login) = (fixture.client(), right("user0"));
    // Because of this request, Foxy checks the login and stores the object.
    client.take(("/small", SMALL), Some(&login)).await?;
    let each = (requests / ROUNDS).max(1);
    let mut least = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (least, login) in least.iter_mut().zip([None, Some(&login[..])]) {
            let before = Cpu::of(fixture.pid())?;
            for _ in 0..each {
                client.take(("/small", SMALL), login).await?;
            }
            *least = (*least).min(Cpu::of(fixture.pid())?.since(before).all);
        }
    }
    let micros = least.map(|time| time.as_secs_f64() * 1e6 / each as f64);
    let text = format!(
        "{:.2} us, without {:.2} us: {:+.2} us",
        micros[1],
        micros[0],
        micros[1] - micros[0]
    );
    let right = format!("{} requests, all right", each * ROUNDS * 2);
    Ok(vec![
        Row::shown("answers", right, "another one ends the run"),
        Row::shown(
            "CPU of a hit with a known login",
            text,
            "less than 2 us more",
        ),
    ])
}
