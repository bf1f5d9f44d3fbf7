//! Tests that each kind of value accepts valid texts and refuses other texts.

use std::net::IpAddr;

use super::*;

fn read(kind: Kind, given: &[&str]) -> Result<Value, String> {
    kind.read(
        &given
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>(),
    )
}

#[test]
fn name_servers() {
    let read = |given: &[&str]| read(Kind::NameServers, given);
    let Ok(Value::Addresses(all)) = read(&["192.0.2.53", "::1", "[::1]:5353"]) else {
        panic!("these are name servers");
    };
    let all: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(all, ["192.0.2.53:53", "[::1]:53", "[::1]:5353"]);
    assert_eq!(read(&[]), Ok(Value::Addresses(Vec::new())));
    assert!(read(&["dns.test"]).unwrap_err().contains("dns.test"));
}

#[test]
fn durations() {
    let kind = Kind::Duration(0, 86_400);
    for (text, millis) in [
        ("5s", 5000),
        ("250ms", 250),
        ("2h", 7_200_000),
        ("90", 90_000),
        ("1d", 86_400_000),
    ] {
        let wanted = Value::Duration(Some(Duration::from_millis(millis)));
        assert_eq!(read(kind, &[text]), Ok(wanted), "{text}");
    }
    for text in ["", "s", "-1s", "5 weeks", "2d", "99999999999999999999d"] {
        assert!(read(kind, &[text]).is_err(), "{text}");
    }
    assert_eq!(
        read(Kind::DurationOrOff(1, 9), &["off"]),
        Ok(Value::Duration(None))
    );
}

#[test]
fn sizes_and_shares() {
    assert_eq!(
        read(Kind::SizeOrShare(1), &["100%"]),
        Ok(Value::Share(100.0))
    );
    assert_eq!(
        read(Kind::SizeOrShare(1), &["64MB"]),
        Ok(Value::Size(64_000_000))
    );
    for text in ["0%", "101%", "%", "x%", "0"] {
        assert!(read(Kind::SizeOrShare(1), &[text]).is_err(), "{text}");
    }
    assert!(
        read(Kind::Size(10, 20), &["9"])
            .unwrap_err()
            .contains("small")
    );
    assert!(
        read(Kind::Size(10, 20), &["21"])
            .unwrap_err()
            .contains("large")
    );
}

#[test]
fn addresses() {
    for (text, full) in [
        (":3128", "0.0.0.0:3128"),
        ("*:3128", "0.0.0.0:3128"),
        ("localhost:1", "127.0.0.1:1"),
        ("[::1]:80", "[::1]:80"),
    ] {
        assert_eq!(
            read(Kind::Addresses, &[text]),
            Ok(Value::Addresses(vec![full.parse().unwrap()]))
        );
    }
    for text in ["3128", "example.com:80", "1.2.3.4", "::1:80:"] {
        assert!(read(Kind::Addresses, &[text]).is_err(), "{text}");
    }
    assert_eq!(
        read(Kind::AddressOrOff, &["off"]),
        Ok(Value::Addresses(Vec::new()))
    );
}

#[test]
fn networks_and_ports() {
    let Ok(Value::Networks(all)) = read(Kind::Networks, &["all"]) else {
        panic!()
    };
    assert!(
        all.iter()
            .any(|n| n.contains(&"8.8.8.8".parse::<IpAddr>().unwrap()))
    );
    assert!(read(Kind::Networks, &["10.0.0.0/8", "192.0.2.1", "fd00::/8"]).is_ok());
    assert!(
        read(Kind::Networks, &["10.0.0.0/33"])
            .unwrap_err()
            .contains("`10.0.0.0/33`")
    );
    assert_eq!(
        read(Kind::Ports, &["443", "8443"]),
        Ok(Value::Ports(vec![443, 8443]))
    );
    assert!(read(Kind::Ports, &["0"]).is_err());
    let ranges = vec![80..=80, 1025..=65535, 1..=65535];
    assert_eq!(
        read(Kind::PortRanges, &["80", "1025-65535", "all"]),
        Ok(Value::PortRanges(ranges))
    );
    for text in ["", "0", "80-", "-80", "90-80", "80-65536", "a-b", "1-2-3"] {
        assert!(read(Kind::PortRanges, &[text]).is_err(), "{text}");
    }
}
