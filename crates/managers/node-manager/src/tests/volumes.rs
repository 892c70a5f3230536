//! Volumes that the Node says it uses.

use std::collections::BTreeSet;

use actor::testing::run;
use contract::volume::VolumesInUse;
use model::core::{Node, NodeStatus};

use super::rig::*;

fn use_volumes(rig: &Rig, names: Option<&[&str]>) {
    let names = names.map(|names| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>());
    rig.wiring.set(VolumesInUse { names });
}

fn told(rig: &Rig) -> Option<Vec<String>> {
    rig.stored().unwrap().status.unwrap().volumes_in_use
}

fn names(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|n| (*n).to_owned()).collect())
}

#[test]
fn what_must_stay_attached_is_told_at_once_and_no_longer_than_that() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.pass(secs(20)).await;
        let (begun, patches) = (rig.kernel.clock().now(), rig.patches());
        for (now, want) in [(&["b", "a"][..], names(&["a", "b"])), (&["b"], names(&["b"])), (&[], None)] {
            use_volumes(&rig, Some(now));
            until("told", || told(&rig) == want).await;
        }
        assert!(begun.elapsed() < secs(1), "no report was waited for: {:?}", begun.elapsed());
        use_volumes(&rig, Some(&[]));
        rig.pass(secs(20)).await;
        assert_eq!(rig.patches() - patches, 3, "one patch per change");
    });
}

/// Before the disk was looked at nobody knows what is in use: a controller must not detach what a former daemon mounted.
#[test]
fn what_a_former_daemon_told_stays_until_it_is_known_better() {
    run(2, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        let mut old = Node::default();
        old.metadata.name = Some(NAME.into());
        old.status = Some(NodeStatus { volumes_in_use: names(&["old"]), ..NodeStatus::default() });
        rig.api.put(&old);
        rig.start_manager(config());
        until("ready", || rig.stored().unwrap().status.is_some_and(|s| s.conditions.is_some())).await;
        rig.pass(secs(400)).await;
        assert!(rig.patches() > 0);
        assert_eq!(told(&rig), names(&["old"]));
        use_volumes(&rig, Some(&[]));
        until("taken back", || told(&rig).is_none()).await;
    });
}
