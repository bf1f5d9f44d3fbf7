//! The memory that all fills together may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A shared account of bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            max,
        })
    }

    /// Bytes reserved now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// A reservation of `bytes`, or `None` if they are not to be had.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let mut reservation = Reservation {
            budget: Arc::clone(self),
            bytes: 0,
        };
        reservation.grow(bytes).then_some(reservation)
    }
}

/// Bytes taken from a [`Budget`]; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// Takes `more` bytes; false, and nothing taken, if they are not to be had.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let fits = |used: usize| used.checked_add(more).filter(|sum| *sum <= self.budget.max);
        let taken = self
            .budget
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if taken.is_ok() {
            self.bytes += more;
        }
        taken.is_ok()
    }

    /// Gives back what exceeds `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.budget
                .used
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            self.bytes = bytes;
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_whole_and_everything_comes_back() {
        let budget = Budget::new(100);
        let mut a = budget.reserve(60).unwrap();
        assert!(budget.reserve(41).is_none());
        let b = budget.reserve(40).unwrap();
        assert!(!a.grow(1));
        drop(b);
        assert!(a.grow(40));
        a.shrink_to(10);
        assert_eq!((budget.used(), a.bytes()), (10, 10));
        drop(a);
        assert_eq!(budget.used(), 0);
    }
}
