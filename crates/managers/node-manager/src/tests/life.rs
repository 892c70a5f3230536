//! A node on good days.

use std::time::Duration;

use actor::testing::{run, settle};
use contract::node::NodeOrigin;
use contract::shutdown::Shutdown;
use fakes::api::{Matching, Trouble};
use fakes::runtime::FakeImage;
use model::core::{NodeSpec, Taint};

use super::rig::*;

const STEADY: [&str; 3] = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"];

#[test]
fn registers_once_with_a_complete_status_and_then_keeps_quiet() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        let view = rig.view();
        assert_eq!(view.origin, NodeOrigin::Api);
        assert!(view.api_uid().is_some());
        assert_eq!(view.ready, Some((true, String::new())));
        let node = rig.stored().unwrap();
        let status = node.status.unwrap();
        assert_eq!(status.node_info.unwrap().container_runtime_version, "containerd://2.0.0");
        assert_eq!(status.addresses.unwrap()[0].address, "10.0.0.1");
        assert_eq!(rig.ready(), "True");
        rig.pass(secs(145)).await;
        assert_eq!(rig.api.requests_of("POST", "/nodes").len(), 1);
        assert_eq!(rig.patches(), 0, "nothing changed");
        let expected: Vec<_> = ["Starting"].into_iter().chain(STEADY).chain(["NodeReady"]).collect();
        assert_eq!(rig.events(), expected);
        // The first report after a change comes after half to one and a half periods, later ones after one.
        until("a report", || rig.patches() == 1).await;
        assert!(rig.api.requests_of("PATCH", "/status")[0].at < secs(470));
        rig.pass(secs(940)).await;
        assert_eq!(rig.patches(), 4);
        assert!(rig.api.requests_of("GET", "/nodes").len() <= 1, "the watch serves; the lease may have asked once");
    });
}

#[test]
fn an_existing_node_is_reconciled_and_keeps_what_is_not_ours() {
    run(2, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        let mut old = model::core::Node::default();
        old.metadata.name = Some(NAME.into());
        old.metadata.labels =
            Some([("team", "red"), ("kubernetes.io/hostname", "old")].map(|(k, v)| (k.into(), v.into())).into());
        let taint = Taint { key: "user".into(), effect: "NoSchedule".into(), ..Taint::default() };
        old.spec =
            Some(NodeSpec { taints: Some(vec![taint.clone()]), unschedulable: Some(true), ..NodeSpec::default() });
        let uid = rig.api.put(&old).metadata.uid;
        let mut config = config();
        config.plan.taints = vec![Taint { key: "mine".into(), effect: "NoSchedule".into(), ..Taint::default() }];
        config.plan.labels = [("disk".to_owned(), "ssd".to_owned())].into();
        rig.start_manager(config);
        until("ready", || rig.stored().unwrap().status.is_some() && rig.ready() == "True").await;
        let node = rig.stored().unwrap();
        assert_eq!(node.metadata.uid, uid);
        let labels = node.metadata.labels.unwrap();
        assert_eq!((labels["team"].as_str(), labels["kubernetes.io/hostname"].as_str()), ("red", "n1"));
        assert_eq!(labels.get("disk"), None);
        let spec = node.spec.unwrap();
        assert_eq!((spec.taints.unwrap(), spec.unschedulable), (vec![taint], Some(true)));
        assert!(rig.events().contains(&"NodeNotSchedulable".to_owned()));
    });
}

#[test]
fn the_runtime_learns_the_networks_of_pods_once_and_again_when_they_change() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.pass(secs(20)).await;
        assert!(rig.networks().is_empty(), "nobody has given any");
        let give = |cidrs: &[&str]| {
            let mut node = rig.stored().unwrap();
            node.spec.get_or_insert_default().pod_cidrs = Some(cidrs.iter().map(|c| (*c).to_owned()).collect());
            rig.api.put(&node);
        };
        give(&["10.244.1.0/24", "fd00:1::/64"]);
        rig.pass(secs(40)).await;
        let both = "10.244.1.0/24,fd00:1::/64";
        assert_eq!(rig.networks(), [both, both], "refused, then taken");
        give(&["10.244.2.0/24"]);
        rig.pass(secs(30)).await;
        assert_eq!(rig.networks(), [both, both, "10.244.2.0/24"]);
    });
}

#[test]
fn a_machine_that_goes_down_is_told_at_once_and_so_is_one_that_stays_up_after_all() {
    with_node(async |rig| {
        until("ready", || rig.view().registered && rig.ready() == "True").await;
        rig.events();
        for (shutting_down, ready) in [(true, "False"), (false, "True")] {
            rig.wiring.set(Shutdown { shutting_down, ..Shutdown::default() });
            rig.pass(Duration::from_millis(100)).await;
            assert_eq!((rig.view().shutting_down, rig.ready().as_str()), (shutting_down, ready));
        }
        assert_eq!(rig.events(), ["NodeNotReady", "NodeReady"]);
        rig.wiring.set(Shutdown { shutting_down: true, ..Shutdown::default() });
        rig.pass(secs(1)).await;
        let condition = rig.condition("Ready");
        assert_eq!(condition.reason.as_deref(), Some("KubeletNotReady"));
        assert_eq!(condition.message.as_deref(), Some("node is shutting down"));
        // A successor says the same.
        rig.events();
        rig.manager.as_ref().unwrap().kill();
        rig.pass(secs(20)).await;
        assert_eq!((rig.ready().as_str(), rig.view().shutting_down), ("False", true));
        assert!(!rig.events().contains(&"NodeReady".to_owned()));
    });
}

/// A kubelet with device plugins ran here before. No pod may be admitted by devices that nobody can give it, not even while
/// the server does not take the registration.
#[test]
fn devices_of_an_earlier_kubelet_are_not_offered() {
    run(12, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        let gpus = serde_json::json!({ "cpu": "2", "acme.com/gpu": "4" });
        let old =
            serde_json::json!({ "metadata": { "name": NAME }, "status": { "capacity": gpus, "allocatable": gpus } });
        rig.api.put(&serde_json::from_value::<model::core::Node>(old).unwrap());
        let away = ports::api::ApiError::status(503, "ServiceUnavailable", "not now");
        rig.api.fail("PATCH", "/nodes/n1/status", 2, away);
        rig.start_manager(config());
        until("the API's Node", || rig.view().origin == NodeOrigin::Api).await;
        let offered = |node: &model::core::Node| {
            let status = node.status.clone().unwrap();
            [status.capacity, status.allocatable].map(|list| list.unwrap()["acme.com/gpu"].0.clone())
        };
        assert!(!rig.view().registered);
        assert_eq!(offered(rig.view().node.as_ref().unwrap()), ["0", "0"]);
        until("registered", || rig.view().registered).await;
        assert_eq!(offered(&rig.stored().unwrap()), ["0", "0"]);
        assert_eq!(offered(rig.view().node.as_ref().unwrap()), ["0", "0"]);
    });
}

#[test]
fn a_node_that_may_not_make_itself_takes_the_one_that_is_there() {
    run(3, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        let forbidden = ports::api::ApiError::status(403, "Forbidden", "no");
        rig.api.trouble(Matching::of("POST", "/nodes"), Trouble::DoneButLost(forbidden.clone()), 1);
        rig.start_manager(config());
        until("registered", || rig.view().registered).await;
        assert_eq!(rig.api.requests_of("POST", "/nodes").len(), 1);
        let mut alone = Rig::new(&kernel);
        alone.runtime_says(|_| ());
        alone.api.fail("POST", "/nodes", 3, forbidden);
        alone.start_manager(config());
        until("registered in the end", || alone.view().registered).await;
        assert_eq!(alone.api.requests_of("POST", "/nodes").len(), 4);
    });
}

#[test]
fn without_registration_the_node_is_awaited() {
    run(4, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        rig.start_manager(crate::Config { register: false, ..config() });
        rig.pass(secs(30)).await;
        assert!(rig.api.requests_of("POST", "/nodes").is_empty());
        let mut node = model::core::Node::default();
        node.metadata.name = Some(NAME.into());
        rig.api.put(&node);
        rig.pass(secs(12)).await;
        assert_eq!(rig.ready(), "True");
    });
}

#[test]
fn a_node_that_stands_alone_asks_nobody() {
    run(5, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        rig.start_manager_with(config(), None);
        until("a Node", || rig.view().node.is_some()).await;
        let view = rig.view();
        assert_eq!((view.origin, view.registered), (NodeOrigin::Host, true));
        assert_eq!(view.node.as_ref().unwrap().metadata.labels.as_ref().unwrap()["kubernetes.io/os"], "linux");
        rig.presses(&["DiskPressure"]);
        rig.pass(secs(11)).await;
        assert_eq!(rig.view().pressure, ["DiskPressure"]);
        assert_eq!(rig.events(), ["Starting", "NodeHasDiskPressure"]);
        assert!(rig.api.requests().is_empty());
    });
}

#[test]
fn a_restarted_daemon_never_says_that_a_ready_node_is_not() {
    run(6, |kernel| async move {
        let first = Rig::start(&kernel).await;
        until("registered", || first.view().registered).await;
        first.manager.as_ref().unwrap().stop();
        let mut rig = Rig::new(&kernel);
        rig.api = first.api.clone();
        rig.api.forget_requests();
        rig.start_manager(config());
        // The runtime speaks late, its network later still.
        tokio::time::sleep(secs(3)).await;
        rig.runtime_says(|i| {
            i.listed = false;
            i.network = Err("container runtime network not ready: NetworkReady=false reason:x message:y".into());
        });
        tokio::time::sleep(secs(1)).await;
        assert_eq!(rig.patches(), 0);
        rig.runtime_says(|_| ());
        until("reported", || rig.patches() > 0).await;
        rig.pass(secs(60)).await;
        assert_eq!((rig.said_not_ready(), rig.patches()), (0, 1));
        assert_eq!(rig.events(), ["Starting"]);
    });
}

#[test]
fn a_restarted_daemon_whose_runtime_is_truly_down_says_so_after_a_while() {
    run(7, |kernel| async move {
        let first = Rig::start(&kernel).await;
        until("registered", || first.view().registered).await;
        first.manager.as_ref().unwrap().stop();
        let mut rig = Rig::new(&kernel);
        rig.api = first.api.clone();
        rig.wiring.set(contract::runtime::RuntimeInfo {
            error: Some("connection refused".into()),
            stale: true,
            ..contract::runtime::RuntimeInfo::unknown()
        });
        rig.start_manager(config());
        rig.pass(secs(9)).await;
        assert_eq!(rig.ready(), "True");
        rig.pass(secs(3)).await;
        let ready = rig.condition("Ready");
        assert_eq!(ready.message.as_deref(), Some("container runtime status check may not have completed yet"));
        assert_eq!(ready.status, "False");
    });
}

#[test]
fn a_runtime_that_goes_away_is_down_after_half_a_minute_and_back_at_once() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.pass(secs(20)).await;
        rig.events();
        rig.runtime_says(|i| {
            i.stale = true;
            i.ready = false;
            i.error = Some("connection refused".into());
        });
        rig.pass(secs(29)).await;
        assert_eq!(rig.ready(), "True");
        rig.pass(secs(2)).await;
        let ready = rig.condition("Ready");
        assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("KubeletNotReady")));
        assert_eq!(ready.message.as_deref(), Some("container runtime is down"));
        rig.runtime_says(|_| ());
        settle().await;
        until("ready again", || rig.ready() == "True").await;
        assert_eq!(rig.events(), ["NodeNotReady", "NodeReady"]);
    });
}

#[test]
fn what_the_runtime_says_against_itself_is_told_at_once() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        let network =
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni";
        let runtime = "container runtime not ready: RuntimeReady=false reason:a message:b";
        rig.runtime_says(|i| i.network = Err(network.into()));
        until("told", || rig.ready() == "False").await;
        assert_eq!(rig.condition("Ready").message.as_deref(), Some(network));
        rig.runtime_says(|i| {
            i.network = Err(network.into());
            i.ready = false;
            i.error = Some(runtime.into());
        });
        let both = format!("[{runtime}, {network}]");
        until("both", || rig.condition("Ready").message.as_deref() == Some(&both)).await;
        assert_eq!(rig.view().ready, Some((false, both)));
    });
}

#[test]
fn a_runtime_that_stops_listing_is_told() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        tokio::time::sleep(secs(195)).await;
        let ready = rig.condition("Ready");
        let message = ready.message.unwrap();
        assert!(message.starts_with("PLEG is not healthy: pleg was last seen active 3m"), "{message}");
    });
}

#[test]
fn pressure_shows_at_once_and_goes_at_once() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.events();
        rig.presses(&["MemoryPressure", "something newer"]);
        until("told", || rig.condition("MemoryPressure").status == "True").await;
        assert_eq!(rig.view().pressure, ["MemoryPressure"]);
        rig.presses(&[]);
        until("told", || rig.condition("MemoryPressure").status == "False").await;
        assert_eq!(rig.events(), ["NodeHasInsufficientMemory", "NodeHasSufficientMemory"]);
    });
}

#[test]
fn a_reboot_is_told_once() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.events();
        rig.machine.change(|m| m.identity.boot_id = "boot-2".into());
        rig.pass(secs(60)).await;
        assert_eq!(rig.events(), ["Rebooted"]);
        assert_eq!(rig.stored().unwrap().status.unwrap().node_info.unwrap().boot_id, "boot-2");
    });
}

#[test]
fn images_appear_within_half_a_minute() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        let image = FakeImage { size: 7, ..FakeImage::new("a:1") };
        rig.runtime.add_image(image.clone());
        rig.pass(secs(45)).await;
        let images = rig.stored().unwrap().status.unwrap().images.unwrap();
        assert_eq!(images.len(), 1);
        assert_eq!((images[0].names.clone(), images[0].size_bytes), (Some(vec![image.digest, image.name]), Some(7)));
    });
}

#[test]
fn a_label_that_is_ours_comes_back_and_a_cordon_is_told() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.events();
        rig.api.change::<model::core::Node>(None, NAME, |n| {
            n.metadata.labels.as_mut().unwrap().remove("kubernetes.io/os");
            n.spec.get_or_insert_default().unschedulable = Some(true);
        });
        rig.pass(secs(12)).await;
        assert_eq!(rig.stored().unwrap().metadata.labels.unwrap()["kubernetes.io/os"], "linux");
        rig.api.change::<model::core::Node>(None, NAME, |n| n.spec.as_mut().unwrap().unschedulable = None);
        rig.pass(secs(1)).await;
        assert_eq!(rig.events(), ["NodeNotSchedulable", "NodeSchedulable"]);
    });
}

#[test]
fn readers_of_the_view_are_left_in_peace() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.pass(secs(12)).await;
        let mut view = rig.wiring.value::<contract::node::NodeView>().subscribe();
        let mut wakes = 0;
        for _ in 0..12 {
            view.borrow_and_update();
            rig.pass(secs(10)).await;
            wakes += usize::from(view.has_changed().unwrap());
        }
        assert!(wakes <= 3, "{wakes} in two minutes");
        assert!(rig.view().lease_renewed_at.is_some());
    });
}

#[test]
fn a_server_that_keeps_less_than_it_is_told_is_not_told_again() {
    run(17, |kernel| async move {
        let rig = Rig::start(&kernel).await;
        until("registered", || rig.view().registered).await;
        rig.runtime_says(|i| i.supplemental_groups_policy = Some(true));
        until("told", || rig.patches() == 1).await;
        // As a server does that does not know the field: the answer of the next patch and the watch are without it.
        let forget = || rig.api.change::<model::core::Node>(None, NAME, |n| n.status.as_mut().unwrap().features = None);
        forget();
        rig.pass(secs(11)).await;
        assert_eq!(rig.patches(), 2, "somebody took it away: told again");
        rig.api.forget_requests();
        rig.api.lasting_trouble(Matching::any(), Trouble::Unaware("/status", "features"));
        rig.manager.as_ref().unwrap().stop();
        let mut node = Rig::new(&kernel);
        node.api = rig.api.clone();
        node.runtime_says(|i| i.supplemental_groups_policy = Some(true));
        forget();
        node.start_manager(config());
        node.pass(secs(100)).await;
        assert_eq!(node.patches(), 1);
        node.presses(&["DiskPressure"]);
        node.pass(secs(30)).await;
        assert_eq!(node.patches(), 2, "news are told");
        assert_eq!(node.condition("DiskPressure").status, "True");
    });
}

#[test]
fn a_node_that_was_well_is_believed_at_once() {
    run(18, |kernel| async move {
        let rig = Rig::start(&kernel).await;
        until("registered", || rig.view().registered).await;
        rig.runtime_says(|i| i.network = Err("no network".into()));
        let at = kernel.clock().now();
        until("told", || rig.ready() == "False").await;
        assert!(kernel.clock().now() - at < secs(1));
    });
}
