//! A request to a registry of container images, with the other requests that the registry's protocol needs.
//! These other requests fetch a token from the service that the registry names, and follow redirects to the
//! servers that contain the layers.

use foxy_base::{eq_name, first, values};
use foxy_http1::{BodyReader, Method, ResponseParts};
use foxy_mirror::{Challenge, Upstream, Wanted, challenge, parse_location, push_parameter, token};

use crate::cache::owned_request::OwnedRequest;
use crate::http::destination::Destination;
use crate::mirrors::ImagePart;
use crate::mirrors::images::heads::{self, Changed};
use crate::origin::UpstreamError;
use crate::origin::exchange::Leased;
use crate::state::local::Local;
use crate::{Event, Mirrored, OriginTimeouts};

/// Largest number of redirects that are followed.
const HOPS: usize = 5;
/// Longest answer of a token service, in bytes.
const TOKEN_BYTES: usize = 64 << 10;
/// Longest body, in bytes, that is read only so that its connection can be used again.
const REST_BYTES: usize = 16 << 10;

const UNLISTED: UpstreamError = UpstreamError::BadResponse("token-service-not-listed");
const REDIRECT: UpstreamError = UpstreamError::BadResponse("redirect-not-followed");

type Answered = Result<(Leased, ResponseParts), UpstreamError>;

/// Sends a request without a body and waits for the head of the final answer.
pub(crate) async fn ask(
    local: &Local,
    req: &OwnedRequest,
    part: &Mirrored,
    request: &[u8],
) -> Answered {
    let Some(image) = part.image() else {
        return Leased::ask_one(local, &req.to, request, true).await;
    };
    let registry = Registry {
        local,
        req,
        part,
        image,
        request,
    };
    // The method of `request` decides here, not the client's method. If the client sent HEAD, the method of
    // `request` can be GET, because a fetch uses GET.
    let head = request.starts_with(b"HEAD ");
    match (image.is_proof(), &image.image().wanted) {
        (true, _) => registry.proof().await,
        (false, Wanted::Tag) if !head => registry.tag().await,
        (false, _) => registry.run(if head { "HEAD" } else { "GET" }, None).await,
    }
}

/// A request to a registry, with the values that its steps need.
struct Registry<'a> {
    local: &'a Local,
    req: &'a OwnedRequest,
    part: &'a Mirrored,
    image: &'a ImagePart,
    request: &'a [u8],
}

impl Registry<'_> {
    /// Asks the registry whether the repository has the layer.
    async fn proof(&self) -> Answered {
        let (leased, parts) = self.run("HEAD", None).await?;
        // A status 403, 405 or 501 may mean that the URL of the layer is signed only for GET. So GET is tried
        // for these statuses.
        if !matches!(parts.status(), 403 | 405 | 501) {
            return self.bare(
                leased,
                parts,
                parts.status(),
                parts.persistent(Method::Head),
            );
        }
        drop(leased);
        let (leased, parts) = self.run("GET", Some("bytes=0-0")).await?;
        let status = match parts.status() {
            206 => 200,
            status => status,
        };
        self.bare(leased, parts, status, false)
    }

    /// Returns the manifest of a tag. If the request names the digest of a stored manifest, a HEAD request
    /// first asks for the digest of the tag. If both digests are equal, the manifest is not fetched again,
    /// because registries limit the number of manifests that they send to a client.
    async fn tag(&self) -> Answered {
        let known = heads::fields(self.request)
            .find(|(name, _)| eq_name(name, b"if-none-match"))
            .map(|(_, value)| value.trim_ascii().to_vec());
        let Some(known) = known else {
            return self.run("GET", None).await;
        };
        let (leased, parts) = self.run("HEAD", None).await?;
        let keeps = parts.persistent(Method::Head);
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let digest = first(&head, "Docker-Content-Digest");
        let same = digest.is_some_and(|digest| known == [b"\"", digest, b"\""].concat());
        match parts.status() {
            200 if same => self.bare(leased, parts, 304, keeps),
            304 | 429 | 500.. => self.bare(leased, parts, parts.status(), keeps),
            _ => {
                let to = self.req.to.clone();
                let _ = self
                    .read(leased, parts, Method::Head, &to, REST_BYTES)
                    .await;
                self.run("GET", None).await
            }
        }
    }

    /// Replaces the registry's head by the head of an answer with this status and without a body. `keeps` is
    /// true if the connection can carry another request.
    fn bare(&self, mut leased: Leased, parts: ResponseParts, status: u16, keeps: bool) -> Answered {
        let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
        let digest = first(&head, "Docker-Content-Digest").map(<[u8]>::to_vec);
        let mut text = Vec::new();
        foxy_http1::write::status_line(&mut text, status);
        if status != 304 {
            text.extend_from_slice(b"Content-Length: 0\r\n");
        }
        if let Some(digest) = digest {
            foxy_http1::write::field(&mut text, b"Docker-Content-Digest", &digest);
        }
        if !keeps {
            text.extend_from_slice(b"Connection: close\r\n");
        }
        foxy_http1::write::end(&mut text);
        let parts = leased.up.replace_head(self.local, parts, &text)?;
        Ok((leased, parts))
    }

    /// Returns the final answer to a request with this method.
    async fn run(&self, method: &str, range: Option<&str>) -> Answered {
        let (local, req) = (self.local, self.req);
        let key = self.token_key();
        let mut known = local.proxy.tokens.get(&key, local.mono());
        let mut asked_for_token = false;
        loop {
            let changed = Changed {
                method,
                target: self.image.target(),
                host: None,
                authorization: known.as_deref(),
                range,
            };
            let text = heads::request(self.request, &changed);
            let (leased, parts) = self.to(&req.to, &text).await?;
            if parts.status() != 401 || asked_for_token {
                return self.follow((leased, parts), &changed).await;
            }
            asked_for_token = true;
            local.proxy.tokens.forget(&key);
            let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
            let wanted = values(&head, "WWW-Authenticate").find_map(challenge);
            let Some(wanted) = wanted else {
                return Ok((leased, parts));
            };
            let of = method_of(method);
            let body = self.read(leased, parts, of, &req.to, REST_BYTES);
            let _ = Box::pin(body).await;
            // If no token can be fetched, the request is sent without a token, and the registry answers with
            // a challenge again.
            known = Box::pin(self.authorization(wanted, &key)).await?;
        }
    }

    async fn to(&self, to: &Destination, request: &[u8]) -> Answered {
        let (mut leased, parts) = Leased::ask_one(self.local, to, request, true).await?;
        let parts = leased.up.final_head(self.local, parts, |_| {}).await?;
        Ok((leased, parts))
    }

    fn token_key(&self) -> String {
        self.image.token_key(self.part.name())
    }

    /// Returns the value of `Authorization` that the registry demands. Returns `None` if there is no
    /// credential, or if the token service refuses a token.
    async fn authorization(
        &self,
        wanted: Challenge,
        key: &str,
    ) -> Result<Option<String>, UpstreamError> {
        let (local, login) = (self.local, self.image.login());
        let (server, mut target) = match wanted {
            Challenge::Basic => return Ok(login.map(|login| login.header().to_owned())),
            Challenge::Bearer { server, target } => (server, target),
        };
        // Credentials are sent only to servers that the operator has listed, or that are listed in the preset
        // (Foxy's built-in settings for the registry).
        let Some(to) = self.listed(&server) else {
            local.count(Event::MirrorLeft);
            tracing::warn!(
                mirror = self.part.name(),
                service = %server,
                "the registry names a token service that `hosts` does not list"
            );
            return Err(UNLISTED);
        };
        let scope = format!("repository:{}:pull", self.image.image().repository);
        push_parameter(&mut target, "scope", &scope);
        let changed = Changed {
            method: "GET",
            target: &target,
            host: Some(&server.authority),
            authorization: login.map(|login| login.header()),
            range: None,
        };
        let text = heads::request(
            b"\r\nAccept: application/json\r\nUser-Agent: foxy\r\n",
            &changed,
        );
        let (leased, parts) = self.to(&to, &text).await?;
        match parts.status() {
            200 => {}
            400..=404 => return Ok(None),
            _ => return Err(UpstreamError::ErrorStatus),
        }
        let body = self
            .read(leased, parts, Method::Get, &to, TOKEN_BYTES)
            .await;
        let token = body.and_then(|body| token(&body));
        let token = token.ok_or(UpstreamError::BadResponse("token-not-readable"))?;
        let value = format!("Bearer {}", token.text);
        let (key, now) = (key.to_owned(), local.mono());
        local
            .proxy
            .tokens
            .put(key, value.clone(), token.seconds, now);
        Ok(Some(value))
    }

    /// Follows redirects. The guard of destinations checks the server of each step. Only servers that the
    /// operator has named in the settings may be at private addresses. The credential is sent again only to
    /// the registry itself.
    async fn follow(&self, first_answer: (Leased, ResponseParts), asked: &Changed<'_>) -> Answered {
        let (mut leased, mut parts) = first_answer;
        let registry = self.part.upstream();
        let (mut from, mut to) = (registry.root(), self.req.to.clone());
        for _ in 0..HOPS {
            if !matches!(parts.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok((leased, parts));
            }
            let head = parts.head(leased.up.buf.filled(), &leased.up.slots);
            let location = first(&head, "Location").unwrap_or_default();
            let Some((server, target)) = parse_location(Some(&from), location) else {
                return Err(REDIRECT);
            };
            let next = self.reachable(&from, &server)?;
            let method = method_of(asked.method);
            let rest = self.read(leased, parts, method, &to, REST_BYTES);
            let _ = Box::pin(rest).await;
            let own = server.is_server_of(&registry.root());
            let changed = Changed {
                target: &target,
                host: Some(&server.authority),
                authorization: asked.authorization.filter(|_| own),
                ..*asked
            };
            let text = heads::request(self.request, &changed);
            let (answered, new) = self.to(&next, &text).await?;
            (leased, parts) = (answered.by(next.clone()), new);
            (from, to) = (server, next);
        }
        Err(REDIRECT)
    }

    /// Returns the destination of a redirect.
    fn reachable(&self, from: &Upstream, server: &Upstream) -> Result<Destination, UpstreamError> {
        if let Some(listed) = self.listed(server) {
            return Ok(listed);
        }
        let (host, port) = server.host_and_port();
        // A server that is not listed is asked only with TLS and only at port 443.
        if !server.secure || port != 443 {
            self.local.count(Event::MirrorLeft);
            tracing::warn!(
                mirror = self.part.name(),
                from = %from.authority,
                to = %server.authority,
                "a redirect to a server without TLS that `hosts` does not list was refused"
            );
            return Err(REDIRECT);
        }
        Ok(Destination {
            host: host.into(),
            port,
            exempt: false,
            tls: Some(self.local.proxy.config.upstream.tls.clone()),
            timeouts: OriginTimeouts::default(),
            ..self.req.to.clone()
        })
    }

    /// Returns the destination of a server that the mirror lists.
    fn listed(&self, server: &Upstream) -> Option<Destination> {
        let (exempt, tls) = self.part.listed(server)?;
        let (host, port) = server.host_and_port();
        Some(Destination {
            host: host.into(),
            port,
            exempt,
            tls,
            ..self.req.to.clone()
        })
    }

    /// Returns the body of a short answer. If the connection can be used again, it goes back to the pool.
    /// Returns `None` if the body is longer than `most` bytes or is truncated.
    async fn read(
        &self,
        mut leased: Leased,
        parts: ResponseParts,
        method: Method,
        to: &Destination,
        most: usize,
    ) -> Option<Vec<u8>> {
        let local = self.local;
        let mut reader = BodyReader::new(parts.framing(method), &local.limits);
        leased.up.buf.consume(parts.len());
        let (mut body, timeout) = (Vec::new(), leased.up.timeouts.progress);
        loop {
            let piece = leased.up.next_piece(&mut reader, timeout).await.ok()?;
            if piece.end {
                leased.up.buf.consume(piece.consumed);
                break;
            }
            body.extend_from_slice(&leased.up.buf.filled()[piece.range]);
            leased.up.buf.consume(piece.consumed);
            if body.len() > most {
                return None;
            }
        }
        if parts.persistent(method) {
            leased.give_back(local, to);
        }
        Some(body)
    }
}

fn method_of(text: &str) -> Method {
    match text {
        "HEAD" => Method::Head,
        _ => Method::Get,
    }
}
