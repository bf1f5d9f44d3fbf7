//! The kinds of values that a setting can have. A kind reads a value, and describes the allowed values.

mod network;

use std::net::{Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use foxy_base::ByteSize;
use ipnet::IpNet;

use super::log_template::{self, LogTemplate};
use super::origin::OriginEntry;
use super::pattern::PatternKind;
use super::rewriting::RewriteTarget;
use network::{address, name_server, networks, port, ports};

/// The kind of value that a setting accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A number of bytes between the two bounds.
    Size(u64, u64),
    /// A number of bytes that is at least this minimum, or a share in percent.
    SizeOrShare(u64),
    /// A duration between the two bounds, in seconds.
    Duration(u64, u64),
    /// A duration between the two bounds, in seconds, or `off`.
    DurationOrOff(u64, u64),
    /// A whole number between the two bounds.
    Count(u64, u64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, each at most once.
    Words(&'static [&'static str]),
    /// A path.
    Path,
    /// Paths of files; `*` stands for any part of a name.
    Files,
    /// Any text that is not empty.
    Text,
    /// A path, or `stdout`, `off`, or a service (`syslog`, `journald`).
    LogTarget,
    /// The name of a format of the access log, or a template.
    LogFormat,
    /// A name of letters, digits, `.`, `-` and `_`.
    Name,
    /// Field names.
    FieldNames,
    /// A host name or an address.
    HostName,
    /// Host names.
    HostNames,
    /// Hosts of a site: names, names after `*.` (which stands for one label), or `*` (all other hosts).
    SiteHosts,
    /// Prefixes of paths.
    UrlPaths,
    /// One socket address, or `off`.
    AddressOrOff,
    /// Socket addresses, at least one.
    Addresses,
    /// Addresses of name servers, with or without a port. The list may be empty.
    NameServers,
    /// Networks; `all` stands for every address.
    Networks,
    /// Port numbers.
    Ports,
    /// Port numbers and ranges of ports.
    PortRanges,
    /// URLs of origins (scheme, host and port), each optionally with `weight=N` and `connections=N`.
    Origins,
    /// URLs of servers, with or without a path.
    ServerUrls,
    /// Path and query of a request.
    RequestPath,
    /// Error pages: entries with a status and the path of a file.
    ErrorPages,
    /// Names or patterns of a rule.
    Patterns(PatternKind),
    /// Rules that rewrite fields, paths or redirects.
    Rewrites(RewriteTarget),
}

/// A value that was read and is valid.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Bytes.
    Size(u64),
    /// A share in percent: of the memory, of a device, or of the space that a store can use.
    Share(f64),
    /// A duration; `None` is `off`.
    Duration(Option<Duration>),
    /// A whole number.
    Count(u64),
    /// True or false.
    Flag(bool),
    /// A word, name, path or target.
    Text(String),
    /// Several words, names, paths or entries.
    Texts(Vec<String>),
    /// Socket addresses; empty is `off`.
    Addresses(Vec<SocketAddr>),
    /// Networks.
    Networks(Vec<IpNet>),
    /// Ports.
    Ports(Vec<u16>),
    /// Ranges of ports.
    PortRanges(Vec<RangeInclusive<u16>>),
    /// Origins.
    Origins(Vec<OriginEntry>),
}

impl Kind {
    /// True if the value is written as a list.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(
            self,
            Self::Files
                | Self::FieldNames
                | Self::HostNames
                | Self::SiteHosts
                | Self::Origins
                | Self::ErrorPages
                | Self::UrlPaths
                | Self::ServerUrls
                | Self::Addresses
                | Self::NameServers
                | Self::Networks
                | Self::Ports
                | Self::PortRanges
                | Self::Patterns(_)
                | Self::Rewrites(_)
                | Self::Words(_)
        )
    }

    /// Returns a description of the allowed values, for messages and the reference (`docs/config.md`).
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Self::Size(min, max) => format!("a size from {} to {}", ByteSize(min), ByteSize(max)),
            Self::SizeOrShare(min) => {
                format!(
                    "a size of at least {}, or a share such as 25%",
                    ByteSize(min)
                )
            }
            Self::Duration(min, max) => {
                format!("a duration from {} to {}", seconds(min), seconds(max))
            }
            Self::DurationOrOff(min, max) => {
                format!(
                    "a duration from {} to {}, or \"off\"",
                    seconds(min),
                    seconds(max)
                )
            }
            Self::Count(min, max) => format!("a whole number from {min} to {max}"),
            Self::Flag => "true or false".to_owned(),
            Self::Words(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("a list of {}", quoted.join(", "))
            }
            Self::Word(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Path => "a path".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Files => "a list of paths, in which `*` stands for any part of a name".to_owned(),
            Self::LogTarget => "\"stdout\", \"off\", \"syslog\", \"syslog:PATH\", \"syslog:ADDRESS:PORT\", \"journald\" or the path of a file".to_owned(),
            Self::LogFormat => format!(
                "{}, or a template with fields in braces, such as \"{{time}} {{client}} {{status}}\"",
                log_template::NAMED.map(|name| format!("\"{name}\"")).join(", ")
            ),
            Self::Name => "1 to 64 letters, digits, `.`, `-` or `_`".to_owned(),
            Self::FieldNames => "a list of field names".to_owned(),
            Self::HostName => "a host name or an address".to_owned(),
            Self::HostNames => "a list of host names".to_owned(),
            Self::SiteHosts => "a list of host names; `*.` before a name stands for one label, `*` alone for all other hosts".to_owned(),
            Self::UrlPaths => "a list of decoded paths that begin with `/`".to_owned(),
            Self::ServerUrls => "URLs of scheme http or https with a host, and optionally a path".to_owned(),
            Self::AddressOrOff => "ADDRESS:PORT, or \"off\"".to_owned(),
            Self::Addresses => {
                "a list of ADDRESS:PORT (`*` stands for every IPv4 address)".to_owned()
            }
            Self::NameServers => "a list of ADDRESS or ADDRESS:PORT".to_owned(),
            Self::Networks => "a list of networks such as 10.0.0.0/8, or \"all\"".to_owned(),
            Self::Ports => "a list of ports from 1 to 65535".to_owned(),
            Self::PortRanges => {
                "a list of ports and ranges such as 1025-65535, or \"all\"".to_owned()
            }
            Self::Patterns(of) => of.allowed().to_owned(),
            Self::Rewrites(of) => of.allowed().to_owned(),
            Self::Origins => {
                "a URL of scheme http or https with a host and a port, without a path; or a list of such URLs. \
                 weight=N and connections=N may follow a URL"
                    .to_owned()
            }
            Self::ErrorPages => "a list of entries `STATUS PATH`, with a status from 400 to 599 and the path of a file".to_owned(),
            Self::RequestPath => "a path such as /health, with or without a query".to_owned(),
        }
    }

    /// Reads a value that a user wrote. If the values of this kind are lists, each text is one entry of the
    /// list.
    ///
    /// # Errors
    /// Returns the mistake in a few words. [`allowed`](Self::allowed) describes the allowed values.
    pub fn read(self, given: &[String]) -> Result<Value, String> {
        let one = given.first().map_or("", String::as_str);
        match self {
            Self::Size(min, max) => size_between(one, min, max).map(Value::Size),
            Self::SizeOrShare(min) => size_or_share(one, min),
            Self::Duration(min, max) => {
                duration_between(one, min, max).map(|time| Value::Duration(Some(time)))
            }
            Self::DurationOrOff(..) if one == "off" => Ok(Value::Duration(None)),
            Self::DurationOrOff(min, max) => {
                duration_between(one, min, max).map(|time| Value::Duration(Some(time)))
            }
            Self::Count(min, max) => {
                let count = one
                    .parse()
                    .map_err(|_| "it is not a whole number".to_owned())?;
                within(count, min, max).map(Value::Count)
            }
            Self::Flag => one
                .parse()
                .map(Value::Flag)
                .map_err(|_| "it is neither".to_owned()),
            Self::Word(words) if words.contains(&one) => Ok(Value::Text(one.to_owned())),
            Self::Word(_) => Err("there is no such word".to_owned()),
            Self::Words(words) => some_of(words, given).map(Value::Texts),
            Self::Path | Self::Text | Self::LogTarget if one.is_empty() => {
                Err("it is empty".to_owned())
            }
            Self::Path | Self::Text | Self::LogTarget => Ok(Value::Text(one.to_owned())),
            Self::Files => each(given, not_empty).map(Value::Texts),
            Self::LogFormat => log_format(one).map(Value::Text),
            Self::Name => name(one).map(Value::Text),
            Self::FieldNames => each(given, token).map(Value::Texts),
            Self::HostName => host_name(one).map(Value::Text),
            Self::HostNames => each(given, name).map(Value::Texts),
            Self::SiteHosts | Self::UrlPaths if given.is_empty() => {
                Err("the list is empty".to_owned())
            }
            Self::SiteHosts => each(given, site_host).map(Value::Texts),
            Self::UrlPaths => each(given, url_path).map(Value::Texts),
            Self::ServerUrls => each(given, server_url).map(Value::Texts),
            Self::AddressOrOff if one == "off" => Ok(Value::Addresses(Vec::new())),
            Self::AddressOrOff => address(one).map(|address| Value::Addresses(vec![address])),
            Self::Addresses if given.is_empty() => Err("the list is empty".to_owned()),
            Self::Addresses => each(given, address).map(Value::Addresses),
            Self::NameServers => each(given, name_server).map(Value::Addresses),
            Self::Networks => networks(given).map(Value::Networks),
            Self::Ports => each(given, port).map(Value::Ports),
            Self::PortRanges => each(given, ports).map(Value::PortRanges),
            Self::Origins if given.is_empty() => Err("the list is empty".to_owned()),
            Self::Origins => each(given, str::parse).map(Value::Origins),
            Self::ErrorPages => each(given, error_page).map(Value::Texts),
            Self::RequestPath => request_path(one).map(Value::Text),
            Self::Patterns(of) if given.is_empty() && of.may_be_none() => {
                Ok(Value::Texts(Vec::new()))
            }
            Self::Patterns(_) | Self::Rewrites(_) if given.is_empty() => {
                Err("the list is empty".to_owned())
            }
            Self::Patterns(of) => each(given, |text| of.read(text)).map(Value::Texts),
            Self::Rewrites(of) => of.check(given).map(|()| Value::Texts(given.to_vec())),
        }
    }
}

fn log_format(text: &str) -> Result<String, String> {
    if log_template::NAMED.contains(&text) {
        return Ok(text.to_owned());
    }
    match text.contains(['{', '}']) {
        true => LogTemplate::parse(text).map(|_| text.to_owned()),
        false => Err("there is no such word, and a template has fields in braces".to_owned()),
    }
}

fn not_empty(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("it is empty".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn some_of(words: &[&str], given: &[String]) -> Result<Vec<String>, String> {
    for (i, word) in given.iter().enumerate() {
        if !words.contains(&&word[..]) {
            return Err(format!("`{word}` is none of them"));
        }
        if given[..i].contains(word) {
            return Err(format!("`{word}` is there twice"));
        }
    }
    Ok(given.to_vec())
}

fn host_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    if text.is_empty() || text.len() > 253 || !text.chars().all(fits) {
        return Err("it is not a host name".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}

/// Reads a host of a site, and returns it in lower case.
fn site_host(text: &str) -> Result<String, String> {
    if text == "*" {
        return Ok(text.to_owned());
    }
    let name = text.strip_prefix("*.").unwrap_or(text);
    let name = name.strip_suffix('.').unwrap_or(name);
    let named = host_name(name).map_err(|_| {
        "it is not a host name (write shop.example, *.shop.example or *, without port)".to_owned()
    })?;
    let port = named.contains(':') && named.parse::<Ipv6Addr>().is_err();
    if port || named.starts_with('.') || named.contains("..") {
        return Err("it is not a host name (write it without port)".to_owned());
    }
    Ok(match text.starts_with("*.") {
        true => format!("*.{named}"),
        // The result is the normal form, in which IPv6 addresses are compared.
        false => named.parse::<Ipv6Addr>().map_or(named, |ip| ip.to_string()),
    })
}

fn server_url(text: &str) -> Result<String, String> {
    let url: foxy_proxy::mirror::Upstream = text.parse()?;
    Ok(url.to_string())
}

/// Reads a prefix of paths.
fn url_path(text: &str) -> Result<String, String> {
    let segments = || text.split('/').skip(1);
    let dots = segments().any(|segment| matches!(segment, "." | ".."));
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '%' | '?' | '#' | '\\');
    if !text.starts_with('/') || !text.chars().all(fits) || dots || text.contains("//") {
        return Err("it is not a prefix of paths (write /api or /img/)".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads an error page, and returns `STATUS PATH` with one space.
fn error_page(text: &str) -> Result<String, String> {
    let (status, path) = text.split_once(' ').unwrap_or((text, ""));
    let status = status
        .parse()
        .ok()
        .filter(|status| (400..600u16).contains(status));
    match (status, path.trim()) {
        (Some(status), path) if !path.is_empty() => Ok(format!("{status} {path}")),
        _ => Err("it is not a status and a path (write 503 /etc/foxy/503.html)".to_owned()),
    }
}

/// Reads the path and query of a request.
fn request_path(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_graphic() && c != '#';
    if !text.starts_with('/') || !text.chars().all(fits) {
        return Err("it is not a path (write /health)".to_owned());
    }
    Ok(text.to_owned())
}

fn each<T>(given: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    given
        .iter()
        .map(|text| read(text).map_err(|problem| format!("`{text}`: {problem}")))
        .collect()
}

fn within(value: u64, min: u64, max: u64) -> Result<u64, String> {
    if value < min {
        Err("it is too small".to_owned())
    } else if value > max {
        Err("it is too large".to_owned())
    } else {
        Ok(value)
    }
}

fn size_between(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_| "it is not a size (write 4096, 64MB or 8GiB)".to_owned())?;
    within(size.bytes(), min, max)
}

fn size_or_share(text: &str, min: u64) -> Result<Value, String> {
    let Some(number) = text.strip_suffix('%') else {
        return size_between(text, min, u64::MAX).map(Value::Size);
    };
    let share: f64 = number
        .trim()
        .parse()
        .map_err(|_| "it is not a share (write 25%)".to_owned())?;
    if share > 0.0 && share <= 100.0 {
        Ok(Value::Share(share))
    } else {
        Err("a share is more than 0% and at most 100%".to_owned())
    }
}

/// Reads a duration such as `90`, `90s`, `250ms`, `5m`, `2h` or `7d`.
fn duration(text: &str) -> Option<Duration> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => return Some(Duration::from_millis(number)),
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

fn duration_between(text: &str, min: u64, max: u64) -> Result<Duration, String> {
    let time = duration(text)
        .ok_or_else(|| "it is not a duration (write 250ms, 5s, 10m, 2h or 7d)".to_owned())?;
    if time < Duration::from_secs(min) {
        Err("it is too short".to_owned())
    } else if time > Duration::from_secs(max) {
        Err("it is too long".to_owned())
    } else {
        Ok(time)
    }
}

/// Writes a number of seconds in the largest unit that divides it.
pub(crate) fn seconds(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("m", 60)];
    units
        .iter()
        .find(|(_, unit)| seconds != 0 && seconds.is_multiple_of(*unit))
        .map_or_else(
            || format!("{seconds}s"),
            |(name, unit)| format!("{}{name}", seconds / unit),
        )
}

pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err("it is not such a name".to_owned());
    }
    Ok(text.to_owned())
}

pub(super) fn token(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if text.is_empty() || !text.chars().all(fits) {
        return Err("it is not a field name".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
