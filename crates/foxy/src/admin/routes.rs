//! The addresses of the admin listener.

use foxy_http1::RequestHead;
use foxy_store::{Health, OneStoreStats};

use super::connection::Answer;
use super::guard::{self, FIELD, Refusal, Way};
use super::stats::{Stats, health_word};
use super::{State, list, metrics, origins, purge, reload, stores, why};

const NO_TOKEN: &str = "the admin token is needed: send `Authorization: Bearer TOKEN`, or name its \
                        file with --token-file (access.admin_token_file of the configuration)";
const PAGE: &str = include_str!("page.html");

/// Finds the answer.
pub(super) async fn answer(
    head: &RequestHead<'_>,
    body: &[u8],
    (way, state): (Way, &State),
) -> Answer {
    let target = String::from_utf8_lossy(head.target_text()).into_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    match guard::check(head, path, way, state) {
        Ok(()) => {}
        // The page itself holds no data; it asks for the token.
        Err(Refusal::NoToken) if path == "/" => return page(401),
        Err(Refusal::NoToken) => return Answer::text(401, NO_TOKEN),
        Err(Refusal::Forbidden(reason)) => return Answer::text(403, reason),
        Err(Refusal::Beyond(has)) => {
            let has = has.word();
            return Answer::text(403, &format!("this needs more rights than `{has}`"));
        }
    }
    match (head.method_text(), path) {
        (b"GET" | b"HEAD", "/why") => why::answer(query, state),
        (b"GET" | b"HEAD", "/ls") => list::answer(query, state),
        (b"GET" | b"HEAD", "/purges") => purge::list(state),
        (b"GET" | b"HEAD", "/stores") => stores::list(state),
        (b"GET" | b"HEAD", _) => match path.strip_prefix("/purges/") {
            Some(number) => purge::status(number, state),
            None => get(path, state),
        },
        (b"POST", _) if !guard::may_change(head, state) => {
            Answer::text(403, &format!("changes need the field `{FIELD}: 1`"))
        }
        (b"POST", "/purge") => purge::purge(query, body, state).await,
        (b"POST", "/reload") => reload::answer(state).await,
        (b"POST", _) if path.starts_with("/stores/") => {
            stores::change(&path["/stores/".len()..], query, state).await
        }
        _ => Answer::text(
            405,
            "only GET, HEAD, POST /purge, POST /reload and POST /stores/... are known here",
        ),
    }
}

fn get(path: &str, state: &State) -> Answer {
    let shutting_down = state.proxy.is_shutting_down();
    match path {
        "/" => page(200),
        "/healthz" => Answer::text(200, "ok"),
        "/readyz" if shutting_down => Answer::text(503, "draining"),
        "/readyz" => {
            let (text, is_ready) = ready(state);
            Answer::text(if is_ready { 200 } else { 503 }, &text)
        }
        "/metrics" => Answer {
            status: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics::text(state).into_bytes(),
            more: None,
        },
        "/stats" => json(200, &Stats::of(state)),
        "/purge" => Answer::text(405, "purging changes something: use POST"),
        _ => Answer::text(
            404,
            "try /, /healthz, /readyz, /metrics, /stats, /stores, /ls, /purges or /why?url=...",
        ),
    }
}

/// Foxy serves without a store that is missing, and without some of the origins of a site, so it is
/// ready. The answer names them.
fn ready(state: &State) -> (String, bool) {
    let absent = state.stores.absent();
    let without = absent
        .iter()
        .map(|store| format!("\nwithout {}", store.reason));
    let (sick, left) = origins::sick(state);
    let word = if left { "ready" } else { "no origin is left" };
    let without = without.collect::<String>();
    let stores = sick_stores(&state.engine.stats().stores);
    let memory = match state.proxy.memory_is_short() {
        true => "\nmemory is short: idle connections are closed, and requests may be refused",
        false => "",
    };
    (format!("{word}{without}{stores}{sick}{memory}"), left)
}

/// Lines about stores that are slow, full, only read, or offline: Foxy serves, with less.
fn sick_stores(stores: &[OneStoreStats]) -> String {
    let state = |store: &OneStoreStats| match store.health {
        Health::Good => store.full.then_some("full"),
        health => Some(health_word(health)),
    };
    let sick = stores
        .iter()
        .filter_map(|store| Some((&store.disk, state(store)?)));
    sick.map(|(disk, state)| format!("\nstore {disk} is {state}"))
        .collect()
}

fn page(status: u16) -> Answer {
    Answer {
        status,
        content_type: "text/html; charset=utf-8",
        body: PAGE.as_bytes().to_vec(),
        more: None,
    }
}

pub(super) fn json<T: serde::Serialize>(status: u16, value: &T) -> Answer {
    match serde_json::to_vec_pretty(value) {
        Ok(mut body) => {
            body.push(b'\n');
            Answer {
                status,
                content_type: "application/json",
                body,
                more: None,
            }
        }
        Err(error) => Answer::text(500, &error.to_string()),
    }
}

/// A parameter of a query, decoded; `+` is a plus sign, as URLs have them.
pub(super) fn parameter(query: &str, name: &str) -> Option<String> {
    let value = values(query, name).next()?;
    decoded(value)
}

/// Every parameter of that name; what cannot be decoded is left out.
pub(super) fn parameters(query: &str, name: &str) -> Vec<String> {
    values(query, name).filter_map(decoded).collect()
}

fn values<'q>(query: &'q str, name: &str) -> impl Iterator<Item = &'q str> {
    query
        .split('&')
        .filter_map(move |pair| pair.strip_prefix(name)?.strip_prefix('='))
}

fn decoded(value: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = "url=http%3A%2F%2Fa%2Fb%3Fc+d&site=www";
        assert_eq!(parameter(query, "url").as_deref(), Some("http://a/b?c+d"));
        assert_eq!(parameter(query, "site").as_deref(), Some("www"));
        assert_eq!(parameter(query, "ur"), None);
        assert_eq!(parameters("h=a&h=b%3A&x=c", "h"), ["a", "b:"]);
        assert_eq!(parameter("url=%", "url"), None);
        assert_eq!(parameter("url=%zz", "url"), None);
    }
}
