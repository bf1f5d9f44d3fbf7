//! Decides whether a response is stored, and collects its caching facts (RFC 9111 section 3).

mod facts;

use foxy_base::{Fields, WallTime, eq_name, first, rule, values};

use crate::cache_control::{ResponseControl, for_each_listed};
use crate::config::{Config, ListedFields};
use crate::facts::{CachingFacts, Flags};
use crate::freshness::{self, Times};
use crate::invalidation::{TargetUri, same_target};
use crate::method::Method;
use crate::range::ContentRange;
use crate::reason::{LifetimeSource, NoStore};
use crate::relevant::Relevant;
use crate::request::RequestFacts;
use crate::status;
use crate::vary::{self, Vary, VaryList};

/// A request as it was sent to the origin.
#[derive(Debug)]
pub struct Request<'a, F: ?Sized> {
    /// The facts about the request.
    pub facts: &'a RequestFacts,
    /// Target of the request. It is needed only for POST.
    pub target: TargetUri<'a>,
    /// The fields of the request.
    pub fields: &'a F,
}

/// The head of a final response, with its times.
#[derive(Debug)]
pub struct Response<'a, F: ?Sized> {
    /// Status code.
    pub status: u16,
    /// The fields of the response.
    pub fields: &'a F,
    /// Time at which the request was sent.
    pub request_time: WallTime,
    /// Time at which the head arrived.
    pub response_time: WallTime,
}

/// The key under which a response is stored. The URI is always the request's target. For POST, the caller
/// uses the key of a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreUnder {
    /// The key of this request.
    Request,
    /// The key that a GET of the same target has.
    GetOfTarget,
}

/// The plan for storing a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorePlan {
    /// Facts for later decisions. The caller stores their encoded form with the response.
    pub facts: CachingFacts,
    /// The Vary list, if there is one.
    pub vary: Option<VaryList>,
    /// For a 206: the part that the response contains.
    pub part: Option<ContentRange>,
    /// The key under which the response is stored.
    pub under: StoreUnder,
    /// True if some fields are not stored because private or no-cache lists them.
    pub strip_listed: bool,
    /// True if the configuration requires that Set-Cookie is neither stored nor sent to any client.
    pub strip_set_cookie: bool,
}

/// Decides whether a response is stored. The decision is made when the head of the response has arrived.
///
/// # Errors
/// The reason why the response is not stored.
pub fn can_store<Q, R>(
    request: &Request<'_, Q>,
    response: &Response<'_, R>,
    config: &Config,
) -> Result<StorePlan, NoStore>
where
    Q: Fields + ?Sized,
    R: Fields + ?Sized,
{
    check_status(response.status)?;
    let response = &Response {
        status: response.status,
        fields: &Relevant::of(response.fields, config),
        request_time: response.request_time,
        response_time: response.response_time,
    };
    let control = ResponseControl::of(response.fields, config);
    check_directives(request.facts, response.status, &control, config)?;
    let times = Times::of(
        response.fields,
        response.request_time,
        response.response_time,
    );
    let under = check_method(request, response, &control, &times, config)?;
    check_authorization(request.facts, &control)?;
    let cookie_by_rule = check_cookie(response.fields, &control, config)?;
    let vary = check_vary(response.fields, config)?;
    let part = check_part(response)?;
    let lifetime = freshness::lifetime(
        request.facts,
        response.status,
        response.fields,
        &control,
        &times,
        config,
    );
    let mut facts = facts::facts_of(response, &control, &times, lifetime, config);
    facts.flags.set(Flags::VARY, vary.is_some());
    facts.flags.set(Flags::COOKIE_BY_RULE, cookie_by_rule);
    let anonymous = facts.needs_validation_each_time() && !request.facts.has_credentials();
    facts.flags.set(Flags::FETCHED_ANONYMOUSLY, anonymous);
    check_use(response, &control, &facts, &times, config)?;
    let strip_listed = control.private_listed || control.no_cache_listed;
    Ok(StorePlan {
        facts,
        vary,
        part,
        under,
        strip_listed,
        strip_set_cookie: config.strip_set_cookie,
    })
}

/// Checks the length of a body against the configured limits.
///
/// # Errors
/// [`NoStore::TooSmall`] or [`NoStore::TooLarge`].
pub const fn check_size(length: u64, config: &Config) -> Result<(), NoStore> {
    if length < config.store_bytes_min {
        Err(NoStore::TooSmall)
    } else if length > config.store_bytes_max {
        Err(NoStore::TooLarge)
    } else {
        Ok(())
    }
}

/// True if the length of the body permits storing. If the length is unknown, the result is true only if no
/// limit is configured.
#[must_use]
pub const fn size_is_right(length: Option<u64>, config: &Config) -> bool {
    match length {
        Some(length) => check_size(length, config).is_ok(),
        None => config.store_bytes_min == 0 && config.store_bytes_max == u64::MAX,
    }
}

fn check_status(status: u16) -> Result<(), NoStore> {
    match status {
        0..=199 => Err(NoStore::Interim),
        304 => Err(NoStore::NotModified),
        _ if rule!(
            "storing: an answer about one request alone is not stored",
            status::is_about_request(status),
            false
        ) =>
        {
            Err(NoStore::StatusOfThisRequest)
        }
        _ => Ok(()),
    }
}

/// Checks no-store, must-understand and private (RFC 9111 sections 3, 5.2.2.3, 5.2.2.5, 5.2.2.7).
fn check_directives(
    request: &RequestFacts,
    status: u16,
    control: &ResponseControl,
    config: &Config,
) -> Result<(), NoStore> {
    if control.must_understand && !status::is_understood(status) {
        return Err(NoStore::StatusNotUnderstood);
    }
    let no_store = control.no_store && !control.must_understand;
    if rule!("storing: no-store is obeyed", no_store, false) {
        return Err(NoStore::ResponseNoStore);
    }
    if rule!(
        "storing: the no-store of a request is obeyed",
        request.no_store && config.obey_request,
        false
    ) {
        return Err(NoStore::RequestNoStore);
    }
    if rule!("storing: private is obeyed", control.private, false) {
        return Err(NoStore::Private);
    }
    let unqualified = config.listed_fields == ListedFields::Unqualified;
    if unqualified && control.private_listed {
        return Err(NoStore::ListedFields);
    }
    Ok(())
}

/// Checks the method. It permits storing responses to GET requests without a body. If [`Config::post`] is
/// true, it also permits storing responses to POST under the conditions of RFC 9110 section 9.3.3. Responses
/// to other methods are never stored. HEAD has no body to store; see [`crate::update::head_update`].
fn check_method<Q, R>(
    request: &Request<'_, Q>,
    response: &Response<'_, R>,
    control: &ResponseControl,
    times: &Times,
    config: &Config,
) -> Result<StoreUnder, NoStore>
where
    Q: Fields + ?Sized,
    R: Fields + ?Sized,
{
    match request.facts.method {
        Method::Get
            if rule!(
                "storing: the answer to a GET with a body is not stored",
                request.facts.body,
                false
            ) =>
        {
            Err(NoStore::RequestBody)
        }
        Method::Get => Ok(StoreUnder::Request),
        Method::Post if config.post => {
            let explicit = freshness::explicit(response.fields, control, times);
            let location = first(response.fields, "Content-Location");
            let here = rule!(
                "storing: an answer to POST says that it is what GET gets",
                location.is_some_and(|location| same_target(&request.target, location)),
                true
            );
            let whole = response.status == 200;
            if explicit.is_some_and(|l| l.seconds > 0) && here && whole {
                Ok(StoreUnder::GetOfTarget)
            } else {
                Err(NoStore::PostWithoutContentLocation)
            }
        }
        _ => rule!(
            "storing: the answer to another method is not stored",
            Err(NoStore::Method),
            Ok(StoreUnder::Request)
        ),
    }
}

/// Checks RFC 9111 section 3.5: public, must-revalidate or s-maxage permit sharing the response.
fn check_authorization(request: &RequestFacts, control: &ResponseControl) -> Result<(), NoStore> {
    let sharable = control.public || control.must_revalidate || control.s_maxage.is_some();
    if rule!(
        "storing: an answer to Authorization needs permission to be shared",
        request.authorization && !sharable,
        false
    ) {
        return Err(NoStore::Authorization);
    }
    Ok(())
}

/// Checks Set-Cookie, because a cookie belongs to one client. RFC 9111 section 7.3 permits storing it; Foxy
/// stores it only if the response also permits sharing. A cookie that is removed before storing does not
/// prevent storing. Returns true if only the operator's rule allows sharing the cookie.
fn check_cookie<R: Fields + ?Sized>(
    fields: &R,
    control: &ResponseControl,
    config: &Config,
) -> Result<bool, NoStore> {
    let shared = control.public || control.s_maxage.is_some();
    if shared || config.strip_set_cookie {
        return Ok(false);
    }
    if values(fields, "Set-Cookie").next().is_none() || is_listed(fields, control, "Set-Cookie") {
        return Ok(false);
    }
    match config.store_set_cookie {
        true => Ok(true),
        false => rule!(
            "storing: an answer with a cookie needs permission to be shared",
            Err(NoStore::SetCookie),
            Ok(false)
        ),
    }
}

/// True if private="..." or no-cache="..." excludes the field `name` from storing.
fn is_listed<R: Fields + ?Sized>(fields: &R, control: &ResponseControl, name: &str) -> bool {
    let mut found = false;
    if control.private_listed || control.no_cache_listed {
        for_each_listed(fields, |listed| found |= eq_name(listed, name.as_bytes()));
    }
    found
}

fn check_vary<R: Fields + ?Sized>(
    fields: &R,
    config: &Config,
) -> Result<Option<VaryList>, NoStore> {
    match vary::of_with(fields, &config.key_parts) {
        Vary::None => Ok(None),
        Vary::Star => rule!(
            "storing: an answer that varies by everything is not stored",
            Err(NoStore::VaryStar),
            Ok(None)
        ),
        Vary::List(list) if list.len() > config.vary_fields_max => Err(NoStore::VaryTooWide),
        Vary::List(list) => Ok(Some(list)),
    }
}

/// Checks a 206. It must be one part with a valid range.
fn check_part<R: Fields + ?Sized>(
    response: &Response<'_, R>,
) -> Result<Option<ContentRange>, NoStore> {
    if response.status != 206 {
        return Ok(None);
    }
    match ContentRange::of_part(response.fields) {
        Some(range) if range.span.is_some() => Ok(Some(range)),
        _ => Err(NoStore::PartialUnusable),
    }
}

/// Checks that the response can be reused at all. If it has no explicit freshness, also checks that its
/// status or `public` permits storing (last clause of RFC 9111 section 3).
fn check_use<R: Fields + ?Sized>(
    response: &Response<'_, R>,
    control: &ResponseControl,
    facts: &CachingFacts,
    times: &Times,
    config: &Config,
) -> Result<(), NoStore> {
    let fields = response.fields;
    let explicit = freshness::explicit(fields, control, times).is_some();
    let configured = matches!(
        facts.source,
        LifetimeSource::Negative | LifetimeSource::Default
    );
    let by_default = status::is_heuristically_cacheable(response.status);
    if !(explicit || configured || by_default || control.public) {
        return Err(NoStore::StatusNeedsFreshness);
    }
    if config.ttl_max_s == Some(0) {
        return Err(NoStore::ConfiguredOff);
    }
    let alive =
        freshness::ttl_ms(facts, facts.response_time) > 0 && !facts.flags.has(Flags::NO_CACHE);
    let validator = facts.flags.0 & (Flags::HAS_ETAG.0 | Flags::HAS_LAST_MODIFIED.0) != 0;
    let stale_use = facts.stale_while_revalidate_s.max(facts.stale_if_error_s) > Some(0);
    let cookie = !config.strip_set_cookie && values(fields, "Set-Cookie").next().is_some();
    if rule!(
        "storing: a cookie needs a lifetime of its own",
        !explicit && cookie,
        false
    ) {
        return Err(NoStore::SetCookieWithoutFreshness);
    }
    if alive || validator || stale_use {
        Ok(())
    } else if explicit {
        Err(NoStore::ExpiredOnArrival)
    } else {
        Err(NoStore::NothingToReuse)
    }
}

/// Checks that a message that ended early may be kept as a part (RFC 9111 section 3.3). It must be a 200 or
/// 206 with a strong validator, with which it can be completed later.
///
/// # Errors
/// [`NoStore::Incomplete`].
pub fn may_keep_incomplete(plan: &StorePlan) -> Result<(), NoStore> {
    let whole_or_part = matches!(plan.facts.status, 200 | 206);
    let strong = rule!(
        "storing: a truncated answer is kept under a strong ETag only",
        plan.facts.flags.has(Flags::STRONG_ETAG),
        true
    );
    if whole_or_part && strong {
        Ok(())
    } else {
        Err(NoStore::Incomplete)
    }
}

/// True if a final response to a cacheable request ends the use of the stored response that has the same key
/// and variant. This does not depend on whether the new response is stored. Server errors do not end the use:
/// the stored response may still be used while the origin fails (RFC 9111 section 4.3.3). Answers that depend
/// on a property of this one request (such as 304, 412 or 416) do not end the use either. The result is false
/// for a 206, which the caller must handle: a 206 ends the use if [`crate::range::may_combine`] is false.
#[must_use]
pub const fn supersedes(request: &RequestFacts, status: u16) -> bool {
    let answer = matches!(status, 200..=205 | 207..=499);
    let about_request = status == 304 || status::is_about_request(status);
    matches!(request.method, Method::Get) && !request.body && answer && !about_request
}

#[cfg(test)]
mod tests;
