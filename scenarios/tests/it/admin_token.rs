//! On addresses other than loopback, the admin address needs the token that the first start created.

use foxy_scenarios::*;

const CHANGE: &str = "X-Foxy-Admin: 1\r\n";
const REFUSED: &[(&str, &str, &str)] = &[
    ("GET", "/", ""),
    ("GET", "/stats", ""),
    ("GET", "/metrics", ""),
    ("GET", "/ls", ""),
    ("GET", "/purges", ""),
    ("GET", "/stores", ""),
    ("GET", "/why?url=http://a/", ""),
    ("GET", "/nothing", ""),
    ("GET", "/stats", "Authorization: Bearer 0123456789\r\n"),
    ("GET", "/stats", "X-Foxy-Token: \r\n"),
    ("POST", "/purge?all=1", CHANGE),
    ("POST", "/stores/drain?store=0", CHANGE),
];

#[test]
fn story() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let token_file = format!("[access]\nadmin_token_file = \"{}\"\n", file.display());
    let scene = Scene::with().admin("0.0.0.0:0").config(&token_file).begin();
    let token = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(token.len(), 64);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let header = format!("X-Foxy-Token: {token}\r\n");
    let admin = |method: &str, path: &str, fields: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        Client::to(([127, 0, 0, 1], scene.admin().port()).into())
            .send(request)
            .answer()
    };
    admin("GET", "/healthz", "").is(200);
    admin("GET", "/readyz", "").is(200);
    for (method, path, fields) in REFUSED.iter().copied() {
        let answer = admin(method, path, fields);
        answer.is(401).mentions("token");
        assert!(answer.head.contains("WWW-Authenticate: Bearer"));
        assert!(!answer.head.contains(&token));
    }
    admin("GET", "/stats", &bearer).is(200);
    admin("GET", "/stats", &header).is(200);
    admin("POST", "/purge?all=1", &bearer)
        .is(200)
        .mentions("\"purge\": 1");
    // With the token, any host name is allowed. A foreign page whose name resolves to this address has no
    // token.
    let named = format!("GET /stats HTTP/1.1\r\nHost: foxy.example\r\n{bearer}\r\n");
    Client::to(([127, 0, 0, 1], scene.admin().port()).into())
        .send(named)
        .answer()
        .is(200);
}
