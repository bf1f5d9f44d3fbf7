//! `foxy mirror`: the registries that can be mirrored, and the settings of their clients.

use std::process::ExitCode;

use foxy_proxy::mirror::{Kind, Preset, preset, presets};

use super::USAGE;
use super::args::{MirrorCommand, SetupArgs};
use super::say::say_all;

/// Runs the command.
pub(super) fn run(command: &MirrorCommand) -> ExitCode {
    match command {
        MirrorCommand::List => {
            say_all!("{}", list());
            ExitCode::SUCCESS
        }
        MirrorCommand::Setup(args) => match setup(args) {
            Some(text) => {
                say_all!("{text}");
                ExitCode::SUCCESS
            }
            None => {
                let tools: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
                eprintln!(
                    "foxy: there is no tool `{}`; there are {}",
                    args.tool,
                    tools.join(", ")
                );
                ExitCode::from(USAGE)
            }
        },
    }
}

fn list() -> String {
    let mut text = String::new();
    for preset in presets() {
        text.push_str(&lines(preset));
    }
    text
}

fn lines(preset: &Preset) -> String {
    let mut text = format!("{:<8}{}\n", preset.name, preset.about);
    let mut line = |word: &str, what: &str| text.push_str(&format!("        {word:<10} {what}\n"));
    line("upstream", &preset.upstream.to_string());
    for host in &preset.hosts {
        line("host", &host.to_string());
    }
    for class in &preset.classes {
        let paths: Vec<_> = class
            .paths
            .iter()
            .map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned())
            .collect();
        let paths = paths.join(" ");
        match class.kind {
            Kind::Immutable => line("immutable", &paths),
            Kind::Index(fresh) => line("index", &format!("{paths} ({fresh}s)")),
            Kind::Pass => line("pass", &format!("{paths} {}", class.methods.join(" "))),
        }
    }
    text
}

/// A client of registries: its settings, with `BASE` for Foxy's URL, `MIRROR` for that of the mirror,
/// `PLACE` for Foxy's host and port and `HOST` for the host alone.
struct Tool {
    name: &'static str,
    preset: &'static str,
    settings: &'static str,
    undo: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "pip",
        preset: "pypi",
        settings: "pip config set global.index-url MIRROR/simple/\npip config set global.trusted-host HOST   # with http:// alone",
        undo: "pip config unset global.index-url\npip config unset global.trusted-host",
    },
    Tool {
        name: "uv",
        preset: "pypi",
        settings: "export UV_DEFAULT_INDEX=MIRROR/simple/",
        undo: "unset UV_DEFAULT_INDEX",
    },
    Tool {
        name: "poetry",
        preset: "pypi",
        settings: "poetry source add --priority=primary foxy MIRROR/simple/",
        undo: "poetry source remove foxy",
    },
    Tool {
        name: "npm",
        preset: "npm",
        settings: "npm config set registry MIRROR/",
        undo: "npm config delete registry",
    },
    Tool {
        name: "pnpm",
        preset: "npm",
        settings: "pnpm config set registry MIRROR/",
        undo: "pnpm config delete registry",
    },
    Tool {
        name: "yarn",
        preset: "npm",
        settings: "yarn config set registry MIRROR/            # yarn 1\nyarn config set npmRegistryServer MIRROR   # yarn 2 and later",
        undo: "yarn config delete registry\nyarn config unset npmRegistryServer",
    },
    Tool {
        name: "cargo",
        preset: "cargo",
        settings: "# ~/.cargo/config.toml\n[source.crates-io]\nreplace-with = \"foxy\"\n\n[source.foxy]\nregistry = \"sparse+MIRROR/\"",
        undo: "# remove these lines",
    },
    Tool {
        name: "apt",
        preset: "apt",
        settings: "# /etc/apt/sources.list.d/debian.sources, in place of the archive's host:\nURIs: MIRROR/debian",
        undo: "# put the archive's URL back, and run apt-get update",
    },
    Tool {
        name: "go",
        preset: "go",
        settings: "go env -w GOPROXY=MIRROR",
        undo: "go env -u GOPROXY",
    },
    Tool {
        name: "maven",
        preset: "maven",
        settings: "<!-- ~/.m2/settings.xml; Maven from 3.8.1 on refuses http:// unless `blocked` is false -->\n<settings>\n  <mirrors>\n    <mirror>\n      <id>foxy</id>\n      <mirrorOf>central</mirrorOf>\n      <url>MIRROR</url>\n      <blocked>false</blocked>\n    </mirror>\n  </mirrors>\n</settings>",
        undo: "<!-- remove the mirror -->",
    },
    Tool {
        name: "gradle",
        preset: "maven",
        settings: "// settings.gradle\ndependencyResolutionManagement {\n    repositories {\n        maven { url = uri(\"MIRROR\"); allowInsecureProtocol = true }\n    }\n}",
        undo: "// put mavenCentral() back",
    },
    Tool {
        name: "docker",
        preset: "oci",
        settings: "# /etc/docker/daemon.json, then `systemctl reload docker`; docker uses it for docker.io alone:\n{ \"registry-mirrors\": [\"BASE\"], \"insecure-registries\": [\"PLACE\"] }   # the second with http:// alone",
        undo: "# remove these settings, and reload docker",
    },
    Tool {
        name: "containerd",
        preset: "oci",
        settings: "# /etc/containerd/certs.d/docker.io/hosts.toml, and the same for each registry that is mirrored:\n[host.\"BASE\"]\n  capabilities = [\"pull\", \"resolve\"]",
        undo: "# remove the file",
    },
    Tool {
        name: "podman",
        preset: "oci",
        settings: "# /etc/containers/registries.conf.d/foxy.conf, and the same for each registry that is mirrored:\n[[registry]]\nlocation = \"docker.io\"\n\n[[registry.mirror]]\nlocation = \"PLACE/docker.io\"\ninsecure = true   # with http:// alone",
        undo: "# remove the file",
    },
    Tool {
        name: "skopeo",
        preset: "oci",
        settings: "# as for podman, or by name:\nskopeo copy --src-tls-verify=false docker://PLACE/docker.io/library/debian:12 dir:debian   # the option with http:// alone",
        undo: "# nothing was changed",
    },
];

/// The settings of a tool; `None` if it is not known.
fn setup(args: &SetupArgs) -> Option<String> {
    let tool = TOOLS.iter().find(|tool| tool.name == args.tool)?;
    let preset = preset(tool.preset)?;
    let url = args.url.trim_end_matches('/');
    let prefix = args.prefix.clone().unwrap_or(format!("/{}", preset.name));
    let mirror = format!("{url}/{}", prefix.trim_matches('/'));
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = match authority.rsplit_once(':') {
        Some((host, _)) if !authority.ends_with(']') => host,
        _ => authority,
    };
    let filled = |text: &str| {
        let text = text.replace("MIRROR", &mirror).replace("BASE", url);
        text.replace("PLACE", authority).replace("HOST", host)
    };
    let (settings, undo) = (filled(tool.settings), filled(tool.undo));
    Some(format!("{settings}\n\nUndo:\n{undo}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_preset_and_both_ways() {
        for tool in TOOLS {
            let args = SetupArgs {
                tool: tool.name.to_owned(),
                url: "http://[::1]:3128/".to_owned(),
                prefix: None,
            };
            let text = setup(&args).unwrap();
            // Images are not below a prefix of the mirror's own.
            let url = match tool.preset {
                "oci" => "[::1]:3128".to_owned(),
                other => format!("http://[::1]:3128/{other}"),
            };
            assert!(text.contains(&url) && text.contains("\nUndo:\n"), "{text}");
            let left = ["MIRROR", "HOST", "BASE", "PLACE"];
            assert!(!left.iter().any(|word| text.contains(word)), "{text}");
        }
        for preset in presets() {
            assert!(TOOLS.iter().any(|tool| tool.preset == preset.name));
            assert!(list().contains(&preset.upstream.to_string()));
        }
    }
}
