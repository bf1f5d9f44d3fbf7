//! Three measurements: the quotas of users, the shares of users who send requests as fast as Foxy answers,
//! and the shares of users who together request more than one common limit permits.

use std::time::Duration;

use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep};

use super::Row;
use super::fixture::{Client, Fixture, LARGE, SMALL, USERS, right};

/// Permitted requests per second of a user.
const REQUESTS: u64 = 50;
/// Permitted bytes per second of a user.
const BYTES: u64 = 2 << 20;
/// Configuration for quotas of users.
pub(super) const QUOTA: &str =
    "[[rate]]\nper = \"user\"\nrequests = 50\nburst = 5\nbytes = \"2MiB\"\n";
/// Configuration for one limit that all users share.
pub(super) const SITE: &str = "[[rate]]\nper = \"site\"\nsite = [\"forward\"]\nbytes = \"64MiB\"\n";
/// Time from the first request to the beginning of a measurement. In this time, the permitted burst is used
/// up.
const WARM: Duration = Duration::from_secs(3);
/// Pause before the next request of a user who has reached the limit.
const PAUSE: Duration = Duration::from_millis(2);
/// The least value of Jain's index that counts as fair.
const FAIR: f64 = 0.95;

/// Measures the shares of 50 users who send small requests, each without a pause.
pub(super) async fn of_requests(fixture: &Fixture, length: Duration) -> Result<Vec<Row>, String> {
    let got = together(fixture, ("/small", SMALL), length).await?;
    Ok(vec![fair("Jain index of requests", &got, "requests")])
}

/// Measures the shares of 50 users who send requests for a large object under one limit of bytes per second.
pub(super) async fn of_bytes(fixture: &Fixture, length: Duration) -> Result<Vec<Row>, String> {
    let got = together(fixture, ("/large", LARGE), length).await?;
    Ok(vec![fair("Jain index of bytes", &got, "MiB")])
}

fn fair(name: &'static str, got: &[u64], unit: &str) -> Row {
    let index = jain(got);
    let (least, most) = (got.iter().min(), got.iter().max());
    let (least, most) = (least.unwrap_or(&0), most.unwrap_or(&0));
    Row::judged(
        name,
        format!("{index:.4}, from {least} to {most} {unit}"),
        "more than 0.95",
        index > FAIR,
    )
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one of n users has everything.
fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    match squares > 0.0 {
        true => sum * sum / (shares.len() as f64 * squares),
        false => 0.0,
    }
}

/// Returns the number of objects that each user gets while all users send requests without a pause.
async fn together(
    fixture: &Fixture,
    object: (&'static str, usize),
    length: Duration,
) -> Result<Vec<u64>, String> {
    let mut first = fixture.client();
    first.take(object, Some(&right("user0"))).await?;
    let all = async {
        let mut clients = Vec::new();
        for user in 0..USERS {
            let (mut client, login) = (fixture.client(), right(&format!("user{user}")));
            client.take(("/small", SMALL), Some(&login)).await?;
            clients.push((client, login));
        }
        let begun = Instant::now();
        let tasks: Vec<JoinHandle<Result<u64, String>>> = clients
            .into_iter()
            .map(|(mut client, login)| {
                spawn_local(async move {
                    let mut got = 0;
                    while begun.elapsed() < length {
                        client.take(object, Some(&login)).await?;
                        got += 1;
                    }
                    Ok(got)
                })
            })
            .collect();
        let mut got = Vec::new();
        for task in tasks {
            got.push(task.await.map_err(|error| error.to_string())??);
        }
        Ok(got)
    };
    LocalSet::new().run_until(all).await
}

/// Measures the requests that one user gets and the bytes that another user gets. Both send requests
/// without a pause.
pub(super) async fn quotas(fixture: &Fixture, length: Duration) -> Result<Vec<Row>, String> {
    let (requests, bytes) = tokio::join!(
        requests(fixture.client(), length),
        bytes(fixture.client(), length)
    );
    Ok(vec![
        row("requests in a second", requests?, REQUESTS as f64),
        row("bytes in a second", bytes?, BYTES as f64),
    ])
}

/// Judges a rate. Only a rate that is too high is a failure. A rate that is too low may have another cause
/// than Foxy: perhaps the machine had no time for the client.
fn row(name: &'static str, rate: f64, wanted: f64) -> Row {
    let off = (rate / wanted - 1.0) * 100.0;
    let text = format!("{rate:.1}, quota {wanted}: {off:+.2} %");
    Row::judged(name, text, "within 5 %; more is judged", off <= 5.0)
}

async fn requests(mut client: Client, length: Duration) -> Result<f64, String> {
    let login = right("user1");
    let (mut begun, mut got) = (None, 0_u64);
    let first = Instant::now();
    loop {
        match client.get("/small", Some(&login)).await? {
            (200, SMALL) => got += 1,
            (429, _) => sleep(PAUSE).await,
            (status, _) => return Err(format!("/small gave {status} at a quota")),
        }
        match begun {
            None if first.elapsed() > WARM => (begun, got) = (Some(Instant::now()), 0),
            Some(begun) if begun.elapsed() > length => {
                return Ok(got as f64 / begun.elapsed().as_secs_f64());
            }
            _ => {}
        }
    }
}

async fn bytes(mut client: Client, length: Duration) -> Result<f64, String> {
    let login = right("user2");
    let first = Instant::now();
    while first.elapsed() < WARM {
        large(&mut client, &login).await?;
    }
    let (begun, mut got) = (Instant::now(), 0);
    while begun.elapsed() < length {
        got += large(&mut client, &login).await?;
    }
    Ok(got as f64 / begun.elapsed().as_secs_f64())
}

/// Requests the large object. Returns the number of bytes that the user gets: 0 if the quota is used up.
async fn large(client: &mut Client, login: &str) -> Result<usize, String> {
    match client.get("/large", Some(login)).await? {
        (200, LARGE) => Ok(LARGE),
        (429, _) => {
            sleep(PAUSE).await;
            Ok(0)
        }
        (status, _) => Err(format!("/large gave {status} at a quota")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_one_share_is_not() {
        assert!((jain(&[7; 50]) - 1.0).abs() < 1e-9);
        let mut one = [0; 50];
        one[3] = 9;
        assert!((jain(&one) - 0.02).abs() < 1e-9);
        assert!(jain(&[0; 50]) < FAIR && jain(&[]) < FAIR);
        // One half of the users has three times as much as the other half.
        let half: Vec<u64> = (0..50).map(|user| 1 + 2 * (user % 2)).collect();
        assert!((jain(&half) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn a_quota_is_exceeded_by_more_than_five_percent() {
        for (rate, met) in [(100.0, true), (104.9, true), (106.0, false), (50.0, true)] {
            assert_eq!(row("", rate, 100.0).met, Some(met), "{rate}");
        }
    }
}
