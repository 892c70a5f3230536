//! Plugins that hang, lie or are refused, and an API server that does not answer.

use std::time::Duration;

use actor::testing::{run, until};
use contract::node::{NodeError, SetCsiNodeId};
use fakes::{FakeDriver, PluginTrouble};
use ports::grpc::Code;

use super::rig::{Rig, secs};
use crate::actor::backoff;

#[test]
fn tries_follow_after_half_a_second_doubling_to_two_minutes() {
    let seconds: Vec<f32> = (0..11).map(|n| backoff(n).as_secs_f32()).collect();
    assert_eq!(seconds, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0, 122.0]);
    assert_eq!(backoff(u32::MAX), Duration::from_secs(122));
}

#[test]
fn a_type_that_nobody_handles_is_told_so_and_tried_again() {
    run(1, |kernel| async move {
        let rig = Rig::start(&kernel);
        let mut plugin = FakeDriver::driver("gpu.example");
        plugin.info.r#type = "DRAPlugin".to_owned();
        rig.comes("gpu.sock", plugin);
        until("it is told", || !rig.told("gpu.sock").is_empty()).await;
        let words = format!(
            "RegisterPlugin error -- no handler registered for plugin type: DRAPlugin at socket {}",
            rig.path("gpu.sock").display()
        );
        assert_eq!(rig.told("gpu.sock"), [Err(words.clone())]);
        until("its row says so", || rig.socket("gpu.sock").is_some_and(|row| row.error == Some(words.clone()))).await;
        secs(5).await;
        let told = rig.told("gpu.sock").len();
        assert!((3..=5).contains(&told), "{told}");
    });
}

#[test]
fn plugins_that_hang_keep_nobody_waiting_but_themselves() {
    run(2, |kernel| async move {
        let rig = Rig::start(&kernel);
        for (name, call) in [("x.sock", "GetInfo"), ("y.sock", "NodeGetInfo"), ("z.sock", "NotifyRegistrationStatus")] {
            rig.plugins.trouble(&rig.path(name), call, Some(PluginTrouble::Hang));
        }
        for name in ["x", "y", "z"] {
            rig.comes(&format!("{name}.sock"), FakeDriver::driver(name));
        }
        rig.comes("a.sock", FakeDriver::driver("a"));
        let began = kernel.clock().now();
        until("the good one is told", || rig.told("a.sock") == [Ok(())]).await;
        assert!(kernel.clock().now() - began < Duration::from_millis(900));
        secs(7).await;
        assert!(rig.driver("z").is_some(), "it serves, though it does not hear");
        assert!(rig.socket("z.sock").unwrap().error.as_deref().unwrap().contains("failed to send registration status"));
        assert!(rig.socket("x.sock").unwrap().failures >= 2);
        secs(120).await;
        let words = "RegisterPlugin error -- plugin registration failed with err: rpc error: code = DeadlineExceeded desc = context deadline exceeded";
        assert_eq!(rig.told("y.sock"), [Err(words.to_owned())]);
        rig.plugins.trouble(&rig.path("y.sock"), "NodeGetInfo", None);
        // The try that hangs now comes to its end first.
        secs(120).await;
        until("it is registered in the end", || rig.driver("y").is_some()).await;
    });
}

#[test]
fn a_driver_that_hangs_and_is_made_anew_is_not_waited_for() {
    run(3, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.plugins.trouble(&rig.path("a.sock"), "NodeGetInfo", Some(PluginTrouble::Hang));
        rig.comes("a.sock", FakeDriver::driver("a"));
        until("it is asked", || rig.plugins.calls(&rig.path("a.sock"), "NodeGetInfo") == 1).await;
        rig.goes("a.sock");
        rig.plugins.trouble(&rig.path("a.sock"), "NodeGetInfo", None);
        rig.comes("a.sock", FakeDriver::driver("a"));
        let began = kernel.clock().now();
        until("the new one is registered", || rig.driver("a").is_some()).await;
        assert!(kernel.clock().now() - began < Duration::from_secs(5));
    });
}

#[test]
fn what_the_node_refuses_is_told_to_the_driver_and_taken_back_when_it_goes() {
    run(4, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.node
            .answer(|_: &SetCsiNodeId| Err(NodeError { message: "detected topology value collision: x".to_owned() }));
        rig.comes("a.sock", FakeDriver::driver("a"));
        until("it is told", || !rig.told("a.sock").is_empty()).await;
        let words = "RegisterPlugin error -- plugin registration failed with err: error updating Node object with CSI driver node info: error updating node: detected topology value collision: x";
        assert_eq!(rig.told("a.sock")[0], Err(words.to_owned()));
        assert!(rig.driver("a").is_none());
        rig.goes("a.sock");
        until("it is gone", || rig.socket("a.sock").is_none()).await;
        assert_eq!(rig.node.asked::<contract::node::ClearCsiNodeId>().len(), 1);
    });
}

#[test]
fn a_second_driver_of_a_name_waits_until_the_first_is_gone() {
    run(5, |kernel| async move {
        let rig = Rig::start(&kernel);
        rig.comes("a1.sock", FakeDriver::driver("a"));
        until("the first is registered", || rig.driver("a").is_some()).await;
        rig.comes("a2.sock", FakeDriver::driver("a"));
        until("the second is told", || !rig.told("a2.sock").is_empty()).await;
        assert!(
            rig.told("a2.sock")[0]
                .as_ref()
                .unwrap_err()
                .contains("already registered with a higher supported version: \"1.0.0\"")
        );
        assert_eq!(rig.driver("a").unwrap().endpoint, rig.path("a1.sock"));
        rig.goes("a1.sock");
        until("the second has its place", || rig.driver("a").is_some_and(|d| d.endpoint == rig.path("a2.sock"))).await;
        assert_eq!(rig.csi_node(), Some(vec!["a".to_owned()]));
    });
}

/// The first one may have been told of to the API server before it failed.
#[test]
fn the_end_of_a_driver_that_was_refused_takes_nothing_from_another_one_of_its_name() {
    for restart in [false, true] {
        run(9, |kernel| async move {
            let rig = Rig::start(&kernel);
            until("the CSINode is there", || rig.csi_node().is_some()).await;
            rig.api.lasting_trouble(
                fakes::api::Matching::of("PUT", "csinodes"),
                fakes::api::Trouble::Fail(ports::api::ApiError::Unreachable { message: "reset".to_owned() }),
            );
            rig.comes("a1.sock", FakeDriver::driver("a"));
            until("the first is refused", || !rig.told("a1.sock").is_empty()).await;
            // It is asked once more, and is not back from that.
            rig.plugins.trouble(
                &rig.path("a1.sock"),
                "NodeGetInfo",
                Some(PluginTrouble::Fail(Code::Internal, "no".to_owned())),
            );
            rig.api.calm();
            secs(200).await;
            rig.comes("a2.sock", FakeDriver::driver("a"));
            let at = || rig.driver("a").map(|d| d.endpoint.clone());
            until("the second is registered", || at() == Some(rig.path("a2.sock"))).await;
            if restart {
                kernel.faults().enable();
                kernel.faults().add_text("plugin-manager: kill@=look#1").unwrap();
                secs(11).await;
                assert_eq!(kernel.faults().log().len(), 1);
            }
            rig.goes("a1.sock");
            until("the first is forgotten", || rig.socket("a1.sock").is_none()).await;
            secs(60).await;
            assert_eq!((at(), rig.csi_node()), (Some(rig.path("a2.sock")), Some(vec!["a".to_owned()])));
            assert_eq!(rig.node.asked::<contract::node::ClearCsiNodeId>().len(), 0);
        });
    }
}

#[test]
fn nothing_is_registered_while_the_api_server_is_away_and_all_when_it_is_back() {
    run(6, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.api.unplug();
        rig.start_manager(true);
        rig.comes("a.sock", FakeDriver::driver("a"));
        secs(60).await;
        assert_eq!((rig.driver("a"), rig.told("a.sock")), (None, vec![]));
        assert!(rig.socket("a.sock").is_some(), "it is known");
        rig.api.calm();
        until("it is registered", || rig.driver("a").is_some()).await;
        until("it is told", || rig.told("a.sock") == [Ok(())]).await;
        rig.api.unplug();
        rig.goes("a.sock");
        secs(5).await;
        assert!(rig.driver("a").is_none(), "nobody may use it");
        rig.api.calm();
        until("the API server hears of it", || rig.csi_node() == Some(Vec::new())).await;
    });
}

#[test]
fn conflicts_are_written_again_and_a_lost_answer_harms_nobody() {
    run(7, |kernel| async move {
        let rig = Rig::start(&kernel);
        until("the CSINode is there", || rig.csi_node().is_some()).await;
        let away = || ports::api::ApiError::Unreachable { message: "reset".to_owned() };
        rig.api.fail("PUT", "csinodes", 2, away());
        rig.api.trouble(fakes::api::Matching::of("PUT", "csinodes"), fakes::api::Trouble::DoneButLost(away()), 1);
        rig.comes("a.sock", FakeDriver::driver("a"));
        until("it is told", || rig.told("a.sock") == [Ok(())]).await;
        assert_eq!(rig.csi_node(), Some(vec!["a".to_owned()]));
    });
}

#[test]
fn without_an_api_server_a_driver_is_told_why_it_is_not_registered() {
    run(8, |kernel| async move {
        let rig = Rig::new(&kernel);
        rig.start_manager(false);
        rig.plugins.trouble(&rig.path("b.sock"), "GetInfo", Some(PluginTrouble::Fail(Code::Internal, "no".to_owned())));
        rig.comes("a.sock", FakeDriver::driver("a"));
        rig.comes("b.sock", FakeDriver::driver("b"));
        until("it is told", || !rig.told("a.sock").is_empty()).await;
        assert!(rig.told("a.sock")[0].as_ref().unwrap_err().ends_with("error getting kube client"));
        let words = |name: &str| {
            format!(
                "RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket {}, err: rpc error: code = Internal desc = no",
                rig.path(name).display()
            )
        };
        until("the other's row says why", || rig.socket("b.sock").is_some_and(|r| r.error == Some(words("b.sock"))))
            .await;
    });
}
