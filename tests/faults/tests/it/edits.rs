//! Manifests that are edited, pods that share a name or a UID.

use contract::pod_worker::WorkerPhase;
use fakes::runtime::{OnTerm, Program};
use sim::{LIMIT, SimNode};
use tokio::time::sleep;

use crate::{pod, run, secs, simple};

const UID: &str = "0a0b0c0d-0000-4000-8000-000000000001";

fn fixed(image: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, uid: {UID}{more}}}\nspec:\n  containers:\n  - {{name: app, image: '{image}'}}\n"
    )
}

/// When the n-th call of `rpc` for a subject with this end arrived and was answered.
fn span(node: &SimNode, rpc: &str, end: &str, n: usize) -> (i64, i64) {
    let calls = node.world.runtime.calls();
    let call = calls.iter().filter(|c| c.rpc == rpc && c.subject.ends_with(end)).nth(n).unwrap();
    (call.at.0, call.answered.unwrap().0)
}

#[test]
fn an_edited_manifest_is_a_new_pod_which_starts_when_the_old_one_has_stopped() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(6), 0))]);
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let old = node.uid("web").unwrap();
        node.put("web.yaml", &simple("web", "\n  terminationGracePeriodSeconds: 20"));
        node.until("the new pod waits", secs(2), |n| n.worker_phase("web") == Some(WorkerPhase::Waiting)).await;
        let new = node.uid("web").unwrap();
        assert_ne!(old, new);
        node.until("web is ready again", LIMIT, |n| n.is_ready("web") && n.workers("web").len() == 1).await;
        let (_, stopped) = span(&node, "StopPodSandbox", "/web-sim", 0);
        let (started, _) = span(&node, "RunPodSandbox", "/web-sim", 1);
        assert!(started >= stopped, "the new sandbox is asked for {started}, the old one was stopped {stopped}");
        assert_eq!(
            node.wiring().board::<contract::pod_worker::WorkerState>().snapshot().into_keys().collect::<Vec<_>>(),
            [new]
        );
    });
}

#[test]
fn a_burst_of_edits_ends_with_the_last_one_running() {
    run(async |node| {
        node.put("web.yaml", &simple("web", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        for grace in [11, 12, 13, 14, 15] {
            node.put("web.yaml", &simple("web", &format!("\n  terminationGracePeriodSeconds: {grace}")));
            sleep(std::time::Duration::from_millis(15)).await;
        }
        node.until("one pod is left and ready", LIMIT, |n| n.workers("web").len() == 1 && n.is_ready("web")).await;
        let grace = node
            .wiring()
            .board::<contract::pod_manager::DesiredPod>()
            .snapshot()
            .values()
            .next()
            .unwrap()
            .pod
            .spec
            .clone()
            .unwrap();
        assert_eq!(grace.termination_grace_period_seconds, Some(15));
        assert_eq!(node.running_ids().len(), 1);
    });
}

#[test]
fn a_new_image_of_a_pod_with_a_fixed_uid_restarts_only_the_container() {
    run(async |node| {
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.put("web.yaml", &fixed("app:2", ""));
        node.until("the second instance runs", LIMIT, |n| n.instances("web", "app").len() == 2 && n.is_ready("web"))
            .await;
        assert_eq!(node.world.runtime.sandboxes().len(), 1);
        assert!(node.events("web").iter().any(|e| e == "Killing: Container app definition changed, will be restarted"));
        assert_eq!(node.instances("web", "app")[1].attempt, 1);
    });
}

#[test]
fn a_label_of_a_pod_with_a_fixed_uid_restarts_nothing() {
    run(async |node| {
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let id = node.running_id("web", "app");
        node.put("web.yaml", &fixed("app:1", ", labels: {tier: front}"));
        sleep(secs(150)).await;
        assert_eq!(node.running_id("web", "app"), id);
        let row = node.wiring().board::<contract::pod_manager::DesiredPod>().get(&UID.into()).unwrap();
        assert_eq!(row.pod.metadata.labels.as_ref().unwrap()["tier"], "front");
    });
}

#[test]
fn a_fixed_uid_that_is_removed_and_added_again_lives_a_second_life() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::forever().on_term(OnTerm::Exit(secs(5), 0))]);
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        let id = node.running_id("web", "app").unwrap();
        node.remove("web.yaml");
        sleep(secs(1)).await;
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("another container runs", LIMIT, |n| {
            n.running_id("web", "app").is_some_and(|now| now != id) && n.is_ready("web")
        })
        .await;
        assert_eq!(node.running_ids().len(), 1);
        sleep(secs(120)).await;
        assert!(node.is_ready("web"), "{}", node.picture());
    });
}

#[test]
fn a_fixed_uid_that_is_gone_and_comes_back_later_runs_again() {
    run(async |node| {
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("web is ready", LIMIT, |n| n.is_ready("web")).await;
        node.remove("web.yaml");
        node.until("web is gone", LIMIT, |n| n.is_gone("web")).await;
        node.put("web.yaml", &fixed("app:1", ""));
        node.until("web is ready again", LIMIT, |n| n.is_ready("web")).await;
    });
}

#[test]
fn two_uids_of_one_name_take_turns() {
    run(async |node| {
        let named = |uid: &str| simple("web", "").replace("{name: web}", &format!("{{name: web, uid: {uid}}}"));
        node.put("a.yaml", &named("uid-a"));
        node.until("a is ready", LIMIT, |n| n.is_ready("web")).await;
        // A second file of the same name hides the first: the later file wins.
        node.put("b.yaml", &named("uid-b"));
        sleep(secs(60)).await;
        let running = node.world.runtime.sandboxes().iter().filter(|s| s.ready).count();
        assert_eq!(running, 1, "{}", node.picture());
        let (_, stopped) = span(&node, "StopPodSandbox", "/web-sim", 0);
        let (started, _) = span(&node, "RunPodSandbox", "/web-sim", 1);
        assert!(started >= stopped);
        node.remove("b.yaml");
        node.until("a is back", LIMIT, |n| {
            n.wiring()
                .board::<contract::pod_worker::WorkerState>()
                .get(&"uid-a".into())
                .is_some_and(|w| w.phase == WorkerPhase::Syncing)
                && n.is_ready("web")
        })
        .await;
        assert_eq!(node.world.runtime.sandboxes().iter().filter(|s| s.ready).count(), 1, "{}", node.picture());
    });
}

#[test]
fn a_terminal_pod_stays_terminal_until_its_manifest_changes() {
    run(async |node| {
        node.world.runtime.program("app", &[Program::exits(secs(1), 0)]);
        node.put("job.yaml", &simple("job", "\n  restartPolicy: Never"));
        node.until("it succeeded", LIMIT, |n| n.phase("job") == "Succeeded").await;
        sleep(secs(200)).await;
        assert_eq!(node.count("StartContainer").values().sum::<usize>(), 1);
        node.put("job.yaml", &pod("job", "\n  restartPolicy: Never\n  containers:\n  - {name: app, image: 'app:2'}"));
        node.until("the new one ran", LIMIT, |n| n.count("StartContainer").values().sum::<usize>() == 2).await;
        node.until("it succeeded", LIMIT, |n| n.phase("job") == "Succeeded").await;
    });
}
