//! Explains to the operator which access rule decides about a request, and why the earlier rules do not.

use std::net::{IpAddr, Ipv4Addr};

use foxy_access::{Request, Requester, Scheme, User, Why};
use foxy_base::WallTime;
use foxy_http1::{Authority, Host, Scheme as UrlScheme, Url};

use super::Gatekeeper;
use super::path::{literal, plain_path};

/// A request for which [`Gatekeeper::explain`] finds the access rule that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessQuestion {
    /// `forward`, or the name of the site.
    pub site: String,
    /// The client's address.
    pub client: IpAddr,
    /// The user who is logged in.
    pub user: Option<String>,
    /// Groups of the user, in addition to the groups that the configuration states.
    pub groups: Vec<String>,
    /// Minute of the week. `None` means the current minute.
    pub minute: Option<u16>,
    /// Address of the destination, if it is known. For a site, this is the address of its origin.
    pub address: Option<IpAddr>,
    /// The scheme of the URL, or `Connect` for a tunnel.
    pub scheme: Scheme,
    /// The method, as it is written in the request.
    pub method: String,
    host: Vec<u8>,
    port: u16,
    path: Option<Vec<u8>>,
}

impl AccessQuestion {
    /// Returns the question for a request that a client on this machine sends to the forward proxy for `url`.
    #[must_use]
    pub fn url(method: &str, url: &Url<'_>) -> Self {
        let scheme = match url.scheme {
            UrlScheme::Http => Scheme::Http,
            UrlScheme::Https => Scheme::Https,
        };
        let mut path = Vec::new();
        plain_path(url.path, &mut path);
        Self {
            path: Some(path),
            ..Self::new(method, (&url.authority, url.scheme), scheme)
        }
    }

    /// Returns the question for a tunnel that a client on this machine opens through the forward proxy.
    #[must_use]
    pub fn tunnel(to: &Authority<'_>) -> Self {
        Self::new("CONNECT", (to, UrlScheme::Https), Scheme::Connect)
    }

    fn new(method: &str, (to, spoken): (&Authority<'_>, UrlScheme), scheme: Scheme) -> Self {
        let address = match to.host {
            Host::V6(ip) => Some(IpAddr::V6(ip).to_canonical()),
            Host::Name(name) => literal(name),
        };
        let mut host = Vec::new();
        match address {
            Some(address) => host.extend_from_slice(address.to_string().as_bytes()),
            None => to.write_host(&mut host),
        }
        Self {
            site: "forward".to_owned(),
            client: Ipv4Addr::LOCALHOST.into(),
            user: None,
            groups: Vec::new(),
            minute: None,
            address,
            scheme,
            method: method.to_owned(),
            host,
            port: to.port_or_default(spoken),
            path: None,
        }
    }

    /// Returns the same question for a request to a site. An address in the URL is then not the address of
    /// the destination, because the destination is the site's origin. So the address is dropped.
    #[must_use]
    pub fn of_site(self, site: &str) -> Self {
        Self {
            address: self.address.filter(|_| site == "forward"),
            site: site.to_owned(),
            ..self
        }
    }
}

impl Gatekeeper {
    /// Returns one line for each rule, from the first rule to the rule that decides. The line states whether
    /// the rule fits the request. If no rule decides, the last line states that the request is allowed.
    #[must_use]
    pub fn explain(&self, question: &AccessQuestion, now: WallTime) -> Vec<String> {
        let rules = self.rules();
        let groups: Vec<String> = match &question.user {
            Some(user) => [self.groups_of(user), question.groups.clone()].concat(),
            None => Vec::new(),
        };
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let user = question.user.as_ref();
        let principal = user.map(|user| rules.principal(user, &groups));
        let request = Request {
            who: Requester {
                client: Some(question.client),
                user: principal.as_ref().map_or(User::Unknown, User::Known),
                site: &question.site,
                minute: question.minute.unwrap_or_else(|| self.minute_of_week(now)),
            },
            host: &question.host,
            address: question.address,
            port: question.port,
            scheme: question.scheme,
            method: question.method.as_bytes(),
            path: question.path.as_deref(),
        };
        let mut lines = Vec::new();
        let mut decided = false;
        for step in rules.explain(&request) {
            let rule = &rules.all()[step.rule];
            let (name, action) = (&rule.name, rule.action.as_str());
            lines.push(match step.why {
                Why::Not(condition) => format!("{name}: not for this {}", condition.as_str()),
                Why::Fits if rule.action.refuses(question.scheme) => {
                    format!("{name}: fits and decides: {action}, so the request is refused")
                }
                Why::Fits => format!("{name}: fits and decides: {action}"),
                Why::Depends(condition) => format!(
                    "{name}: decides ({action}) if it is for the {}, which is not known here",
                    condition.as_str()
                ),
            });
            decided = !matches!(step.why, Why::Not(_));
        }
        if !decided {
            lines.push("allowed: no access rule fits".to_owned());
        }
        lines
    }
}
