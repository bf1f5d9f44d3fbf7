//! The guard of destinations: the rule for the addresses that the forward proxy and the mirrors may connect
//! to.
//!
//! The guard checks the *resolved* address, right before the connection is opened. So a client cannot evade
//! the guard by a name for a forbidden address, or by a name whose addresses change. The configured origins
//! of a site are exempt, and so are the servers of mirrors that the operator has named in the settings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use foxy_base::rule;

use crate::Access;

/// Reason why an address may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// The address is one of Foxy's own listeners.
    Own,
    /// The address is link-local, unspecified, multicast, broadcast, the address of a cloud's metadata
    /// service, or an IPv6 address that contains an IPv4 address.
    Special,
    /// The address is private or loopback, and Foxy also serves clients on other machines.
    Private,
    /// The address belongs to this machine, and Foxy also serves clients on other machines.
    Machine,
    /// An access rule denies the address to this request.
    Rule,
}

impl Forbidden {
    /// Returns the fixed word for the reason. Logs and error answers contain this word.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Own => "destination-is-foxy",
            Self::Special => "destination-special-address",
            Self::Private => "destination-private-address",
            Self::Machine => "destination-own-machine",
            Self::Rule => "rule-denies-address",
        }
    }
}

/// The classes of addresses that the guard distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Public,
    Private,
    /// An address of this machine. To a service that listens on such an address, requests of the proxy would
    /// look like requests of a local client.
    Machine,
    Special,
}

/// Checks that the forward proxy and the mirrors may connect to `to`.
pub(crate) fn check(access: &Access, to: SocketAddr) -> Result<(), Forbidden> {
    if rule!(
        "guard: Foxy's own listeners are no destination",
        is_own(access, to),
        false
    ) {
        return Err(Forbidden::Own);
    }
    let class = match to.ip() {
        IpAddr::V4(ip) => class_v4(ip),
        IpAddr::V6(ip) => class_v6(ip),
    };
    let class = match class {
        Class::Public if access.local_addresses.contains(to.ip()) => Class::Machine,
        class => class,
    };
    let allowed = |ip: IpAddr| {
        access
            .allow_destinations
            .iter()
            .any(|net| net.contains(&ip))
    };
    // A list entry for all networks (prefix length 0) does not permit special addresses, because no web
    // server uses such addresses. Only a narrower network in the list permits a special address.
    let named = |ip: IpAddr| {
        let mut nets = access.allow_destinations.iter();
        nets.any(|net| {
            let narrow = rule!(
                "guard: permission for all networks does not open special addresses",
                net.prefix_len() > 0,
                true
            );
            narrow && net.contains(&ip)
        })
    };
    match class {
        Class::Public => Ok(()),
        Class::Special if named(to.ip()) => Ok(()),
        Class::Special => rule!(
            "guard: special addresses are no destination",
            Err(Forbidden::Special),
            Ok(())
        ),
        _ if allowed(to.ip()) => Ok(()),
        Class::Private | Class::Machine if access.loopback_only => Ok(()),
        Class::Private => rule!(
            "guard: private addresses need permission",
            Err(Forbidden::Private),
            Ok(())
        ),
        Class::Machine => rule!(
            "guard: addresses of this machine need permission",
            Err(Forbidden::Machine),
            Ok(())
        ),
    }
}

/// Returns true if `to` is one of Foxy's own listeners. A listener is never a permitted destination, even if
/// the list of permitted destinations contains its address. A request to a listener would reach the admin
/// interface, or Foxy would send it to itself again and again.
fn is_own(access: &Access, to: SocketAddr) -> bool {
    let ip = rule!(
        "guard: the mapped form of an own address is one too",
        to.ip().to_canonical(),
        to.ip()
    );
    access.own.iter().any(|own| {
        own.port() == to.port()
            && (own.ip().to_canonical() == ip
                || own.ip().is_unspecified()
                    && (ip.is_loopback()
                        || ip.is_unspecified()
                        || access.local_addresses.contains(ip))
                // A connection to the unspecified address (0.0.0.0 or ::) reaches loopback.
                || ip.is_unspecified() && own.ip().is_loopback())
    })
}

/// Classifies an address by the IANA registry of special-purpose addresses (RFC 6890 and later).
fn class_v4(ip: Ipv4Addr) -> Class {
    let [a, b, c, d] = ip.octets();
    match (a, b, c) {
        // Addresses of cloud metadata services that are not link-local: first Azure (the host of the virtual
        // machine provides the service), then Alibaba.
        (168, 63, 129) if d == 16 => Class::Special,
        (100, 100, 100) if d == 200 => Class::Special,
        // "This network", link-local (it includes the clouds' metadata services), multicast, reserved.
        (0, _, _) | (169, 254, _) | (224.., _, _) => Class::Special,
        // Loopback, RFC 1918, carrier NAT, protocol assignments, benchmarking.
        (127 | 10, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Class::Private,
        (192, 0, 0) | (198, 18..=19, _) => Class::Private,
        _ => Class::Public,
    }
}

fn class_v6(ip: Ipv6Addr) -> Class {
    let s = ip.segments();
    match s {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Private,
        // First the unspecified address and IPv4-compatible addresses, then IPv4-mapped addresses, then
        // translated addresses (RFC 6145).
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            Class::Special
        }
        // NAT64 (RFC 6052, RFC 8215), 6to4 and Teredo. These addresses contain an IPv4 address.
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => Class::Special,
        // Link-local, site-local, multicast.
        [0xfe80..=0xfeff, ..] | [0xff00..=0xffff, ..] => Class::Special,
        // Amazon's metadata service.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] => Class::Special,
        // Unique local.
        [0xfc00..=0xfdff, ..] => Class::Private,
        _ => Class::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalAddresses;
    use ipnet::IpNet;

    fn judge(access: &Access, to: &str) -> Result<(), Forbidden> {
        check(access, to.parse().unwrap())
    }

    fn machine(addresses: &[&str]) -> LocalAddresses {
        let local = LocalAddresses::default();
        let nets = addresses
            .iter()
            .map(|a| IpNet::from(a.parse::<IpAddr>().unwrap()));
        local.set(nets.collect());
        local
    }

    #[test]
    fn addresses_of_the_machine_are_guarded_like_loopback() {
        let open = Access {
            loopback_only: false,
            local_addresses: machine(&["203.0.113.7", "2001:db8::7"]),
            ..Access::default()
        };
        let home = Access {
            loopback_only: true,
            ..open.clone()
        };
        let listed = Access {
            allow_destinations: vec!["203.0.113.7/32".parse().unwrap()],
            ..open.clone()
        };
        for (to, expected) in [
            ("203.0.113.7:22", Err(Forbidden::Machine)),
            ("203.0.113.7:8080", Err(Forbidden::Machine)),
            ("[2001:db8::7]:8080", Err(Forbidden::Machine)),
            ("203.0.113.8:8080", Ok(())),
            ("127.0.0.1:8080", Err(Forbidden::Private)),
        ] {
            assert_eq!(judge(&open, to), expected, "{to}");
            assert_eq!(judge(&home, to), Ok(()), "{to}");
        }
        assert_eq!(judge(&listed, "203.0.113.7:22"), Ok(()));
        // The addresses of the machine may change while the proxy runs.
        open.local_addresses
            .set(vec!["203.0.113.8/32".parse().unwrap()]);
        assert!(judge(&open, "203.0.113.8:8080").is_err());
        assert!(judge(&open, "203.0.113.7:8080").is_ok());
    }

    #[test]
    fn loopback_only_reaches_private_addresses_and_others_do_not() {
        let home = Access::default();
        let open = Access {
            loopback_only: false,
            ..Access::default()
        };
        for to in [
            "127.0.0.1:80",
            "127.9.9.9:80",
            "10.1.2.3:80",
            "172.31.0.1:80",
            "192.168.1.1:80",
            "100.64.0.1:80",
            "[::1]:80",
            "[fd00::1]:80",
        ] {
            assert_eq!(judge(&home, to), Ok(()), "{to}");
            assert_eq!(judge(&open, to), Err(Forbidden::Private), "{to}");
        }
        for to in ["93.184.216.34:80", "172.32.0.1:80", "[2606:2800::1]:80"] {
            assert_eq!(judge(&open, to), Ok(()), "{to}");
        }
    }

    #[test]
    fn special_addresses_are_never_reached_unless_listed() {
        let home = Access::default();
        let listed = Access {
            allow_destinations: vec!["169.254.0.0/16".parse().unwrap()],
            ..Access::default()
        };
        for to in [
            "169.254.169.254:80",
            "0.0.0.0:80",
            "0.1.2.3:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "[::]:80",
            "[fe80::1]:80",
            "[febf::1]:80",
            "[ff02::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:169.254.169.254]:80",
            "[::169.254.169.254]:80",
            "[64:ff9b::a9fe:a9fe]:80",
            "[2002:a9fe:a9fe::]:80",
            "168.63.129.16:80",
            "168.63.129.16:32526",
            "100.100.100.200:80",
            "[fd00:ec2::254]:80",
        ] {
            assert_eq!(judge(&home, to), Err(Forbidden::Special), "{to}");
        }
        assert_eq!(judge(&listed, "169.254.169.254:80"), Ok(()));
        let all = Access {
            allow_destinations: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
            ..Access::default()
        };
        for to in ["169.254.169.254:80", "168.63.129.16:80", "[fe80::1]:80"] {
            assert_eq!(judge(&all, to), Err(Forbidden::Special), "{to}");
        }
        assert_eq!(judge(&all, "10.0.0.1:80"), Ok(()));
        assert!(judge(&listed, "[::ffff:169.254.169.254]:80").is_err());
    }

    #[test]
    fn foxy_itself_is_never_reached() {
        let access = Access {
            own: vec![
                "127.0.0.1:3129".parse().unwrap(),
                "0.0.0.0:3128".parse().unwrap(),
            ],
            local_addresses: machine(&["192.0.2.7"]),
            allow_destinations: vec!["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()],
            ..Access::default()
        };
        for to in [
            "127.0.0.1:3129",
            "0.0.0.0:3129",
            "[::ffff:127.0.0.1]:3129",
            "127.0.0.1:3128",
            "127.0.0.2:3128",
            "192.0.2.7:3128",
            "0.0.0.0:3128",
        ] {
            assert_eq!(judge(&access, to), Err(Forbidden::Own), "{to}");
        }
        assert_eq!(judge(&access, "127.0.0.1:3130"), Ok(()));
        assert_eq!(judge(&access, "192.0.2.8:3128"), Ok(()));
    }
}
