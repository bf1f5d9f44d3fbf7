//! The strict codec of HTTP/1.1 and HTTP/1.0 messages. It parses messages and determines their framing (where
//! each body ends).
//!
//! The codec does no I/O and needs neither clock nor runtime. The client side and the origin side of the
//! proxy use the same code, so both sides agree on where a message ends. Request smuggling is an attack that
//! needs a disagreement about the end of a message. So bytes that two parsers could read in two ways are
//! refused with a [`Reject`], which contains a status and a stable reason word.
//!
//! A connection uses the codec as follows. Once the connection's buffers have grown, the codec allocates
//! nothing.
//!
//! 1. Read into a buffer; call [`RequestHead::parse`] (or [`ResponseHead::parse`]) with the connection's
//!    [`HeadScanner`] and [`FieldSlots`] until it returns a head. Bytes are not examined twice. A head
//!    borrows the buffer and the slots. [`RequestHead::parts`] contains the same information as plain
//!    offsets, for code that must move the buffer across an `await`.
//! 2. Read the body with a [`BodyReader`] made from the head's [`BodyFraming`].
//! 3. Write heads into a reusable `Vec<u8>` with [`write`](mod@write), and forward the fields that
//!    [`forward_fields`] returns.
//!
//! ```
//! # use foxy_http1::*;
//! # let mut arriving = [&b"GET http://example.com/a HTTP/1.1\r\nHost: exam"[..], b"ple.com\r\n\r\n"].into_iter();
//! # let mut read_more = |buffer: &mut Vec<u8>| buffer.extend_from_slice(arriving.next().unwrap());
//! let limits = Limits::default();
//! let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
//! let mut buffer = Vec::new();
//! let head = loop {
//!     if let Some(head) = RequestHead::parse(&buffer, &mut scanner, &mut slots, &limits)? {
//!         break head;
//!     }
//!     read_more(&mut buffer);
//! };
//! let mut url = Vec::new();
//! head.url(Scheme::Http).unwrap().write_normalised(&mut url);
//! assert_eq!(url, b"http://example.com/a");
//! assert!(head.framing().is_empty() && head.persistent());
//! # Ok::<(), Reject>(())
//! ```
//!
//! References: RFC 9112 (HTTP/1.1), RFC 9110 (semantics), RFC 3986 (URIs).

mod authority;
mod body;
pub mod chunked;
mod connection;
mod date;
mod diagnose;
mod facts;
mod framing;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod limits;
mod method;
mod path;
mod reject;
mod request;
mod response;
mod scan;
mod slots;
mod target;
pub mod write;

pub use authority::{Authority, Host};
pub use body::{BodyReader, BodyStep};
pub use connection::{ForwardFields, forward_fields, goes_on, is_hop_by_hop};
pub use date::DateCache;
pub use facts::Upgrade;
pub use framing::BodyFraming;
pub use limits::{Limits, MAX_FIELDS};
pub use method::{Method, Version};
pub use path::Escapes;
pub use reject::Reject;
pub use request::{RequestHead, RequestParts};
pub use response::{ResponseHead, ResponseParts};
pub use scan::HeadScanner;
pub use slots::{FieldSlots, FieldView};
pub use target::{Scheme, Target, TargetForm, Url};

#[cfg(test)]
mod tests;
