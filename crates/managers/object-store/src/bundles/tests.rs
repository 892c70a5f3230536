//! Rows of what a projection is given.

use std::sync::Arc;

use contract::objects::FetchTrustAnchors;
use ports::api::{ApiError, Followed, Object};
use serde_json::{Value, json};

use super::{Bundles, REMEMBERED, Stage};

pub(crate) fn pem(der: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n")
}

fn bundle(name: &str, signer: Option<&str>, env: &str, anchors: &str) -> Object {
    let metadata =
        json!({"name": name, "labels": {"env": env}, "resourceVersion": format!("v-{name}-{}", anchors.len())});
    let spec = json!({"signerName": signer, "trustBundle": anchors});
    Object::ClusterTrustBundle(Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()))
}

fn ask(fields: Value) -> FetchTrustAnchors {
    let mut ask = json!({"name": null, "signer_name": null, "label_selector": null, "optional": false});
    ask.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    serde_json::from_value(ask).unwrap()
}

fn told(bundles: &mut Bundles, fields: Value) -> String {
    match bundles.answer(&ask(fields)) {
        Ok(text) => text.replace("-----BEGIN CERTIFICATE-----\n", "").replace("-----END CERTIFICATE-----\n", ""),
        Err(e) => format!("error: {e}"),
    }
}

fn some() -> Bundles {
    let mut bundles = Bundles::default();
    bundles.apply(Followed::All(vec![
        bundle("root", None, "prod", &format!("{}{}", pem("Yg=="), pem("YQ=="))),
        bundle("s:one", Some("s"), "prod", &pem("YQ==")),
        bundle("s:two", Some("s"), "test", &format!("{}{}", pem("Yw=="), pem("YQ=="))),
    ]));
    bundles
}

#[test]
fn anchors_are_those_of_the_bundles_that_are_meant() {
    let mut bundles = some();
    let prod = json!({"matchLabels": {"env": "prod"}});
    let zero = "error: combination of signerName and labelSelector matched zero ClusterTrustBundles";
    let rows = [
        ("by name", json!({"name": "root"}), "YQ==\nYg==\n"),
        ("by signer", json!({"signer_name": "s", "label_selector": {}}), "YQ==\nYw==\n"),
        ("by signer and label", json!({"signer_name": "s", "label_selector": prod}), "YQ==\n"),
        ("no selector", json!({"signer_name": "s"}), zero),
        ("no selector, optional", json!({"signer_name": "s", "optional": true}), ""),
        ("another signer", json!({"signer_name": "x", "label_selector": {}}), zero),
        ("another signer, optional", json!({"signer_name": "x", "label_selector": {}, "optional": true}), ""),
        (
            "no such bundle",
            json!({"name": "x"}),
            "error: while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"x\" not found",
        ),
        ("no such bundle, optional", json!({"name": "x", "optional": true}), ""),
        ("nothing", json!({}), "error: ClusterTrustBundle projection requires either name or signerName to be set"),
        (
            "a broken selector is not forgiven",
            json!({"signer_name": "s", "optional": true, "label_selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}),
            "error: while parsing label selector: \"?\" is not a valid label selector operator",
        ),
    ];
    for (what, fields, wanted) in rows {
        assert_eq!(told(&mut bundles, fields.clone()), wanted, "{what}");
        assert_eq!(told(&mut bundles, fields), wanted, "{what}, once more");
    }
}

#[test]
fn a_change_is_another_version_and_another_answer() {
    let mut bundles = some();
    let (name, mut seen) = (json!({"name": "root"}), vec![bundles.version()]);
    let steps = [
        (Followed::Applied(bundle("root", None, "prod", &pem("eA=="))), "eA==\n"),
        (Followed::Applied(bundle("other", None, "prod", &pem("eQ=="))), "eA==\n"),
        (
            Followed::Deleted(bundle("root", None, "prod", &pem("eA=="))),
            "error: while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io \"root\" not found",
        ),
    ];
    for (step, wanted) in steps {
        bundles.apply(step);
        assert_eq!(told(&mut bundles, name.clone()), wanted);
        assert!(!seen.contains(&bundles.version()), "{seen:?}");
        seen.push(bundles.version());
    }
    bundles.apply(Followed::Failed(ApiError::Garbage { message: "x".to_owned() }));
    assert_eq!(seen.last(), Some(&bundles.version()));
}

#[test]
fn until_the_first_list_a_kubelets_words_are_given() {
    let rows = [
        (Stage::Asked, "ClusterTrustBundle informer has not yet synced"),
        (Stage::NotListed, "ClusterTrustBundle informer has not yet synced"),
        (Stage::NotServed, "ClusterTrustBundle projection is not supported in static kubelet mode"),
        (
            Stage::NotTold("boom".to_owned()),
            "failed to ensure informer manager for ClusterTrustBundles: failed to determine which informer manager to choose: boom",
        ),
    ];
    for (stage, wanted) in rows {
        let mut bundles = Bundles::default();
        bundles.at(stage.clone());
        let optional = json!({"name": "x", "optional": true});
        assert_eq!(told(&mut bundles, optional), format!("error: {wanted}"), "{stage:?}");
    }
    let mut bundles = some();
    bundles.not_listed();
    assert_eq!(told(&mut bundles, json!({"name": "root"})), "YQ==\nYg==\n", "what was read still stands");
}

#[test]
fn a_bounded_number_of_answers_is_remembered() {
    let mut bundles = some();
    for n in 0..(3 * REMEMBERED) {
        let fields = json!({"signer_name": "s", "label_selector": {"matchExpressions": [
            {"key": "env", "operator": "NotIn", "values": [n.to_string()]}]}});
        assert_eq!(told(&mut bundles, fields), "YQ==\nYw==\n");
        assert!(bundles.made.len() <= REMEMBERED);
    }
}
