//! The laboratory beside the product: measurements of Foxy and of other caches, each from outside,
//! over real sockets.

pub mod bounds;
pub mod collapse;
pub mod flood;
#[cfg(feature = "tls")]
pub mod hostile;
pub mod kit;
pub mod linear;
pub mod logins;
pub mod mirrors;
pub mod origins;
pub mod privacy;
pub mod reloads;
pub mod stores;
