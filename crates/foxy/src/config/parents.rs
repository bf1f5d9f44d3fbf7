//! The `[[parent]]` sections, and the parents in environment variables. A parent is another proxy, to which
//! the forward proxy sends requests in place of their origins.

use std::fmt::Display;

use foxy_proxy::access_rules::{HostPattern, Scheme};
use foxy_proxy::{ParentBalance, ParentGroup, ParentServer};
use foxy_tls::OriginTls;

use super::kind::Value;
use super::origin::OriginUrl;
use super::problem::Problem;
use super::raw::{RawConfig, Section};
use super::values::Values;

/// Reads all groups of parents.
pub(super) fn read(raw: &RawConfig, problems: &mut Vec<Problem>) -> Vec<ParentGroup> {
    let sections = raw.repeated.get("parent").map_or(&[][..], Vec::as_slice);
    let mut groups = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        groups.push(group(section, i, problems));
    }
    let access = raw.single.get("access");
    let mut quiet = Vec::new();
    if Values::read("access", access, &mut quiet).flag("parent_from_environment") {
        let variable = |name: &str| {
            let upper = name.to_ascii_uppercase();
            // HTTP_PROXY in capitals is not read. If a web server starts the program for CGI, the field
            // `Proxy` of a request sets this variable.
            let upper = (name != "http_proxy").then(|| std::env::var(upper).ok());
            std::env::var(name)
                .ok()
                .or(upper.flatten())
                .filter(|text| !text.is_empty())
        };
        match environment(&variable) {
            Ok(more) => groups.extend(more),
            Err(text) => problems.push(Problem::conflict("access.parent_from_environment", text)),
        }
    }
    groups
}

fn server(url: &OriginUrl, login: Option<String>) -> ParentServer {
    ParentServer {
        host: url.host.clone(),
        port: url.port,
        tls: url.secure.then(OriginTls::system),
        login,
    }
}

fn group(section: &Section, i: usize, problems: &mut Vec<Problem>) -> ParentGroup {
    let mut values = Values::read("parent", Some(section), problems);
    let text = |values: &Values<'_>, name: &str| match values.given(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let name = text(&values, "name").unwrap_or_else(|| format!("parent-{}", i + 1));
    let login = text(&values, "login");
    let urls = values.origins("url");
    if urls.is_empty() {
        let text = format!("parent `{name}` has no url");
        values.problem(Problem::conflict("parent.url", text));
    }
    if login.as_ref().is_some_and(|login| !login.contains(':')) {
        let text = format!("parent `{name}`: login is not USER:PASSWORD");
        values.problem(Problem::conflict("parent.login", text));
    }
    if urls
        .iter()
        .any(|url| url.weight != 1 || url.connections.is_some())
    {
        let text = format!("parent `{name}`: weight and connections are for origins of sites");
        values.problem(Problem::conflict("parent.url", text));
    }
    ParentGroup {
        servers: urls
            .iter()
            .map(|url| server(&url.url, login.clone()))
            .collect(),
        balance: match text(&values, "balance").as_deref() {
            Some("hash") => ParentBalance::Hash,
            Some("failover") => ParentBalance::Failover,
            _ => ParentBalance::RoundRobin,
        },
        always: text(&values, "for").as_deref() != Some("rules"),
        schemes: Vec::new(),
        except: match values.given("no_proxy") {
            Some(Value::Texts(hosts)) => hosts.iter().map(|host| HostPattern::new(host)).collect(),
            _ => Vec::new(),
        },
        name,
    }
}

/// Returns the parents that the environment variables `http_proxy` and `https_proxy` name. The hosts in
/// `no_proxy` are contacted without these parents. `variable` returns the value of a variable.
fn environment(variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ParentGroup>, String> {
    let spared = variable("no_proxy").unwrap_or_default();
    let entries = spared.split([',', ' ']).map(str::trim);
    let entries: Vec<&str> = entries.filter(|entry| !entry.is_empty()).collect();
    let except: Vec<HostPattern> = entries
        .iter()
        .map(
            |entry| match entry.strip_prefix("*.").or(entry.strip_prefix('.')) {
                // In most programs, a name in `no_proxy` also stands for its subdomains.
                Some(name) => HostPattern::new(&format!(".{name}")),
                None if *entry == "*" || entry.starts_with(|c: char| c.is_ascii_digit()) => {
                    HostPattern::new(entry)
                }
                None => HostPattern::new(&format!(".{entry}")),
            },
        )
        .collect();
    let mut groups = Vec::new();
    for (name, schemes) in [
        ("http_proxy", vec![Scheme::Http]),
        ("https_proxy", vec![Scheme::Https, Scheme::Connect]),
    ] {
        let Some(text) = variable(name) else { continue };
        // The variable may contain a password, so messages do not repeat its value.
        let wrong = |what: &dyn Display| format!("{name} of the environment: {what}");
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", &text));
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login.to_owned()), place),
            None => (None, rest),
        };
        let url: OriginUrl = format!("{scheme}://{place}")
            .parse()
            .map_err(|e: String| wrong(&e))?;
        if login.as_ref().is_some_and(|login| login.contains('%')) {
            return Err(wrong(&"escapes in the login are not read; use [[parent]]"));
        }
        groups.push(ParentGroup {
            name: name.to_owned(),
            servers: vec![server(&url, login)],
            balance: ParentBalance::Failover,
            always: true,
            schemes,
            except: except.clone(),
        });
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::super::tests::build;
    use super::*;

    #[test]
    fn the_environment_names_parents() {
        let set = |list: &'static [(&'static str, &'static str)]| {
            let variable = |name: &str| {
                let found = list.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            environment(&variable)
        };
        let groups = set(&[
            ("http_proxy", "http://u:p@proxy.test:3128/"),
            ("no_proxy", "localhost,.corp.test, *.lan.test,10.0.0.1"),
        ])
        .unwrap();
        assert_eq!((groups.len(), groups[0].servers[0].port), (1, 3128));
        assert_eq!(groups[0].servers[0].login.as_deref(), Some("u:p"));
        let spares = |host: &str| groups[0].except.iter().any(|e| e.fits(host.as_bytes()));
        for (host, spared) in [
            ("localhost", true),
            ("a.corp.test", true),
            ("corp.test", true),
            ("x.lan.test", true),
            ("10.0.0.1", true),
            ("notcorp.test", false),
        ] {
            assert_eq!(spares(host), spared, "{host}");
        }
        let wrong = set(&[("https_proxy", "ftp://u:secret@x")]).unwrap_err();
        assert!(!wrong.contains("secret"), "{wrong}");
    }

    #[test]
    fn groups_of_the_file() {
        let config = build("[[parent]]\nurl = \"http://a:3128\"\nlogin = \"u:p\"\n").unwrap();
        let shown = config.proxy.gatekeeper.unwrap().settings();
        assert!(
            shown.contains("a:3128") && !shown.contains("u:p"),
            "{shown}"
        );
        assert!(build("[[parent]]\n").is_err());
        let found = build("[[access_rule]]\naction = \"parent\"\nparent = \"x\"\n");
        assert!(found.expect_err("none")[0].contains("no such [[parent]]"));
    }
}
