//! Requests to link-local addresses, to Foxy itself or to its admin address are always refused.

use foxy_scenarios::*;

#[test]
fn story() {
    let scene = Scene::new();
    let (admin, own) = (scene.admin(), scene.forward());
    for url in [
        "http://169.254.169.254/latest".to_owned(),
        "http://metadata.test/latest".to_owned(),
        "http://[fe80::1]/".to_owned(),
        "http://0.0.0.0/".to_owned(),
        format!("http://{admin}/stats"),
        format!("http://{own}/"),
        format!("http://origin.test:{}/stats", admin.port()),
    ] {
        let host = url.split('/').nth(2).unwrap();
        let answer = scene.send_raw(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 403, "{url}: {answer:?}");
    }
}
