//! The choice between the origins that may be asked. This module does no I/O, and callers pass random numbers
//! to it.

use foxy_base::hash64;

/// The way in which requests are distributed over the origins of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Two origins are drawn at random, with probabilities by weight. The request goes to the one of these
    /// two that has fewer requests under way, relative to its weight.
    #[default]
    LeastOutstanding,
    /// Requests go to one origin after the other, by weight (round robin).
    RoundRobin,
    /// Requests with the same key go to the same origin (weighted rendezvous hashing).
    Hash,
}

/// An origin that may be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Index of the origin among all origins of the site.
    pub(super) at: usize,
    /// Present weight of the origin, above 0.
    pub(super) weight: f64,
    /// Number of requests under way plus number of recent errors.
    pub(super) load: u32,
}

/// The hash and the random numbers for one choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    /// Hash of the cache key.
    pub(super) key: u64,
    /// Random numbers.
    pub(super) random: [u64; 2],
}

/// The state of round robin: one value for each origin, by index. See [`in_turn`].
pub(super) type Owed = Vec<f64>;

impl Balance {
    /// Returns the index of the chosen origin. Returns `None` if there is no candidate.
    pub(super) fn choose(
        self,
        candidates: &[Candidate],
        draw: Draw,
        owed: &mut Owed,
    ) -> Option<usize> {
        match self {
            Self::LeastOutstanding => least(candidates, draw.random),
            Self::RoundRobin => in_turn(candidates, owed),
            Self::Hash => by_key(candidates, draw.key),
        }
    }
}

fn least(candidates: &[Candidate], random: [u64; 2]) -> Option<usize> {
    let first = drawn(candidates, None, random[0])?;
    let Some(second) = drawn(candidates, Some(first.at), random[1]) else {
        return Some(first.at);
    };
    let load = |candidate: &Candidate| f64::from(candidate.load) / candidate.weight;
    let better = load(second) < load(first);
    Some(if better { second } else { first }.at)
}

/// Draws a candidate by weight, but not the candidate `without`.
fn drawn(candidates: &[Candidate], without: Option<usize>, random: u64) -> Option<&Candidate> {
    let others = || candidates.iter().filter(|c| Some(c.at) != without);
    let sum: f64 = others().map(|c| c.weight).sum();
    let mut left = unit(random) * sum;
    let found = others().find(|candidate| {
        left -= candidate.weight;
        left < 0.0
    });
    // Because of rounding, the loop may end without a result.
    found.or_else(|| others().next_back())
}

/// Maps a random number to `[0, 1)`.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// Smooth weighted round robin. With each request, the value of each candidate in `owed` grows by the
/// candidate's weight. The candidate with the largest value is chosen, and the sum of all weights is
/// subtracted from its value.
fn in_turn(candidates: &[Candidate], owed: &mut Owed) -> Option<usize> {
    let mut best: Option<usize> = None;
    let mut sum = 0.0;
    for candidate in candidates {
        let own = owed.get_mut(candidate.at)?;
        *own += candidate.weight;
        sum += candidate.weight;
        if best.is_none_or(|best| owed[candidate.at] > owed[best]) {
            best = Some(candidate.at);
        }
    }
    owed[best?] -= sum;
    best
}

fn by_key(candidates: &[Candidate], key: u64) -> Option<usize> {
    let score = |candidate: &Candidate| {
        let drawn = unit(hash64(key, &(candidate.at as u64).to_le_bytes()));
        // The score is larger if the logarithm is nearer to zero, and if the weight is larger.
        -candidate.weight / drawn.max(f64::MIN_POSITIVE).ln()
    };
    let best = candidates
        .iter()
        .max_by(|a, b| score(a).total_cmp(&score(b)));
    best.map(|candidate| candidate.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Rng;

    fn candidates(list: &[(f64, u32)]) -> Vec<Candidate> {
        let make = |(at, (weight, load)): (usize, &(f64, u32))| Candidate {
            at,
            weight: *weight,
            load: *load,
        };
        list.iter().enumerate().map(make).collect()
    }

    fn count(balance: Balance, among: &[Candidate], rounds: u64) -> Vec<u64> {
        let (mut rng, mut counts, mut owed) = (Rng::new(7), vec![0; 8], vec![0.0; 8]);
        for key in 0..rounds {
            let draw = Draw {
                key,
                random: [rng.next_u64(), rng.next_u64()],
            };
            counts[balance.choose(among, draw, &mut owed).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn equal_loads_follow_the_weights() {
        let among = candidates(&[(1.0, 0), (2.0, 0), (1.0, 0)]);
        for balance in [
            Balance::LeastOutstanding,
            Balance::RoundRobin,
            Balance::Hash,
        ] {
            let counts = count(balance, &among, 4000);
            for (got, expected) in counts.iter().zip([1000, 2000, 1000u64]) {
                assert!(got.abs_diff(expected) < 130, "{balance:?}: {counts:?}");
            }
        }
        let exact = count(Balance::RoundRobin, &among, 4000);
        assert_eq!(exact[..3], [1000, 2000, 1000]);
    }

    #[test]
    fn the_busier_of_two_is_spared() {
        let among = candidates(&[(1.0, 50), (1.0, 1), (1.0, 2)]);
        let counts = count(Balance::LeastOutstanding, &among, 3000);
        assert_eq!(counts[0], 0, "each pair has a less busy one");
        // The first origin has twice the load but three times the weight, so its load per weight is smaller.
        let weighted = candidates(&[(3.0, 20), (1.0, 10)]);
        assert_eq!(count(Balance::LeastOutstanding, &weighted, 100)[1], 0);
    }

    #[test]
    fn without_one_origin_only_its_keys_move() {
        let all = candidates(&[(1.0, 0), (1.0, 0), (2.0, 0), (1.0, 0)]);
        let without: Vec<_> = all.iter().filter(|c| c.at != 2).copied().collect();
        for key in 0..2000 {
            let draw = Draw {
                key,
                random: [0; 2],
            };
            let before = Balance::Hash.choose(&all, draw, &mut Vec::new());
            let after = Balance::Hash.choose(&without, draw, &mut Vec::new());
            assert!(before == Some(2) || before == after, "key {key}");
        }
    }

    #[test]
    fn nobody_is_chosen_among_none() {
        let draw = Draw {
            key: 1,
            random: [u64::MAX; 2],
        };
        for balance in [
            Balance::LeastOutstanding,
            Balance::RoundRobin,
            Balance::Hash,
        ] {
            assert_eq!(balance.choose(&[], draw, &mut Vec::new()), None);
            let one = candidates(&[(0.1, 9)]);
            assert_eq!(balance.choose(&one, draw, &mut vec![0.0]), Some(0));
        }
    }
}
