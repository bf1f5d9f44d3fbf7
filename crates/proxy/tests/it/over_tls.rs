//! Repeats tests of other modules with TLS on both sides of Foxy. The repeated tests check the sharing of
//! answers among clients, the separation of requests, and the treatment of broken messages.

use std::process::Command;

use foxy_proxy::Event;

use crate::common::over_tls::{SWITCH, is_on};
use crate::common::{Foxy, Origin, until};

/// The modules whose tests are repeated. They do not use TLS themselves.
const MODULES: [&str; 13] = [
    "access::",
    "broken::",
    "caching::",
    "cookies::",
    "crowds::",
    "keys::",
    "leaders::",
    "methods::",
    "parts::",
    "ranges::",
    "sharing::",
    "versions::",
    "wire::",
];

#[test]
fn tests_of_other_modules_pass_with_tls_on_both_sides() {
    if is_on() {
        return;
    }
    // The tests run in another process, because the switch applies to a complete process.
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(MODULES).arg("over_tls::both_sides");
    let ran = command.env(SWITCH, "1").output().unwrap();
    let out = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{out}");
    for module in MODULES {
        assert!(out.contains(&format!("test {module}")), "{module}: no test");
    }
    assert!(out.contains("over_tls::both_sides_speak_tls_if_the_switch_is_on ... ok"));
}

#[test]
fn both_sides_speak_tls_if_the_switch_is_on() {
    let origin = Origin::start(|asked| {
        asked.reply("200 OK", "Cache-Control: max-age=60\r\n", "page");
        true
    });
    let foxy = Foxy::forward();
    for expected in ["uri-miss", "memory-hit"] {
        let got = foxy.get(&origin, "/");
        assert!(got.text() == "page" && got.cache().contains(expected));
    }
    let counted = |event| foxy.proxy.totals().event(event);
    let on = u64::from(is_on());
    assert_eq!(counted(Event::TlsHandshakes), 2 * on);
    assert_eq!(counted(Event::UpstreamHandshakes), on);
    assert!(foxy.stored(&origin, "/").is_some(), "under its URL");
    until(|| foxy.logged().len() == 2);
    for line in foxy.logged() {
        assert_eq!(line.ends_with(" over-tls"), is_on(), "{line}");
    }
}
