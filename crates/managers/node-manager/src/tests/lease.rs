//! The lease.

use std::time::Duration;

use actor::testing::run;
use fakes::api::{Matching, Trouble};
use model::Timestamp;
use model::k8s_openapi::api::coordination::v1::Lease;
use ports::api::{ApiError, Throttle};

use super::rig::*;

fn renewed(rig: &Rig) -> i128 {
    rig.stored_lease().unwrap().spec.unwrap().renew_time.unwrap().0.as_nanosecond()
}

#[test]
fn the_lease_belongs_to_the_node_and_is_renewed_four_times_in_its_life() {
    with_node(async |rig| {
        until("a lease", || rig.stored_lease().is_some()).await;
        let lease = rig.stored_lease().unwrap();
        let owner = lease.metadata.owner_references.unwrap().remove(0);
        assert_eq!((owner.kind.as_str(), owner.name.as_str()), ("Node", NAME));
        assert_eq!(Some(owner.uid.as_str()), rig.view().api_uid());
        let spec = lease.spec.unwrap();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(NAME), Some(40)));
        rig.pass(secs(105)).await;
        let puts = rig.api.requests_of("PUT", "/leases/n1");
        assert_eq!(puts.len(), 10);
        for pair in puts.windows(2) {
            let pause = pair[1].at - pair[0].at;
            assert!(pause >= secs(10) && pause <= Duration::from_millis(10_450), "{pause:?}");
        }
        assert!(puts.iter().all(|r| r.throttle == Throttle::Unlimited));
        assert!(rig.api.requests_of("GET", "/leases").len() <= 3, "renewals read nothing");
        assert!(rig.lease().error.is_none());
    });
}

#[test]
fn the_lease_goes_on_while_the_status_does_not_and_the_runtime_is_down() {
    with_node(async |rig| {
        until("a lease", || rig.stored_lease().is_some()).await;
        rig.api.lasting_trouble(Matching::of("PATCH", "/nodes"), Trouble::Hang);
        rig.runtime_says(|i| i.stale = true);
        rig.manager.as_ref().unwrap().stop();
        let before = renewed(&rig);
        rig.pass(secs(300)).await;
        assert!(renewed(&rig) - before >= 285_000_000_000);
    });
}

#[test]
fn a_lease_that_somebody_else_changed_is_read_again() {
    with_node(async |rig| {
        until("a lease", || rig.stored_lease().is_some()).await;
        rig.pass(secs(15)).await;
        let reads = rig.api.requests_of("GET", "/leases").len();
        rig.api.change::<Lease>(Some("kube-node-lease"), NAME, |l| {
            l.metadata.labels = Some([("a".into(), "b".into())].into())
        });
        let before = renewed(&rig);
        rig.pass(secs(11)).await;
        assert!(renewed(&rig) > before);
        assert_eq!(rig.api.requests_of("GET", "/leases").len(), reads + 1);
        assert!(rig.stored_lease().unwrap().metadata.labels.is_some());
    });
}

#[test]
fn a_lease_that_is_gone_is_made_anew() {
    with_node(async |rig| {
        until("a lease", || rig.stored_lease().is_some()).await;
        rig.api.vanish::<Lease>(Some("kube-node-lease"), NAME);
        rig.pass(secs(11)).await;
        assert!(rig.stored_lease().unwrap().metadata.owner_references.is_some());
    });
}

#[test]
fn an_outage_is_retried_with_pauses_that_grow_and_ends_with_a_renewal() {
    with_node(async |rig| {
        until("a lease", || rig.stored_lease().is_some()).await;
        rig.pass(secs(15)).await;
        rig.api.unplug();
        rig.api.forget_requests();
        rig.pass(secs(120)).await;
        assert!(rig.lease().error.is_some());
        let tries = rig.api.requests_of("PUT", "/leases").len() + rig.api.requests_of("GET", "/leases").len();
        assert!((15..40).contains(&tries), "{tries}");
        rig.api.calm();
        rig.pass(secs(8)).await;
        assert_eq!(rig.lease().error, None);
        assert!(rig.wall().nanos_since(Timestamp(i64::try_from(renewed(&rig)).unwrap())) < 9_000_000_000);
    });
}

#[test]
fn without_a_node_there_is_no_lease() {
    run(36, |kernel| async move {
        let mut rig = Rig::new(&kernel);
        rig.runtime_says(|_| ());
        rig.api.lasting_trouble(Matching::of("POST", "/nodes"), Trouble::Fail(ApiError::status(500, "", "no")));
        rig.start_manager(config());
        rig.start_lease();
        rig.pass(secs(60)).await;
        assert!(rig.stored_lease().is_none());
        rig.api.calm();
        until("registered", || rig.view().registered).await;
        let at = kernel.clock().now();
        until("a lease", || rig.stored_lease().is_some()).await;
        assert!(kernel.clock().now() - at < secs(1), "as soon as the Node is there");
    });
}
