//! Checks whether each answer obeys the rules. The head of the module `simulation` describes the rules in
//! words.

use std::rc::Rc;

use super::client::Got;
use super::content::{Made, Personal, Stale, Tag};
use super::profile::{DiskTrouble, Ends};
use super::request::{Asked, Control};
use super::settings::Settings;
use super::spot::Part;
use super::world::{Barrier, Cause, Said, User, World};

/// The result of a request from the point of view of its client.
#[derive(Debug)]
pub(super) enum Ending {
    Got(Got),
    /// The connection ended before the head of an answer.
    Nothing,
    /// No answer came before the client's timeout ended.
    Forgotten,
}

/// Largest rounding error of a heuristic lifetime, in milliseconds. A heuristic lifetime is a tenth of the
/// age of a page, and this age is rounded to whole seconds.
const ROUNDING: u64 = 100;

/// Checks the result of a request. If it breaks a rule, this is noted in the trace, and the history fails.
pub(super) fn judge(world: &Rc<World>, asked: &Asked, ending: &Ending) {
    let wrong = |oracle: &str, text: &str| {
        world.trace.wrong(oracle, &format!("{text}\nof {asked:?}"));
    };
    let excused = asked.rude || has_ended(world, asked) || world.profile.may_fail();
    let lost = may_lose_bytes(world, asked);
    match ending {
        Ending::Forgotten => wrong("liveness", "a request without end"),
        // A reset that truncates an answer can also remove the head of the answer before the client has read
        // it.
        Ending::Nothing if excused || lost || may_be_outdated(world, asked) => {
            world.counts.add("nothing");
        }
        Ending::Nothing => wrong("liveness", "no answer, though nothing failed"),
        Ending::Got(got) => {
            let (status, made) = (got.head.status, got.head.field("x-made"));
            world.trace.note(&format!(
                "client got #{} {status} {made:?} {} bytes, whole {}, {:?} {:?}",
                asked.number,
                got.body.len(),
                got.whole,
                got.head.field("cache-status"),
                got.head.field("connection")
            ));
            // If a newer version exists, the origin no longer has the bytes of the old version.
            let made = made.and_then(Made::parse);
            let gone = made.is_some_and(|made| made.version != world.version(made.spot));
            let lags = may_lag(world, asked, got);
            if !got.whole && !excused && !gone && !lost && !lags {
                wrong("bytes", "a truncated answer, though nothing failed");
            }
            if let Err((oracle, text)) = judge_answer(world, asked, got, excused) {
                wrong(oracle, &format!("{text}; answer: {:?}", got.head));
            }
        }
    }
}

/// Returns true if the process that received the request has ended.
pub(super) fn has_ended(world: &World, asked: &Asked) -> bool {
    asked.life != world.life.get() || world.is_down()
}

/// Returns true if an answer may be truncated because the disk loses bytes. This is so if Foxy cannot request
/// the missing bytes of the version from the origin. Foxy cannot do this if the page has no strong validator,
/// or if the request forbids a fetch.
fn may_lose_bytes(world: &World, asked: &Asked) -> bool {
    let page = asked.spot.page();
    let alone = page.tag != Tag::Strong || asked.obeyed() == Control::OnlyIfCached;
    let profile = &world.profile;
    // A power failure destroys bytes that were not synced, even in the middle of an object. A store that is
    // taken out is not read any more.
    let torn =
        profile.disk != DiskTrouble::None || profile.ends == Ends::PowerCuts || profile.moves;
    torn && page.is_long() && alone
}

/// Returns true if an answer may be truncated because its client reads too slowly. The fetch then continues
/// for the other clients that share it. This happens only to bodies of unknown length, because Foxy cannot
/// request the rest of such a body.
fn may_lag(world: &World, asked: &Asked, got: &Got) -> bool {
    let eras = world.eras.since(asked.started);
    let little = world.profile.wide || eras.iter().any(|era| era.tight);
    let unsized_body = got.head.field("content-length").is_none();
    little && asked.spot.page().is_long() && unsized_body
}

/// Returns true if an answer may be truncated because the missing bytes belong to a version that the origin
/// does not have any more.
fn may_be_outdated(world: &World, asked: &Asked) -> bool {
    let eras = world.eras.since(asked.started);
    let mut spots = eras.iter().map(|era| era.effective(asked.spot));
    asked.spot.page().is_long() && spots.any(|spot| world.version(spot) > 1)
}

type Judgement = Result<(), (&'static str, String)>;

fn judge_answer(world: &World, asked: &Asked, got: &Got, excused: bool) -> Judgement {
    let head = &got.head;
    let made = head.field("x-made").and_then(Made::parse);
    if asked.lacks_login() && made.is_some() {
        return Err(("owner", "an answer without a login".to_owned()));
    }
    let Some(made) = made.filter(|_| head.status < 500) else {
        return match head.status {
            401 if asked.lacks_login() => {
                world.counts.add("without a login");
                Ok(())
            }
            // A 304 that Foxy itself makes has no `X-Made`, because it contains only fields about caching.
            304 if asked.known.as_deref() == head.field("etag") => Ok(()),
            504 if asked.obeyed() == Control::OnlyIfCached => Ok(()),
            416 if asked.range.is_some() => Ok(()),
            500.. if excused => Ok(()),
            status => Err((
                "liveness",
                format!("status {status}, though nothing failed"),
            )),
        };
    };
    let Some(said) = world.said(made.serial) else {
        return Err(("bytes", "an answer that the origin never gave".to_owned()));
    };
    let eras = world.eras.since(asked.started);
    // Foxy does not change the URL of a POST. So the origin receives the query of a POST even if settings
    // remove queries.
    let spot_in = |era: &Settings| match asked.method {
        "POST" => asked.spot,
        _ => era.effective(asked.spot),
    };
    let mut spots = eras.iter().map(spot_in);
    if made != said.made || !spots.any(|spot| made.spot == spot) {
        return Err(("owner", "the answer for another URL".to_owned()));
    }
    if asked.method == "POST" {
        return Ok(());
    }
    let own = said.asked_by == asked.number;
    world.counts.add(if own { "own" } else { "shared" });
    if asked.spot.part != Part::Forward {
        world.counts.add(match (asked.spot.part, own) {
            (Part::Plain, true) => "own at a site",
            (Part::Plain, false) => "shared at a site",
            (_, true) => "own of users",
            (_, false) => "shared by users",
        });
    }
    if !own && world.differ(said.asked_by, asked.number) {
        world.counts.add("shared between workers");
        if said.at >= asked.started {
            world.counts.add("joined between workers");
        }
    }
    owner(world, asked, (got, &said), own)?;
    // An answer that the origin has confirmed may still have the fields of an earlier answer, because Foxy
    // ignores the fields of a 304 if the 304 is not the newest answer.
    let confirmed = world.confirmed(&made, asked.started);
    if confirmed.is_none() {
        freshness(world, asked, &said)?;
    }
    let since = Made {
        serial: made.serial.max(confirmed.unwrap_or(0)),
        ..made.clone()
    };
    barriers(world, asked, &since)?;
    bytes(asked, got, &made)
}

/// Checks the rule "Owner": the client may have the answer.
fn owner(world: &World, asked: &Asked, (got, said): (&Got, &Said), own: bool) -> Judgement {
    let wrong = |text: &str| Err(("owner", text.to_owned()));
    let (page, made) = (asked.spot.page(), &said.made);
    let name = asked.user.name();
    let eras = world.eras.since(asked.started);
    // A rule may permit that answers which set cookies are shared. Other users then get these cookies too.
    let cookies = page.name == "cookie" && eras.iter().any(|era| era.shares_cookies);
    if made.user != "-" && made.user != name {
        return wrong("the page of another user");
    }
    let personal = matches!(
        (page.personal, asked.user),
        (Personal::Both, User::Cookie(_) | User::Login(_))
            | (Personal::Cookie, User::Cookie(_))
            | (Personal::Login, User::Login(_))
    );
    // If a page has a heuristic lifetime, needs validation or varies by cookie, the body for requests without
    // a user must not go to a user.
    let strict = page.tag == Tag::Modified || page.lifetime.is_none() || page.name == "by-cookie";
    if personal && strict && made.user != name {
        return wrong("the page of nobody for a user");
    }
    if !own && page.alone && !cookies {
        return wrong("an answer for one request alone went to another");
    }
    if !own && said.login && !page.open {
        return wrong("an answer to Authorization went to another");
    }
    for field in ["x-user", "set-cookie"] {
        let value = got.head.field(field).filter(|_| !cookies);
        let value = value.map(|value| value.trim_start_matches("session="));
        if value.is_some_and(|value| value != name) {
            return wrong("a field for another user");
        }
    }
    if cookies && !own {
        world.counts.add("shared cookies");
    }
    let variant = if page.varies { asked.variant } else { "-" };
    // If a page does not name `X-Variant` in `Vary`, Foxy distinguishes the variants of the page only if a
    // rule of the settings demands this.
    let any = page.silent && eras.iter().any(|era| !era.has_parts);
    match any || made.variant == variant {
        true => Ok(()),
        false => wrong("another variant"),
    }
}

/// Checks the rule "Freshness": the answer is not too old.
fn freshness(world: &World, asked: &Asked, said: &Said) -> Judgement {
    if said.at >= asked.started {
        return Ok(());
    }
    let age = asked.started - said.at;
    let page = asked.spot.page();
    let stale = match page.stale {
        Stale::Meanwhile(time) if world.profile.network => time.max(super::ON_FAILURE),
        Stale::Meanwhile(time) => time,
        Stale::OnFailure(time) if world.profile.network => time,
        _ => 0,
    };
    let forbidden = page.stale == Stale::Never;
    let own = match asked.obeyed() {
        Control::MaxStale if !forbidden => 5000,
        _ => 0,
    };
    let rounding = if page.tag == Tag::Modified {
        ROUNDING
    } else {
        0
    };
    let most = match (asked.obeyed(), said.lifetime) {
        (Control::NoCache | Control::Fresh, _) if stale == 0 => 0,
        (_, Some(lifetime)) => lifetime + rounding + stale.max(own),
        (_, None) if page.control == "max-age=0" => stale.max(own),
        (_, None) => return Err(("freshness", format!("unvalidated, {age} ms old"))),
    };
    match age <= most {
        true => Ok(()),
        false => Err(("freshness", format!("{age} ms old, {most} ms allowed"))),
    }
}

/// Checks the rule "Removed": the answer was not removed before the request began.
fn barriers(world: &World, asked: &Asked, made: &Made) -> Judgement {
    let Some(barrier) = world.barred(made, asked.started) else {
        return Ok(());
    };
    let page = asked.spot.page();
    let stale = match page.stale {
        Stale::Never => false,
        Stale::Meanwhile(_) => true,
        Stale::OnFailure(_) => world.profile.network || asked.obeyed() == Control::MaxStale,
    };
    if barrier.cause == Cause::SoftPurge && stale {
        return Ok(());
    }
    Err(("removed", format!("came back: {made:?} beyond {barrier:?}")))
}

/// Checks the rule "Bytes": the answer has the right bytes.
fn bytes(asked: &Asked, got: &Got, made: &Made) -> Judgement {
    let wrong = |text: &str| Err(("bytes", text.to_owned()));
    let whole = made.body();
    let head = &got.head;
    let etag = made.etag();
    if head.field("etag") != etag.as_deref() {
        return wrong("another entity tag");
    }
    if head.status == 304 {
        return match &asked.known {
            Some(known) if Some(known) == etag.as_ref() => Ok(()),
            _ => wrong("304 for nothing that the client has"),
        };
    }
    let expected = match head.status {
        200 => &whole[..],
        206 => {
            let Some((from, to)) = asked.range else {
                return wrong("a part that nobody asked for");
            };
            let to = to.min(whole.len() as u64 - 1);
            let text = format!("bytes {from}-{to}/{}", whole.len());
            if head.field("content-range") != Some(&text) {
                return wrong("another range");
            }
            &whole[from as usize..=to as usize]
        }
        416 if asked
            .range
            .is_some_and(|(from, _)| from >= whole.len() as u64) =>
        {
            return Ok(());
        }
        _ => return wrong("an unexpected status"),
    };
    let length = head.number("content-length");
    if length.is_some_and(|length| length != expected.len() as u64) {
        return wrong("another length");
    }
    if asked.method == "HEAD" {
        return Ok(());
    }
    if !expected.starts_with(&got.body) {
        return wrong("other bytes");
    }
    match got.whole && got.body.len() < expected.len() {
        true => wrong("a part that looks whole"),
        false => Ok(()),
    }
}

/// Returns true if, after the answer to this request, other users must not get an earlier version. Returns
/// false if the request has Authorization and only its user may have the answer. After such an answer, Foxy
/// may still store the result of an earlier fetch for other users.
pub(super) fn speaks_for_others(asked: &Asked) -> bool {
    !matches!(asked.user, User::Login(_)) || asked.spot.page().open
}

/// Returns the barrier that applies after a client has received a complete answer: it forbids earlier
/// versions.
pub(super) fn seen(world: &World, made: &Made) -> Barrier {
    Barrier {
        spot: made.spot,
        cause: Cause::Newer,
        serial: made.version,
        since: world.trace.now(),
        durable: false,
        body: Some((made.user.clone(), made.variant.clone())),
    }
}

/// Returns true if a barrier still applies in the next life of the process, after a kill or a power failure.
/// The barrier of a purge survives both events if it is `durable`. If the disk has no faults, every other
/// barrier survives a kill. It also survives a power failure that occurs more than `SYNCED` after the barrier
/// began.
pub(super) fn survives(world: &World, barrier: &Barrier, power: bool) -> bool {
    let sound = world.profile.disk == DiskTrouble::None;
    let purge = matches!(barrier.cause, Cause::Purge | Cause::SoftPurge);
    match (purge, power) {
        (true, _) => barrier.durable,
        (false, false) => sound,
        (false, true) => sound && world.trace.now() - barrier.since > super::SYNCED,
    }
}
