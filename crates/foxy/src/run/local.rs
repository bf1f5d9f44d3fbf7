//! The addresses of this machine, which a proxy must know to recognise itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of all interfaces; empty where the system does not tell.
pub(super) fn addresses() -> Vec<IpAddr> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let mut found = ipv4(&read("/proc/net/fib_trie"));
    found.extend(ipv6(&read("/proc/net/if_inet6")));
    found.sort_unstable();
    found.dedup();
    found
}

/// `|-- 192.0.2.7` followed by `/32 host LOCAL`.
fn ipv4(trie: &str) -> Vec<IpAddr> {
    let mut candidate: Option<Ipv4Addr> = None;
    let mut found = Vec::new();
    for line in trie.lines().map(str::trim_start) {
        if let Some(address) = line.strip_prefix("|-- ") {
            candidate = address.trim().parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(candidate.map(IpAddr::V4));
        }
    }
    found
}

/// One address per line, first its 32 hex digits.
fn ipv6(table: &str) -> Vec<IpAddr> {
    table
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|digits| digits.len() == 32)
        .filter_map(|digits| u128::from_str_radix(digits, 16).ok())
        .map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 192.0.2.7\n        /32 host LOCAL\n     |-- 192.0.2.0\n        /24 link UNICAST\n";
        assert_eq!(ipv4(trie), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n";
        assert_eq!(ipv6(table), ["::1".parse::<IpAddr>().unwrap()]);
    }
}
