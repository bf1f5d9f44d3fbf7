//! The simple index of Python packages in JSON. Blocked files are removed. Young files are marked as yanked
//! (PEP 592), so that clients use them only if a version is pinned.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::edits::{Body, Edits};
use super::json::{Member, elements, members, only, quoted, range_of, string};
use super::{Form, Screening, UNREADABLE, Unreadable, Verdict, html, paths, time};

/// Media type of the HTML form, for clients that do not accept JSON.
const HTML_TYPE: &str = "text/html; charset=utf-8";

/// Reasons for which a file is yanked. The screened document contains these texts.
pub(super) const YOUNG: &str = "younger than mirror.min_age allows";
pub(super) const UNDATED: &str = "of unknown age (mirror.unknown_age)";

/// A file of the index. Of its members, only `yanked` is kept. The other members are read again when the file
/// is written, because keeping all members of all files would need several times as much memory as the text.
struct File<'a> {
    value: &'a RawValue,
    yanked: Option<&'a RawValue>,
    verdict: Verdict,
}

impl File<'_> {
    /// Returns the reason to mark the file as yanked. Returns `None` if the file is already marked or if
    /// there is no reason.
    fn yanked_here(&self) -> Option<&'static str> {
        let reason = match self.verdict {
            Verdict::Shown | Verdict::Blocked => return None,
            Verdict::Young(_) => YOUNG,
            Verdict::Undated => UNDATED,
        };
        let own = self.yanked.map(RawValue::get);
        matches!(own, None | Some("false" | "null")).then_some(reason)
    }
}

fn text_of<'a>(all: &[Member<'a>], name: &str) -> Result<Option<Cow<'a, str>>, Unreadable> {
    Ok(only(all, name)?.and_then(string))
}

pub(super) fn screen(
    screening: &mut Screening<'_>,
    text: String,
    form: Form,
) -> Result<(Body, Option<&'static str>), Unreadable> {
    let top = members(&text)?;
    let Some(list) = only(&top, "files")? else {
        // The document is the list of all projects, or another kind of answer. It names no files, so it stays
        // unchanged.
        drop(top);
        return Ok((Body::whole(text), None));
    };
    let name = only(&top, "name")?.and_then(string);
    let name = name.ok_or(UNREADABLE)?.into_owned();
    let files = elements(list.get())?.into_iter();
    let files: Vec<_> = files
        .map(|value| file(screening, &name, value))
        .collect::<Result<_, _>>()?;
    if form == Form::Html {
        return Ok((Body::whole(rendered(&name, &files)?), Some(HTML_TYPE)));
    }
    let edits = edits(screening, &text, (&name, &top), list, &files)?;
    drop((files, top));
    Ok((Body::new(text, edits), None))
}

fn file<'a>(
    screening: &mut Screening<'_>,
    package: &str,
    value: &'a RawValue,
) -> Result<File<'a>, Unreadable> {
    let all = members(value.get())?;
    let name = text_of(&all, "filename")?.ok_or(UNREADABLE)?;
    let published = text_of(&all, "upload-time")?;
    let published = published.and_then(|text| time(&text));
    let version = paths::version_of_file(package, &name);
    let verdict = screening.judge(package, &version, published);
    Ok(File {
        value,
        yanked: only(&all, "yanked")?,
        verdict,
    })
}

/// Returns the edits, which are the parts that are removed or replaced.
fn edits(
    screening: &Screening<'_>,
    text: &str,
    (name, top): (&str, &[Member<'_>]),
    list: &RawValue,
    files: &[File<'_>],
) -> Result<Edits, Unreadable> {
    let mut edits = Edits::default();
    let stays = |file: &File<'_>| {
        let end = range_of(text, file.value).end;
        (end, file.verdict != Verdict::Blocked)
    };
    edits.keep(
        text,
        range_of(text, list).start + 1,
        files.iter().map(stays),
    );
    for file in files {
        let Some(reason) = file.yanked_here() else {
            continue;
        };
        match file.yanked {
            Some(value) => edits.replace(range_of(text, value), quoted(reason)),
            None => {
                let start = range_of(text, file.value).start + 1;
                edits.replace(start..start, format!("\"yanked\":{},", quoted(reason)));
            }
        }
    }
    // Blocked versions are also removed from the list of versions (PEP 700).
    if let Some(versions) = only(top, "versions")? {
        let all = elements(versions.get())?;
        let rules = screening.rules.of(name);
        let shown = |value: &&RawValue| {
            let version = string(value).unwrap_or_default();
            let blocked = rules.blocking(name, Some(&version)).is_some();
            (range_of(text, value).end, !blocked)
        };
        let start = range_of(text, versions).start + 1;
        edits.keep(text, start, all.iter().map(shown));
    }
    Ok(edits)
}

/// Returns the index as HTML (PEP 503), for clients that do not accept JSON.
fn rendered(name: &str, files: &[File<'_>]) -> Result<String, Unreadable> {
    let title = html::escaped(name);
    let mut out = format!(
        "<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" content=\"1.0\">\
         <title>Links for {title}</title></head><body>\n"
    );
    for file in files.iter().filter(|file| file.verdict != Verdict::Blocked) {
        let all = members(file.value.get())?;
        let url = text_of(&all, "url")?.ok_or(UNREADABLE)?;
        let hashes = only(&all, "hashes")?;
        let hashes = hashes.map(|hashes| members(hashes.get())).transpose()?;
        let digest = |wanted: &str| {
            let (name, value) = hashes.iter().flatten().find(|(name, _)| name == wanted)?;
            Some(format!("#{name}={}", string(value)?))
        };
        let digest = digest("sha256").unwrap_or_default();
        out.push_str(&format!(
            "<a href=\"{}\"",
            html::escaped(&(url + &digest[..]))
        ));
        for (attribute, value) in attributes(file, &all)? {
            out.push_str(&format!(" {attribute}=\"{}\"", html::escaped(&value)));
        }
        let name = text_of(&all, "filename")?.unwrap_or_default();
        out.push_str(&format!(">{}</a><br>\n", html::escaped(&name)));
    }
    out.push_str("</body></html>\n");
    Ok(out)
}

/// Returns the attributes of a link, and the text of their values.
fn attributes(
    file: &File<'_>,
    all: &[Member<'_>],
) -> Result<Vec<(&'static str, String)>, Unreadable> {
    let mut own = Vec::new();
    if let Some(python) = text_of(all, "requires-python")? {
        own.push(("data-requires-python", python.into_owned()));
    }
    // PEP 658 and PEP 714 use two names for the same attribute.
    for (key, attribute) in [
        ("core-metadata", "data-core-metadata"),
        ("dist-info-metadata", "data-dist-info-metadata"),
    ] {
        match only(all, key)? {
            Some(value) if value.get() == "true" => own.push((attribute, "true".to_owned())),
            Some(value) if value.get().starts_with('{') => {
                let digests = members(value.get())?;
                let first = digests.first();
                let text =
                    first.and_then(|(name, value)| Some(format!("{name}={}", string(value)?)));
                own.push((attribute, text.unwrap_or_else(|| "true".to_owned())));
            }
            _ => {}
        }
    }
    if let Some(value) = only(all, "gpg-sig")?.filter(|v| v.get() != "null") {
        own.push(("data-gpg-sig", value.get().to_owned()));
    }
    if let Some(reason) = file.yanked_here() {
        own.push(("data-yanked", reason.to_owned()));
    } else if let Some(value) = file.yanked
        && !matches!(value.get(), "false" | "null")
    {
        own.push((
            "data-yanked",
            string(value).unwrap_or_default().into_owned(),
        ));
    }
    Ok(own)
}
