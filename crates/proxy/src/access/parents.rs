//! Parents: other proxies, through which the forward proxy sends its requests.
//!
//! The parent resolves the names of destinations. So the guard of destinations can check only destinations
//! that are written as addresses. The address of the parent itself may be private, but it must not be one of
//! Foxy's own listeners. For some time after a parent could not be reached, the other parents of its group
//! are tried first.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_access::{HostPattern, Scheme};
use foxy_base::{MonoTime, hash64};
use foxy_tls::OriginTls;

/// Reason word for a parent that answers 407. Such a parent cannot be used: it demands a login that only Foxy
/// can have, so Foxy must not pass the demand on to the client.
pub(crate) const WANTS_LOGIN: &str = "parent-wants-login";

/// Time for which a parent that could not be reached is tried last.
const DOWN: Duration = Duration::from_secs(10);

/// The way in which a group chooses the parent that is asked first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentBalance {
    /// Each request goes to the next parent.
    #[default]
    RoundRobin,
    /// Requests for the same URL go to the same parent.
    Hash,
    /// All requests go to the first parent, as long as it can be reached.
    Failover,
}

/// The settings of a parent.
#[derive(Clone, PartialEq)]
pub struct ParentServer {
    /// Name or address of the parent.
    pub host: String,
    /// Port of the parent.
    pub port: u16,
    /// TLS settings for the connection to the parent. Without them, the connection is plain.
    pub tls: Option<OriginTls>,
    /// `USER:PASSWORD` that Foxy sends to the parent.
    pub login: Option<String>,
}

/// The output contains no password.
impl fmt::Debug for ParentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.login.as_ref().map(|login| hash64(0, login.as_bytes()));
        let (host, port) = (&self.host, self.port);
        write!(
            f,
            "{host}:{port} tls={} login={login:?}",
            self.tls.is_some()
        )
    }
}

/// A group of parents.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentGroup {
    /// Name of the group, as access rules write it.
    pub name: String,
    /// The parents of the group.
    pub servers: Vec<ParentServer>,
    /// The way in which the group chooses the parent that is asked first.
    pub balance: ParentBalance,
    /// True if requests go through this group even if no rule names a group. If false, the group gets only
    /// the requests for which a rule names it.
    pub always: bool,
    /// Schemes of the requests that go through the group because of `always`. An empty list means all
    /// schemes.
    pub schemes: Vec<Scheme>,
    /// Hosts to which `always` does not apply. Requests to these hosts use the group only if a rule names it.
    pub except: Vec<HostPattern>,
}

/// A group of parents, with its state.
#[derive(Debug)]
pub(crate) struct Parents {
    group: ParentGroup,
    members: Vec<Arc<Parent>>,
    turn: AtomicUsize,
}

/// A parent, with its state.
#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    pub(crate) tls: Option<OriginTls>,
    /// The line `Proxy-Authorization` with Foxy's login for the parent, or nothing.
    login: Vec<u8>,
    /// Time, in nanoseconds of the clock, until which the parent is tried after the other parents.
    down: AtomicU64,
}

impl Parent {
    fn new(server: &ParentServer) -> Self {
        let line = |login: &String| {
            let login = STANDARD.encode(login);
            format!("Proxy-Authorization: Basic {login}\r\n").into_bytes()
        };
        Self {
            host: server.host.to_ascii_lowercase().into(),
            port: server.port,
            tls: server.tls.clone(),
            login: server.login.as_ref().map(line).unwrap_or_default(),
            down: AtomicU64::new(0),
        }
    }

    /// Returns the line `Proxy-Authorization` with Foxy's login for the parent. The result is empty if there
    /// is no login.
    pub(crate) fn login(&self) -> &[u8] {
        &self.login
    }

    fn is_down(&self, now: MonoTime) -> bool {
        now.nanos() < self.down.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self, now: MonoTime) {
        let until = now.nanos().saturating_add(DOWN.as_nanos() as u64);
        self.down.store(until, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self) {
        self.down.store(0, Ordering::Relaxed);
    }
}

impl Parents {
    pub(crate) fn new(group: ParentGroup) -> Self {
        Self {
            members: group
                .servers
                .iter()
                .map(|s| Arc::new(Parent::new(s)))
                .collect(),
            group,
            turn: AtomicUsize::new(0),
        }
    }

    pub(crate) fn group(&self) -> &ParentGroup {
        &self.group
    }

    /// Returns true if a request to this host goes through the group even if no rule names the group.
    pub(crate) fn takes(&self, host: &[u8], scheme: Scheme) -> bool {
        let schemes = &self.group.schemes;
        self.group.always && (schemes.is_empty() || schemes.contains(&scheme)) && !self.spares(host)
    }

    /// Returns true if `always` does not apply to this host.
    pub(crate) fn spares(&self, host: &[u8]) -> bool {
        let host = host.strip_suffix(b".").unwrap_or(host);
        self.group.except.iter().any(|except| except.fits(host))
    }

    /// Returns the parents in the order in which they are tried. Parents that could not be reached come last.
    pub(crate) fn order(&self, hash: u64, now: MonoTime) -> Vec<Arc<Parent>> {
        let count = self.members.len().max(1);
        let first = match self.group.balance {
            ParentBalance::RoundRobin => self.turn.fetch_add(1, Ordering::Relaxed) % count,
            ParentBalance::Hash => self.best(hash),
            ParentBalance::Failover => 0,
        };
        let turned = self
            .members
            .iter()
            .cycle()
            .skip(first)
            .take(self.members.len());
        let (down, up): (Vec<_>, Vec<_>) = turned.cloned().partition(|member| member.is_down(now));
        [up, down].concat()
    }

    /// Chooses by rendezvous hashing. If a parent is added, some URLs move to it. If a parent is removed, its
    /// URLs move to the other parents. All other URLs keep their parent.
    fn best(&self, hash: u64) -> usize {
        let weigh = |parent: &Parent| hash64(hash ^ u64::from(parent.port), parent.host.as_bytes());
        let members = self.members.iter().enumerate();
        let best = members.max_by_key(|(_, parent)| weigh(parent));
        best.map_or(0, |(at, _)| at)
    }
}

/// The parent through which a request is sent, and the way in which the parent is used.
#[derive(Clone, Debug)]
pub(crate) struct Through {
    pub(crate) parent: Arc<Parent>,
    /// True if the request needs a tunnel: the parent opens one to the destination.
    pub(crate) tunnel: bool,
}

impl PartialEq for Through {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parent, &other.parent) && self.tunnel == other.tunnel
    }
}

impl Eq for Through {}

impl Hash for Through {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.parent) as usize, self.tunnel).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parents(balance: ParentBalance, except: &[&str]) -> Parents {
        let server = |n: u16| ParentServer {
            host: format!("p{n}"),
            port: 3128,
            tls: None,
            login: None,
        };
        Parents::new(ParentGroup {
            name: "g".to_owned(),
            servers: (0..4).map(server).collect(),
            balance,
            always: true,
            schemes: vec![Scheme::Http],
            except: except.iter().map(|host| HostPattern::new(host)).collect(),
        })
    }

    fn first(parents: &Parents, hash: u64) -> String {
        parents.order(hash, MonoTime(1))[0].host.to_string()
    }

    #[test]
    fn each_balance_has_its_order() {
        let turns = parents(ParentBalance::RoundRobin, &[]);
        let firsts: Vec<String> = (0..5).map(|_| first(&turns, 7)).collect();
        assert_eq!(firsts, ["p0", "p1", "p2", "p3", "p0"]);
        let hash = parents(ParentBalance::Hash, &[]);
        let found: Vec<String> = (0..400)
            .map(|n| first(&hash, hash64(1, &[n as u8, 1])))
            .collect();
        for n in 0..4 {
            let share = found
                .iter()
                .filter(|host| **host == format!("p{n}"))
                .count();
            assert!(share > 40, "{n} {share}");
        }
        assert_eq!(first(&hash, 9), first(&hash, 9));
    }

    #[test]
    fn who_cannot_be_reached_comes_last_for_a_while() {
        let group = parents(ParentBalance::Failover, &[]);
        group.members[0].failed(MonoTime(1));
        let order = |at: u64| -> Vec<String> {
            let order = group.order(0, MonoTime(at));
            order.iter().map(|parent| parent.host.to_string()).collect()
        };
        assert_eq!(order(2), ["p1", "p2", "p3", "p0"]);
        assert_eq!(order(11_000_000_000), ["p0", "p1", "p2", "p3"]);
        group.members[0].answered();
        assert_eq!(order(2)[0], "p0");
    }

    #[test]
    fn some_hosts_are_asked_directly() {
        let group = parents(ParentBalance::Failover, &[".local.test"]);
        assert!(group.takes(b"a.test", Scheme::Http));
        assert!(!group.takes(b"a.test", Scheme::Connect));
        assert!(!group.takes(b"a.local.test.", Scheme::Http));
        assert!(!group.takes(b"LOCAL.test", Scheme::Http));
    }
}
