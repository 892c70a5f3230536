use actor::testing::spin_until;
use fake_api::{Authority, FakeApiServer, Issued, ServerTls};
use fakes::FakeApi;
use fakes::api::{Matching, Trouble};
use model::core::Pod;
use ports::api::{ApiError, ApiExt};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{expect, followed, kubeconfig, pod, pods, settings};
use crate::kubeconfig::{Kubeconfig, Trust};
use crate::{ApiClient, Identity};

fn identity(issued: &Issued) -> Identity {
    Identity::from_pem(issued.certificate.as_bytes(), issued.key.as_bytes()).unwrap()
}

async fn secure(authority: &Authority) -> (FakeApiServer, Kubeconfig) {
    let tls = ServerTls { shown: authority.server("kubernetes"), clients: Some(authority.pem.clone()) };
    let server = FakeApiServer::tls(FakeApi::new(), &tls).await;
    let mut kubeconfig = kubeconfig(&server);
    kubeconfig.trust = Trust::Authorities(authority.pem.clone().into_bytes());
    kubeconfig.identity = Some(identity(&authority.node("n1")));
    (server, kubeconfig)
}

#[tokio::test]
async fn one_http2_connection_carries_everything() {
    let authority = Authority::new();
    let (server, kubeconfig) = secure(&authority).await;
    let client = ApiClient::new(&kubeconfig, settings()).unwrap();
    let mut follow = followed(&client, pods(), "=").await;
    server.api().put(&pod("a"));
    assert!(client.get::<Pod>(Some("default"), "a").await.is_ok());
    expect(&mut follow, &["+a"]).await;
    let peers = server.peers();
    assert_eq!(peers.len(), 1, "{peers:?}");
    assert!(peers[0].http2 && peers[0].certificate.is_some());
}

#[tokio::test]
async fn many_watches_leave_room_for_requests() {
    let authority = Authority::new();
    let (server, kubeconfig) = secure(&authority).await;
    let mut settings = settings();
    settings.main.burst = 1000;
    let client = ApiClient::new(&kubeconfig, settings).unwrap();
    let mut follows = Vec::new();
    for _ in 0..150 {
        follows.push(followed(&client, pods(), "=").await);
    }
    let next = futures::future::join_all(follows.iter_mut().map(super::step));
    let change = async {
        spin_until("all watches begin", || server.watches_open() == 150).await;
        assert!(client.get::<Pod>(Some("default"), "a").await.unwrap_err().is_not_found());
        server.api().put(&pod("a"));
    };
    let (steps, ()) = tokio::join!(next, change);
    assert!(steps.iter().all(|step| super::short(step) == "+a"));
    assert_eq!(server.peers().len(), 3);
}

#[tokio::test]
async fn http2_can_be_switched_off() {
    let authority = Authority::new();
    let (server, kubeconfig) = secure(&authority).await;
    let mut old = settings();
    old.http2 = false;
    let client = ApiClient::new(&kubeconfig, old).unwrap();
    assert!(client.get::<Pod>(Some("default"), "a").await.unwrap_err().is_not_found());
    assert!(!server.peers()[0].http2);
}

#[tokio::test]
async fn servers_of_another_authority_or_name_are_not_believed() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (server, good) = secure(&authority).await;
    let ask = |kubeconfig: Kubeconfig| async move {
        ApiClient::new(&kubeconfig, settings()).unwrap().get::<Pod>(Some("default"), "a").await.unwrap_err()
    };
    let trust = Trust::Authorities(stranger.pem.clone().into_bytes());
    let error = ask(Kubeconfig { trust, ..good.clone() }).await;
    assert!(matches!(&error, ApiError::Unreachable { message } if message.contains("certificate")), "{error:?}");
    let error = ask(Kubeconfig { server_name: Some("other".to_owned()), ..good.clone() }).await;
    assert!(matches!(&error, ApiError::Unreachable { message } if message.contains("certificate")), "{error:?}");
    assert!(ask(Kubeconfig { server_name: Some("kubernetes".to_owned()), ..good.clone() }).await.is_not_found());
    let error = ask(Kubeconfig { identity: None, ..good.clone() }).await;
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error:?}");
    let error = ask(Kubeconfig { identity: Some(identity(&stranger.node("n1"))), ..good }).await;
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error:?}");
    drop(server);
}

#[tokio::test]
async fn a_new_certificate_is_used_without_dropping_what_is_under_way() {
    let authority = Authority::new();
    let (server, kubeconfig) = secure(&authority).await;
    let client = ApiClient::new(&kubeconfig, settings()).unwrap();
    server.api().put(&pod("a"));
    let mut follow = followed(&client, pods(), "=a").await;
    server.api().trouble(Matching::of("GET", "pods/a"), Trouble::Slow(Duration::from_millis(200)), 1);
    let slow = {
        let client = client.clone();
        tokio::spawn(async move { client.get::<Pod>(Some("default"), "a").await })
    };
    spin_until("the slow request arrives", || !server.api().requests_of("GET", "pods/a").is_empty()).await;

    let next = authority.node("n1");
    client.set_identity(next.certificate.as_bytes(), next.key.as_bytes()).unwrap();
    assert!(client.get::<Pod>(Some("default"), "a").await.is_ok());
    server.api().put(&pod("b"));
    expect(&mut follow, &["+b"]).await;
    assert!(slow.await.unwrap().is_ok(), "the request under way ended on its old connection");

    let peers = server.peers();
    assert_eq!(peers.len(), 2, "{}", peers.len());
    assert_ne!(peers[0].certificate, peers[1].certificate);
    assert_eq!(server.api().requests_of("GET", "/api/v1/pods").len(), 1, "the watch moved without a list");
}

#[tokio::test]
async fn a_follow_that_waits_after_a_failure_begins_at_once_with_a_new_identity() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (server, mut kubeconfig) = secure(&authority).await;
    kubeconfig.identity = Some(identity(&stranger.node("n1")));
    let mut slow = settings();
    slow.watch.pause_first = Duration::from_secs(3600);
    slow.watch.pause_most = Duration::from_secs(3600);
    let client = ApiClient::new(&kubeconfig, slow).unwrap();
    let mut follow = followed(&client, pods(), "!").await;
    let good = authority.node("n1");
    client.set_identity(good.certificate.as_bytes(), good.key.as_bytes()).unwrap();
    expect(&mut follow, &["="]).await;
    drop(server);
}

#[tokio::test]
async fn a_proxy_of_the_cluster_is_used() {
    let authority = Authority::new();
    let (server, mut kubeconfig) = secure(&authority).await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    kubeconfig.proxy = Some(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
    let proxy = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.strip_prefix("CONNECT ").and_then(|h| h.split(' ').next()).unwrap().to_owned();
        let mut onward = tokio::net::TcpStream::connect(target).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
    });
    let client = ApiClient::new(&kubeconfig, settings()).unwrap();
    assert!(client.get::<Pod>(Some("default"), "a").await.unwrap_err().is_not_found());
    assert_eq!(server.peers().len(), 1);
    drop(client);
    proxy.await.unwrap();
}

#[tokio::test]
async fn a_key_that_does_not_belong_changes_nothing() {
    let authority = Authority::new();
    let (server, kubeconfig) = secure(&authority).await;
    let client = ApiClient::new(&kubeconfig, settings()).unwrap();
    let (one, other) = (authority.node("n1"), authority.node("n1"));
    assert!(client.set_identity(one.certificate.as_bytes(), other.key.as_bytes()).is_err());
    assert!(client.get::<Pod>(Some("default"), "a").await.unwrap_err().is_not_found());
    assert_eq!(server.peers().len(), 1);
}
