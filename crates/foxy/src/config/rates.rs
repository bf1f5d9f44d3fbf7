//! The `[[rate]]` sections: limits on requests per second, bytes per second, and requests under way.

use foxy_proxy::access_rules::Rate;
use foxy_proxy::{Limit, Per};

use super::kind::Value;
use super::problem::Problem;
use super::raw::Section;
use super::values::Values;

/// Reads all limits.
pub(super) fn read(
    sections: &[Section],
    names: &[String],
    problems: &mut Vec<Problem>,
) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        let limit = limit(section, i, problems);
        if let Some(unknown) = limit.sites.iter().find(|site| !names.contains(site)) {
            let text = format!("rate.site = \"{unknown}\": there is no such site");
            problems.push(Problem::conflict("rate.site", text));
        }
        let rates = limit.requests.is_some() || limit.bytes.is_some();
        if !rates && limit.under_way.is_none() {
            let text = format!(
                "rate `{}` limits nothing; give requests, bytes or under_way",
                limit.name
            );
            problems.push(Problem::conflict("rate", text));
        }
        limits.push(limit);
    }
    limits
}

fn limit(section: &Section, i: usize, problems: &mut Vec<Problem>) -> Limit {
    let values = Values::read("rate", Some(section), problems);
    let count = |name: &str| match values.given(name) {
        Some(Value::Count(count) | Value::Size(count)) => Some(*count as f64),
        _ => None,
    };
    let burst = count("burst");
    Limit {
        name: match values.given("name") {
            Some(Value::Text(name)) => name.clone(),
            _ => format!("rate-{}", i + 1),
        },
        per: match values.given("per") {
            Some(Value::Text(word)) if word == "user" => Per::User,
            Some(Value::Text(word)) if word == "token" => Per::Token,
            Some(Value::Text(word)) if word == "site" => Per::Site,
            _ => Per::Client,
        },
        sites: match values.given("site") {
            Some(Value::Texts(sites)) => sites.clone(),
            _ => Vec::new(),
        },
        requests: count("requests").map(|rate| Rate::new(rate, burst.unwrap_or(rate))),
        bytes: count("bytes").map(|rate| Rate::new(rate, rate)),
        under_way: count("under_way").map(|most| most as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;

    #[test]
    fn a_rate_limits_something() {
        let found = build("[[rate]]\nper = \"user\"\n").expect_err("nothing");
        assert!(found[0].contains("limits nothing"), "{found:?}");
        let found = build("[[rate]]\nsite = \"shop\"\nrequests = 1\n").expect_err("no site");
        assert!(found[0].contains("no such site"), "{found:?}");
        let config = build("[[rate]]\nbytes = \"1MiB\"\nunder_way = 3\n").unwrap();
        assert!(config.proxy.gatekeeper.is_some());
    }
}
