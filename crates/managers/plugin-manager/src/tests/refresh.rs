//! Drivers are asked again what they say of the node.

use actor::Kernel;
use actor::testing::{run, until};
use contract::plugin::{RefreshCsiDriver, RefreshError};
use fakes::{FakeDriver, PluginTrouble};
use metrics::volumes::CSI_OPERATION;
use model::k8s_openapi::api::storage::v1::CSIDriver;
use ports::grpc::Code;
use serde_json::{Value, json};

use super::rig::{Rig, secs};

const SOCKET: &str = "a.sock";
const NAME: &str = "a.example";

fn period(seconds: u64) -> Value {
    json!({ "nodeAllocatableUpdatePeriodSeconds": seconds })
}

fn with_room_for(count: i64) -> FakeDriver {
    let mut driver = FakeDriver::driver(NAME);
    driver.node.max_volumes_per_node = count;
    driver
}

fn says(rig: &Rig, count: i64) {
    rig.plugins.serve(&rig.path(SOCKET), with_room_for(count));
}

fn asked(rig: &Rig) -> usize {
    rig.plugins.calls(&rig.path(SOCKET), "NodeGetInfo")
}

/// A node with a driver that has room for nine.
async fn with_driver(kernel: &Kernel, spec: Value) -> Rig {
    let rig = Rig::start(kernel);
    rig.announce(NAME, spec);
    rig.comes(SOCKET, with_room_for(9));
    until("it is told", || rig.told(SOCKET) == [Ok(())]).await;
    rig
}

async fn refresh(rig: &Rig) -> Result<(), RefreshError> {
    rig.wiring.call(RefreshCsiDriver { driver: NAME.to_owned() }).await
}

#[test]
fn a_driver_is_asked_as_often_as_its_object_says_while_it_says_so() {
    run(1, |kernel| async move {
        let rig = with_driver(&kernel, period(60)).await;
        secs(59).await;
        assert_eq!(asked(&rig), 1, "the registration alone");
        says(&rig, 7);
        secs(2).await;
        assert_eq!((asked(&rig), rig.limit(NAME)), (2, Some(7)));
        assert_eq!(rig.driver(NAME).unwrap().max_volumes, Some(7));
        rig.announce(NAME, period(10));
        secs(31).await;
        assert_eq!(asked(&rig), 5, "after 10, 20 and 30 s");
        rig.announce(NAME, json!({}));
        secs(200).await;
        rig.announce(NAME, period(10));
        secs(11).await;
        assert_eq!(asked(&rig), 6);
        let shown = || rig.driver(NAME).unwrap().object.as_ref().map(|o| o.spec.node_allocatable_update_period_seconds);
        assert_eq!(shown(), Some(Some(10)), "who uses the driver reads what its object says");
        rig.api.vanish::<CSIDriver>(None, NAME);
        secs(200).await;
        assert_eq!(shown(), None);
        assert_eq!(asked(&rig), 6, "without an object nobody asks");
        assert_eq!(rig.driver(NAME).unwrap().error, None);
    });
}

#[test]
fn a_driver_that_goes_and_a_manager_that_dies_leave_one_timer_each_or_none() {
    run(2, |kernel| async move {
        let rig = with_driver(&kernel, period(10)).await;
        kernel.faults().enable();
        kernel.faults().add_text("plugin-manager: kill@=refresh#1").unwrap();
        secs(11).await;
        until("it is built anew", || kernel.faults().log().len() == 1).await;
        let before = asked(&rig);
        secs(41).await;
        let more = asked(&rig) - before;
        assert!((3..=4).contains(&more), "{more}");
        rig.goes(SOCKET);
        until("it is forgotten", || rig.driver(NAME).is_none()).await;
        let before = asked(&rig);
        secs(100).await;
        assert_eq!((asked(&rig), rig.csi_node()), (before, Some(Vec::new())));
        rig.comes(SOCKET, with_room_for(9));
        until("it is back", || rig.driver(NAME).is_some()).await;
        let before = asked(&rig);
        secs(41).await;
        assert_eq!(asked(&rig) - before, 4);
    });
}

#[test]
fn who_needs_it_now_is_answered_when_the_api_server_has_it() {
    run(3, |kernel| async move {
        let rig = with_driver(&kernel, json!({})).await;
        says(&rig, 3);
        refresh(&rig).await.unwrap();
        assert_eq!(rig.limit(NAME), Some(3));
        says(&rig, 0);
        refresh(&rig).await.unwrap();
        assert_eq!((rig.limit(NAME), rig.csi_node()), (None, Some(vec![NAME.to_owned()])), "no limit");
        let trouble = PluginTrouble::Fail(Code::Internal, "no".to_owned());
        rig.plugins.trouble(&rig.path(SOCKET), "NodeGetInfo", Some(trouble));
        let why = "failed to get NodeGetInfo from driver \"a.example\": rpc error: code = Internal desc = no";
        let count = |code: &str| {
            CSI_OPERATION.with_label_values(&[NAME, code, "/csi.v1.Node/NodeGetInfo", "false"]).get_sample_count()
        };
        let before = (count("OK"), count("Internal"));
        assert_eq!(refresh(&rig).await.unwrap_err().message, why);
        assert!(before.0 >= 3);
        assert_eq!(count("Internal"), before.1 + 1);
        let row = rig.driver(NAME).unwrap();
        assert_eq!((row.error.as_deref(), row.max_volumes), (Some(why), None), "it stays registered");
        rig.plugins.trouble(&rig.path(SOCKET), "NodeGetInfo", None);
        refresh(&rig).await.unwrap();
        assert_eq!(rig.driver(NAME).unwrap().error, None);
        rig.goes(SOCKET);
        until("it is gone", || rig.driver(NAME).is_none()).await;
        let e = refresh(&rig).await.unwrap_err();
        assert_eq!(e.message, "driver name a.example not found in the list of registered CSI drivers");
    });
}

#[test]
fn what_a_driver_said_that_went_meanwhile_is_not_told() {
    run(4, |kernel| async move {
        let rig = with_driver(&kernel, period(10)).await;
        rig.plugins.trouble(&rig.path(SOCKET), "NodeGetInfo", Some(PluginTrouble::Hang));
        secs(50).await;
        assert_eq!(asked(&rig), 2, "one that hangs is not asked once more");
        kernel.faults().enable();
        kernel.faults().add_text("plugin-manager: delay(60s)@=refresh#1").unwrap();
        rig.plugins.trouble(&rig.path(SOCKET), "NodeGetInfo", None);
        rig.goes(SOCKET);
        until("it is forgotten", || rig.csi_node() == Some(Vec::new())).await;
        secs(200).await;
        assert_eq!(rig.csi_node(), Some(Vec::new()));
    });
}
