//! Requests that store or remove an object of a build cache.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{FieldBlock, FieldBlockBuilder, first, rule};
use foxy_http1::{BodyReader, RequestHead, write};
use foxy_store::{Lookup, Object};
use sha2::{Digest as _, Sha256};

use super::{Exchange, Finish};
use crate::access::logins::challenge;
use crate::access::refusal::Refusal;
use crate::cache::owned_request::OwnedRequest;
use crate::cache::serve::memory::Shape;
use crate::fill::FillWriter;
use crate::fill::fetch::keep::Keeper;
use crate::fill::fetch::pace::Pace;
use crate::fill::fetch::{FillHead, put};
use crate::http::net::{BodyError, Transport, next_piece};
use crate::http::reply::{Extra, Mode, OwnFields, own_fields};
use crate::http::rewriting::ResponseContext;
use crate::sites::objects::{NO_OBJECT, ObjectKind, ObjectWish, refusal};
use crate::state::local::Local;
use crate::{Event, Outcome};

/// Reason why an object was neither stored nor removed.
enum Failed {
    /// The client left, or stalled.
    Client,
    /// The client gets this refusal. The flag is true if no byte of the body is left on the connection.
    Refused(Refusal, bool),
}

/// The upload of an object while it is being stored. It is a fill (like a fetch from an origin), but no
/// request can join it. As with any fill, a purge or a removal during the upload prevents the object from
/// being stored.
struct Storing<'a> {
    local: &'a Local,
    writer: FillWriter<FillHead>,
    keeper: Option<Keeper>,
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        self.local.proxy.fills.leave(self.writer.fill());
    }
}

impl<T: Transport> Exchange<'_, T> {
    /// Stores or removes an object, if the user may do so.
    pub(crate) async fn write_object(&mut self, wish: ObjectWish) -> Finish {
        let head = self.req.head();
        let bodiless = head.framing().is_empty();
        let done = match wish {
            ObjectWish::Store(kind) | ObjectWish::Remove(kind) => {
                match may_write(&self.req, kind).or_else(|| refused_field(&head)) {
                    Some(refusal) => Err(Failed::Refused(refusal, bodiless)),
                    None if matches!(wish, ObjectWish::Store(_)) => self.store(kind).await,
                    None => forget_object(&self.local, &self.req, bodiless).await,
                }
            }
            ObjectWish::Read => Err(Failed::Refused(NO_OBJECT, bodiless)),
            ObjectWish::Refused(refusal) => Err(Failed::Refused(refusal, bodiless)),
        };
        match done {
            Ok((status, reason)) => self.wrote(status, reason).await,
            Err(Failed::Client) => Finish::gone(0),
            Err(Failed::Refused(refusal, read)) => {
                self.keep &= read;
                self.not_written(refusal).await
            }
        }
    }

    /// Stores the body. The new object is invisible until its last byte has arrived. Until then, requests get
    /// the old object.
    async fn store(&mut self, kind: ObjectKind) -> Result<(u16, &'static str), Failed> {
        let (local, req) = (Rc::clone(&self.local), Rc::clone(&self.req));
        let (io, _, buf) = self.link.upload();
        let most = req.role.objects().map_or(0, |objects| objects.size_max);
        let most = most.min(local.proxy.engine.object_bytes_max());
        let head = req.head();
        let framing = head.framing();
        let empty = framing.is_empty();
        if framing.length().is_some_and(|length| length > most) {
            return Err(Failed::Refused(TOO_LARGE, false));
        }
        let now = (local.wall(), local.proxy.engine.purges().purge_sequence());
        let fields = fields_of(&local, kind);
        let target = put::store_target(&local, &req, fields, now);
        let target = target.map_err(|_| Failed::Refused(NOT_KEPT, empty))?;
        if head.parts().expects_continue() && buf.is_empty() {
            let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
            let told = io.write(go_on, local.timeouts.progress).await;
            told.map_err(|_| Failed::Client)?;
        }
        let (writer, _) = local
            .proxy
            .fills
            .uncollapsed(req.base_hash, &req.base, req.base_hash);
        let keeper = Keeper::new(&local, writer.fill(), Some(target), None);
        let mut storing = Storing {
            local: &local,
            writer,
            keeper: Some(keeper),
        };
        let mut reader = BodyReader::new(framing, &local.limits);
        let mut hash = matches!(kind, ObjectKind::Content(_)).then(Sha256::new);
        let (mut length, mut pace) = (0, Pace::new());
        loop {
            let piece = next_piece(io, buf, &mut reader, local.timeouts.progress);
            let piece = piece.await.map_err(|error| match error {
                BodyError::Framing(reject) => Failed::Refused(reject.into(), false),
                BodyError::Io(_) => Failed::Client,
            })?;
            let bytes = Bytes::copy_from_slice(&buf.filled()[piece.range]);
            buf.consume(piece.consumed);
            if piece.end {
                break;
            }
            length += bytes.len() as u64;
            if rule!("objects: none is longer than allowed", length > most, false) {
                return Err(Failed::Refused(TOO_LARGE, false));
            }
            if let Some(hash) = &mut hash {
                hash.update(&bytes);
            }
            storing.push(&bytes, &mut pace).await?;
        }
        let hash = hash.map(|hash| ObjectKind::Content(hash.finalize().into()));
        if rule!(
            "objects: content has the digest of its name",
            hash.is_some_and(|found| found != kind),
            false
        ) {
            return Err(Failed::Refused(DIGEST_WRONG, true));
        }
        storing.finish(&req, pace).await
    }

    /// Sends the answer after an object was stored or removed.
    async fn wrote(&mut self, status: u16, reason: &'static str) -> Finish {
        let (local, req, keep) = (&self.local, &self.req, self.keep);
        let (head, ends) = (req.head(), self.link.ends());
        let out = &mut ends.scratch.head;
        out.clear();
        write::status_line(out, status);
        local.push_date(local.wall(), out);
        let own = OwnFields {
            mode: match status {
                204 => Mode::Bare,
                _ => Mode::Length(0),
            },
            age: None,
            cache: None,
            keep,
            varies: false,
            head: Some(&head),
            to: Some(ResponseContext::new(&req.role, &req.client)),
        };
        own_fields(out, local, &own);
        let sent = ends.io.write(out, local.timeouts.progress).await;
        Finish {
            outcome: Outcome::Local,
            reason,
            status,
            keep: keep && sent.is_ok(),
            ..Finish::default()
        }
    }

    async fn not_written(&mut self, refusal: Refusal) -> Finish {
        let local = Rc::clone(&self.local);
        let gate = local.proxy.config.gatekeeper.as_deref();
        let fields = match (refusal.status, gate.and_then(|gate| gate.logins())) {
            (401, Some(logins)) => challenge(logins, true),
            (503, _) => b"Retry-After: 1\r\n".to_vec(),
            _ => Vec::new(),
        };
        let extra = Extra {
            fields: &fields,
            ..Extra::default()
        };
        let outcome = match refusal.status {
            401 | 403 => Outcome::Denied,
            500.. => Outcome::Local,
            _ => Outcome::BadRequest,
        };
        self.page(refusal, &extra, outcome).await
    }
}

/// Returns a refusal if the user may not write. Without a login nobody may write.
fn may_write(req: &OwnedRequest, kind: ObjectKind) -> Option<Refusal> {
    let objects = req.role.objects()?;
    let pass = req.client.pass.as_ref();
    match pass.and_then(|pass| pass.user.as_ref()) {
        Some(user) => objects.refuses(kind, user),
        None => rule!(
            "objects: nobody writes without a login",
            Some(refusal(401, "login-needed")),
            None
        ),
    }
}

/// Removes an object durably: it does not come back after a restart.
async fn forget_object(
    local: &Local,
    req: &OwnedRequest,
    bodiless: bool,
) -> Result<(u16, &'static str), Failed> {
    if !bodiless {
        return Err(Failed::Refused(refusal(400, "body-not-expected"), false));
    }
    let proxy = Arc::clone(&local.proxy);
    let purged = proxy.purge_key(req.base_hash, &req.base, false).await;
    let durable = rule!(
        "objects: a removal is answered when it survives a power cut",
        purged.durable,
        true
    );
    match durable {
        true => Ok((204, "object-removed")),
        false => Err(Failed::Refused(refusal(500, "purge-not-durable"), true)),
    }
}

impl Storing<'_> {
    async fn push(&mut self, bytes: &Bytes, pace: &mut Pace) -> Result<(), Failed> {
        let (local, fill) = (self.local, self.writer.fill());
        let Some(keeper) = &mut self.keeper else {
            return Err(Failed::Refused(NOT_KEPT, false));
        };
        keeper.push(local, fill, bytes);
        if !keeper.is_kept() {
            return Err(Failed::Refused(NOT_KEPT, false));
        }
        if keeper.streams() && local.proxy.engine.is_congested() {
            Box::pin(pace.between_pieces(local)).await;
        }
        Ok(())
    }

    /// Stores the complete body, which replaces the object that was stored before.
    async fn finish(
        mut self,
        req: &OwnedRequest,
        mut pace: Pace,
    ) -> Result<(u16, &'static str), Failed> {
        let local = self.local;
        if local.proxy.engine.is_congested() {
            Box::pin(pace.before_put(local)).await;
        }
        let before = local.proxy.engine.reads().lookup(req.base_hash, &req.base);
        let keeper = self.keeper.take();
        if !keeper.is_some_and(|keeper| keeper.finish(local, self.writer.fill())) {
            return Err(Failed::Refused(NOT_KEPT, true));
        }
        local.count(Event::FillsStored);
        Ok(match before {
            Lookup::Miss => (201, "object-stored"),
            _ => (204, "object-replaced"),
        })
    }
}

const TOO_LARGE: Refusal = refusal(413, "object-too-large");
const NOT_KEPT: Refusal = refusal(503, "object-not-kept");
const DIGEST_WRONG: Refusal = refusal(422, "digest-wrong");

/// Returns a refusal if the fields of a request require more than storing or removing a complete object.
fn refused_field(head: &RequestHead<'_>) -> Option<Refusal> {
    const CONDITIONS: [&str; 4] = [
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
    ];
    let has = |name: &'static str| first(head, name).is_some();
    // A server that cannot store a part of an object refuses the request (RFC 9110 section 14.5).
    if has("Content-Range") {
        return Some(refusal(400, "object-part"));
    }
    if first(head, "Content-Encoding")
        .is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity"))
    {
        return Some(refusal(415, "object-coding"));
    }
    let conditional = rule!(
        "objects: a write under a condition is refused",
        CONDITIONS.into_iter().any(has),
        false
    );
    conditional.then_some(refusal(501, "condition-on-write"))
}

/// Returns the fields of a new object. If the name of the object is its digest, the ETag is this digest.
/// Otherwise the ETag is a random value.
fn fields_of(local: &Local, kind: ObjectKind) -> FieldBlock {
    let (etag, lifetime) = match kind {
        ObjectKind::Content(digest) => {
            let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            (text, "max-age=31536000, immutable")
        }
        _ => {
            let draw = (local.nonce(), local.nonce());
            (format!("{:016x}{:016x}", draw.0, draw.1), "no-cache")
        }
    };
    let mut fields = FieldBlockBuilder::default();
    fields.push_any(b"Date", &local.date(local.wall()));
    fields.push_any(b"Content-Type", b"application/octet-stream");
    fields.push_any(b"X-Content-Type-Options", b"nosniff");
    fields.push_any(b"ETag", format!("\"{etag}\"").as_bytes());
    fields.push_any(b"Cache-Control", lifetime.as_bytes());
    fields.finish()
}

/// Returns a refusal if no part of a stored object may be sent. There are two reasons: a condition of the
/// request fails, or the store has dropped some fragments of the object.
pub(crate) fn unfit(
    local: &Local,
    object: &Arc<Object>,
    shape: &Shape,
) -> Option<(Refusal, Outcome)> {
    if *shape == Shape::AskOrigin {
        let refusal = refusal(412, "condition-not-met");
        return Some((refusal, Outcome::MemoryHit));
    }
    if is_whole(local, object) {
        return None;
    }
    lost(local, object);
    Some((NO_OBJECT, Outcome::Miss))
}

fn is_whole(local: &Local, object: &Object) -> bool {
    let unit = u64::from(object.fragment_size().max(1));
    let count = match object.is_large() {
        true => object.total_length().div_ceil(unit),
        false => 0,
    };
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (0..count).all(|n| local.proxy.engine.has_fragment(object, n))
}

/// Removes an object that has lost fragments, so that the next request for it is a miss.
pub(crate) fn lost(local: &Local, object: &Object) {
    let engine = &local.proxy.engine;
    if engine.is_current_version(object) {
        engine.supersede(object.hash(), object.key());
    }
}
