use std::collections::BTreeMap;

use contract::runtime::{Observed, Relist, RemoveContainer, RemovePodSandbox, RuntimeInfo, StopPodSandbox};
use cri_api::v1;
use fakes::runtime::{Fault, Features, Program, samples};
use model::PodUid;
use model::runtime::{ContainerState, EventTier, PodObservation};
use ports::runtime::Runtime;
use tokio::time::{Instant, sleep};

use super::{Rig, ms, rig, secs, uid};

fn tiers() -> [(EventTier, Features); 3] {
    [
        (EventTier::CriStream, Features::containerd_2()),
        (EventTier::Containerd, Features { resources_in_status: true, ..Features::containerd_1_6() }),
        (EventTier::Relist, Features { resources_in_status: true, ..Features::without_events() }),
    ]
}

/// Somebody else's hands on the runtime.
async fn foreign(other: &dyn Runtime, pod: &str) -> (String, String) {
    let config = Some(samples::sandbox(pod, 0));
    let request = v1::RunPodSandboxRequest { config: config.clone(), runtime_handler: String::new() };
    let sandbox = other.run_pod_sandbox(request).await.unwrap().pod_sandbox_id;
    let request = v1::CreateContainerRequest {
        pod_sandbox_id: sandbox.clone(),
        config: Some(samples::container(pod, "app", "app:1", 0)),
        sandbox_config: config,
    };
    let container_id = other.create_container(request).await.unwrap().container_id;
    other.start_container(v1::StartContainerRequest { container_id: container_id.clone() }).await.unwrap();
    (sandbox, container_id)
}

/// What happens to five pods, at the same times in each tier.
async fn story(r: &Rig) {
    let other = r.fake.client();
    let (_, exits) = r.run("exits").await;
    let (restarted, first) = r.run("restarted").await;
    let (removed, gone) = r.run("removed").await;
    let (down, _) = r.run("down").await;
    let (_, theirs) = foreign(&*other, "foreign").await;
    sleep(secs(5)).await;
    r.fake.exit(exits.as_str(), 3);
    r.fake.oom(first.as_str());
    r.fake.exit(&theirs, 0);
    let second = r.create("restarted", &restarted, "app", 1).await.unwrap();
    r.start("restarted", &second).await.unwrap();
    r.fake.kill_sandbox(down.as_str());
    other.remove_container(v1::RemoveContainerRequest { container_id: gone.to_string() }).await.unwrap();
    other.stop_pod_sandbox(v1::StopPodSandboxRequest { pod_sandbox_id: removed.to_string() }).await.unwrap();
    other.remove_pod_sandbox(v1::RemovePodSandboxRequest { pod_sandbox_id: removed.to_string() }).await.unwrap();
    sleep(secs(5)).await;
}

#[test]
fn all_tiers_end_in_the_same_view() {
    let mut ends: Vec<(EventTier, BTreeMap<PodUid, PodObservation>)> = Vec::new();
    for (tier, features) in tiers() {
        rig(features, |r| {
            let ends = &mut ends;
            async move {
                story(&r).await;
                assert_eq!(r.info().tier, tier);
                assert_eq!(r.info().divergences, 0, "{tier:?}: events tell everything");
                let rows = r.wiring.board::<Observed>().snapshot().into_iter();
                ends.push((tier, rows.map(|(uid, row)| (uid, (*row.pod).clone())).collect()));
            }
        });
    }
    let (_, first) = &ends[0];
    assert_eq!(
        first.keys().map(PodUid::as_str).collect::<Vec<_>>(),
        ["uid-down", "uid-exits", "uid-foreign", "uid-restarted"]
    );
    let c = first[&uid("exits")].container("app").unwrap();
    assert_eq!((c.state, c.exit_code, c.reason.as_str()), (ContainerState::Exited, 3, "Error"));
    let restarted = &first[&uid("restarted")];
    let states: Vec<_> = restarted.instances("app").map(|c| (c.restart_count, c.state)).collect();
    assert_eq!(states, [(1, ContainerState::Running), (0, ContainerState::Exited)]);
    assert!(!first[&uid("down")].sandboxes[0].ready);
    assert_eq!(first[&uid("down")].ips.len(), 1, "the address outlives the sandbox");
    for (tier, end) in &ends[1..] {
        assert_eq!(end, first, "{tier:?}");
    }
}

/// A runtime that tells a part only would else have containers started twice.
#[test]
fn what_a_list_lacks_is_gone_only_if_it_is_not_found_by_its_id() {
    for (tier, features) in tiers() {
        rig(features, |r| async move {
            let (_, app) = r.run("web").await;
            r.run("other").await;
            r.run("third").await;
            sleep(secs(2)).await;
            let seen = || r.wiring.board::<Observed>().snapshot().into_values().map(|row| (*row.pod).clone());
            let before: Vec<PodObservation> = seen().collect();
            for times in 1..9 {
                r.fake.shorten_lists(times);
                r.wiring.ask(Relist).await.unwrap().unwrap();
                assert_eq!(seen().collect::<Vec<_>>(), before, "{tier:?}: {times} lists");
                let _ = r.observe("web", true).await.unwrap();
                assert_eq!(seen().collect::<Vec<_>>(), before, "{tier:?}: {times} lists");
            }
            r.fake.shorten_lists(0);
            r.fake.mute_events(true);
            let remove = v1::RemoveContainerRequest { container_id: app.to_string() };
            r.fake.client().remove_container(remove).await.unwrap();
            r.fake.shorten_lists(2);
            r.wiring.ask(Relist).await.unwrap().unwrap();
            assert!(r.observe("web", false).await.unwrap().containers.is_empty(), "{tier:?}");
        });
    }
}

/// Of docker's own words for what is not there a client makes no NotFound.
#[test]
fn where_it_cannot_be_found_out_what_a_list_lacks_is_gone_after_three_looks() {
    rig(Features::without_events(), |r| async move {
        let (_, app) = r.run("web").await;
        sleep(secs(2)).await;
        let remove = v1::RemoveContainerRequest { container_id: app.to_string() };
        r.fake.client().remove_container(remove).await.unwrap();
        r.fake.inject(Fault::error("ContainerStatus", tonic::Code::Unknown, "Error: No such container"));
        sleep(ms(1500)).await;
        assert_eq!(r.state("web"), Some(ContainerState::Running), "nobody says that it is gone");
        sleep(secs(5)).await;
        assert_eq!(r.state("web"), None);
        assert!(!r.info().stale);
    });
}

#[test]
fn an_exit_is_seen_at_once_where_there_are_events_and_within_a_relist_where_there_are_none() {
    for (tier, features) in tiers() {
        rig(features, |r| async move {
            let (_, app) = r.run("web").await;
            assert_eq!(r.observe("web", false).await.unwrap().container("app").unwrap().state, ContainerState::Running);
            sleep(secs(3)).await;
            r.fake.exit(app.as_str(), 1);
            let took = r.until("web", ContainerState::Exited).await;
            let limit = if tier == EventTier::Relist { ms(1010) } else { ms(5) };
            assert!(took <= limit, "{tier:?}: {took:?}");
        });
    }
}

#[test]
fn a_status_that_follows_its_event_late_is_waited_for() {
    for lag in [ms(1), ms(50), ms(800), ms(4000)] {
        rig(Features::containerd_1_6(), |r| async move {
            let (_, app) = r.run("web").await;
            r.fake.set_exit_lag(lag);
            r.fake.exit(app.as_str(), 1);
            let took = r.until("web", ContainerState::Exited).await;
            assert!(took <= lag * 2 + ms(20), "{lag:?}: {took:?}");
        });
    }
}

#[test]
fn own_calls_show_in_the_view_without_events_or_relists() {
    rig(Features::without_events(), |r| async move {
        let before = r.fake.count("ListContainers");
        let sandbox = r.sandbox("web", 0).await.unwrap();
        let seen = r.observe("web", false).await.unwrap();
        assert_eq!((seen.sandboxes.len(), seen.ips.len(), seen.name.as_str()), (1, 1, "web"));
        let app = r.create("web", &sandbox, "app", 0).await.unwrap();
        assert_eq!(r.observe("web", false).await.unwrap().containers[0].state, ContainerState::Created);
        r.start("web", &app).await.unwrap();
        assert_eq!(r.observe("web", false).await.unwrap().containers[0].state, ContainerState::Running);
        r.stop("web", &app, 1).await.unwrap();
        assert_eq!(r.observe("web", false).await.unwrap().containers[0].state, ContainerState::Exited);
        assert_eq!(r.row("web").unwrap().containers[0].hash, Some(0x8e45_cbd0));
        assert_eq!(r.fake.count("ListContainers"), before);
    });
}

#[test]
fn one_pod_start_costs_one_read_per_call() {
    for (tier, features) in tiers() {
        rig(features, |r| async move {
            r.fake.forget_calls();
            r.run("web").await;
            r.observe("web", false).await.unwrap();
            let reads = r.fake.count("PodSandboxStatus") + r.fake.count("ContainerStatus");
            assert!(reads <= 2 && r.fake.count("ListContainers") == 0, "{tier:?}: {reads}");
        });
    }
}

#[test]
fn one_pod_end_costs_one_look_at_its_container_and_one_at_all_of_it() {
    for (tier, features) in tiers() {
        rig(features, |r| async move {
            let (sandbox, app) = r.run("web").await;
            r.observe("web", false).await.unwrap();
            r.fake.forget_calls();
            r.stop("web", &app, 1).await.unwrap();
            r.wiring.call(StopPodSandbox { uid: uid("web"), sandbox: sandbox.clone() }).await.unwrap();
            let seen = r.observe("web", false).await.unwrap();
            assert!(!seen.is_alive() && seen.containers[0].state == ContainerState::Exited, "{tier:?}");
            r.wiring.call(RemoveContainer { uid: uid("web"), container: app }).await.unwrap();
            r.wiring.call(StopPodSandbox { uid: uid("web"), sandbox: sandbox.clone() }).await.unwrap();
            r.wiring.call(RemovePodSandbox { uid: uid("web"), sandbox }).await.unwrap();
            assert_eq!(r.row("web"), None);
            sleep(ms(400)).await;
            let count = |call: &str| r.fake.count(call);
            let lists = count("ListContainers") + count("ListPodSandbox");
            let reads = [count("ContainerStatus"), count("PodSandboxStatus"), lists];
            assert!(reads[0] <= 2 && reads[1] <= 1, "{tier:?}: {reads:?}");
            assert_eq!(r.info().divergences, 0, "{tier:?}");
        });
    }
}

#[test]
fn a_container_that_is_created_and_not_started_is_looked_at_a_moment_later() {
    rig(Features::without_events(), |r| async move {
        let sandbox = r.sandbox("web", 0).await.unwrap();
        r.observe("web", false).await.unwrap();
        r.create("web", &sandbox, "app", 0).await.unwrap();
        let took = r.until("web", ContainerState::Created).await;
        assert!(took <= secs(1), "{took:?}");
    });
}

#[test]
fn pods_that_are_there_at_start_are_listed_with_everything() {
    actor::testing::run(7, |kernel| async move {
        let fake = fakes::FakeRuntime::default();
        fake.add_images(&["app:1"]);
        let other = fake.client();
        for n in 0..110 {
            foreign(&*other, &format!("p{n}")).await;
        }
        fake.forget_calls();
        let r = Rig::new(kernel, fake);
        let mut info = r.wiring.value::<RuntimeInfo>().subscribe();
        info.wait_for(|i| i.listed).await.unwrap();
        assert_eq!(r.wiring.board::<Observed>().snapshot().len(), 110);
        assert_eq!((r.state("p77"), r.info().divergences), (Some(ContainerState::Running), 0));
        assert_eq!((r.fake.count("PodSandboxStatus"), r.fake.count("ContainerStatus")), (110, 110));
    });
}

#[test]
fn what_events_did_not_tell_is_found_by_the_audit_and_counted() {
    for (tier, features) in &tiers()[..2] {
        rig(features.clone(), |r| async move {
            let (_, app) = r.run("web").await;
            sleep(secs(15)).await;
            assert_eq!(r.info().divergences, 0);
            r.fake.mute_events(true);
            r.fake.exit(app.as_str(), 1);
            sleep(secs(61)).await;
            assert_eq!(r.state("web"), Some(ContainerState::Exited), "{tier:?}");
            assert_eq!(r.info().divergences, 1, "{tier:?}");
        });
    }
}

#[test]
fn relists_become_rare_while_they_agree_with_events() {
    for (tier, features) in tiers() {
        rig(features, |r| async move {
            r.run("web").await;
            r.observe("web", false).await.unwrap();
            r.fake.forget_calls();
            sleep(secs(600)).await;
            let n = r.fake.count("ListContainers");
            let want = if tier == EventTier::Relist { 590..=601 } else { 9..=14 };
            assert!(want.contains(&n), "{tier:?}: {n}");
            assert_eq!(r.fake.count("ContainerStatus"), 0, "{tier:?}: nothing changed, nothing is read");
        });
    }
}

#[test]
fn a_container_that_vanishes_between_list_and_status_is_no_error() {
    rig(Features::without_events(), |r| async move {
        let other = r.fake.client();
        r.fake.inject(Fault::error("ContainerStatus", tonic::Code::NotFound, "gone").times(1));
        foreign(&*other, "web").await;
        sleep(ms(1010)).await;
        let row = r.row("web").unwrap();
        assert_eq!((row.sandboxes.len(), row.containers.len()), (1, 0));
        sleep(ms(1010)).await;
        assert_eq!(r.row("web").unwrap().containers.len(), 1);
    });
}

#[test]
fn one_pod_that_cannot_be_inspected_leaves_the_others_alone() {
    rig(Features::without_events(), |r| async move {
        let (_, web) = r.run("web").await;
        let (_, db) = r.run("db").await;
        r.observe("db", false).await.unwrap();
        r.observe("web", false).await.unwrap();
        r.fake.inject(Fault::hang("ContainerStatus").matching("ns/web/"));
        r.fake.exit(web.as_str(), 1);
        r.fake.exit(db.as_str(), 1);
        assert!(r.until("db", ContainerState::Exited).await <= ms(1010));
        assert_eq!(r.state("web"), Some(ContainerState::Running));
        r.fake.clear_faults();
        assert!(r.until("web", ContainerState::Exited).await <= secs(45));
    });
}

#[test]
fn a_pod_that_nobody_knows_is_empty_and_a_forced_one_reads_the_runtime() {
    rig(Features::containerd_1_6(), |r| async move {
        r.fake.forget_calls();
        let seen = r.observe("web", false).await.unwrap();
        assert_eq!(*seen, PodObservation::empty(uid("web"), "ns", "web"));
        assert_eq!(r.fake.calls(), []);
        let seen = r.observe("web", true).await.unwrap();
        assert_eq!(*seen, PodObservation::empty(uid("web"), "ns", "web"));
        assert_eq!(r.fake.count("ListPodSandbox"), 1);
        r.fake.mute_events(true);
        foreign(&*r.fake.client(), "web").await;
        assert_eq!(r.observe("web", true).await.unwrap().containers.len(), 1);
    });
}

#[test]
fn what_was_not_made_for_a_pod_is_not_shown() {
    for (_, features) in tiers() {
        rig(features, |r| async move {
            let mut config = samples::sandbox("crictl", 0);
            config.labels.clear();
            let request = v1::RunPodSandboxRequest { config: Some(config), runtime_handler: String::new() };
            r.fake.client().run_pod_sandbox(request).await.unwrap();
            sleep(secs(70)).await;
            assert!(r.wiring.board::<Observed>().snapshot().is_empty());
        });
    }
}

#[test]
fn the_termination_message_is_read_once_when_the_container_ends() {
    for (_, features) in tiers() {
        rig(features, |r| async move {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("message");
            r.fake.program("app", &[Program::exits(secs(2), 1).message("bye")]);
            let sandbox = r.sandbox("web", 0).await.unwrap();
            let mut config = samples::container("web", "app", "app:1", 0);
            config.mounts.push(v1::Mount {
                container_path: "/dev/termination-log".to_owned(),
                host_path: path.to_str().unwrap().to_owned(),
                ..Default::default()
            });
            let sandbox_config = std::sync::Arc::new(samples::sandbox("web", 0));
            let create =
                contract::runtime::CreateContainer { uid: uid("web"), sandbox, config: config.into(), sandbox_config };
            let app = r.wiring.call(create).await.unwrap();
            r.start("web", &app).await.unwrap();
            r.until("web", ContainerState::Exited).await;
            assert_eq!(r.row("web").unwrap().containers[0].message, "bye");
            std::fs::write(&path, "changed").unwrap();
            assert_eq!(r.observe("web", true).await.unwrap().containers[0].message, "bye");
        });
    }
}

#[test]
fn a_relist_on_demand_ends_when_the_view_is_no_older_than_the_asking() {
    rig(Features::containerd_1_6(), |r| async move {
        r.fake.mute_events(true);
        foreign(&*r.fake.client(), "web").await;
        let before = Instant::now();
        r.wiring.call(Relist).await.unwrap();
        assert_eq!(r.state("web"), Some(ContainerState::Running));
        assert!(before.elapsed() < ms(5));
        r.fake.inject(Fault::error("ListContainers", tonic::Code::Internal, "boom").times(1));
        assert_eq!(r.wiring.call(Relist).await.unwrap_err().message, "boom");
    });
}
