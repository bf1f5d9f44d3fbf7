//! Large objects: fragment after fragment, the next one read while the present one is sent.

use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;

use foxy_http_rules::range::Span;
use foxy_store::Object;

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

impl<T: Transport> Conn<T> {
    /// Sends an object of any size out of the cache.
    pub(crate) async fn large(
        &mut self,
        ask: &Ask,
        object: &Arc<Object>,
        shape: &Shape,
        shown: &Shown,
        keep: bool,
    ) -> Finish {
        let head = ask.head();
        let body = head.method() != foxy_http1::Method::Head;
        let fragments = object.is_large()
            && body
            && matches!(shape, Shape::Whole | Shape::One(_) | Shape::Many(_));
        let local = Rc::clone(&self.local);
        let hit = shown.hit(&local.proxy.config.headers.name, keep);
        let mut finish = Finish {
            outcome: shown.outcome,
            fields: Some(object.fields().clone()),
            keep,
            ..Finish::default()
        };
        if !fragments {
            let (io, scratch) = (&self.io, &mut self.scratch);
            let sent = memory::send(&local, io, scratch, &head, object, shape, &hit).await;
            return match sent {
                Ok(sent) => Finish {
                    status: sent.status,
                    body: sent.body,
                    ..finish
                },
                Err(_) => Finish::gone(object.meta().status),
            };
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
        finish.status = write_heads(&local, &mut self.scratch, &head, object, &shape, &hit);
        match self
            .fragments(&local, ask, object, span, &mut finish.body)
            .await
        {
            Ok(()) => finish,
            Err(Broken::Client) => Finish::gone(finish.status),
            Err(Broken::Cut) => {
                self.abort();
                finish.keep = false;
                finish.reason = "fragment-missing";
                finish
            }
        }
    }

    /// Sends the heads in the scratch buffers and the bytes of `span`.
    async fn fragments(
        &mut self,
        local: &Rc<Local>,
        ask: &Ask,
        object: &Arc<Object>,
        span: Span,
        sent: &mut u64,
    ) -> Result<(), Broken> {
        let size = u64::from(object.fragment_size().max(1));
        let number = |at: u64| u32::try_from(at / size).unwrap_or(u32::MAX);
        let mut reading = start(local, object, number(span.start));
        let mut heads_sent = false;
        while *sent < span.len() {
            let at = span.start + *sent;
            let n = number(at);
            let Ok(Some(fragment)) = reading.await else {
                if !heads_sent {
                    self.send_heads(object, &[]).await?;
                }
                return self.missing(ask, object, at, span.end, sent).await;
            };
            let next = u64::from(n + 1) * size;
            reading = if next < span.end {
                start(local, object, n + 1)
            } else {
                // Nothing follows; the handle is replaced so that the loop stays simple.
                tokio::task::spawn_local(std::future::ready(None))
            };
            let skip = usize::try_from(at - u64::from(n) * size).unwrap_or(usize::MAX);
            let want = usize::try_from(span.end - at).unwrap_or(usize::MAX);
            let bytes = fragment.body().get(skip..).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min(want)];
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
        }
        Ok(())
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
