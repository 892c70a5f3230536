//! What an event costs follows what it changes, and not how many pods there are.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use model::core::Pod;
use serde_json::json;
use sim::{LIMIT, SimNode};
use tokio::time::{Instant, sleep, sleep_until};

/// An event and what it leads to are over by then.
const WINDOW: Duration = Duration::from_millis(900);

/// Rows of boards that were looked at, and turns that actors took, so far.
fn work(node: &SimNode) -> [u64; 2] {
    [node.wiring().rows_read(), node.kernel.directory().actors().iter().map(|a| a.turns).sum()]
}

/// What the crew does in a short time from now on.
async fn spent(node: &SimNode) -> [u64; 2] {
    let before = work(node);
    sleep(WINDOW).await;
    let after = work(node);
    [after[0] - before[0], after[1] - before[1]]
}

/// Tries of each event, each with a pod of its own. What else happens by the clock (a pod's resync, an audit) falls into
/// some of the windows only, so the least is what the event itself costs.
const TRIES: usize = 8;
/// Between the windows: no multiple of any period of the node.
const APART: Duration = Duration::from_millis(61_700);

/// What each of some events costs on a node with so many pods.
fn costs(pods: usize) -> Vec<(&'static str, [u64; 2])> {
    let costs = Rc::new(RefCell::new(Vec::new()));
    let seen = costs.clone();
    actor::testing::run(1, |kernel| async move {
        let node = SimNode::start_in_cluster(&kernel);
        node.world.runtime.add_images(&["app:1"]);
        for n in 0..pods {
            node.bind(&format!("p{n}"), json!({ "containers": [{ "name": "app", "image": "app:1" }] }));
        }
        node.until("all are ready", LIMIT, |node| (0..pods).all(|n| node.is_ready(&format!("p{n}")))).await;
        let change = |n: usize, edit: fn(&mut Pod)| {
            let name = node.api_copy(&format!("p{n}")).unwrap().metadata.name.unwrap();
            node.api().change::<Pod>(Some("default"), &name, edit);
        };
        let gate = |n| change(n, |p| p.status.get_or_insert_default().nominated_node_name = Some("n2".into()));
        let relabel = |n| change(n, |p| drop(p.metadata.labels.get_or_insert_default().insert("a".into(), "b".into())));
        let exit = |n| assert!(node.world.runtime.exit(&node.running_id(&format!("p{n}"), "app").unwrap(), 3));
        let delete = |n| node.delete(&format!("p{n}"));
        let events: [(&'static str, &dyn Fn(usize)); 4] = [
            ("a status that somebody else changes", &gate),
            ("a label", &relabel),
            ("a container that ends and is started again", &exit),
            ("a deletion", &delete),
        ];
        let mut at = Instant::now();
        for (what, event) in events {
            let mut least = [u64::MAX; 2];
            for n in 0..TRIES {
                at += APART;
                sleep_until(at).await;
                event(n);
                let spent = spent(&node).await;
                least = [0, 1].map(|of| least[of].min(spent[of]));
            }
            seen.borrow_mut().push((what, least));
        }
    });
    costs.take()
}

#[test]
fn an_event_costs_as_much_on_a_node_with_twice_the_pods() {
    let (few, many) = (costs(20), costs(40));
    assert!(few.iter().all(|(_, [rows, turns])| *rows > 0 && *turns > 0), "{few:?}");
    for ((what, few), (_, many)) in few.iter().zip(&many) {
        assert_eq!(few[0], many[0], "rows read: {what}");
        // A timer of the crew may end in one window and not in another; a turn per pod would be twenty.
        assert!(few[1].abs_diff(many[1]) <= 2, "turns: {what}: {few:?} {many:?}");
    }
}
