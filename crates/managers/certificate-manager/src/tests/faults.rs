//! The actor dies at each of its points, and the node gets one certificate all the same.

use model::k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::rig::{HOUR, Rig, START_S, rig, rotating};
use crate::{ClientSource, ServingSource};

const POINTS: [&str; 5] = ["load", "key", "before create", "after create", "before store"];

/// Approves whatever comes until there is a certificate; counts requests.
async fn certify(rig: &Rig) -> usize {
    let mut rx = rig.wiring.value::<contract::certificates::CertificateView>().subscribe();
    for _ in 0..20 {
        let signed = async {
            let name = Rig::request(&rig.bootstrap).await;
            rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        };
        tokio::select! {
            () = signed => {}
            done = rx.wait_for(|v| v.client.is_some()) => { drop(done.unwrap()); break }
        }
    }
    assert!(rig.view().client.is_some());
    rig.bootstrap.read_all::<CertificateSigningRequest>(None).len()
}

#[test]
fn a_death_at_any_point_costs_at_most_one_request_more() {
    for source in [rotating(), ClientSource::Once] {
        for point in POINTS {
            rig(async |mut rig| {
                let rule = format!("certificate-manager: panic@{point}#1");
                rig.kernel.faults().add_text(&rule).unwrap();
                rig.kernel.faults().enable();
                rig.start(source.clone(), ServingSource::Off).await;
                let requests = certify(&rig).await;
                let allowed = if point == "after create" && source != ClientSource::Once { 2 } else { 1 };
                assert!(requests <= allowed, "{point}: {requests} requests");
                assert_eq!(rig.kernel.faults().log().len(), 1, "{point} was not met");
                assert_eq!(rig.view().error, None);
            });
        }
    }
}

#[test]
fn a_restarted_actor_never_takes_the_certificate_away() {
    rig(async |mut rig| {
        rig.start(rotating(), ServingSource::Off).await;
        let name = Rig::request(&rig.bootstrap).await;
        rig.issue(&rig.bootstrap, &name, START_S, HOUR);
        let client = rig.until("certified", |v| v.client.is_some()).await.client.clone();
        let mut rx = rig.wiring.value::<contract::certificates::CertificateView>().subscribe();
        rx.mark_unchanged();
        rig.kill();
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert!(!rx.has_changed().unwrap(), "{:?}", rig.view());
        assert_eq!(rig.view().client, client);
        assert_eq!(rig.kernel.directory().get("certificate-manager").unwrap().restarts, 1);
    });
}
