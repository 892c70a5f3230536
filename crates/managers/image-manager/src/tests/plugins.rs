//! Credential provider plugins.

use std::time::Duration;

use actor::testing::run;
use fakes::pull_secret;
use pull_credentials::provider_config::{Provider, TokenAttributes};
use serde_json::{Value, json};

use super::rig::{Bench, Setup, with_bench};

const IMAGE: &str = "r.io/team/app:1";
const V1: &str = "credentialprovider.kubelet.k8s.io/v1";

fn provider() -> Provider {
    Provider {
        name: "plug".into(),
        match_images: vec!["*.io".into()],
        default_cache_duration: Duration::from_secs(600),
        api_version: V1.into(),
        args: Vec::new(),
        env: Vec::new(),
        token: None,
    }
}

fn with_token() -> Provider {
    let token = TokenAttributes {
        audience: "aud".into(),
        require_service_account: true,
        cache_by_token: false,
        required_annotations: vec!["role".into()],
        optional_annotations: vec!["more".into()],
    };
    Provider { token: Some(token), ..provider() }
}

fn answer(user: &str, scope: &str, duration: Option<&str>) -> Option<Value> {
    Some(json!({
        "kind": "CredentialProviderResponse", "apiVersion": V1, "cacheKeyType": scope, "cacheDuration": duration,
        "auth": {"*.io": {"username": user, "password": "p"}},
    }))
}

fn setup(provider: Provider) -> Setup {
    Setup { providers: vec![provider], serial: false, ..Setup::default() }
}

#[test]
fn a_plugin_is_asked_once_for_its_images_and_its_answer_kept() {
    with_bench(setup(provider()), async |bench| {
        bench.plugin.answers(answer("plugin", "Registry", None));
        bench.ensure("p", "docker.example.com/x:1", "Always").await.unwrap();
        assert!(bench.plugin.calls().is_empty(), "not one of its images");
        bench.ensure("p", IMAGE, "Always").await.unwrap();
        let request = json!({"kind": "CredentialProviderRequest", "apiVersion": V1, "image": "r.io/team/app"});
        assert_eq!(bench.plugin.calls(), [("plug".to_owned(), request)]);
        bench.ensure("p", "r.io/other:2", "Always").await.unwrap();
        assert!(bench.plugin.calls().is_empty());
        assert_eq!(bench.tried(), ["-", "plugin", "plugin"]);
        tokio::time::sleep(Duration::from_secs(601)).await;
        bench.ensure("p", IMAGE, "Always").await.unwrap();
        assert_eq!(bench.plugin.calls().len(), 1);
    });
}

#[test]
fn pods_that_come_together_share_one_call() {
    with_bench(setup(provider()), async |bench| {
        bench.plugin.answers(answer("plugin", "Image", Some("0s")));
        let (a, b) = tokio::join!(bench.ensure("a", IMAGE, "Always"), bench.ensure("b", IMAGE, "Always"));
        assert!(a.is_ok() && b.is_ok());
        assert_eq!(bench.plugin.calls().len(), 1);
        bench.ensure("c", IMAGE, "Always").await.unwrap();
        assert_eq!(bench.plugin.calls().len(), 1, "and nothing is kept, as it said");
    });
}

#[test]
fn a_plugin_that_fails_leaves_the_pull_to_other_credentials() {
    run(3, |kernel| async move {
        for broken in [None, Some(json!({"kind": "x"})), answer("plugin", "Nonsense", None)] {
            let bench = Bench::start(&kernel, setup(provider()));
            bench.plugin.answers(broken);
            bench.ensure_with("p", IMAGE, "Always", &[pull_secret("s", "r.io", "pod")]).await.unwrap();
            bench.ensure("p", IMAGE, "Always").await.unwrap();
            assert_eq!(bench.tried(), ["pod", "-"]);
        }
    });
}

#[test]
fn credentials_of_plugins_come_last_and_open_an_image_to_all() {
    with_bench(setup(provider()), async |bench| {
        bench.plugin.answers(answer("plugin", "Global", None));
        bench.private(IMAGE, "plugin");
        bench.ensure_with("p", IMAGE, "Always", &[pull_secret("s", "r.io", "pod")]).await.unwrap();
        assert_eq!(bench.tried(), ["pod", "plugin"]);
        let record = bench.files("pulled").remove(0);
        assert_eq!(record["credentialMapping"]["r.io/team/app"], json!({"nodePodsAccessible": true}));
    });
}

#[test]
fn an_image_that_is_open_to_all_bothers_no_plugin() {
    with_bench(setup(provider()), async |bench| {
        bench.put(&[IMAGE]);
        bench.ensure("p", IMAGE, "IfNotPresent").await.unwrap();
        assert!(bench.plugin.calls().is_empty());
    });
}

#[test]
fn a_plugin_may_be_given_a_token_of_the_pods_account() {
    with_bench(setup(with_token()), async |bench| {
        bench.plugin.answers(answer("plugin", "Global", None));
        bench.ensure("nameless", IMAGE, "IfNotPresent").await.unwrap();
        assert!(bench.plugin.calls().is_empty(), "a pod without an account");
        bench.ensure_as("p", "r.io/b:1", "sa").await.unwrap();
        assert!(bench.plugin.calls().is_empty(), "an account without the annotation");
        bench.objects.annotate_accounts("role", "reader");
        bench.ensure_as("p", "r.io/c:1", "sa").await.unwrap();
        let (_, request) = bench.plugin.calls().remove(0);
        assert_eq!(request["serviceAccountToken"], "token-of-p-for-aud");
        assert_eq!(request["serviceAccountAnnotations"], json!({"role": "reader"}));
        bench.ensure_as("q", "r.io/c:1", "sa").await.unwrap();
        assert!(bench.plugin.calls().is_empty(), "kept per account");
        bench.ensure_as("q", "r.io/d:1", "another").await.unwrap();
        assert_eq!(bench.plugin.calls().len(), 1, "and never for another");
    });
}

#[test]
fn what_an_account_opened_is_open_to_that_account() {
    with_bench(setup(with_token()), async |bench| {
        bench.objects.annotate_accounts("role", "reader");
        bench.plugin.answers(answer("plugin", "Global", None));
        bench.private(IMAGE, "plugin");
        bench.ensure_as("p", IMAGE, "sa").await.unwrap();
        let access = bench.files("pulled").remove(0)["credentialMapping"]["r.io/team/app"].clone();
        let account = json!({"uid": "uid-sa", "namespace": "default", "name": "sa"});
        assert_eq!(access, json!({"kubernetesServiceAccounts": [account]}));
        bench.tried();
        bench.ensure_as("q", IMAGE, "sa").await.unwrap();
        assert_eq!(bench.tried(), Vec::<String>::new());
        bench.ensure_as("r", IMAGE, "another").await.unwrap();
        assert_eq!(bench.tried(), ["plugin"], "its own token opens it, too");
    });
}
