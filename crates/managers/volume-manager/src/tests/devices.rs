//! Raw volumes of drivers: mapped to pods, and taken back whoever died when.

use std::time::Duration;

use contract::volume::{ListVolumes, MappedDevice};
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use csi_api::v1::volume_capability::AccessType;
use ports::grpc::Code;
use ports::host::{FileKind, Mounter};
use serde_json::json;

use super::cluster::{Cluster, pod_with, pod_with_devices, secs, spawn, with_cluster};
use super::csi::Lie;

const ALL: &str = "plugins/kubernetes.io/csi/volumeDevices";
const LINK: &str = "pods/u1/volumeDevices/kubernetes.io~csi/pv-a";

fn raw(c: &Cluster, name: &str) {
    c.claim(name, json!({ "volumeMode": "Block" }));
}

#[test]
fn a_raw_volume_is_staged_published_held_open_and_taken_back() {
    with_cluster(async |c| {
        c.driver(
            json!({ "attachRequired": false, "podInfoOnMount": true, "tokenRequests": [{ "audience": "vault" }] }),
        );
        raw(&c, "a");
        let mounted = c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        let device = MappedDevice { host_path: c.host.path(LINK), read_only: false };
        assert_eq!((mounted.devices["v-a"].clone(), mounted.volumes.len()), (device, 0));
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"]);
        let (stage, publish) = (c.csi.last_stage(), c.csi.last_publish());
        let at = |below: &str| c.host.path(format!("{ALL}/{below}")).display().to_string();
        assert_eq!(stage.staging_target_path, at("staging/pv-a"));
        assert_eq!(publish.staging_target_path, at("staging/pv-a"));
        assert_eq!(publish.target_path, at("publish/pv-a/u1"));
        for capability in [stage.volume_capability, publish.volume_capability] {
            assert!(matches!(capability.unwrap().access_type, Some(AccessType::Block(_))));
        }
        let context: Vec<&str> = publish.volume_context.keys().map(String::as_str).collect();
        assert!(context.contains(&"csi.storage.k8s.io/pod.name"), "{context:?}");
        assert!(!context.iter().any(|key| key.contains("tokens")), "a kubelet gives no tokens: {context:?}");
        let data = c.host.read(format!("{ALL}/pv-a/data/vol_data.json"));
        assert!(data.contains("\"specVolID\":\"pv-a\"") && !data.contains("volumeLifecycleMode"), "{data}");
        assert_eq!(c.host.link_of(LINK), at("publish/pv-a/u1"));
        assert_eq!(c.host.disk.held_devices(), [c.host.path(format!("{ALL}/pv-a/dev/u1"))]);
        let rows = c.bench.wiring.ask(ListVolumes).await.unwrap();
        let row = rows.iter().map(|row| (row.raw, row.path.clone())).collect::<Vec<_>>();
        assert_eq!(
            row,
            [(true, Some(c.host.path(format!("{ALL}/pv-a/dev/u1"))))],
            "what a kubelet asks the driver about"
        );
        let told = c.bench.told();
        let words = "Normal SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume \"pv-a\"";
        let dirs =
            [("globalMapPath", format!("{ALL}/pv-a/dev")), ("volumeMapPath", LINK.trim_end_matches("/pv-a").into())];
        let wanted = dirs.map(|(what, dir)| format!("{words} {what} \"{}\"", c.host.path(dir).display()));
        assert_eq!(told, wanted);
        c.mount(&pod_with_devices("u2", &["a"])).await.unwrap();
        assert_eq!((c.csi.calls(), c.host.disk.held_devices().len()), (vec!["publish h-a".to_owned()], 2));
        c.unmount("u1").await.unwrap();
        c.unmount("u2").await.unwrap();
        secs(1).await;
        assert_eq!(c.csi.calls(), ["unpublish h-a", "unpublish h-a", "unstage h-a"]);
        assert!(c.is_clean() && c.csi.is_idle(), "{:?}", c.devices());
        assert_eq!(c.csi.wrong(), [""; 0]);
    });
}

#[test]
fn a_driver_that_does_not_stage_is_told_where_it_might_have() {
    with_cluster(async |c| {
        c.csi.can(&[Ability::SingleNodeMultiWriter]);
        raw(&c, "a");
        c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        assert!(c.csi.last_publish().staging_target_path.ends_with("/staging/pv-a"), "as a kubelet does");
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert_eq!(c.csi.calls(), ["publish h-a", "unpublish h-a"]);
        assert!(c.is_clean(), "{:?}", c.devices());
    });
}

#[test]
fn a_volume_is_used_as_what_it_is() {
    with_cluster(async |c| {
        raw(&c, "a");
        c.claim("b", json!({}));
        for (pod, why) in [
            (pod_with("u1", &["a"]), "volume v-a has volumeMode Block, but is specified in volumeMounts"),
            (pod_with_devices("u1", &["b"]), "volume v-b has volumeMode Filesystem, but is specified in volumeDevices"),
        ] {
            let e = c.mount(&pod).await.unwrap_err();
            assert!(e.message.contains(why), "{e}");
        }
        assert_eq!(c.csi.calls(), [""; 0]);
    });
}

/// What is undone after a step failed, and the pod went.
#[test]
fn what_may_have_been_done_is_undone_and_what_was_refused_is_not() {
    for (call, lie, step, want) in [
        ("stage", Lie::Refuse(Code::InvalidArgument), "SetUpDevice", vec![]),
        ("stage", Lie::LoseReply(Code::Unavailable), "SetUpDevice", vec!["unstage h-a"]),
        ("publish", Lie::Refuse(Code::InvalidArgument), "MapPodDevice", vec!["unstage h-a"]),
        ("publish", Lie::LoseReply(Code::DeadlineExceeded), "MapPodDevice", vec!["unpublish h-a", "unstage h-a"]),
        ("publish", Lie::Pretend, "MapBlockVolume", vec!["unpublish h-a", "unstage h-a"]),
    ] {
        with_cluster(async |c| {
            raw(&c, "a");
            c.csi.lie(call, &[lie; 200]);
            c.mount(&pod_with_devices("u1", &["a"])).await.unwrap_err();
            let event = format!("Warning FailedMapVolume: MapVolume.{step} failed for volume \"pv-a\" : ");
            let told = c.bench.told();
            assert!(!told.is_empty() && told.iter().all(|line| line.starts_with(&event)), "{told:?}");
            c.csi.calls();
            c.csi.lie("unpublish", &[]);
            c.unmount("u1").await.unwrap();
            secs(200).await;
            assert_eq!(c.csi.calls(), want, "{call} {lie:?}");
            assert!(c.is_clean() && c.csi.is_idle(), "{call} {lie:?}: {:?}", c.devices());
        });
    }
}

#[test]
fn a_new_daemon_goes_on_with_what_the_disk_shows() {
    with_cluster(async |mut c| {
        raw(&c, "a");
        raw(&c, "b");
        let stays = pod_with_devices("u1", &["a"]);
        c.mount(&stays).await.unwrap();
        c.mount(&pod_with_devices("u2", &["b"])).await.unwrap();
        c.csi.calls();
        c.restart().await;
        secs(100).await;
        assert_eq!(c.csi.calls(), [""; 0], "nothing is taken from pods that nobody has asked about yet");
        assert_eq!(c.in_use(), Some(vec!["h-a".to_owned(), "h-b".to_owned()]), "what is there counts as in use");
        c.mount(&stays).await.unwrap();
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a"], "both can be repeated");
        c.remove("u2").await.unwrap();
        secs(1).await;
        assert_eq!(c.csi.calls(), ["unpublish h-b", "unstage h-b"]);
        assert!(!c.host.exists("pods/u2"));
        assert_eq!(c.host.disk.held_devices(), [c.host.path(format!("{ALL}/pv-a/dev/u1"))]);
    });
}

/// A kubelet takes the link away before it asks the driver.
#[test]
fn what_a_kubelet_left_in_the_middle_of_taking_it_is_taken() {
    with_cluster(async |mut c| {
        let data =
            r#"{"attachmentID":"x","driverName":"d.example","nodeName":"n1","specVolID":"pv-g","volumeHandle":"h-g"}"#;
        c.host.write(format!("{ALL}/pv-g/data/vol_data.json"), data);
        let (target, bound) =
            (c.host.path(format!("{ALL}/publish/pv-g/u9")), c.host.path(format!("{ALL}/pv-g/dev/u9")));
        c.host.dir(format!("{ALL}/publish/pv-g"));
        c.host.write(format!("{ALL}/staging/pv-g/note"), "");
        c.host.disk.special(&target, FileKind::BlockDevice);
        c.host.disk.bind_device(&target, &bound).unwrap();
        c.host.disk.hold_device(&bound).unwrap();
        c.restart().await;
        secs(70).await;
        assert_eq!(c.csi.calls(), ["unpublish h-g", "unstage h-g"]);
        assert!(c.is_clean(), "{:?}", c.devices());
    });
}

#[test]
fn a_device_that_came_with_another_boot_is_what_the_link_leads_to() {
    with_cluster(async |c| {
        raw(&c, "a");
        c.host.dir("pods/u1/volumeDevices/kubernetes.io~csi");
        c.host.link("/dev/sdz", LINK);
        c.mount(&pod_with_devices("u1", &["a"])).await.unwrap();
        assert_eq!(c.host.link_of(LINK), c.host.path(format!("{ALL}/publish/pv-a/u1")).display().to_string());
    });
}

/// Many lives of a daemon with a driver that lies: in the end nothing is left, and nothing was done out of order.
#[test]
fn whatever_is_lost_on_the_way_nothing_stays_behind() {
    let lies = [
        Lie::Refuse(Code::Internal),
        Lie::Refuse(Code::Aborted),
        Lie::LoseReply(Code::Unavailable),
        Lie::LoseReply(Code::DeadlineExceeded),
        Lie::Hang,
    ];
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (first, runs) = (number("LYING_DRIVER_SEED", 0), number("LYING_DRIVER_RUNS", 60));
    for seed in first..first + runs {
        actor::testing::run(seed, async |kernel| {
            let mut c = Cluster::start(&kernel);
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |n: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % n
            };
            raw(&c, "a");
            raw(&c, "b");
            let pods = [("u1", vec!["a"]), ("u2", vec!["a", "b"])].map(|(uid, claims)| pod_with_devices(uid, &claims));
            for _ in 0..6 {
                for call in ["stage", "publish", "unpublish", "unstage"] {
                    let chosen: Vec<Lie> = (0..next(3)).map(|_| lies[usize::try_from(next(5)).unwrap()]).collect();
                    c.csi.lie(call, &chosen);
                }
                let tasks: Vec<_> = pods.iter().map(|p| spawn(&c, p)).collect();
                tokio::time::sleep(Duration::from_millis(next(40_000))).await;
                if next(2) == 0 {
                    tasks.iter().for_each(tokio::task::JoinHandle::abort);
                    c.restart().await;
                }
                let (uid, going) = (format!("u{}", 1 + next(2)), c.clone());
                let unmount = tokio::task::spawn_local(async move { going.unmount(&uid).await.is_ok() });
                tokio::time::sleep(Duration::from_millis(next(10_000))).await;
                unmount.abort();
            }
            c.restart().await;
            for call in ["stage", "publish", "unpublish", "unstage"] {
                c.csi.lie(call, &[]);
            }
            for uid in ["u1", "u2"] {
                c.remove(uid).await.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            }
            secs(300).await;
            assert!(c.is_clean() && c.csi.is_idle(), "seed {seed}: {:?} {:?}", c.devices(), c.csi.calls());
            assert_eq!(c.csi.wrong(), [""; 0], "seed {seed}");
            assert_eq!(c.in_use(), Some(vec![]), "seed {seed}");
        });
    }
}
