//! Addresses, networks and ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::each;

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let expanded = match text.rsplit_once(':') {
        Some(("" | "*", port)) => format!("0.0.0.0:{port}"),
        Some(("localhost", port)) => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    expanded.parse().map_err(|_| {
        "it is not ADDRESS:PORT (write 127.0.0.1:3128, *:3128 or [::1]:3128)".to_owned()
    })
}

pub(super) fn networks(given: &[String]) -> Result<Vec<IpNet>, String> {
    let lists = each(given, |text| match text {
        "all" => Ok(everywhere()),
        _ => network(text).map(|network| vec![network]),
    })?;
    Ok(lists.concat())
}

fn everywhere() -> Vec<IpNet> {
    [
        IpNet::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        IpNet::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(single) = text.parse::<IpAddr>() {
        return Ok(single.into());
    }
    text.parse::<IpNet>()
        .map(|network| network.trunc())
        .map_err(|_| {
            "it is not a network (write 10.0.0.0/8, fd00::/8 or a single address)".to_owned()
        })
}

/// Reads the address of a name server. The port is 53 if no port is given.
pub(super) fn name_server(text: &str) -> Result<SocketAddr, String> {
    let alone = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
    alone.or_else(|_| text.parse()).map_err(|_| {
        "it is not the address of a name server (write 192.0.2.53, 192.0.2.53:5353 or \
         [2001:db8::53]:53; names cannot be used here)"
            .to_owned()
    })
}

pub(super) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("it is not a port".to_owned()),
    }
}

pub(super) fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = match text.split_once('-') {
        _ if text == "all" => return Ok(1..=u16::MAX),
        Some((first, last)) => (port(first.trim())?, port(last.trim())?),
        None => (port(text)?, port(text)?),
    };
    match first <= last {
        true => Ok(first..=last),
        false => Err("its first port is after its last".to_owned()),
    }
}
