//! From a kubelet to bosun and back, with claims in use.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use testbed::wait_until;

use super::{Agent, Tunables, cases, kubelet, normal, site};
use crate::claims::looped;
use crate::node::{SOON, create, delete, wait_gone};
use crate::site::Site;

/// Longer than several rounds of a kubelet.
const ROUNDS: Duration = Duration::from_secs(10);

/// Where raw volumes are, below the root directory.
const DEVICES: &str = "plugins/kubernetes.io/csi/volumeDevices";

/// What nobody may touch: containers, and the mounts of the volumes.
#[derive(Debug, PartialEq)]
struct Held {
    containers: BTreeMap<String, Value>,
    /// With their ids: one that was made anew has another.
    mounts: Vec<String>,
    /// Raw volumes that are held open.
    devices: Vec<String>,
    /// Calls that take something away.
    undone: Vec<String>,
}

impl Site {
    fn held(&self, pods: &[String]) -> Held {
        let container = |name: &String| {
            let pod = self.node.cluster.admin().get(&format!("{}/{name}", crate::node::PODS)).unwrap_or_default();
            let status = &pod["status"]["containerStatuses"][0];
            (name.clone(), serde_json::json!([status["containerID"], status["restartCount"], status["ready"]]))
        };
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let root = self.root().display().to_string();
        let of_volumes = |line: &str| ["kubernetes.io~csi", DEVICES].iter().any(|dir| line.contains(dir));
        let ours = table.lines().filter(|l| l.contains(&root) && of_volumes(l));
        let mut devices = looped(&self.root().join(DEVICES));
        devices.sort();
        Held {
            containers: pods.iter().map(container).collect(),
            mounts: ours.map(str::to_owned).collect(),
            devices,
            undone: normal::short(&self.calls()).into_iter().filter(|c| c.contains("NodeUn")).collect(),
        }
    }

    fn assert_held(&self, pods: &[String], before: &Held, when: &str) {
        let now = self.held(pods);
        let new: Vec<_> = now.mounts.iter().filter(|m| !before.mounts.contains(m)).collect();
        assert!(new.is_empty(), "{when}: mounted anew: {new:#?}");
        assert_eq!(now, *before, "{when}");
    }

    /// Another agent takes the node over; some of its rounds have passed when it returns.
    fn change_to(&mut self, agent: Agent) {
        self.node.bosun.kill();
        for (_, driver) in &self.drivers {
            driver.forget();
        }
        match agent {
            Agent::Kubelet => kubelet(&mut self.node),
            Agent::Bosun => self.node.start_again().expect("bosun"),
        }
        for (name, driver) in &self.drivers {
            self.wait_registered(name, driver);
        }
        self.runtime.block_on(async { tokio::time::sleep(ROUNDS).await });
        eprintln!("calls about volumes after the change: {}", self.calls().len());
    }
}

#[test]
fn twenty_pods_with_claims_do_not_notice_who_serves_them() {
    let _tunables = Tunables::keep();
    let mut site = site(Agent::Kubelet);
    let claims: Vec<_> = (0..20).map(cases::one_of_twenty).collect();
    let mut names = Vec::new();
    for case in &claims {
        site.make_objects(case, None);
        names.push(case.pods[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        create(&site.node, &case.pods[0]);
    }
    for name in &names {
        site.ready(name);
    }
    let before = site.held(&names);
    let raw = (0..20).filter(|n| cases::is_raw(*n)).count();
    let files = before.mounts.iter().filter(|m| !m.contains(DEVICES)).count();
    assert_eq!((files, before.devices.len()), (20 - raw, raw), "{before:?}");

    site.change_to(Agent::Bosun);
    site.assert_held(&names, &before, "after a kubelet came bosun");
    site.change_to(Agent::Kubelet);
    site.assert_held(&names, &before, "after bosun came a kubelet");
    site.change_to(Agent::Bosun);
    for name in &names {
        delete(&site.node, name);
    }
    for name in &names {
        wait_gone(&site.node, name);
    }
    site.taken_back();
    let left = || {
        let held = site.held(&[]);
        if held.mounts.is_empty() && held.devices.is_empty() { Ok(()) } else { Err(format!("{held:?}")) }
    };
    wait_until("no mount to be left", SOON, left).expect("all is unmounted and let go");
}
