//! The attacks. Each attack is one request, in which `\n` stands for the end of a line.

type Attack = (&'static str, &'static str);

/// Attacks on a listener on loopback with default settings, which needs no token. The listener's only
/// protection is that it checks the host name, the origin, and the field that a request must have to change
/// something.
#[rustfmt::skip]
pub(super) const OPEN: [Attack; 33] = [
    ("rebinding: foreign name", "GET /stats HTTP/1.1\\nHost: evil.example\\n\\n"),
    ("rebinding: foreign name with our port", "GET /stats HTTP/1.1\\nHost: evil.example:3129\\n\\n"),
    ("rebinding: our name as a label", "GET /stats HTTP/1.1\\nHost: localhost.evil.example\\n\\n"),
    ("rebinding: our address as a label", "GET /stats HTTP/1.1\\nHost: 127.0.0.1.evil.example\\n\\n"),
    ("rebinding: a name with a dot at its end", "GET /stats HTTP/1.1\\nHost: localhost.\\n\\n"),
    ("rebinding: an empty name", "GET /stats HTTP/1.1\\nHost: \\n\\n"),
    ("rebinding: health too", "GET /healthz HTTP/1.1\\nHost: evil.example\\n\\n"),
    ("no name", "GET /stats HTTP/1.1\\n\\n"),
    ("no name in HTTP/1.0", "GET /stats HTTP/1.0\\n\\n"),
    ("two names", "GET /stats HTTP/1.1\\nHost: localhost\\nHost: evil.example\\n\\n"),
    ("user part in the name", "GET /stats HTTP/1.1\\nHost: localhost@evil.example\\n\\n"),
    ("a name inside a list", "GET /stats HTTP/1.1\\nHost: localhost, evil.example\\n\\n"),
    ("as a proxy", "GET http://localhost/stats HTTP/1.1\\nHost: localhost\\n\\n"),
    ("as a tunnel", "CONNECT localhost:3129 HTTP/1.1\\nHost: localhost:3129\\n\\n"),
    ("form without the field", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nContent-Length: 0\\n\\n"),
    ("form of a page", "POST /purge HTTP/1.1\\nHost: {admin}\\nOrigin: http://evil.example\\nContent-Type: text/plain\\nContent-Length: 9\\n\\n{\"all\":1}"),
    ("field and foreign origin", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nOrigin: http://evil.example\\nContent-Length: 0\\n\\n"),
    ("field and no origin's name", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nOrigin: null\\nContent-Length: 0\\n\\n"),
    ("field and another port's page", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nOrigin: http://127.0.0.1:8080\\nContent-Length: 0\\n\\n"),
    ("field and cross-site", "POST /reload HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nSec-Fetch-Site: cross-site\\nContent-Length: 0\\n\\n"),
    ("field and same-site", "POST /reload HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nSec-Fetch-Site: same-site\\nContent-Length: 0\\n\\n"),
    ("script of a foreign page", "GET /stats HTTP/1.1\\nHost: {admin}\\nSec-Fetch-Site: cross-site\\nSec-Fetch-Mode: no-cors\\n\\n"),
    ("window of a foreign page", "GET /stats HTTP/1.1\\nHost: {admin}\\nSec-Fetch-Site: cross-site\\nSec-Fetch-Mode: navigate\\n\\n"),
    ("question of a foreign page", "OPTIONS /purge HTTP/1.1\\nHost: {admin}\\nOrigin: http://evil.example\\nAccess-Control-Request-Method: POST\\nAccess-Control-Request-Headers: x-foxy-admin\\n\\n"),
    ("field with another value", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: true\\nContent-Length: 0\\n\\n"),
    ("field in the query", "POST /purge?all=1&X-Foxy-Admin=1 HTTP/1.1\\nHost: {admin}\\nContent-Length: 0\\n\\n"),
    ("change by GET", "GET /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\n\\n"),
    ("change by another method's name", "GET /reload HTTP/1.1\\nHost: {admin}\\nX-HTTP-Method-Override: POST\\nX-Foxy-Admin: 1\\n\\n"),
    ("method of listeners", "PURGE / HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\n\\n"),
    ("other methods", "DELETE /stores/0 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\n\\n"),
    ("two lengths", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nContent-Length: 0\\nTransfer-Encoding: chunked\\n\\n0\\n\\n"),
    ("a folded field", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin:\\n 1\\nContent-Length: 0\\n\\n"),
    ("session of another site", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nCookie: session=1; token={operate}\\nContent-Length: 0\\n\\n"),
];

/// Attacks on a listener that needs a token.
#[rustfmt::skip]
pub(super) const LOCKED: [Attack; 31] = [
    ("no token", "GET /stats HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("no token for the lists", "GET /ls HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("no token for decisions", "GET /why?url=http://s/page HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("no token for metrics", "GET /metrics HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("no token for the page", "GET / HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("field of changes alone", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nContent-Length: 0\\n\\n"),
    ("wrong token", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer Operate-0123456789abcdefABCDEX\\n\\n"),
    ("first letters of the token", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer Operate-0123456789abcdefABCDE\\n\\n"),
    ("token and more", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer {operate}0\\n\\n"),
    ("token and another word", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer {operate} x\\n\\n"),
    ("token in small letters", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer operate-0123456789abcdefabcdef\\n\\n"),
    ("empty token", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Bearer \\n\\n"),
    ("empty field", "GET /stats HTTP/1.1\\nHost: {admin}\\nX-Foxy-Token:\\n\\n"),
    ("another scheme", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: Basic {operate}\\n\\n"),
    ("no scheme", "GET /stats HTTP/1.1\\nHost: {admin}\\nAuthorization: {operate}\\n\\n"),
    ("token in the query", "GET /stats?token={operate} HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("token in a cookie", "GET /stats HTTP/1.1\\nHost: {admin}\\nCookie: X-Foxy-Token={operate}; token={operate}\\n\\n"),
    ("token in another field", "GET /stats HTTP/1.1\\nHost: {admin}\\nX-Token: {operate}\\n\\n"),
    ("token for a proxy", "GET /stats HTTP/1.1\\nHost: {admin}\\nProxy-Authorization: Bearer {operate}\\n\\n"),
    ("token in the name", "GET /stats HTTP/1.1\\nHost: {operate}@localhost\\n\\n"),
    ("another client's address", "GET /stats HTTP/1.1\\nHost: {admin}\\nX-Forwarded-For: 127.0.0.1\\nForwarded: for=127.0.0.1\\n\\n"),
    ("purge with the token that reads", "POST /purge?all=1 HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nAuthorization: Bearer {read}\\nContent-Length: 0\\n\\n"),
    ("reload with the token that reads", "POST /reload HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nAuthorization: Bearer {read}\\nContent-Length: 0\\n\\n"),
    ("reload with the token that purges", "POST /reload HTTP/1.1\\nHost: {admin}\\nX-Foxy-Token: {purge}\\nContent-Length: 0\\n\\n"),
    ("stores with the token that purges", "POST /stores/add?path=/x HTTP/1.1\\nHost: {admin}\\nX-Foxy-Token: {purge}\\nContent-Length: 0\\n\\n"),
    ("path with two slashes", "GET //stats HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("path beyond health", "GET /healthz/../stats HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("path beyond health, escaped", "GET /healthz/%2e%2e/stats HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("path with parameters of health", "GET /stats;/healthz HTTP/1.1\\nHost: {admin}\\n\\n"),
    ("change under the name of health", "POST /healthz HTTP/1.1\\nHost: {admin}\\nX-Foxy-Admin: 1\\nContent-Length: 0\\n\\n"),
    ("a socket's way over the network", "GET /stats HTTP/1.1\\nHost: unix:admin.sock\\n\\n"),
];
