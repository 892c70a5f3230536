//! ClusterTrustBundles: asked for when a pod holds them, followed in the version that is served, let go of.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use contract::objects::{FetchTrustAnchors, ObjectVersion};
use fakes::FakeApi;
use fakes::api::{Matching, Trouble};
use model::core::Pod;
use model::k8s_openapi::api::certificates::{v1alpha1, v1beta1};
use model::object::ObjectRef;
use ports::api::{ApiError, ApiServer};
use serde_json::{Value, json};

use super::Store;
use crate::{Config, ObjectCache};

const GROUP: &str = "certificates.k8s.io";

fn start(kernel: &actor::Kernel, api: &FakeApi, trust_bundles: bool) -> Store {
    let config = Config { trust_bundles, ..Config::default() };
    let port: Arc<dyn ApiServer> = Arc::new(api.clone());
    Store::of(kernel, api, Some(port), Arc::new(config), ObjectCache::default())
}

fn pod(uid: &str) -> Arc<Pod> {
    let sources = json!([{ "clusterTrustBundle": { "name": "root", "path": "ca.pem" } }]);
    let volumes = json!([{ "name": "v", "projected": { "sources": sources } }]);
    let spec = json!({ "containers": [], "volumes": volumes });
    Arc::new(fakes::pod(uid, json!({ "metadata": { "namespace": "ns" }, "spec": spec })))
}

fn bundle(der: &str) -> Value {
    let pem = format!("-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n");
    json!({ "metadata": { "name": "root" }, "spec": { "trustBundle": pem } })
}

fn of_root() -> FetchTrustAnchors {
    FetchTrustAnchors { name: Some("root".to_owned()), signer_name: None, label_selector: None, optional: false }
}

impl Store {
    async fn anchors(&self) -> Result<String, String> {
        let answer = self.wiring.ask(of_root()).await.unwrap();
        answer.map(|text| text.lines().nth(1).unwrap_or_default().to_owned()).map_err(|e| e.to_string())
    }

    fn bundles_version(&self) -> Option<String> {
        self.wiring.board::<ObjectVersion>().get(&ObjectRef::trust_bundles()).map(|v| v.resource_version.clone())
    }

    fn discoveries(&self) -> usize {
        self.api.requests_of("GET", &format!("/apis/{GROUP}/")).len()
    }
}

#[test]
fn bundles_are_followed_while_a_pod_uses_them() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.discover("certificates.k8s.io/v1beta1", "clustertrustbundles");
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("YQ==")));
        let store = start(&kernel, &api, true);
        settle().await;
        assert_eq!((store.discoveries(), api.lists().len()), (0, 1), "the services only");
        assert!(store.anchors().await.unwrap_err().contains("not registered"));
        store.hold(&pod("u1")).await;
        store.hold(&pod("u2")).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
        let before = store.bundles_version().unwrap();
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("Yg==")));
        settle().await;
        assert_eq!(store.anchors().await.unwrap(), "Yg==");
        assert_ne!(store.bundles_version().unwrap(), before, "volumes are told");
        store.release(&pod("u1")).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(store.anchors().await.unwrap(), "Yg==");
        store.release(&pod("u2")).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(store.bundles_version(), None);
        store.hold(&pod("u3")).await;
        assert_eq!(store.anchors().await.unwrap(), "Yg==");
        assert_eq!((store.discoveries(), api.lists().len()), (2, 3), "one list for all pods, another one for new ones");
    });
}

#[test]
fn an_older_server_serves_the_alpha_version() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.discover("certificates.k8s.io/v1beta1", "podcertificaterequests");
        api.discover("certificates.k8s.io/v1alpha1", "clustertrustbundles");
        api.put(&fakes::object::<v1alpha1::ClusterTrustBundle>(bundle("YQ==")));
        let store = start(&kernel, &api, true);
        store.hold(&pod("u1")).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
        api.put(&fakes::object::<v1alpha1::ClusterTrustBundle>(bundle("Yg==")));
        settle().await;
        assert_eq!(store.anchors().await.unwrap(), "Yg==");
    });
}

#[test]
fn a_server_without_them_is_asked_again_at_each_try() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        let store = start(&kernel, &api, true);
        store.hold(&pod("u1")).await;
        let not_supported = "ClusterTrustBundle projection is not supported in static kubelet mode";
        assert_eq!(store.anchors().await.unwrap_err(), not_supported);
        let gone = ApiError::status(503, "ServiceUnavailable", "come back");
        api.trouble(Matching::of("GET", GROUP), Trouble::Fail(gone), 1);
        let text = store.anchors().await.unwrap_err();
        assert!(text.ends_with("which informer manager to choose: come back"), "{text}");
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("YQ==")));
        api.discover("certificates.k8s.io/v1beta1", "clustertrustbundles");
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
    });
}

#[test]
fn a_list_that_fails_or_hangs_is_told_of_and_gone_on_with() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.discover("certificates.k8s.io/v1beta1", "clustertrustbundles");
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("YQ==")));
        let list = || Matching::of("GET", "/clustertrustbundles");
        let denied = ApiError::status(403, "Forbidden", "no");
        api.trouble(list(), Trouble::Fail(denied), 1);
        api.trouble(list(), Trouble::Hang, 1);
        let store = start(&kernel, &api, true);
        store.hold(&pod("u1")).await;
        let not_synced = "ClusterTrustBundle informer has not yet synced";
        let began = tokio::time::Instant::now();
        assert_eq!(store.anchors().await.unwrap_err(), not_synced);
        assert!(began.elapsed() < Duration::from_secs(10), "a refusal is not waited out");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
    });
}

#[test]
fn without_the_gate_nobody_is_asked() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        let store = start(&kernel, &api, false);
        store.hold(&pod("u1")).await;
        let not_supported = "ClusterTrustBundle projection is not supported in static kubelet mode";
        assert_eq!(store.anchors().await.unwrap_err(), not_supported);
        assert_eq!((store.discoveries(), api.lists().len()), (0, 1), "the services only");
    });
}

#[test]
fn another_actor_follows_what_pods_still_hold() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.discover("certificates.k8s.io/v1beta1", "clustertrustbundles");
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("YQ==")));
        let store = start(&kernel, &api, true);
        store.hold(&pod("u1")).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
        let before = store.bundles_version();
        store.actor.kill();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
        assert_eq!(store.bundles_version(), before, "nothing changed, and no volume is looked at");
    });
}

#[test]
fn a_death_over_a_question_for_trust_anchors_costs_one_answer() {
    run(1, |kernel| async move {
        let api = FakeApi::new();
        api.discover("certificates.k8s.io/v1beta1", "clustertrustbundles");
        api.put(&fakes::object::<v1beta1::ClusterTrustBundle>(bundle("YQ==")));
        let store = start(&kernel, &api, true);
        store.hold(&pod("u1")).await;
        settle().await;
        kernel.faults().enable();
        kernel.faults().add_text("object-store: panic@turn:FetchTrustAnchors#1").unwrap();
        assert!(store.wiring.ask(of_root()).await.is_err(), "who asked is told");
        assert_eq!(kernel.faults().log().len(), 1);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(store.anchors().await.unwrap(), "YQ==");
    });
}
