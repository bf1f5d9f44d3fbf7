//! Rules of an operator: settings for some hosts and paths. If several rules fit a request, only the first of
//! them applies. A setting that this rule does not contain has the same value as for requests that no rule
//! fits.
//!
//! A [`Rule`] contains complete caching settings (a [`Config`]). Sites can have other caching settings than
//! the forward proxy; a [`PartitionConfig`] contains them. It has one [`Config`] for requests that no rule
//! fits, and one [`Config`] for each rule. If there are neither rules nor partition configs, this module
//! costs a request only two comparisons.

mod bypass;
mod query;

pub use bypass::{Bypass, BypassWhy};
pub use foxy_base::Pattern;
pub use query::{QueryRule, Which};

use foxy_base::Fields;

use crate::config::Config;

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule in `Cache-Status`, log and `foxy why`.
    pub name: String,
    /// Names of partitions (key spaces: `forward` or a site's name) for which the rule applies; an empty list
    /// means all.
    pub sites: Vec<String>,
    /// Hosts in lower case, with the port unless it is the scheme's default; an empty list means
    /// all.
    pub hosts: Vec<Pattern>,
    /// Paths without query; an empty list means all.
    pub paths: Vec<Pattern>,
    /// The query parameters that are in the key and are sent to the origin.
    pub query: QueryRule,
    /// The requests that bypass the cache.
    pub bypass: Bypass,
    /// The complete caching settings for requests that this rule fits. For partitions with a
    /// [`PartitionConfig`], the settings there are used instead.
    pub config: Config,
}

/// Caching settings for partitions (sites) whose settings differ from those of the forward proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionConfig {
    /// Names of the partitions; if the list is empty, all partitions except the forward proxy.
    pub partitions: Vec<String>,
    /// The complete caching settings for requests that no rule fits.
    pub config: Config,
    /// The caching settings for requests that a rule fits, in the order of the rules.
    pub rules: Vec<Config>,
}

/// The partition of the forward proxy.
pub const FORWARD: &str = "forward";

/// The rules, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    rules: Vec<Rule>,
    partition_configs: Vec<PartitionConfig>,
    /// Partitions in which the percent escapes of paths are not normalised.
    as_received: Vec<String>,
}

/// Indices of the rule that decides about a request, and of the [`PartitionConfig`] of the request's
/// partition. The methods of the rule set return the rule and the settings at these indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleId {
    rule: Option<u16>,
    partition_config: Option<u16>,
}

/// Largest number of rules in a set.
pub const RULES_MAX: usize = 1000;

impl RuleSet {
    /// Makes a set. Rules beyond [`RULES_MAX`] are left out.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.truncate(RULES_MAX);
        Self {
            rules,
            partition_configs: Vec::new(),
            as_received: Vec::new(),
        }
    }

    /// Adds the caching settings of partitions. The first entry that names a partition applies, so an entry
    /// for all partitions must come last.
    #[must_use]
    pub fn with_partition_configs(self, partition_configs: Vec<PartitionConfig>) -> Self {
        Self {
            partition_configs,
            ..self
        }
    }

    /// The caching settings for a request with this id. `None` means that no rule fits the request, and that
    /// its partition has the settings of the forward proxy.
    #[must_use]
    pub fn config(&self, id: RuleId) -> Option<&Config> {
        let found = id.partition_config;
        let Some(config) = found.and_then(|at| self.partition_configs.get(usize::from(at))) else {
            return self.get(id).map(|rule| &rule.config);
        };
        match id.rule {
            Some(rule) => config.rules.get(usize::from(rule)),
            None => Some(&config.config),
        }
    }

    /// True if the rule leaves query parameters out of the key.
    #[must_use]
    pub fn drops_parameters(&self, id: RuleId) -> bool {
        self.get(id)
            .is_some_and(|rule| rule.query.which != Which::All)
    }

    /// Sets the partitions (`forward` or a site's name) in which the percent escapes of paths are not
    /// normalised.
    #[must_use]
    pub fn with_received(mut self, partitions: Vec<String>) -> Self {
        self.as_received = partitions;
        self
    }

    /// True if the percent escapes of paths in this partition are not normalised in keys, in purges and at
    /// the origin.
    #[must_use]
    pub fn keeps_escapes(&self, partition: &str) -> bool {
        self.as_received.iter().any(|name| is_of(partition, name))
    }

    /// True if there are no rules.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule of this id; `None` if no rule applies.
    #[must_use]
    pub fn get(&self, id: RuleId) -> Option<&Rule> {
        self.rules.get(usize::from(id.rule?))
    }

    /// True if the rule makes this request bypass the cache.
    pub fn bypasses<F: Fields + ?Sized>(&self, id: RuleId, request: &F) -> bool {
        self.get(id)
            .is_some_and(|rule| rule.bypass.of(request).is_some())
    }

    /// All rules.
    #[must_use]
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Finds the rule for the primary key of a plain request,
    /// `<partition> GET <scheme>://<authority><path?query>`, and changes the key as the rule
    /// requires.
    pub fn apply(&self, partition: &str, key: &mut Vec<u8>) -> RuleId {
        let partition_config = self.partition_config(partition);
        let mut id = RuleId {
            rule: None,
            partition_config,
        };
        if self.rules.is_empty() {
            return id;
        }
        let Some(parts) = Parts::of(partition, key) else {
            return id;
        };
        let found = self
            .rules
            .iter()
            .position(|rule| rule.fits(partition, &parts));
        let path_at = parts.path_at;
        if let Some(rule) = found.and_then(|i| self.rules.get(i))
            && !rule.query.is_plain()
        {
            rule.query.apply(key, path_at);
        }
        id.rule = found.and_then(|i| u16::try_from(i).ok());
        id
    }

    /// Index of the [`PartitionConfig`] of a partition; `None` if it has the settings of the forward proxy.
    fn partition_config(&self, partition: &str) -> Option<u16> {
        if self.partition_configs.is_empty() || partition == FORWARD {
            return None;
        }
        let has = |config: &PartitionConfig| {
            config.partitions.is_empty()
                || config.partitions.iter().any(|name| is_of(partition, name))
        };
        let found = self.partition_configs.iter().position(has);
        found.and_then(|at| u16::try_from(at).ok())
    }
}

/// True if a partition belongs to the site: it is the site's partition, or it has the form `site@part`. The
/// rules of the site apply to such parts too.
fn is_of(partition: &str, site: &str) -> bool {
    let rest = partition.strip_prefix(site);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
}

/// Host and path of a key.
struct Parts<'k> {
    host: &'k [u8],
    path: &'k [u8],
    path_at: usize,
}

impl<'k> Parts<'k> {
    fn of(partition: &str, key: &'k [u8]) -> Option<Self> {
        let from = partition.len();
        let scheme = key.get(from..)?.windows(3).position(|w| w == b"://")?;
        let host_at = from + scheme + 3;
        let host_len = key[host_at..].iter().position(|b| *b == b'/')?;
        let path_at = host_at + host_len;
        let path = key[path_at..].split(|b| *b == b'?').next()?;
        Some(Self {
            host: &key[host_at..path_at],
            path,
            path_at,
        })
    }
}

impl Rule {
    /// The name of the rule and the requests for which it applies, in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        let join = |patterns: &[Pattern]| {
            let texts = patterns
                .iter()
                .map(|p| String::from_utf8_lossy(p.as_bytes()));
            texts.collect::<Vec<_>>().join(", ")
        };
        let about = [
            ("site", self.sites.join(", ")),
            ("host", join(&self.hosts)),
            ("path", join(&self.paths)),
        ];
        let about: Vec<String> = about
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(what, text)| format!("{what} {text}"))
            .collect();
        let about = if about.is_empty() {
            "everything".to_owned()
        } else {
            about.join("; ")
        };
        format!("{}: {about}", self.name)
    }

    fn fits(&self, partition: &str, parts: &Parts<'_>) -> bool {
        let any = |patterns: &[Pattern], text: &[u8]| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.fits(text))
        };
        (self.sites.is_empty() || self.sites.iter().any(|site| is_of(partition, site)))
            && any(&self.hosts, parts.host)
            && any(&self.paths, parts.path)
    }
}

#[cfg(test)]
mod tests;
