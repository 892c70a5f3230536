use std::time::Duration;

use actor::testing::poll_until;
use axum::Router;
use contract::Wiring;
use contract::certificates::CertificateView;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{CipherSuite, ProtocolVersion};

use super::bed::{Bed, Client, api, connect, front, pair};
use super::pki::{Authority, Wanted};
use crate::front::{ServeError, open};

fn view(issued: Option<&super::pki::Issued>) -> CertificateView {
    CertificateView { serving: issued.map(pair), ..CertificateView::default() }
}

#[tokio::test]
async fn http2_is_offered_and_http1_is_spoken() {
    let bed = Bed::new().await;
    let alice = bed.alice();
    for alpn in [b"h2".as_slice(), b"http/1.1"] {
        let stream = bed.tls(alpn, Some(&alice)).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn));
    }
    assert_eq!(bed.h1(Some(&alice)).await.get("/pods").await, (200, "alice /pods".to_owned()));
    assert_eq!(bed.h2(Some(&alice)).await.get("/pods").await, (200, "alice /pods".to_owned()));
}

#[tokio::test]
async fn the_serving_certificate_changes_under_living_connections() {
    let bed = Bed::new().await;
    let alice = bed.alice();
    let shown = |stream: &tokio_rustls::client::TlsStream<tokio::net::TcpStream>| {
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    };
    let before = bed.tls(b"http/1.1", Some(&alice)).await.unwrap();
    let old = shown(&before);
    let mut before = Client::h1(before).await;
    assert_eq!(before.get("/pods").await.0, 200);
    bed.wiring.set(view(Some(&bed.authority.server())));
    let after = bed.tls(b"http/1.1", Some(&alice)).await.unwrap();
    let new = shown(&after);
    assert_ne!(new, old);
    assert_eq!(before.get("/pods").await.0, 200, "the old connection lives");
    // One that cannot be used changes nothing.
    let mut broken = bed.authority.server();
    broken.key = bed.authority.server().key;
    bed.wiring.set(view(Some(&broken)));
    assert_eq!(shown(&bed.tls(b"http/1.1", Some(&alice)).await.unwrap()), new);
}

#[tokio::test]
async fn without_a_serving_certificate_handshakes_fail_until_there_is_one() {
    let bed = Bed::new().await;
    bed.wiring.set(view(None));
    let mut failed = 0;
    for _ in 0..3 {
        failed += usize::from(bed.tls(b"http/1.1", None).await.is_err());
    }
    assert_eq!(failed, 3);
    bed.wiring.set(view(Some(&bed.authority.server())));
    assert_eq!(bed.h1(Some(&bed.alice())).await.get("/pods").await.0, 200);
    assert_eq!(bed.counted().failed_handshakes, 3);
}

#[tokio::test]
async fn the_authorities_of_clients_change_under_living_connections() {
    // The file is looked at by each request.
    let bed = Bed::with(|front| front.limits.look = Duration::ZERO, Router::new()).await;
    let mut old = bed.h1(Some(&bed.alice())).await;
    assert_eq!(old.get("/pods").await.0, 200);
    let next = Authority::new("next");
    let alice = next.client(Wanted::default());
    let mut early = bed.h1(Some(&alice)).await;
    assert_eq!(early.get("/pods").await.0, 401);
    // A broken file changes nothing; a new one is in force at once, for connections of before as well.
    std::fs::write(bed.ca_file(), "-----BEGIN CERTIFICATE-----\ngarbage").unwrap();
    assert_eq!(old.get("/pods").await.0, 200);
    let fresh = bed.dir.path().join("new");
    std::fs::write(&fresh, &next.pem).unwrap();
    std::fs::rename(&fresh, bed.ca_file()).unwrap();
    assert_eq!(old.get("/pods").await.0, 401);
    assert_eq!(early.get("/pods").await.0, 200);
    assert_eq!(bed.h1(Some(&alice)).await.get("/pods").await.0, 200);
    std::fs::remove_file(bed.ca_file()).unwrap();
    assert_eq!(early.get("/pods").await.0, 200, "a file that is gone changes nothing");
}

#[tokio::test]
async fn a_certificate_that_ends_ends_what_it_opened() {
    let bed = Bed::new().await;
    let mut client = bed.h2(Some(&bed.authority.short(Duration::from_secs(2)))).await;
    assert_eq!(client.get("/pods").await.0, 200);
    poll_until("it ends", async || client.get("/pods").await.0 != 200).await;
    assert_eq!(client.get("/pods").await, (401, "Unauthorized".to_owned()));
}

#[tokio::test]
async fn versions_and_suites_are_those_of_the_settings() {
    let rsa_only = vec!["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".to_owned(), "TLS_RSA_WITH_RC4_128_SHA".to_owned()];
    let bed = Bed::with(|front| front.tls.cipher_suites = rsa_only, Router::new()).await;
    let alice = bed.alice();
    let stream = connect(bed.address, &bed.authority.pem, b"http/1.1", Some(&alice), &[&TLS12]).await.unwrap();
    let spoken = stream.get_ref().1.negotiated_cipher_suite().map(|s| s.suite());
    assert_eq!(spoken, Some(CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384));
    assert_eq!(Client::h1(stream).await.get("/pods").await.0, 200, "TLS 1.2 carries a client certificate, too");

    let bed = Bed::with(|front| front.tls.min_version = "VersionTLS13".to_owned(), Router::new()).await;
    assert!(connect(bed.address, &bed.authority.pem, b"http/1.1", None, &[&TLS12]).await.is_err());
    let stream = connect(bed.address, &bed.authority.pem, b"http/1.1", None, &[&TLS12, &TLS13]).await.unwrap();
    assert_eq!(stream.get_ref().1.protocol_version(), Some(ProtocolVersion::TLSv1_3));

    let mut none = front(&api(), Wiring::default().value());
    none.tls.cipher_suites = vec!["TLS_RSA_WITH_AES_128_CBC_SHA".to_owned()];
    assert!(matches!(open(none).await, Err(ServeError::Tls(text)) if text.contains("TLS_RSA_WITH_AES_128_CBC_SHA")));
    let mut none = front(&api(), Wiring::default().value());
    none.tls.curves = vec![25];
    assert!(matches!(open(none).await, Err(ServeError::Tls(_))));
}
