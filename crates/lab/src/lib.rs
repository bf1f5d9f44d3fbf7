//! The laboratory of the product. It measures Foxy and other caches from outside, over real sockets.

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
