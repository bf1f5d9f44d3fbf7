//! One setting of the table.

use std::borrow::Cow;

use foxy_base::ByteSize;
use foxy_base::settings::{Plain, Range, Row};

use super::kind::{Kind, seconds};

/// One setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Section in the file; empty for the top level. Some sections may be given several times.
    pub section: &'static str,
    /// The name of the setting inside the section.
    pub name: &'static str,
    /// The kind of value that the setting accepts.
    pub kind: Kind,
    /// The default in the form that a user would write, with the entries of a list separated by spaces.
    /// `None` if there is no default, or if it depends on the machine.
    pub default: Option<Cow<'static, str>>,
    /// A description of the value that applies if `default` is `None`.
    pub otherwise: &'static str,
    /// A short explanation of the setting.
    pub about: &'static str,
}

impl Setting {
    /// Returns a setting that is declared beside its field.
    pub(super) fn of(section: &'static str, row: &'static Row) -> Self {
        let kind = match row.range {
            Range::Bytes(min, max) => Kind::Size(min, max),
            Range::Count(min, max) => Kind::Count(min, max),
            Range::Time(min, max) => Kind::Duration(min, max),
            Range::TimeOrOff(min, max) => Kind::DurationOrOff(min, max),
            Range::Flag => Kind::Flag,
        };
        let default = match (row.default, row.range) {
            (Plain::Number(bytes), Range::Bytes(..)) => ByteSize(bytes).to_string(),
            (Plain::Number(number), _) => number.to_string(),
            (Plain::Time(Some(time)), _) => seconds(time.as_secs()),
            (Plain::Time(None), _) => "off".to_owned(),
            (Plain::Flag(flag), _) => flag.to_string(),
        };
        Self {
            section,
            name: row.name,
            kind,
            default: Some(Cow::Owned(default)),
            otherwise: "",
            about: row.about,
        }
    }
}

/// Returns a setting with a default.
pub(super) const fn fixed(
    section: &'static str,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting {
        section,
        name,
        kind,
        default: Some(Cow::Borrowed(default)),
        otherwise: "",
        about,
    }
}

/// Returns a setting without a default. `otherwise` describes the value that applies instead.
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
