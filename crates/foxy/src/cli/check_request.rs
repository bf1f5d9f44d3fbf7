//! `foxy check --request`: which access rule decides about a request, and why.

use std::net::IpAddr;
use std::process::ExitCode;

use foxy_http1::{Authority, Host, Scheme as UrlScheme, Url};
use foxy_proxy::access_rules::{Request, RuleSet, Scheme, Span, User, Visitor, Why};
use foxy_proxy::{Gatekeeper, plain_path};

use super::USAGE;
use super::say::say;
use crate::config::Config;

const FORM: &str = "write 'METHOD URL [from ADDRESS] [user NAME] [group NAME] [address ADDRESS] \
                    [site NAME] [at [DAY] HH:MM]', or 'CONNECT HOST:PORT ...'";

/// A request as somebody wrote it.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    method: String,
    host: Vec<u8>,
    port: u16,
    scheme: Scheme,
    path: Option<Vec<u8>>,
    address: Option<IpAddr>,
    client: IpAddr,
    user: Option<String>,
    groups: Vec<String>,
    site: String,
    minute: Option<u16>,
}

/// Prints each rule up to the one that decides.
pub(super) fn run(config: &Config, request: &str) -> ExitCode {
    let written = match parse(request) {
        Ok(written) => written,
        Err(text) => {
            eprintln!("foxy: {text}; {FORM}");
            return ExitCode::from(USAGE);
        }
    };
    let clients = &config.proxy.access.allow_clients;
    if written.site == "forward" && !clients.iter().any(|net| net.contains(&written.client)) {
        say!(
            "refused: access.allow_clients does not have {}",
            written.client
        );
        return ExitCode::SUCCESS;
    }
    match &config.proxy.gatekeeper {
        None => say!("goes on: there is no access rule"),
        Some(gate) => {
            for line in explained(gate, &written) {
                say!("{line}");
            }
        }
    }
    ExitCode::SUCCESS
}

fn explained(gate: &Gatekeeper, written: &Written) -> Vec<String> {
    let rules: &RuleSet = gate.rules();
    let groups: Vec<String> = match &written.user {
        Some(user) => [gate.groups_of(user), written.groups.clone()].concat(),
        None => Vec::new(),
    };
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let standing = written
        .user
        .as_ref()
        .map(|user| rules.standing(user, &groups));
    let now = || gate.minute_of_week(foxy_base::Clock::wall(&foxy_base::SystemClock::default()));
    let request = Request {
        who: Visitor {
            client: Some(written.client),
            user: standing.as_ref().map_or(User::Unknown, User::Known),
            site: &written.site,
            minute: written.minute.unwrap_or_else(now),
        },
        host: &written.host,
        address: written.address,
        port: written.port,
        scheme: written.scheme,
        method: written.method.as_bytes(),
        path: written.path.as_deref(),
    };
    let mut lines = Vec::new();
    let mut decided = false;
    for step in rules.explain(&request) {
        let rule = &rules.all()[step.rule];
        let (name, action) = (&rule.name, rule.action.word());
        lines.push(match step.why {
            Why::Not(condition) => format!("{name}: not for this {}", condition.word()),
            Why::Fits if rule.action.refuses(written.scheme) => {
                format!("{name}: fits and decides: {action}, so the request is refused")
            }
            Why::Fits => format!("{name}: fits and decides: {action}"),
            Why::Depends(condition) => format!(
                "{name}: decides ({action}) if it is for the {}, which is not known here",
                condition.word()
            ),
        });
        decided = !matches!(step.why, Why::Not(_));
    }
    if !decided {
        lines.push("goes on: no access rule fits".to_owned());
    }
    lines
}

fn parse(text: &str) -> Result<Written, String> {
    let mut words = text.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().ok_or("there is no URL")?;
    let (authority, scheme, path) = destination(&method, target)?;
    let address = match authority.host {
        Host::V6(ip) => Some(IpAddr::V6(ip).to_canonical()),
        Host::Name(name) => std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.parse().ok()),
    };
    let mut host = Vec::new();
    match address {
        Some(address) => host.extend_from_slice(address.to_string().as_bytes()),
        None => authority.write_host(&mut host),
    }
    let spoken = match scheme {
        Scheme::Http => UrlScheme::Http,
        _ => UrlScheme::Https,
    };
    let mut written = Written {
        method,
        host,
        port: authority.port_or_default(spoken),
        scheme,
        path,
        address,
        client: IpAddr::from([127, 0, 0, 1]),
        user: None,
        groups: Vec::new(),
        site: "forward".to_owned(),
        minute: None,
    };
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("nothing follows `{word}`"))?;
        let ip = || {
            value
                .parse()
                .map_err(|_| format!("`{value}` is not an address"))
        };
        match word {
            "from" => written.client = ip()?,
            "address" => written.address = Some(ip()?),
            "user" => written.user = Some(value.to_owned()),
            "group" => written.groups.push(value.to_owned()),
            "site" => written.site = value.to_owned(),
            "at" => {
                let (day, time) = match value.contains(':') {
                    true => (None, value),
                    false => (Some(value), words.next().unwrap_or_default()),
                };
                written.minute = Some(minute(day, time)?);
            }
            other => return Err(format!("`{other}` is not known")),
        }
    }
    Ok(written)
}

fn destination<'t>(
    method: &str,
    target: &'t str,
) -> Result<(Authority<'t>, Scheme, Option<Vec<u8>>), String> {
    if method == "CONNECT" {
        let authority = Authority::parse(target.as_bytes());
        let authority = authority.map_err(|_| format!("`{target}` is not HOST:PORT"))?;
        return Ok((authority, Scheme::Connect, None));
    }
    let url = Url::parse(target.as_bytes()).map_err(|_| format!("`{target}` is not a URL"))?;
    let scheme = match url.scheme {
        UrlScheme::Http => Scheme::Http,
        UrlScheme::Https => Scheme::Https,
    };
    let mut path = Vec::new();
    plain_path(url.path, &mut path);
    Ok((url.authority, scheme, Some(path)))
}

/// The minute of the week; without a day: of Monday.
fn minute(day: Option<&str>, time: &str) -> Result<u16, String> {
    let wrong = || format!("`{time}` is not HH:MM");
    let (hour, minute) = time.split_once(':').ok_or_else(wrong)?;
    let number = |text: &str, below: u16| text.parse().ok().filter(|n: &u16| *n < below);
    let (hour, minute) = (number(hour, 24), number(minute, 60));
    let (hour, minute) = hour.zip(minute).ok_or_else(wrong)?;
    let span = Span::parse(day.unwrap_or("mon"))?;
    let day = (0..7).find(|day| span.contains(day * 1440)).unwrap_or(0);
    Ok(day * 1440 + hour * 60 + minute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::access_rules::{Action, HostPattern, Rule};

    #[test]
    fn each_rule_up_to_the_one_that_decides_is_named() {
        let rules = vec![
            Rule {
                name: "office".to_owned(),
                clients: vec!["10.0.0.0/8".parse().unwrap()],
                times: vec![Span::parse("mon-fri 08:00-17:00").unwrap()],
                ..Rule::default()
            },
            Rule {
                name: "staff".to_owned(),
                hosts: vec![HostPattern::new("*.example.com")],
                users: vec!["alice".to_owned()],
                ..Rule::default()
            },
            Rule {
                name: "rest".to_owned(),
                action: Action::Deny,
                ..Rule::default()
            },
        ];
        let gate = Gatekeeper::new(RuleSet::new(rules), jiff::tz::TimeZone::UTC);
        let say = |text: &str| explained(&gate, &parse(text).unwrap()).join("\n");
        assert_eq!(
            say("GET https://www.example.com/x from 10.1.2.3 at tue 09:00"),
            "office: fits and decides: allow"
        );
        assert_eq!(
            say("GET https://www.example.com/x from 10.1.2.3 user alice at sat 09:00"),
            "office: not for this time\nstaff: fits and decides: allow"
        );
        assert_eq!(
            say("GET https://www.example.com/x from 192.0.2.1 at 09:00"),
            "office: not for this client\n\
             staff: decides (allow) if it is for the user, which is not known here"
        );
        assert_eq!(
            say("CONNECT other.test:443 from 192.0.2.1 user bob"),
            "office: not for this client\nstaff: not for this host\n\
             rest: fits and decides: deny, so the request is refused"
        );
    }

    #[test]
    fn what_is_no_request() {
        for text in [
            "",
            "GET",
            "GET x",
            "CONNECT a@b:443",
            "GET http://a/ from",
            "GET http://a/ from x",
            "GET http://a/ at 25:00",
            "GET http://a/ at xyz 10:00",
            "GET http://a/ whence x",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
