//! The addresses of this machine. With them, the proxy recognises requests to itself, and protects other
//! services on this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_proxy::LocalAddresses;
use ipnet::IpNet;

/// Time between two updates of the list. Interfaces can change while Foxy runs.
const EVERY: Duration = Duration::from_secs(5);

/// Keeps the proxy's list of the machine's addresses up to date.
#[derive(Debug)]
pub(super) struct AddressRefresh {
    list: LocalAddresses,
    next: Option<MonoTime>,
}

impl AddressRefresh {
    /// Reads the addresses for the first time.
    pub(super) fn new(list: &LocalAddresses) -> Self {
        list.set(addresses());
        Self {
            list: list.clone(),
            next: None,
        }
    }

    /// Reads the addresses again if the interval has passed.
    pub(super) fn step(&mut self, now: MonoTime) {
        let due = *self.next.get_or_insert(now + EVERY);
        if now >= due {
            self.list.set(addresses());
            self.next = Some(now + EVERY);
        }
    }
}

/// Returns the addresses of all interfaces; empty if the system does not report them.
fn addresses() -> Vec<IpNet> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = ipv4(&read("/proc/net/fib_trie"));
    found.extend(ipv6(&read("/proc/net/if_inet6")));
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the local networks in the kernel's table of routes (`/proc/net/fib_trie`). Each network has two
/// lines in the table, such as `|-- 192.0.2.7` and `/32 host LOCAL`. The prefix length (`/32`) can be less
/// than 32, because a complete network can be local too.
fn ipv4(trie: &str) -> Vec<IpNet> {
    let mut candidate: Option<Ipv4Addr> = None;
    let mut found = Vec::new();
    for line in trie.lines().map(str::trim_start) {
        if let Some(address) = line.strip_prefix("|-- ") {
            candidate = address.trim().parse().ok();
        } else if let Some(length) = line.strip_suffix(" host LOCAL")
            && let Some(length) = length.strip_prefix('/').and_then(|l| l.parse().ok())
        {
            let network = candidate.and_then(|a| IpNet::new(IpAddr::V4(a), length).ok());
            found.extend(network);
        }
    }
    found
}

/// Returns the addresses in the kernel's table of IPv6 addresses (`/proc/net/if_inet6`). Each line begins
/// with the 32 hexadecimal digits of an address.
fn ipv6(table: &str) -> Vec<IpNet> {
    table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|digits| digits.len() == 32)
        .filter_map(|digits| u128::from_str_radix(digits, 16).ok())
        .map(|bits| IpNet::from(IpAddr::V6(Ipv6Addr::from_bits(bits))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.7\n        /32 host LOCAL\n     |-- 192.0.2.0\n        /24 link UNICAST\n     |-- 198.51.100.0\n        /24 host LOCAL\n";
        let nets: Vec<IpNet> = ["192.0.2.7/32", "198.51.100.0/24"]
            .iter()
            .map(|net| net.parse().unwrap())
            .collect();
        assert_eq!(ipv4(trie), nets);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n";
        assert_eq!(ipv6(table), ["::1/128".parse::<IpNet>().unwrap()]);
    }

    #[test]
    fn this_machine_has_loopback_and_it_is_found_again() {
        let list = LocalAddresses::default();
        let mut refresh = AddressRefresh::new(&list);
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(list.contains(loopback));
        refresh.step(MonoTime(0));
        list.set(Vec::new());
        refresh.step(MonoTime(0) + EVERY / 2);
        assert!(!list.contains(loopback));
        refresh.step(MonoTime(0) + EVERY);
        assert!(list.contains(loopback));
    }
}
