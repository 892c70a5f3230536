//! Files, and what a pull makes of them.

use std::collections::BTreeMap;

use model::Timestamp;

use super::{
    Access, AccountAccess, PullIntent, PullRecord, SecretAccess, access_by, file_name, is_record_file, merged,
};
use crate::docker_config::Auth;
use crate::keyring::{Credential, Source};

const REPO: &str = "docker.io/testing/test";

fn secret(uid: &str, hash: &str) -> SecretAccess {
    SecretAccess { uid: uid.into(), namespace: "default".into(), name: "pull".into(), credential_hash: hash.into() }
}

fn secrets(list: &[SecretAccess]) -> Access {
    Access { kubernetes_secrets: list.to_vec(), ..Access::default() }
}

fn everybody() -> Access {
    Access { node_pods_accessible: true, ..Access::default() }
}

fn account(name: &str) -> Access {
    let one = AccountAccess { uid: "1".into(), namespace: "ns".into(), name: name.into() };
    Access { kubernetes_service_accounts: vec![one], ..Access::default() }
}

fn record(access: Access) -> PullRecord {
    let updated = Timestamp::from_secs(1_729_513_600);
    PullRecord { updated, image_ref: "sha256:abc".into(), access: BTreeMap::from([(REPO.to_owned(), access)]) }
}

#[test]
fn files_are_a_kubelets() {
    let intent = PullIntent { image: "busybox".into() };
    let text = r#"{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"busybox"}"#;
    assert_eq!(String::from_utf8(intent.encode()).unwrap(), format!("{text}\n"));
    assert_eq!(PullIntent::decode(text.as_bytes()), Some(intent));
    let text = r#"{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2024-10-21T12:26:40Z","imageRef":"sha256:abc","credentialMapping":{"docker.io/testing/test":{"kubernetesSecrets":[{"uid":"u","namespace":"default","name":"pull","credentialHash":"h"}]}}}"#;
    let of_secret = record(secrets(&[secret("u", "h")]));
    assert_eq!(String::from_utf8(of_secret.encode()).unwrap(), format!("{text}\n"));
    assert_eq!(PullRecord::decode(text.as_bytes()), Some(of_secret.clone()));
    let alpha = text.replace("v1beta1", "v1alpha1");
    assert_eq!(PullRecord::decode(alpha.as_bytes()), Some(of_secret), "what an older kubelet left");
    let bare = PullRecord { access: BTreeMap::new(), ..record(everybody()) };
    assert_eq!(PullRecord::decode(&bare.encode()), Some(bare));
    for broken in ["", "{}", &text.replace("ImagePulledRecord", "Pod"), &text.replace("\"uid\"", "\"uuid\"")] {
        assert_eq!(PullRecord::decode(broken.as_bytes()), None, "{broken}");
    }
}

#[test]
fn files_are_named_by_the_hash_of_their_key() {
    let name = file_name("testimageref");
    assert_eq!(name, "sha256-b3c0cc4278800b03a308ceb2611161430df571ca733122f0a40ac8b9792a9064");
    assert!(is_record_file(&name));
    assert!(!is_record_file(&format!("{name}.tmp")) && !is_record_file("notes"));
}

#[test]
fn access_follows_from_the_credential_that_worked() {
    let with = |source: Source| Credential { auth: Auth::default(), source };
    assert_eq!(access_by(None), everybody());
    assert_eq!(access_by(Some(&with(Source::Node))), everybody());
    let c = with(Source::Secret { uid: "u".into(), namespace: "default".into(), name: "pull".into() });
    assert_eq!(access_by(Some(&c)), secrets(&[secret("u", &c.hash())]));
    let c = with(Source::ServiceAccount { uid: "1".into(), namespace: "ns".into(), name: "sa".into() });
    assert_eq!(access_by(Some(&c)), account("sa"));
}

#[test]
fn merging_table() {
    let (u, v) = (secret("u", "1"), secret("v", "2"));
    let one = secrets(std::slice::from_ref(&u));
    for (name, before, new, after) in [
        ("the same", one.clone(), Some(one.clone()), None),
        ("unknown circumstances", one.clone(), None, None),
        ("nothing new", one.clone(), Some(Access::default()), None),
        ("another secret", one.clone(), Some(secrets(std::slice::from_ref(&v))), Some(secrets(&[u.clone(), v]))),
        ("a newer password", one.clone(), Some(secrets(&[secret("u", "9")])), Some(secrets(&[secret("u", "9")]))),
        ("everybody", one.clone(), Some(everybody()), Some(everybody())),
        ("everybody already", everybody(), Some(one.clone()), None),
        (
            "an account beside a secret",
            one.clone(),
            Some(account("sa")),
            Some(Access { kubernetes_secrets: vec![u], ..account("sa") }),
        ),
        ("the same account", account("sa"), Some(account("sa")), None),
    ] {
        let now = Timestamp::from_secs(2_000_000_000);
        let got = merged(Some(&record(before)), "sha256:abc", REPO, new.as_ref(), now);
        let expected = after.map(|a| PullRecord { updated: now, ..record(a) });
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn a_first_record_and_another_repository_are_added() {
    let now = Timestamp::from_secs(5);
    let first = merged(None, "r", REPO, Some(&everybody()), now).unwrap();
    assert_eq!((first.image_ref.as_str(), first.updated, first.access[REPO].clone()), ("r", now, everybody()));
    assert!(merged(None, "r", REPO, None, now).unwrap().access.is_empty(), "known, but open to nobody");
    let second = merged(Some(&first), "r", "quay.io/x", Some(&account("sa")), now).unwrap();
    assert_eq!(second.access.len(), 2);
}
