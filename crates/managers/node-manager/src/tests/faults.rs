//! Each fault point of both actors: panic, kill, stall.

use actor::testing::run;

use super::rig::*;

#[test]
fn a_fault_at_any_point_heals() {
    let manager = [
        "before-observe",
        "after-observe",
        "before-register",
        "after-register",
        "note-register",
        "before-report",
        "after-report",
        "note-report",
        "watched",
    ];
    let lease = ["before-renew", "after-renew"];
    let points = manager.iter().map(|p| ("node-manager", *p)).chain(lease.iter().map(|p| ("node-lease", *p)));
    for (actor, point) in points {
        for fault in ["panic", "kill", "stall(15s)"] {
            for nth in [1, 2] {
                let rule = format!("{actor}: {fault}@{point}#{nth}");
                strike(&rule, nth == 1 || !point.ends_with("register"));
            }
        }
    }
}

fn strike(rule: &str, met: bool) {
    run(41, |kernel| async move {
        kernel.faults().add_text(rule).unwrap();
        kernel.faults().enable();
        let rig = Rig::start(&kernel).await;
        rig.pass(secs(40)).await;
        // Something to report, twice.
        rig.presses(&["DiskPressure"]);
        rig.pass(secs(40)).await;
        rig.machine.change(|m| m.identity.boot_id = "boot-2".into());
        rig.pass(secs(40)).await;
        assert_eq!(!kernel.faults().log().is_empty(), met, "{rule} {:?}", kernel.faults().log());
        assert!(rig.view().registered, "{rule}");
        assert_eq!(rig.condition("DiskPressure").status, "True", "{rule}");
        assert_eq!((rig.ready().as_str(), rig.said_not_ready()), ("True", 0), "{rule}");
        let info = rig.stored().unwrap().status.unwrap().node_info.unwrap();
        assert_eq!(info.boot_id, "boot-2", "{rule}");
        let renewed = rig.stored_lease().unwrap().spec.unwrap().renew_time.unwrap().0.as_nanosecond();
        assert!(i128::from(rig.wall().0) - renewed < 20_000_000_000, "{rule}");
        assert_eq!(rig.events().iter().filter(|e| **e == "Starting").count(), 1, "{rule}");
    });
}

#[test]
fn a_killed_manager_neither_registers_again_nor_forgets_its_node() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.pass(secs(20)).await;
        rig.manager.as_ref().unwrap().kill();
        rig.pass(secs(30)).await;
        assert_eq!(rig.manager.as_ref().unwrap().info().generation, 1);
        assert_eq!(rig.api.requests_of("POST", "/nodes").len(), 1);
        assert_eq!(rig.patches(), 1, "one report too many, no more");
        assert!(rig.view().api_uid().is_some());
    });
}
