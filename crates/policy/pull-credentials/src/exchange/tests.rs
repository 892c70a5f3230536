//! Both directions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CacheScope, answer, request};

const V1: &str = "credentialprovider.kubelet.k8s.io/v1";

#[test]
fn a_request_holds_what_the_plugin_may_know() {
    let plain: Value = serde_json::from_slice(&request(V1, "r.io/app", None, &BTreeMap::new())).unwrap();
    assert_eq!(plain, json!({"kind": "CredentialProviderRequest", "apiVersion": V1, "image": "r.io/app"}));
    let notes = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let with_token: Value = serde_json::from_slice(&request(V1, "r.io/app", Some("tok"), &notes)).unwrap();
    assert_eq!(with_token["serviceAccountToken"], "tok");
    assert_eq!(with_token["serviceAccountAnnotations"], json!({"a": "b"}));
}

fn read(changes: Value) -> Result<super::Answer, String> {
    let mut a = json!({
        "kind": "CredentialProviderResponse", "apiVersion": V1, "cacheKeyType": "Registry", "cacheDuration": "6h",
        "auth": {"*.r.io": {"username": "u", "password": "p"}},
    });
    a.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    answer(V1, a.to_string().as_bytes()).map_err(|e| e.to_string())
}

#[test]
fn an_answer_is_read() {
    let a = read(json!({})).unwrap();
    assert_eq!((a.scope, a.cache_duration), (CacheScope::Registry, Some(Duration::from_secs(6 * 3600))));
    assert_eq!((a.auths["*.r.io"].username.as_str(), a.auths["*.r.io"].password.as_str()), ("u", "p"));
    assert_eq!(read(json!({"cacheKeyType": "Image"})).unwrap().scope, CacheScope::Image);
    assert_eq!(read(json!({"cacheKeyType": "Global"})).unwrap().scope, CacheScope::Global);
    assert_eq!(read(json!({"cacheDuration": null})).unwrap().cache_duration, None);
    assert_eq!(read(json!({"cacheDuration": "-5s"})).unwrap().cache_duration, Some(Duration::ZERO));
    assert!(read(json!({"auth": null})).unwrap().auths.is_empty());
}

#[test]
fn answers_that_are_refused_are_not_quoted() {
    let shape = "error decoding credential provider plugin response from stdout";
    for (changes, error) in [
        (
            json!({"apiVersion": "v9"}),
            "apiVersion from credential plugin response did not match expected apiVersion:credentialprovider.kubelet.k8s.io/v1, actual apiVersion:v9",
        ),
        (json!({"kind": "Pod"}), shape),
        (json!({"surprise": "p"}), shape),
        (json!({"auth": {"r": {"token": "p"}}}), shape),
        (json!({"cacheDuration": "soon"}), shape),
        (json!({"cacheKeyType": "Pod"}), "credential provider plugin did not return a valid cacheKeyType: \"Pod\""),
        (json!({"cacheKeyType": ""}), "credential provider plugin did not return a valid cacheKeyType: \"\""),
    ] {
        assert_eq!(read(changes).unwrap_err(), error);
    }
    assert_eq!(answer(V1, b"password: p").unwrap_err().to_string(), shape);
}
