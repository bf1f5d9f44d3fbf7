//! An origin that Foxy must not trust.

use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

/// Starts a TLS server whose certificate is for another name and is not trusted. Returns its URL.
#[must_use]
pub fn untrusted_origin() -> String {
    let made = rcgen::generate_simple_self_signed(["other.test".to_owned()]).expect("made");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let chain = vec![CertificateDer::from(made.cert.der().to_vec())];
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let config = Arc::new(config.expect("a server"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            // The client refuses the certificate.
            while session.is_handshaking() && session.complete_io(&mut stream).is_ok() {}
        }
    });
    url
}
