use actor::testing::run;
use serde_json::{Value, json};

use super::rig::{Rig, config, secs, threshold};

fn limited() -> Value {
    json!({ "spec": { "containers": [{ "name": "app" }], "volumes": [{ "name": "tmp", "emptyDir": { "sizeLimit": "1Mi" } }] } })
}

fn using(mi: u64) -> Value {
    json!({ "containers": [], "volume": [{ "name": "tmp", "time": "2026-01-01T00:00:00Z", "usedBytes": mi << 20 }] })
}

/// Edge 52.
#[test]
fn all_pods_over_their_own_limits_go_in_one_pass_as_their_own_fault() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        for (uid, mi) in [("over-1", 2), ("within", 1), ("over-2", 3)] {
            rig.run(uid, limited());
            rig.measure(uid, using(mi));
        }
        rig.start(config(&[]));
        rig.pass(secs(1)).await;
        assert_eq!(rig.killed(), ["over-1", "over-2"]);
        let request = &rig.kills()[0].request;
        let text = "Usage of EmptyDir volume \"tmp\" exceeds the limit \"1Mi\". ";
        assert_eq!((request.own_fault, request.grace_s), (true, Some(1)));
        assert_eq!(request.reason, Some(("Evicted".to_owned(), text.to_owned())));
        assert_eq!(rig.events.lines(), [format!("Warning Evicted: {text}"), format!("Warning Evicted: {text}")]);
        assert!(rig.conditions().is_empty());
    });
}

#[test]
fn limits_are_compared_every_ten_seconds_and_not_at_all_where_they_are_switched_off() {
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run("a", limited());
        rig.measure("a", using(1));
        rig.start(config(&[threshold("memory.available", "1Gi", secs(0))]));
        rig.pass(secs(95)).await;
        assert!((9..=11).contains(&rig.measured()), "{}", rig.measured());
    });
    run(1, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.run("a", limited());
        rig.measure("a", using(9));
        rig.start(crate::Config { local_storage: false, ..config(&[threshold("memory.available", "1Gi", secs(0))]) });
        rig.pass(secs(95)).await;
        assert_eq!((rig.measured(), rig.killed().len()), (0, 0));
    });
}
