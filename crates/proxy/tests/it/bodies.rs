//! Request bodies that Foxy does not read, because it refuses or answers the request earlier. The bytes of
//! such a body must never be treated as the next request on the connection.

use std::sync::Arc;

use crate::common::{Foxy, Origin};
use foxy_proxy::access_rules::{Action, Rule, RuleSet};
use foxy_proxy::{Config, Gatekeeper, Role};

/// An origin that answers without reading the body of the request.
fn origin() -> Origin {
    Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: no-store\r\n", "answer");
        true
    })
}

/// Sends a request whose body is the text of another request. Returns the status of the first answer, and the
/// bytes after it until the connection ends.
fn smuggle(foxy: &Foxy, origin: &Origin, url: &str) -> (u16, Vec<u8>) {
    let to = origin.authority();
    let inner = format!("GET http://{to}/inner HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut client = foxy.connect();
    client.send(format!(
        "POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{inner}",
        inner.len()
    ));
    (client.answer().status, client.to_end())
}

#[test]
fn the_body_of_a_request_that_leads_nowhere_is_no_request() {
    let (foxy, origin) = (Foxy::forward(), origin());
    let (status, rest) = smuggle(&foxy, &origin, "http://origin.test:25/");
    assert_eq!((status, &rest[..]), (403, &b""[..]));
    assert_eq!(origin.asked(), 0);
}

#[test]
fn the_body_of_a_request_that_a_rule_denies_is_no_request() {
    let denies = Rule {
        name: "read only".to_owned(),
        methods: vec!["POST".to_owned()],
        action: Action::Deny,
        ..Rule::default()
    };
    let gate = Gatekeeper::new(RuleSet::new(vec![denies]), jiff::tz::TimeZone::UTC);
    let config = Config {
        gatekeeper: Some(Arc::new(gate)),
        ..Config::default()
    };
    let (foxy, origin) = (Foxy::start(Role::Forward, config, 1), origin());
    let url = format!("http://{}/", origin.authority());
    let (status, rest) = smuggle(&foxy, &origin, &url);
    assert_eq!((status, &rest[..]), (403, &b""[..]));
    assert_eq!(origin.asked(), 0);
}

#[test]
fn what_comes_of_a_body_after_its_answer_is_no_request() {
    let (foxy, origin) = (Foxy::forward(), origin());
    let to = origin.authority();
    let inner = format!("GET http://{to}/inner HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut client = foxy.connect();
    client.send(format!(
        "POST http://{to}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        inner.len()
    ));
    assert_eq!(client.answer().status, 200);
    client.send(inner);
    assert!(client.to_end().is_empty());
    assert_eq!(origin.asked(), 1);
}
