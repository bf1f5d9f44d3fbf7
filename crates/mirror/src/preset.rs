//! The presets: descriptions of known registries.

use std::sync::OnceLock;

use foxy_base::Pattern;
use serde::Deserialize;

use crate::{Class, Kind, Listing, Transform, Upstream};

const TEXT: &str = include_str!("presets.toml");

/// A known registry of which a mirror can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name of the preset. The default prefix is `/` and this name.
    pub name: String,
    /// Explanation for operators.
    pub about: String,
    /// The server of the registry.
    pub upstream: Upstream,
    /// Other servers of the registry.
    pub hosts: Vec<Upstream>,
    /// Classes of the registry's URLs.
    pub classes: Vec<Class>,
    /// True for a registry of container images.
    pub images: bool,
}

impl Preset {
    /// Returns the way in which the registry's documents and paths name versions, if they do.
    #[must_use]
    pub fn listing(&self) -> Option<Listing> {
        self.classes.iter().find_map(|class| class.listing)
    }
}

/// Returns all presets.
#[must_use]
pub fn presets() -> &'static [Preset] {
    static PRESETS: OnceLock<Vec<Preset>> = OnceLock::new();
    // The text is part of the program, and a test ensures that it can be read.
    PRESETS.get_or_init(|| read(TEXT).unwrap_or_default())
}

/// Returns the preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    about: String,
    upstream: String,
    #[serde(default)]
    hosts: Vec<String>,
    class: Vec<WrittenClass>,
    #[serde(default)]
    images: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    kind: String,
    paths: Vec<String>,
    #[serde(default)]
    methods: Vec<String>,
    fresh: Option<u32>,
    #[serde(default)]
    named: bool,
    rewrite: Option<String>,
    #[serde(default)]
    accept: Vec<(String, String)>,
    versions: Option<String>,
}

fn read(text: &str) -> Result<Vec<Preset>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.preset.into_iter().map(Written::read).collect()
}

impl Written {
    fn read(self) -> Result<Preset, String> {
        let classes = self.class.into_iter().map(WrittenClass::read);
        let hosts = self.hosts.iter().map(|host| host.parse());
        Ok(Preset {
            upstream: self.upstream.parse()?,
            hosts: hosts.collect::<Result<_, _>>()?,
            classes: classes.collect::<Result<_, _>>()?,
            name: self.name,
            about: self.about,
            images: self.images,
        })
    }
}

impl WrittenClass {
    fn read(self) -> Result<Class, String> {
        let kind = match (&self.kind[..], self.fresh) {
            ("immutable", None) => Kind::Immutable,
            ("index", Some(fresh)) => Kind::Index(fresh),
            ("pass", None) => Kind::Pass,
            _ => {
                return Err(format!(
                    "{}: another kind, or a lifetime too few or too many",
                    self.kind
                ));
            }
        };
        let (rewrite, versions) = (self.rewrite.as_deref(), self.versions.as_deref());
        Ok(Class {
            kind,
            named: self.named || kind == Kind::Immutable,
            paths: self.paths.iter().map(|path| Pattern::new(path)).collect(),
            methods: self.methods,
            rewrite: rewrite
                .map(|name| Transform::of(name).ok_or(format!("{name} is no transformer")))
                .transpose()?,
            accept: self.accept,
            listing: versions
                .map(|name| Listing::of(name).ok_or(format!("{name} lists no versions")))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_can_be_read() {
        let read = read(TEXT).unwrap();
        let names: Vec<_> = read.iter().map(|preset| &preset.name[..]).collect();
        assert_eq!(names, ["pypi", "npm", "cargo", "apt", "go", "maven", "oci"]);
        assert_eq!(presets(), read);
        for preset in &read {
            assert_eq!(
                preset.upstream.to_string().trim_end_matches('/'),
                preset.upstream.to_string()
            );
            assert!(
                preset
                    .classes
                    .iter()
                    .any(|class| class.kind == Kind::Immutable)
            );
        }
    }
}
