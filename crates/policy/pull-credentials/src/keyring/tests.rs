//! What is tried, in which order.

use model::core::Secret;
use serde_json::{Value, json};

use super::{Credential, Keyring, Source, keyring_of_secrets, location};
use crate::docker_config::{Auth, parse_dockercfg};

fn auths(entries: &[(&str, &str)]) -> crate::AuthMap {
    let of = |user: &str| Auth { username: user.into(), ..Auth::default() };
    entries.iter().map(|(registry, user)| ((*registry).to_owned(), of(user))).collect()
}

fn users(found: &[Credential]) -> Vec<&str> {
    found.iter().map(|c| c.auth.username.as_str()).collect()
}

#[test]
fn more_specific_locations_come_first() {
    let mut keyring = Keyring::default();
    let entries = [("quay.io", "host"), ("quay.io/coreos", "path"), ("*.io", "glob"), ("other.io", "other")];
    keyring.add(auths(&entries), &Source::Node);
    assert_eq!(users(&keyring.lookup("quay.io/coreos/etcd")), ["path", "host", "glob"]);
    assert_eq!(users(&keyring.lookup("quay.io/x")), ["host", "glob"]);
    assert_eq!(users(&keyring.lookup("gcr.net/x")), Vec::<&str>::new());
}

#[test]
fn places_that_speak_of_the_same_location_come_in_their_order() {
    let mut keyring = Keyring::default();
    keyring.add(auths(&[("r.io", "first")]), &Source::Node);
    keyring.add(auths(&[("https://r.io", "second")]), &Source::Node);
    assert_eq!(users(&keyring.lookup("r.io/x")), ["first", "second"]);
}

#[test]
fn locations_table() {
    for (registry, expected) in [
        ("r.io", "r.io"),
        ("https://r.io", "r.io"),
        ("http://r.io/", "r.io"),
        ("https://index.docker.io/v1/", "index.docker.io"),
        ("r.io/v2/", "r.io"),
        ("r.io/v2/team", "r.io/team"),
        ("r.io/v2", "r.io/v2"),
        ("r.io:5000/team/", "r.io:5000/team/"),
    ] {
        assert_eq!(location(registry), expected, "{registry}");
    }
}

#[test]
fn docker_hub_is_found_by_its_old_name() {
    let mut keyring = Keyring::default();
    keyring.add(auths(&[("https://index.docker.io/v1/", "hub")]), &Source::Node);
    for (image, expected) in [
        ("docker.io/library/busybox", vec!["hub"]),
        ("index.docker.io/library/busybox", vec!["hub"]),
        ("library/busybox", vec!["hub"]),
        ("busybox", vec!["hub"]),
        ("quay.io/x", vec![]),
        ("localhost:5000/x", vec![]),
    ] {
        assert_eq!(users(&keyring.lookup(image)), expected, "{image}");
    }
}

fn secret(kind: &str, key: &str, content: &Value) -> Secret {
    let content = content.to_string();
    let mut secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "s", "namespace": "ns", "uid": "1"}, "type": kind,
    }))
    .unwrap();
    let bytes = model::k8s_openapi::ByteString(content.into_bytes());
    secret.data = Some([(key.to_owned(), bytes)].into());
    secret
}

#[test]
fn secrets_table() {
    let old = json!({"r.io": {"auth": "dTpw"}});
    let new = json!({"auths": old});
    for (name, kind, key, content, expected) in [
        ("new", "kubernetes.io/dockerconfigjson", ".dockerconfigjson", &new, vec!["u"]),
        ("old", "kubernetes.io/dockercfg", ".dockercfg", &old, vec!["u"]),
        ("another type", "Opaque", ".dockerconfigjson", &new, vec![]),
        ("another key", "kubernetes.io/dockerconfigjson", ".dockercfg", &old, vec![]),
    ] {
        let keyring = keyring_of_secrets([&secret(kind, key, content)]).unwrap();
        let found = keyring.lookup("r.io/x");
        assert_eq!(users(&found), expected, "{name}");
        for c in found {
            let source = Source::Secret { uid: "1".into(), namespace: "ns".into(), name: "s".into() };
            assert_eq!(c.source, source, "{name}");
        }
    }
    let broken = secret("kubernetes.io/dockercfg", ".dockercfg", &json!({"r.io": {"auth": "!"}}));
    assert!(keyring_of_secrets([&broken]).is_err());
}

#[test]
fn hashes_are_those_of_the_json_that_a_kubelet_writes() {
    let auth = parse_dockercfg(br#"{"r": {"username": "u<&", "password": "p\"\n", "email": "e"}}"#).unwrap();
    let credential = Credential { auth: auth["r"].clone(), source: Source::Node };
    use sha2::Digest;
    let text = "{\"username\":\"u\\u003c\\u0026\",\"password\":\"p\\\"\\n\",\"email\":\"e\"}";
    assert_eq!(credential.hash(), super::hex(&sha2::Sha256::digest(text)));
    let none = Credential { auth: Auth::default(), source: Source::Node };
    assert_eq!(none.hash(), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "of {{}}");
}
