//! Settings of TLS to the origin of a site.

use std::path::PathBuf;

use foxy_tls::{OriginOptions, OriginTls};

use super::kind::Value;
use super::problem::Problem;
use super::values::Values;

/// Reads the TLS settings for a site's origin; returns `None` if the origin does not speak TLS.
pub(super) fn read(values: &mut Values<'_>, secure: bool, place: &str) -> Option<OriginTls> {
    let text = |name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let path = |name: &str| text(name).map(PathBuf::from);
    let own = (path("origin_certificate"), path("origin_key"));
    let half = own.0.is_some() != own.1.is_some();
    let options = OriginOptions {
        authorities: path("origin_ca"),
        certificate: own.0.zip(own.1),
        name: text("origin_name"),
    };
    let wrong = if half {
        "site.origin_certificate and site.origin_key belong together; give both or none".to_owned()
    } else if !secure && options != OriginOptions::default() {
        "site.origin_ca, origin_name, origin_certificate and origin_key need an origin with https://"
            .to_owned()
    } else if !secure {
        return None;
    } else if options == OriginOptions::default() {
        return Some(OriginTls::system());
    } else {
        match OriginTls::new(&options) {
            Ok(tls) => return Some(tls),
            Err(error) => error.to_string(),
        }
    };
    values.problem(Problem::conflict(place, wrong));
    None
}
