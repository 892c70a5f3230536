//! A node whose API server is not there, or not well.

use std::time::Duration;

use actor::testing::run;
use contract::node::NodeOrigin;
use fakes::api::{Matching, Trouble};
use ports::api::ApiError;

use super::rig::*;

#[test]
fn registration_goes_on_for_ever_with_pauses_that_grow() {
    run(21, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        rig.api.unplug();
        rig.start_manager(config());
        until("a Node from facts", || rig.view().node.is_some()).await;
        assert_eq!(rig.view().origin, NodeOrigin::Host);
        rig.pass(secs(600)).await;
        assert!(!rig.view().registered);
        assert!(rig.view().error.clone().unwrap().starts_with("registration: "));
        let times: Vec<Duration> = rig.api.requests_of("POST", "/nodes").iter().map(|r| r.at).collect();
        let pauses: Vec<u128> = times.windows(2).map(|w| (w[1] - w[0]).as_millis()).collect();
        for (pause, wanted) in pauses.iter().zip([100, 200, 400, 800, 1600, 3200, 6400, 7000, 7000]) {
            assert!((wanted..wanted + 50).contains(pause), "{pauses:?}");
        }
        assert!(times.len() < 100, "{}", times.len());
        rig.api.calm();
        rig.pass(secs(8)).await;
        assert!(rig.view().registered);
        assert_eq!((rig.view().origin, rig.view().error.clone()), (NodeOrigin::Api, None));
        assert_eq!(rig.ready(), "True");
    });
}

#[test]
fn a_node_that_was_away_tells_the_truth_once() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.api.unplug();
        rig.pass(secs(3600)).await;
        assert!(rig.view().error.is_some());
        assert_eq!(rig.view().ready, Some((true, String::new())));
        // Meanwhile the controller has lost sight of it.
        rig.api.change::<model::core::Node>(None, NAME, |n| {
            for c in n.status.as_mut().unwrap().conditions.as_mut().unwrap() {
                c.status = "Unknown".into();
            }
        });
        rig.events();
        rig.api.calm();
        rig.api.forget_requests();
        rig.pass(secs(60)).await;
        assert_eq!(rig.ready(), "True");
        assert_eq!(rig.view().error, None);
        assert!((1..=2).contains(&rig.patches()), "what was due, and what the watch then showed");
        assert_eq!(rig.said_not_ready(), 0);
        assert!(rig.events().ends_with(&["NodeReady".to_owned()]));
    });
}

#[test]
fn a_status_is_tried_five_times_and_read_anew_after_the_first() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.api.forget_requests();
        rig.api.fail("PATCH", "/status", 4, ApiError::status(409, "Conflict", "again"));
        rig.presses(&["DiskPressure"]);
        rig.pass(secs(11)).await;
        assert_eq!(rig.patches(), 5);
        assert_eq!(rig.api.requests_of("GET", "/nodes/n1").len(), 4);
        assert_eq!(rig.condition("DiskPressure").status, "True");
        assert_eq!(rig.view().error, None);
    });
}

#[test]
fn answers_that_are_lost_are_repeated_without_harm() {
    run(24, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        let lost = || Trouble::DoneButLost(ApiError::Unreachable { message: "reset".into() });
        rig.api.trouble(Matching::of("POST", "/nodes"), lost(), 1);
        rig.start_manager(config());
        until("registered", || rig.view().registered).await;
        rig.api.trouble(Matching::of("PATCH", "/status"), lost(), 1);
        rig.presses(&["DiskPressure"]);
        rig.pass(secs(11)).await;
        assert_eq!(rig.condition("DiskPressure").status, "True");
        assert_eq!(rig.view().error, None);
    });
}

#[test]
fn a_server_that_says_nothing_holds_nothing_up_for_long() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.api.trouble(Matching::of("PATCH", "/status"), Trouble::Hang, 1);
        rig.presses(&["DiskPressure"]);
        rig.pass(secs(22)).await;
        assert_eq!(rig.condition("DiskPressure").status, "True");
    });
}

#[test]
fn a_deleted_node_stays_deleted_until_the_daemon_begins_anew() {
    with_node(async |rig| {
        until("registered", || rig.view().registered).await;
        rig.api.vanish::<model::core::Node>(None, NAME);
        rig.pass(secs(700)).await;
        assert!(rig.stored().is_none());
        assert!(rig.view().error.clone().unwrap().starts_with("node status: "));
    });
}
