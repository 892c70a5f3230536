//! Rows of node-and-resources 6.9.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::core::Pod;
use model::k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, json};

use super::{DownwardApi, Payload, PayloadInput, ProjectedFile, payload};
use crate::fixture::{volume, with_spec};
use crate::needs::{Credential, Fetched, Missing, SourceSlot, TokenSlot, needs};

fn fetched() -> Fetched {
    let map = json!({"data": {"a": "1", "b.txt": "two\n", "bad-key": "x"}, "binaryData": {"bin": "AAEC"}});
    let secret = json!({"data": {"user": "dQ==", "pass": "cA=="}});
    let gone = |kind: &str| Missing { not_found: true, text: format!("{kind} \"nope\" not found") };
    let slot = |index| SourceSlot { volume: "v".to_owned(), index };
    let away = || Missing { not_found: false, text: "failed to sync configmap cache: timed out".to_owned() };
    Fetched {
        config_maps: BTreeMap::from([
            ("cm".into(), Ok(Arc::new(serde_json::from_value(map).unwrap()))),
            ("nope".into(), Err(gone("configmap"))),
            ("away".into(), Err(away())),
        ]),
        secrets: BTreeMap::from([
            ("sec".into(), Ok(Arc::new(serde_json::from_value(secret).unwrap()))),
            ("nope".into(), Err(gone("secret"))),
        ]),
        tokens: BTreeMap::from([
            (TokenSlot { audience: "me".into(), expiration_s: 600 }, Ok("tok-me".into())),
            (TokenSlot { audience: String::new(), expiration_s: 3600 }, Ok("tok".into())),
            (
                TokenSlot { audience: "bad".into(), expiration_s: 3600 },
                Err(Missing { not_found: false, text: "failed to fetch token: no".into() }),
            ),
        ]),
        trust_anchors: BTreeMap::from([
            (slot(0), Err(Missing { not_found: false, text: "no anchors".into() })),
            (slot(1), Ok("ROOT".into())),
        ]),
        certificates: BTreeMap::from([
            (slot(0), Err(Missing { not_found: false, text: "no certificate".into() })),
            (slot(2), Ok(Credential { key_pem: "KEY\n".into(), chain_pem: "CHAIN\n".into() })),
        ]),
    }
}

struct Owners(Option<u32>, Option<u32>);

fn made_for(pod: &Pod, source: Value, owners: &Owners) -> Result<Payload, String> {
    let allocatable = BTreeMap::from([("cpu".to_owned(), Quantity("4".into()))]);
    let fetched = fetched();
    let input = PayloadInput {
        pod,
        fetched: &fetched,
        downward_api: ECHO,
        allocatable: &allocatable,
        fs_user: owners.0,
        fs_group: owners.1,
    };
    payload(&volume(source), &input)
}

fn made(source: Value) -> Result<Payload, String> {
    let pod = with_spec(json!({"containers": [{"name": "app", "resources": {"requests": {"memory": "10Mi"}}}]}));
    made_for(&pod, source, &Owners(None, None))
}

/// `path mode content`, or the error.
fn shown(source: Value) -> Vec<String> {
    match made(source) {
        Ok(files) => {
            files.iter().map(|(path, f)| format!("{path} {:o} {}", f.mode, String::from_utf8_lossy(&f.data))).collect()
        }
        Err(e) => vec![e],
    }
}

#[test]
fn payloads_table() {
    let cm = |fields: Value| {
        let mut v = json!({"name": "cm", "defaultMode": 0o644});
        v.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"configMap": v})
    };
    let secret = |fields: Value| {
        let mut v = json!({"secretName": "sec", "defaultMode": 0o644});
        v.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"secret": v})
    };
    let whole = ["a 644 1", "b.txt 644 two\n", "bad-key 644 x", "bin 644 \0\u{1}\u{2}"];
    let not_found = ["configmap \"nope\" not found"];
    let no_key = ["configmap references non-existent config key: k"];
    let rows: Vec<(&str, Value, &[&str])> = vec![
        ("all keys", cm(json!({})), &whole),
        ("listed keys", cm(json!({"items": [{"key": "a", "path": "x/a"}]})), &["x/a 644 1"]),
        (
            "mode of an item",
            cm(json!({"items": [{"key": "bin", "path": "b", "mode": 0o400}]})),
            &["b 400 \0\u{1}\u{2}"],
        ),
        ("default mode", cm(json!({"defaultMode": 0o400, "items": [{"key": "a", "path": "a"}]})), &["a 400 1"]),
        ("missing key", cm(json!({"items": [{"key": "k", "path": "k"}]})), &no_key),
        (
            "missing key, optional",
            cm(json!({"optional": true, "items": [{"key": "k", "path": "k"}, {"key": "a", "path": "a"}]})),
            &["a 644 1"],
        ),
        ("missing object", cm(json!({"name": "nope"})), &not_found),
        ("missing object, optional", cm(json!({"name": "nope", "optional": true})), &[]),
        (
            "missing object, optional, items",
            cm(json!({"name": "nope", "optional": true, "items": [{"key": "k", "path": "k"}]})),
            &[],
        ),
        (
            "optional forgives only absence",
            cm(json!({"name": "away", "optional": true})),
            &["failed to sync configmap cache: timed out"],
        ),
        ("never fetched", cm(json!({"name": "other"})), &["configmap \"other\" was not fetched"]),
        (
            "no mode at all",
            json!({"configMap": {"name": "cm"}}),
            &["no defaultMode used, not even the default value for it"],
        ),
        ("secret", secret(json!({})), &["pass 644 p", "user 644 u"]),
        ("secret items", secret(json!({"items": [{"key": "user", "path": "d/u", "mode": 288}]})), &["d/u 440 u"]),
        (
            "secret missing key",
            secret(json!({"items": [{"key": "k", "path": "k"}]})),
            &["references non-existent secret key: k"],
        ),
        ("secret missing", secret(json!({"secretName": "nope"})), &["secret \"nope\" not found"]),
        ("secret missing, optional", secret(json!({"secretName": "nope", "optional": true})), &[]),
        ("another kind", json!({"emptyDir": {}}), &[]),
    ];
    for (name, source, expected) in rows {
        assert_eq!(shown(source), expected, "{name}");
    }
}

/// Shows what was asked for; the rules themselves are tested in container-config.
const ECHO: DownwardApi = DownwardApi {
    field: |path, pod| match path {
        "metadata.name" => Ok(model::pod::name(pod).to_owned()),
        "bad" => Err("unsupported fieldPath: bad".to_owned()),
        other => Ok(format!("field {other}")),
    },
    resource: |r, _, allocatable| match r.resource.as_str() {
        "bad" => Err("unsupported container resource : bad".to_owned()),
        other => Ok(format!("{other} of {:?}, node {}", r.container_name, allocatable["cpu"].0)),
    },
};

#[test]
fn downward_fields_table() {
    let one = |items: Value| json!({"downwardAPI": {"defaultMode": 0o644, "items": items}});
    let field = |path: &str| json!({"path": "f", "fieldRef": {"fieldPath": path}});
    let resource = |name: &str| json!({"path": "./f", "mode": 0o400, "resourceFieldRef": {"containerName": "app", "resource": name}});
    for (name, items, expected) in [
        ("a field", json!([field("metadata.uid")]), "f 644 field metadata.uid"),
        ("a resource, with a mode", json!([resource("limits.cpu")]), "f 400 limits.cpu of Some(\"app\"), node 4"),
        ("neither", json!([{"path": "f"}]), "f 644 "),
        ("a field that does not exist", json!([field("bad")]), "unsupported fieldPath: bad"),
        (
            "two failures",
            json!([field("bad"), resource("bad")]),
            "[unsupported fieldPath: bad, unsupported container resource : bad]",
        ),
    ] {
        assert_eq!(shown(one(items)), [expected], "{name}");
    }
}

fn golden() -> Value {
    json!({"projected": {"defaultMode": 0o644, "sources": [
        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "x/a"}]}},
        {"secret": {"name": "sec"}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"serviceAccountToken": {"path": "tok", "expirationSeconds": 600, "audience": "me"}},
    ]}})
}

#[test]
fn projections_are_laid_over_each_other_in_order() {
    assert_eq!(shown(golden()), ["name 644 p", "pass 644 p", "tok 644 tok-me", "user 644 u", "x/a 644 1"]);
    let over = json!({"projected": {"defaultMode": 0o644, "sources": [
        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "same"}]}},
        {"secret": {"name": "sec", "items": [{"key": "user", "path": "same"}]}},
    ]}});
    assert_eq!(shown(over), ["same 644 u"]);
}

#[test]
fn failures_of_projections_are_told_together_and_each_once() {
    let sources = |list: Value| json!({"projected": {"defaultMode": 0o644, "sources": list}});
    let nope = json!({"configMap": {"name": "nope"}});
    let token = json!({"serviceAccountToken": {"path": "t", "audience": "bad"}});
    for (name, list, expected) in [
        ("one", json!([nope]), "configmap \"nope\" not found"),
        ("twice the same", json!([nope, nope]), "configmap \"nope\" not found"),
        ("two", json!([nope, token]), "[configmap \"nope\" not found, failed to fetch token: no]"),
        ("trust", json!([{"clusterTrustBundle": {"name": "b", "path": "p"}}]), "no anchors"),
        ("certificate", json!([{"podCertificate": {"keyType": "ED25519", "signerName": "s"}}]), "no certificate"),
    ] {
        assert_eq!(shown(sources(list)), [expected], "{name}");
    }
    assert_eq!(
        shown(json!({"projected": {"sources": []}})),
        ["no defaultMode used, not even the default value for it"]
    );
}

#[test]
fn tokens_and_anchors_are_private_where_somebody_is_meant() {
    let pod = with_spec(json!({}));
    let anchors = json!({"projected": {"defaultMode": 0o644, "sources": [
        {"downwardAPI": {}}, {"clusterTrustBundle": {"path": "ca/root.pem"}},
    ]}});
    for (name, owners, mode, owner) in [
        ("for all", Owners(None, None), 0o644, None),
        ("for a user", Owners(Some(7), None), 0o600, Some(7)),
        ("for a group", Owners(None, Some(9)), 0o600, None),
        ("for both", Owners(Some(7), Some(9)), 0o600, Some(7)),
    ] {
        let files = made_for(&pod, golden(), &owners).unwrap();
        assert_eq!((files["tok"].mode, files["tok"].owner), (mode, owner), "{name}");
        assert_eq!((files["user"].mode, files["user"].owner), (0o644, None), "{name}: only they");
        let file = made_for(&pod, anchors.clone(), &owners).unwrap().remove("ca/root.pem").unwrap();
        assert_eq!((file.mode, file.owner, file.data), (mode, owner, b"ROOT".to_vec()), "{name}");
    }
}

#[test]
fn a_certificate_has_the_files_that_are_named() {
    let pod = with_spec(json!({}));
    let files = |paths: Value| {
        let mut source = json!({"keyType": "ED25519", "signerName": "s"});
        source.as_object_mut().unwrap().extend(paths.as_object().unwrap().clone());
        let sources = json!([{"downwardAPI": {}}, {"downwardAPI": {}}, {"podCertificate": source}]);
        let volume = json!({"projected": {"defaultMode": 0o644, "sources": sources}});
        let made = made_for(&pod, volume, &Owners(Some(7), None)).unwrap();
        let line = |(path, f): (&String, &ProjectedFile)| {
            format!("{path} {:o} {:?} {}", f.mode, f.owner, String::from_utf8_lossy(&f.data))
        };
        made.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(files(json!({"credentialBundlePath": "b.pem"})), ["b.pem 600 Some(7) KEY\nCHAIN\n"]);
    assert_eq!(
        files(json!({"keyPath": "k.pem", "certificateChainPath": "c.pem"})),
        ["c.pem 600 Some(7) CHAIN\n", "k.pem 600 Some(7) KEY\n"]
    );
    assert_eq!(files(json!({"keyPath": ""})), Vec::<String>::new());
}

#[test]
fn a_volume_needs_what_its_payload_reads() {
    let n = needs(&volume(golden()));
    assert_eq!(n.config_maps.into_iter().collect::<Vec<_>>(), ["cm"]);
    assert_eq!(n.secrets.into_iter().collect::<Vec<_>>(), ["sec"]);
    assert_eq!(n.tokens.into_iter().collect::<Vec<_>>(), [TokenSlot { audience: "me".into(), expiration_s: 600 }]);
    let n = needs(&volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})));
    assert_eq!(n.tokens.into_iter().collect::<Vec<_>>(), [TokenSlot { audience: String::new(), expiration_s: 3600 }]);
    let n = needs(&volume(json!({"projected": {"sources": [{}, {"clusterTrustBundle": {"path": "t", "name": "b"}}]}})));
    let anchors: Vec<_> = n.trust_anchors.iter().map(|(slot, b)| (slot.index, b.name.as_deref())).collect();
    assert_eq!(anchors, [(1, Some("b"))]);
    assert!(!n.is_empty());
    let n =
        needs(&volume(json!({"projected": {"sources": [{"podCertificate": {"keyType": "k", "signerName": "s"}}]}})));
    assert_eq!(n.certificates.iter().map(|slot| slot.index).collect::<Vec<_>>(), [0]);
    assert!(!n.is_empty());
    assert!(needs(&volume(json!({"downwardAPI": {"items": []}}))).is_empty());
}

#[test]
fn secrets_stay_out_of_debug_texts() {
    let files = made(golden()).unwrap();
    assert!(!format!("{files:?} {:?}", fetched()).contains("tok-me"));
}
