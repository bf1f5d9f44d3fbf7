//! The roles of a worker for parts of mirrors: made once, and bounded.

use std::cell::RefCell;
use std::rc::Rc;

use foxy_http1::Method;
use foxy_mirror::Place;
use hashbrown::HashMap;
use ipnet::IpNet;

use super::Mirrors;
use crate::Role;
use crate::route::Refusal;
use crate::sites::has_dots;

/// Roles that are kept. More are made anew for each request.
const ROLES_MAX: usize = 1000;

/// Why a request has no mirror.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMirror {
    /// Its path is below no prefix.
    Path,
    /// It is refused.
    Refused(Refusal),
}

const fn refused(status: u16, reason: &'static str) -> NoMirror {
    NoMirror::Refused(Refusal { status, reason })
}

/// Mirror, place, form and base.
type Part = (usize, Place, Option<usize>, Option<String>);

/// The roles for parts of mirrors.
#[derive(Debug, Default)]
pub(crate) struct Roles(RefCell<HashMap<Part, Rc<Role>>>);

impl Roles {
    /// The role for a request. `base` gives the name by which the client knows Foxy.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn find(
        &self,
        mirrors: &Mirrors,
        (method, method_text): (Method, &[u8]),
        (path, accept): (&[u8], &[u8]),
        base: impl FnOnce() -> Option<String>,
        clients: &[IpNet],
    ) -> Result<Rc<Role>, NoMirror> {
        let mut sites = mirrors.sites.iter();
        let number = sites.position(|site| site.mirror.has(path));
        let number = number.ok_or(NoMirror::Path)?;
        let site = mirrors.sites.get(number).ok_or(NoMirror::Path)?;
        let end = path.iter().position(|b| *b == b'?').unwrap_or(path.len());
        if has_dots(&path[..end]) {
            return Err(refused(400, "dots-in-path"));
        }
        let place = site.mirror.place(path);
        let place = place.ok_or(refused(404, "host-not-of-mirror"))?;
        let class = site.mirror.class(place.class);
        let is_named = |name: &String| name.as_bytes() == method_text;
        let takes = matches!(method, Method::Get | Method::Head | Method::Purge)
            || class.methods.iter().any(is_named);
        if !takes {
            return Err(refused(405, "method-not-of-mirror"));
        }
        let base = match class.rewrite {
            // What documents say is for everybody who gets them.
            Some(_) => Some(base().ok_or(refused(421, "name-not-configured"))?),
            None => None,
        };
        let part = (number, place, class.form(accept), base);
        if let Some(role) = self.0.borrow().get(&part) {
            return Ok(Rc::clone(role));
        }
        let own = site.site(place, part.2, part.3.as_deref(), clients);
        let role = Rc::new(Role::Site(own.ok_or(refused(500, "mirror-not-usable"))?));
        let mut roles = self.0.borrow_mut();
        if roles.len() < ROLES_MAX {
            roles.insert(part, Rc::clone(&role));
        }
        Ok(role)
    }
}
