//! A TLS server with a fresh self-signed certificate for `localhost`.

use std::io;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::clients::web::{self, Request, Response, Web};

/// Starts the server. Returns it with the certificate (PEM) that clients must trust.
pub(crate) fn serve(
    handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> (Web, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the certificate fits its key");
    let config = Arc::new(config);
    let wrap = move |stream| {
        let session = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
        Ok(Box::new(StreamOwned::new(session, stream)) as Box<dyn web::ReadWrite>)
    };
    (
        web::start(handler, wrap).expect("the server starts"),
        made.cert.pem(),
    )
}
