//! The actor in simulated time.

use std::sync::Arc;
use std::time::Duration;

use actor::AskError;
use actor::testing::{run, run_real, spin_until, until};
use contract::volume::{
    MakePodDirs, MountVolumes, MountedVolumes, PrepareSubPath, RemovePodDir, UnmountVolumes, VolumeError,
};
use fakes::files::FileTrouble;
use metrics::volumes::RECONSTRUCTED;
use model::PodUid;
use model::core::Pod;
use serde_json::json;

use super::rig::{Bench, host, paths, pod, with_bench};

async fn mount(bench: &Bench, pod: &Arc<Pod>) -> Result<Arc<MountedVolumes>, VolumeError> {
    bench.wiring.ask(MountVolumes { pod: pod.clone() }).await?
}

async fn unmount(bench: &Bench, uid: &str) -> Result<(), VolumeError> {
    bench.wiring.ask(UnmountVolumes { uid: PodUid::from(uid) }).await?
}

async fn remove(bench: &Bench, uid: &str) -> Result<(), VolumeError> {
    bench.wiring.ask(RemovePodDir { uid: PodUid::from(uid) }).await?
}

async fn make(bench: &Bench, uid: &str) -> Result<(), VolumeError> {
    bench.wiring.ask(MakePodDirs { uid: PodUid::from(uid) }).await?
}

fn empty_dir(uid: &str) -> Arc<Pod> {
    pod(uid, json!([{"name": "v", "emptyDir": {}}]))
}

#[test]
fn a_pod_lives_and_goes() {
    with_bench(async |bench, host| {
        make(&bench, "u").await.unwrap();
        for dir in ["pods/u", "pods/u/volumes", "pods/u/plugins"] {
            assert_eq!(host.mode(dir), 0o750);
        }
        assert_eq!(bench.present("u"), Some(vec![]));
        let dir = host.path("pods/u/volumes/kubernetes.io~empty-dir/v");
        assert_eq!(paths(&mount(&bench, &empty_dir("u")).await), [dir.to_string_lossy()]);
        assert_eq!(bench.present("u"), Some(vec!["v".to_owned()]));
        let sub = PrepareSubPath {
            uid: PodUid::from("u"),
            container: "app".into(),
            volume: "v".into(),
            volume_path: dir,
            sub_path: "logs".into(),
            mount_index: 0,
        };
        let target = bench.wiring.ask(sub).await.unwrap().unwrap();
        assert_eq!(target, host.path("pods/u/volume-subpaths/v/app/0"));
        unmount(&bench, "u").await.unwrap();
        assert_eq!(bench.present("u"), Some(vec![]));
        remove(&bench, "u").await.unwrap();
        assert_eq!(bench.present("u"), None);
        assert!(!host.exists("pods/u"));
    });
}

#[test]
fn a_pod_without_volumes_touches_nothing() {
    with_bench(async |bench, host| {
        assert!(mount(&bench, &pod("u", json!([]))).await.unwrap().volumes.is_empty());
        unmount(&bench, "u").await.unwrap();
        assert!(!host.exists(""));
    });
}

#[test]
fn what_fails_is_tried_again_with_an_event_each_time_until_it_works() {
    run(3, |kernel| async move {
        let host = host();
        host.write("h/file", "content");
        let path = host.path("h/late");
        let bench = Bench::start(&kernel, &host);
        let p = pod("u", json!([{"name": "s", "hostPath": {"path": path.to_str().unwrap(), "type": "Directory"}}]));
        let b = bench.clone();
        let waiting = tokio::task::spawn_local(async move { mount(&b, &p).await });
        tokio::time::sleep(Duration::from_secs(5)).await;
        let seen = bench.events.lines();
        let line = format!(
            "Warning FailedMount: MountVolume.SetUp failed for volume \"s\" : hostPath type check failed: {} is not a directory",
            path.display()
        );
        assert_eq!(seen, vec![line; 4], "at 0, 0.5, 1.5 and 3.5 s");
        host.dir("h/late");
        assert!(waiting.await.unwrap().is_ok());
    });
}

#[test]
fn a_wait_ends_after_two_minutes_with_what_is_missing() {
    with_bench(async |bench, host| {
        let path = host.path("none");
        let p = pod(
            "u",
            json!([
                {"name": "s", "hostPath": {"path": path.to_str().unwrap(), "type": "File"}},
                {"name": "v", "emptyDir": {}},
            ]),
        );
        make(&bench, "u").await.unwrap();
        let e = mount(&bench, &p).await.unwrap_err();
        let expected = format!(
            "unmounted volumes=[s], unattached volumes=[], failed to process volumes=[]: hostPath type check failed: {} is not a file",
            path.display()
        );
        assert_eq!(e.message, expected);
        let row = bench.row("u").unwrap();
        assert!(row.error.as_ref().unwrap().contains("is not a file"));
        assert_eq!(row.present, ["v"]);
    });
}

#[test]
fn a_kind_that_nothing_here_serves_is_told_at_once() {
    with_bench(async |bench, _| {
        let p = pod(
            "u",
            json!([{"name": "c", "glusterfs": {"endpoints": "e", "path": "/"}}, {"name": "d", "emptyDir": {"medium": "Tape"}}]),
        );
        let asked = bench.wiring.inlet().ask(MountVolumes { pod: p }, Duration::from_millis(400)).await.unwrap();
        let failed = asked.unwrap_err();
        assert!(!failed.late);
        assert_eq!(
            failed.message,
            "unmounted volumes=[c d], unattached volumes=[], failed to process volumes=[c d]: volume \"c\": glusterfs volumes are not supported; unknown storage medium \"Tape\""
        );
    });
}

#[test]
fn an_unmount_ends_a_wait_and_nothing_is_made_after_it() {
    with_bench(async |bench, host| {
        host.fail("mkdir", "pods/u/volumes/kubernetes.io~empty-dir/v");
        let b = bench.clone();
        let waiting = tokio::task::spawn_local(async move { mount(&b, &empty_dir("u")).await });
        tokio::time::sleep(Duration::from_secs(3)).await;
        unmount(&bench, "u").await.unwrap();
        remove(&bench, "u").await.unwrap();
        host.disk.calm();
        assert_eq!(waiting.await.unwrap().unwrap_err().message, "the pod no longer wants its volumes");
        assert!(!host.exists("pods/u"));
        assert!(mount(&bench, &empty_dir("u")).await.is_ok(), "a new pod of that name may want them again");
    });
}

#[test]
fn what_was_there_before_is_shown_after_a_start() {
    run(7, |kernel| async move {
        let host = host();
        host.write("pods/old/volumes/kubernetes.io~empty-dir/v/data", "content");
        host.dir("pods/bare");
        let before = RECONSTRUCTED.get();
        let bench = Bench::start(&kernel, &host);
        until("rows", || bench.present("old") == Some(vec!["v".to_owned()]) && bench.present("bare") == Some(vec![]))
            .await;
        host.remove("pods/bare");
        bench.manager.kill();
        until("row goes", || bench.present("bare").is_none()).await;
        assert_eq!(bench.manager.info().generation, 1);
        assert_eq!(RECONSTRUCTED.get(), before + 1, "counted once in a process");
        host.remove("pods/old");
        tokio::time::sleep(Duration::from_secs(61)).await;
        until("and each minute", || bench.present("old").is_none()).await;
    });
}

#[test]
fn a_removal_that_must_not_be_is_refused_and_told() {
    run(8, |kernel| async move {
        let host = host();
        host.write("pods/u/volumes/kubernetes.io~empty-dir/v/precious", "content");
        let bench = Bench::start(&kernel, &host);
        let e = remove(&bench, "u").await.unwrap_err();
        assert!(e.message.starts_with("volume \"v\" of kubernetes.io~empty-dir: rmdir"), "{e}");
        assert!(bench.row("u").unwrap().error.is_some());
        assert!(remove(&bench, "..").await.is_err());
        unmount(&bench, "u").await.unwrap();
        remove(&bench, "u").await.unwrap();
    });
}

#[test]
fn an_unmount_that_fails_names_what_is_left() {
    with_bench(async |bench, host| {
        mount(&bench, &empty_dir("u")).await.unwrap();
        host.fail("remove", "pods/u/volumes/kubernetes.io~empty-dir/v");
        let e = unmount(&bench, "u").await.unwrap_err();
        assert!(e.message.starts_with("mounted volumes=[v]: volume \"v\" of kubernetes.io~empty-dir: remove"), "{e}");
        assert_eq!(bench.present("u"), Some(vec!["v".to_owned()]));
    });
}

#[test]
fn a_root_directory_that_hangs_is_read_once_at_a_time() {
    run(10, |kernel| async move {
        kernel.faults().add_text("volume-manager: delay(2h)@rescan").unwrap();
        let host = host();
        let bench = Bench::start(&kernel, &host);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let runs = kernel.faults().log().iter().filter(|l| l.contains("rescan")).count();
        assert_eq!(runs, 1);
        mount(&bench, &empty_dir("u")).await.unwrap();
    });
}

#[test]
fn a_panic_at_any_fault_point_costs_one_answer_at_most() {
    for point in [
        "rescan",
        "make-dirs",
        "made-dirs",
        "mount",
        "mounted",
        "sub-path",
        "sub-path-done",
        "unmount",
        "unmounted",
        "remove-dir",
        "removed-dir",
    ] {
        run(10, |kernel| async move {
            kernel.faults().add_text(&format!("volume-manager: panic@{point}#1")).unwrap();
            let host = host();
            let bench = Bench::start(&kernel, &host);
            let sub = || PrepareSubPath {
                uid: PodUid::from("u"),
                container: "app".into(),
                volume: "v".into(),
                volume_path: host.path("pods/u/volumes/kubernetes.io~empty-dir/v"),
                sub_path: "logs".into(),
                mount_index: 0,
            };
            for round in 0..2 {
                let mut answers = vec![make(&bench, "u").await.is_ok(), mount(&bench, &empty_dir("u")).await.is_ok()];
                if !answers[1] {
                    // No worker asks for a part of a volume that it was not given.
                    mount(&bench, &empty_dir("u")).await.unwrap();
                }
                answers.extend([
                    matches!(bench.wiring.ask(sub()).await, Ok(Ok(_))),
                    unmount(&bench, "u").await.is_ok(),
                    remove(&bench, "u").await.is_ok(),
                ]);
                let failed = answers.iter().filter(|ok| !**ok).count();
                assert!(failed <= 1 - round, "{point}, round {round}: {answers:?}");
            }
            assert!(!host.exists("pods/u"), "{point}");
            assert!(!kernel.faults().log().is_empty(), "{point} was never passed");
        });
    }
}

#[test]
fn a_hung_call_holds_up_its_own_pod_only_and_a_successor_waits_for_it() {
    run_real(|kernel| async move {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        make(&bench, "other").await.unwrap();
        host.disk.trouble(&host.path("pods/stuck"), FileTrouble::Hang);
        let b = bench.clone();
        let hung = tokio::task::spawn_local(async move { mount(&b, &empty_dir("stuck")).await });
        spin_until("hangs", || host.disk.hanging() > 0).await;
        assert!(mount(&bench, &empty_dir("other")).await.is_ok());
        bench.manager.kill();
        assert_eq!(hung.await.unwrap().unwrap_err(), VolumeError::from(AskError::Crashed));
        let b = bench.clone();
        let end = tokio::task::spawn_local(async move {
            unmount(&b, "stuck").await.unwrap();
            remove(&b, "stuck").await.unwrap();
        });
        assert!(unmount(&bench, "other").await.is_ok());
        host.disk.calm();
        end.await.unwrap();
        assert!(!host.exists("pods/stuck"), "made by the old thread, then removed");
    });
}

#[test]
fn hung_host_paths_of_more_pods_than_threads_hold_up_nobody_elses_volumes() {
    run_real(|kernel| async move {
        let host = host();
        let bench = Bench::start(&kernel, &host);
        mount(&bench, &empty_dir("innocent")).await.unwrap();
        host.dir("nfs");
        host.disk.trouble(&host.path("nfs"), FileTrouble::Hang);
        let hung: Vec<_> = (0..9)
            .map(|i| {
                let path = host.path(format!("nfs/{i}"));
                let p = pod(
                    &format!("stuck{i}"),
                    json!([{"name": "s", "hostPath": {"path": path.to_str().unwrap(), "type": "Directory"}}]),
                );
                let b = bench.clone();
                tokio::task::spawn_local(async move { mount(&b, &p).await })
            })
            .collect();
        spin_until("all threads of users' paths hang", || host.disk.hanging() == 8).await;
        let sub = PrepareSubPath {
            uid: PodUid::from("innocent"),
            container: "app".into(),
            volume: "v".into(),
            volume_path: host.path("pods/innocent/volumes/kubernetes.io~empty-dir/v"),
            sub_path: "logs".into(),
            mount_index: 0,
        };
        bench.wiring.ask(sub).await.unwrap().unwrap();
        let untyped = pod("free", json!([{"name": "s", "hostPath": {"path": host.path("nfs/x").to_str().unwrap()}}]));
        assert!(mount(&bench, &untyped).await.is_ok(), "a path that is not checked is not touched");
        unmount(&bench, "innocent").await.unwrap();
        remove(&bench, "innocent").await.unwrap();
        assert!(!host.exists("pods/innocent"));
        assert_eq!(host.disk.hanging(), 8, "all the while");
        host.disk.calm();
        for waits in hung {
            waits.abort();
        }
    });
}

#[test]
fn pods_that_hang_do_not_end_the_rescans_of_the_others() {
    run(11, |kernel| async move {
        let host = host();
        for i in 0..5 {
            host.dir(format!("pods/a-stuck{i}"));
            host.disk.trouble(&host.path(format!("pods/a-stuck{i}")), FileTrouble::Hang);
        }
        host.dir("pods/later");
        let bench = Bench::start(&kernel, &host);
        tokio::time::sleep(Duration::from_secs(61)).await;
        until("a row", || bench.present("later") == Some(vec![])).await;
        host.remove("pods/later");
        tokio::time::sleep(Duration::from_secs(61)).await;
        until("and again", || bench.present("later").is_none()).await;
    });
}

#[test]
fn volumes_that_cannot_be_listed_are_not_taken_for_gone() {
    with_bench(async |bench, host| {
        mount(&bench, &empty_dir("u")).await.unwrap();
        for below in ["pods/u/volumes", "pods/u/volumes/kubernetes.io~empty-dir", "pods/u/volumeDevices"] {
            host.fail("readdir", below);
            tokio::time::sleep(Duration::from_secs(61)).await;
            assert_eq!(bench.present("u"), Some(vec!["v".to_owned()]), "what was known stays: {below}");
            host.disk.calm();
        }
        host.fail("readdir", "pods/u/volumes");
        let e = unmount(&bench, "u").await.unwrap_err();
        assert!(e.message.starts_with("mounted volumes=[?]: readdir"), "{e}");
        assert!(remove(&bench, "u").await.is_err());
        assert!(host.exists("pods/u/volumes/kubernetes.io~empty-dir/v"));
        host.disk.calm();
        unmount(&bench, "u").await.unwrap();
        assert_eq!(bench.present("u"), Some(vec![]));
    });
}
