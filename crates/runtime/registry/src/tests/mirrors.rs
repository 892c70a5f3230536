//! Mirrors, TLS and what else `hosts.toml` says.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::fake::{Lock, redirect};
use super::*;

/// A node that is told of hosts for `r.example`.
fn node(hosts_toml: &str, files: &[(&str, &str)]) -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let host = folder.path().join("r.example");
    std::fs::create_dir(&host).unwrap();
    std::fs::write(host.join("hosts.toml"), hosts_toml).unwrap();
    for (name, text) in files {
        std::fs::write(host.join(name), text).unwrap();
    }
    let settings = Settings { hosts_dir: Some(folder.path().to_owned()), attempts: 2, ..settings() };
    (folder, Node::with(settings))
}

#[tokio::test]
async fn mirrors_are_asked_first_and_the_registry_for_what_they_lack() {
    let made = Made::usual();
    let (empty, mirror, origin) = (Fake::start().await, Fake::with(&made).await, Fake::with(&made).await);
    mirror.fault(&made.layer(1).to_string(), 99, Act::Status(404, ""));
    let text = format!(
        "server = \"http://{}\"\n[host.\"http://{}\"]\n[host.\"http://{}\"]\n[host.\"http://{}\".header]\nX-Key = \"k3y\"\n",
        origin.address, empty.address, mirror.address, mirror.address
    );
    let (_folder, node) = node(&text, &[]);
    let image = node.pull("r.example/team/app:1").await.unwrap();
    node.must_have(&image, &made);
    assert_eq!(image.repo_tags, ["r.example/team/app:1"], "it has the name that was asked for");
    assert_eq!(empty.lines("/manifests/"), ["GET /v2/team/app/manifests/1?ns=r.example"]);
    assert!(mirror.header("", "x-key").iter().all(|h| h.as_deref() == Some("k3y")));
    assert_eq!(origin.lines(""), [format!("GET /v2/team/app/blobs/{}?ns=r.example", made.layer(1))]);
    assert!(origin.header("", "x-key").iter().all(Option::is_none));
}

#[tokio::test]
async fn who_may_not_resolve_is_not_asked_what_a_tag_means() {
    let (old, new) = (Made::new("amd64", &[layer("old", 10)]), Made::usual());
    let (mirror, origin) = (Fake::with(&old).await, Fake::with(&new).await);
    mirror.put(&new, "team/app", "unused");
    mirror.put_manifest("team/app", "1", OCI_MANIFEST, &old.manifest);
    let text = format!(
        "server = \"http://{}\"\n[host.\"http://{}\"]\ncapabilities = [\"pull\"]\n",
        origin.address, mirror.address
    );
    let (_folder, pulls) = node(&text, &[]);
    pulls.must_have(&pulls.pull("r.example/team/app:1").await.unwrap(), &new);
    assert_eq!(origin.lines("").len(), 1, "the rest comes from the mirror: {:?}", origin.lines(""));
    let (_folder, nobody) = node(&format!("server = \"http://{}\"\ncapabilities = [\"push\"]\n", origin.address), &[]);
    assert!(nobody.refusal("r.example/team/app:1").await.contains("no host may be asked for its manifest"));
}

#[tokio::test]
async fn every_host_that_was_asked_is_named_when_none_has_it() {
    let (one, two) = (Fake::start().await, Fake::start().await);
    two.fault("", 99, Act::Status(500, ""));
    let text = format!("server = \"http://{}\"\n[host.\"http://{}\"]\n", two.address, one.address);
    let (_folder, node) = node(&text, &[]);
    let error = node.pull("r.example/team/app:1").await.unwrap_err();
    let (a, b) = (one.address, two.address);
    assert_eq!(
        error.to_string(),
        format!(
            "{a} (for its manifest) answered 404 (nothing here); is the name right?; {b} (for its manifest) answered 500"
        )
    );
    assert!(!error.is_not_found(), "one of them may have it later");
    assert_eq!(two.lines("GET").len(), 2, "asked again, as often as is configured");
    two.state().faults.clear();
    assert!(node.pull("r.example/team/app:1").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_path_of_its_own_is_kept() {
    let made = Made::usual();
    let fake = Fake::start().await;
    fake.put(&made, "hub/team/app", "1");
    for (path, more) in [("/v2/hub", "override_path = true"), ("/v2/hub/", "override_path = true")] {
        let text = format!("server = \"http://127.0.0.1:1\"\n[host.\"http://{}{path}\"]\n{more}\n", fake.address);
        let (_folder, node) = node(&text, &[]);
        node.must_have(&node.pull("r.example/team/app:1").await.unwrap(), &made);
    }
}

#[tokio::test]
async fn a_configuration_that_is_wrong_stops_the_pull() {
    let (_folder, node) = node("server = 7", &[]);
    let error = node.refusal("r.example/team/app:1").await;
    assert!(error.contains("hosts.toml") && error.contains("server is no text"), "{error}");
}

/// A server for `localhost`, its certificate, and the key.
fn tls_server(verify: Option<&str>) -> (ServerConfig, String, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (pem, key) = (cert.pem(), signing_key.serialize_pem());
    let builder = ServerConfig::builder_with_provider(tls::provider()).with_safe_default_protocol_versions().unwrap();
    let builder = match verify {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let clients = tls::clients_of(tls::authorities(pem.as_bytes()).unwrap()).unwrap();
            builder.with_client_cert_verifier(clients)
        }
    };
    let key_der: PrivateKeyDer<'static> = tls::key(key.as_bytes()).unwrap();
    let config = builder.with_single_cert(tls::certificates(pem.as_bytes()).unwrap(), key_der).unwrap();
    (config, pem, key)
}

#[tokio::test]
async fn hosts_with_certificates_of_their_own_are_believed_when_told() {
    let made = Made::usual();
    let (config, pem, _) = tls_server(None);
    let fake = Fake::start_tls(config).await;
    fake.put(&made, "team/app", "1");
    let at = format!("https://localhost:{}", fake.address.port());
    for more in ["ca = \"ca.pem\"", "ca = [\"ca.pem\"]", "skip_verify = true"] {
        let (_folder, node) = node(&format!("server = \"{at}\"\n{more}\n"), &[("ca.pem", &pem)]);
        node.must_have(&node.pull("r.example/team/app:1").await.unwrap(), &made);
    }
    for (more, reason) in [
        ("", "its authority can be named in its hosts.toml"),
        ("ca = \"gone.pem\"", "cannot read"),
        ("ca = \"empty.pem\"", "has no certificate"),
    ] {
        let (_folder, node) = node(&format!("server = \"{at}\"\n{more}\n"), &[("empty.pem", "")]);
        let error = node.refusal("r.example/team/app:1").await;
        assert!(error.contains(reason), "{error}, not {reason}");
    }
}

#[tokio::test]
async fn plain_http_is_told_from_tls() {
    let fake = Fake::with(&Made::usual()).await;
    let (_folder, node) = node(&format!("server = \"https://localhost:{}\"\n", fake.address.port()), &[]);
    let error = node.refusal("r.example/team/app:1").await;
    assert!(error.contains("TLS failed") && error.contains("does it speak plain HTTP?"), "{error}");
}

#[tokio::test]
async fn a_certificate_is_shown_to_the_host_that_it_is_for_alone() {
    let made = Made::usual();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["node".to_owned()]).unwrap();
    let (client, key) = (cert.pem(), signing_key.serialize_pem());
    let (config, ca, _) = tls_server(Some(&client));
    let fake = Fake::start_tls(config).await;
    fake.put(&made, "team/app", "1");
    let both = format!("{client}{key}");
    let files = [("ca.pem", ca.as_str()), ("c.pem", &client), ("k.pem", &key), ("both.pem", &both)];
    let server = format!("server = \"https://localhost:{}\"\nca = \"ca.pem\"\n", fake.address.port());
    for more in ["client = [[\"c.pem\", \"k.pem\"]]", "client = \"both.pem\"", "client = [\"both.pem\"]"] {
        let (_folder, node) = node(&format!("{server}{more}\n"), &files);
        node.must_have(&node.pull("r.example/team/app:1").await.unwrap(), &made);
    }
    let (_folder, without) = node(&server, &files);
    without.refusal("r.example/team/app:1").await;
    // Another one that wants a certificate does not see ours, though a redirect of the first leads there.
    let (config, _, _) = tls_server(Some(&client));
    let other = Fake::start_tls(config).await;
    other.put(&made, "team/app", "1");
    let path = format!("/v2/team/app/blobs/{}", made.layer(0));
    fake.fault(&path, 99, redirect(format!("https://localhost:{}{path}", other.address.port())));
    let skip =
        format!("server = \"https://localhost:{}\"\nskip_verify = true\nclient = \"both.pem\"\n", fake.address.port());
    let (_folder, shown) = node(&skip, &files);
    shown.refusal("r.example/team/app:1").await;
    assert_eq!(other.lines(""), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_is_not_asked_for_without_tls_for_a_host_with_it() {
    let made = Made::usual();
    let (config, pem, _) = tls_server(None);
    let fake = Fake::start_tls(config).await;
    fake.put(&made, "team/app", "1");
    let thief = Fake::start().await;
    fake.state().lock = Lock::Token {
        realm: format!("http://{}/token", thief.address),
        token: "t".to_owned(),
        user: None,
        refresh: None,
        life: 300,
    };
    let text = format!("server = \"https://localhost:{}\"\nca = \"ca.pem\"\n", fake.address.port());
    let (_folder, node) = node(&text, &[("ca.pem", &pem)]);
    let error = node.pull_as("r.example/team/app:1", password("me", "s3cret")).await.unwrap_err().to_string();
    assert!(error.contains("is to be asked without TLS"), "{error}");
    assert_eq!(thief.lines(""), Vec::<String>::new());
}
