//! Tokens of pods.

use super::*;

struct Tokens {
    api: FakeApi,
    store: Store,
}

impl Tokens {
    fn start(kernel: &Kernel) -> Self {
        let now = i128::from(kernel.clock().unix_nanos());
        let api = FakeApi::at(model::k8s_openapi::jiff::Timestamp::from_nanosecond(now).unwrap());
        let account = serde_json::json!({ "metadata": { "name": "builder", "namespace": "ns" } });
        api.put(&serde_json::from_value::<ServiceAccount>(account).unwrap());
        let store = Store::start(kernel, &api, Strategy::Watch);
        Self { api, store }
    }

    fn asked(&self) -> usize {
        self.api.requests_of("POST", "token").len()
    }

    /// A pod whose containers mount these of its volumes, each of which is a token for its name.
    fn pod(&self, uid: &str, mounted: &[&str], change: impl FnOnce(&mut Pod)) -> Arc<Pod> {
        let token = |name: &str| {
            serde_json::json!({ "name": name, "projected": { "sources": [
            { "serviceAccountToken": { "audience": name, "expirationSeconds": 3607, "path": "token" } }] } })
        };
        let mounts: Vec<_> = mounted.iter().map(|n| serde_json::json!({ "name": n, "mountPath": "/t" })).collect();
        let mut pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": { "name": uid, "namespace": "ns", "uid": uid },
            "spec": { "serviceAccountName": "builder", "volumes": [token("a"), token("b")],
                "containers": [{ "name": "c", "image": "i", "volumeMounts": mounts }] },
        }))
        .unwrap();
        change(&mut pod);
        Arc::new(self.api.put(&pod))
    }

    async fn token(&self, pod: &Arc<Pod>, audience: &str) -> Result<Token, ObjectError> {
        let ask = FetchToken { pod: pod.clone(), audience: audience.to_owned(), expiration_s: 3607 };
        self.store.wiring.ask(ask).await.unwrap()
    }
}

#[test]
fn a_token_is_kept_renewed_and_forgotten_with_its_pod() {
    run(10, |kernel| async move {
        let Tokens { api, store } = Tokens::start(&kernel);
        let pod = Arc::new(api.put(&*pod("u1", "app")));
        store.hold(&pod).await;
        let first = store.token(&pod).await.unwrap();
        assert_eq!(store.token(&pod).await.unwrap(), first);
        let asked = api.requests_of("POST", "/api/v1/namespaces/ns/serviceaccounts/builder/token");
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].body["spec"]["boundObjectRef"]["uid"], model::pod::uid(&pod).as_str());
        assert_eq!(asked[0].body["spec"]["expirationSeconds"], 3607);
        tokio::time::sleep(Duration::from_secs(2900)).await;
        api.unplug();
        let old = store.token(&pod).await.unwrap();
        assert_eq!(old.text, first.text, "the old one while it is valid");
        assert!(old.refresh_at > first.refresh_at, "whoever wrote it down is not sent round in a circle");
        tokio::time::sleep(Duration::from_secs(800)).await;
        let text = text(store.token(&pod).await);
        assert!(text.contains("expired and refresh failed"), "{text}");
        api.calm();
        let second = store.token(&pod).await.unwrap();
        assert_ne!(second.text, first.text);
        store.release(&pod).await;
        store.token(&pod).await.unwrap();
        store.token(&pod).await.unwrap();
        assert_eq!(api.requests_of("POST", "token").len(), 6, "nothing is remembered of a pod that was released");
    });
}

#[test]
fn the_tokens_of_a_new_pod_are_asked_for_before_its_volumes_need_them_and_once() {
    run(12, |kernel| async move {
        let tokens = Tokens::start(&kernel);
        let pod = tokens.pod("u1", &["a"], |_| ());
        tokens.store.hold(&pod).await;
        settle().await;
        assert_eq!(tokens.asked(), 1, "one of the two volumes is mounted");
        tokens.token(&pod, "a").await.unwrap();
        tokens.store.hold(&pod).await;
        settle().await;
        assert_eq!(tokens.asked(), 1, "it is said again in each step");
        tokens.store.release(&pod).await;
        tokens.store.hold(&pod).await;
        let (one, other) = futures::join!(tokens.token(&pod, "a"), tokens.token(&pod, "a"));
        assert_eq!(one.unwrap(), other.unwrap());
        assert_eq!(tokens.asked(), 2, "who comes while it is under way waits for the same one");
    });
}

#[test]
fn a_pod_that_is_ending_needs_no_tokens() {
    run(13, |kernel| async move {
        let tokens = Tokens::start(&kernel);
        let now = model::k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
        let going = tokens.pod("u1", &["a"], |pod| {
            pod.metadata.deletion_timestamp = Some(model::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        });
        let done = tokens.pod("u2", &["a"], |pod| {
            pod.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
        });
        for pod in [&going, &done] {
            tokens.store.hold(pod).await;
        }
        settle().await;
        assert_eq!(tokens.asked(), 0);
    });
}

#[test]
fn an_early_request_that_fails_costs_nothing() {
    run(14, |kernel| async move {
        let tokens = Tokens::start(&kernel);
        let pod = tokens.pod("u1", &["a", "b"], |_| ());
        tokens.api.unplug();
        tokens.store.hold(&pod).await;
        settle().await;
        tokens.api.calm();
        tokens.token(&pod, "a").await.unwrap();
        tokens.token(&pod, "b").await.unwrap();
    });
}
