//! Applies the rewriting rules of a site. These rules may contain variables, whose values are facts about a
//! request.

use foxy_base::Fields;
use foxy_http_rules::rewrite::{FieldRules, Rewriting, Values, Variable};
use foxy_http_rules::{CacheStatus, coding};
use foxy_http1::{RequestHead, Scheme};

use crate::access::refusal::Refusal;
use crate::http::client_identity::ClientIdentity;
use crate::http::route::escapes;
use crate::sites::table::has_dots;
use crate::state::local::Local;
use crate::{Event, Proxy, Role};

/// The refusal for a path with a segment `.` or `..`. Such a path has no unique meaning, because programs
/// interpret these segments differently.
const DOTS: Refusal = Refusal {
    status: 400,
    reason: "dots-in-path",
};

/// The refusal for a request whose rewritten path, which is the path for the origin, has a segment `.` or
/// `..`.
const CLIMBS: Refusal = Refusal {
    status: 400,
    reason: "rewritten-path-has-dots",
};

/// The client of an answer, and the site that the client asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseContext<'a> {
    pub(crate) role: &'a Role,
    pub(crate) client: &'a ClientIdentity,
}

impl<'a> ResponseContext<'a> {
    pub(crate) const fn new(role: &'a Role, client: &'a ClientIdentity) -> Self {
        Self { role, client }
    }

    /// Returns true if an answer with these fields gets `Vary: Accept-Encoding`, because other clients may
    /// get it compressed.
    #[inline]
    pub(crate) fn varies<F: Fields + ?Sized>(&self, fields: &F) -> bool {
        self.role.compress().is_some() && coding::is_compressible(fields) && !coding::varies(fields)
    }

    /// Returns the rules for the fields of answers.
    #[inline]
    pub(crate) fn rules(&self) -> Option<&'a FieldRules> {
        let rules = &self.role.rewriting()?.answers;
        (!rules.is_empty()).then_some(rules)
    }
}

/// The facts about a request that are the values of variables in rewriting rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) proxy: &'a Proxy,
    /// Number of the worker.
    pub(crate) worker: usize,
    /// Name of the site.
    pub(crate) site: &'a str,
    pub(crate) client: &'a ClientIdentity,
    /// The head of the request. `None` for a request that could not be read.
    pub(crate) head: Option<RequestHead<'a>>,
    /// The contents of the `Cache-Status` field of the answer, if it is known.
    pub(crate) cache: Option<CacheStatus<'a>>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(
        local: &'a Local,
        to: ResponseContext<'a>,
        head: Option<RequestHead<'a>>,
        cache: Option<CacheStatus<'a>>,
    ) -> Self {
        Self {
            proxy: &local.proxy,
            worker: local.index,
            site: to.role.partition(),
            client: to.client,
            head,
            cache,
        }
    }

    /// Writes path and query of the client's URL, with the path in its normal form.
    fn target(&self, out: &mut Vec<u8>) {
        if let Some(head) = &self.head {
            let escapes = escapes(&self.proxy.config.user_rules, self.site);
            escapes.write(head.target().path, out);
        }
    }

    fn host(&self, out: &mut Vec<u8>) {
        let url = self.head.and_then(|head| head.url(Scheme::Http));
        if let Some(url) = url {
            url.authority.write_host(out);
        }
    }
}

impl Values for Facts<'_> {
    fn push(&self, variable: Variable, out: &mut Vec<u8>) {
        match variable {
            Variable::ClientIp => out.extend_from_slice(self.client.ip().to_string().as_bytes()),
            Variable::Scheme => out.extend_from_slice(match self.client.arrival.secure {
                true => b"https",
                false => b"http",
            }),
            Variable::Host => self.host(out),
            Variable::Path => {
                let start = out.len();
                self.target(out);
                let query = out[start..].iter().position(|b| *b == b'?');
                out.truncate(query.map_or(out.len(), |at| start + at));
            }
            Variable::Query => {
                let mut target = Vec::new();
                self.target(&mut target);
                let query = target.iter().position(|b| *b == b'?');
                out.extend_from_slice(query.map_or(b"", |at| &target[at + 1..]));
            }
            Variable::Site => out.extend_from_slice(self.site.as_bytes()),
            Variable::RequestId => {
                let seed = self.proxy.config.seed;
                let id = self
                    .client
                    .request_id(self.head.as_ref(), seed, self.worker);
                out.extend_from_slice(id.to_string().as_bytes());
            }
            Variable::CacheStatus => {
                if let Some(cache) = &self.cache {
                    cache.write(out);
                }
            }
            Variable::ClientSubject | Variable::ClientNames => {
                if let Some(shown) = &self.client.arrival.certificate {
                    let names = shown.names.join(", ");
                    let subject = variable == Variable::ClientSubject;
                    let text = if subject { &shown.subject } else { &names };
                    out.extend_from_slice(text.as_bytes());
                }
            }
            Variable::Capture(_) => {}
        }
    }
}

/// The changes that a site makes to a request for the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed<'a> {
    rules: &'a FieldRules,
    proxy: &'a Proxy,
    worker: usize,
    site: &'a str,
}

impl<'a> Changed<'a> {
    /// Returns the changes of a site. Returns `None` if the site makes no changes.
    pub(crate) fn of(
        rewriting: Option<&'a Rewriting>,
        proxy: &'a Proxy,
        worker: usize,
        site: &'a str,
    ) -> Option<Self> {
        let rules = &rewriting?.requests;
        (!rules.is_empty()).then_some(Self {
            rules,
            proxy,
            worker,
            site,
        })
    }

    /// Returns true if fields of this name may differ from the client's fields.
    pub(crate) fn touches(&self, name: &[u8]) -> bool {
        self.rules.touches(name)
    }

    fn facts<'b>(&'b self, client: &'b ClientIdentity, head: Option<RequestHead<'b>>) -> Facts<'b> {
        Facts {
            proxy: self.proxy,
            worker: self.worker,
            site: self.site,
            client,
            head,
            cache: None,
        }
    }

    /// Applies the changes to the head of a request.
    pub(crate) fn apply(&self, out: &mut Vec<u8>, client: &ClientIdentity, head: &RequestHead<'_>) {
        self.rules
            .change_head(out, &self.facts(client, Some(*head)));
    }

    /// Applies the changes to some field lines of a request, and returns the new lines.
    pub(crate) fn lines(
        &self,
        lines: &[u8],
        client: &ClientIdentity,
        head: Option<RequestHead<'_>>,
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(lines.len() + 64);
        self.rules
            .change_lines(lines, &self.facts(client, head), &mut out);
        out
    }
}

/// The treatment that a site's rules choose for a request because of its path.
pub(crate) enum Turned {
    /// The request is answered as usual.
    No,
    /// The request is redirected, with this status and location.
    Away(u16, Vec<u8>),
    /// The request is refused.
    Refused(Refusal),
    /// Foxy itself answers that it speaks the protocol of container registries.
    Registry,
    /// The registry must first confirm that the client may have this layer of a container image.
    Prove,
    /// A mirror's rules about versions refuse the request.
    Blocked(Refusal),
}

/// Applies the redirects of a site, and checks the path that the request has at the origin.
pub(crate) fn turned(local: &Local, to: ResponseContext<'_>, head: &RequestHead<'_>) -> Turned {
    if let Some(image) = to.role.mirrored().and_then(|part| part.image()) {
        return match (image.is_base(), image.is_proof()) {
            (true, _) => Turned::Registry,
            (_, true) => Turned::Prove,
            _ => Turned::No,
        };
    }
    if let Some(part) = to.role.mirrored()
        && let Some(refused) = part.refusal(head.target().path)
    {
        local.count(Event::MirrorBlocked);
        return Turned::Blocked(Refusal {
            status: 403,
            reason: refused.reason(),
        });
    }
    let Some(rules) = to.role.rewriting().filter(|rules| rules.reads_paths()) else {
        return Turned::No;
    };
    let facts = Facts::of(local, to, Some(*head), None);
    let mut target = Vec::new();
    facts.target(&mut target);
    if has_dots(path_of(&target)) {
        return Turned::Refused(DOTS);
    }
    if let Some((status, url)) = rules.redirects.find(&target, &facts) {
        return Turned::Away(status, url);
    }
    match rules.paths.map(&target) {
        Some(new) if has_dots(path_of(&new)) => Turned::Refused(CLIMBS),
        _ => Turned::No,
    }
}

fn path_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|b| *b == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// The fields of a request, and its head if a client has sent the request.
pub(crate) trait Requested: Fields {
    /// Returns the head. `None` for a request that no client has sent.
    fn head(&self) -> Option<RequestHead<'_>>;
}

impl Requested for RequestHead<'_> {
    fn head(&self) -> Option<RequestHead<'_>> {
        Some(*self)
    }
}

impl<T: Requested> Requested for &T {
    fn head(&self) -> Option<RequestHead<'_>> {
        (**self).head()
    }
}

impl Requested for foxy_base::FieldBlock {
    fn head(&self) -> Option<RequestHead<'_>> {
        None
    }
}
