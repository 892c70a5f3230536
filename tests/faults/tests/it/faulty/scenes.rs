//! What no round can have beside other pods: a node that runs short and a machine that goes down. Their actors are struck at each
//! point that an undisturbed scene passes; [`super::points`] counts those points as struck.

use std::collections::BTreeSet;

use actor::Kernel;
use contract::eviction::NodePressure;
use contract::node::NodeView;
use contract::pod_worker::{WorkerPhase, WorkerState};
use contract::shutdown::Shutdown;
use fakes::runtime::{Features, Mutation};
use model::core::Pod;
use node_config::{NodeShutdown, Threshold};
use sim::{LIMIT, NODE_NAME, SimNode, World};
use std::time::Duration;

use super::cases::{ACTIONS, Passages, STALL};
use crate::{secs, simple};

/// A struck actor is back, and a stalled one goes on, within this.
const STRUCK: Duration = Duration::from_secs(200);
/// A condition outlives its cause by so much.
const HELD: Duration = Duration::from_secs(60);

/// A node, what happens on it, and whose part it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// A disk runs short: an image goes, then one pod, and it is enough.
    Short,
    /// Pods end in two groups, and the machine may go; it stays up after all.
    GoesDown,
}

pub(super) const SCENES: [Scene; 2] = [Scene::Short, Scene::GoesDown];

impl Scene {
    /// Who is struck in it.
    pub(super) const fn actor(self) -> &'static str {
        match self {
            Scene::Short => "eviction-manager",
            Scene::GoesDown => "shutdown-manager",
        }
    }

    /// Points that its actor passes when nobody disturbs it.
    pub(super) fn points(self) -> BTreeSet<String> {
        let Passages(mut all) = actor::testing::run(7, |kernel| async move {
            self.play(&kernel, None).await;
            Passages::of(&kernel)
        });
        all.remove(self.actor()).into_iter().flatten().map(|(point, _)| point).collect()
    }

    /// From the first to the last act, struck by a rule.
    async fn play(self, kernel: &Kernel, rule: Option<&str>) {
        let mut world = World::with_runtime(fakes::FakeRuntime::at(
            Features::containerd_1_6(),
            model::Timestamp(kernel.clock().unix_nanos()),
        ))
        .joined();
        let config = &mut world.settings.config;
        match self {
            Scene::Short => {
                config.eviction.hard.insert("nodefs.available".to_owned(), Threshold::Percent(10.0));
                config.eviction.pressure_transition_period = HELD;
                world.files.count(model::Timestamp(kernel.clock().unix_nanos()));
            }
            Scene::GoesDown => {
                config.shutdown =
                    NodeShutdown { grace_period: secs(30), critical: secs(10), ..NodeShutdown::default() };
            }
        }
        let mut node = SimNode::down(world, kernel);
        node.world.logind.grant(secs(5), secs(30));
        kernel.faults().enable();
        rule.into_iter().for_each(|rule| node.fault(rule));
        node.boot();
        node.world.runtime.add_images(&["app:1", "unused:1"]);
        for (name, priority) in [("first", 0), ("last", 2_000_000_000)] {
            let mut spec = serde_json::json!({ "containers": [{ "name": "app", "image": "app:1" }] });
            spec["priority"] = priority.into();
            node.bind(name, spec);
        }
        node.put("folder.yaml", &simple("folder", "\n  priority: 2000001000"));
        node.until("pods are ready", STRUCK, |n| ["first", "last", "folder"].iter().all(|pod| n.is_ready(pod))).await;
        match self {
            Scene::Short => short(&node).await,
            Scene::GoesDown => goes_down(&node).await,
        }
    }
}

fn free(node: &SimNode, percent: u64) {
    node.world.host.change(|machine| {
        let disk = machine.disk.as_mut().expect("the machine has a disk");
        disk.available_bytes = disk.total_bytes / 100 * percent;
    });
}

fn is_evicted(node: &SimNode, name: &str) -> bool {
    let row = node.uid(name).and_then(|uid| node.wiring().board::<WorkerState>().get(&uid));
    row.is_some_and(|row| row.evicted)
}

fn told_failed(node: &SimNode, name: &str, reason: &str) -> bool {
    let status = node.api_copy(name).and_then(|pod| pod.status).unwrap_or_default();
    (status.phase.as_deref(), status.reason.as_deref()) == (Some("Failed"), Some(reason))
}

/// The condition `DiskPressure` as the API server has it.
fn is_told_short(node: &SimNode) -> bool {
    let object = node.api().read::<model::core::Node>(None, NODE_NAME).and_then(|n| n.status).unwrap_or_default();
    object.conditions.iter().flatten().any(|c| c.type_ == "DiskPressure" && c.status == "True")
}

async fn short(node: &SimNode) {
    let running = node.running_ids();
    free(node, 5);
    let eased = |n: &SimNode| {
        // What the pod had comes free while it ends.
        if is_evicted(n, "first") {
            free(n, 50);
        }
        told_failed(n, "first", "Evicted") && is_told_short(n)
    };
    node.until("the first pod is evicted, and the API server knows", STRUCK, eased).await;
    assert!(!node.world.runtime.has_image("unused:1"), "it was tidied up before: {}", node.picture());
    let rows = |n: &SimNode| n.wiring().value::<NodePressure>().get().conditions.clone();
    node.until("nothing is short any more", HELD + STRUCK, |n| rows(n).is_empty() && !is_told_short(n)).await;
    assert!(!is_evicted(node, "last") && !is_evicted(node, "folder"), "one was enough: {}", node.picture());
    let left: Vec<String> = running.iter().filter(|id| node.running_ids().contains(id)).cloned().collect();
    assert_eq!((running.len(), left.len()), (3, 2), "the others run on: {}", node.picture());
}

fn is_ready(node: &SimNode) -> bool {
    node.wiring().value::<NodeView>().get().ready.as_ref().is_some_and(|(ready, _)| *ready)
}

/// Containers that were stopped, each once.
fn stopped(node: &SimNode) -> usize {
    let stop = |m: &Mutation| matches!(m, Mutation::StopContainer(_));
    node.world.runtime.mutations().iter().filter(|m| stop(m)).count()
}

async fn goes_down(node: &SimNode) {
    node.until("shutdowns are held back", STRUCK, |n| n.world.logind.held() == 1).await;
    node.until("the node is ready", STRUCK, is_ready).await;
    node.world.logind.say(true);
    let ended = |n: &SimNode| {
        ["first", "last", "folder"].map(|p| n.worker_phase(p)).iter().all(|p| *p == Some(WorkerPhase::Finished))
    };
    node.until("the machine may go", STRUCK, |n| n.wiring().value::<Shutdown>().get().released).await;
    assert!(!is_ready(node) && node.world.logind.held() == 0, "{}", node.picture());
    node.until("all pods have ended", STRUCK, ended).await;
    node.until("the API server knows", LIMIT, |n| ["first", "last"].iter().all(|p| told_failed(n, p, "Terminated")))
        .await;
    assert_eq!(stopped(node), 3, "each was told once: {}", node.picture());
    let of_api = |name: &str| node.api().read::<Pod>(Some("default"), &format!("{name}-{NODE_NAME}")).is_some();
    assert!(of_api("first") && of_api("last"), "they are kept for users to see");
    node.world.logind.say(false);
    node.until("the node is ready again", STRUCK, is_ready).await;
    node.until("the next shutdown is held back", STRUCK, |n| n.world.logind.held() == 1).await;
    node.put("next.yaml", &simple("next", ""));
    node.until("pods are taken", STRUCK, |n| n.is_ready("next")).await;
}

/// Each point of the scene's actor with each action, each on a node of its own.
fn strike(scene: Scene) {
    sim::log_to_stderr();
    let points = scene.points();
    let only = std::env::var("FAULT").unwrap_or_default();
    let mut cases = 0;
    for point in &points {
        for (action, _) in ACTIONS {
            let rule = format!("{}: {action}@{point}#1", scene.actor());
            if !rule.contains(&only) {
                continue;
            }
            let struck = actor::testing::run(7, |kernel| {
                let rule = rule.clone();
                async move {
                    eprintln!("--- {rule}");
                    scene.play(&kernel, Some(&rule)).await;
                    kernel.faults().log().len()
                }
            });
            assert_eq!(struck, 1, "{rule} does not strike");
            cases += 1;
        }
    }
    println!("{}: {} points, {cases} cases: {points:?}", scene.actor(), points.len());
    assert!(ACTIONS.iter().any(|(action, _)| *action == STALL) && !points.is_empty());
}

#[test]
fn a_node_that_runs_short_evicts_one_pod_whatever_strikes_the_eviction_manager() {
    strike(Scene::Short);
}

#[test]
fn a_machine_that_goes_down_ends_its_pods_whatever_strikes_the_shutdown_manager() {
    strike(Scene::GoesDown);
}
