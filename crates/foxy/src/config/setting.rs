//! One setting of the table.

use super::kind::Kind;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Section in the file; empty for the top. `store` and `site` may be given several times.
    pub section: &'static str,
    /// Its name inside the section.
    pub name: &'static str,
    /// The kind of value that it accepts.
    pub kind: Kind,
    /// The default as a user would write it (entries of a list separated by spaces), or `None` if
    /// it depends on the machine or there is none.
    pub default: Option<&'static str>,
    /// In words, what applies when there is no default text.
    pub otherwise: &'static str,
    /// One or two sentences on what it does.
    pub about: &'static str,
}

/// A setting with a default.
pub(super) const fn fixed(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting {
        default: Some(default),
        ..free(section, name, kind, "", about)
    }
}

/// A setting without a default; `otherwise` says what applies.
pub(super) const fn free(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    otherwise: &'static str,
    about: &'static str,
) -> Setting {
    Setting {
        section,
        name,
        kind,
        default: None,
        otherwise,
        about,
    }
}
