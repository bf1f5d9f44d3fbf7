//! Answers that Foxy makes itself. Each answer is a small HTML page with a reason word, which names the cause
//! of the answer.

use foxy_http1::write;

/// Returns a sentence that explains a reason word to people, or an empty text if there is no explanation.
fn explain(reason: &str) -> &'static str {
    match reason {
        "not-a-proxy-request" => {
            "This is a Foxy proxy, not a web server. Set it as the HTTP proxy of your program, \
             for instance: curl -x http://this-address http://example.com/"
        }
        "destination-private-address" => {
            "The address is private or on the proxy's own machine, and this proxy serves a \
             network. Its operator can allow it with --allow-destination."
        }
        "destination-special-address" => {
            "The address is link-local, multicast, unspecified or an IPv4 address in disguise; \
             a proxy does not reach these."
        }
        "destination-is-foxy" => "The address is the proxy itself.",
        "destination-own-machine" => {
            "The address is one of the proxy's own machine, and this proxy serves a network. Its \
             operator can allow it with --allow-destination."
        }
        "host-not-on-certificate" => {
            "The connection was made for another name: its certificate does not have the host of \
             the request. Use a connection of its own for this host."
        }
        "site-has-other-certificate" => {
            "The connection was made for another site. Use a connection of its own for this host."
        }
        "no-site-for-host" => "No site here is for this host.",
        "no-site-for-path" => "No site of this host is for this path.",
        "dots-in-path" => {
            "The path has a segment `.` or `..`. Which site it is for would depend on who reads it."
        }
        "https-only" => "This site is served over https.",
        "maintenance" => "The site is under maintenance. Please try again later.",
        "purge-not-allowed" => "This client may not purge (access.purge_from).",
        "purge-from-a-page" => {
            "A page in a browser may not purge. Use the admin address (foxy purge, POST /purge), \
             or send the admin token."
        }
        "purge-forwarded" => {
            "The request was forwarded by a proxy that access.trusted_proxies does not name, so \
             its client is unknown. Use the admin address (foxy purge, POST /purge), or \
             send the admin token."
        }
        "purge-beyond-url" => {
            "PURGE removes the URL of the request and its variants. For tags, prefixes, hosts, \
             expressions and everything use the admin address (foxy purge, POST /purge), or send \
             the admin token."
        }
        "too-many-purges" => {
            "There are too many purges for now; try again later. Those of the admin address \
             (foxy purge, POST /purge) do not wait for these."
        }
        "not-stored" => "Nothing was stored under this address.",
        "purged" => "What was stored under this address is removed.",
        "loop-detected" => "The request has passed through this proxy before.",
        "only-if-cached" => "The request asked for a stored answer only, and there is none.",
        "head-timeout" => "The request did not arrive in time.",
        _ => explain_access(reason),
    }
}

/// Returns the explanation of a reason word about clients, rules, logins or rates.
fn explain_access(reason: &str) -> &'static str {
    match reason {
        "client-not-allowed" => {
            "This proxy is not for clients of your address. Its operator can allow them with \
             access.allow_clients (forward proxy) or allow_clients of the site."
        }
        "rule-denies" => "A rule of this proxy's operator denies this request.",
        "rule-denies-address" => {
            "A rule of this proxy's operator denies the address that the host name stands for."
        }
        "tunnel-only" => "A rule of this proxy's operator allows tunnels (CONNECT) only.",
        "login-needed" => "This proxy wants to know who you are: user name and password.",
        "login-wrong" => "User name and password do not fit, or the token is not valid.",
        "login-busy" => "Too many logins are being checked; please try again.",
        "rate-exceeded" => "You have used what you may for now; please try again later.",
        "port-not-allowed" => {
            "The configuration does not let plain requests reach this port (access.ports)."
        }
        "connect-port" => "Tunnels to this port are not allowed by the configuration.",
        _ => explain_objects(reason),
    }
}

/// Returns the explanation of a reason word about build caches.
fn explain_objects(reason: &str) -> &'static str {
    match reason {
        "no-such-object" => "No object is stored under this name.",
        "not-the-name-of-an-object" => {
            "The path is not the name of an object: letters, digits and -._~+=@, in segments, no \
             query; below `ac` and `cas` a SHA-256 in lower-case hexadecimal."
        }
        "method-not-of-objects" => "A build cache takes GET, HEAD, PUT and DELETE.",
        "object-write-not-allowed" => {
            "This user may not store or remove objects here (site.write)."
        }
        "action-write-not-allowed" => {
            "This user may not store or remove results of actions, which are below `ac` \
             (site.write_ac)."
        }
        "object-too-large" => {
            "The object is longer than this cache takes (site.object_max_size, or a quarter of \
             the smallest store)."
        }
        "digest-wrong" => "The SHA-256 of what was sent is not the one in the path.",
        "object-coding" => "An object is stored as it is: send it without Content-Encoding.",
        "object-part" => "An object is stored whole: send it without Content-Range.",
        "condition-on-write" => "Conditions on PUT and DELETE are not offered here.",
        "object-not-kept" => {
            "The store did not take the object: it is busy, limited by a rule, or the object was \
             removed meanwhile."
        }
        _ => explain_origin(reason),
    }
}

/// Returns the explanation of a reason word about failures of origins.
fn explain_origin(reason: &str) -> &'static str {
    match reason {
        "origin-name-unknown" => "The host name does not exist.",
        "name-service-unavailable" => "No name server answered.",
        "origin-unreachable" => "The server did not accept a connection.",
        "origin-connect-timeout" => "The server did not accept a connection in time.",
        "origin-certificate-expired" => "The server's certificate has expired.",
        "origin-certificate-not-yet-valid" => {
            "The server's certificate is not valid yet, or the clock of this machine is slow."
        }
        "origin-certificate-name" => "The server's certificate is not for this host name.",
        "origin-certificate-issuer" => {
            "The server's certificate was issued by an authority that this machine does not trust. \
             A site can name its own authority (origin_ca)."
        }
        "origin-certificate-invalid" => "The server's certificate cannot be used.",
        "origin-tls-version" => "The server speaks neither TLS 1.2 nor TLS 1.3.",
        "origin-tls-handshake" => {
            "The server ended the TLS handshake, or does not speak TLS at this port."
        }
        "origin-answer-timeout" => "The server accepted the request but did not answer in time.",
        "origin-closed" => "The server closed the connection without an answer.",
        _ => "",
    }
}

/// Media type of the pages.
pub(crate) const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// Returns the body of an error page, as HTML. `own` is a text of the operator. If `own` is not empty, it
/// replaces the explanation of the reason word.
pub(crate) fn body(status: u16, reason: &str, own: &str) -> Vec<u8> {
    let phrase = write::reason_phrase(status);
    // The other texts come from tables in this file, so they need no escaping.
    let own = own.replace('&', "&amp;").replace('<', "&lt;");
    let text = if own.is_empty() {
        explain(reason)
    } else {
        &own
    };
    format!(
        "<!DOCTYPE html>\n<title>{status} {phrase}</title>\n<h1>{status} {phrase}</h1>\n\
         <p>{text}</p>\n<p>Reason: <code>{reason}</code></p>\n<hr><p>Foxy</p>\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_status_and_reason() {
        let page = String::from_utf8(body(403, "connect-port", "")).unwrap();
        assert!(page.contains("403 Forbidden") && page.contains("<code>connect-port</code>"));
        assert!(page.contains("not allowed by the configuration"));
    }
}
