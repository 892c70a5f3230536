//! A TLS server whose certificate is not even one.

use std::sync::Arc;
use std::time::Duration;

use model::probe::ProbeOutcome;
use ports::probe::{NetProber, NetTarget};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

use crate::Prober;

#[derive(Debug)]
struct Anything(Arc<CertifiedKey>);

impl ResolvesServerCert for Anything {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// PKCS#8 of an Ed25519 key is a fixed head and any 32 bytes.
fn acceptor() -> TlsAcceptor {
    let mut key = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".to_vec();
    key.extend([7; 32]);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let key = ring::sign::any_eddsa_type(match &key {
        PrivateKeyDer::Pkcs8(key) => key,
        _ => unreachable!("made above"),
    })
    .unwrap();
    let certified = CertifiedKey::new(vec![b"no certificate at all".to_vec().into()], key);
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Anything(Arc::new(certified))));
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn https_takes_any_certificate() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let acceptor = acceptor();
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = [0; 512];
            let _whole_head = stream.read(&mut head).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let prober = Prober::new();
    for host in ["127.0.0.1", "localhost"] {
        let target = NetTarget::Http {
            tls: true,
            host: host.into(),
            port,
            path: "/".into(),
            headers: Vec::new(),
            host_header: None,
        };
        let got = prober.probe(target, Duration::from_secs(2)).await;
        assert_eq!((got.outcome, got.output.as_str()), (ProbeOutcome::Success, "secret"), "{host}");
    }
}
