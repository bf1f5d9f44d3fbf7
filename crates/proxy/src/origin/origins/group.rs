//! The origins of one site: the choice of an origin, and the effects of its answer. This module does no I/O
//! and reads no clock.

use foxy_base::MonoTime;

use super::balance::{Balance, Candidate, Draw, Owed};
use super::budget::Budget;
use super::health::{Health, HealthRules, HealthState};
use super::record::{Recently, Record};

/// Largest number of origins of a site.
pub const ORIGINS_MAX: usize = 64;

/// The set of origins that a request has been sent to, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tried(u64);

impl Tried {
    fn has(self, at: usize) -> bool {
        self.0 >> at & 1 == 1
    }

    pub(super) fn with(self, at: usize) -> Self {
        Self(self.0 | 1 << at)
    }

    fn is_first(self) -> bool {
        self.0 == 0
    }
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    /// The answer has a status below 500.
    Good,
    /// The answer has a status of 500 or above.
    Error,
    /// There was no answer.
    Failed,
}

/// Reason why no origin is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nobody {
    /// All connections of the origins that may be asked are in use.
    Busy,
    /// There is no other origin, or no retry left.
    NoOther,
}

/// Counts of an origin since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OriginCounts {
    /// Requests that were sent to the origin, checks not included.
    pub requests: u64,
    /// Requests without an answer, or with an answer of status 500 or above.
    pub failures: u64,
    /// Number of times that the origin was left out of the choice because requests failed.
    pub ejections: u64,
}

#[derive(Debug)]
struct Member {
    weight: u32,
    /// Largest number of requests under way.
    limit: u32,
    outstanding: u32,
    health: Health,
    record: Record,
    counts: OriginCounts,
}

/// The origins of a site.
#[derive(Debug)]
pub(super) struct Group {
    rules: HealthRules,
    balance: Balance,
    members: Vec<Member>,
    owed: Owed,
    budget: Budget,
    retries: u64,
}

impl Group {
    /// Makes a group of origins with these weights and limits.
    pub(super) fn new(
        rules: HealthRules,
        balance: Balance,
        members: impl Iterator<Item = (u32, u32)>,
    ) -> Self {
        let member = |(weight, limit): (u32, u32)| Member {
            weight: weight.max(1),
            limit,
            outstanding: 0,
            health: Health::default(),
            record: Record::default(),
            counts: OriginCounts::default(),
        };
        let members: Vec<_> = members.take(ORIGINS_MAX).map(member).collect();
        Self {
            owed: vec![0.0; members.len()],
            rules,
            balance,
            members,
            budget: Budget::default(),
            retries: 0,
        }
    }

    /// Chooses an origin for a request, and counts the request as under way at this origin. Every attempt
    /// after the first is a retry. A retry needs another healthy origin, and spends one retry of the budget.
    pub(super) fn choose(
        &mut self,
        now: MonoTime,
        tried: Tried,
        draw: Draw,
    ) -> std::result::Result<usize, Nobody> {
        let any_in = (0..self.members.len()).any(|at| self.is_in(at, now));
        // If all origins are down, the first attempt may go to any origin, because each origin may have
        // recovered. A retry is not sent, because it would only increase the load of these origins.
        let open = |at: &usize| self.is_in(*at, now) || (!any_in && tried.is_first());
        let fit: Vec<usize> = (0..self.members.len())
            .filter(|at| !tried.has(*at))
            .filter(open)
            .collect();
        if fit.is_empty() {
            return Err(Nobody::NoOther);
        }
        let room = |at: &&usize| self.members[**at].outstanding < self.members[**at].limit;
        let mut free: Vec<usize> = fit.iter().filter(room).copied().collect();
        // If a retry fails, the request may need a second retry from the budget. So a retry goes to an origin
        // whose last answer was good, if there is such an origin.
        let well = |at: &usize| !self.members[*at].health.fails();
        if !tried.is_first() && free.iter().any(well) {
            free.retain(well);
        }
        let candidates: Vec<_> = free.iter().map(|at| self.candidate(*at, now)).collect();
        if candidates.is_empty() {
            return Err(Nobody::Busy);
        }
        if !tried.is_first() {
            if !self.budget.spend() {
                return Err(Nobody::NoOther);
            }
            self.retries += 1;
        } else {
            self.budget.earn();
        }
        let chosen = self.balance.choose(&candidates, draw, &mut self.owed);
        let at = chosen.ok_or(Nobody::NoOther)?;
        self.begin(at);
        Ok(at)
    }

    /// Counts a request as under way at an origin.
    pub(super) fn begin(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at) {
            member.outstanding += 1;
            member.counts.requests += 1;
        }
    }

    /// Returns the record of an origin's last results. The caller adds results to it.
    pub(super) fn record(&mut self, at: usize) -> Option<&mut Record> {
        self.members.get_mut(at).map(|member| &mut member.record)
    }

    /// Returns figures about the last requests to an origin.
    pub(super) fn recently(&self, at: usize, now: MonoTime) -> Recently {
        let member = self.members.get(at);
        member.map_or(Recently::default(), |m| m.record.recently(now))
    }

    fn candidate(&self, at: usize, now: MonoTime) -> Candidate {
        let member = &self.members[at];
        Candidate {
            at,
            weight: f64::from(member.weight) * member.health.share(now, &self.rules),
            load: member.outstanding.saturating_add(member.health.errors(now)),
        }
    }

    fn is_in(&self, at: usize, now: MonoTime) -> bool {
        self.health_state(at, now).is_in()
    }

    /// Notes the result of an attempt. Returns true if the origin is left out from now on.
    ///
    /// The origin is left out only if another origin still gets requests and has answered well since the
    /// errors began. So at least one origin remains. If all origins fail, no origin is left out.
    pub(super) fn note(&mut self, at: usize, result: Result, now: MonoTime) -> bool {
        let rules = self.rules;
        let Some(member) = self.members.get_mut(at) else {
            return false;
        };
        if result == Result::Good {
            member.health.good(now);
            return false;
        }
        member.counts.failures += 1;
        let answered = result == Result::Error;
        let Some(since) = member.health.bad(now, answered, &rules) else {
            return false;
        };
        let better = |other: usize| {
            other != at
                && self.is_in(other, now)
                && self.members[other].health.was_good_since(since)
        };
        if !self.is_in(at, now) || !(0..self.members.len()).any(better) {
            return false;
        }
        let member = &mut self.members[at];
        member.health.eject(now, &rules);
        member.counts.ejections += 1;
        true
    }

    /// Ends a request at an origin. The request no longer counts as under way.
    pub(super) fn end(&mut self, at: usize) {
        if let Some(member) = self.members.get_mut(at) {
            member.outstanding = member.outstanding.saturating_sub(1);
        }
    }

    /// Notes the result of a check. If the origin now gets requests again, or gets no more requests, returns
    /// its new health state.
    pub(super) fn checked(&mut self, at: usize, good: bool, now: MonoTime) -> Option<HealthState> {
        let rules = self.rules;
        let before = self.health_state(at, now);
        let member = self.members.get_mut(at)?;
        member.health.checked(now, good, &rules);
        let after = self.health_state(at, now);
        (after.is_in() != before.is_in()).then_some(after)
    }

    pub(super) fn health_state(&self, at: usize, now: MonoTime) -> HealthState {
        let member = self.members.get(at);
        member.map_or(HealthState::Down, |m| {
            m.health.health_state(now, &self.rules)
        })
    }

    /// Returns the requests under way and the counts of an origin.
    pub(super) fn counts(&self, at: usize) -> (u32, OriginCounts) {
        let member = self.members.get(at);
        member.map_or((0, OriginCounts::default()), |m| (m.outstanding, m.counts))
    }

    /// Returns the number of requests that were sent to another origin after an error.
    pub(super) const fn retries(&self) -> u64 {
        self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;
    use std::time::Duration;

    fn group(members: &[(u32, u32)], balance: Balance) -> Group {
        Group::new(HealthRules::default(), balance, members.iter().copied())
    }

    fn draw(rng: &mut Rng) -> Draw {
        Draw {
            key: rng.next_u64(),
            random: [rng.next_u64(), rng.next_u64()],
        }
    }

    const FREE: u32 = u32::MAX;

    #[test]
    fn whatever_the_answers_one_origin_stays_and_errors_of_all_leave_none_out() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let count = 1 + rng.below(5) as usize;
            let balance = [
                Balance::LeastOutstanding,
                Balance::RoundRobin,
                Balance::Hash,
            ][rng.below(3) as usize];
            let mut group = group(&vec![(1, FREE); count], balance);
            let all_fail = seed % 4 == 0;
            let chance: Vec<f64> = (0..count).map(|_| rng.unit()).collect();
            let mut now = MonoTime(0);
            for _ in 0..3000 {
                now = now + Duration::from_millis(rng.below(200));
                let at = group.choose(now, Tried::default(), draw(&mut rng)).unwrap();
                let good = !all_fail && rng.chance(chance[at]);
                let bad = [Result::Error, Result::Failed][rng.below(2) as usize];
                group.note(at, if good { Result::Good } else { bad }, now);
                group.end(at);
                let stays = (0..count).any(|at| group.is_in(at, now));
                assert!(stays, "seed {seed}: all are left out");
            }
            let ejections: u64 = (0..count).map(|at| group.counts(at).1.ejections).sum();
            assert!(!(all_fail && ejections > 0), "seed {seed}: {ejections}");
            assert_eq!((0..count).map(|at| group.counts(at).0).sum::<u32>(), 0);
        }
    }

    #[test]
    fn a_bad_origin_is_left_out_and_comes_back_when_it_is_good() {
        let mut rng = Rng::new(1);
        let mut group = group(&[(1, FREE); 3], Balance::RoundRobin);
        let mut now = MonoTime(0);
        let mut ask = |group: &mut Group, now: MonoTime, bad: &[usize]| {
            let at = group.choose(now, Tried::default(), draw(&mut rng)).unwrap();
            let is_bad = bad.contains(&at);
            group.note(at, if is_bad { Result::Error } else { Result::Good }, now);
            group.end(at);
            at
        };
        for _ in 0..15 {
            now = now + Duration::from_millis(10);
            ask(&mut group, now, &[1]);
        }
        assert_eq!(group.health_state(1, now), HealthState::Ejected);
        let until = now + Duration::from_secs(9);
        assert!((0..100).all(|_| ask(&mut group, until, &[]) != 1));
        let back = now + Duration::from_secs(11);
        assert!((0..100).any(|_| ask(&mut group, back, &[1]) == 1));
        assert_eq!(
            group.health_state(1, back),
            HealthState::Ejected,
            "one error on trial"
        );
        let later = back + Duration::from_secs(60);
        assert!((0..9).any(|_| ask(&mut group, later, &[]) == 1));
        assert_eq!(group.health_state(1, later), HealthState::Up);
    }

    #[test]
    fn retries_go_elsewhere_within_the_budget_and_never_to_those_left_out() {
        let mut rng = Rng::new(2);
        let mut group = group(&[(1, FREE); 3], Balance::LeastOutstanding);
        let now = MonoTime(1);
        let first = group.choose(now, Tried::default(), draw(&mut rng)).unwrap();
        let tried = Tried::default().with(first);
        let second = group.choose(now, tried, draw(&mut rng)).unwrap();
        let tried = tried.with(second);
        let third = group.choose(now, tried, draw(&mut rng)).unwrap();
        assert_ne!(first, second);
        assert!(third != first && third != second);
        let none = group.choose(now, tried.with(third), draw(&mut rng));
        assert_eq!(none, Err(Nobody::NoOther));
        let mut retries = 2;
        while group
            .choose(now, Tried::default().with(0), draw(&mut rng))
            .is_ok()
        {
            retries += 1;
        }
        assert_eq!((retries, group.retries()), (100, 100));
    }

    #[test]
    fn a_retry_goes_to_one_that_last_answered_well() {
        let mut rng = Rng::new(4);
        let mut group = group(&[(1, FREE); 4], Balance::LeastOutstanding);
        let now = MonoTime(1);
        for at in [0, 2, 3] {
            group.note(at, Result::Failed, now);
        }
        for _ in 0..50 {
            let tried = Tried::default().with(0);
            assert_eq!(group.choose(now, tried, draw(&mut rng)), Ok(1));
            group.end(1);
        }
        // If the last answers of all untried origins were errors, one of these origins is asked nevertheless.
        let tried = Tried::default().with(0).with(1);
        assert!(group.choose(now, tried, draw(&mut rng)).is_ok());
    }

    #[test]
    fn limits_hold_and_checks_of_all_leave_all_in() {
        let mut rng = Rng::new(3);
        let mut group = group(&[(1, 2), (1, 1)], Balance::LeastOutstanding);
        let now = MonoTime(1);
        let mut choose = |group: &mut Group| group.choose(now, Tried::default(), draw(&mut rng));
        let chosen: Vec<_> = (0..3).map(|_| choose(&mut group).unwrap()).collect();
        assert_eq!(chosen.iter().filter(|at| **at == 0).count(), 2);
        assert_eq!(choose(&mut group), Err(Nobody::Busy));
        group.end(1);
        assert_eq!(choose(&mut group), Ok(1));
        for at in [0, 1] {
            for n in 1..=3 {
                let changed = group.checked(at, false, now);
                assert_eq!(changed, (n == 3).then_some(HealthState::Down));
            }
        }
        group.end(0);
        assert_eq!(choose(&mut group), Ok(0), "all are down: all may be asked");
    }
}
