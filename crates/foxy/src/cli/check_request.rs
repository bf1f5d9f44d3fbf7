//! `foxy check --request`: shows the access rule that decides about a request, and why.

use std::process::ExitCode;

use foxy_base::{Clock, SystemClock};
use foxy_http1::{Authority, Url};
use foxy_proxy::access_rules::Span;
use foxy_proxy::{AccessQuestion, Gatekeeper};

use super::USAGE;
use super::say::say;
use crate::config::Config;

const FORM: &str = "write 'METHOD URL [from ADDRESS] [user NAME] [group NAME] [address ADDRESS] \
                    [site NAME] [at [DAY] HH:MM]', or 'CONNECT HOST:PORT ...'";

/// Prints the access rules from the first rule to the rule that decides.
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
        None => say!("allowed: there is no access rule"),
        Some(gate) => {
            for line in explained(gate, &written) {
                say!("{line}");
            }
        }
    }
    ExitCode::SUCCESS
}

fn explained(gate: &Gatekeeper, question: &AccessQuestion) -> Vec<String> {
    gate.explain(question, SystemClock::default().wall())
}

fn parse(text: &str) -> Result<AccessQuestion, String> {
    let mut words = text.split_whitespace();
    let method = words.next().unwrap_or_default();
    let target = words.next().ok_or("there is no URL")?;
    let mut question = destination(method, target)?;
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
            "from" => question.client = ip()?,
            "address" => question.address = Some(ip()?),
            "user" => question.user = Some(value.to_owned()),
            "group" => question.groups.push(value.to_owned()),
            "site" => question = question.of_site(value),
            "at" => {
                let (day, time) = match value.contains(':') {
                    true => (None, value),
                    false => (Some(value), words.next().unwrap_or_default()),
                };
                question.minute = Some(minute(day, time)?);
            }
            other => return Err(format!("`{other}` is not known")),
        }
    }
    Ok(question)
}

fn destination(method: &str, target: &str) -> Result<AccessQuestion, String> {
    if method == "CONNECT" {
        let authority = Authority::parse(target.as_bytes());
        let authority = authority.map_err(|_| format!("`{target}` is not HOST:PORT"))?;
        return Ok(AccessQuestion::tunnel(&authority));
    }
    let url = Url::parse(target.as_bytes()).map_err(|_| format!("`{target}` is not a URL"))?;
    Ok(AccessQuestion::url(method, &url))
}

/// Returns the minute of the week. Without a day, it is a minute of Monday.
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
    use foxy_proxy::access_rules::{Action, HostPattern, Rule, RuleSet};

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
