use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fake_api::{Authority, FakeApiServer, ServerTls};
use fakes::FakeApi;
use model::core::Node;
use ports::api::{ApiError, ApiExt};
use serde_json::json;
use tempfile::TempDir;

use super::{kubeconfig, pair, settings};
use crate::ApiClient;
use crate::kubeconfig::{Auth, ExecPlugin, ExecVersion, Trust};

fn script(dir: &Path, body: &str) -> Auth {
    let command = dir.join("give.sh");
    fs::write(&command, format!("#!/bin/sh\necho x >> {}/calls\n{body}\n", dir.display())).unwrap();
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
    Auth::Exec(Box::new(ExecPlugin {
        version: ExecVersion::V1,
        command,
        args: vec!["arg".to_owned()],
        env: vec![("TOKEN".to_owned(), "from-env".to_owned())],
        install_hint: "apt install give".to_owned(),
        cluster: Some(json!({ "server": "https://x" })),
    }))
}

fn calls(dir: &Path) -> usize {
    fs::read_to_string(dir.join("calls")).unwrap_or_default().lines().count()
}

const CREDENTIAL: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":"#;

/// One GET; the `Authorization` header that arrived.
async fn sent(server: &FakeApiServer, auth: Auth) -> Result<Option<String>, ApiError> {
    let mut kubeconfig = kubeconfig(server);
    kubeconfig.auth = auth;
    let client = ApiClient::new(&kubeconfig, settings()).unwrap();
    match client.get::<Node>(None, "n").await {
        Err(error) if error.is_not_found() => Ok(server.authorizations().pop().flatten()),
        Err(error) => Err(error),
        Ok(_) => panic!("there is no node"),
    }
}

#[tokio::test]
async fn headers_say_who_asks() {
    let (server, _) = pair().await;
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("token");
    fs::write(&file, "from-file\n").unwrap();
    let program = script(dir.path(), &format!("echo '{CREDENTIAL}{{\"token\":\"'$TOKEN-$1'\"}}}}'"));
    let rows = [
        (Auth::None, None),
        (Auth::Token("t".to_owned()), Some("Bearer t")),
        (Auth::Basic("u".to_owned(), "p".to_owned()), Some("Basic dTpw")),
        (Auth::TokenFile(file), Some("Bearer from-file")),
        (program, Some("Bearer from-env-arg")),
    ];
    for (auth, wanted) in rows {
        let name = format!("{auth:?}");
        assert_eq!(sent(&server, auth).await.unwrap().as_deref(), wanted, "{name}");
    }
}

#[tokio::test]
async fn a_program_is_asked_once_and_again_after_a_refusal_or_its_time() {
    let (server, _) = pair().await;
    let dir = TempDir::new().unwrap();
    let mut config = kubeconfig(&server);
    config.auth = script(dir.path(), &format!("echo '{CREDENTIAL}{{\"token\":\"t\"}}}}'"));
    let client = ApiClient::new(&config, settings()).unwrap();
    for _ in 0..3 {
        assert!(client.get::<Node>(None, "n").await.unwrap_err().is_not_found());
    }
    assert_eq!(calls(dir.path()), 1);
    server.api().fail("GET", "nodes", 1, ApiError::status(401, "Unauthorized", "Unauthorized"));
    assert!(client.get::<Node>(None, "n").await.unwrap_err().is_unauthorized());
    assert!(client.get::<Node>(None, "n").await.unwrap_err().is_not_found());
    assert_eq!(calls(dir.path()), 2);

    let over = format!("echo '{CREDENTIAL}{{\"token\":\"t\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}}}}'");
    config.auth = script(dir.path(), &over);
    let client = ApiClient::new(&config, settings()).unwrap();
    for _ in 0..2 {
        assert!(client.get::<Node>(None, "n").await.unwrap_err().is_not_found());
    }
    assert_eq!(calls(dir.path()), 4);
}

#[tokio::test]
async fn programs_that_give_nothing_are_named_with_the_reason() {
    let (server, _) = pair().await;
    let dir = TempDir::new().unwrap();
    let rows = [
        ("exit 3", "exit status: 3"),
        ("echo hello", "no ExecCredential"),
        ("echo '{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}'", "v1 Pod"),
        (&format!("echo '{CREDENTIAL}{{}}}}'"), "neither a token nor a certificate"),
        (
            &format!("echo '{CREDENTIAL}{{\"token\":\"t\",\"clientKeyData\":\"k\"}}}}'"),
            "neither a token nor a certificate",
        ),
        (&format!("echo '{CREDENTIAL}{{\"clientCertificateData\":\"c\",\"clientKeyData\":\"k\"}}}}'"), "no PEM block"),
    ];
    for (body, reason) in rows {
        let error = sent(&server, script(dir.path(), body)).await.unwrap_err();
        let ApiError::NotReady { message } = &error else { panic!("{body}: {error:?}") };
        assert!(message.contains("give.sh") && message.contains(reason), "{body}: {message}");
    }
    let Auth::Exec(mut plugin) = script(dir.path(), "") else { panic!("no exec") };
    plugin.command = dir.path().join("nowhere");
    let error = sent(&server, Auth::Exec(plugin)).await.unwrap_err();
    assert!(error.to_string().contains("apt install give"), "{error}");
}

#[tokio::test]
async fn a_program_may_give_a_certificate() {
    let authority = Authority::new();
    let tls = ServerTls { shown: authority.server("kubernetes"), clients: Some(authority.pem.clone()) };
    let server = FakeApiServer::tls(FakeApi::new(), &tls).await;
    let dir = TempDir::new().unwrap();
    let node = authority.node("n1");
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": { "clientCertificateData": node.certificate, "clientKeyData": node.key },
    });
    fs::write(dir.path().join("answer"), answer.to_string()).unwrap();
    let mut config = kubeconfig(&server);
    config.trust = Trust::Authorities(authority.pem.clone().into_bytes());
    config.auth = script(dir.path(), &format!("cat {}/answer", dir.path().display()));
    let client = ApiClient::new(&config, settings()).unwrap();
    assert!(client.get::<Node>(None, "n").await.unwrap_err().is_not_found());
    assert!(server.peers()[0].certificate.is_some());
}
