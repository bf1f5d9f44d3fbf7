//! A worker's table of the roles of requests for mirrors. A role determines how Foxy handles a request. There
//! is one role for each part of a mirror (see the head of the module `mirrors`). Roles are kept for later
//! requests, except the roles for container images and for clients' own credentials. The number of kept roles
//! is bounded.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use foxy_http_rules::rewrite::Rewriting;
use foxy_http1::Method;
use foxy_mirror::{Mirror, MirrorTarget, NoImage, image};
use hashbrown::HashMap;
use ipnet::IpNet;

use super::images::{ImagePart, Login, mark};
use super::{MirrorSite, Mirrors, of_credential, rewriting};
use crate::Role;
use crate::access::refusal::Refusal;
use crate::sites::table::has_dots;

/// Number of roles that are kept. Other roles are made again for each request.
const ROLES_MAX: usize = 1000;

/// Reason why there is no role for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMirror {
    /// No mirror has a prefix with which the path begins.
    Path,
    /// The mirror refuses the request.
    Refused(Refusal),
}

const fn refused(status: u16, reason: &'static str) -> NoMirror {
    NoMirror::Refused(Refusal { status, reason })
}

/// A part of a mirror: the number of the mirror, the server and the class of URLs, the number of the document
/// form, and the beginning of the URLs that are written into the document. The last value is true if the
/// client's own credential is sent.
type Part = (usize, MirrorTarget, Option<usize>, Option<String>, bool);

/// The roles that are kept.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    parts: RefCell<HashMap<Part, Rc<Role>>>,
    /// The rewriting rules for requests for container images. Roles for images are not kept, because there
    /// are too many different requests.
    images: RefCell<HashMap<(usize, MirrorTarget, bool), Arc<Rewriting>>>,
    /// The roles that redirect from one mirror to another, by the numbers of the two mirrors.
    away: RefCell<HashMap<(usize, usize), Rc<Role>>>,
}

/// The facts about a request that a mirror needs to choose a role.
pub(crate) struct Wants<'a> {
    pub(crate) method: Method,
    pub(crate) method_text: &'a [u8],
    pub(crate) path: &'a [u8],
    pub(crate) accept: &'a [u8],
    /// The client's credential for the registry, and the seed that makes a name from the credential.
    pub(crate) login: Option<(&'a [u8], u64)>,
}

impl Roles {
    /// Returns the role for a request. `base` returns the scheme and authority by which the client knows
    /// Foxy.
    ///
    /// # Errors
    /// Returns the reason why there is no role.
    pub(crate) fn find(
        &self,
        mirrors: &Mirrors,
        wants: &Wants<'_>,
        base: impl FnOnce() -> Option<String>,
        clients: &[IpNet],
    ) -> Result<Rc<Role>, NoMirror> {
        let &Wants {
            method,
            method_text,
            path,
            accept,
            ..
        } = wants;
        let mut sites = mirrors.sites.iter();
        let number = sites.position(|site| site.mirror.has(path));
        let number = number.ok_or(NoMirror::Path)?;
        let site = mirrors.sites.get(number).ok_or(NoMirror::Path)?;
        if site.mirror.images {
            let role = self.image(mirrors, wants, clients)?;
            return Ok(Rc::new(role));
        }
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        if has_dots(&path[..end]) {
            return Err(refused(400, "dots-in-path"));
        }
        if let Some(owner) = mirrors.owner(number, &path[..end]) {
            let away = self.away((number, owner), mirrors, clients);
            return away.ok_or(refused(500, "mirror-not-usable"));
        }
        let target = site.mirror.target(path);
        let target = target.ok_or(refused(404, "host-not-of-mirror"))?;
        let class = site.mirror.class(target.class);
        let is_named = |name: &String| name.as_bytes() == method_text;
        let takes = matches!(method, Method::Get | Method::Head | Method::Purge)
            || class.methods.iter().any(is_named);
        if !takes {
            return Err(refused(405, "method-not-of-mirror"));
        }
        let base = match class.rewrite {
            // URLs that are written into a document must be right for all clients that get the document. So
            // the request is refused if its host is not a name by which clients know Foxy.
            Some(form) if form.writes() => Some(base().ok_or(refused(421, "name-not-configured"))?),
            // No URL is written into the document.
            Some(_) => Some(String::new()),
            None => site.mirror.screens(target.class).map(|_| String::new()),
        };
        let login = wants.login.filter(|_| site.client_logins);
        let part = (number, target, class.form(accept), base, login.is_some());
        let unusable = refused(500, "mirror-not-usable");
        let role = self.part(site, part, clients).ok_or(unusable)?;
        match login {
            None => Ok(role),
            // The role is not kept, because clients can invent any number of credentials.
            Some((login, seed)) => {
                let role = of_credential(&role, &mark(login, seed));
                role.map(Rc::new).ok_or(unusable)
            }
        }
    }

    /// Returns the role for a part of a mirror. All clients share this role.
    fn part(&self, site: &MirrorSite, part: Part, clients: &[IpNet]) -> Option<Rc<Role>> {
        if let Some(role) = self.parts.borrow().get(&part) {
            return Some(Rc::clone(role));
        }
        let (_, target, form, ref base, own) = part;
        let role = site.site(target, (form, own), base.as_deref(), clients)?;
        let role = Rc::new(Role::Site(role));
        let mut roles = self.parts.borrow_mut();
        if roles.len() < ROLES_MAX {
            roles.insert(part, Rc::clone(&role));
        }
        Some(role)
    }

    /// Returns the role that redirects clients from one mirror to the mirror that owns the package.
    fn away(
        &self,
        (from, to): (usize, usize),
        mirrors: &Mirrors,
        clients: &[IpNet],
    ) -> Option<Rc<Role>> {
        if let Some(role) = self.away.borrow().get(&(from, to)) {
            return Some(Rc::clone(role));
        }
        let [source, owner] = [from, to].map(|n| mirrors.sites.get(n));
        let role = Rc::new(Role::Site(source?.away(owner?, clients)?));
        self.away.borrow_mut().insert((from, to), Rc::clone(&role));
        Some(role)
    }

    /// Returns the role for a request for a part of an image.
    fn image(
        &self,
        mirrors: &Mirrors,
        wants: &Wants<'_>,
        clients: &[IpNet],
    ) -> Result<Role, NoMirror> {
        let registries = mirrors.sites.iter().enumerate();
        let registries: Vec<_> = registries.filter(|(_, site)| site.mirror.images).collect();
        let names: Vec<&str> = registries
            .iter()
            .map(|(_, site)| &site.mirror.name[..])
            .collect();
        let image = image(wants.path, &names).map_err(|no| match no {
            NoImage::Registry => refused(404, "registry-not-of-mirror"),
            NoImage::Path => refused(404, "no-path-of-images"),
        })?;
        if !matches!(wants.method, Method::Get | Method::Head | Method::Purge) {
            return Err(refused(405, "method-not-of-mirror"));
        }
        let (number, site) = registries[image.registry];
        let unusable = refused(500, "mirror-not-usable");
        let target = site.mirror.target(image.path.as_bytes()).ok_or(unusable)?;
        let own = wants
            .login
            .and_then(|(text, seed)| Some((Login::shown(text)?, seed)));
        // A purge needs no proof, because it removes a stored object and gives no client access to it.
        let proven = wants.method == Method::Purge;
        let of = (number, target, own.is_some());
        let rules = self.rules_of(of, &site.mirror).ok_or(unusable)?;
        let part = ImagePart::new(image.clone(), own, site.login.clone(), proven);
        let role = site.image_site(&image, part, rules, clients);
        role.map(Role::Site).ok_or(unusable)
    }

    fn rules_of(&self, of: (usize, MirrorTarget, bool), mirror: &Mirror) -> Option<Arc<Rewriting>> {
        if let Some(rules) = self.images.borrow().get(&of) {
            return Some(Arc::clone(rules));
        }
        let (_, target, own) = of;
        let class = mirror.class(target.class);
        let form = (!class.accept.is_empty()).then_some(0);
        let rules = Arc::new(rewriting(mirror, target, (class, form), (None, own))?);
        let mut all = self.images.borrow_mut();
        all.insert(of, Arc::clone(&rules));
        Some(rules)
    }
}
