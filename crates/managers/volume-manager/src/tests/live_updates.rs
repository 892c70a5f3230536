//! Volumes of running pods follow their objects, in simulated time.

use std::sync::Arc;
use std::time::Duration;

use actor::testing::{run, settle};
use contract::volume::{MountVolumes, MountedVolumes, UnmountVolumes, VolumeError};
use fakes::Folder;
use model::core::Pod;
use model::{PodUid, Timestamp};
use serde_json::{Value, json};

use super::rig::{Bench, host, pod, with_bench, with_spec};

async fn mount(bench: &Bench, pod: &Arc<Pod>) -> Result<Arc<MountedVolumes>, VolumeError> {
    bench.wiring.ask(MountVolumes { pod: pod.clone() }).await?
}

fn mount_beside(bench: &Bench, pod: &Arc<Pod>) -> tokio::task::JoinHandle<Result<Arc<MountedVolumes>, VolumeError>> {
    let (bench, pod) = (bench.clone(), pod.clone());
    tokio::task::spawn_local(async move { mount(&bench, &pod).await })
}

fn map_pod(uid: &str) -> Arc<Pod> {
    pod(uid, json!([{"name": "v", "configMap": {"name": "cm", "defaultMode": 0o644}}]))
}

fn token_pod() -> Arc<Pod> {
    let sources = json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]);
    pod("u", json!([{"name": "v", "projected": {"defaultMode": 0o644, "sources": sources}}]))
}

fn read(host: &Folder, plugin: &str, uid: &str, file: &str) -> String {
    host.read(format!("pods/{uid}/volumes/kubernetes.io~{plugin}/v/{file}"))
}

#[test]
fn a_changed_object_is_written_into_every_running_pod_that_uses_it() {
    with_bench(async |bench, host| {
        bench.objects.put_map("cm", json!({"a": "1"}));
        bench.objects.put_map("other", json!({}));
        for uid in ["u", "w"] {
            mount(&bench, &map_pod(uid)).await.unwrap();
        }
        bench.objects.asked();
        bench.objects.put_map("other", json!({"x": "y"}));
        settle().await;
        assert!(bench.objects.asked().is_empty(), "nobody here uses it");
        bench.objects.put_map("cm", json!({"a": "2"}));
        settle().await;
        assert_eq!((read(&host, "configmap", "u", "a"), read(&host, "configmap", "w", "a")), ("2".into(), "2".into()));
        assert_eq!(bench.objects.asked(), ["configmap cm", "configmap cm"]);
        assert_eq!(bench.told(), Vec::<String>::new());
    });
}

#[test]
fn a_pod_that_waits_for_an_object_starts_when_it_comes() {
    with_bench(async |bench, host| {
        let waiting = mount_beside(&bench, &map_pod("u"));
        tokio::time::sleep(Duration::from_secs(40)).await;
        let text = "Warning FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"cm\" not found";
        let seen = bench.told();
        assert_eq!(seen, vec![text; 7], "at 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s");
        let row = bench.row("u");
        assert_eq!(row.and_then(|r| r.error.clone()), None, "it has no directory yet");
        bench.objects.put_map("cm", json!({"a": "1"}));
        settle().await;
        assert!(waiting.is_finished(), "not only at the next try");
        assert!(waiting.await.unwrap().is_ok());
        assert_eq!(read(&host, "configmap", "u", "a"), "1");
    });
}

#[test]
fn a_wait_for_an_object_ends_with_its_name() {
    with_bench(async |bench, _| {
        let failed = mount(&bench, &map_pod("u")).await.unwrap_err();
        assert_eq!(
            failed.message,
            "unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: configmap \"cm\" not found"
        );
        assert!(failed.late, "each try was told of");
    });
}

#[test]
fn an_object_that_goes_leaves_its_files_and_is_told_of() {
    with_bench(async |bench, host| {
        bench.objects.put_map("cm", json!({"a": "1"}));
        mount(&bench, &map_pod("u")).await.unwrap();
        bench.objects.remove_map("cm");
        settle().await;
        let text = "Warning FailedMount: MountVolume.SetUp failed for volume \"v\" : configmap \"cm\" not found";
        assert_eq!(bench.told(), [text]);
        assert_eq!(read(&host, "configmap", "u", "a"), "1");
        assert!(mount(&bench, &map_pod("u")).await.is_ok(), "its containers can be started again");
        assert_eq!(bench.told(), Vec::<String>::new(), "told once");
        tokio::time::sleep(Duration::from_secs(600)).await;
        let later = bench.told().len();
        assert!((8..=13).contains(&later), "{later}: ever more rarely, two minutes apart in the end");
        bench.objects.put_map("cm", json!({"a": "2"}));
        settle().await;
        assert_eq!(read(&host, "configmap", "u", "a"), "2");
        bench.told();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(bench.told(), Vec::<String>::new());
    });
}

#[test]
fn changed_trust_bundles_are_written_into_running_pods() {
    with_bench(async |bench, host| {
        let sources = json!([{"clusterTrustBundle": {"signerName": "s", "labelSelector": {}, "path": "ca/root.pem"}}]);
        let pod = pod("u", json!([{"name": "v", "projected": {"defaultMode": 0o644, "sources": sources}}]));
        let waiting = mount_beside(&bench, &pod);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(bench.told().iter().all(|line| line.ends_with("clustertrustbundle \"s\" not found")));
        bench.objects.put_anchors("one");
        settle().await;
        assert!(waiting.is_finished(), "not only at the next try");
        assert_eq!(read(&host, "projected", "u", "ca/root.pem"), "one");
        bench.objects.put_anchors("two");
        settle().await;
        assert_eq!(read(&host, "projected", "u", "ca/root.pem"), "two");
    });
}

#[test]
fn a_certificate_is_written_when_it_is_issued_and_when_it_is_renewed() {
    with_bench(async |bench, host| {
        let source = json!({"signerName": "s", "keyType": "ED25519", "credentialBundlePath": "me.pem"});
        let projected = json!({"defaultMode": 0o644, "sources": [{"podCertificate": source}]});
        let pod = pod("u", json!([{"name": "v", "projected": projected}]));
        let waiting = mount_beside(&bench, &pod);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let text =
            "Warning FailedMount: MountVolume.SetUp failed for volume \"v\" : credential bundle is not issued yet";
        assert_eq!(bench.told(), [text, text]);
        bench.objects.put_certificate(&pod, "v", 0, "ONE\n");
        settle().await;
        assert!(waiting.is_finished(), "not only at the next try");
        assert_eq!(read(&host, "projected", "u", "me.pem"), "KEY\nONE\n");
        bench.objects.put_certificate(&pod, "v", 0, "TWO\n");
        settle().await;
        assert_eq!(read(&host, "projected", "u", "me.pem"), "KEY\nTWO\n");
    });
}

#[test]
fn a_running_pod_does_without_the_api_server() {
    with_bench(async |bench, host| {
        bench.objects.put_map("cm", json!({"a": "1"}));
        mount(&bench, &map_pod("u")).await.unwrap();
        bench.objects.go_away(Some("failed to sync configmap cache: timed out waiting for the condition"));
        assert!(mount(&bench, &map_pod("u")).await.is_ok());
        assert_eq!(read(&host, "configmap", "u", "a"), "1");
        bench.objects.go_away(None);
        bench.objects.asked();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.objects.asked().len(), 1, "asked for again by itself, until it is there");
    });
}

#[test]
fn a_token_is_replaced_when_it_is_due() {
    run(6, |kernel| async move {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        let now = Timestamp(kernel.clock().unix_nanos());
        bench.objects.put_token("first", now.plus(Duration::from_secs(2880)));
        mount(&bench, &token_pod()).await.unwrap();
        assert_eq!(read(&host, "projected", "u", "token"), "first");
        assert_eq!(bench.objects.asked(), ["token /3607"]);
        tokio::time::sleep(Duration::from_secs(2870)).await;
        assert!(bench.objects.asked().is_empty(), "nothing is asked before it is due");
        bench.objects.put_token("second", now.plus(Duration::from_secs(5760)));
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(read(&host, "projected", "u", "token"), "second");
        assert_eq!(bench.objects.asked(), ["token /3607"]);
    });
}

#[test]
fn a_token_that_cannot_be_renewed_is_asked_for_now_and_then() {
    run(7, |kernel| async move {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        let now = Timestamp(kernel.clock().unix_nanos());
        bench.objects.put_token("old", now);
        mount(&bench, &token_pod()).await.unwrap();
        bench.objects.asked();
        tokio::time::sleep(Duration::from_secs(65)).await;
        assert_eq!(bench.objects.asked().len(), 6, "every ten seconds");
        assert_eq!(read(&host, "projected", "u", "token"), "old");
    });
}

#[test]
fn new_labels_are_written_when_the_worker_shows_them() {
    with_bench(async |bench, host| {
        let labelled = |labels: Value| {
            let items = json!([{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]);
            let mut p = Pod::clone(&with_spec(
                "u",
                json!({
                    "volumes": [{"name": "v", "downwardAPI": {"defaultMode": 0o644, "items": items}}],
                    "containers": [{"name": "app", "volumeMounts": [{"name": "v", "mountPath": "/m"}]}],
                }),
            ));
            p.metadata.labels = serde_json::from_value(labels).unwrap();
            Arc::new(p)
        };
        mount(&bench, &labelled(json!({"app": "x"}))).await.unwrap();
        assert_eq!(read(&host, "downward-api", "u", "labels"), "app=\"x\"");
        mount(&bench, &labelled(json!({"app": "y", "b": "c"}))).await.unwrap();
        assert_eq!(read(&host, "downward-api", "u", "labels"), "app=\"y\"\nb=\"c\"");
    });
}

#[test]
fn a_manager_that_died_goes_on_following() {
    run(9, |kernel| async move {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        let now = Timestamp(kernel.clock().unix_nanos());
        bench.objects.put_map("cm", json!({"a": "1"}));
        bench.objects.put_token("first", now.plus(Duration::from_secs(100)));
        mount(&bench, &map_pod("w")).await.unwrap();
        mount(&bench, &token_pod()).await.unwrap();
        bench.manager.kill();
        settle().await;
        bench.objects.put_map("cm", json!({"a": "2"}));
        bench.objects.put_token("second", now.plus(Duration::from_secs(1000)));
        settle().await;
        assert_eq!(read(&host, "configmap", "w", "a"), "2");
        tokio::time::sleep(Duration::from_secs(101)).await;
        assert_eq!(read(&host, "projected", "u", "token"), "second");
    });
}

#[test]
fn a_pod_that_ended_is_followed_no_more() {
    with_bench(async |bench, host| {
        bench.objects.put_map("cm", json!({"a": "1"}));
        mount(&bench, &map_pod("u")).await.unwrap();
        let unmount = UnmountVolumes { uid: PodUid::from("u") };
        bench.wiring.ask(unmount).await.unwrap().unwrap();
        bench.objects.asked();
        bench.objects.put_map("cm", json!({"a": "2"}));
        settle().await;
        assert!(bench.objects.asked().is_empty());
        assert!(!host.exists("pods/u/volumes/kubernetes.io~configmap/v"));
    });
}

#[test]
fn an_optional_object_that_comes_later_is_in_the_running_pod() {
    with_bench(async |bench, host| {
        let source = json!({"secretName": "s", "defaultMode": 0o644, "optional": true});
        let p = pod("u", json!([{"name": "v", "secret": source}]));
        mount(&bench, &p).await.unwrap();
        assert!(host.exists("pods/u/volumes/kubernetes.io~secret/v/..data"));
        assert_eq!(read(&host, "secret", "u", "k"), "");
        bench.objects.put_secret("s", json!({"k": "dQ=="}));
        settle().await;
        assert_eq!(read(&host, "secret", "u", "k"), "u");
        assert_eq!(bench.told(), Vec::<String>::new());
    });
}

#[test]
fn secrets_are_followed_as_well() {
    with_bench(async |bench, host| {
        bench.objects.put_secret("s", json!({"k": "dQ=="}));
        let p = pod("u", json!([{"name": "v", "secret": {"secretName": "s", "defaultMode": 0o644}}]));
        mount(&bench, &p).await.unwrap();
        bench.objects.put_secret("s", json!({"k": "cA=="}));
        settle().await;
        assert_eq!(read(&host, "secret", "u", "k"), "p");
    });
}
