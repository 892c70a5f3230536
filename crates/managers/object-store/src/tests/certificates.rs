//! Certificates of pods: a signer of the test issues them, and does not.

use std::sync::Arc;
use std::time::Duration;

use actor::Class;
use actor::testing::{run, run_real, settle, spin_until};
use contract::node::{NodeOrigin, NodeView};
use contract::objects::{FetchPodCertificate, ObjectVersion, PodCertificate};
use fakes::{Events, FakeApi};
use model::core::{Pod, ServiceAccount};
use model::k8s_openapi::api::certificates::v1beta1::{PodCertificateRequest, PodCertificateRequestStatus};
use model::object::ObjectRef;
use ports::api::{ApiError, ApiServer};
use serde_json::{Value, json};

use super::Store;
use crate::{Config, ObjectCache};

struct Bench {
    store: Store,
    cache: ObjectCache,
    events: Events,
}

fn start(kernel: &actor::Kernel, api: &FakeApi, pod_certificates: bool) -> Bench {
    let config = Config { pod_certificates, node_name: "n1".to_owned(), ..Config::default() };
    let port: Arc<dyn ApiServer> = Arc::new(api.clone());
    let cache = ObjectCache::default();
    let store = Store::of(kernel, api, Some(port), Arc::new(config), cache.clone());
    let events = Events::on(&store.wiring);
    let node = fakes::object(json!({"metadata": {"name": "n1", "uid": "node-uid"}}));
    store.wiring.set(NodeView { node: Some(Arc::new(node)), origin: NodeOrigin::Api, ..NodeView::default() });
    let account = json!({"metadata": {"name": "robot", "namespace": "ns", "uid": "account-uid"}});
    api.put(&fakes::object::<ServiceAccount>(account));
    Bench { store, cache, events }
}

/// A server whose clock is that of the node.
fn same_clock(kernel: &actor::Kernel) -> FakeApi {
    let wall = i128::from(kernel.clock().unix_nanos());
    FakeApi::at(model::k8s_openapi::jiff::Timestamp::from_nanosecond(wall).unwrap())
}

fn pod(uid: &str, key_type: &str) -> Arc<Pod> {
    let source = json!({"podCertificate": {"signerName": "s", "keyType": key_type, "credentialBundlePath": "b"}});
    let volumes = json!([{"name": "v", "projected": {"sources": [source]}}]);
    let spec = json!({"containers": [], "serviceAccountName": "robot", "volumes": volumes});
    Arc::new(fakes::pod(uid, json!({"metadata": {"namespace": "ns"}, "spec": spec})))
}

fn requests(api: &FakeApi) -> Vec<PodCertificateRequest> {
    api.read_all::<PodCertificateRequest>(Some("ns"))
}

/// The signer's word on the newest request.
fn end(api: &FakeApi, kind: &str, life_s: i64) {
    let newest = requests(api)
        .into_iter()
        .max_by_key(|r| r.metadata.resource_version.as_ref().and_then(|v| v.parse::<u64>().ok()));
    let name = newest.unwrap().metadata.name.unwrap();
    let (now, later) = (api.now(), |s: i64| (api.now() + Duration::from_secs(s.unsigned_abs())).to_string());
    let mut status = json!({"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": now.to_string()}]});
    if kind == "Issued" {
        let chain = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", "YWFh");
        let fields = json!({"certificateChain": chain, "notBefore": now.to_string(),
            "beginRefreshAt": later(life_s / 2), "notAfter": later(life_s)});
        status.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    }
    let status: PodCertificateRequestStatus = serde_json::from_value::<Value>(status).map(fakes::object).unwrap();
    api.change::<PodCertificateRequest>(Some("ns"), &name, |r| r.status = Some(status));
}

impl Bench {
    async fn certificate(&self, pod: &Arc<Pod>) -> Result<PodCertificate, String> {
        let ask = FetchPodCertificate { pod: pod.clone(), volume: "v".to_owned(), index: 0 };
        self.store.wiring.ask(ask).await.unwrap().map_err(|e| e.to_string())
    }

    fn version(&self, uid: &str) -> Option<String> {
        let object = ObjectRef::pod_certificate("ns", &uid.into(), "v", 0);
        self.store.wiring.board::<ObjectVersion>().get(&object).map(|v| v.resource_version.clone())
    }
}

#[test]
fn a_pod_that_is_here_is_got_its_certificate_and_a_new_one_in_time() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, true);
        let pod = pod("u1", "ED25519");
        assert_eq!(bench.certificate(&pod).await.unwrap_err(), "no credentials yet for key={ns u1 u1 v 0}");
        bench.store.hold(&pod).await;
        settle().await;
        bench.store.hold(&pod).await;
        settle().await;
        assert_eq!(requests(&api).len(), 1, "once, however often the pod is held");
        let spec = requests(&api).remove(0).spec;
        assert_eq!((spec.node_uid.as_str(), spec.service_account_uid.as_str()), ("node-uid", "account-uid"));
        let own = api.lists().into_iter().filter(|s| s.field_selector == "spec.nodeName=n1").count();
        assert_eq!(own, 1, "only the node's own are followed");
        assert_eq!(bench.certificate(&pod).await.unwrap_err(), "credential bundle is not issued yet");
        let before = bench.version("u1");
        end(&api, "Issued", 24 * 3600);
        settle().await;
        let first = bench.certificate(&pod).await.unwrap();
        assert_ne!(bench.version("u1"), before, "volumes are told");
        tokio::time::sleep(Duration::from_secs(11 * 3600)).await;
        assert_eq!(requests(&api).len(), 1);
        tokio::time::sleep(Duration::from_secs(3600 + 5 * 60)).await;
        assert_eq!(requests(&api).len(), 2, "in the five minutes after its time");
        assert_eq!(bench.certificate(&pod).await.unwrap(), first, "until the new one is issued");
        end(&api, "Issued", 24 * 3600);
        settle().await;
        assert_ne!(bench.certificate(&pod).await.unwrap().key_pem, first.key_pem);
        assert_eq!(bench.events.lines(), Vec::<String>::new());
        bench.store.release(&pod).await;
        settle().await;
        assert!(bench.certificate(&pod).await.is_err() && bench.version("u1").is_none(), "the key is gone");
        tokio::time::sleep(Duration::from_secs(48 * 3600)).await;
        assert_eq!(requests(&api).len(), 2);
    });
}

/// Of a server whose clock is behind, every request is old and every certificate due when they come.
#[test]
fn a_clock_that_goes_before_the_servers_makes_no_storm_of_requests() {
    run(1, |kernel| async move {
        let wall = i128::from(kernel.clock().unix_nanos()) - i128::from(3600 * 1_000_000_000_u64);
        let api = FakeApi::at(model::k8s_openapi::jiff::Timestamp::from_nanosecond(wall).unwrap());
        let bench = start(&kernel, &api, true);
        // In a storm time would stand still, and a sleep never end.
        let look = async || {
            for _ in 0..2000 {
                tokio::task::yield_now().await;
            }
            requests(&api).len()
        };
        let pod = pod("u1", "ED25519");
        bench.store.hold(&pod).await;
        assert_eq!(look().await, 1, "it is waited for");
        settle().await;
        for made in 2..5 {
            end(&api, "Issued", 3600);
            assert_eq!(look().await, made - 1);
            tokio::time::sleep(Duration::from_secs(55)).await;
            assert_eq!(requests(&api).len(), made - 1, "not at once");
            tokio::time::sleep(Duration::from_secs(6 * 60)).await;
            assert_eq!(requests(&api).len(), made);
        }
    });
}

/// What an actor leaves that dies while it lets a pod go.
#[test]
fn the_key_of_a_pod_that_is_gone_goes_with_the_next_actor() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, true);
        let pod = pod("u1", "ED25519");
        bench.store.hold(&pod).await;
        settle().await;
        end(&api, "Issued", 24 * 3600);
        settle().await;
        assert!(bench.certificate(&pod).await.is_ok());
        bench.cache.holds.remove(&"u1".into());
        bench.store.actor.kill();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(bench.cache.certificates.is_empty() && bench.version("u1").is_none());
        bench.store.release(&pod).await;
        tokio::time::sleep(Duration::from_secs(48 * 3600)).await;
        assert_eq!(requests(&api).len(), 1, "nor is it renewed");
    });
}

#[test]
fn a_refusal_is_for_good_and_told_of() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, true);
        let denied = pod("u1", "ECDSAP256");
        bench.store.hold(&denied).await;
        settle().await;
        end(&api, "Denied", 0);
        settle().await;
        let text = "PodCertificateRequest was permanently denied: reason=\"R\" message=\"m\"";
        assert_eq!(bench.certificate(&denied).await.unwrap_err(), text);
        let lines = bench.events.lines();
        assert!(lines.len() == 1 && lines[0].starts_with("Warning Denied: PodCertificateRequest ns/req-"), "{lines:?}");
        tokio::time::sleep(Duration::from_secs(48 * 3600)).await;
        assert_eq!(requests(&api).len(), 1);
    });
}

#[test]
fn keys_that_take_long_are_made_off_the_actors_thread_one_behind_the_other() {
    run_real(|kernel| async move {
        let api = FakeApi::default();
        let bench = start(&kernel, &api, true);
        // The thread of slow keys is taken: what needs it waits, what does not goes on.
        let (open, shut) = std::sync::mpsc::channel::<()>();
        let (slow_keys, effects) = (bench.cache.slow_keys.clone(), kernel.effects("test"));
        let held = tokio::spawn(async move {
            slow_keys.run(&(), &effects, Class::Computing, move || shut.recv().unwrap_err()).await;
        });
        spin_until("the way is taken", || bench.cache.slow_keys.is_busy(&())).await;
        let pods = [pod("u1", "RSA3072"), pod("u2", "RSA3072"), pod("u3", "ECDSAP521")];
        for pod in &pods {
            bench.store.hold(pod).await;
        }
        spin_until("a quick key is asked for", || requests(&api).len() == 1).await;
        assert_eq!(requests(&api)[0].spec.pod_uid, "u3");
        bench.store.release(&pods[1]).await;
        drop(open);
        held.await.unwrap();
        spin_until("a slow key is asked for", || requests(&api).len() == 2).await;
        // Whoever comes next would wait behind the key of the pod that is gone.
        bench.store.hold(&pod("u4", "RSA3072")).await;
        spin_until("the next one is asked for", || requests(&api).len() == 3).await;
        let asked: Vec<String> = requests(&api).into_iter().map(|r| r.spec.pod_uid).collect();
        assert!(!asked.contains(&"u2".to_owned()), "a pod that is gone needs no key: {asked:?}");
    });
}

#[test]
fn what_cannot_be_asked_for_is_asked_for_again() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        api.fail("POST", "podcertificaterequests", 3, ApiError::status(503, "ServiceUnavailable", "no"));
        let bench = start(&kernel, &api, true);
        let pod = pod("u1", "ECDSAP384");
        bench.store.hold(&pod).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(api.requests_of("POST", "podcertificaterequests").len(), 3, "after 0, 1 and 3 s");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(requests(&api).len(), 1);
        let name = requests(&api).remove(0).metadata.name.unwrap();
        api.vanish::<PodCertificateRequest>(Some("ns"), &name);
        tokio::time::sleep(Duration::from_secs(9 * 60)).await;
        assert_eq!(requests(&api).len(), 0);
        tokio::time::sleep(Duration::from_secs(7 * 60)).await;
        assert_eq!(requests(&api).len(), 1, "one that was deleted is made anew");
    });
}

#[test]
fn another_actor_goes_on_with_the_same_keys() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, true);
        let (fresh, waiting) = (pod("u1", "ED25519"), pod("u2", "ED25519"));
        bench.store.hold(&fresh).await;
        settle().await;
        end(&api, "Issued", 2 * 3600);
        bench.store.hold(&waiting).await;
        settle().await;
        let before = bench.certificate(&fresh).await.unwrap();
        bench.store.actor.kill();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.certificate(&fresh).await.unwrap(), before);
        assert_eq!(requests(&api).len(), 2, "nothing is asked for twice");
        end(&api, "Issued", 2 * 3600);
        settle().await;
        assert!(bench.certificate(&waiting).await.is_ok());
        tokio::time::sleep(Duration::from_secs(3600 + 5 * 60)).await;
        assert_eq!(requests(&api).len(), 4, "both are renewed");
    });
}

#[test]
fn without_the_gate_nothing_is_asked_for() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, false);
        let pod = pod("u1", "ED25519");
        bench.store.hold(&pod).await;
        settle().await;
        assert_eq!(bench.certificate(&pod).await.unwrap_err(), "unimplemented");
        assert_eq!((requests(&api).len(), api.lists().len()), (0, 1), "the services only");
    });
}

#[test]
fn a_death_over_a_question_for_a_certificate_costs_one_answer() {
    run(1, |kernel| async move {
        let api = same_clock(&kernel);
        let bench = start(&kernel, &api, true);
        let pod = pod("u1", "ED25519");
        bench.store.hold(&pod).await;
        settle().await;
        end(&api, "Issued", 24 * 3600);
        settle().await;
        kernel.faults().enable();
        kernel.faults().add_text("object-store: panic@turn:FetchPodCertificate#1").unwrap();
        let ask = FetchPodCertificate { pod: pod.clone(), volume: "v".to_owned(), index: 0 };
        assert!(bench.store.wiring.ask(ask).await.is_err(), "who asked is told");
        assert_eq!(kernel.faults().log().len(), 1);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(bench.certificate(&pod).await.is_ok());
        assert_eq!(requests(&api).len(), 1, "nothing is asked for twice");
    });
}
