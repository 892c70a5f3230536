//! A whole node on a virtual clock: scenarios, then faults at every point of every actor.

#![allow(clippy::unwrap_used, reason = "tests")]

mod adoption;
mod chaos;
mod cost;
mod drivers;
mod edge_cases;
mod edits;
mod evict;
mod faulty;
mod images;
mod load;
mod luns;
mod manifests;
mod metrics;
mod nonsense;
mod poison;
mod probes;
mod restarts;
mod runtime;
mod shutdown;
mod stands;
mod start;
mod stop;
mod swap;
mod tiers;
mod traces;
mod volumes;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sim::SimNode;

/// Runs a test on a node with default settings whose images are in the store.
fn run(test: impl AsyncFnOnce(SimNode)) {
    sim::log_to_stderr();
    actor::testing::run(1, |kernel| async move {
        let node = SimNode::start(&kernel);
        node.world.runtime.add_images(&["app:1", "app:2", "tool:1"]);
        test(node).await;
    });
}

/// A pod with one container `app` of image `app:1`, and more lines under `spec`.
fn simple(name: &str, spec: &str) -> String {
    pod(name, &format!("{spec}\n  containers:\n  - {{name: app, image: 'app:1'}}"))
}

/// A pod with these lines under `spec`.
fn pod(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:{spec}\n")
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Times at which calls of one RPC for a subject with this end arrived, in seconds since the first of them.
fn times(node: &SimNode, rpc: &str, subject_end: &str) -> Vec<f64> {
    let calls = node.world.runtime.calls();
    let at: Vec<i64> =
        calls.iter().filter(|c| c.rpc == rpc && c.subject.ends_with(subject_end)).map(|c| c.at.0).collect();
    #[allow(clippy::cast_precision_loss, reason = "seconds of a test")]
    at.iter().map(|t| (t - at[0]) as f64 / 1e9).collect()
}

/// Writes down every version of the status that differs in what a user looks at.
fn follow(node: &SimNode, name: &'static str) -> Rc<RefCell<Vec<String>>> {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let (log, board) = (seen.clone(), node.wiring().board::<contract::status::StatusEntry>());
    let mut changes = board.changes();
    tokio::task::spawn_local(async move {
        while changes.changed().await.is_ok() {
            let rows = board.snapshot();
            let Some(row) = rows.values().find(|r| r.name == format!("{name}-sim")) else { continue };
            let s = &row.status;
            let mut line = s.phase.clone().unwrap_or_default();
            for c in s.init_container_statuses.iter().chain(&s.container_statuses).flatten() {
                let state = c.state.clone().unwrap_or_default();
                let word = match (&state.waiting, &state.running, &state.terminated) {
                    (Some(w), ..) => w.reason.clone().unwrap_or_default(),
                    (_, Some(_), _) => "running".to_owned(),
                    (_, _, Some(t)) => format!("ended {}", t.exit_code),
                    _ => "?".to_owned(),
                };
                line += &format!(" {}={word}", c.name);
            }
            if log.borrow().last() != Some(&line) {
                log.borrow_mut().push(line);
            }
        }
    });
    seen
}
