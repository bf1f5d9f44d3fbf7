//! Large objects: fragment after fragment, the next one read while the present one is sent.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use foxy_http_rules::range::Span;
use foxy_store::{Lookup, Object};

use super::find::fragment;
use super::memory::{self, Shape, write_heads};
use crate::ask::Ask;
use crate::conn::rest::Rest;
use crate::conn::{Conn, Finish};
use crate::fetch::strong_etag;
use crate::local::Local;
use crate::net::Transport;

use crate::conn::Shown;

/// A fragment being read.
type Reading = tokio::task::JoinHandle<Option<Arc<Object>>>;

fn start(local: &Rc<Local>, head: &Arc<Object>, n: u32) -> Reading {
    let (local, head) = (Rc::clone(local), Arc::clone(head));
    tokio::task::spawn_local(async move { fragment(&local, &head, n).await })
}

/// Bytes in every fragment but the last.
fn fragment_size(head: &Object) -> u64 {
    u64::from(head.fragment_size().max(1))
}

/// The fragment that holds the byte at `at`.
fn number(head: &Object, at: u64) -> u32 {
    u32::try_from(at / fragment_size(head)).unwrap_or(u32::MAX)
}

/// At most `want` bytes of a fragment, from `skip` on.
fn piece(fragment: &Object, skip: u64, want: u64) -> &[u8] {
    let limit = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let bytes = fragment.body().get(limit(skip)..).unwrap_or_default();
    &bytes[..bytes.len().min(limit(want))]
}

/// The fragment that `span` begins in, read and checked, if all others that it needs are there
/// too: what is promised in a head should not turn out to be missing afterwards.
async fn begin(local: &Local, head: &Arc<Object>, span: Span) -> Option<Arc<Object>> {
    let (first, last) = (number(head, span.start), number(head, span.end - 1));
    let engine = &local.proxy.engine;
    let there = |n| !matches!(engine.fragment_lookup(head, n), Lookup::Miss);
    // The first question is the cheaper one, and usually answered with yes.
    if !engine.has_all_fragments(head) && !(first..=last).all(there) {
        return None;
    }
    fragment(local, head, first).await
}

impl<T: Transport> Conn<T> {
    /// Sends an object of any size out of the cache. `None`, and nothing sent, if fragments that
    /// it needs are not there: then it is a miss.
    pub(crate) async fn large(
        &mut self,
        ask: &Ask,
        object: &Arc<Object>,
        shape: &Shape,
        shown: &Shown,
        keep: bool,
    ) -> Option<Finish> {
        let head = ask.head();
        let body = head.method() != foxy_http1::Method::Head;
        let fragments = object.is_large()
            && body
            && matches!(shape, Shape::Whole | Shape::One(_) | Shape::Many(_));
        let local = Rc::clone(&self.local);
        let hit = shown.hit(&local.proxy, keep);
        let mut finish = Finish {
            outcome: shown.outcome,
            object: Some(Arc::clone(object)),
            keep,
            ..Finish::default()
        };
        if !fragments {
            let (io, scratch) = (&self.io, &mut self.scratch);
            let sent = memory::send(&local, io, scratch, &head, object, shape, &hit).await;
            return Some(match sent {
                Ok(sent) => Finish {
                    status: sent.status,
                    body: sent.body,
                    ..finish
                },
                Err(_) => Finish::gone(object.meta().status),
            });
        }
        // Several parts of something this large: the whole is allowed too.
        let whole = Span {
            start: 0,
            end: object.total_length(),
        };
        let (shape, span) = match shape {
            Shape::One(span) => (Shape::One(*span), *span),
            _ => (Shape::Whole, whole),
        };
        let first = begin(&local, object, span).await?;
        finish.status = write_heads(&local, &mut self.scratch, &head, object, &shape, &hit);
        let sending = self.fragments(&local, ask, object, span, first, &mut finish.body);
        Some(match sending.await {
            Ok(()) => finish,
            Err(Broken::Client) => Finish::gone(finish.status),
            Err(Broken::Cut) => {
                self.abort();
                finish.keep = false;
                finish.reason = "fragment-missing";
                finish
            }
        })
    }

    /// Sends the heads in the scratch buffers and the bytes of `span`, which begins in `first`.
    async fn fragments(
        &mut self,
        local: &Rc<Local>,
        ask: &Ask,
        object: &Arc<Object>,
        span: Span,
        first: Arc<Object>,
        sent: &mut u64,
    ) -> Result<(), Broken> {
        let size = fragment_size(object);
        let mut present = first;
        let mut heads_sent = false;
        loop {
            let at = span.start + *sent;
            let n = number(object, at);
            let next = u64::from(n).saturating_add(1) * size;
            let reading = (next < span.end).then(|| start(local, object, n + 1));
            let bytes = piece(&present, at - u64::from(n) * size, span.end - at);
            if bytes.is_empty() {
                return Err(Broken::Cut);
            }
            if heads_sent {
                let mut slices = [IoSlice::new(bytes)];
                let written = self.io.write_all(&mut slices, local.patience.progress);
                written.await.map_err(|_| Broken::Client)?;
            } else {
                self.send_heads(object, bytes).await?;
                heads_sent = true;
            }
            *sent += bytes.len() as u64;
            let Some(reading) = reading else {
                let whole = *sent == span.len();
                return whole.then_some(()).ok_or(Broken::Cut);
            };
            let at = span.start + *sent;
            present = match reading.await {
                Ok(Some(fragment)) if at == next => fragment,
                _ => return self.missing(ask, object, at, span.end, sent).await,
            };
        }
    }

    async fn send_heads(&self, object: &Object, body: &[u8]) -> Result<(), Broken> {
        let mut slices = [
            IoSlice::new(&self.scratch.head),
            IoSlice::new(object.fields().text()),
            IoSlice::new(&self.scratch.tail),
            IoSlice::new(body),
        ];
        let written = self.io.write_all(&mut slices, self.local.patience.progress);
        written.await.map_err(|_| Broken::Client)
    }

    /// A fragment is gone: the entry is of no use any more, and the rest comes from the origin.
    async fn missing(
        &mut self,
        ask: &Ask,
        object: &Arc<Object>,
        from: u64,
        until: u64,
        sent: &mut u64,
    ) -> Result<(), Broken> {
        let engine = &self.local.proxy.engine;
        engine.supersede(object.hash(), object.key());
        let etag = strong_etag(object.fields()).ok_or(Broken::Cut)?;
        let rest = Rest {
            from,
            until,
            complete: object.total_length(),
            etag,
        };
        *sent += self.rest(ask, &rest).await.map_err(|_| Broken::Cut)?;
        Ok(())
    }
}

/// Why not everything was sent.
enum Broken {
    Client,
    Cut,
}
