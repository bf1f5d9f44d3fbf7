//! Helpers for tests: a fixed time, and responses written in one line.

use foxy_base::{FieldBlock, FieldBlockBuilder, WallTime};

use crate::invalidation::TargetUri;
use crate::{CachingFacts, Config, NoStore, Request, RequestFacts, Response, StorePlan, can_store};

/// Sun, 15 Jun 2025 12:00:00 GMT. The response of every test arrives at this time, unless the test states
/// another time.
pub(crate) const T0: WallTime = WallTime::from_secs(1_749_988_800);

/// `T0` plus `secs` seconds.
pub(crate) fn after(secs: i64) -> WallTime {
    WallTime(T0.0 + secs * 1000)
}

/// The IMF-fixdate of `T0` plus `secs` seconds.
pub(crate) fn date_at(secs: i64) -> String {
    String::from_utf8(crate::date::format(after(secs)).to_vec()).unwrap()
}

/// Reads fields from the form `Name: value | Name: value`. `@n` in a value stands for the date of
/// `T0` plus n seconds.
pub(crate) fn fields(text: &str) -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for line in text.split(" | ").filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.trim();
        let value = match value.strip_prefix('@') {
            Some(secs) => date_at(secs.parse().unwrap()),
            None => value.to_owned(),
        };
        builder
            .push(name.trim().as_bytes(), value.as_bytes())
            .unwrap();
    }
    builder.finish()
}

pub(crate) const TARGET: TargetUri<'static> = TargetUri {
    scheme: "http",
    authority: "example.com",
    path: "/a/b?c=d",
};

/// The result of storing a response.
pub(crate) fn store_with(
    method: &str,
    request: &str,
    status: u16,
    response: &str,
    config: &Config,
) -> Result<StorePlan, NoStore> {
    let (request, response) = (fields(request), fields(response));
    let facts = RequestFacts::new(method.as_bytes(), &request);
    can_store(
        &Request {
            facts: &facts,
            target: TARGET,
            fields: &request,
        },
        &Response {
            status,
            fields: &response,
            request_time: T0,
            response_time: T0,
        },
        config,
    )
}

/// The result of storing a response to a plain GET under the default configuration.
pub(crate) fn store(status: u16, response: &str) -> Result<StorePlan, NoStore> {
    store_with("GET", "", status, response, &Config::default())
}

/// The caching facts of a stored response with status 200.
pub(crate) fn stored(response: &str) -> CachingFacts {
    store(200, response).unwrap().facts
}
