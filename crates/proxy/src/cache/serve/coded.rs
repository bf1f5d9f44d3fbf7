//! Compressed forms of stored answers, for sites whose settings request them.
//!
//! Freshness, conditions and purges are judged by the plain (uncompressed) answer, which is a stored object.
//! A compressed form provides only the body. It is stored under a key that contains the version of the plain
//! answer. If the plain answer is replaced, purged or evicted, no request can find the form any more. So a
//! form cannot outlive its plain answer. The first request for a form receives the plain answer, and starts
//! the compression.

use std::io::{self, IoSlice, Write};
use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{Fields, KeyHash, WallTime, hash64};
use foxy_http_rules::coding::{Coding, coded_fields, is_compressible, is_for_all, wanted};
use foxy_http_rules::conditional::{self, Condition};
use foxy_http_rules::{CachingFacts, RequestFacts};
use foxy_http1::{Method, RequestHead, write};
use foxy_store::{NewObject, Object};
use hashbrown::HashSet;
use parking_lot::Mutex;

use super::find::get;
use super::memory::Sent;
use crate::cache::gate::Hit;
use crate::cache::key;
use crate::cache::remembered::Remembered;
use crate::http::net::{Io, Transport};
use crate::http::reply::{Mode, OwnFields, Scratch, own_fields};
use crate::sites::compress::Compress;
use crate::state::ledger::Use;
use crate::state::local::Local;
use crate::{Event, Proxy};

/// Largest number of compressed forms that all workers together make at the same time.
const AT_ONCE: usize = 2;
/// Estimated memory of an encoder, in bytes.
const ENCODER_BYTES: usize = 4 << 20;
/// Quality of Brotli. This quality compresses text at 20 to 60 MB/s.
const BROTLI_QUALITY: u32 = 5;
/// Window of Brotli, as a power of two: 512 KiB. The bodies that are compressed are shorter, so a longer
/// window has no use.
const BROTLI_WINDOW: u32 = 19;
const GZIP_LEVEL: u32 = 6;

/// The compressed forms that are being made, and the forms that Foxy has recently tried to make.
#[derive(Debug)]
pub(crate) struct Making {
    now: Mutex<HashSet<KeyHash>>,
    tried: Remembered,
}

impl Making {
    pub(crate) fn new() -> Self {
        Self {
            now: Mutex::default(),
            tried: Remembered::new(),
        }
    }

    /// Takes one of the [`AT_ONCE`] permits for making forms. Returns false if no permit is free, or if this
    /// form is being made or was tried a short time ago.
    fn begin(&self, form: KeyHash, now: WallTime) -> bool {
        if self.tried.has(form, now) {
            return false;
        }
        let mut making = self.now.lock();
        let begins = making.len() < AT_ONCE && making.insert(form);
        if begins {
            self.tried.note(form, true, now);
        }
        begins
    }
}

/// The permit to make a compressed form. It is free again when this value is dropped.
struct FormPermit {
    proxy: Arc<Proxy>,
    form: KeyHash,
}

impl Drop for FormPermit {
    fn drop(&mut self) {
        self.proxy.making.now.lock().remove(&self.form);
    }
}

/// Returns the coding in which a stored answer is sent for this request. `None` means the plain body.
pub(crate) fn choose(
    compress: &Compress,
    head: &RequestHead<'_>,
    request: &RequestFacts,
    object: &Object,
) -> Option<Coding> {
    let (fields, length) = (object.fields(), object.total_length());
    let list = key::split_vary(object).map_or(&[][..], |(list, _)| list);
    let fits = object.meta().status == 200
        && !object.is_large()
        && length >= compress.bytes_min
        && matches!(head.method(), Method::Get | Method::Head)
        && is_compressible(fields)
        && is_for_all(request, fields, list);
    fits.then(|| wanted(request, head, &compress.codings))?
}

/// Returns the key of a compressed form. It has a `~` where the key of a variant has the first digit of its
/// nonce, so it differs from the keys of all variants.
fn form_key(object: &Object, coding: Coding) -> Vec<u8> {
    let mut key = object.key().to_vec();
    let name = format!("\n~{:016x}\n{}", object.meta().version, coding.name());
    key.extend_from_slice(name.as_bytes());
    key
}

/// Returns the compressed form of an object if it is stored. Otherwise starts to make the form.
pub(crate) async fn find(
    local: &Local,
    object: &Arc<Object>,
    coding: Coding,
) -> Option<Arc<Object>> {
    let key = form_key(object, coding);
    let hash = local.proxy.engine.keys().hash(&key);
    match get(local, hash, &key).await {
        // An empty form means that compression saves too little, so the plain body is sent.
        Some((form, _)) => (!form.body().is_empty()).then_some(form),
        None => {
            make(local, object, coding, (key, hash));
            None
        }
    }
}

/// Starts to make a form on another thread, if fewer than [`AT_ONCE`] forms are being made and there is
/// memory for it.
fn make(local: &Local, object: &Arc<Object>, coding: Coding, (key, hash): (Vec<u8>, KeyHash)) {
    let proxy = Arc::clone(&local.proxy);
    if !proxy.making.begin(hash, local.wall()) {
        return;
    }
    let permit = FormPermit { proxy, form: hash };
    let want = ENCODER_BYTES + 2 * object.body().len();
    let Some(memory) = local.proxy.ledger.reserve(Use::Fills, want) else {
        return;
    };
    local.count(Event::Compressed);
    let object = Arc::clone(object);
    tokio::task::spawn_blocking(move || {
        if let Ok(body) = compressed(object.body(), coding) {
            // A form is used only if it is more than a tenth shorter than the plain body. Otherwise an empty
            // form is stored.
            let worth = body.len() + body.len() / 9 < object.body().len();
            let body = if worth { &body[..] } else { &[] };
            let form = form(&object, coding, (key, hash), body);
            permit.proxy.engine.put(form);
        }
        drop((memory, permit));
    });
}

fn compressed(body: &[u8], coding: Coding) -> io::Result<Vec<u8>> {
    let out = Vec::with_capacity(body.len() / 3);
    match coding {
        Coding::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder = flate2::write::GzEncoder::new(out, level);
            encoder.write_all(body)?;
            encoder.finish()
        }
        Coding::Brotli => {
            let buffer = 64 << 10;
            let mut encoder =
                brotli::CompressorWriter::new(out, buffer, BROTLI_QUALITY, BROTLI_WINDOW);
            encoder.write_all(body)?;
            Ok(encoder.into_inner())
        }
    }
}

/// Returns the compressed form as it is stored. It has the fields of the plain answer, so that purges by tags
/// cover it. It also has the plain answer's `purge_sequence` (the number of the newest purge before the
/// fetch), so that later purges cover both.
fn form(
    object: &Object,
    coding: Coding,
    (key, hash): (Vec<u8>, KeyHash),
    body: &[u8],
) -> NewObject {
    NewObject {
        key: key.into(),
        hash,
        group: hash64(0, object.key()),
        meta: foxy_store::ObjectMeta {
            nonce: 0,
            ..*object.meta()
        },
        vary: Bytes::new(),
        tags: object.tags().clone(),
        fields: coded_fields(object.fields(), coding),
        // The copy needs only as much memory as the body has bytes. The buffer of the encoder may be larger.
        body: Bytes::copy_from_slice(body),
    }
}

/// Sends the compressed form of an object, or a 304 response for this form.
pub(crate) async fn send<T: Transport>(
    local: &Local,
    io: &Io<T>,
    scratch: &mut Scratch,
    (head, request): (&RequestHead<'_>, &RequestFacts),
    (object, stored, form, coding): (&Object, &CachingFacts, &Object, Coding),
    hit: &Hit<'_>,
) -> io::Result<Sent> {
    let fields = coded_fields(object.fields(), coding);
    let known = request.conditional
        && conditional::evaluate(head, &fields, stored, local.wall()) == Condition::NotModified;
    let out = &mut scratch.head;
    out.clear();
    let (status, mode) = match known {
        true => (304, Mode::Bare),
        false => (200, Mode::Length(form.total_length())),
    };
    write::status_line(out, status);
    for i in 0..fields.count() {
        let (name, value) = fields.field(i);
        if !known || conditional::is_sent_with_304(name) {
            write::field(out, name, value);
        }
    }
    let own = OwnFields {
        mode,
        age: Some(hit.age),
        cache: Some(&hit.cache),
        keep: hit.keep,
        head: Some(head),
        to: Some(hit.to),
        varies: false,
    };
    own_fields(out, local, &own);
    let body: &[u8] = match head.method() {
        Method::Head => &[],
        _ if known => &[],
        _ => form.body(),
    };
    let mut slices = [IoSlice::new(out), IoSlice::new(body)];
    io.write_all(&mut slices, local.timeouts.progress).await?;
    Ok(Sent {
        status,
        body: body.len() as u64,
    })
}
