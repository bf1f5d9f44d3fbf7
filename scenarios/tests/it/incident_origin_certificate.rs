//! An origin with a wrong certificate, as an operator sees it.

use foxy_scenarios::*;

#[test]
fn an_origin_with_a_wrong_certificate() {
    let origin = untrusted_origin();
    let scene = Scene::with()
        .config(&format!(
            "[[site]]\nname = \"www\"\nlisten = \"127.0.0.1:0\"\norigin = \"{origin}\""
        ))
        .begin();
    scene.ask_www(3, 502);
    scene.shows(Incident {
        alert: "FoxyOriginCertificate",
        sample: "foxy_origin_errors_total{reason=\"tls\"}",
        value: Some("3"),
        stats: "\"reason\": \"origin-certificate-",
        ready: " of site www fails: origin-certificate-",
    });
}
