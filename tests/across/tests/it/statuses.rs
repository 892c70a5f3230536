//! A node of a cluster whose StatusManager is swapped while its pods live.

use std::sync::Arc;

use actor::testing::{run_real, spin_until};
use conform::{Choice, Elsewhere, Subject, Way};
use contract::StatusManager;
use contract::pod_worker::WorkerState;
use contract::status::StatusEntry;
use model::PodUid;
use serde_json::json;
use server::local::{Managers, SwapOrder};
use sim::SimNode;

use crate::world::World;

/// Waits, and tells meanwhile how all workers stand.
async fn until(node: &SimNode, what: &str, so: impl Fn() -> bool) {
    let mut last = Vec::new();
    let told = || {
        let workers = node.wiring().board::<WorkerState>().snapshot();
        let now: Vec<_> = workers.values().map(|w| (w.phase, w.cause.clone(), w.error.clone())).collect();
        if now != last {
            eprintln!("{what}: {now:?}");
            last.clone_from(&now);
        }
        so()
    };
    spin_until(what, told).await;
}

fn phase(node: &SimNode, name: &str) -> Option<String> {
    node.api_copy(name)?.status?.phase
}

/// Versions of all pods; they never go back.
fn versions(node: &SimNode) -> Vec<(PodUid, u64)> {
    node.wiring().board::<StatusEntry>().snapshot().into_iter().map(|(uid, row)| (uid, row.version)).collect()
}

async fn swap(node: &SimNode, to: String) {
    let order = SwapOrder { to, dry_run: false, shadow: false, probation: Some("2s".to_owned()), when_away: None };
    node.places().swap("status", order).await.unwrap();
}

#[test]
fn statuses_from_another_process_reach_the_api_server_and_none_goes_back() {
    run_real(|kernel| async move {
        let world = World::new(kernel.clone());
        let node = SimNode::start_in_cluster(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        let spec = json!({"containers": [{"name": "c", "image": "app:1"}]});
        node.bind("one", spec.clone());
        until(&node, "it runs", || phase(&node, "one").as_deref() == Some("Running")).await;
        let before = versions(&node);
        let _program = world.statuses();
        spin_until("it listens", || world.is_listened_to()).await;
        swap(&node, format!("unix://{}", world.socket().display())).await;
        for (uid, version) in &before {
            let row = node.wiring().board::<StatusEntry>().get(uid).unwrap();
            assert!(row.version >= *version, "{uid}: {} after {version}", row.version);
        }
        node.bind("two", spec);
        until(&node, "the second runs", || phase(&node, "two").as_deref() == Some("Running")).await;
        node.delete("one");
        until(&node, "the first is gone", || node.api_copy("one").is_none()).await;
        let line = || node.places().lines().into_iter().find(|line| line.name == "status").unwrap();
        until(&node, "it is kept", || line().probation_left_ms.is_none()).await;
        assert!(line().served_by.starts_with("unix://"), "{:#?}", line());
        let asked = line().asked.into_iter().find(|a| a.message == "SetPodStatus").unwrap();
        assert!(asked.answered > 0 && asked.expired + asked.lost == 0, "{asked:?}");
        swap(&node, "builtin".to_owned()).await;
        node.delete("two");
        until(&node, "the second is gone", || node.api_copy("two").is_none()).await;
    });
}

#[test]
fn it_keeps_the_contract_of_its_role_also_in_another_process() {
    let program = Way::Run(vec![env!("CARGO_BIN_EXE_statuses").into()]);
    let subject: Arc<dyn Subject<StatusManager>> = Arc::new(Elsewhere(program));
    let report = conform::play(&conform::status::cases(), &subject, &Choice::default());
    assert_eq!(report.broken(), 0, "{}", report.table());
}
