//! A daemon that is killed between any two changes that it makes on the disk.

use std::sync::Arc;

use model::core::Pod;
use serde_json::{Value, json};

use super::cluster::{Cluster, pod_with, pod_with_devices, secs};
use super::mortal::Mortal;

/// What becomes of the pod after the death.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// It has ended.
    Gone,
    /// It goes on, and ends later.
    GoesOn,
}

/// Answers whether the daemon died.
fn one(claim: &Value, pod: &Arc<Pod>, steps: usize, then: Then) -> bool {
    let mut died = false;
    actor::testing::run(1, async |kernel| {
        let mut c = Cluster::start(&kernel);
        c.claim("a", claim.clone());
        let mortal = Mortal::after(&c.host.disk, steps);
        c.restart_as(Some(mortal.clone())).await;
        if c.mount(pod).await.is_ok() && c.unmount("u1").await.is_ok() {
            secs(2).await;
        }
        died = mortal.is_dead();
        c.restart().await;
        secs(1).await;
        if then == Then::GoesOn {
            c.mount(pod).await.unwrap_or_else(|e| panic!("{steps} {then:?}: {e}"));
        }
        c.remove("u1").await.unwrap_or_else(|e| panic!("{steps} {then:?}: {e}"));
        secs(200).await;
        let left = (c.host.names("plugins/kubernetes.io/csi/d.example"), c.devices(), c.host.names("pods"));
        assert!(c.is_clean() && c.csi.is_idle() && left.2.is_empty(), "{steps} {then:?}: {left:?}");
        assert_eq!(c.csi.wrong(), [""; 0], "{steps} {then:?}");
    });
    died
}

fn every_step(claim: &Value, pod: &Arc<Pod>, least: usize) {
    for then in [Then::Gone, Then::GoesOn] {
        let lived = (0..200).find(|steps| !one(claim, pod, *steps, then)).expect("it comes to an end");
        assert!(lived >= least, "{then:?}: {lived} changes only");
    }
}

#[test]
fn nothing_of_a_volume_with_a_file_system_stays_behind() {
    every_step(&json!({}), &pod_with("u1", &["a"]), 12);
}

#[test]
fn nothing_of_a_raw_volume_stays_behind() {
    every_step(&json!({ "volumeMode": "Block" }), &pod_with_devices("u1", &["a"]), 20);
}
