//! Decides which fields of a response are stored (RFC 9111 section 3.1).

use foxy_base::{
    FieldBlock, FieldBlockBuilder, FieldBlockError, Fields, FieldsIter, eq_name, rule, tokens,
};

use crate::cache_control::for_each_listed;
use crate::range::is_of_content;
use crate::storing::StorePlan;

/// Fields that concern one connection only, and fields of proxy authentication (RFC 9110 section 7.6.1, RFC
/// 9111 section 3.1).
const HOP_BY_HOP: [&str; 10] = [
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authentication-Info",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// True if a field is hop-by-hop by definition, whatever fields Connection lists.
#[must_use]
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    HOP_BY_HOP.iter().any(|hop| eq_name(name, hop.as_bytes()))
}

/// The fields of a response in the form in which they are stored. These fields are left out: hop-by-hop
/// fields, fields that Connection lists, fields that the plan strips, Age (it is calculated), and
/// Content-Length (the object has its length). The Content-Range of a 206 is left out too (it follows from
/// the parts), and so are digests of only this part. All other fields are stored unchanged, including unknown
/// fields and Set-Cookie (unless the configuration excludes it). The running time is nearly linear in the
/// size of the head, even if Connection lists many fields.
///
/// # Errors
/// Returned if a field is too large for a field block. The response must then not be stored.
pub fn stored_fields<F: Fields + ?Sized>(
    fields: &F,
    plan: &StorePlan,
) -> Result<FieldBlock, FieldBlockError> {
    let filter = FieldFilter::new(fields, plan.facts.status == 206, plan.strip_listed);
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in FieldsIter::new(fields) {
        let strips = rule!(
            "stored fields: cookies that are stripped are not among them",
            plan.strip_set_cookie,
            false
        );
        let cookie = strips && eq_name(name, b"Set-Cookie");
        if !cookie && filter.keeps(name) {
            builder.push(name, value)?;
        }
    }
    Ok(builder.finish())
}

/// Decides which fields of one response are stored.
#[derive(Debug)]
pub(crate) struct FieldFilter<'a> {
    /// Names of fields that Connection or a list directive removes, sorted without regard to case.
    listed: Vec<&'a [u8]>,
    part: bool,
}

impl<'a> FieldFilter<'a> {
    /// Finds the `fields` that must be removed because Connection lists them. With `strip`, fields listed by
    /// private="..." or no-cache="..." are removed as well.
    pub(crate) fn new<F: Fields + ?Sized>(fields: &'a F, part: bool, strip: bool) -> Self {
        let mut listed: Vec<&[u8]> = tokens(fields, "Connection")
            .filter(|name| !is_connection_option(name))
            .collect();
        if strip {
            for_each_listed(fields, |name| listed.push(name));
        }
        listed.sort_unstable_by(|a, b| order(a, b));
        Self { listed, part }
    }

    /// True if the field is stored.
    pub(crate) fn keeps(&self, name: &[u8]) -> bool {
        let never = match name.len() {
            2 | 7 | 10 | 16 | 17 | 18 | 19 | 25 => rule!(
                "stored fields: those of one connection are not among them",
                is_hop_by_hop(name),
                false
            ),
            3 => eq_name(name, b"Age"),
            11 | 14 if self.part && is_of_content(name) => true,
            13 => self.part && eq_name(name, b"Content-Range"),
            14 => eq_name(name, b"Content-Length"),
            _ => false,
        };
        let found = |listed: &&[u8]| order(listed, name);
        let listed = rule!(
            "stored fields: those that a directive or Connection lists are not among them",
            !self.listed.is_empty() && self.listed.binary_search_by(found).is_ok(),
            false
        );
        !(never || listed)
    }
}

/// True for options of Connection that name no field. They are left out of the list.
fn is_connection_option(name: &[u8]) -> bool {
    eq_name(name, b"close") || eq_name(name, b"keep-alive")
}

fn order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let (a, b) = (a.iter(), b.iter());
    a.map(u8::to_ascii_lowercase)
        .cmp(b.map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests;
