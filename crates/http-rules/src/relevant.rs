//! The few fields of a response that matter to decisions. They are selected in one pass, so that later
//! searches for a field do not read the complete head again.

use foxy_base::{Fields, eq_name, rule};

use crate::config::Config;

/// Largest number of fields that are selected. If more fields matter, decisions read all fields.
const MAX: usize = 24;

/// A view of the fields that matter to caching. A few other fields may be among them.
#[derive(Debug)]
pub(crate) struct Relevant<'a, F: ?Sized> {
    fields: &'a F,
    picked: [(&'a [u8], &'a [u8]); MAX],
    count: usize,
    /// True if there are too many fields to select, so that all fields are read.
    all: bool,
}

impl<'a, F: Fields + ?Sized> Relevant<'a, F> {
    pub(crate) fn of(fields: &'a F, config: &Config) -> Self {
        let mut view = Self {
            fields,
            picked: [(&[], &[]); MAX],
            count: 0,
            all: false,
        };
        for i in 0..fields.count() {
            let (name, value) = fields.field(i);
            if !matters(name, config) {
                continue;
            }
            let Some(place) = view.picked.get_mut(view.count) else {
                view.all = rule!(
                    "storing: all fields of a long head are looked at",
                    true,
                    false
                );
                break;
            };
            *place = (name, value);
            view.count += 1;
        }
        view
    }
}

/// True if decisions may read this field. Only length and first letter are compared, which is faster than a
/// comparison of the name. A field that is selected needlessly does no harm. A relevant field that is not
/// selected would be an error.
fn matters(name: &[u8], config: &Config) -> bool {
    let first = name.first().map_or(0, u8::to_ascii_lowercase);
    match (name.len(), first) {
        // Age, Date, ETag, Vary, Pragma, Expires, Set-Cookie
        (3, b'a') | (4, b'd' | b'e' | b'v') | (6, b'p') | (7, b'e') | (10, b's') => true,
        // Content-Type
        (12, b'c') => true,
        // Cache-Control, Content-Range, Last-Modified, Content-Location, Surrogate-Control
        (13, b'c' | b'l') | (16, b'c') | (17, b's') => true,
        _ => config
            .targeted
            .iter()
            .any(|field| field.len() == name.len() && eq_name(name, field.as_bytes())),
    }
}

impl<F: Fields + ?Sized> Fields for Relevant<'_, F> {
    fn count(&self) -> usize {
        if self.all {
            self.fields.count()
        } else {
            self.count
        }
    }

    fn field(&self, i: usize) -> (&[u8], &[u8]) {
        if self.all {
            self.fields.field(i)
        } else {
            self.picked[i]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;
    use foxy_base::{first, values};

    /// All names of fields that a decision about storing reads.
    const ASKED: [&str; 14] = [
        "Age",
        "Cache-Control",
        "CDN-Cache-Control",
        "Content-Location",
        "Content-Range",
        "Content-Type",
        "Date",
        "ETag",
        "Expires",
        "Foxy-Cache-Control",
        "Last-Modified",
        "Pragma",
        "Set-Cookie",
        "Vary",
    ];

    #[test]
    fn nothing_that_decides_is_left_out() {
        let config = Config::default();
        for name in ASKED.into_iter().chain(["Surrogate-Control"]) {
            for spelt in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
                let response = fields(&format!("X: 1 | {spelt}: a | Server: b | {spelt}: c"));
                let view = Relevant::of(&response, &config);
                assert_eq!(values(&view, name).count(), 2, "{spelt}");
            }
        }
        let response = fields("Server: a | X-Language: b | Accept-Ranges: c");
        assert_eq!(Relevant::of(&response, &config).count(), 0);
    }

    #[test]
    fn the_names_asked_for_are_those_in_the_source() {
        let sources = [
            include_str!("storing.rs"),
            include_str!("storing/facts.rs"),
            include_str!("freshness.rs"),
            include_str!("heuristics.rs"),
            include_str!("cache_control.rs"),
            include_str!("etag.rs"),
            include_str!("vary.rs"),
        ];
        let config = Config::default();
        for source in sources {
            for call in ["first(", "values(", "tokens(", "read("] {
                for rest in source.split(call).skip(1) {
                    let arguments = rest.split(')').next().unwrap_or_default();
                    let name = arguments.split('"').nth(1).unwrap_or_default();
                    let is_field = name.starts_with(|c: char| c.is_ascii_uppercase());
                    assert!(!is_field || matters(name.as_bytes(), &config), "{name}");
                }
            }
        }
    }

    #[test]
    fn many_fields_are_all_looked_at() {
        let many = vec!["Vary: x"; 30].join(" | ") + " | Date: last";
        let response = fields(&many);
        let view = Relevant::of(&response, &Config::default());
        assert_eq!(
            (view.count(), first(&view, "Date")),
            (31, Some(&b"last"[..]))
        );
    }
}
