//! Settings of access, and the addresses of this machine.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::RwLock;

use crate::Token;

/// Permissions of clients, and the destinations that can be reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Clients of the forward proxy. Each site has its own list.
    pub allow_clients: Vec<IpNet>,
    /// Proxies in front of Foxy that Foxy trusts. If a request comes from one of them, its forwarding fields
    /// (such as `X-Forwarded-For`) name the client.
    pub trusted_proxies: Vec<IpNet>,
    /// Ports to which the forward proxy may send requests that do not use `CONNECT`.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Ports that `CONNECT` may reach.
    pub connect_ports: Vec<u16>,
    /// Clients that may `PURGE`.
    pub purge_from: Vec<IpNet>,
    /// Largest number of `PURGE` requests per second from one client. All clients together may send four
    /// times this number.
    pub purge_rate: u32,
    /// Admin credential. If a `PURGE` request on a listener contains it, the request has the same rights as
    /// at the admin address.
    pub token: Option<Token>,
    /// Destinations that the guard (the rule about the addresses that the forward proxy and the mirrors may
    /// reach) permits in addition to public addresses.
    pub allow_destinations: Vec<IpNet>,
    /// True if every listener is on loopback. Then private and loopback destinations, and the addresses of
    /// this machine, are also permitted.
    pub loopback_only: bool,
    /// Foxy's own listening addresses (admin included), which the guard never permits as destinations. An
    /// unspecified address such as 0.0.0.0 stands for every local address with that port.
    pub own: Vec<SocketAddr>,
    /// Addresses of this machine. The guard treats them like loopback.
    pub local_addresses: LocalAddresses,
}

impl Default for Access {
    fn default() -> Self {
        Self {
            allow_clients: networks(&PRIVATE),
            trusted_proxies: Vec::new(),
            ports: SAFE_PORTS.to_vec(),
            connect_ports: vec![443],
            purge_from: networks(&PRIVATE[..2]),
            purge_rate: 50,
            token: None,
            allow_destinations: Vec::new(),
            loopback_only: true,
            own: Vec::new(),
            local_addresses: LocalAddresses::default(),
        }
    }
}

/// Loopback, and networks that contain no public Internet address.
const PRIVATE: [(IpAddr, u8); 9] = [
    (v4(127, 0, 0), 8),
    (v6(0, 1), 128),
    (v4(10, 0, 0), 8),
    (v4(172, 16, 0), 12),
    (v4(192, 168, 0), 16),
    (v4(100, 64, 0), 10),
    (v4(169, 254, 0), 16),
    (v6(0xfc00, 0), 7),
    (v6(0xfe80, 0), 10),
];

/// Squid's list of ports. It contains web ports, the ports of old protocols that were used over HTTP proxies,
/// and all ports above 1024. It leaves out the ports of system services, above all of mail. The most frequent
/// ports come first, because the list is searched for every request.
const SAFE_PORTS: [RangeInclusive<u16>; 10] = [
    80..=80,
    443..=443,
    1025..=65535,
    21..=21,
    70..=70,
    210..=210,
    280..=280,
    488..=488,
    591..=591,
    777..=777,
];

const fn v4(a: u8, b: u8, c: u8) -> IpAddr {
    IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, 0))
}

const fn v6(first: u16, last: u16) -> IpAddr {
    IpAddr::V6(std::net::Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last))
}

fn networks(list: &[(IpAddr, u8)]) -> Vec<IpNet> {
    list.iter()
        .filter_map(|(address, length)| IpNet::new(*address, *length).ok())
        .collect()
}

/// Returns true if one of the networks contains this address. An IPv4-mapped address counts as IPv4.
pub(crate) fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// The addresses of the machine's interfaces. They may change while the proxy runs. All copies of this value
/// share one list. The program that runs the proxy replaces this list after a change.
#[derive(Clone, Debug, Default)]
pub struct LocalAddresses(Arc<RwLock<Vec<IpNet>>>);

impl LocalAddresses {
    /// Replaces the list.
    pub fn set(&self, addresses: Vec<IpNet>) {
        *self.0.write() = addresses;
    }

    /// Returns true if the machine has this address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        contains(&self.0.read(), address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_networks_have_no_stranger() {
        let access = Access::default();
        for (address, allowed, purges) in [
            ("127.0.0.1", true, true),
            ("::1", true, true),
            ("::ffff:127.0.0.1", true, true),
            ("10.255.0.1", true, false),
            ("172.31.9.9", true, false),
            ("192.168.1.1", true, false),
            ("100.100.1.1", true, false),
            ("169.254.3.4", true, false),
            ("fd12::1", true, false),
            ("fe80::1", true, false),
            ("172.32.0.1", false, false),
            ("100.128.0.1", false, false),
            ("8.8.8.8", false, false),
            ("::ffff:8.8.8.8", false, false),
            ("2606:2800::1", false, false),
            ("::2", false, false),
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(contains(&access.allow_clients, ip), allowed, "{address}");
            assert_eq!(contains(&access.purge_from, ip), purges, "{address}");
        }
    }
}
