//! Threads that check passwords, and the queues of waiting checks.
//!
//! There are two queues: one for names that have a password, and one for names that no user has. The threads
//! take checks from both queues alternately, so a flood of invented names does not keep users out. Only a few
//! checks of one name may wait: there is a limit for each client, and a limit for all clients together. So a
//! flood of checks of one name does not keep out users with other names. Requests with the same user and
//! password share one check.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordVerifier};
use foxy_base::rule;
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::helper::Child;
use super::{Busy, LoginsConfig};

/// Largest number of checks of one client for one name that are queued or under way.
const OF_CLIENT: usize = 2;
/// Largest number of checks of all clients for one name that are queued or under way.
const OF_NAME: usize = 8;
/// Largest number of requests that wait for one check.
const SHARE: usize = 64;
/// The hash that is checked for names that no user has. This check takes as long as a check of a real hash.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQxMjM0NTY3OA$\
                      SqlVijFGiPG+935vDSGEsA";

/// A check of a password.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) key: u128,
    pub(super) user: String,
    pub(super) password: Vec<u8>,
    /// The address under which the client is counted.
    pub(super) client: Option<IpAddr>,
}

#[derive(Debug, Default)]
struct State {
    /// The first queue contains the checks of names that have a password. If there is a helper, the first
    /// queue contains the checks of all names. The second queue contains the checks of other names.
    queues: [VecDeque<Job>; 2],
    /// Index of the queue that is served next.
    turn: usize,
    /// Requests that wait for a check, by the key of the check. The check is queued or under way.
    waiting: HashMap<u128, Vec<oneshot::Sender<bool>>>,
    /// Numbers of checks that are queued or under way, by client and name.
    of_client: HashMap<(Option<IpAddr>, String), usize>,
    /// Numbers of checks that are queued or under way, by name.
    of_name: HashMap<String, usize>,
    threads: bool,
    end: bool,
}

#[derive(Debug)]
struct Inner {
    config: Arc<LoginsConfig>,
    state: Mutex<State>,
    more: Condvar,
}

/// The threads and their queues. The threads start with the first check, and end when the verifier is
/// dropped.
#[derive(Debug)]
pub(super) struct Verifier(Arc<Inner>);

impl Drop for Verifier {
    fn drop(&mut self) {
        self.0.state.lock().end = true;
        self.0.more.notify_all();
    }
}

impl Verifier {
    pub(super) fn new(config: &Arc<LoginsConfig>) -> Self {
        Self(Arc::new(Inner {
            config: Arc::clone(config),
            state: Mutex::default(),
            more: Condvar::new(),
        }))
    }

    /// Waits for the result of the check.
    pub(super) async fn verify(&self, job: Job) -> Result<bool, Busy> {
        let answer = self.queue(job)?;
        answer.await.map_err(|_| Busy)
    }

    fn queue(&self, job: Job) -> Result<oneshot::Receiver<bool>, Busy> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.state.lock();
        if let Some(others) = state.waiting.get_mut(&job.key) {
            others.retain(|other| !other.is_closed());
            if others.len() >= SHARE {
                return Err(Busy);
            }
            others.push(sender);
            return Ok(receiver);
        }
        let config = &self.0.config;
        let known = config.passwords.contains_key(&job.user) || config.helper.is_some();
        let queue = usize::from(!known);
        let most = [config.queue, config.queue.div_ceil(8)][queue];
        let client = (job.client, job.user.clone());
        let full = state.queues[queue].len() >= most
            || state.of_client.get(&client).copied().unwrap_or(0) >= OF_CLIENT
            || state.of_name.get(&job.user).copied().unwrap_or(0) >= OF_NAME;
        if full {
            return Err(Busy);
        }
        *state.of_client.entry(client).or_insert(0) += 1;
        *state.of_name.entry(job.user.clone()).or_insert(0) += 1;
        state.waiting.insert(job.key, vec![sender]);
        state.queues[queue].push_back(job);
        if !std::mem::replace(&mut state.threads, true) {
            for number in 0..config.threads.max(1) {
                let inner = Arc::clone(&self.0);
                let named = thread::Builder::new().name(format!("foxy-login-{number}"));
                // An error is ignored. If no thread can be started, the check waits until its client gives
                // up.
                let _ = named.spawn(move || inner.run());
            }
        }
        drop(state);
        self.0.more.notify_one();
        Ok(receiver)
    }
}

impl Inner {
    fn run(&self) {
        let mut child = None;
        loop {
            let mut state = self.state.lock();
            let job = loop {
                if state.end {
                    return;
                }
                if let Some(job) = state.next() {
                    break job;
                }
                self.more.wait(&mut state);
            };
            drop(state);
            let right = self.is_right(&job, &mut child);
            self.state.lock().done(&job, right);
        }
    }

    fn is_right(&self, job: &Job, child: &mut Option<Child>) -> bool {
        match (self.config.passwords.get(&job.user), &self.config.helper) {
            (Some(hash), _) => fits(hash, &job.password),
            (None, Some(helper)) => Child::ask(child, helper, &job.user, &job.password),
            (None, None) => {
                let _ = fits(NOBODY, &job.password);
                false
            }
        }
    }
}

impl State {
    fn next(&mut self) -> Option<Job> {
        for _ in 0..2 {
            let queue = self.turn;
            self.turn = 1 - queue;
            if let Some(job) = self.queues[queue].pop_front() {
                return Some(job);
            }
        }
        None
    }

    fn done(&mut self, job: &Job, right: bool) {
        for waits in self.waiting.remove(&job.key).unwrap_or_default() {
            let _ = waits.send(right);
        }
        let client = (job.client, job.user.clone());
        if let Some(count) = self.of_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.of_client.remove(&client);
            }
        }
        if let Some(count) = self.of_name.get_mut(&job.user) {
            *count -= 1;
            if *count == 0 {
                self.of_name.remove(&job.user);
            }
        }
    }
}

/// Returns true if the password has this hash.
fn fits(hash: &str, password: &[u8]) -> bool {
    if hash.starts_with("$2") {
        let right = bcrypt::verify(password, hash).unwrap_or(false);
        return rule!(
            "login: a password is compared with its bcrypt hash",
            right,
            true
        );
    }
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    let right = Argon2::default().verify_password(password, &hash).is_ok();
    rule!(
        "login: a password is compared with its argon2 hash",
        right,
        true
    )
}
