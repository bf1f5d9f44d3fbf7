//! The rules as sets of bits. Each condition (such as the host) divides its values into classes: the same
//! rules fit all values of a class. For each class, the index has the set of these rules. A request belongs
//! to one class for each condition. The first rule that is in the sets of all these classes decides.
//!
//! For host patterns with `*` (except `*.NAME`) and for all path patterns, a set also contains rules that fit
//! perhaps only some values of the class. If such a rule is the first rule that is in all sets of a request,
//! its patterns are compared with the request.

mod bits;
mod intervals;
mod names;
mod words;

use std::net::IpAddr;

use foxy_base::Pattern;
use ipnet::IpNet;

pub(crate) use bits::{BITS, Block, Class};
use bits::{Classes, EVERY, put};
use intervals::{Intervals, Range};
use names::{Hosts, Paths};
use words::Words;

use crate::rule::Fit;
use crate::{ApplicableRules, HostPattern, Judgement, Request, Requester, Rule, Scheme, User};

/// The compiled rules. Conditions that no rule has are `None`.
#[derive(Debug)]
pub(crate) struct Index {
    /// Number of blocks of one set.
    per: usize,
    every: Box<[Block]>,
    classes: Classes,
    /// The classes of clients' addresses, and the class for clients whose address is unknown.
    clients: Option<(Addresses, Class)>,
    /// The class of the rules that have no condition on users.
    users: Option<Class>,
    hosts: Option<Hosts>,
    /// The classes of destinations' addresses, and the class of the rules that have no condition on
    /// addresses.
    addresses: Option<(Addresses, Class)>,
    ports: Option<Intervals<u16>>,
    schemes: Option<[Class; 3]>,
    methods: Option<Words>,
    /// The classes of paths, and the class for requests without a path.
    paths: Option<(Paths, Class)>,
    sites: Option<Words>,
    times: Option<Intervals<u16>>,
    /// Rules whose patterns fit perhaps only some values of their classes. If such a rule is the first rule
    /// that is in all sets of a request, it is compared with the request.
    compared: Box<[Block]>,
    /// True if some rules apply only to some clients, users or times.
    apart: bool,
}

#[derive(Debug)]
struct Addresses {
    four: Intervals<u32>,
    six: Intervals<u128>,
}

impl Addresses {
    fn new(free: &[Block], of: &[(usize, &[IpNet])], classes: &mut Classes) -> Self {
        let ranges = |six: bool| -> Vec<(usize, Vec<Range>)> {
            let own = |net: &&IpNet| matches!(net, IpNet::V6(_)) == six;
            let range = |net: &IpNet| (number(net.network()), number(net.broadcast()));
            of.iter()
                .map(|(rule, nets)| (*rule, nets.iter().filter(own).map(range).collect()))
                .collect()
        };
        Self {
            four: Intervals::new(free, &ranges(false), classes),
            six: Intervals::new(free, &ranges(true), classes),
        }
    }

    #[inline]
    fn class(&self, address: IpAddr) -> Class {
        match address.to_canonical() {
            IpAddr::V4(four) => self.four.class(four.to_bits()),
            IpAddr::V6(six) => self.six.class(six.to_bits()),
        }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => u128::from(four.to_bits()),
        IpAddr::V6(six) => six.to_bits(),
    }
}

/// Builds the classes of each condition.
struct Builder<'a> {
    rules: &'a [Rule],
    per: usize,
    classes: Classes,
}

impl<'a> Builder<'a> {
    fn set(&self, of: impl Fn(&Rule) -> bool) -> Vec<Block> {
        let mut set = vec![Block::NONE; self.per];
        let fits = |(_, rule): &(usize, &Rule)| of(rule);
        for (i, _) in self.rules.iter().enumerate().filter(fits) {
            put(&mut set, i);
        }
        set
    }

    /// Returns the number of each rule that has a condition of this kind, and the condition itself. Returns
    /// `None` if no rule has such a condition.
    fn having<T>(&self, of: impl Fn(&'a Rule) -> Option<T>) -> Option<Vec<(usize, T)>> {
        let all = self.rules.iter().enumerate();
        let found: Vec<_> = all.filter_map(|(i, rule)| Some((i, of(rule)?))).collect();
        (!found.is_empty()).then_some(found)
    }

    fn numbers(&mut self, of: impl Fn(&Rule) -> Vec<Range>) -> Option<Intervals<u16>> {
        let ranges = self.having(|rule| Some(of(rule)).filter(|ranges| !ranges.is_empty()))?;
        let free = self.set(|rule| of(rule).is_empty());
        Some(Intervals::new(&free, &ranges, &mut self.classes))
    }

    fn nets(&mut self, of: fn(&Rule) -> &[IpNet]) -> Option<Addresses> {
        let nets = self.having(|rule| Some(of(rule)).filter(|nets| !nets.is_empty()))?;
        let free = self.set(|rule| of(rule).is_empty());
        Some(Addresses::new(&free, &nets, &mut self.classes))
    }

    fn words(&mut self, of: fn(&Rule) -> &[String]) -> Option<Words> {
        let words = self.having(|rule| Some(of(rule)).filter(|words| !words.is_empty()))?;
        let free = self.set(|rule| of(rule).is_empty());
        Some(Words::new(&free, &words, &mut self.classes))
    }

    fn class(&mut self, of: impl Fn(&Rule) -> bool) -> Class {
        let set = self.set(of);
        self.classes.add(&set)
    }

    fn hosts(&mut self) -> Option<Hosts> {
        let named = self.having(|rule| (!rule.hosts.is_empty()).then_some(&rule.hosts))?;
        let entry = |(rule, host): (usize, &'a HostPattern)| {
            let (name, at, below) = host.index_entry();
            (rule, name.as_bytes(), at, below)
        };
        let each = named.iter();
        let each = each.flat_map(|(rule, hosts)| hosts.iter().map(|host| (*rule, host)));
        let named: Vec<_> = each.map(entry).collect();
        let free = self.set(|rule| rule.hosts.is_empty());
        Some(Hosts::new(&free, &named, &mut self.classes))
    }

    fn paths(&mut self) -> Option<(Paths, Class)> {
        let named = self.having(|rule| (!rule.paths.is_empty()).then_some(&rule.paths))?;
        let each = named.iter();
        let each = each.flat_map(|(rule, paths)| paths.iter().map(|path| (*rule, path)));
        let named: Vec<_> = each
            .map(|(rule, path)| (rule, folder(path), true, true))
            .collect();
        let free = self.set(|rule| rule.paths.is_empty());
        let paths = Paths::new(&free, &named, &mut self.classes);
        Some((paths, self.classes.add(&free)))
    }
}

/// Returns the folder that contains every path that matches the pattern.
fn folder(pattern: &Pattern) -> &[u8] {
    let text = pattern.as_bytes();
    let fixed = text.iter().position(|b| *b == b'*').unwrap_or(text.len());
    let end = text[..fixed].iter().rposition(|b| *b == b'/');
    &text[..end.map_or(0, |end| end + 1)]
}

impl Index {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let per = rules.len().div_ceil(BITS).max(1);
        let mut build = Builder {
            rules,
            per,
            classes: Classes::new(per),
        };
        let clients = build.nets(|rule| &rule.clients);
        let clients = clients.map(|nets| (nets, build.class(Rule::means_unknown)));
        let users = rules.iter().any(Rule::names_users);
        let users = users.then(|| build.class(|rule| !rule.names_users()));
        let addresses = build.nets(|rule| &rule.addresses);
        let addresses = addresses.map(|nets| (nets, build.class(|rule| rule.addresses.is_empty())));
        let schemes = rules.iter().any(|rule| !rule.schemes.is_empty());
        let fits = |rule: &Rule, scheme| rule.schemes.is_empty() || rule.schemes.contains(&scheme);
        let schemes = schemes.then(|| Scheme::ALL.map(|s| build.class(|rule| fits(rule, s))));
        let ports = build.numbers(|rule| {
            let range = |ports: &std::ops::RangeInclusive<u16>| {
                (u128::from(*ports.start()), u128::from(*ports.end()))
            };
            rule.ports.iter().map(range).collect()
        });
        let times = build.numbers(|rule| {
            let ranges = rule.times.iter().flat_map(|span| span.ranges());
            ranges.map(|(from, to)| (from.into(), to.into())).collect()
        });
        let like = |host: &HostPattern| matches!(host, HostPattern::Like(_));
        let compared = build.set(|rule| !rule.paths.is_empty() || rule.hosts.iter().any(like));
        let apart =
            |rule: &Rule| rule.names_users() || !rule.clients.is_empty() || !rule.times.is_empty();
        Self {
            per,
            every: build.set(|_| true).into(),
            clients,
            users,
            addresses,
            schemes,
            ports,
            times,
            hosts: build.hosts(),
            methods: build.words(|rule| &rule.methods),
            paths: build.paths(),
            sites: build.words(|rule| &rule.sites),
            compared: compared.into(),
            apart: rules.iter().any(apart),
            classes: build.classes,
        }
    }

    pub(crate) fn no_rules(&self) -> Box<[Block]> {
        vec![Block::NONE; self.per].into()
    }

    pub(crate) fn keeps_apart(&self, address: IpAddr) -> bool {
        let Some((addresses, free)) = self.addresses.as_ref().filter(|_| self.apart) else {
            return false;
        };
        addresses.class(address) != *free
    }

    pub(crate) fn judge(
        &self,
        rules: &[Rule],
        applicable: &mut ApplicableRules,
        request: &Request<'_>,
    ) -> Judgement {
        if !applicable.goes(request) {
            self.narrow_to(applicable, request);
        }
        let hosts = self.hosts.as_ref();
        let class = hosts.map_or(EVERY, |hosts| hosts.class(request.bare_host()));
        if let Some(found) = applicable.found(class)
            && let Some(judgement) = found.judgement
        {
            return judgement;
        }
        self.search(rules, (applicable, class), request)
    }

    /// Finds the first rule for a class of hosts, and remembers the judgement if no rule had to be compared
    /// with the request.
    #[inline(never)]
    fn search(
        &self,
        rules: &[Rule],
        (applicable, class): (&mut ApplicableRules, Class),
        request: &Request<'_>,
    ) -> Judgement {
        let blocks = applicable.left.iter().zip(self.classes.rules(class));
        let mut compared = false;
        let mut found = Judgement::None;
        for (at, (left, host)) in blocks.enumerate() {
            let Some(mut first) = left.first_with(host) else {
                continue;
            };
            if self.compared[at].has(first) {
                compared = true;
                let Some(rule) = self.compared(rules, (at, left.and(host)), request) else {
                    continue;
                };
                first = rule;
            }
            let number = at * BITS + first;
            found = judged(&rules[number], number, request);
            break;
        }
        applicable.keep(class, (!compared).then_some(found));
        found
    }

    /// Finds the rules for the method, scheme, port and address of this request, and remembers these four
    /// values. It is called only if one of them differs from the last request.
    #[cold]
    #[inline(never)]
    fn narrow_to(&self, applicable: &mut ApplicableRules, request: &Request<'_>) {
        let classes = self.classes_of(request);
        for at in 0..self.per {
            let mut left = applicable.rules[at];
            for class in classes {
                left.keep(self.classes.block(class, at));
            }
            applicable.left[at] = left;
        }
        applicable.note(request);
    }

    /// Returns one class for each of the conditions on address, port, scheme and method.
    fn classes_of(&self, request: &Request<'_>) -> [Class; 4] {
        let mut classes = [EVERY; 4];
        if let Some((addresses, _)) = &self.addresses
            && let Some(address) = request.address
        {
            classes[0] = addresses.class(address);
        }
        if let Some(ports) = &self.ports {
            classes[1] = ports.class(request.port);
        }
        if let Some(schemes) = &self.schemes {
            classes[2] = schemes[request.scheme as usize];
        }
        if let Some(methods) = &self.methods {
            classes[3] = methods.class(request.method);
        }
        classes
    }

    /// Returns the first rule in `left` whose patterns also match the request.
    #[cold]
    #[inline(never)]
    fn compared(
        &self,
        rules: &[Rule],
        (at, mut left): (usize, Block),
        request: &Request<'_>,
    ) -> Option<usize> {
        if let Some((paths, none)) = &self.paths {
            let class = request.path.map_or(*none, |path| paths.class(path));
            left.keep(&self.classes.rules(class)[at]);
        }
        while let Some(rule) = left.first() {
            if !self.compared[at].has(rule) || compare(&rules[at * BITS + rule], request) {
                return Some(rule);
            }
            left.clear(rule);
        }
        None
    }

    /// Returns the rules that apply to this requester, for any destination.
    pub(crate) fn applicable(&self, who: &Requester<'_>) -> ApplicableRules {
        let mut kept = self.every.clone();
        let mut keep = |row: &[Block]| {
            for (own, other) in kept.iter_mut().zip(row) {
                own.keep(other);
            }
        };
        let rules = |class| self.classes.rules(class);
        if let Some((clients, unknown)) = &self.clients {
            let class = who.client.map(|client| clients.class(client));
            keep(rules(class.unwrap_or(*unknown)));
        }
        match (self.users, who.user) {
            (Some(_), User::Known(principal)) => keep(&principal.rules),
            (Some(free), User::Nobody) => keep(rules(free)),
            _ => {}
        }
        if let Some(sites) = &self.sites {
            keep(rules(sites.class(who.site.as_bytes())));
        }
        if let Some(times) = &self.times {
            keep(rules(times.class(who.minute)));
        }
        ApplicableRules::new(kept)
    }
}

#[inline]
fn judged(rule: &Rule, number: usize, request: &Request<'_>) -> Judgement {
    if rule.names_users() && matches!(request.who.user, User::Unknown) {
        return Judgement::NeedsUser(number);
    }
    match request.address {
        None if !rule.addresses.is_empty() => Judgement::NeedsAddress(number),
        _ => Judgement::Rule(number),
    }
}

/// Checks the conditions that the index does not decide.
fn compare(rule: &Rule, request: &Request<'_>) -> bool {
    rule.host(request) == Fit::Yes && rule.path(request) == Fit::Yes
}
