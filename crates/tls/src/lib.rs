//! TLS for connections to origins and from clients: settings, certificates, and sessions. A session has no
//! socket of its own: its caller provides the socket.
//!
//! There is one provider of cryptography (aws-lc-rs), and no option turns checks off.

mod certificate;
mod client;
mod error;
mod failure;
mod files;
mod listener;
mod origin;
mod received;
mod server;
mod session;
mod table;

pub use certificate::Certificate;
pub use client::{ClientCertificate, ClientOptions};
pub use error::TlsError;
pub use failure::Failure;
pub use listener::ListenerTls;
pub use origin::{OriginOptions, OriginTls};
pub use server::{Renewed, ServerOptions, ServerTls};
pub use session::{Session, Wire};
pub use table::Served;

use std::sync::{Arc, OnceLock};

use rustls::crypto::CryptoProvider;

/// The protocol that both sides use inside TLS.
const ALPN: &[u8] = b"http/1.1";

/// Returns the provider of cryptography.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    let provider = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Arc::clone(PROVIDER.get_or_init(provider))
}
