//! Volumes behind claims, from the first wish to the last call.

use contract::PluginManager;
use contract::plugin::{CsiDriver, RefreshCsiDriver, RefreshError};
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use csi_api::v1::volume_capability::AccessType;
use fakes::StandIn;
use fakes::files::{Errno, FileTrouble};
use ports::grpc::Code;
use serde_json::{Value, json};

use super::cluster::{DRIVER, pod_of, pod_with, registered, secs, spawn, with_cluster, with_settings};
use super::csi::Lie;

const NAME: &str = "kubernetes.io/csi/d.example^h-a";

#[test]
fn a_volume_is_staged_once_published_per_pod_and_goes_with_the_last() {
    with_cluster(async |c| {
        c.claim("a", json!({ "mountOptions": ["noatime"] }));
        let (one, two) = (pod_with("u1", &["a"]), pod_with("u2", &["a"]));
        let mounted = c.mount(&one).await.unwrap();
        let target = "pods/u1/volumes/kubernetes.io~csi/pv-a";
        assert_eq!(mounted.volumes["v-a"].host_path, c.host.path(format!("{target}/mount")));
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
        let stage = c.csi.last_stage();
        assert_eq!(c.host.path(c.stage_dir("h-a")).join("globalmount").to_str().unwrap(), stage.staging_target_path);
        let capability = stage.volume_capability.unwrap();
        let Some(AccessType::Mount(mount)) = capability.access_type else { panic!("no mount") };
        assert_eq!((mount.fs_type.as_str(), mount.mount_flags), ("ext4", vec!["noatime".to_owned()]));
        assert_eq!(capability.access_mode.unwrap().mode, 1);
        assert!(c.host.read(format!("{target}/vol_data.json")).contains("\"specVolID\":\"pv-a\""));
        assert!(c.host.read(format!("{}/vol_data.json", c.stage_dir("h-a"))).contains("\"volumeHandle\":\"h-a\""));
        c.mount(&one).await.unwrap();
        assert_eq!(c.csi.calls(), [""; 0], "what is there is not asked for again");
        c.mount(&two).await.unwrap();
        assert_eq!(c.csi.calls(), ["publish h-a"]);
        assert_eq!(c.in_use(), Some(vec![]), "it needs no attachment");
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert_eq!(c.csi.calls(), ["unpublish h-a"]);
        c.unmount("u2").await.unwrap();
        secs(1).await;
        assert_eq!(c.csi.calls(), ["unpublish h-a", "unstage h-a"]);
        assert!(c.is_clean() && c.csi.is_idle());
        assert_eq!(c.csi.wrong(), [""; 0]);
    });
}

#[test]
fn a_volume_that_is_in_place_costs_no_call_at_a_step() {
    with_cluster(async |c| {
        c.driver(json!({}));
        c.claim("a", json!({}));
        c.claim("l", json!({ "csi": null, "hostPath": { "path": c.host.path("").to_str() } }));
        c.node(&[NAME], &[NAME]);
        c.attachment("h-a", json!({ "attached": true }));
        let pod = pod_with("u1", &["a", "l"]);
        let first = c.mount(&pod).await.unwrap();
        assert!(c.api.requests().len() >= 6, "claims, volumes, driver, attachment: {:?}", c.api.requests());
        assert!(c.csi.asked() > 0);
        c.api.forget_requests();
        c.csi.calls();
        for _ in 0..10 {
            assert_eq!(c.mount(&pod).await.unwrap(), first);
        }
        assert_eq!((c.api.requests().len(), c.csi.asked(), c.csi.calls()), (0, 0, vec![]));
        // What a pod gave back is asked for anew.
        c.unmount("u1").await.unwrap();
        c.mount(&pod).await.unwrap();
        assert!(c.api.requests().len() >= 6);
    });
}

/// The file that says what is to be undone is to be on the disk when the volume counts as present.
#[test]
fn a_volume_whose_file_does_not_reach_the_disk_is_not_there_and_is_not_forgotten() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let file = c.host.path(c.stage_dir("h-a")).join("vol_data.json");
        c.host.disk.trouble(&file, FileTrouble::FailCalls("fsync", Errno::Io));
        let waits = spawn(&c, &pod_with("u1", &["a"]));
        secs(5).await;
        let calls = c.csi.calls();
        assert!(!calls.is_empty() && calls.iter().all(|call| call == "stage h-a"), "{calls:?}");
        assert!(!waits.is_finished());
        c.host.disk.calm();
        waits.await.unwrap().unwrap();
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

#[test]
fn a_driver_is_asked_what_it_can_do_once_and_again_when_it_may_be_another_one() {
    with_cluster(async |c| {
        ["a", "b", "c"].iter().for_each(|name| c.claim(name, json!({})));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.csi.asked(), 1);
        c.mount(&pod_with("u2", &["b"])).await.unwrap();
        assert_eq!(c.csi.asked(), 0);
        // It may have been started anew without a word.
        c.csi.lie("stage", &[Lie::Refuse(Code::Unavailable)]);
        c.mount(&pod_with("u3", &["c"])).await.unwrap();
        assert_eq!(c.csi.asked(), 1, "by the second try");
        // Another one is registered, which does not stage.
        c.csi.calls();
        c.csi.can(&[Ability::VolumeMountGroup]);
        c.bench.wiring.put(DRIVER.to_owned(), registered(DRIVER, 2));
        c.unmount("u3").await.unwrap();
        secs(1).await;
        assert_eq!((c.csi.asked(), c.csi.calls()), (1, vec!["unpublish h-c".to_owned()]));
    });
}

#[test]
fn what_plugin_manager_heard_of_a_driver_is_not_asked_for() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let object =
            json!({ "metadata": { "name": DRIVER }, "spec": { "attachRequired": false, "podInfoOnMount": true } });
        let object = Some(serde_json::from_value(object).unwrap());
        c.bench.wiring.put(DRIVER.to_owned(), CsiDriver { object, ..registered(DRIVER, 1) });
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(c.csi.last_publish().volume_context["csi.storage.k8s.io/pod.uid"], "u1");
        let asked = c.api.requests();
        assert!(!asked.is_empty() && asked.iter().all(|r| !r.path.contains("csidrivers")), "{asked:?}");
    });
}

#[test]
fn a_driver_that_comes_to_want_it_is_told_of_its_volumes_with_the_next_step() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let says = |republish: bool| {
            let spec = json!({ "attachRequired": false, "requiresRepublish": republish });
            let object = serde_json::from_value(json!({ "metadata": { "name": DRIVER }, "spec": spec })).unwrap();
            let row = CsiDriver { object: Some(object), ..registered(DRIVER, 1) };
            c.bench.wiring.put(DRIVER.to_owned(), row);
        };
        let pod = pod_with("u1", &["a"]);
        for (republish, calls) in
            [(false, vec!["stage h-a", "publish h-a"]), (false, vec![]), (true, vec!["publish h-a"]), (false, vec![])]
        {
            says(republish);
            c.mount(&pod).await.unwrap();
            assert_eq!(c.csi.calls(), calls);
        }
    });
}

#[test]
fn the_secret_for_staging_is_asked_for_only_where_a_driver_stages() {
    with_cluster(async |c| {
        for (claim, mode) in [("a", "Filesystem"), ("b", "Block")] {
            let secret = json!({ "namespace": "default", "name": "missing" });
            let csi = json!({ "driver": DRIVER, "volumeHandle": format!("h-{claim}"), "nodeStageSecretRef": secret });
            c.claim(claim, json!({ "csi": csi, "volumeMode": mode }));
        }
        let waits = spawn(&c, &pod_with("u0", &["a"]));
        secs(1).await;
        assert!(c.bench.told()[0].contains("fetching secret default/missing failed"), "this one stages");
        waits.abort();
        c.unmount("u0").await.unwrap();
        c.csi.can(&[]);
        c.bench.wiring.put(DRIVER.to_owned(), registered(DRIVER, 2));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.mount(&super::cluster::pod_with_devices("u2", &["b"])).await.unwrap();
    });
}

#[test]
fn a_volume_that_must_be_attached_waits_for_node_and_controller() {
    with_cluster(async |c| {
        c.driver(json!({}));
        c.claim("a", json!({}));
        let pod = pod_with("u1", &["a"]);
        let waiting = spawn(&c, &pod);
        secs(3).await;
        assert_eq!(c.in_use(), Some(vec!["h-a".to_owned()]), "the Node is told of the wish");
        assert_eq!((c.csi.calls(), c.bench.told()), (vec![], vec![]));
        c.node(&[NAME], &[]);
        secs(3).await;
        c.attachment("h-a", json!({ "attached": true, "attachmentMetadata": { "path": "/dev/x" } }));
        assert_eq!(c.csi.calls(), [""; 0], "not attached by the Node's status");
        c.node(&[NAME], &[NAME]);
        let begun = tokio::time::Instant::now();
        waiting.await.unwrap().unwrap();
        assert!(begun.elapsed().as_millis() < 100, "the Node's news ends the pause: {:?}", begun.elapsed());
        assert_eq!(c.csi.last_stage().publish_context["path"], "/dev/x");
        assert_eq!(c.csi.last_publish().publish_context["path"], "/dev/x");
        c.csi.calls();
        c.csi.lie("unstage", &[Lie::Refuse(Code::Internal)]);
        c.unmount("u1").await.unwrap();
        secs(0).await;
        assert_eq!(c.in_use(), Some(vec!["h-a".to_owned()]), "not before it is unstaged");
        secs(2).await;
        assert_eq!(c.csi.calls(), ["unpublish h-a", "unstage h-a", "unstage h-a"]);
        assert_eq!(c.in_use(), Some(vec![]));
    });
}

#[test]
fn the_end_of_a_wait_names_what_is_not_attached() {
    with_cluster(async |c| {
        c.driver(json!({}));
        c.claim("a", json!({}));
        let e = c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
        let cause = format!("volume {NAME} is not yet in node's status");
        let text = format!("unmounted volumes=[v-a], unattached volumes=[v-a], failed to process volumes=[]: {cause}");
        assert_eq!((e.message, e.late), (text, true));
        assert_eq!(c.bench.told(), [""; 0], "the controller tells of what it cannot attach");
        c.node(&[NAME], &[NAME]);
        c.attachment("h-a", json!({ "attached": false, "attachError": { "message": "no such disk" } }));
        let e = c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
        assert!(e.message.ends_with("no such disk"), "{e}");
        let event = "Warning FailedMount: MountVolume.WaitForAttach failed for volume \"pv-a\" : no such disk";
        assert!(c.bench.told().iter().any(|line| line == event));
        assert_eq!(c.csi.calls(), [""; 0]);
    });
}

#[test]
fn a_node_that_is_to_attach_volumes_itself_attaches_none() {
    with_settings(
        |settings| settings.controller_attach_detach = false,
        async |c| {
            c.driver(json!({}));
            c.claim("a", json!({}));
            c.node(&[NAME], &[NAME]);
            c.attachment("h-a", json!({ "attached": true }));
            let e = c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
            let why = "attaching volumes from the kubelet is not supported";
            assert!(e.message.ends_with(why) && e.late, "{e}");
            let event = format!("Warning FailedAttachVolume: AttachVolume.Attach failed for volume \"pv-a\" : {why}");
            assert!(c.bench.told().iter().all(|line| *line == event));
            c.driver(json!({ "attachRequired": false }));
            assert!(c.mount(&pod_with("u1", &["a"])).await.is_ok(), "what needs no attachment is mounted");
        },
    );
}

#[test]
fn a_pod_is_refused_when_the_node_has_no_place_for_its_volume() {
    with_cluster(async |c| {
        let plugins = StandIn::<PluginManager>::on(&c.bench.wiring);
        plugins.answer(|_: &RefreshCsiDriver| Err(RefreshError { message: "no".to_owned() }));
        c.claim("a", json!({}));
        let error = |code: i32| json!({ "attached": false, "attachError": { "errorCode": code, "message": "full" } });
        let period = json!({ "nodeAllocatableUpdatePeriodSeconds": 60 });
        for (rules, code, refused) in [(&period, 13, false), (&json!({}), 8, false), (&period, 8, true)] {
            c.driver(rules.clone());
            c.attachment("h-a", error(code));
            let e = c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
            assert_eq!(e.refused, refused, "{rules} {code}: {e}");
            let words = "Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[v-a], ";
            assert_eq!(e.message.starts_with(words), refused, "{e}");
            let asked = plugins.asked::<RefreshCsiDriver>();
            assert_eq!(asked.len(), usize::from(refused), "the driver says again how many places there are: {code}");
        }
        plugins.answer_later(|_: &RefreshCsiDriver| std::future::pending());
        let e = c.mount(&pod_with("u2", &["a"])).await.unwrap_err();
        assert!(e.refused, "a driver that does not answer: {e}");
    });
}

#[test]
fn claims_that_cannot_be_used_are_told_with_their_reason_and_no_driver_is_called() {
    with_cluster(async |c| {
        c.claim("gluster", json!({ "csi": null, "glusterfs": { "endpoints": "e", "path": "/" } }));
        c.claim("block", json!({ "volumeMode": "Block" }));
        c.claim(
            "elsewhere",
            json!({ "nodeAffinity": { "required": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
        ] } } }),
        );
        let inline = |driver: &str| json!({ "name": "v", "csi": { "driver": driver } });
        let claim = |name: &str| json!({ "name": "v", "persistentVolumeClaim": { "claimName": name } });
        for (volume, part) in [
            (claim("none"), "error processing PVC default/none: failed to fetch PVC from API server: "),
            (claim("gluster"), "glusterfs volumes are not supported"),
            (claim("block"), "volume v has volumeMode Block, but is specified in volumeMounts"),
            (claim("elsewhere"), "no matching NodeSelectorTerms"),
            (inline(DRIVER), "volume mode \"Ephemeral\" not supported by driver d.example"),
        ] {
            let e = c.mount(&pod_of("u1", vec![volume], json!({}))).await.unwrap_err();
            assert!(e.message.contains(part), "{e}");
            c.unmount("u1").await.unwrap();
        }
        c.claim_of("gone.example", "lost", json!({}));
        c.driver(json!({ "attachRequired": false }));
        let path = "/apis/storage.k8s.io/v1/csidrivers/gone.example";
        c.api.put_json(path, json!({ "metadata": { "name": "gone.example" }, "spec": { "attachRequired": false } }));
        let e = c.mount(&pod_with("u1", &["lost"])).await.unwrap_err();
        assert!(e.message.contains("driver name gone.example not found in the list of registered CSI drivers"), "{e}");
        assert_eq!(c.csi.calls(), [""; 0]);
        assert!(!c.host.exists("plugins"));
    });
}

#[test]
fn a_driver_that_hangs_holds_up_its_own_pods_only_and_they_say_so() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.claim("b", json!({}));
        let other = "/apis/storage.k8s.io/v1/csidrivers/other.example";
        c.api.put_json(other, json!({ "metadata": { "name": "other.example" }, "spec": { "attachRequired": false } }));
        c.claim_of("other.example", "c", json!({}));
        c.csi.lie("stage", &[Lie::Hang]);
        let waiting = spawn(&c, &pod_with("u1", &["a"]));
        secs(1).await;
        for (uid, claim) in [("u2", "b"), ("u3", "c")] {
            c.mount(&pod_with(uid, &[claim])).await.unwrap();
            c.unmount(uid).await.unwrap();
        }
        let e = waiting.await.unwrap().unwrap_err();
        let wanted = format!("NodeStageVolume of {NAME} is under way for 123s");
        assert!(e.message.ends_with(&wanted) && e.late, "{e}");
        assert_eq!(c.bench.told(), [""; 0], "nothing has failed yet");
        secs(30).await;
        let why = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
        let event = format!("Warning FailedMount: MountVolume.MountDevice failed for volume \"pv-a\" : {why}");
        assert_eq!(c.bench.told(), [event], "it has, after the end of the wait");
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

#[test]
fn what_takes_longer_than_anybody_waits_is_done_all_the_same_and_once() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        // Each within its own limit, both together not.
        c.csi.lie("stage", &[Lie::Slow(100)]);
        c.csi.lie("publish", &[Lie::Slow(100)]);
        for _ in 0..2 {
            let late = c.mount(&pod_with("u1", &["a"])).await;
            if let Err(e) = &late {
                assert!(e.message.contains("is under way for"), "{e}");
            }
        }
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        let calls = c.csi.calls();
        assert_eq!(calls.iter().filter(|call| call.starts_with("stage ")).count(), 1, "{calls:?}");
        assert_eq!(calls.iter().filter(|call| call.starts_with("publish ")).count(), 1, "{calls:?}");
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

#[test]
fn another_volume_that_cannot_go_holds_up_no_volume_of_a_driver() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let claim = json!({ "name": "v-a", "persistentVolumeClaim": { "claimName": "a" } });
        let pod = pod_of("u1", vec![claim, json!({ "name": "own", "emptyDir": {} })], json!({}));
        c.mount(&pod).await.unwrap();
        let own = c.host.path("pods/u1/volumes/kubernetes.io~empty-dir/own");
        c.host.disk.trouble(&own, FileTrouble::FailWrites(Errno::Busy));
        let e = c.unmount("u1").await.unwrap_err().message;
        assert!(e.contains("\"own\" of kubernetes.io~empty-dir"), "{e}");
        secs(1).await;
        assert!(c.csi.is_idle(), "the driver took its volume");
        c.host.disk.calm();
        c.unmount("u1").await.unwrap();
    });
}

#[test]
fn a_file_that_cannot_be_read_holds_back_no_new_volume() {
    with_cluster(async |c| {
        c.host.write("pods/gone/volumes/kubernetes.io~csi/lost/vol_data.json", "{");
        let mut c = c;
        c.restart().await;
        secs(1).await;
        c.claim("a", json!({}));
        assert_eq!(c.in_use(), Some(Vec::new()));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
    });
}

#[test]
fn a_volume_for_one_pod_is_with_one_pod() {
    with_cluster(async |c| {
        c.claim("a", json!({ "accessModes": ["ReadWriteOncePod"] }));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        let waiting = spawn(&c, &pod_with("u2", &["a"]));
        secs(5).await;
        let told = c.bench.told();
        let why = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
        assert_eq!(told[0], format!("Warning FailedMount: MountVolume.SetUp failed for volume \"pv-a\" : {why}"));
        c.unmount("u1").await.unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(c.csi.wrong(), [""; 0]);
    });
}

#[test]
fn one_claim_under_two_names_is_published_once() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let volume = |name: &str| json!({ "name": name, "persistentVolumeClaim": { "claimName": "a" } });
        let mounted = c.mount(&pod_of("u1", vec![volume("x"), volume("y")], json!({}))).await.unwrap();
        assert_eq!(mounted.volumes["x"], mounted.volumes["y"]);
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
    });
}

#[test]
fn a_driver_is_told_of_pod_group_secrets_and_tokens() {
    with_cluster(async |c| {
        c.driver(json!({
            "attachRequired": false, "podInfoOnMount": true, "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            "tokenRequests": [{ "audience": "vault", "expirationSeconds": 700 }], "requiresRepublish": true,
        }));
        c.csi.can(&[Ability::StageUnstageVolume, Ability::VolumeMountGroup, Ability::SingleNodeMultiWriter]);
        let secret = |name: &str, value: &str| {
            let data = json!({ "key": model::k8s_openapi::ByteString(value.as_bytes().to_vec()) });
            let path = format!("/api/v1/namespaces/default/secrets/{name}");
            c.api.put_json(&path, json!({ "metadata": { "name": name, "namespace": "default" }, "data": data }));
        };
        secret("s1", "one");
        let reference = json!({ "namespace": "default", "name": "s1" });
        let csi = json!({ "driver": DRIVER, "volumeHandle": "h-a", "nodeStageSecretRef": reference, "nodePublishSecretRef": reference });
        c.claim("a", json!({ "csi": csi }));
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a", "readOnly": true } });
        let pod = pod_of("u1", vec![volume], json!({ "fsGroup": 4711 }));
        let mounted = c.mount(&pod).await.unwrap();
        assert!(mounted.volumes["v"].read_only);
        let (stage, publish) = (c.csi.last_stage(), c.csi.last_publish());
        assert_eq!((stage.secrets["key"].as_str(), publish.secrets["key"].as_str()), ("one", "one"));
        let Some(AccessType::Mount(mount)) = publish.volume_capability.as_ref().unwrap().access_type.clone() else {
            panic!()
        };
        assert_eq!((mount.volume_mount_group.as_str(), publish.readonly), ("4711", true));
        assert_eq!(publish.volume_capability.unwrap().access_mode.unwrap().mode, 7);
        assert_eq!(publish.volume_context["csi.storage.k8s.io/pod.uid"], "u1");
        let tokens: Value =
            serde_json::from_str(&publish.volume_context["csi.storage.k8s.io/serviceAccount.tokens"]).unwrap();
        assert!(tokens["vault"]["token"].as_str().unwrap().ends_with("-for-vault"), "{tokens}");
        c.driver(json!({
            "attachRequired": false, "requiresRepublish": true, "serviceAccountTokenInSecrets": true,
            "tokenRequests": [{ "audience": "vault", "expirationSeconds": 700 }],
        }));
        c.mount(&pod).await.unwrap();
        let publish = c.csi.last_publish();
        let tokens: Value = serde_json::from_str(&publish.secrets["csi.storage.k8s.io/serviceAccount.tokens"]).unwrap();
        assert!(tokens["vault"]["token"].as_str().unwrap().ends_with("-for-vault"), "{tokens}");
        assert!(!publish.volume_context.contains_key("csi.storage.k8s.io/serviceAccount.tokens"));
        assert_eq!(publish.secrets["key"], "one", "beside the secret of the volume");
        c.csi.calls();
        c.csi.lie("publish", &[Lie::Refuse(Code::Internal)]);
        c.mount(&pod).await.unwrap();
        assert_eq!(c.csi.calls(), ["publish h-a"], "published anew, and a refusal takes nothing away");
        assert!(c.host.is_mounted("pods/u1/volumes/kubernetes.io~csi/pv-a/mount"));
    });
}

#[test]
fn a_volume_of_a_driver_in_a_pod_is_neither_attached_nor_staged() {
    with_cluster(async |c| {
        c.driver(json!({ "volumeLifecycleModes": ["Ephemeral"] }));
        let volume = json!({ "name": "v", "csi": { "driver": DRIVER, "volumeAttributes": { "k": "v" } } });
        let pod = pod_of("u1", vec![volume], json!({}));
        c.mount(&pod).await.unwrap();
        let publish = c.csi.last_publish();
        assert!(publish.volume_id.starts_with("csi-") && publish.staging_target_path.is_empty());
        assert!(c.host.read("pods/u1/volumes/kubernetes.io~csi/v/vol_data.json").contains("\"Ephemeral\""));
        c.unmount("u1").await.unwrap();
        let calls: Vec<String> = c.csi.calls().iter().map(|l| l.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(calls, ["publish", "unpublish"]);
        assert!(c.is_clean());
    });
}

#[test]
fn a_volume_is_given_to_the_group_unless_its_root_shows_that_it_was() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let volume = || json!({ "name": "v", "persistentVolumeClaim": { "claimName": "a" } });
        c.mount(&pod_of("u1", vec![volume()], json!({ "fsGroup": 7 }))).await.unwrap();
        let file = "pods/u1/volumes/kubernetes.io~csi/pv-a/mount/data";
        assert_eq!((c.host.stat(file).gid, c.host.mode(file)), (7, 0o664));
    });
}

#[test]
fn paths_of_this_node_are_bound_and_let_go_with_all_that_is_in_them() {
    with_cluster(async |c| {
        c.host.write("disk/file", "of the user");
        let path = c.host.path("disk");
        let path = path.to_str().unwrap();
        c.claim("l", json!({ "csi": null, "local": { "path": path } }));
        c.claim("h", json!({ "csi": null, "hostPath": { "path": path, "type": "Directory" } }));
        let mounted = c.mount(&pod_with("u1", &["l", "h"])).await.unwrap();
        let bound = "pods/u1/volumes/kubernetes.io~local-volume/pv-l";
        assert_eq!(mounted.volumes["v-l"].host_path, c.host.path(bound));
        assert_eq!(mounted.volumes["v-h"].host_path, c.host.path("disk"));
        assert!(c.host.is_mounted(bound));
        c.unmount("u1").await.unwrap();
        assert!(!c.host.exists(bound) && c.host.read("disk/file") == "of the user");
        c.claim("gone", json!({ "csi": null, "local": { "path": "/nowhere" } }));
        let e = c.mount(&pod_with("u1", &["gone"])).await.unwrap_err();
        assert!(e.message.ends_with("path \"/nowhere\" does not exist"), "{e}");
    });
}

#[test]
fn calls_and_operations_are_counted_as_a_kubelet_does() {
    use metrics::volumes::{CSI_OPERATION, STORAGE_OPERATION, VOLUME_OPERATION};
    // Of a driver that no other test of this process has.
    const OWN: &str = "other.example";
    with_cluster(async |c| {
        let path = format!("/apis/storage.k8s.io/v1/csidrivers/{OWN}");
        c.api.put_json(&path, json!({ "metadata": { "name": OWN }, "spec": { "attachRequired": false } }));
        c.claim_of(OWN, "a", json!({}));
        let call = |method: &str, code: &str| {
            let method = format!("/csi.v1.Node/{method}");
            CSI_OPERATION.with_label_values(&[OWN, code, &method, "false"]).get_sample_count()
        };
        let plugin = format!("kubernetes.io/csi:{OWN}");
        let operation = |name: &str, status: &str| {
            STORAGE_OPERATION.with_label_values(&["false", name, status, &plugin]).get_sample_count()
        };
        let before = (call("NodeStageVolume", "OK"), operation("volume_mount", "success"));
        c.csi.lie("stage", &[Lie::Refuse(Code::Internal)]);
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        assert_eq!(call("NodeStageVolume", "OK"), before.0 + 1);
        assert_eq!(operation("volume_mount", "success"), before.1 + 1);
        assert!(call("NodeStageVolume", "Internal") > 0 && operation("volume_mount", "fail-unknown") > 0);
        assert!(call("NodeGetCapabilities", "OK") > 0);
        assert!(VOLUME_OPERATION.with_label_values(&["overall_volume_mount", &plugin]).get_sample_count() > 0);
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(operation("volume_unmount", "success") > 0 && operation("unmount_device", "success") > 0);
    });
}
