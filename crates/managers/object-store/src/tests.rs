//! The actor against a fake API server, on virtual time.

use std::sync::Arc;
use std::time::Duration;

use actor::Kernel;
use actor::testing::{run, settle};
use contract::Wiring;
use contract::objects::{
    FetchConfigMap, FetchRuntimeClass, FetchSecret, FetchServiceAccount, FetchServices, FetchToken, HoldObjects,
    ObjectError, ObjectVersion, ReleaseObjects, Token,
};
use fakes::FakeApi;
use fakes::api::{Matching, Trouble};
use model::core::{ConfigMap, Pod, Service, ServiceAccount};
use model::k8s_openapi::api::node::v1::RuntimeClass;
use model::object::{ObjectKind, ObjectRef};
use ports::api::{ApiError, ApiServer};

use crate::{Config, Deps, ObjectCache, ObjectStore, Strategy};

mod bundles;
mod certificates;
mod sealed;
mod tokens;

struct Store {
    api: FakeApi,
    wiring: Wiring,
    actor: actor::ActorRef<ObjectStore>,
}

impl Store {
    fn start(kernel: &Kernel, api: &FakeApi, strategy: Strategy) -> Self {
        Self::with(kernel, api, Some(Arc::new(api.clone())), strategy)
    }

    fn with(kernel: &Kernel, api: &FakeApi, port: Option<Arc<dyn ApiServer>>, strategy: Strategy) -> Self {
        let config = Arc::new(Config { strategy, ..Config::default() });
        Self::of(kernel, api, port, config, ObjectCache::default())
    }

    fn of(
        kernel: &Kernel,
        api: &FakeApi,
        port: Option<Arc<dyn ApiServer>>,
        config: Arc<Config>,
        cache: ObjectCache,
    ) -> Self {
        let wiring = Wiring::default();
        let deps = Arc::new(Deps { api: port, cache });
        let new = move |crew| ObjectStore::new(crew, config.clone(), deps.clone());
        let actor = fakes::start(kernel, &wiring, new);
        Self { api: api.clone(), wiring, actor }
    }

    async fn hold(&self, pod: &Arc<Pod>) {
        self.wiring.ask(HoldObjects { pod: pod.clone() }).await.unwrap();
    }

    async fn release(&self, pod: &Arc<Pod>) {
        self.wiring.ask(ReleaseObjects { uid: model::pod::uid(pod) }).await.unwrap();
    }

    async fn config_map(&self, name: &str) -> Result<String, ObjectError> {
        let ask = FetchConfigMap { namespace: "ns".to_owned(), name: name.to_owned() };
        let found = self.wiring.ask(ask).await.unwrap()?;
        Ok(found.data.clone().unwrap_or_default().remove("k").unwrap_or_default())
    }

    async fn token(&self, pod: &Arc<Pod>) -> Result<Token, ObjectError> {
        let ask = FetchToken { pod: pod.clone(), audience: String::new(), expiration_s: 3607 };
        self.wiring.ask(ask).await.unwrap()
    }

    fn version(&self, name: &str) -> Option<String> {
        self.wiring.board::<ObjectVersion>().get(&config_map_ref(name)).map(|v| v.resource_version.clone())
    }

    fn lists_of(&self, name: &str) -> usize {
        let selector = format!("metadata.name={name}");
        self.api.lists().iter().filter(|s| s.field_selector == selector).count()
    }
}

fn config_map_ref(name: &str) -> ObjectRef {
    ObjectRef { kind: ObjectKind::ConfigMap, namespace: "ns".to_owned(), name: name.to_owned() }
}

fn pod(uid: &str, config_map: &str) -> Arc<Pod> {
    let container = serde_json::json!({ "name": "c", "envFrom": [{ "configMapRef": { "name": config_map } }] });
    let spec = serde_json::json!({ "containers": [container], "imagePullSecrets": [{ "name": "login" }], "serviceAccountName": "builder" });
    Arc::new(fakes::pod(uid, serde_json::json!({ "metadata": { "namespace": "ns" }, "spec": spec })))
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    let metadata = serde_json::json!({ "name": name, "namespace": "ns", "managedFields": [{ "manager": "kubectl" }] });
    fakes::object(serde_json::json!({ "metadata": metadata, "data": { "k": value } }))
}

fn text(answer: Result<impl std::fmt::Debug, ObjectError>) -> String {
    answer.unwrap_err().to_string()
}

#[test]
fn a_held_object_is_answered_and_its_changes_are_told() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let pod = pod("u1", "app");
        store.hold(&pod).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        let before = store.version("app").unwrap();
        api.put(&config_map("app", "two"));
        settle().await;
        assert_eq!(store.config_map("app").await.unwrap(), "two");
        assert_ne!(store.version("app").unwrap(), before, "readers are told of the new version");
        api.vanish::<ConfigMap>(Some("ns"), "app");
        settle().await;
        assert_eq!(store.version("app").unwrap(), "", "readers are told that it is gone");
        assert_eq!(store.config_map("app").await, Err(ObjectError::NotFound("configmap \"app\" not found".into())));
    });
}

#[test]
fn failures_have_the_texts_of_the_book() {
    run(2, |kernel| async move {
        let api = FakeApi::new();
        let store = Store::start(&kernel, &api, Strategy::Watch);
        assert_eq!(text(store.config_map("app").await), "object \"ns\"/\"app\" not registered");
        store.hold(&pod("u1", "app")).await;
        assert_eq!(text(store.config_map("app").await), "configmap \"app\" not found");
        let ask = FetchSecret { namespace: "ns".to_owned(), name: "login".to_owned() };
        let answer = store.wiring.ask(ask.clone()).await.unwrap();
        assert!(answer.as_ref().unwrap_err().is_not_found());
        assert_eq!(text(answer), "secret \"login\" not found");
        api.lasting_trouble(Matching::any(), Trouble::Hang);
        store.hold(&pod("u2", "slow")).await;
        let text = text(store.config_map("slow").await);
        assert_eq!(text, "failed to sync configmap cache: timed out waiting for the condition");
    });
}

#[test]
fn a_slow_server_is_no_failure() {
    run(14, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        api.lasting_trouble(Matching::any(), Trouble::Slow(Duration::from_secs(3)));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
    });
}

#[test]
fn a_refusal_right_after_binding_is_forgotten() {
    run(3, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        api.fail("GET", "configmaps", 1, ApiError::status(403, "Forbidden", "no relationship found"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
    });
}

#[test]
fn an_object_is_followed_once_for_all_pods_and_a_little_longer_than_the_last() {
    run(4, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let (a, b) = (pod("a", "app"), pod("b", "app"));
        store.hold(&a).await;
        store.hold(&b).await;
        store.hold(&b).await;
        settle().await;
        assert_eq!(store.lists_of("app"), 1);
        store.release(&a).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        store.release(&b).await;
        assert_eq!(text(store.config_map("app").await), "object \"ns\"/\"app\" not registered");
        tokio::time::sleep(Duration::from_secs(30)).await;
        store.hold(&b).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        assert_eq!(store.lists_of("app"), 1, "it was still followed");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(store.version("app").is_some(), "taken up again, it stays");
        store.release(&b).await;
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(store.version("app"), None);
        store.hold(&b).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        assert_eq!(store.lists_of("app"), 2);
    });
}

#[test]
fn an_immutable_object_is_read_once() {
    run(5, |kernel| async move {
        let api = FakeApi::new();
        api.put(&ConfigMap { immutable: Some(true), ..config_map("app", "one") });
        let store = Store::start(&kernel, &api, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        api.cut_follows(ApiError::status(410, "Expired", "too old"));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(store.lists_of("app"), 1);
        store.actor.kill();
        settle().await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        assert_eq!(store.lists_of("app"), 1, "also the next life of the actor knows it");
    });
}

#[test]
fn an_immutable_object_that_is_made_anew_is_read_after_its_last_pod_is_gone() {
    run(5, |kernel| async move {
        let api = FakeApi::new();
        let immutable = |value: &str| ConfigMap { immutable: Some(true), ..config_map("app", value) };
        api.put(&immutable("one"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let (old, new) = (pod("u1", "app"), pod("u2", "app"));
        store.hold(&old).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        api.vanish::<ConfigMap>(Some("ns"), "app");
        api.put(&immutable("two"));
        settle().await;
        store.hold(&new).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one", "as the pod beside it has it");
        store.release(&old).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        store.release(&new).await;
        // It is kept a little longer than its last pod.
        tokio::time::sleep(Duration::from_secs(600)).await;
        store.hold(&pod("u3", "app")).await;
        settle().await;
        assert_eq!(store.config_map("app").await.unwrap(), "two");
    });
}

#[test]
fn a_rebuilt_store_still_knows_who_holds_what() {
    run(6, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let pod = pod("u1", "app");
        store.hold(&pod).await;
        settle().await;
        store.actor.kill();
        settle().await;
        api.put(&config_map("app", "two"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(store.config_map("app").await.unwrap(), "two");
        store.release(&pod).await;
        assert_eq!(text(store.config_map("app").await), "object \"ns\"/\"app\" not registered");
    });
}

#[test]
fn what_was_seen_serves_while_the_server_is_away() {
    run(7, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        let store = Store::start(&kernel, &api, Strategy::Watch);
        store.hold(&pod("u1", "app")).await;
        settle().await;
        api.unplug();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        api.calm();
        api.put(&config_map("app", "two"));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(store.config_map("app").await.unwrap(), "two");
    });
}

#[test]
fn strategies_differ_in_what_they_ask() {
    run(8, |kernel| async move {
        for (strategy, requests) in [(Strategy::Get, 3), (Strategy::Cache, 1), (Strategy::Watch, 0)] {
            let api = FakeApi::new();
            api.put(&config_map("app", "one"));
            let store = Store::start(&kernel, &api, strategy);
            store.hold(&pod("u1", "app")).await;
            for _ in 0..3 {
                assert_eq!(store.config_map("app").await.unwrap(), "one", "{strategy:?}");
            }
            assert_eq!(api.requests_of("GET", "configmaps/app").len(), requests, "{strategy:?}");
            store.actor.stop();
            settle().await;
        }
    });
}

#[test]
fn a_cached_answer_ages_and_outlives_a_failure() {
    run(9, |kernel| async move {
        let api = FakeApi::new();
        api.put(&config_map("app", "one"));
        let store = Store::start(&kernel, &api, Strategy::Cache);
        assert_eq!(text(store.config_map("app").await), "object \"ns\"/\"app\" not registered");
        store.hold(&pod("u1", "app")).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one");
        api.put(&config_map("app", "two"));
        assert_eq!(store.config_map("app").await.unwrap(), "one", "young enough");
        api.unplug();
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(store.config_map("app").await.unwrap(), "one", "the server is away");
        api.calm();
        assert_eq!(store.config_map("app").await.unwrap(), "two");
    });
}

#[test]
fn services_wait_for_the_first_list() {
    run(11, |kernel| async move {
        let api = FakeApi::new();
        for (namespace, name, ip) in
            [("default", "kubernetes", "10.0.0.1"), ("ns", "web", "10.0.0.2"), ("ns", "bare", "None")]
        {
            let json = serde_json::json!({ "metadata": { "name": name, "namespace": namespace },
                "spec": { "clusterIP": ip, "ports": [{ "port": 443, "name": "https" }] } });
            api.put(&serde_json::from_value::<Service>(json).unwrap());
        }
        api.trouble(Matching::of("GET", "services"), Trouble::Slow(Duration::from_secs(3)), 1);
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let ask = || store.wiring.ask(FetchServices { namespace: "ns".to_owned() });
        let early = ask().await.unwrap();
        assert_eq!(text(early), "services have not yet been read at least once, cannot construct envvars");
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let names: Vec<_> = ask().await.unwrap().unwrap().iter().filter_map(|s| s.metadata.name.clone()).collect();
        assert_eq!(names, ["web", "kubernetes"]);
    });
}

#[test]
fn an_older_server_that_cannot_select_services_is_asked_for_all() {
    run(13, |kernel| async move {
        let api = FakeApi::new();
        let json = serde_json::json!({ "metadata": { "name": "web", "namespace": "ns" },
            "spec": { "clusterIP": "10.0.0.2", "ports": [{ "port": 443 }] } });
        api.put(&serde_json::from_value::<Service>(json).unwrap());
        let unknown = ApiError::status(400, "BadRequest", "\"spec.clusterIP\" is not a known field selector");
        api.fail("GET", "services", 1, unknown);
        let store = Store::start(&kernel, &api, Strategy::Watch);
        settle().await;
        let found = store.wiring.ask(FetchServices { namespace: "ns".to_owned() }).await.unwrap();
        assert_eq!(found.unwrap().len(), 1);
        let selectors: Vec<_> = api.lists().into_iter().map(|l| l.field_selector).collect();
        assert_eq!(selectors, [""], "after the refusal, which is not among the lists");
    });
}

#[test]
fn runtime_classes_and_service_accounts_are_looked_up() {
    run(12, |kernel| async move {
        let api = FakeApi::new();
        api.put(
            &serde_json::from_value::<RuntimeClass>(serde_json::json!({
            "metadata": { "name": "kata" }, "handler": "kata-qemu" }))
            .unwrap(),
        );
        api.put(
            &serde_json::from_value::<ServiceAccount>(serde_json::json!({
            "metadata": { "name": "builder", "namespace": "ns", "annotations": { "role": "x" } } }))
            .unwrap(),
        );
        let store = Store::start(&kernel, &api, Strategy::Watch);
        let class = |name: &str| store.wiring.ask(FetchRuntimeClass { name: name.to_owned() });
        assert_eq!(class("kata").await.unwrap().unwrap(), "kata-qemu");
        assert_eq!(text(class("nope").await.unwrap()), "runtimeclass.node.k8s.io \"nope\" not found");
        let account = FetchServiceAccount { namespace: "ns".to_owned(), name: "builder".to_owned() };
        let facts = store.wiring.ask(account).await.unwrap().unwrap();
        assert_eq!(facts.annotations["role"], "x");
    });
}

#[test]
fn a_standalone_node_has_no_objects_but_services_to_ask_for() {
    run(13, |kernel| async move {
        let store = Store::with(&kernel, &FakeApi::new(), None, Strategy::Watch);
        let pod = pod("u1", "app");
        store.hold(&pod).await;
        assert_eq!(text(store.config_map("app").await), "couldn't get configMap ns/app, no kubeClient defined");
        let text = text(store.token(&pod).await);
        assert_eq!(text, "failed to fetch token: cannot use TokenManager when kubelet is in standalone mode");
        let services = store.wiring.ask(FetchServices { namespace: "ns".to_owned() }).await.unwrap();
        assert!(services.unwrap().is_empty());
    });
}

#[test]
fn a_store_that_dies_over_a_message_forgets_no_hold() {
    let rules = [
        "panic@turn:HoldObjects#2",
        "panic@turn:FetchConfigMap#1",
        "panic@turn:ReleaseObjects#1",
        "kill@turn:FetchToken#1",
    ];
    for rule in rules {
        run(14, move |kernel| async move {
            kernel.faults().add_text(&format!("object-store: {rule}")).unwrap();
            kernel.faults().enable();
            let api = FakeApi::new();
            api.put(&config_map("app", "one"));
            api.put(&config_map("other", "two"));
            let store = Store::start(&kernel, &api, Strategy::Watch);
            let (a, b) = (pod("a", "app"), pod("b", "other"));
            // Every message may be said again, and is by whoever got no answer.
            for _ in 0..2 {
                let _lost = store.wiring.ask(HoldObjects { pod: a.clone() }).await;
                let _lost = store.wiring.ask(HoldObjects { pod: b.clone() }).await;
                let ask = FetchConfigMap { namespace: "ns".to_owned(), name: "app".to_owned() };
                let _lost = store.wiring.ask(ask).await;
                let ask = FetchToken { pod: a.clone(), audience: String::new(), expiration_s: 600 };
                let _lost = store.wiring.ask(ask).await;
                let _lost = store.wiring.ask(ReleaseObjects { uid: "b".into() }).await;
            }
            settle().await;
            assert_eq!(store.config_map("app").await.unwrap(), "one", "{rule}");
            assert_eq!(text(store.config_map("other").await), "object \"ns\"/\"other\" not registered", "{rule}");
            assert_eq!(kernel.faults().log().len(), 1, "{rule}");
        });
    }
}
