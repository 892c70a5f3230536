//! A manager that is given to another actor while the node runs.

use bosun::Node;
use contract::pod_worker::WorkerState;
use contract::status::{SetPodStatus, StatusEntry};
use contract::{FolderSource, PodWorker, StatusManager};
use futures::future::join_all;
use model::PodUid;
use model::core::{Pod, PodStatus};
use sim::{LIMIT, SimNode};

use crate::{run, secs, simple};

/// Another actor for the role; here it is one of the same kind.
fn swap_status_manager(node: &Node) {
    node.replace::<StatusManager>(|setup| setup.spawn(status_manager::StatusManager::new));
}

fn set_status(uid: &PodUid, reason: &str) -> SetPodStatus {
    let mut pod = Pod::default();
    pod.metadata.uid = Some(uid.to_string());
    pod.metadata.name = Some(uid.to_string());
    let status = PodStatus { phase: Some("Pending".into()), reason: Some(reason.to_owned()), ..PodStatus::default() };
    SetPodStatus { pod: pod.into(), status: status.into() }
}

#[test]
fn what_a_replaced_manager_had_answered_stands_and_what_comes_meanwhile_is_answered_by_the_next() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let wiring = node.wiring().clone();
        let rows = wiring.board::<StatusEntry>();
        for round in 0..3 {
            let uids: Vec<PodUid> = (0..200).map(|n| format!("{round}-{n}").into()).collect();
            let ask = |uid: &PodUid| wiring.ask(set_status(uid, "told"));
            let (before, after) = uids.split_at(150);
            let mut queued = Box::pin(join_all(before.iter().map(ask)));
            assert!(futures::poll!(&mut queued).is_pending(), "they lie in the old one's mailbox");
            swap_status_manager(node.node());
            // At once, so that there are three that follow each other.
            swap_status_manager(node.node());
            let (old, new) = futures::join!(queued, join_all(after.iter().map(ask)));
            for (uid, answer) in uids.iter().zip(old.iter().chain(&new)) {
                assert_eq!(*answer, Ok(()), "{uid}");
                assert!(rows.get(uid).is_some(), "{uid} was answered, and its status is nowhere");
            }
        }
        assert_eq!(wiring.refused_posts::<StatusManager>(), 0);
        let actors: Vec<_> =
            node.kernel.directory().actors().into_iter().filter(|a| a.name == "status-manager").collect();
        assert_eq!(actors.len(), 1, "the old ones are gone");
        assert_eq!(actors[0].group, "core", "it is supervised as the others are");
        node.put("next.yaml", &simple("next", ""));
        node.until("next is ready", LIMIT, |n| n.is_ready("next")).await;
        assert_eq!(node.instances("web", "app").len(), 1);
    });
}

#[test]
fn the_end_of_the_node_is_the_end_of_the_actor_that_took_a_place_where_pods_come_in() {
    run(async |node| {
        let gone = |n: &SimNode| n.kernel.directory().get("folder-source").is_none();
        node.node().replace::<FolderSource>(|setup| setup.spawn(|_crew| Nothing));
        tokio::time::sleep(secs(1)).await;
        assert!(!gone(&node));
        node.node().stop().await;
        node.until("it has ended", LIMIT, gone).await;
    });
}

/// A source without pods.
struct Nothing;
impl actor::Actor for Nothing {
    type Context = actor::Ctx<Self>;
}
actor::supervised!(Nothing);

/// A worker that does nothing but say that it is there.
struct Idle(contract::Crew<PodWorker>, PodUid);
impl actor::Actor for Idle {
    type Context = actor::Ctx<Self>;
    fn started(&mut self, _: &mut actor::Ctx<Self>) {
        let rows = self.0.poster::<WorkerState>();
        if let Some(row) = rows.get(&self.1) {
            rows.post(self.1.clone(), std::sync::Arc::new(WorkerState { cause: "idle".to_owned(), ..(*row).clone() }));
        }
    }
}
actor::supervised!(Idle);
impl actor::Handler<contract::pod_worker::UpdatePod> for Idle {
    type Result = ();
    fn handle(&mut self, _: contract::pod_worker::UpdatePod, _: &mut actor::Ctx<Self>) {}
}
impl actor::Handler<contract::pod_worker::GrantStart> for Idle {
    type Result = ();
    fn handle(&mut self, _: contract::pod_worker::GrantStart, _: &mut actor::Ctx<Self>) {}
}

#[test]
fn the_workers_of_all_pods_are_replaced_and_none_of_the_old_ones_goes_on() {
    run(async |node| {
        for name in ["a", "b"] {
            node.put(&format!("{name}.yaml"), &simple(name, ""));
        }
        node.until("both are ready", LIMIT, |n| n.is_ready("a") && n.is_ready("b")).await;
        node.node().replace::<PodWorker>(|setup| setup.spawn_per_pod(Idle));
        let idle = |n: &SimNode| ["a", "b"].iter().all(|p| n.workers(p).values().all(|w| w.cause == "idle"));
        node.until("the new ones have their rows", LIMIT, idle).await;
        let workers = node.kernel.directory().actors().into_iter().filter(|a| a.name.starts_with("pod-worker/"));
        assert_eq!(workers.count(), 2);
        tokio::time::sleep(secs(300)).await;
        assert!(idle(&node));
        assert_eq!(node.wiring().refused_posts::<PodWorker>(), 0);
    });
}
