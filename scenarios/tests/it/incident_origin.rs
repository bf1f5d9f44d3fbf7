//! Origins that fail, as an operator sees them: in the metrics that the alert rules watch
//! (dist/prometheus/alerts.yaml), in the figures of `/stats`, and in `/readyz`.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use foxy_scenarios::*;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// Asks the site `www` for pages until so many were answered with this status.
fn ask_www(scene: &Scene, times: usize, status: u16) {
    for _ in 0..times {
        let _ = scene.get_at(scene.site(), "www.test", "/a").is(status);
    }
}

#[test]
fn an_origin_that_fails() {
    let scene = Scene::with().site().begin();
    assert!(!scene.page("/readyz").contains("origin"));
    let failing = Reply::new("503 Service Unavailable", "sorry");
    scene.origin.plays("/a", failing);
    ask_www(&scene, 3, 503);
    scene.shows(Incident {
        alert: "FoxyOriginDown",
        sample: "foxy_origin_up{site=\"www\"",
        value: Some("0"),
        stats: "\"ailment\": \"fails\"",
        ready: " of site www fails: status-5xx",
    });
    scene.shows(Incident {
        alert: "FoxySiteFails",
        sample: "foxy_site_requests_total{site=\"www\",cache=\"miss\",class=\"5xx\"}",
        value: Some("3"),
        stats: "\"errors\": 3",
        ready: "ready\n",
    });
    scene.exports("foxy_origin_responses_total{class=\"5xx\"}");
    // One good answer ends it.
    scene.origin.plays("/a", Reply::ok("well"));
    ask_www(&scene, 1, 200);
    scene.until("the origin is well", || {
        let well = |line: &str| line.starts_with("foxy_origin_up") && line.ends_with(" 1");
        let ready = scene.page("/readyz");
        !ready.contains("origin") && scene.page("/metrics").lines().any(well)
    });
}

#[test]
fn an_origin_of_the_forward_proxy_that_fails() {
    let scene = Scene::with().config("[access]\nports = \"all\"").begin();
    // Nobody listens on port 1.
    let gone = "GET http://origin.test:1/ HTTP/1.1\r\nHost: origin.test:1\r\n\r\n";
    scene.send_raw(gone).is(502);
    scene.exports("foxy_origin_errors_total{reason=\"connect\"}");
    scene.exports("foxy_requests_total{result=\"origin-error\"}");
    scene.exports("foxy_upstream_failed_total");
    assert!(scene.page("/stats").contains("\"origin-error\": 1"));
}

#[test]
fn an_origin_that_does_not_answer_in_time() {
    let scene = Scene::with()
        .config("[timeouts]\nfirst_byte = \"1s\"")
        .begin();
    scene.origin.plays("/a", Reply::raw("").pause(4000).close());
    scene.get("/a").is(504);
    scene.exports("foxy_origin_errors_total{reason=\"answer-timeout\"}");
    scene.exports("foxy_requests_total{result=\"origin-timeout\"}");
}

/// It is seen while the request still waits, and after the answer.
#[test]
fn an_origin_that_is_slow() {
    let scene = Scene::with().site().begin();
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().expect("a gate");
    scene.origin.plays("/a", Reply::ok("late").behind(&gate));
    let mut client = Client::to(scene.site());
    client.send("GET /a HTTP/1.1\r\nHost: www.test\r\n\r\n");
    scene.until("the origin is asked", || scene.origin.asked().len() == 1);
    scene.wait(secs(11));
    scene.shows(Incident {
        alert: "FoxyOriginSlow",
        sample: "foxy_origin_waiting_seconds{site=\"www\"",
        value: None,
        stats: "\"ailment\": \"slow\"",
        ready: " of site www is slow: answers begin after 11.0 s",
    });
    drop(held);
    client.answer().is(200);
    scene.shows(Incident {
        alert: "FoxyOriginSlow",
        sample: "foxy_origin_recent_first_byte_seconds{site=\"www\"",
        value: Some("11"),
        stats: "\"ailment\": \"slow\"",
        ready: " of site www is slow: answers begin after 11.0 s",
    });
}

#[test]
fn an_origin_that_flaps() {
    let scene = Scene::with().site().begin();
    for _ in 0..5 {
        scene.origin.plays("/a", Reply::new("500 Oh", "sorry"));
        ask_www(&scene, 1, 500);
        scene.origin.plays("/a", Reply::ok("well"));
        ask_www(&scene, 1, 200);
    }
    scene.shows(Incident {
        alert: "FoxyOriginFlaps",
        sample: "foxy_origin_recent_failures{site=\"www\"",
        value: Some("5"),
        stats: "\"ailment\": \"flaps\"",
        ready: " of site www flaps: 5 of the last 10 requests failed, the last one by status-5xx",
    });
}

/// A TLS server with a certificate for another name, that nobody trusts. Its URL.
fn tls_server() -> String {
    let made = rcgen::generate_simple_self_signed(["other.test".to_owned()]).expect("made");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let config = Arc::new(config.expect("a server"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            // The client refuses the certificate.
            while session.is_handshaking() && session.complete_io(&mut stream).is_ok() {}
        }
    });
    url
}

#[test]
fn an_origin_with_a_wrong_certificate() {
    let origin = tls_server();
    let scene = Scene::with()
        .config(&format!(
            "[[site]]\nname = \"www\"\nlisten = \"127.0.0.1:0\"\norigin = \"{origin}\""
        ))
        .begin();
    ask_www(&scene, 3, 502);
    scene.shows(Incident {
        alert: "FoxyOriginCertificate",
        sample: "foxy_origin_errors_total{reason=\"tls\"}",
        value: Some("3"),
        stats: "\"reason\": \"origin-certificate-",
        ready: " of site www fails: origin-certificate-",
    });
}
