//! The file `/proxy.pac`, by which browsers find the forward proxy.

use foxy_access::HostPattern;
use foxy_http1::{Method, RequestHead, TargetForm};

/// Paths under which clients request the file.
const PATHS: [&[u8]; 2] = [b"/proxy.pac", b"/wpad.dat"];

/// True if a request to a listener of the forward proxy is for this file.
pub(crate) fn is_wanted(head: &RequestHead<'_>) -> bool {
    let plain = matches!(head.method(), Method::Get | Method::Head);
    plain && head.form() == TargetForm::Origin && PATHS.contains(&head.target().path)
}

/// Returns the PAC file. It names `proxy` (host and port) as the proxy. Browsers contact hosts whose names
/// have no dot, and the hosts of `direct`, without the proxy.
pub(crate) fn text(proxy: &str, secure: bool, direct: &[HostPattern]) -> String {
    let mut out = String::from("function FindProxyForURL(url, host) {\n");
    out.push_str("  host = host.toLowerCase();\n  if (isPlainHostName(host)");
    for pattern in direct {
        // The text of a host pattern has no character with a special meaning in a JavaScript string.
        out.push_str(&match pattern {
            HostPattern::Is(name) => format!("\n      || host == \"{name}\""),
            HostPattern::Under(name) => format!("\n      || dnsDomainIs(host, \".{name}\")"),
            HostPattern::Tree(name) => {
                format!("\n      || host == \"{name}\" || dnsDomainIs(host, \".{name}\")")
            }
            HostPattern::Like(_) => format!("\n      || shExpMatch(host, \"{}\")", pattern.text()),
        });
    }
    let word = if secure { "HTTPS" } else { "PROXY" };
    out.push_str(&format!(
        ")\n    return \"DIRECT\";\n  return \"{word} {proxy}\";\n}}\n"
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_proxy_and_what_is_asked_directly() {
        let direct = ["intranet.test", "*.corp.test", ".lan.test", "db*.test"];
        let direct: Vec<_> = direct.iter().map(|text| HostPattern::new(text)).collect();
        assert_eq!(
            text("proxy.test:3128", false, &direct),
            "function FindProxyForURL(url, host) {\n  host = host.toLowerCase();\n  \
             if (isPlainHostName(host)\n      || host == \"intranet.test\"\n      \
             || dnsDomainIs(host, \".corp.test\")\n      \
             || host == \"lan.test\" || dnsDomainIs(host, \".lan.test\")\n      \
             || shExpMatch(host, \"db*.test\"))\n    return \"DIRECT\";\n  \
             return \"PROXY proxy.test:3128\";\n}\n"
        );
        assert!(text("a:1", true, &[]).contains("return \"HTTPS a:1\""));
    }
}
