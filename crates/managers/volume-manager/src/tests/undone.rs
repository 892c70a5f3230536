//! What volumes of drivers leave behind: nothing of ours, and everything of users.

use std::time::Duration;

use contract::volume::ListVolumes;
use csi_api::v1::node_service_capability::rpc::Type as Ability;
use ports::grpc::Code;
use ports::host::Mounter;
use serde_json::json;

use super::cluster::{Cluster, pod_with, secs, spawn, with_cluster};
use super::csi::Lie;

/// What is undone after a call to set up failed so, and the pod went.
#[test]
fn what_may_have_been_done_is_undone_and_what_was_refused_is_not() {
    for (call, lie, want) in [
        ("stage", Lie::Refuse(Code::InvalidArgument), vec![]),
        ("stage", Lie::Refuse(Code::DeadlineExceeded), vec!["unstage h-a"]),
        ("stage", Lie::LoseReply(Code::Unavailable), vec!["unstage h-a"]),
        ("publish", Lie::Refuse(Code::InvalidArgument), vec!["unstage h-a"]),
        ("publish", Lie::Refuse(Code::Aborted), vec!["unpublish h-a", "unstage h-a"]),
        ("publish", Lie::LoseReply(Code::DeadlineExceeded), vec!["unpublish h-a", "unstage h-a"]),
    ] {
        with_cluster(async |c| {
            c.claim("a", json!({}));
            c.csi.lie(call, &[lie; 200]);
            let e = c.mount(&pod_with("u1", &["a"])).await.unwrap_err();
            assert!(e.message.contains("rpc error: code = ") && e.message.ends_with("desc = because"), "{e}");
            let step = if call == "stage" { "MountDevice" } else { "SetUp" };
            let told = c.bench.told();
            let event =
                format!("Warning FailedMount: MountVolume.{step} failed for volume \"pv-a\" : rpc error: code = ");
            assert!(told.iter().all(|line| line.starts_with(&event)), "{told:?}");
            assert!((7..=10).contains(&told.len()), "one event per try, with pauses that double: {told:?}");
            c.csi.calls();
            c.unmount("u1").await.unwrap();
            secs(200).await;
            assert_eq!(c.csi.calls(), want, "{call} {lie:?}");
            assert!(c.is_clean() && c.csi.is_idle(), "{call} {lie:?}");
        });
    }
}

#[test]
fn a_new_daemon_goes_on_with_what_the_disk_shows() {
    with_cluster(async |mut c| {
        c.claim("a", json!({}));
        c.claim("b", json!({}));
        let (stays, goes) = (pod_with("u1", &["a"]), pod_with("u2", &["b"]));
        c.mount(&stays).await.unwrap();
        c.mount(&goes).await.unwrap();
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
        assert!(!c.host.exists("pods/u2") && c.host.is_mounted("pods/u1/volumes/kubernetes.io~csi/pv-a/mount"));
        assert_eq!(c.in_use(), Some(vec![]));
    });
}

#[test]
fn what_a_former_daemon_mounted_is_not_given_up_because_a_driver_refuses_now() {
    for call in ["stage", "publish"] {
        with_cluster(async |mut c| {
            c.claim("a", json!({}));
            let pod = pod_with("u1", &["a"]);
            c.mount(&pod).await.unwrap();
            c.restart().await;
            c.csi.lie(call, &[Lie::Refuse(Code::Internal), Lie::Refuse(Code::Internal)]);
            c.mount(&pod).await.unwrap();
            assert!(c.host.exists("pods/u1/volumes/kubernetes.io~csi/pv-a/mount/data"));
            c.csi.calls();
            c.unmount("u1").await.unwrap();
            secs(1).await;
            assert_eq!(c.csi.calls(), ["unpublish h-a", "unstage h-a"]);
            assert!(c.is_clean());
        });
    }
}

#[test]
fn what_was_staged_for_a_pod_that_never_came_is_unstaged_by_the_next_daemon() {
    with_cluster(async |mut c| {
        c.claim("a", json!({}));
        c.csi.lie("stage", &[Lie::Hang]);
        let waiting = spawn(&c, &pod_with("u1", &["a"]));
        secs(1).await;
        waiting.abort();
        c.restart().await;
        secs(1).await;
        assert_eq!(c.csi.calls(), ["stage h-a", "unstage h-a"]);
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

/// A daemon that dies while it writes down what it is about to do leaves the file that was to take the place of the other one.
#[test]
fn what_a_death_over_a_write_left_goes_with_the_volume() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        let places = ["pods/u1/volumes/kubernetes.io~csi/pv-a".to_owned(), c.stage_dir("h-a")];
        let left = |place: &String| c.host.write(format!("{place}/.vol_data.json.4711.0.tmp"), "{");
        left(&places[0]);
        c.remove("u1").await.unwrap();
        assert!(c.is_clean(), "nothing had been asked of the driver yet");
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        places.iter().for_each(left);
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.host.write(format!("{}/.vol_data.json", places[0]), "of somebody else");
        assert!(c.unmount("u1").await.is_err(), "what is not ours stays");
        assert!(c.host.exists(format!("{}/.vol_data.json", places[0])));
    });
}

/// Somebody of the host's own has mounted what a driver staged once more: it would lose its volume.
#[test]
fn a_volume_that_is_mounted_elsewhere_as_well_is_not_unstaged() {
    with_cluster(async |mut c| {
        c.claim("a", json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        let staged = format!("{}/globalmount", c.stage_dir("h-a"));
        c.host.dir("copy");
        c.host.disk.mount_again(&c.host.path(&staged), &c.host.path("copy"));
        c.unmount("u1").await.unwrap();
        secs(100).await;
        assert_eq!(c.csi.calls(), ["stage h-a", "publish h-a", "unpublish h-a"]);
        let error = c.bench.wiring.ask(ListVolumes).await.unwrap()[0].error.clone().unwrap();
        let why = format!(
            "GetDeviceMountRefs check failed: the device mount path \"{}\" is still mounted by other references [{}]",
            c.host.path(&staged).display(),
            c.host.path("copy").display()
        );
        assert_eq!(error, why);
        c.restart().await;
        secs(100).await;
        assert_eq!((c.csi.calls(), c.host.is_mounted(&staged)), (vec![], true), "nor by the next daemon");
        c.host.disk.unmount(&c.host.path("copy")).unwrap();
        secs(200).await;
        assert_eq!(c.csi.calls(), ["unstage h-a"]);
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

#[test]
fn what_users_have_is_never_removed_whatever_a_driver_says() {
    with_cluster(async |c| {
        c.claim("a", json!({}));
        c.mount(&pod_with("u1", &["a"])).await.unwrap();
        c.csi.lie("unpublish", &[Lie::Pretend, Lie::Pretend]);
        let e = c.unmount("u1").await.unwrap_err();
        assert!(e.message.contains("is still mounted"), "{e}");
        assert!(c.remove("u1").await.is_err());
        let data = "pods/u1/volumes/kubernetes.io~csi/pv-a/mount/data";
        assert_eq!(c.host.read(data), "of the user");
        secs(100).await;
        assert!(!c.csi.calls().contains(&"unstage h-a".to_owned()), "a pod may still have it");
        c.unmount("u1").await.unwrap();
        secs(1).await;
        assert!(c.is_clean() && c.csi.is_idle());
    });
}

#[test]
fn a_mount_of_somebody_else_among_the_volumes_of_drivers_stays_with_all_that_is_in_it() {
    with_cluster(async |c| {
        for at in ["pv/mount", "pv"] {
            let below = format!("pods/u1/volumes/kubernetes.io~csi/{at}");
            c.host.mount(&below, 0xef53);
            c.host.write(format!("{below}/precious"), "content");
            assert!(c.unmount("u1").await.is_err() && c.remove("u1").await.is_err(), "{at}");
            assert!(c.host.is_mounted(&below) && c.host.exists(format!("{below}/precious")), "{at}");
        }
        assert_eq!(c.csi.calls(), [""; 0]);
    });
}

/// Many lives of a daemon with a driver that lies: in the end nothing is left, and nothing was done out of order. How many
/// says `LYING_DRIVER_RUNS`, from which seed on `LYING_DRIVER_SEED`; each takes some files of the process (`ulimit -n`).
#[test]
fn whatever_is_lost_on_the_way_nothing_stays_behind() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |n| n.parse().expect("a number"));
    let (first, runs) = (number("LYING_DRIVER_SEED", 0), number("LYING_DRIVER_RUNS", 100));
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
            for claim in ["a", "b"] {
                c.claim(claim, json!({}));
            }
            let pods = [pod_with("u1", &["a"]), pod_with("u2", &["a", "b"]), pod_with("u3", &["b"])];
            for _ in 0..6 {
                for call in ["stage", "publish", "unpublish", "unstage"] {
                    let lies = [
                        Lie::Refuse(Code::Internal),
                        Lie::Refuse(Code::Aborted),
                        Lie::LoseReply(Code::Unavailable),
                        Lie::LoseReply(Code::DeadlineExceeded),
                        Lie::Twice(Code::Unavailable),
                        Lie::Late(Code::DeadlineExceeded),
                        Lie::Hang,
                    ];
                    let mut one = || lies[usize::try_from(next(lies.len() as u64)).unwrap()];
                    let chosen: Vec<Lie> = (0..3).map(|_| one()).collect();
                    let chosen = &chosen[..usize::try_from(next(4)).unwrap()];
                    c.csi.lie(call, chosen);
                }
                let tasks: Vec<_> = pods.iter().map(|p| spawn(&c, p)).collect();
                tokio::time::sleep(Duration::from_millis(next(40_000))).await;
                if next(2) == 0 {
                    tasks.iter().for_each(tokio::task::JoinHandle::abort);
                    c.restart().await;
                }
                let uid = format!("u{}", 1 + next(3));
                let going = c.clone();
                let unmount = tokio::task::spawn_local(async move { going.unmount(&uid).await.is_ok() });
                tokio::time::sleep(Duration::from_millis(next(10_000))).await;
                unmount.abort();
            }
            c.restart().await;
            for call in ["stage", "publish", "unpublish", "unstage"] {
                c.csi.lie(call, &[]);
            }
            for uid in ["u1", "u2", "u3"] {
                c.remove(uid).await.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            }
            secs(300).await;
            assert!(c.is_clean() && c.csi.is_idle(), "seed {seed}: {:?}", c.csi.calls());
            assert_eq!(c.csi.wrong(), [""; 0], "seed {seed}");
            assert_eq!(c.in_use(), Some(vec![]), "seed {seed}");
        });
    }
}

#[test]
fn a_crash_at_any_point_leaves_nothing_behind_either() {
    for point in ["stage", "publish", "expand", "unpublish", "unstage"] {
        for side in ["before", "after"] {
            for action in ["panic", "kill"] {
                actor::testing::run(1, async |kernel| {
                    let c = Cluster::start(&kernel);
                    c.csi.can(&[Ability::StageUnstageVolume, Ability::ExpandVolume]);
                    c.claim("a", json!({ "capacity": { "storage": "2Gi" } }));
                    kernel.faults().enable();
                    let rule = format!("volume-manager: {action}@{side} {point}#1");
                    kernel.faults().add_text(&rule).unwrap();
                    let pod = pod_with("u1", &["a"]);
                    let mut tries = 0;
                    while c.mount(&pod).await.is_err() {
                        tries += 1;
                        assert!(tries < 3, "{rule}");
                    }
                    assert!(c.host.is_mounted("pods/u1/volumes/kubernetes.io~csi/pv-a/mount"), "{rule}");
                    assert!(c.csi.calls().contains(&"expand h-a".to_owned()), "{rule}: it has not grown");
                    while c.unmount("u1").await.is_err() {
                        tries += 1;
                        assert!(tries < 3, "{rule}");
                    }
                    secs(100).await;
                    assert_eq!(kernel.faults().log().len(), 1, "{rule} did not strike");
                    assert!(c.is_clean() && c.csi.is_idle(), "{rule}: {:?}", c.csi.calls());
                    assert_eq!(c.csi.wrong(), [""; 0], "{rule}");
                });
            }
        }
    }
}
