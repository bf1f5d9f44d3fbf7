//! Packuments, which are npm's documents about one package. Hidden versions are removed, and tags that point
//! to hidden versions get other versions.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use semver::Version;
use serde_json::value::RawValue;

use super::edits::{Body, Edits};
use super::json::{Member, members, only, quoted, range_of, string};
use super::{BLOCKED, Form, OF_A_TAG, Screening, UNREADABLE, Unreadable, Verdict, paths, time};

/// Media type of the abbreviated form.
const SHORT_TYPE: &str = "application/vnd.npm.install-v1+json";

/// The fields of a version in the abbreviated form, according to the documentation of npm's registry.
const SHORT_FIELDS: &[&str] = &[
    "name",
    "version",
    "deprecated",
    "dependencies",
    "optionalDependencies",
    "devDependencies",
    "bundleDependencies",
    "bundledDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "acceptDependencies",
    "bin",
    "directories",
    "dist",
    "engines",
    "cpu",
    "os",
    "libc",
    "funding",
    "_hasShrinkwrap",
    "hasInstallScript",
];

/// The parts of a packument that the rules need.
struct Packument<'a> {
    name: Cow<'a, str>,
    tags: Option<&'a RawValue>,
    versions: &'a RawValue,
    time: Option<&'a RawValue>,
    modified: Option<Cow<'a, str>>,
}

pub(super) fn screen(
    screening: &mut Screening<'_>,
    text: String,
    form: Form,
    path: &[u8],
) -> Result<(Body, Option<&'static str>), Unreadable> {
    let top = members(&text)?;
    let text_of = |name: &str| Ok(only(&top, name)?.and_then(string));
    let (name, versions) = (text_of("name")?, only(&top, "versions")?);
    let Some(versions) = versions else {
        manifest(screening, &top, name.as_deref(), path)?;
        drop(top);
        return Ok((Body::whole(text), None));
    };
    let time = only(&top, "time")?;
    let dates = time.map(|time| members(time.get())).transpose()?;
    let dates = dates.unwrap_or_default();
    let modified = text_of("modified")?;
    let packument = Packument {
        name: name.ok_or(UNREADABLE)?,
        tags: only(&top, "dist-tags")?,
        versions,
        time,
        modified: modified.or(only(&dates, "modified")?.and_then(string)),
    };
    let all = members(versions.get())?;
    let kept = Kept::judge(screening, &packument.name, &all, &dates);
    let shortens = form == Form::Short && screening.rules.min_age.is_some();
    if shortens {
        let short = short(&packument, &all, &kept)?;
        return Ok((Body::whole(short), Some(SHORT_TYPE)));
    }
    let edits = edits(&text, &packument, &all, &kept)?;
    drop((top, all, dates));
    Ok((Body::new(text, edits), None))
}

/// Checks a document of one version. A path may name the version by a tag (such as `latest`). If rules
/// concern the package, the document of a tag is refused, because it may contain a hidden version.
fn manifest(
    screening: &Screening<'_>,
    top: &[Member<'_>],
    name: Option<&str>,
    path: &[u8],
) -> Result<(), Unreadable> {
    if only(top, "dist")?.is_none() {
        return Ok(());
    }
    let version = only(top, "version")?.and_then(string);
    let (Some(name), Some(version)) = (name, version) else {
        return Err(UNREADABLE);
    };
    if screening.rules.blocking(name, Some(&version)).is_some() {
        return Err(BLOCKED);
    }
    match paths::last(path).as_deref() == Some(&*version) || !screening.rules.concerns(name) {
        true => Ok(()),
        false => Err(OF_A_TAG),
    }
}

/// The result of judging all versions of a package.
struct Kept {
    hidden: HashSet<String>,
    /// Versions that are shown and can be parsed, the newest last.
    shown: Vec<Version>,
}

impl Kept {
    fn judge(
        screening: &mut Screening<'_>,
        name: &str,
        all: &[Member<'_>],
        dates: &[Member<'_>],
    ) -> Self {
        let dates: HashMap<&str, &RawValue> =
            dates.iter().map(|(name, date)| (&**name, *date)).collect();
        let (mut hidden, mut shown) = (HashSet::new(), Vec::new());
        for (version, _) in all {
            let date = dates.get(&**version).and_then(|date| string(date));
            let date = date.and_then(|date| time(&date));
            match screening.judge(name, version, date) {
                Verdict::Shown => shown.extend(Version::parse(version).ok()),
                _ => {
                    hidden.insert(version.to_string());
                }
            }
        }
        shown.sort_unstable();
        Self { hidden, shown }
    }

    fn has(&self, version: &str) -> bool {
        !self.hidden.contains(version)
    }

    /// Returns the version that a tag gets in place of a hidden version. This is the newest shown release
    /// that is not newer than the hidden version. If there is no such release, the tag gets the newest shown
    /// release. If no release is shown, the tag gets the newest shown version.
    fn instead(&self, hidden: &str) -> Option<&Version> {
        let hidden = Version::parse(hidden).ok();
        let newest = |fits: &dyn Fn(&Version) -> bool| self.shown.iter().rev().find(|v| fits(v));
        let is_release = |version: &Version| version.pre.is_empty();
        newest(&|v| is_release(v) && hidden.as_ref().is_none_or(|hidden| v <= hidden))
            .or_else(|| newest(&is_release))
            .or_else(|| newest(&|_| true))
    }

    /// Returns the version that a tag gets. `Some(None)` means that the tag stays. `None` means that no
    /// version is left for the tag.
    fn tagged(&self, version: &str) -> Option<Option<String>> {
        if self.has(version) {
            return Some(None);
        }
        self.instead(version).map(|other| Some(other.to_string()))
    }
}

/// Returns the edits of the full form, or of an abbreviated form that the upstream sent.
fn edits(
    text: &str,
    packument: &Packument<'_>,
    all: &[Member<'_>],
    kept: &Kept,
) -> Result<Edits, Unreadable> {
    let mut edits = Edits::default();
    if kept.hidden.is_empty() {
        return Ok(edits);
    }
    let stays = |(name, value): &Member<'_>| (range_of(text, value).end, kept.has(name));
    let start = |object: &RawValue| range_of(text, object).start + 1;
    edits.keep(text, start(packument.versions), all.iter().map(stays));
    if let Some(time) = packument.time {
        let dates = members(time.get())?;
        edits.keep(text, start(time), dates.iter().map(stays));
    }
    let Some(tags) = packument.tags else {
        return Ok(edits);
    };
    let all = members(tags.get())?;
    let mut ends = Vec::with_capacity(all.len());
    for (_, value) in &all {
        let range = range_of(text, value);
        let version = string(value).ok_or(UNREADABLE)?;
        let tagged = kept.tagged(&version);
        ends.push((range.end, tagged.is_some()));
        if let Some(Some(other)) = tagged {
            edits.replace(range, quoted(&other));
        }
    }
    edits.keep(text, start(tags), ends.into_iter());
    Ok(edits)
}

/// Makes the abbreviated form from the full form, because the registry's abbreviated form has no dates.
fn short(packument: &Packument<'_>, all: &[Member<'_>], kept: &Kept) -> Result<String, Unreadable> {
    let mut out = format!("{{\"name\":{}", quoted(&packument.name));
    if let Some(modified) = &packument.modified {
        out.push_str(&format!(",\"modified\":{}", quoted(modified)));
    }
    out.push_str(",\"dist-tags\":");
    let tags = packument.tags.map(|tags| members(tags.get())).transpose()?;
    let mut own = Vec::new();
    for (tag, value) in tags.unwrap_or_default() {
        let version = string(value).ok_or(UNREADABLE)?;
        if let Some(other) = kept.tagged(&version) {
            let version = other.map_or(version, Cow::Owned);
            own.push(format!("{}:{}", quoted(&tag), quoted(&version)));
        }
    }
    out.push_str(&format!("{{{}}},\"versions\":{{", own.join(",")));
    let mut shown = all.iter().filter(|(version, _)| kept.has(version));
    if let Some((version, value)) = shown.next() {
        short_version(version, value, &mut out)?;
    }
    for (version, value) in shown {
        out.push(',');
        short_version(version, value, &mut out)?;
    }
    out.push_str("}}");
    Ok(out)
}

fn short_version(version: &str, value: &RawValue, out: &mut String) -> Result<(), Unreadable> {
    let all = members(value.get())?;
    let fields = all
        .iter()
        .filter(|(name, _)| SHORT_FIELDS.contains(&&**name));
    let mut fields: Vec<String> = fields
        .map(|(name, value)| format!("{}:{}", quoted(name), value.get()))
        .collect();
    if only(&all, "hasInstallScript")?.is_none() && runs_scripts(&all)? {
        fields.push("\"hasInstallScript\":true".to_owned());
    }
    out.push_str(&format!("{}:{{{}}}", quoted(version), fields.join(",")));
    Ok(())
}

/// Returns true if a version runs a script when it is installed.
fn runs_scripts(all: &[Member<'_>]) -> Result<bool, Unreadable> {
    let Some(scripts) = only(all, "scripts")? else {
        return Ok(false);
    };
    // In some old versions, the value of `scripts` is not an object.
    let scripts = members(scripts.get()).unwrap_or_default();
    let runs = |name: &str| matches!(name, "preinstall" | "install" | "postinstall");
    Ok(scripts.iter().any(|(name, _)| runs(name)))
}
