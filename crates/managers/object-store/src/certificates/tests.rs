//! The life of one certificate, step by step.

use std::time::Duration;

use model::Timestamp;
use model::core::Pod;
use model::k8s_openapi::api::certificates::v1beta1::PodCertificateRequest;
use serde_json::{Value, json};

use super::{Asked, Next, Record, request, wanted};

const MINUTE: i64 = 60;

const fn at(s: i64) -> Timestamp {
    Timestamp::from_secs(s)
}

/// One nanosecond after.
fn past(s: i64) -> Next {
    Next::At(at(s).plus(Duration::from_nanos(1)))
}

fn pod(source: Value) -> Pod {
    let mut certificate = json!({"signerName": "example.com/s", "keyType": "ED25519"});
    certificate.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
    let volumes =
        json!([{"name": "v", "projected": {"sources": [{"downwardAPI": {}}, {"podCertificate": certificate}]}}]);
    let spec = json!({"containers": [], "serviceAccountName": "robot", "volumes": volumes});
    fakes::pod("u1", json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec}))
}

fn record() -> Record {
    Record::new(wanted(&pod(json!({}))).into_values().next().unwrap())
}

fn seen(status: Value) -> PodCertificateRequest {
    let spec = json!({"nodeName": "n", "nodeUID": "n", "podName": "p", "podUID": "u", "serviceAccountName": "a",
        "serviceAccountUID": "a", "signerName": "s", "stubPKCS10Request": ""});
    serde_json::from_value(json!({"metadata": {"name": "req-1"}, "spec": spec, "status": status})).unwrap()
}

fn condition(kind: &str) -> Value {
    json!([{"type": kind, "status": "True", "reason": "Why", "message": "because \"so\"",
        "lastTransitionTime": "1970-01-01T00:00:00Z"}])
}

fn issued(begin_refresh_at: &str, not_after: &str) -> PodCertificateRequest {
    let chain = "comment\n-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n";
    seen(json!({"conditions": condition("Issued"), "certificateChain": chain,
        "beginRefreshAt": begin_refresh_at, "notAfter": not_after, "notBefore": "1970-01-01T00:00:00Z"}))
}

fn asked(name: &str, created_at: i64) -> Asked {
    Asked::new(format!("key of {name}").into(), name.to_owned(), at(created_at), Duration::from_secs(7))
}

#[test]
fn a_request_says_what_the_pod_wants() {
    let fields = json!({"maxExpirationSeconds": 7200, "userAnnotations": {"example.com/a": "b"}});
    let all = wanted(&pod(fields));
    let (object, wanted) = all.first_key_value().unwrap();
    assert_eq!((object.namespace.as_str(), object.name.as_str(), all.len()), ("ns", "u1/v/1", 1));
    let made = serde_json::to_value(request(wanted, ("n1", "node-uid"), "account-uid", vec![1, 2])).unwrap();
    let meta = json!({"generateName": "req-", "namespace": "ns",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1"}]});
    let spec = json!({"signerName": "example.com/s", "podName": "web", "podUID": "u1", "serviceAccountName": "robot",
        "serviceAccountUID": "account-uid", "nodeName": "n1", "nodeUID": "node-uid", "maxExpirationSeconds": 7200,
        "stubPKCS10Request": "AQI=", "unverifiedUserAnnotations": {"example.com/a": "b"}});
    assert_eq!((&made["metadata"], &made["spec"]), (&meta, &spec));
}

#[test]
fn a_certificate_is_asked_for_issued_and_renewed() {
    let mut record = record();
    assert_eq!(record.next(at(0), false), Next::Ask);
    assert_eq!(record.answer().unwrap_err(), "credential bundle is not issued yet");
    record.ask(asked("req-1", 0));
    assert_eq!(record.next(at(1), false), past(10 * MINUTE + 7), "it may have been deleted");
    assert_eq!(record.next(at(1), true), Next::Nothing, "it is waited for");
    assert_eq!(record.see(&seen(json!({})), at(1), Duration::ZERO), None);
    assert_eq!(record.word(at(1)), "not_yet_issued");
    let jitter = Duration::from_secs(3);
    assert_eq!(record.see(&issued("1970-01-01T01:00:00Z", "1970-01-01T02:00:00Z"), at(1), jitter), None);
    let pair = record.answer().unwrap();
    assert_eq!(&*pair.key_pem, "key of req-1");
    assert_eq!(&*pair.chain_pem, "-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n");
    assert_eq!((record.version().as_str(), record.word(at(1))), ("req-1", "fresh"));
    assert_eq!(record.next(at(1), false), Next::At(at(60 * MINUTE + 3)));
    assert_eq!(record.next(at(60 * MINUTE + 3), false), Next::Ask);
    record.ask(asked("req-2", 60 * MINUTE + 4));
    assert_eq!(record.asked().unwrap().name, "req-2");
    assert_eq!(&*record.answer().unwrap().key_pem, "key of req-1", "until the new one is there");
    assert_eq!(record.see(&issued("1970-01-01T03:00:00Z", "1970-01-01T04:00:00Z"), at(60 * MINUTE + 5), jitter), None);
    assert_eq!((&*record.answer().unwrap().key_pem, record.version().as_str()), ("key of req-2", "req-2"));
    assert!(record.asked().is_none());
}

#[test]
fn what_is_refused_stays_so() {
    let rows = [
        ("Denied", "denied", "was denied", "permanently denied"),
        ("Failed", "failed", "failed", "permanently failed"),
    ];
    for (kind, word, verb, how) in rows {
        let mut record = record();
        record.ask(asked("req-1", 0));
        let said = record.see(&seen(json!({"conditions": condition(kind)})), at(1), Duration::ZERO).unwrap();
        let why = "reason=\"Why\", message=\"because \\\"so\\\"\"";
        assert_eq!((&*said.reason, said.message), (kind, format!("PodCertificateRequest ns/req-1 {verb}, {why}")));
        let text = format!("PodCertificateRequest was {how}: reason=\"Why\" message=\"because \\\"so\\\"\"");
        assert_eq!(record.answer().unwrap_err(), text);
        assert_eq!((record.next(at(1_000_000), false), record.word(at(0))), (Next::Nothing, word));
        assert!(record.pass(at(1_000_000), false).is_empty());
    }
}

#[test]
fn a_request_that_nobody_shows_is_made_anew() {
    let mut record = record();
    record.ask(asked("req-1", 0));
    assert!(record.pass(at(10 * MINUTE + 7), false).is_empty());
    assert!(record.asked().is_some(), "a watch may be late");
    assert!(record.pass(at(10 * MINUTE + 8), true).is_empty());
    assert!(record.asked().is_some(), "it is there");
    assert!(record.pass(at(10 * MINUTE + 8), false).is_empty());
    assert_eq!((record.asked().is_some(), record.next(at(10 * MINUTE + 8), false)), (false, Next::Ask));
}

#[test]
fn what_is_late_is_told_of_once() {
    let mut record = record();
    record.ask(asked("req-1", 0));
    record.see(&issued("1970-01-01T00:10:00Z", "1970-01-01T00:30:00Z"), at(1), Duration::ZERO);
    record.ask(asked("req-2", 10 * MINUTE));
    let reasons = |record: &mut Record, now: i64| -> Vec<String> {
        record.pass(at(now), true).iter().map(|e| e.reason.to_string()).collect()
    };
    assert_eq!(record.next(at(10 * MINUTE), true), past(20 * MINUTE));
    assert_eq!(reasons(&mut record, 20 * MINUTE), Vec::<String>::new());
    assert_eq!(reasons(&mut record, 20 * MINUTE + 1), ["CertificateOverdueForRefresh"]);
    assert_eq!(record.word(at(20 * MINUTE + 1)), "overdue_for_refresh");
    assert_eq!(record.next(at(20 * MINUTE + 1), true), past(30 * MINUTE));
    assert_eq!(reasons(&mut record, 30 * MINUTE + 1), ["CertificateExpired"]);
    assert_eq!((record.word(at(30 * MINUTE + 1)), record.next(at(30 * MINUTE + 1), true)), ("expired", Next::Nothing));
    assert_eq!(reasons(&mut record, 90 * MINUTE), Vec::<String>::new());
    assert!(record.answer().is_ok(), "the old one is better than none");
}

#[test]
fn keys_stay_out_of_logs() {
    let mut record = record();
    record.ask(asked("req-1", 0));
    record.see(&issued("1970-01-01T00:10:00Z", "1970-01-01T00:30:00Z"), at(1), Duration::ZERO);
    assert!(!format!("{record:?} {:?}", record.answer()).contains("key of"));
}
