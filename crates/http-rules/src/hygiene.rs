//! Which fields of a response are stored (RFC 9111 section 3.1).

use foxy_base::{
    FieldBlock, FieldBlockBuilder, FieldBlockError, Fields, FieldsIter, eq_name, tokens,
};

use crate::cache_control::is_listed;
use crate::storing::StorePlan;

/// Fields that concern one connection only, and those of proxy authentication (RFC 9110 section
/// 7.6.1, RFC 9111 section 3.1).
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

/// Whether a field never leaves its connection, whatever Connection lists.
#[must_use]
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    HOP_BY_HOP.iter().any(|hop| eq_name(name, hop.as_bytes()))
}

/// The fields of a response as they are stored: without hop-by-hop fields, those that Connection
/// lists, those that the plan strips, Age (it is calculated), Content-Length (the object knows
/// its length), and the Content-Range of a 206 (it follows from the parts). Everything else
/// stays as it is, Set-Cookie and unknown fields included.
///
/// # Errors
/// A field too large for a field block; the response is not stored then.
pub fn stored_fields<F: Fields + ?Sized>(
    fields: &F,
    plan: &StorePlan,
) -> Result<FieldBlock, FieldBlockError> {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in FieldsIter::new(fields) {
        if is_stored(fields, name, plan.digest.status == 206, plan.strip_listed) {
            builder.push(name, value)?;
        }
    }
    Ok(builder.finish())
}

/// Whether one field of a response is stored.
pub(crate) fn is_stored<F: Fields + ?Sized>(
    fields: &F,
    name: &[u8],
    part: bool,
    strip: bool,
) -> bool {
    let never = is_hop_by_hop(name)
        || eq_name(name, b"Age")
        || eq_name(name, b"Content-Length")
        || part && eq_name(name, b"Content-Range");
    let listed = tokens(fields, "Connection").any(|listed| eq_name(listed, name));
    !(never || listed || strip && is_listed(fields, name))
}

#[cfg(test)]
mod tests;
