//! Mirrors on the listeners of the forward proxy: the role of a request below a mirror's prefix.
//!
//! A request for a mirror has the role of a site, made for its server, its class of URLs and, for
//! documents that are rewritten, the name by which the client knows Foxy. So each such role has its own
//! keys, and everything else is as for a site.
//!
//! The room may use cache, http, state, sites and access. Requests to the servers of mirrors are in origin.

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
    Class, Digest, Document, Image, Listing, Mirror, Place, Refused, Rewriter, Upstream,
    digest_of_path,
};
use foxy_tls::OriginTls;
use ipnet::IpNet;

pub use asked::MirrorPart;
pub(crate) use comparison::Comparison;
pub(crate) use edit::{BadBody, Edit};
pub(crate) use expected::{Expected, Standing};
use fields::rewriting;
pub use images::Login;
pub(crate) use images::{ImagePart, Tokens};
pub use names::PublicUrl;
pub(crate) use names::own_name;
pub(crate) use roles::{NoMirror, Roles, Wants};

use crate::{Compress, Role, Site};

/// Seconds for which a registry's answer to a client's credential holds. After that the registry is asked
/// again; while the registry fails, the old answer counts.
const OWN_SECONDS: u32 = 86_400;
/// Shorter documents are sent plain.
const COMPRESS_MIN: u64 = 1 << 10;

/// A mirror as it was configured.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorSite {
    /// The mirror.
    pub mirror: Arc<Mirror>,
    /// For each of its servers: true if the operator has named it. Such a server may be at a private
    /// address.
    pub named: Vec<bool>,
    /// How TLS is spoken to its servers.
    pub tls: OriginTls,
    /// Credential for the upstream; `None`: the upstream is asked without one.
    pub login: Option<Login>,
    /// Clients may show their own credentials, which the upstream gets. Clients of registries of
    /// container images always may.
    pub client_logins: bool,
}

/// All mirrors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mirrors {
    /// In the order of the configuration. No prefix begins with another.
    pub sites: Vec<MirrorSite>,
    /// URLs by which clients know Foxy, beside the addresses of its listeners.
    pub public: Vec<PublicUrl>,
}

impl Mirrors {
    /// Number of the mirror that alone has what a path (without query) names, if that is not mirror
    /// `number`.
    fn owner(&self, number: usize, path: &[u8]) -> Option<usize> {
        let asked = &self.sites.get(number)?.mirror;
        let mut sites = self.sites.iter();
        let owner = sites.position(|site| site.mirror.owns(asked, path));
        owner.filter(|owner| *owner != number)
    }
}

/// The part of a mirror that a role is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirrored {
    mirror: Arc<Mirror>,
    place: Place,
    /// The number of the form that the client accepts.
    form: Option<usize>,
    /// The operator has named the server.
    named: bool,
    document: Option<Document>,
    image: Option<Box<OfImage>>,
    /// Scope of the digests that documents have named: the name of the mirror, and of the client's
    /// credential.
    scope: String,
    /// The client has shown a credential of its own.
    own: bool,
}

/// A part of a mirror of container images.
#[derive(Clone, Debug, PartialEq)]
struct OfImage {
    part: ImagePart,
    /// Path of the URL in keys.
    key_path: Box<[u8]>,
    /// For each server of the mirror: the operator has named it.
    named: Vec<bool>,
    tls: OriginTls,
}

impl Mirrored {
    /// True if answers are documents that are rewritten.
    pub(crate) const fn is_document(&self) -> bool {
        self.document.is_some()
    }

    /// True if answers are documents that are screened by rules about versions.
    pub(crate) fn is_screened(&self) -> bool {
        self.is_document() && self.mirror.screens(self.place.class).is_some()
    }

    /// The mirror, the class and the form by which its documents are screened.
    pub(crate) fn screening(&self) -> (Arc<Mirror>, Option<usize>, Option<usize>) {
        (Arc::clone(&self.mirror), self.place.class, self.form)
    }

    /// Why rules about versions refuse a path, query and all.
    pub(crate) fn refusal(&self, path: &[u8]) -> Option<Refused> {
        self.mirror.refusal(self.place, path)
    }

    /// Media type and body of a refusal, as the registry's clients show it.
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

    /// True if answers are artefacts, or index documents that another document names with their digest.
    pub(crate) fn is_compared(&self) -> bool {
        self.class().named
    }

    /// True if documents name the digests of answers. Images have their digests in their own names.
    pub(crate) fn is_named_by_documents(&self) -> bool {
        self.is_compared() && self.image.is_none()
    }

    /// The digest that the answer to a request for this path must have, as far as it is known.
    pub(crate) fn expected(&self, table: &Expected, path: &[u8]) -> Option<Digest> {
        match self.image() {
            Some(image) => image.digest(None),
            None if self.is_compared() => table.of(self, path).or_else(|| digest_of_path(path)),
            None => None,
        }
    }

    /// True if the server may be at a private address.
    pub(crate) const fn is_exempt(&self) -> bool {
        self.named
    }

    /// The image that it is for.
    pub(crate) fn image(&self) -> Option<&ImagePart> {
        self.image.as_ref().map(|image| &image.part)
    }

    /// Path of the URL in keys, where it is not the client's.
    pub(crate) fn key_path(&self) -> Option<&[u8]> {
        self.image.as_ref().map(|image| &*image.key_path)
    }

    /// Path and query for the upstream, where rules do not say them.
    pub(crate) fn target(&self) -> Option<&[u8]> {
        Some(self.image()?.target().as_bytes())
    }

    /// True if the whole answer is looked at before anybody gets all of it, so that parts of it are never
    /// asked for.
    pub(crate) fn comes_whole(&self) -> bool {
        self.is_document() || self.is_compared() || self.image.is_some()
    }

    /// Name of the mirror.
    pub(crate) fn name(&self) -> &str {
        &self.mirror.name
    }

    /// Scope of the digests that documents have named: what one credential was told stays unknown to
    /// others.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// The path by which documents name the artefact at this path.
    pub(crate) fn named_path<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        self.mirror.named_path(path)
    }

    /// True if what a client gets depends on its own credential.
    pub(crate) const fn is_own(&self) -> bool {
        self.own
    }

    /// The upstream itself.
    pub(crate) fn upstream(&self) -> Upstream {
        let servers = self.mirror.servers();
        servers[0].clone()
    }

    /// Host and port of each server, as keys have them.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = Vec<u8>> {
        self.mirror.hosts()
    }

    /// For a server that the mirror lists: whether the operator has named it, and how TLS is spoken
    /// to it.
    pub(crate) fn listed(&self, server: &Upstream) -> Option<(bool, Option<OriginTls>)> {
        let image = self.image.as_ref()?;
        let mut servers = self.mirror.servers().iter();
        let at = servers.position(|listed| listed.is_server_of(server))?;
        let named = image.named.get(at).copied().unwrap_or_default();
        Some((named, server.secure.then(|| image.tls.clone())))
    }

    /// The document that is rewritten.
    pub(crate) const fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// A rewriter that reads again the document stored with this path and media type, which was rewritten
    /// for this part.
    pub(crate) fn rewriter(&self, stored: (&[u8], &[u8])) -> Option<Rewriter> {
        let (document, transform) = (self.document()?, self.class().rewrite?);
        let mirror = Arc::clone(&self.mirror);
        Some(Rewriter::again(transform, stored, mirror, &document.base))
    }

    /// True if the document at a path may name this artefact.
    pub(crate) fn speaks_for(&self, document: &[u8], artefact: &[u8]) -> bool {
        self.mirror.speaks_for(document, artefact)
    }

    fn class(&self) -> &Class {
        self.mirror.class(self.place.class)
    }

    /// The head of an upstream's answer as the cache gets it. `fresh` is its longest life in seconds, if
    /// that is not its class's. `expected` is the digest that its body must have: it is sent in place of
    /// the upstream's own digest.
    pub(crate) fn answer<'a>(
        &self,
        (status, fresh): (u16, Option<u32>),
        expected: Option<Digest>,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> foxy_mirror::Answer {
        let of = (&self.mirror, self.place, self.document());
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
    /// The role of requests for packages that another mirror alone has. They are redirected, so this
    /// mirror's upstream is never asked for them.
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

    /// The role for a part of the mirror. `form` is the number of the form that the client accepts, `own`
    /// says that the client's own credential is sent.
    fn site(
        &self,
        place: Place,
        (form, own): (Option<usize>, bool),
        base: Option<&str>,
        clients: &[IpNet],
    ) -> Option<Site> {
        let mirror = &self.mirror;
        let (server, class) = (
            mirror.servers().get(place.server)?,
            mirror.class(place.class),
        );
        let screened = mirror.screens(place.class).is_some();
        let document = base.map(|base| Document {
            base: base.to_owned(),
            mark: match form {
                // All forms are made of one document of the upstream, and so of one ETag.
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
                place,
                (class, form),
                (self.login.as_ref(), own),
            )?)),
            compress,
            allow_clients: Some(clients.to_vec()),
            mirror: Some(Arc::new(Mirrored {
                mirror: Arc::clone(mirror),
                place,
                form,
                named: self.named.get(place.server).copied().unwrap_or_default(),
                document,
                image: None,
                scope: mirror.name.clone(),
                own,
            })),
            ..Site::default()
        })
    }

    /// The role for a part of an image.
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
        let place = mirror.place(image.path.as_bytes())?;
        let own = part.is_own();
        Some(Site {
            name: format!("{}{}", mirror.name, part.partition()),
            host,
            port,
            tls: server.secure.then(|| self.tls.clone()),
            rewriting: Some(rules),
            // See `route`: its URLs have a path of their own.
            preserve_host: true,
            allow_clients: Some(clients.to_vec()),
            mirror: Some(Arc::new(Mirrored {
                mirror: Arc::clone(mirror),
                place,
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

/// The role for a layer, once it is known that the client may have it.
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

/// The part of a mirror for a client that has shown a credential: everything that it gets is kept apart
/// from what others get.
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
