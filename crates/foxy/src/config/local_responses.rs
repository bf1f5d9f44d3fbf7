//! Answers that a site makes without its origins (redirects, maintenance, error pages), and the timeouts of a
//! site.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use foxy_proxy::{ErrorPage, LocalResponses, Maintenance, OriginTimeouts, ToHttps};

use super::kind::Value;
use super::problem::Problem;
use super::values::Values;

/// Longest error page in bytes.
const PAGE_MAX: u64 = 256 << 10;

/// Reads the settings of answers that a site makes without its origins. `plain` is true if the site listens
/// without TLS.
pub(super) fn read(
    values: &mut Values<'_>,
    (plain, listen_tls): (bool, &[SocketAddr]),
    place: &str,
) -> LocalResponses {
    let to_https = match values.text("redirect_to_https").parse() {
        Ok(status) => Some(ToHttps {
            status,
            port: listen_tls.first().map_or(443, SocketAddr::port),
        }),
        Err(_) => None,
    };
    if to_https.is_some() && !plain {
        let text = "site.redirect_to_https is about requests without TLS, and the site has no `listen`; \
                    give it one, or take the redirect out";
        values.problem(Problem::conflict(place, text.to_owned()));
    }
    let maintenance = match &values.text("maintenance")[..] {
        "origin" => Maintenance::Origin,
        "all" => Maintenance::All,
        _ => Maintenance::Off,
    };
    let files = match values.given("error_pages") {
        Some(Value::Texts(files)) => files.clone(),
        _ => Vec::new(),
    };
    let mut pages: Vec<ErrorPage> = Vec::new();
    for file in &files {
        let page = page(file);
        let page = page.and_then(|page| match pages.iter().any(|p| p.status == page.status) {
            true => Err(format!(
                "there are two pages for {}; take one out",
                page.status
            )),
            false => Ok(page),
        });
        match page {
            Ok(page) => pages.push(page),
            Err(text) => {
                values.problem(Problem::conflict(
                    place,
                    format!("site.error_pages: {text}"),
                ));
            }
        }
    }
    LocalResponses {
        to_https,
        maintenance,
        retry_after: values.duration("retry_after"),
        pages: pages.into(),
    }
}

/// Reads the page of an entry `STATUS PATH`.
fn page(entry: &str) -> Result<ErrorPage, String> {
    let (status, path) = entry.split_once(' ').unwrap_or_default();
    let extension = Path::new(path).extension().and_then(|word| word.to_str());
    let content_type = match extension {
        Some("html") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => {
            return Err(format!(
                "{path}: its name ends with none of .html, .json and .txt"
            ));
        }
    };
    let length = std::fs::metadata(path).map(|file| file.len());
    let body = match length {
        Ok(length) if length > PAGE_MAX => return Err(format!("{path}: it is longer than 256KiB")),
        Ok(_) => std::fs::read(path),
        Err(error) => Err(error),
    };
    Ok(ErrorPage {
        status: status.parse().unwrap_or(500),
        content_type,
        body: body.map_err(|error| format!("{path}: {error}"))?.into(),
    })
}

/// Returns the timeouts that the section sets. They replace the timeouts of the proxy.
pub(super) fn timeouts(values: &Values<'_>) -> OriginTimeouts {
    let time = |name: &str| match values.given(name) {
        Some(Value::Duration(time)) => *time,
        _ => None,
    };
    OriginTimeouts {
        connect: time("connect_timeout"),
        first_byte: time("first_byte_timeout"),
        progress: time("progress_timeout"),
    }
}

/// Returns the lines for `foxy check`.
pub(super) fn lines(responses: &LocalResponses) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if let Some(to) = responses.to_https {
        let (status, port) = (to.status, to.port);
        let _ = writeln!(
            text,
            "               redirects to https at port {port} with {status}"
        );
    }
    match responses.maintenance {
        Maintenance::Off => {}
        Maintenance::Origin => {
            text.push_str("               MAINTENANCE: its origins are not asked\n");
        }
        Maintenance::All => {
            text.push_str("               MAINTENANCE: every request gets 503\n");
        }
    }
    if !responses.pages.is_empty() {
        let statuses = responses.pages.iter().map(|page| page.status.to_string());
        let statuses: Vec<_> = statuses.collect();
        let _ = writeln!(text, "               own pages for {}", statuses.join(", "));
    }
    text
}
