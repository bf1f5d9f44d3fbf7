//! Defaults of sites that differ from the defaults of the forward proxy. Clients of a forward proxy belong to
//! its operator, so the directives in their requests (`Cache-Control` and `Pragma`) are obeyed. The clients
//! of a site are unknown. If their directives were obeyed, each client could force a request to the origin
//! every time. Only sites and mirrors store the answer to a POST for later GETs, because the operator knows
//! their origins.

use foxy_proxy::rules::rules::PartitionConfig;
use foxy_proxy::rules::{Config, RuleSet};

use super::build::SiteConfig;
use super::raw::Section;

/// Returns the caching settings of sites and mirrors. `sections` are the sections from which `rules` were
/// made, in the same order. A setting in a rule takes precedence over the site's setting. The site's setting
/// takes precedence over the setting in `cache`.
pub(super) fn partition_configs(
    sections: &[Section],
    cache: Option<&Section>,
    forward: &Config,
    rules: &RuleSet,
    (sites, mirrors): (&[SiteConfig], Vec<String>),
) -> Vec<PartitionConfig> {
    let given = |name| cache.is_some_and(|cache| cache.contains_key(name));
    let obeys = given("obey_request") && forward.obey_request;
    let post = !given("store_post") || forward.post;
    let partition_config = |partitions: Vec<String>, obey_request| {
        let own = |config: &Config, own_word: bool| Config {
            obey_request: if own_word {
                config.obey_request
            } else {
                obey_request
            },
            post,
            ..config.clone()
        };
        let ruled = rules.all().iter().zip(sections);
        let in_rule = |section: &Section| section.contains_key("obey_request");
        PartitionConfig {
            partitions,
            config: own(forward, false),
            rules: ruled
                .map(|(rule, section)| own(&rule.config, in_rule(section)))
                .collect(),
        }
    };
    let apart = |site: &&SiteConfig| site.obey_request.is_some_and(|own| own != obeys);
    let apart: Vec<String> = sites
        .iter()
        .filter(apart)
        .map(|site| site.name.clone())
        .collect();
    let mut partition_configs = Vec::new();
    if !mirrors.is_empty() {
        // Mirrors do not obey directives of requests, because apt requests a new copy even of files that
        // never change. How long an answer of a mirror is fresh depends on the class of the URL, such as
        // artefact or index document.
        partition_configs.push(partition_config(mirrors, false));
    }
    if !apart.is_empty() {
        partition_configs.push(partition_config(apart, !obeys));
    }
    if !sites.is_empty() {
        partition_configs.push(partition_config(Vec::new(), obeys));
    }
    partition_configs
}

#[cfg(test)]
mod tests;
