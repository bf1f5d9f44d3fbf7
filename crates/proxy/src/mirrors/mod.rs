//! Mirrors on the listeners of the forward proxy. A request whose path begins with the prefix of a mirror
//! gets a role from this module. The role determines how Foxy handles the request.
//!
//! A request for a mirror has the role of a site. Foxy makes a separate site for each server of the mirror
//! and each class of URLs. For documents that are rewritten, there is also a separate site for each form of
//! the document and for each name by which clients know Foxy, so that the different copies have different
//! keys. The comments call each of these sites a part of the mirror. In all other respects, such a site works
//! like a site of the configuration.
//!
//! This room (top-level module) may use cache, http, state, sites and access. The room `origin` sends the
//! requests to the servers of mirrors.

mod asked;
mod comparison;
mod edit;
mod expected;
mod fields;
pub(crate) mod images;
mod logins;
mod names;
mod request;
mod roles;

use std::borrow::Cow;
use std::sync::Arc;

use foxy_base::eq_name;
use foxy_http_rules::coding::Coding;
use foxy_http_rules::rewrite::{Redirects, Rewriting};
use foxy_mirror::{
    Class, Digest, Document, Image, Listing, Mirror, MirrorTarget, Refused, Rewriter, Upstream,
    digest_of_path,
};
use foxy_tls::OriginTls;
use ipnet::IpNet;

pub use asked::MirrorPart;
pub(crate) use comparison::Comparison;
pub(crate) use edit::{BadBody, Edit};
pub(crate) use expected::{DigestCheck, Expected};
use fields::rewriting;
pub use images::Login;
pub(crate) use images::{ImagePart, Tokens};
pub use names::PublicUrl;
pub(crate) use names::own_name;
pub(crate) use roles::{NoMirror, Roles, Wants};

use crate::{Compress, Role, Site};

/// Longest lifetime, in seconds, of an answer that a registry gave for a client's own credential. After this
/// time, the registry is asked again. If the registry then fails, the old answer is used.
const OWN_SECONDS: u32 = 86_400;
/// Smallest length in bytes of a document that is compressed.
const COMPRESS_MIN: u64 = 1 << 10;

/// A mirror as it was configured.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSite {
    /// The mirror.
    pub mirror: Arc<Mirror>,
    /// For each server of the mirror: true if the operator has named the server in the settings. Such a
    /// server may be at a private address.
    pub named: Vec<bool>,
    /// TLS settings for the connections to the servers.
    pub tls: OriginTls,
    /// Credential for the upstream. `None` means that the upstream is asked without a credential.
    pub login: Option<Login>,
    /// True if clients may send their own credentials, which are passed to the upstream. Clients of a
    /// registry of container images may always send them.
    pub client_logins: bool,
}

/// All mirrors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mirrors {
    /// The mirrors in the order of the configuration. No prefix begins with another prefix.
    pub sites: Vec<MirrorSite>,
    /// URLs by which clients know Foxy, in addition to the addresses of its listeners.
    pub public: Vec<PublicUrl>,
}

impl Mirrors {
    /// Returns the number of the mirror that owns a path of the mirror `number`. The owner is the only mirror
    /// that may provide the package at this path. The path has no query. Returns `None` if there is no owner,
    /// or if the mirror `number` is the owner.
    fn owner(&self, number: usize, path: &[u8]) -> Option<usize> {
        let asked = &self.sites.get(number)?.mirror;
        let mut sites = self.sites.iter();
        let owner = sites.position(|site| site.mirror.owns(asked, path));
        owner.filter(|owner| *owner != number)
    }
}

/// The facts about a mirror that a role contains: the server and the class of URLs that the role is for, and
/// the form of documents for the client. These facts describe one part of the mirror.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirrored {
    mirror: Arc<Mirror>,
    mirror_target: MirrorTarget,
    /// The number of the document form that the client accepts. A registry may offer a document in several
    /// forms, such as HTML and JSON.
    form: Option<usize>,
    /// True if the operator has named the server in the settings.
    named: bool,
    document: Option<Document>,
    image: Option<Box<OfImage>>,
    /// Scope of the digests that documents contain: the name of the mirror and, if the client has sent its
    /// own credential, the name of this credential. Digests of other scopes are not used.
    scope: String,
    /// True if the client has sent its own credential.
    own: bool,
}

/// The additional facts about a mirror of container images.
#[derive(Clone, Debug, PartialEq)]
struct OfImage {
    part: ImagePart,
    /// Path of the URL in keys.
    key_path: Box<[u8]>,
    /// For each server of the mirror: true if the operator has named the server in the settings.
    named: Vec<bool>,
    tls: OriginTls,
}

impl Mirrored {
    /// Returns true if answers are documents that are rewritten.
    pub(crate) const fn is_document(&self) -> bool {
        self.document.is_some()
    }

    /// Returns true if answers are documents that are screened: the mirror's rules hide some versions.
    pub(crate) fn is_screened(&self) -> bool {
        self.is_document() && self.mirror.screens(self.mirror_target.class).is_some()
    }

    /// Returns the values that the screening of documents needs: the mirror, the class and the form.
    pub(crate) fn screening(&self) -> (Arc<Mirror>, Option<usize>, Option<usize>) {
        (
            Arc::clone(&self.mirror),
            self.mirror_target.class,
            self.form,
        )
    }

    /// Returns the reason why rules about versions refuse a path. The path includes the query.
    pub(crate) fn refusal(&self, path: &[u8]) -> Option<Refused> {
        self.mirror.refusal(self.mirror_target, path)
    }

    /// Returns media type and body of a refusal, in a form that the registry's clients can show.
    pub(crate) fn page(&self, refused: &Refused) -> (&'static str, Vec<u8>) {
        let text = refused.text();
        match self.mirror.rules().map(|rules| rules.listing) {
            Some(Listing::Npm) => {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"");
                let text = text.replace(|c: char| c.is_ascii_control(), "?");
                let body = format!("{{\"error\":\"{text}\"}}\n");
                ("application/json", body.into_bytes())
            }
            _ => ("text/plain; charset=utf-8", (text + "\n").into_bytes()),
        }
    }

    /// Returns true if answers are artefacts, or index documents whose digest is in another document.
    pub(crate) fn is_compared(&self) -> bool {
        self.class().named
    }

    /// Returns true if documents contain the digests of answers. The digest of an image is in its URL or in
    /// the head of the answer, and not in a document.
    pub(crate) fn is_named_by_documents(&self) -> bool {
        self.is_compared() && self.image.is_none()
    }

    /// Returns the digest that the answer to a request for this path must have, if it is known.
    pub(crate) fn expected(&self, table: &Expected, path: &[u8]) -> Option<Digest> {
        match self.image() {
            Some(image) => image.digest(None),
            None if self.is_compared() => table.of(self, path).or_else(|| digest_of_path(path)),
            None => None,
        }
    }

    /// Returns true if the server may be at a private address.
    pub(crate) const fn is_exempt(&self) -> bool {
        self.named
    }

    /// Returns the requested part of an image, if the mirror is for container images.
    pub(crate) fn image(&self) -> Option<&ImagePart> {
        self.image.as_ref().map(|image| &image.part)
    }

    /// Returns the path of the URL in keys, if it differs from the client's path.
    pub(crate) fn key_path(&self) -> Option<&[u8]> {
        self.image.as_ref().map(|image| &*image.key_path)
    }

    /// Returns path and query of the request to the upstream. Returns `None` if the rewriting rules of the
    /// site determine them.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        Some(self.image()?.target().as_bytes())
    }

    /// Returns true if the complete answer is checked before a client gets its last byte. In this case, Foxy
    /// never requests parts of the answer.
    pub(crate) fn comes_whole(&self) -> bool {
        self.is_document() || self.is_compared() || self.image.is_some()
    }

    /// Returns the name of the mirror.
    pub(crate) fn name(&self) -> &str {
        &self.mirror.name
    }

    /// Returns the scope in which the digests from documents are valid. Digests from documents that were
    /// fetched with one credential are not used for other credentials.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the path that documents use for the artefact at `path` (see `Mirror::named_path`).
    pub(crate) fn named_path<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        self.mirror.named_path(path)
    }

    /// Returns true if the answer depends on the client's own credential.
    pub(crate) const fn is_own(&self) -> bool {
        self.own
    }

    /// Returns the upstream of the mirror, which is its first server.
    pub(crate) fn upstream(&self) -> Upstream {
        let servers = self.mirror.servers();
        servers[0].clone()
    }

    /// Returns host and port of each server, in the form that keys contain.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = Vec<u8>> {
        self.mirror.hosts()
    }

    /// Returns two facts about a server that the mirror lists. The first is true if the operator has named
    /// the server. The second contains the TLS settings for the server.
    pub(crate) fn listed(&self, server: &Upstream) -> Option<(bool, Option<OriginTls>)> {
        let image = self.image.as_ref()?;
        let mut servers = self.mirror.servers().iter();
        let at = servers.position(|listed| listed.is_server_of(server))?;
        let named = image.named.get(at).copied().unwrap_or_default();
        Some((named, server.secure.then(|| image.tls.clone())))
    }

    /// Returns the values that the rewriting of documents needs, if answers are rewritten.
    pub(crate) const fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// Returns a rewriter that reads the digests from a stored document. The stored document is already
    /// rewritten for this part of the mirror. `stored` contains the path and the media type of the document.
    pub(crate) fn rewriter(&self, stored: (&[u8], &[u8])) -> Option<Rewriter> {
        let (document, transform) = (self.document()?, self.class().rewrite?);
        let mirror = Arc::clone(&self.mirror);
        Some(Rewriter::again(transform, stored, mirror, &document.base))
    }

    /// Returns true if the document at the path `document` may name the artefact at the path `artefact`.
    pub(crate) fn speaks_for(&self, document: &[u8], artefact: &[u8]) -> bool {
        self.mirror.speaks_for(document, artefact)
    }

    fn class(&self) -> &Class {
        self.mirror.class(self.mirror_target.class)
    }

    /// Returns the head of an upstream's answer as the cache receives it. `fresh` is the longest lifetime of
    /// the answer in seconds, if it differs from the value of the class. `expected` is the digest that the
    /// body must have. The head contains this digest instead of the upstream's own digest.
    pub(crate) fn answer<'a>(
        &self,
        (status, fresh): (u16, Option<u32>),
        expected: Option<Digest>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> foxy_mirror::Answer {
        let of = (&self.mirror, self.mirror_target, self.document());
        let lasts = self.image().is_some_and(ImagePart::is_layer);
        let fresh = match self.own && !lasts {
            true => Some(fresh.map_or(OWN_SECONDS, |fresh| fresh.min(OWN_SECONDS))),
            false => fresh,
        };
        let expected = expected.filter(|_| status == 200);
        let fields = fields.filter(|(name, _)| {
            expected.is_none()
                || !(eq_name(name, b"repr-digest") || eq_name(name, b"content-digest"))
        });
        let mut answer = foxy_mirror::answer(of.0, of.1, of.2, (status, fresh), fields);
        if let Some(expected) = expected {
            let line = format!("Repr-Digest: {}\r\n", expected.field_value());
            answer.lines.extend_from_slice(line.as_bytes());
        }
        match self.image() {
            None => answer,
            Some(image) => foxy_mirror::Answer {
                lines: image.answer(self.name(), answer.status, &answer.lines),
                ..answer
            },
        }
    }
}

impl MirrorSite {
    /// Returns the site for requests for packages that only another mirror provides. The site redirects them
    /// to that mirror, so this mirror's upstream gets no request for such packages.
    fn away(&self, owner: &Self, clients: &[IpNet]) -> Option<Site> {
        let (from, to) = (&self.mirror.prefix, &owner.mirror.prefix);
        let (host, port) = self.mirror.servers().first()?.host_and_port();
        Some(Site {
            name: self.mirror.name.clone(),
            host,
            port,
            rewriting: Some(Arc::new(Rewriting {
                redirects: Redirects::parse(&[format!("307 prefix {from} {to}")]).ok()?,
                ..Rewriting::default()
            })),
            allow_clients: Some(clients.to_vec()),
            ..Site::default()
        })
    }

    /// Returns the site for one server and one class of URLs of this mirror. `form` is the number of the
    /// document form that the client accepts. `own` is true if the client's own credential is sent.
    fn site(
        &self,
        target: MirrorTarget,
        (form, own): (Option<usize>, bool),
        base: Option<&str>,
        clients: &[IpNet],
    ) -> Option<Site> {
        let mirror = &self.mirror;
        let (server, class) = (
            mirror.servers().get(target.server)?,
            mirror.class(target.class),
        );
        let screened = mirror.screens(target.class).is_some();
        let document = base.map(|base| Document {
            base: base.to_owned(),
            mark: match form {
                // All forms are made from one document of the upstream, which has one ETag. Foxy adds this
                // mark to the ETag. Because the mark contains the number of the form, each form has a
                // different ETag.
                Some(form) if screened => format!("{}.{form}", mirror.mark(base)),
                _ => mirror.mark(base),
            },
        });
        let mark = document.as_ref().map_or("", |document| &document.mark);
        let name = match (&document, form) {
            (None, None) => mirror.name.clone(),
            (_, None) => format!("{}@{mark}", mirror.name),
            (_, Some(form)) => format!("{}@{mark}.{form}", mirror.name),
        };
        let (host, port) = server.host_and_port();
        let compress = document.is_some().then(|| {
            Arc::new(Compress {
                codings: vec![Coding::Gzip],
                bytes_min: COMPRESS_MIN,
            })
        });
        Some(Site {
            name,
            host,
            port,
            tls: server.secure.then(|| self.tls.clone()),
            rewriting: Some(Arc::new(rewriting(
                mirror,
                target,
                (class, form),
                (self.login.as_ref(), own),
            )?)),
            compress,
            allow_clients: Some(clients.to_vec()),
            mirror: Some(Arc::new(Mirrored {
                mirror: Arc::clone(mirror),
                mirror_target: target,
                form,
                named: self.named.get(target.server).copied().unwrap_or_default(),
                document,
                image: None,
                scope: mirror.name.clone(),
                own,
            })),
            ..Site::default()
        })
    }

    /// Returns the site for a request for a part of an image (a layer or a manifest, for example).
    fn image_site(
        &self,
        image: &Image,
        part: ImagePart,
        rules: Arc<Rewriting>,
        clients: &[IpNet],
    ) -> Option<Site> {
        let mirror = &self.mirror;
        let server = mirror.servers().first()?;
        let (host, port) = server.host_and_port();
        let target = mirror.target(image.path.as_bytes())?;
        let own = part.is_own();
        Some(Site {
            name: format!("{}{}", mirror.name, part.partition()),
            host,
            port,
            tls: server.secure.then(|| self.tls.clone()),
            rewriting: Some(rules),
            // With this flag, the module `route` makes the key from the path in `key_path`, which differs
            // from the client's path.
            preserve_host: true,
            allow_clients: Some(clients.to_vec()),
            mirror: Some(Arc::new(Mirrored {
                mirror: Arc::clone(mirror),
                mirror_target: target,
                form: None,
                named: self.named.first().copied().unwrap_or_default(),
                document: None,
                image: Some(Box::new(OfImage {
                    key_path: part.key_path().into_bytes().into(),
                    part,
                    named: self.named.clone(),
                    tls: self.tls.clone(),
                })),
                scope: mirror.name.clone(),
                own,
            })),
            ..Site::default()
        })
    }
}

/// Returns the role for the request for a layer, after the registry has confirmed that the client may have
/// the layer.
pub(crate) fn proven(role: &Role) -> Option<Role> {
    let Role::Site(site) = role else { return None };
    let of = site.mirror.as_ref()?;
    let image = of.image.as_ref()?;
    let part = image.part.proven();
    let name = format!("{}{}", of.mirror.name, part.partition());
    let image = OfImage {
        key_path: part.key_path().into_bytes().into(),
        part,
        ..(**image).clone()
    };
    Some(Role::Site(Site {
        name,
        mirror: Some(Arc::new(Mirrored {
            image: Some(Box::new(image)),
            ..(**of).clone()
        })),
        ..site.clone()
    }))
}

/// Returns the role for a client that has sent a credential. The name `mark` of the credential separates the
/// answers for this client from the answers for other clients.
fn of_credential(role: &Role, mark: &str) -> Option<Role> {
    let Role::Site(site) = role else { return None };
    let of = site.mirror.as_ref()?;
    Some(Role::Site(Site {
        name: format!("{}@{mark}", site.name),
        mirror: Some(Arc::new(Mirrored {
            scope: format!("{}@{mark}", of.mirror.name),
            ..(**of).clone()
        })),
        ..site.clone()
    }))
}
