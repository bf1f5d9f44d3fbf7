//! Accepted connections that a worker has not started to serve. Clients take turns: a client that opens many
//! connections at once does not delay the connections of other clients.

use std::collections::VecDeque;

use hashbrown::HashMap;

/// The owner of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Client(u64),
    /// A connection whose client is not known. The number is different for each connection.
    Unknown(u64),
}

/// Accepted connections (`T`) of one listener of a worker.
#[derive(Debug)]
pub(super) struct Newcomers<T> {
    /// Connections of each client, in the order of arrival. No queue is empty.
    by_client: HashMap<Key, VecDeque<T>>,
    /// Clients with connections, in the order of their turns. Each client is here once.
    turns: VecDeque<Key>,
    len: usize,
    /// Number of connections without a known client that were added so far.
    unknown: u64,
}

impl<T> Default for Newcomers<T> {
    fn default() -> Self {
        Self {
            by_client: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
            unknown: 0,
        }
    }
}

impl<T> Newcomers<T> {
    /// Returns the number of connections.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a connection of `client`. A connection without a known client gets a queue of its own.
    pub(super) fn add(&mut self, client: Option<u64>, connection: T) {
        self.len += 1;
        let client = client.map_or_else(|| Key::Unknown(self.number()), Key::Client);
        let queue = self.by_client.entry(client).or_default();
        if queue.is_empty() {
            self.turns.push_back(client);
        }
        queue.push_back(connection);
    }

    fn number(&mut self) -> u64 {
        self.unknown += 1;
        self.unknown
    }

    /// Removes at most `each` connections of each client, and at most `most` connections in total.
    pub(super) fn take(&mut self, each: usize, most: usize) -> Vec<T> {
        let mut taken = Vec::new();
        for _ in 0..each.min(self.len) {
            // One turn of each client.
            for _ in 0..self.turns.len() {
                if taken.len() >= most {
                    return taken;
                }
                taken.extend(self.next());
            }
        }
        taken
    }

    /// Removes the oldest connection of the client whose turn it is.
    fn next(&mut self) -> Option<T> {
        let client = self.turns.pop_front()?;
        let queue = self.by_client.get_mut(&client)?;
        let connection = queue.pop_front()?;
        self.len -= 1;
        match queue.is_empty() {
            true => {
                self.by_client.remove(&client);
            }
            false => self.turns.push_back(client),
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let mut newcomers = Newcomers::default();
        for (client, connection) in [(7, "a"), (7, "b"), (7, "c"), (8, "d"), (9, "e"), (8, "f")] {
            newcomers.add(Some(client), connection);
        }
        assert_eq!(newcomers.len(), 6);
        assert_eq!(newcomers.take(9, 4), ["a", "d", "e", "b"]);
        // A client that comes again has its turn behind the others.
        newcomers.add(Some(9), "g");
        assert_eq!(newcomers.take(9, 9), ["f", "c", "g"]);
        assert!(newcomers.is_empty() && newcomers.by_client.is_empty());
    }

    #[test]
    fn a_client_gives_only_a_few_at_once() {
        let mut newcomers = Newcomers::default();
        (0..10).for_each(|number| newcomers.add(Some(7), number));
        (10..12).for_each(|number| newcomers.add(Some(8), number));
        assert_eq!(newcomers.take(3, 100), [0, 10, 1, 11, 2]);
        newcomers.add(Some(8), 12);
        assert_eq!(newcomers.take(3, 3), [3, 12, 4]);
        assert_eq!(newcomers.take(100, 100), [5, 6, 7, 8, 9]);
        assert!(newcomers.take(3, 3).is_empty());
    }

    #[test]
    fn a_connection_without_a_known_client_has_a_queue_of_its_own() {
        let mut newcomers = Newcomers::default();
        (0..3).for_each(|number| newcomers.add(None, number));
        (3..6).for_each(|number| newcomers.add(Some(1), number));
        assert_eq!(newcomers.take(1, 100), [0, 1, 2, 3]);
    }
}
