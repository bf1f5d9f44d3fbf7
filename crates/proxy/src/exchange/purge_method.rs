//! The meaning of a `PURGE` request. It purges its URL, or the objects that its fields name. Other caches use
//! these field names too.
//!
//! | field | purges |
//! |---|---|
//! | none | the URL with all variants |
//! | `Surrogate-Key`, `Cache-Tag`, `xkey`, `xkey-purge` | objects with one of the tags |
//! | `xkey-softpurge` | makes objects with one of the tags stale instead of removing them |
//! | `X-Purge-Method: prefix` | all URLs that begin with the URL |
//! | `X-Purge-Method: host` | all URLs of the URL's host |
//! | `X-Purge-Method: regex` | URLs of the same host whose path matches the URL's path as an expression |
//! | `X-Purge-Method: all` | all objects |
//! | `X-Purge-Method: soft`, `Fastly-Soft-Purge: 1` | makes objects stale instead of removing them |
//!
//! A purge covers the partition of the forward proxy or of the request's site. A mirror has many partitions:
//! one for each form of a document, each name of Foxy and each credential. Therefore a purge of a mirror
//! covers all partitions. There are two exceptions: a purge by tag covers only the partition of the request,
//! and `all` purges only the hosts of the mirror's servers. Without the admin credential a request may purge
//! only its own URL, by a hard or a soft purge.

use foxy_base::{Fields, eq_name, first, rule, tokens};
use foxy_http1::Escapes;
use foxy_store::{KeyParts, Purge, PurgeKind, for_each_tag};

use crate::cache::owned_request::OwnedRequest;

/// Largest number of tags of one request.
const TAGS_MAX: usize = 256;

/// Returns the purges that a `PURGE` request orders. Returns `None` for a hard purge of the URL itself.
///
/// # Errors
/// Returns the reason why the request must be refused.
pub(super) fn of(req: &OwnedRequest) -> Result<Option<Vec<Purge>>, &'static str> {
    let head = req.head();
    let url = req.url().ok_or("missing-host")?;
    let (mut kind, mut soft) = (None, first(&head, "Fastly-Soft-Purge") == Some(b"1"));
    for word in tokens(&head, "X-Purge-Method") {
        match &word.to_ascii_lowercase()[..] {
            b"soft" => soft = true,
            b"url" | b"exact" | b"default" => kind = None,
            b"prefix" => kind = Some(PurgeKind::Prefix),
            b"host" => kind = Some(PurgeKind::Host),
            b"regex" => kind = Some(PurgeKind::Expression),
            b"all" => kind = Some(PurgeKind::All),
            _ => return Err("unknown-purge-method"),
        }
    }
    let tags = tags(&head, soft);
    let mirror = req.role.mirrored();
    let purge = |kind, text, soft| Purge {
        kind,
        text,
        partition: match mirror {
            Some(_) if kind != PurgeKind::Tag => String::new(),
            _ => rule!(
                "purge: one on a listener covers its own objects alone",
                req.role.partition().to_owned(),
                String::new()
            ),
        },
        soft,
    };
    if tags.len() > TAGS_MAX {
        return Err("too-many-tags");
    }
    if !tags.is_empty() {
        let all = tags.into_iter();
        let all = all.map(|(tag, soft)| purge(PurgeKind::Tag, tag, soft));
        return Ok(Some(all.collect()));
    }
    let mut text = Vec::new();
    url.write(Escapes::AsReceived, &mut text);
    let mut host = format!("{}://", url.scheme.as_str()).into_bytes();
    url.authority.write_normalised(url.scheme, &mut host);
    let kind = match kind {
        None if !soft && mirror.is_none() => return Ok(None),
        kind => kind.unwrap_or(PurgeKind::Url),
    };
    if let (PurgeKind::All, Some(mirror)) = (kind, mirror) {
        let hosts = mirror.hosts();
        let all = hosts.map(|host| purge(PurgeKind::Host, host, soft));
        return Ok(Some(all.collect()));
    }
    match kind {
        PurgeKind::All => text.clear(),
        PurgeKind::Host => {
            text.clear();
            url.authority.write_normalised(url.scheme, &mut text);
        }
        PurgeKind::Expression => {
            let path = text.split_off(host.len());
            text = expression(&host, &path);
        }
        // The URL is purged in the form that it has in keys, because the operator's rules may change its
        // query.
        PurgeKind::Url => text = KeyParts::of(&req.base).url.to_vec(),
        PurgeKind::Prefix => text = [&host, req.target()].concat(),
        PurgeKind::Tag => {}
    }
    Ok(Some(vec![purge(kind, text, soft)]))
}

/// Returns the tags that the fields of the request name, each with a flag. The flag is true if the purge of
/// this tag is soft.
fn tags<F: Fields>(head: &F, soft: bool) -> Vec<(Vec<u8>, bool)> {
    let mut tags = Vec::new();
    for_each_tag(head, |tag| tags.push((tag.to_vec(), soft)));
    for i in 0..head.count() {
        let (name, value) = head.field(i);
        let softly = eq_name(name, b"xkey-softpurge");
        if softly || eq_name(name, b"xkey-purge") {
            let words = value.split(u8::is_ascii_whitespace);
            let words = words.filter(|word| !word.is_empty());
            tags.extend(words.map(|word| (word.to_vec(), softly || soft)));
        }
    }
    tags
}

/// Returns a regular expression for URLs: the text `host` literally, followed by the regular expression
/// `path` for the rest of the URL.
fn expression(host: &[u8], path: &[u8]) -> Vec<u8> {
    let mut text = b"^".to_vec();
    for byte in host {
        if !byte.is_ascii_alphanumeric() {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.extend_from_slice(path);
    text
}
