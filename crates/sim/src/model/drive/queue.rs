//! A driver's request queue: background requests wait in it and are ordered by an elevator.

use std::collections::{BTreeMap, HashMap};

use super::{Drive, Request, Schedule};
use crate::model::{SimTime, hash::BuildIdHasher};

/// Owner of a background request (a file, for example). A process can wait for all requests of an owner.
pub type Owner = u64;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: Request,
    arrived: SimTime,
    owner: Option<Owner>,
}

/// A drive with a request queue before it.
///
/// [`Queue::submit`] adds background requests. They leave in the order of the schedule, as fast as the drive
/// serves them. [`Queue::wait`] adds a request and runs the queue until that request is done. The request may
/// overtake waiting requests, or wait behind them. Each call first runs the queue up to the time of the call.
/// Between calls, the queue does not run.
#[derive(Clone, Debug)]
pub struct Queue {
    drive: Drive,
    schedule: Schedule,
    /// Waiting requests by address and arrival; for [`Schedule::Fcfs`] by arrival only.
    waiting: BTreeMap<(u64, u64), Waiting>,
    waiting_bytes: u64,
    owned: HashMap<Owner, u64, BuildIdHasher>,
    sequence: u64,
    rising: bool,
    /// Time at which the last background request was done.
    settled: SimTime,
}

impl Queue {
    /// Creates a queue before `drive`.
    #[must_use]
    pub fn new(drive: Drive, schedule: Schedule) -> Self {
        Self {
            drive,
            schedule,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            owned: HashMap::default(),
            sequence: 0,
            rising: true,
            settled: SimTime::ZERO,
        }
    }

    /// Adds a background request at `now`.
    pub fn submit(&mut self, now: SimTime, request: Request) {
        self.run(now);
        self.insert(Waiting {
            request,
            arrived: now,
            owner: None,
        });
    }

    /// Adds a background request as [`Queue::submit`] does, for an owner. [`Queue::wait_owned`] can wait for
    /// the requests of this owner.
    pub fn submit_owned(&mut self, now: SimTime, request: Request, owner: Owner) {
        self.run(now);
        *self.owned.entry(owner).or_insert(0) += request.len;
        self.insert(Waiting {
            request,
            arrived: now,
            owner: Some(owner),
        });
    }

    /// Adds a request at `now` and returns the time at which it is done.
    pub fn wait(&mut self, now: SimTime, request: Request) -> SimTime {
        self.run(now);
        if self.waiting.is_empty() {
            return self.drive.serve(now, request);
        }
        let key = self.insert(Waiting {
            request,
            arrived: now,
            owner: None,
        });
        loop {
            match self.dispatch() {
                Some((served, end)) if served == key => return end,
                Some(_) => {}
                None => return self.drive.ready_at(),
            }
        }
    }

    /// Adds all `requests` at `now` and returns the time at which the last one is done.
    pub fn batch(&mut self, now: SimTime, requests: &[Request]) -> SimTime {
        self.run(now);
        for request in requests {
            self.insert(Waiting {
                request: *request,
                arrived: now,
                owner: None,
            });
        }
        let mut last = now;
        while let Some((_, end)) = self.dispatch() {
            last = last.max(end);
        }
        last
    }

    /// Runs the queue until at most `bytes` bytes of the owner's requests wait. Returns the time at which
    /// this state is reached.
    pub fn wait_owned(&mut self, now: SimTime, owner: Owner, bytes: u64) -> SimTime {
        self.run(now);
        let mut reached = now;
        while self.owned_bytes(owner) > bytes {
            let Some((_, end)) = self.dispatch() else {
                break;
            };
            reached = reached.max(end);
        }
        reached
    }

    /// Runs the queue until at most `bytes` bytes of background requests wait. Returns the time at which this
    /// state is reached.
    pub fn wait_below(&mut self, now: SimTime, bytes: u64) -> SimTime {
        self.run(now);
        let mut reached = now;
        while self.waiting_bytes > bytes {
            let Some((_, end)) = self.dispatch() else {
                break;
            };
            reached = reached.max(end);
        }
        reached
    }

    /// Bytes of the owner's requests that were not yet sent to the drive.
    #[must_use]
    pub fn owned_bytes(&self, owner: Owner) -> u64 {
        self.owned.get(&owner).copied().unwrap_or(0)
    }

    /// Runs the queue until no request waits. Returns the time at which the last request of the queue is
    /// done, or `now` if this time has passed.
    pub fn drain(&mut self, now: SimTime) -> SimTime {
        while self.dispatch().is_some() {}
        now.max(self.settled)
    }

    /// Bytes of background requests that wait.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Schedule of the queue.
    #[must_use]
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The drive.
    #[must_use]
    pub const fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The drive as a mutable reference, so that a caller can change its statistics.
    pub const fn drive_mut(&mut self) -> &mut Drive {
        &mut self.drive
    }

    /// Sends to the drive all requests that the drive would have begun before `now`.
    pub fn run(&mut self, now: SimTime) {
        while !self.waiting.is_empty() && self.drive.ready_at() < now {
            self.dispatch();
        }
    }

    fn insert(&mut self, waiting: Waiting) -> (u64, u64) {
        self.sequence += 1;
        let at = if self.schedule == Schedule::Fcfs {
            0
        } else {
            waiting.request.at
        };
        self.waiting_bytes += waiting.request.len;
        self.waiting.insert((at, self.sequence), waiting);
        (at, self.sequence)
    }

    /// Serves the request that the schedule prefers; returns its key and end.
    fn dispatch(&mut self) -> Option<((u64, u64), SimTime)> {
        let key = self.choose()?;
        let Waiting {
            request,
            arrived,
            owner,
        } = self.waiting.remove(&key)?;
        self.waiting_bytes -= request.len;
        if let Some(owner) = owner
            && let Some(bytes) = self.owned.get_mut(&owner)
        {
            *bytes -= request.len;
            if *bytes == 0 {
                self.owned.remove(&owner);
            }
        }
        let end = self.drive.serve(arrived, request);
        self.settled = self.settled.max(end);
        Some((key, end))
    }

    fn choose(&mut self) -> Option<(u64, u64)> {
        let lowest = || self.waiting.keys().next().copied();
        if self.schedule == Schedule::Fcfs || self.waiting.len() < 2 {
            return lowest();
        }
        let head = (self.drive.head(), 0);
        let above = self.waiting.range(head..).next().map(|(key, _)| *key);
        // `below` is a closure, because not every schedule needs its value, and this is the hot path of the
        // model.
        let below = || self.waiting.range(..head).next_back().map(|(key, _)| *key);
        match self.schedule {
            Schedule::CLook | Schedule::Fcfs => above.or_else(lowest),
            Schedule::Sstf => match (above, below()) {
                (Some(up), Some(down)) if up.0 - head.0 > head.0 - down.0 => Some(down),
                (Some(up), _) => Some(up),
                (None, down) => down,
            },
            Schedule::Look => {
                let (first, second) = if self.rising {
                    (above, below())
                } else {
                    (below(), above)
                };
                self.rising = first.is_some() == self.rising;
                first.or(second)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(schedule: Schedule, start: u64, places: &[u64]) -> Vec<u64> {
        let mut drive = Drive::named("st15150wc").unwrap();
        let ready = drive.serve(SimTime::ZERO, Request::write(start << 20, 512));
        drive.stats_mut().record(100);
        let mut queue = Queue::new(drive, schedule);
        let requests: Vec<_> = places
            .iter()
            .map(|p| Request::write(p << 20, 512))
            .collect();
        queue.batch(ready, &requests);
        queue
            .drive()
            .stats()
            .trace
            .iter()
            .map(|t| t.at >> 20)
            .collect()
    }

    #[test]
    fn schedules_keep_their_orders() {
        let places = [90, 10, 60, 40, 70];
        assert_eq!(order(Schedule::Fcfs, 50, &places), [90, 10, 60, 40, 70]);
        assert_eq!(order(Schedule::Sstf, 50, &places), [60, 70, 90, 40, 10]);
        assert_eq!(order(Schedule::Look, 50, &places), [60, 70, 90, 40, 10]);
        assert_eq!(order(Schedule::Look, 95, &places), [90, 70, 60, 40, 10]);
        assert_eq!(order(Schedule::CLook, 50, &places), [60, 70, 90, 10, 40]);
    }

    #[test]
    fn look_goes_on_downwards_when_something_comes_in_above() {
        let mut drive = Drive::named("st15150wc").unwrap();
        let ready = drive.serve(SimTime::ZERO, Request::write(55 << 20, 512));
        drive.stats_mut().record(100);
        let mut queue = Queue::new(drive, Schedule::Look);
        for place in [60, 30, 10] {
            queue.submit(ready, Request::write(place << 20, 512));
        }
        queue.wait(
            ready + SimTime::from_millis(12.0),
            Request::write(45 << 20, 512),
        );
        let order: Vec<_> = queue
            .drive()
            .stats()
            .trace
            .iter()
            .map(|t| t.at >> 20)
            .collect();
        assert_eq!(order, [60, 30, 10, 45]);
    }

    #[test]
    fn sorting_a_batch_saves_time() {
        let drive = Drive::named("st15150wc").unwrap();
        let requests: Vec<_> = (0..64u64)
            .map(|i| Request::read((i * 37 % 64) << 25, 8_192))
            .collect();
        let time = |schedule| Queue::new(drive.clone(), schedule).batch(SimTime::ZERO, &requests);
        assert!(time(Schedule::CLook).as_secs() * 1.5 < time(Schedule::Fcfs).as_secs());
        assert!(time(Schedule::Look) <= time(Schedule::CLook));
    }

    #[test]
    fn background_requests_run_in_idle_time_and_delay_others() {
        let drive = Drive::named("st15150wc").unwrap();
        let mut queue = Queue::new(drive, Schedule::CLook);
        for i in 0..10u64 {
            queue.submit_owned(SimTime::ZERO, Request::write(i << 27, 8_192), 7);
        }
        assert_eq!(queue.owned_bytes(7), 81_920);
        let mut busy = queue.clone();
        let soon = busy.wait(SimTime::from_millis(1.0), Request::read(3 << 30, 8_192));
        assert!(
            soon > SimTime::from_millis(60.0),
            "behind what the elevator meets first: {soon}"
        );
        let later = SimTime::from_secs(2.0);
        let end = queue.wait(later, Request::read(3 << 30, 8_192));
        assert!(end - later < SimTime::from_millis(30.0));
        assert_eq!((queue.owned_bytes(7), queue.waiting_bytes()), (0, 0));
    }

    #[test]
    fn an_owner_waits_for_its_own_only_as_far_as_asked() {
        let mut queue = Queue::new(Drive::named("st15150wc").unwrap(), Schedule::Fcfs);
        for i in 0..4u64 {
            queue.submit_owned(SimTime::ZERO, Request::write(i << 27, 8_192), i % 2);
        }
        let half = queue.wait_owned(SimTime::ZERO, 1, 8_192);
        assert_eq!((queue.owned_bytes(0), queue.owned_bytes(1)), (8_192, 8_192));
        let third = queue.wait_below(SimTime::ZERO, 8_192);
        assert!(third > half && queue.waiting_bytes() == 8_192);
        assert!(queue.drain(SimTime::ZERO) > third);
    }
}
