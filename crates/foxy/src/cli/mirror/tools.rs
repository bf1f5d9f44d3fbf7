//! The clients of registries, and the settings with which each client uses a mirror.
//!
//! In texts, `BASE` stands for Foxy's URL, `MIRROR` for the mirror's URL, `PLACE` for Foxy's host and port,
//! and `HOST` for Foxy's host. Lines that begin with [`PLAIN`] are used only if the mirror's URL begins with
//! `http://`. The text `PLAIN:` itself is left out.

/// The beginning of lines that are used only if the mirror's URL begins with `http://`.
pub(super) const PLAIN: &str = "PLAIN:";

/// A client of registries.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) preset: &'static str,
    pub(super) steps: &'static [Step],
    /// A text for the user about further steps or conditions after the settings are applied; may be empty.
    pub(super) then: &'static str,
}

/// A part of the settings of a client.
pub(super) enum Step {
    /// Three commands of the client. `settings` sets a value; its last word is the value, or `NAME=VALUE`.
    /// `undo` removes this value, and `shows` prints the current value.
    Run {
        settings: &'static str,
        undo: &'static str,
        shows: &'static str,
        applies: AppliesIf,
    },
    /// A text in a file.
    File {
        at: Place,
        sharing: FileSharing,
        text: &'static str,
    },
    /// Replaces the URL of the upstream in the files of apt's sources by the URL of the mirror.
    Sources { below: &'static str },
}

/// Condition under which a command applies.
pub(super) enum AppliesIf {
    Always,
    /// The mirror's URL begins with `http://`.
    Plain,
    /// The client's version begins with this text.
    Version(&'static str),
    /// The client's version does not begin with this text.
    NotVersion(&'static str),
    /// The client's version does not begin with this text, and the mirror's URL begins with `http://`.
    PlainNotVersion(&'static str),
}

impl AppliesIf {
    /// True if the client's version must be known before the command can be chosen.
    pub(super) const fn asks_for_version(&self) -> bool {
        !matches!(self, Self::Always | Self::Plain)
    }
}

/// The path of a file. For a file of the user, `variable` is the environment variable that names the file's
/// folder. If the variable is not set, the folder is `home`, below the user's home folder. `name` is the rest
/// of the path.
pub(super) enum Place {
    User {
        variable: &'static str,
        home: &'static str,
        name: &'static str,
    },
    System(&'static str),
}

/// The form in which a text shares its file with other settings.
pub(super) enum FileSharing {
    /// The text is a block of a TOML file. Outside of the block, the file must not have a table with the name
    /// `key`.
    Block { key: &'static str },
    /// The text is the complete file. `comment` contains the texts before and after a comment. Both are empty
    /// if the format has no comments.
    Whole { comment: [&'static str; 2] },
}

const HASH: [&str; 2] = ["#", ""];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "pip",
        preset: "pypi",
        steps: &[
            Step::Run {
                settings: "pip config set global.index-url MIRROR/simple/",
                undo: "pip config unset global.index-url",
                shows: "pip config get global.index-url",
                applies: AppliesIf::Always,
            },
            Step::Run {
                settings: "pip config set global.trusted-host HOST",
                undo: "pip config unset global.trusted-host",
                shows: "pip config get global.trusted-host",
                applies: AppliesIf::Plain,
            },
        ],
        then: "",
    },
    Tool {
        name: "uv",
        preset: "pypi",
        steps: &[Step::File {
            at: Place::User {
                variable: "XDG_CONFIG_HOME",
                home: ".config",
                name: "uv/uv.toml",
            },
            sharing: FileSharing::Block { key: "index" },
            text: "[[index]]\nurl = \"MIRROR/simple/\"\ndefault = true\n",
        }],
        then: "For one shell: export UV_DEFAULT_INDEX=MIRROR/simple/",
    },
    Tool {
        name: "poetry",
        preset: "pypi",
        // A source in `pyproject.toml` would belong to the project, and its URLs would appear in the lock
        // file.
        steps: &[Step::File {
            at: Place::User {
                variable: "XDG_CONFIG_HOME",
                home: ".config",
                name: "pypoetry/config.toml",
            },
            sharing: FileSharing::Block { key: "plugins" },
            text: "[plugins.pypi_mirror]\nurl = \"MIRROR/simple/\"\n",
        }],
        then: "Poetry reads this with a plugin: poetry self add poetry-plugin-pypi-mirror",
    },
    Tool {
        name: "npm",
        preset: "npm",
        steps: &[Step::Run {
            settings: "npm config set registry MIRROR/",
            undo: "npm config delete registry",
            shows: "npm config get registry",
            applies: AppliesIf::Always,
        }],
        then: "",
    },
    Tool {
        name: "pnpm",
        preset: "npm",
        steps: &[Step::Run {
            settings: "pnpm config set registry MIRROR/",
            undo: "pnpm config delete registry",
            shows: "pnpm config get registry",
            applies: AppliesIf::Always,
        }],
        then: "",
    },
    Tool {
        name: "yarn",
        preset: "npm",
        steps: &[
            Step::Run {
                settings: "yarn config set registry MIRROR/",
                undo: "yarn config delete registry",
                shows: "yarn config get registry",
                applies: AppliesIf::Version("1."),
            },
            Step::Run {
                settings: "yarn config set --home npmRegistryServer MIRROR",
                undo: "yarn config unset --home npmRegistryServer",
                shows: "yarn config get npmRegistryServer",
                applies: AppliesIf::NotVersion("1."),
            },
            Step::Run {
                settings: "yarn config set --home --json unsafeHttpWhitelist [\"HOST\"]",
                undo: "yarn config unset --home unsafeHttpWhitelist",
                shows: "yarn config get --json unsafeHttpWhitelist",
                applies: AppliesIf::PlainNotVersion("1."),
            },
        ],
        then: "",
    },
    Tool {
        name: "cargo",
        preset: "cargo",
        steps: &[Step::File {
            at: Place::User {
                variable: "CARGO_HOME",
                home: ".cargo",
                name: "config.toml",
            },
            sharing: FileSharing::Block { key: "source" },
            text: "[source.crates-io]\nreplace-with = \"foxy\"\n\n[source.foxy]\nregistry = \"sparse+MIRROR/\"\n",
        }],
        then: "",
    },
    Tool {
        name: "apt",
        preset: "apt",
        steps: &[Step::Sources { below: "/etc/apt" }],
        then: "Then: apt-get update",
    },
    Tool {
        name: "go",
        preset: "go",
        steps: &[Step::Run {
            settings: "go env -w GOPROXY=MIRROR",
            undo: "go env -u GOPROXY",
            shows: "go env GOPROXY",
            applies: AppliesIf::Always,
        }],
        then: "",
    },
    Tool {
        name: "maven",
        preset: "maven",
        steps: &[Step::File {
            at: Place::User {
                variable: "",
                home: ".m2",
                name: "settings.xml",
            },
            sharing: FileSharing::Whole {
                comment: ["<!--", " -->"],
            },
            // Maven 3.8.1 and later refuse http:// unless `blocked` is false.
            text: "<settings>\n  <mirrors>\n    <mirror>\n      <id>foxy</id>\n      <mirrorOf>central</mirrorOf>\n      \
                   <url>MIRROR</url>\nPLAIN:      <blocked>false</blocked>\n    </mirror>\n  </mirrors>\n</settings>\n",
        }],
        then: "",
    },
    Tool {
        name: "gradle",
        preset: "maven",
        steps: &[Step::File {
            at: Place::User {
                variable: "GRADLE_USER_HOME",
                home: ".gradle",
                name: "init.d/foxy.gradle",
            },
            sharing: FileSharing::Whole {
                comment: ["//", ""],
            },
            text: GRADLE,
        }],
        then: "",
    },
    Tool {
        name: "docker",
        preset: "oci",
        steps: &[Step::File {
            at: Place::System("/etc/docker/daemon.json"),
            sharing: FileSharing::Whole { comment: ["", ""] },
            text: "{\nPLAIN:  \"insecure-registries\": [\"PLACE\"],\n  \"registry-mirrors\": [\"BASE\"]\n}\n",
        }],
        then: "Then: systemctl reload docker. Docker uses mirrors for docker.io alone.",
    },
    Tool {
        name: "containerd",
        preset: "oci",
        steps: &[Step::File {
            at: Place::System("/etc/containerd/certs.d/docker.io/hosts.toml"),
            sharing: FileSharing::Whole { comment: HASH },
            text: "[host.\"BASE\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
        }],
        then: "containerd reads it if `config_path` in its configuration is /etc/containerd/certs.d. Other registries that \
               are mirrored have a folder beside docker.io, with the same file.",
    },
    Tool {
        name: "podman",
        preset: "oci",
        steps: PODMAN,
        then: PODMAN_THEN,
    },
    Tool {
        name: "skopeo",
        preset: "oci",
        steps: PODMAN,
        then: PODMAN_THEN,
    },
];

/// Podman, Buildah and skopeo read the same files.
const PODMAN: &[Step] = &[Step::File {
    at: Place::System("/etc/containers/registries.conf.d/foxy.conf"),
    sharing: FileSharing::Whole { comment: HASH },
    text: "[[registry]]\nlocation = \"docker.io\"\n\n[[registry.mirror]]\nlocation = \"PLACE/docker.io\"\nPLAIN:insecure = true\n",
}];

const PODMAN_THEN: &str = "Other registries that are mirrored have two such tables with their name in place of docker.io.";

/// Gradle asks the mirror wherever a build names Maven Central.
const GRADLE: &str = r#"def foxy = { repositories ->
    repositories.all { repository ->
        if (repository instanceof MavenArtifactRepository && repository.url.toString() =~ '^https://repo(1)?[.]maven') {
            repository.url = uri('MIRROR')
PLAIN:            if (repository.metaClass.respondsTo(repository, 'setAllowInsecureProtocol', boolean)) repository.allowInsecureProtocol = true
        }
    }
}
settingsEvaluated { settings ->
    foxy(settings.pluginManagement.repositories)
    if (settings.metaClass.hasProperty(settings, 'dependencyResolutionManagement')) foxy(settings.dependencyResolutionManagement.repositories)
}
allprojects {
    foxy(buildscript.repositories)
    foxy(repositories)
}
"#;
